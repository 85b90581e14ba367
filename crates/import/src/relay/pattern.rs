//! Expressions, by the original's classes (spec graphite §2.5): every name, one of four kinds of plain text, or a
//! regular expression.
//!
//! The class depends on the text alone. `process::relay` parses expressions and matches names with them.
//! Not here: expressions that are too large to compile (`lower` asks the router once, for all of them).

use process::relay::{Class, Expression, ExpressionPlan, Note, Outline, Refusal};

use super::span::Span;

/// An expression of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// As written, quotes resolved.
    pub written: String,
    /// How it is matched; none for `*`, every name.
    pub class: Option<Class>,
    /// Number of groups for replacements.
    pub groups: usize,
    /// Where it was written.
    pub span: Span,
}

impl Pattern {
    /// For the router. In quotes among other expressions `*` is every name as well.
    pub(super) fn plan(&self) -> ExpressionPlan {
        ExpressionPlan::from(if self.class.is_none() { "^" } else { &*self.written })
    }

    /// Whether a name matches; none when that is not known.
    pub(super) fn is_met(&self, name: &str) -> Option<bool> {
        Expression::new(&self.plan(), false).ok()?.is_in(name.as_bytes()).ok()
    }
}

/// Classifies and reads a text. With `captures` a replacement uses its groups.
///
/// # Errors
/// The first unsupported construct.
pub(super) fn read(text: &str, captures: bool, span: Span) -> Result<(Pattern, Vec<Note>), Refusal> {
    let written = text.to_owned();
    if text == "*" {
        return Ok((Pattern { written, class: None, groups: 0, span }, Vec::new()));
    }
    let Outline { class, groups, notes } = ExpressionPlan::from(text).outline(captures)?;
    Ok((Pattern { written, class: Some(class), groups, span }, notes))
}
