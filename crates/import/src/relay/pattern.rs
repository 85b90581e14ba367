//! An expression as the original sorts it (spec graphite §2.5): everything, one of four kinds of plain text, or a
//! regular expression.
//!
//! The kind is chosen by the text alone. How it is read is `process::relay`'s to say, which also matches names with it.
//! Not here: what is too large to be compiled (`lower` asks the router, once for all expressions).

use process::relay::{Class, Expression, ExpressionPlan, Note, Outline, Refusal};

use super::document::Span;

/// An expression of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// As written, quotes resolved.
    pub written: String,
    /// How it is looked for; none for `*`, every name.
    pub class: Option<Class>,
    /// Groups that a replacement can name.
    pub groups: usize,
    /// Where it was written.
    pub span: Span,
}

impl Pattern {
    /// As the router takes it. In quotes among other expressions `*` is every name as well.
    pub(super) fn plan(&self) -> ExpressionPlan {
        ExpressionPlan::from(if self.class.is_none() { "^" } else { &*self.written })
    }

    /// Whether a name meets it; none when it cannot be said.
    pub(super) fn is_met(&self, name: &str) -> Option<bool> {
        Expression::new(&self.plan(), false).ok()?.is_in(name.as_bytes()).ok()
    }
}

/// Sorts and reads a text. With `captures` a replacement uses its groups.
///
/// # Errors
/// The first construct that cannot be read.
pub(super) fn read(text: &str, captures: bool, span: Span) -> Result<(Pattern, Vec<Note>), Refusal> {
    let written = text.to_owned();
    if text == "*" {
        return Ok((Pattern { written, class: None, groups: 0, span }, Vec::new()));
    }
    let Outline { class, groups, notes } = ExpressionPlan::from(text).outline(captures)?;
    Ok((Pattern { written, class: Some(class), groups, span }, notes))
}
