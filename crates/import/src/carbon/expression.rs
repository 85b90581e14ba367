//! Translates Python's regular expressions to the relay's syntax (`process::relay`).
//!
//! Nearly all expressions are the same text in both. Constructs with another meaning in Python are rewritten,
//! expressions that Python rejects are rejected, and expressions that need backtracking give a warning.
//! Not here: replacements (`rewrite`), patterns of aggregation rules (`aggregation`).

use process::relay::{Expression, ExpressionPlan, NoteAbout};

use crate::report::Reports;
use config::diagnostic::{Code, Diagnostic, Place};

/// Letters with a meaning after a `\` in Python, outside brackets. Digits are references.
const PYTHON_ESCAPES: &[u8] = b"AbBdDsSwWZafnrtvxuUN";

/// A valid expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// In the relay's syntax.
    pub(super) text: String,
    /// Number of its groups, and the names of named groups.
    pub(super) groups: usize,
    pub(super) names: Vec<(String, usize)>,
}

/// Reads an expression that begins at `start`. When it is invalid, returns none and reports the error.
pub(super) fn read(text: &str, start: usize, ignore_case: bool, wrong: &mut Vec<Diagnostic>) -> Option<Read> {
    let python = Python::of(text);
    if let Some((at, letter)) = python.refused {
        let message = format!("Python does not support `\\{letter}`, and carbon rejects the expression");
        let place = Place::new(start + at, start + at + 1 + letter.len_utf8());
        let report = wrong.error(Code::BadExpression, place, message);
        report.label("in this expression").hint(format!("write `{letter}`"));
        return None;
    }
    let plan = ExpressionPlan { text: python.text, ignore_case };
    // If the text was rewritten, places in it do not match the file.
    let place = |at: std::ops::Range<usize>| match plan.text == text {
        true => Place::new(start + at.start, start + at.end),
        false => Place::new(start, start + text.len()),
    };
    match Expression::new(&plan, true) {
        Ok(expression) => {
            let notes = plan.outline(false).map(|outline| outline.notes).unwrap_or_default();
            // Notes about builds apply to another original.
            for note in notes.into_iter().filter(|note| note.about == NoteAbout::Backtracking) {
                let report = wrong.warning(Code::Backtracks, place(note.at), note.message);
                report.label("slower, and with limits").hint(note.hint);
            }
            Some(Read { groups: expression.groups(), names: python.names, text: plan.text })
        }
        Err(refused) => {
            let mut diagnostic =
                Diagnostic::error(Code::BadExpression, refused.message).at(place(refused.at));
            diagnostic.hint = refused.hint;
            wrong.push(diagnostic.label("in this expression"));
            None
        }
    }
}

/// A Python expression, translated.
#[derive(Debug, Default)]
struct Python {
    /// The text in the relay's syntax.
    text: String,
    /// Names of groups, with their numbers.
    names: Vec<(String, usize)>,
    /// The first escape that Python does not know.
    refused: Option<(usize, char)>,
}

impl Python {
    fn of(text: &str) -> Python {
        let mut python = Python::default();
        let (mut groups, mut at) = (0, 0);
        while let Some(first) = text[at..].chars().next() {
            let rest = &text[at..];
            let bytes = match first {
                '\\' => python.escape(rest, at),
                '[' => python.class(rest, at),
                '(' => {
                    if opens_group(rest) {
                        groups += 1;
                        let name = rest.strip_prefix("(?P<").and_then(|rest| rest.split_once('>'));
                        python.names.extend(name.map(|(name, _)| (name.to_owned(), groups)));
                    }
                    python.text.push('(');
                    1
                }
                _ => {
                    python.text.push(first);
                    first.len_utf8()
                }
            };
            at += bytes;
        }
        python
    }

    /// Translates a `\` and what it escapes; returns its length.
    fn escape(&mut self, rest: &str, at: usize) -> usize {
        let Some(escaped) = rest[1..].chars().next() else {
            self.text.push('\\');
            return 1;
        };
        match escaped {
            // Word and text boundaries in the relay's syntax, plain letters in Python.
            '<' | '>' | '\'' | '`' => self.text.push(escaped),
            _ => {
                let known = escaped.is_ascii_digit() || PYTHON_ESCAPES.contains(&(escaped as u32 as u8));
                if escaped.is_ascii_alphanumeric() && !known {
                    self.refused = self.refused.or(Some((at, escaped)));
                }
                self.text.extend(['\\', escaped]);
            }
        }
        1 + escaped.len_utf8()
    }

    /// Translates a bracket expression; returns its length. `[:alpha:]` and the like are plain characters in Python.
    fn class(&mut self, rest: &str, at: usize) -> usize {
        let begin = if rest.starts_with("[^") { 2 } else { 1 };
        self.text.push_str(&rest[..begin]);
        let mut length = begin;
        while let Some(first) = rest[length..].chars().next() {
            match first {
                '\\' => length += self.escape_in_class(&rest[length..], at + length),
                '[' => {
                    self.text.push_str("\\[");
                    length += 1;
                }
                _ => {
                    self.text.push(first);
                    length += first.len_utf8();
                    if first == ']' && length > begin + 1 {
                        break;
                    }
                }
            }
        }
        length
    }

    fn escape_in_class(&mut self, rest: &str, at: usize) -> usize {
        let escaped = rest[1..].chars().next();
        if let Some(letter) = escaped.filter(|letter| letter.is_ascii_alphabetic())
            && !PYTHON_ESCAPES.contains(&(letter as u32 as u8))
        {
            self.refused = self.refused.or(Some((at, letter)));
        }
        let length = 1 + escaped.map_or(0, char::len_utf8);
        self.text.push_str(&rest[..length]);
        length
    }
}

/// Whether a text that begins with `(` begins with a numbered group.
fn opens_group(text: &str) -> bool {
    !text.starts_with("(?") || text.starts_with("(?P<")
}

/// Number of numbered groups that `text`, a piece of an expression, opens.
pub(super) fn groups_in(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut groups, mut in_class) = (0, 0, None);
    while at < bytes.len() {
        match (bytes[at], in_class) {
            (b'\\', _) => at += 1,
            (b'[', None) => in_class = Some(at + if bytes.get(at + 1) == Some(&b'^') { 2 } else { 1 }),
            (b']', Some(begin)) if at > begin => in_class = None,
            (b'(', None) => groups += usize::from(opens_group(&text[at..])),
            _ => {}
        }
        at += 1;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_expressions_are_translated() {
        let table: &[(&str, &str)] = &[
            (r"^a\.(b|c)\d+$", r"^a\.(b|c)\d+$"),
            (r"\<a\>\'\`", r"<a>'`"),
            (r"[[:alpha:]x]", r"[\[:alpha:]x]"),
            (r"[]a][^]b]", r"[]a][^]b]"),
            (r"[\w.\]-](?P<x>y)", r"[\w.\]-](?P<x>y)"),
            ("é[é]\\é", "é[é]\\é"),
            ("(?i)a", "(?i)a"),
        ];
        for (python, want) in table {
            let mut wrong = Vec::new();
            let read = read(python, 0, false, &mut wrong);
            assert_eq!(read.map(|read| read.text).as_deref(), Some(*want), "{python} {wrong:?}");
        }
    }

    #[test]
    fn unsupported_expressions_are_reported_with_their_place() {
        for (text, want) in [(r"ab\h", 12..14), (r"[\y]", 11..13), ("a(b", 11..12), (r"\<(", 10..13)] {
            let mut wrong = Vec::new();
            assert_eq!(read(text, 10, false, &mut wrong), None);
            let place = wrong[0].place.expect("a place");
            assert_eq!((wrong.len(), place.start..place.end), (1, want), "{text}");
        }
        let mut wrong = Vec::new();
        assert!(read("^a(?!b)", 10, false, &mut wrong).is_some());
        assert_eq!((wrong.len(), wrong[0].code), (1, Code::Backtracks));
    }

    #[test]
    fn groups_are_counted_and_named() {
        let mut wrong = Vec::new();
        let read = read("(a)(?:b)(?P<host>c)(?=d)[(]", 0, false, &mut wrong).expect("an expression");
        assert_eq!((read.groups, read.names), (2, vec![("host".to_owned(), 2)]));
        for (text, groups) in [("(a)(?:b)", 1), (r"\((b", 1), ("[(](?P<x>", 1), ("[](](", 1), ("(?<!a)", 0)] {
            assert_eq!(groups_in(text), groups, "{text}");
        }
    }
}
