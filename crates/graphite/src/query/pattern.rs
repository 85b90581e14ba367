//! Python's `re.search` and `re.sub` over names.
//!
//! Expressions are those of `python_regex`. Replacements have `\1`, `\g<1>`, `\g<name>` and octal escapes such as `\07`.

use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;
use regex_automata::{Input, MatchKind, PatternID};

use super::budget::NAME_BYTES_MAX;
use super::error::{Code, QueryError};
use crate::python_regex::{Names, Options, compile};

/// Longest accepted expression or replacement in bytes.
pub const PATTERN_BYTES_MAX: usize = 4 << 10;

/// Most memory of a compiled expression.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// Most characters of an expression that a message shows.
const SHOWN_CHARS_MAX: usize = 100;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Pattern(Regex);

/// A replacement: text, and groups by number.
#[derive(Debug)]
pub(crate) struct Replacement(Vec<Piece>);

#[derive(Debug)]
enum Piece {
    Text(String),
    Group(usize),
}

fn refuse<T>(message: String) -> Result<T, QueryError> {
    Err(QueryError::argument(message))
}

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// When it is no expression, not regular, or too large.
    pub(crate) fn new(text: &str) -> Result<Pattern, QueryError> {
        let options = Options {
            names: Names::Text,
            match_kind: MatchKind::LeftmostFirst,
            pattern_bytes_max: PATTERN_BYTES_MAX,
            compiled_bytes_max: COMPILED_BYTES_MAX,
            cache_bytes_max: COMPILED_BYTES_MAX,
        };
        compile(&[text], options).map(Pattern).or_else(|error| {
            let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
            refuse(format!("`{shown}` is not accepted as a regular expression: {}", error.fault))
        })
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }

    /// Replaces every match, as `re.sub` does: also empty matches beside others.
    ///
    /// # Errors
    /// When the result is longer than a name may be.
    pub(crate) fn replace(&self, name: &str, replacement: &Replacement) -> Result<String, QueryError> {
        let mut out = String::with_capacity(name.len());
        let (mut copied, mut at) = (0, 0);
        let mut last_empty = None;
        let mut groups = self.0.create_captures();
        while at <= name.len() {
            self.0.search_captures(&Input::new(name).span(at..name.len()), &mut groups);
            let Some(whole) = groups.get_group(0) else { break };
            if whole.is_empty() && last_empty == Some(whole.start) {
                let Some(c) = name[at..].chars().next() else { break };
                at += c.len_utf8();
                continue;
            }
            out.push_str(&name[copied..whole.start]);
            replacement.expand(name, &groups, &mut out);
            if out.len() > NAME_BYTES_MAX {
                return Err(QueryError::new(
                    Code::Limit,
                    format!("names have at most {NAME_BYTES_MAX} bytes"),
                ));
            }
            (copied, at) = (whole.end, whole.end);
            last_empty = whole.is_empty().then_some(at);
        }
        out.push_str(&name[copied..]);
        Ok(out)
    }

    /// Reads a replacement for this expression.
    ///
    /// # Errors
    /// When it names a group that the expression does not have.
    pub(crate) fn replacement(&self, text: &str) -> Result<Replacement, QueryError> {
        if text.len() > PATTERN_BYTES_MAX {
            return refuse(format!("a replacement has at most {PATTERN_BYTES_MAX} bytes"));
        }
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            plain.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let Some(next) = rest.chars().next() else {
                return refuse(format!("`{text}` ends in a backslash"));
            };
            if let Some((c, len)) = octal(rest)? {
                plain.push(c);
                rest = &rest[len..];
                continue;
            }
            if let Some((group, len)) = self.group(rest)? {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Group(group));
                rest = &rest[len..];
                continue;
            }
            match next {
                'a' => plain.push('\u{7}'),
                'b' => plain.push('\u{8}'),
                't' => plain.push('\t'),
                'n' => plain.push('\n'),
                'v' => plain.push('\u{b}'),
                'f' => plain.push('\u{c}'),
                'r' => plain.push('\r'),
                '\\' => plain.push('\\'),
                c if c.is_ascii_alphanumeric() => {
                    return refuse(format!("unknown escape `\\{c}` in `{text}`"));
                }
                c => plain.extend(['\\', c]),
            }
            rest = &rest[next.len_utf8()..];
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Ok(Replacement(pieces))
    }

    /// The group that a backslash before this text refers to, and the length of the reference.
    fn group(&self, rest: &str) -> Result<Option<(usize, usize)>, QueryError> {
        let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
        let (name, len) = if let Some(inner) = rest.strip_prefix("g<") {
            let Some(end) = inner.find('>') else { return refuse("`\\g<` is not closed".to_owned()) };
            (&inner[..end], end + 3)
        } else if digits > 0 {
            (&rest[..digits], digits)
        } else {
            return Ok(None);
        };
        let number = match name.parse::<usize>() {
            Ok(number) => Some(number).filter(|number| *number < self.0.captures_len()),
            Err(_) => self.0.group_info().pattern_names(PatternID::ZERO).position(|own| own == Some(name)),
        };
        match number {
            Some(number) => Ok(Some((number, len))),
            None => refuse(format!("the expression has no group `{name}`")),
        }
    }
}

/// The character of an octal escape after its backslash, and the length: up to two digits after a 0, or three digits.
fn octal(rest: &str) -> Result<Option<(char, usize)>, QueryError> {
    let len = rest.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    if len < 3 && !rest.starts_with('0') {
        return Ok(None);
    }
    match u8::from_str_radix(&rest[..len], 8) {
        Ok(byte) => Ok(Some((char::from(byte), len))),
        Err(_) => refuse(format!("the octal escape `\\{}` is above `\\377`", &rest[..len])),
    }
}

impl Replacement {
    fn expand(&self, name: &str, groups: &Captures, out: &mut String) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Group(number) => {
                    out.push_str(groups.get_group(*number).map_or("", |group| &name[group.range()]));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub(pattern: &str, replacement: &str, name: &str) -> Result<String, QueryError> {
        let pattern = Pattern::new(pattern)?;
        pattern.replace(name, &pattern.replacement(replacement)?)
    }

    #[test]
    fn matches_are_replaced_as_in_python() {
        let table = [
            (r"^s\.(\w)\.(\w)$", r"\2-\1", "s.a.x", "x-a"),
            (r"\.", "/", "a.b.c", "a/b/c"),
            ("x*", "-", "abxd", "-a-b--d-"),
            (r"(?P<n>a)", r"[\g<n>\g<1>\g<0>]", "bab", "b[aaa]b"),
            ("a{,2}b", "x", "aab", "x"),
            ("a{b", "x", "a{b", "x"),
            ("[]a]", "x", "]a", "xx"),
            ("[a[&&b]", "x", "[&", "xx"),
            ("[+--a]+", "x", "-,b", "xb"),
            (r"a\Z", "x", "aa", "ax"),
            (r"(?i)É\w", r"\\", "éü", "\\"),
            (r"\<a\>", r"\.", "<a>", r"\."),
            ("(a)|b", r"<\1>", "ab", "<a><>"),
            ("a(?#note)b", "x", "ab", "x"),
            (r"a\07", "x", "a\u{7}", "x"),
            (r"[\b]", "x", "\u{8}", "x"),
            ("(a)", r"\07\0\101\012", "a", "\u{7}\0A\n"),
            ("a", r"\a\b\v\f", "a", "\u{7}\u{8}\u{b}\u{c}"),
            ("", "-", "éü", "-é-ü-"),
        ];
        for (pattern, replacement, name, want) in table {
            assert_eq!(sub(pattern, replacement, name).as_deref(), Ok(want), "{pattern} {replacement}");
        }
    }

    #[test]
    fn unsupported_and_wrong_expressions_are_refused() {
        for pattern in ["(?=a)", "a++", "(", r"(?:\w{900}){900}"] {
            let message = Pattern::new(pattern).expect_err(pattern).message;
            assert!(message.starts_with(&format!("`{pattern}` is not accepted")), "{message}");
        }
        for replacement in [r"\2", r"\12", r"\400", r"\g<x>", r"\g<1", r"\q", "\\"] {
            assert!(sub("(a)", replacement, "a").is_err(), "{replacement}");
        }
    }

    #[test]
    fn lengths_are_limited() {
        assert!(Pattern::new(&"a".repeat(PATTERN_BYTES_MAX)).is_ok());
        assert!(Pattern::new(&"a".repeat(PATTERN_BYTES_MAX + 1)).is_err());
        let pattern = Pattern::new("a").expect("an expression");
        assert!(pattern.replacement(&"a".repeat(PATTERN_BYTES_MAX)).is_ok());
        assert!(pattern.replacement(&"a".repeat(PATTERN_BYTES_MAX + 1)).is_err());
        let wide = "b".repeat(1 << 10);
        assert!(sub("a", &wide, &"a".repeat(NAME_BYTES_MAX >> 10)).is_ok());
        assert!(sub("a", &wide, &"a".repeat((NAME_BYTES_MAX >> 10) + 1)).is_err());
    }
}
