//! Patterns of `=~`: `%` stands for any run of characters, everything else for itself, anchored at both ends.
//!
//! `%` does not match line breaks, so a text matches if it has the pattern's line breaks and each line matches. Within a
//! line each literal piece is searched once, from the left: linear in the text.

use arcstr::ArcStr;
use memchr::memmem::Finder;

use super::meter::Meter;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Like {
    pattern: ArcStr,
    /// One for each line of the pattern; at least one.
    lines: Vec<Line>,
}

#[derive(Clone, Debug)]
enum Line {
    /// No `%`.
    Literal(String),
    /// At least one `%`.
    Pieces { prefix: String, between: Vec<Finder<'static>>, suffix: String },
}

/// What ends a line in Java's regular expressions, of which upstream makes its patterns.
pub(super) fn is_line_break(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn has_line_break(text: &str) -> bool {
    memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_some()
        || !text.is_ascii() && text.contains(['\u{85}', '\u{2028}', '\u{2029}'])
}

impl Like {
    /// Compiles a pattern: any text is one.
    pub fn new(pattern: &ArcStr) -> Like {
        Like { pattern: pattern.clone(), lines: pattern.split(is_line_break).map(Line::new).collect() }
    }

    /// Whether a text matches.
    pub fn matches(&self, text: &str, meter: &mut Meter) -> bool {
        meter.text(text.len());
        if let [line] = &self.lines[..] {
            return line.matches(text) && !has_line_break(text);
        }
        let breaks = |text: &str| text.chars().filter(|&letter| is_line_break(letter)).collect::<String>();
        breaks(text) == breaks(&self.pattern)
            && text.split(is_line_break).zip(&self.lines).all(|(text, line)| line.matches(text))
    }

    /// What every matching text begins with.
    pub fn prefix(&self) -> &str {
        self.pattern.split('%').next().unwrap_or_default()
    }

    /// The only text that matches, for a pattern without `%`.
    pub fn literal(&self) -> Option<&ArcStr> {
        (!self.pattern.contains('%')).then_some(&self.pattern)
    }
}

impl Line {
    fn new(pattern: &str) -> Line {
        let Some((prefix, rest)) = pattern.split_once('%') else {
            return Line::Literal(pattern.to_owned());
        };
        let (between, suffix) = rest.rsplit_once('%').unwrap_or(("", rest));
        let pieces = between.split('%').filter(|piece| !piece.is_empty());
        let between = pieces.map(|piece| Finder::new(piece).into_owned()).collect();
        Line::Pieces { prefix: prefix.to_owned(), between, suffix: suffix.to_owned() }
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Line::Literal(literal) => text == literal,
            Line::Pieces { prefix, between, suffix } => {
                let inner =
                    text.strip_prefix(prefix.as_str()).and_then(|rest| rest.strip_suffix(suffix.as_str()));
                let Some(mut rest) = inner.map(str::as_bytes) else {
                    return false;
                };
                between.iter().all(|piece| {
                    let found = piece.find(rest);
                    rest = found.map_or(&[][..], |at| &rest[at + piece.needle().len()..]);
                    found.is_some()
                })
            }
        }
    }
}
