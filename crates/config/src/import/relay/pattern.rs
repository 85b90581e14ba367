//! An expression as the original sorts it (spec graphite §2.5): everything, one of four kinds of plain text, or a
//! regular expression.
//!
//! The kind is chosen by the text alone, so it is part of what an expression means: plain texts are never read by a
//! regular expression library. Regular expressions are compiled here once, so that one that is too large is found by
//! the check and not by the daemon.

use regex::bytes::RegexBuilder;

use super::document::Span;
use super::expression::{self, Refusal, Translated};

/// Most memory for one compiled expression, in bytes.
pub const COMPILED_BYTES_MAX: usize = 1 << 20;

/// An expression of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// As written, quotes resolved.
    pub written: String,
    /// What it looks for.
    pub kind: PatternKind,
    /// Where it was written.
    pub span: Span,
}

/// What an expression looks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternKind {
    /// `*`: every name.
    All,
    /// Names that have it in them.
    Substring(String),
    /// Names that begin with it.
    Prefix(String),
    /// Names that end with it.
    Suffix(String),
    /// This name.
    Exact(String),
    /// Names in which it is found.
    Regex {
        /// In the syntax of the `regex` crate, for bytes.
        regex: String,
        /// Groups that capture, without group 0.
        groups: usize,
    },
}

impl Pattern {
    /// Groups that a replacement can name.
    pub fn groups(&self) -> usize {
        match self.kind {
            PatternKind::Regex { groups, .. } => groups,
            _ => 0,
        }
    }
}

/// Sorts and, where it is a regular expression, translates and compiles. With `captures` a replacement uses its groups.
///
/// # Errors
/// What [`expression::translate`] refuses, and what is too large.
pub(super) fn read(text: &str, captures: bool) -> Result<(PatternKind, Vec<expression::Note>), Refusal> {
    if text == "*" {
        return Ok((PatternKind::All, Vec::new()));
    }
    if let Some(plain) = plain(text) {
        return Ok((plain, Vec::new()));
    }
    let Translated { regex, groups, notes } = expression::translate(text.as_bytes(), captures)?;
    let compiled = RegexBuilder::new(&regex).size_limit(COMPILED_BYTES_MAX).build();
    if compiled.is_err() {
        return Err(Refusal {
            at: 0..text.len(),
            message: format!(
                "this expression needs more than {} MiB once it is compiled",
                COMPILED_BYTES_MAX >> 20
            ),
            hint: Some("repeat less: what stands in {…} is laid out as often as it says".into()),
            upstream: "Regular expression too big",
        });
    }
    Ok((PatternKind::Regex { regex, groups }, notes))
}

/// The text that an expression without any sign of a regular expression stands for.
fn plain(text: &str) -> Option<PatternKind> {
    let (prefix, inner) = text.strip_prefix('^').map_or((false, text), |inner| (true, inner));
    let mut literal = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    let mut suffix = false;
    while let Some(c) = chars.next() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => literal.push(c),
            '$' if chars.as_str().is_empty() => suffix = true,
            '\\' => match chars.next() {
                Some(c @ ('\\' | '.' | '^' | '*' | '+')) => literal.push(c),
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(match (prefix, suffix) {
        (false, false) => PatternKind::Substring(literal),
        (true, false) => PatternKind::Prefix(literal),
        (false, true) => PatternKind::Suffix(literal),
        (true, true) => PatternKind::Exact(literal),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> PatternKind {
        read(text, false).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}")).0
    }

    #[test]
    fn plain_texts_are_told_from_regular_expressions_as_the_original_does() {
        let substring = |text: &str| PatternKind::Substring(text.into());
        let table = [
            ("*", PatternKind::All),
            ("foo_-1", substring("foo_-1")),
            ("foo\\.bar", substring("foo.bar")),
            ("^foo\\.", PatternKind::Prefix("foo.".into())),
            ("\\.bar$", PatternKind::Suffix(".bar".into())),
            ("^a$", PatternKind::Exact("a".into())),
            ("^", PatternKind::Prefix(String::new())),
            ("$", PatternKind::Suffix(String::new())),
            ("^$", PatternKind::Exact(String::new())),
            ("\\^a", substring("^a")),
            ("a\\\\b", substring("a\\b")),
            ("a\\*\\+", substring("a*+")),
        ];
        for (text, want) in table {
            assert_eq!(kind(text), want, "{text}");
        }
        for text in [
            "foo.bar", "a:b", "a b", "a^b", "a$b", "a\\$", "a\\-b", "a\\ b", "^^a", "a$$", "a\\d", "a%b",
            "é", "a*", "a]",
        ] {
            assert!(matches!(kind(text), PatternKind::Regex { .. }), "{text}");
        }
    }

    #[test]
    fn what_would_be_too_large_is_refused() {
        for (text, good) in
            [("a.{5000}", true), ("(a.{1000}){1000}", false), ("((a.{200}){200}){200}", false)]
        {
            assert_eq!(read(text, false).is_ok(), good, "{text}");
        }
    }
}
