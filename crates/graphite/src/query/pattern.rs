//! Regular expressions in Python's dialect, as far as it is regular: matched in linear time by `regex`.
//!
//! Look-around and references to groups inside an expression are refused. Replacements have `\1`, `\g<1>` and
//! `\g<name>`.

use regex::{Captures, Regex, RegexBuilder};

use super::budget::NAME_BYTES_MAX;
use super::error::{Code, QueryError};

/// Longest accepted expression or replacement in bytes.
pub const PATTERN_BYTES_MAX: usize = 4 << 10;

/// Most memory of a compiled expression.
const COMPILED_BYTES_MAX: usize = 1 << 20;

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
        if text.len() > PATTERN_BYTES_MAX {
            return refuse(format!("a regular expression has at most {PATTERN_BYTES_MAX} bytes"));
        }
        let translated = translate(text)?;
        let mut builder = RegexBuilder::new(&translated);
        builder.size_limit(COMPILED_BYTES_MAX).dfa_size_limit(COMPILED_BYTES_MAX).nest_limit(50);
        builder.build().map(Pattern).or_else(|cause| {
            let cause = cause.to_string();
            let reason = cause.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            refuse(format!("`{text}` is not a regular expression: {reason}"))
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
        while at <= name.len() {
            let Some(groups) = self.0.captures_at(name, at) else { break };
            let Some(whole) = groups.get(0) else { break };
            if whole.is_empty() && last_empty == Some(whole.start()) {
                let Some(c) = name[at..].chars().next() else { break };
                at += c.len_utf8();
                continue;
            }
            out.push_str(&name[copied..whole.start()]);
            replacement.expand(&groups, &mut out);
            if out.len() > NAME_BYTES_MAX {
                return Err(QueryError::new(
                    Code::Limit,
                    format!("names have at most {NAME_BYTES_MAX} bytes"),
                ));
            }
            (copied, at) = (whole.end(), whole.end());
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
            if let Some((group, len)) = self.group(rest)? {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Group(group));
                rest = &rest[len..];
                continue;
            }
            match next {
                'n' => plain.push('\n'),
                't' => plain.push('\t'),
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
        } else if digits > 0 && !rest.starts_with('0') {
            (&rest[..digits], digits)
        } else {
            return Ok(None);
        };
        let number = match name.parse::<usize>() {
            Ok(number) => Some(number).filter(|number| *number < self.0.captures_len()),
            Err(_) => self.0.capture_names().position(|own| own == Some(name)),
        };
        match number {
            Some(number) => Ok(Some((number, len))),
            None => refuse(format!("the expression has no group `{name}`")),
        }
    }
}

impl Replacement {
    fn expand(&self, groups: &Captures<'_>, out: &mut String) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Group(number) => out.push_str(groups.get(*number).map_or("", |group| group.as_str())),
            }
        }
    }
}

/// Python's syntax in that of `regex`.
fn translate(text: &str) -> Result<String, QueryError> {
    let mut out = String::with_capacity(text.len() + 8);
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        at += c.len_utf8();
        match c {
            '\\' => at += escape(&rest[1..], &mut out)?,
            '[' => at += class(&rest[1..], &mut out)?,
            '{' => at += braces(&rest[1..], &mut out),
            '(' if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|start| rest.starts_with(start)) => {
                return refuse(format!("`{text}` looks ahead or behind, which is not supported"));
            }
            '(' if rest.starts_with("(?P=") => {
                return refuse(format!("`{text}` refers to one of its groups, which is not supported"));
            }
            '(' if rest.starts_with("(?#") => {
                let Some(end) = rest.find(')') else {
                    return refuse(format!("`{text}` has an open comment"));
                };
                at += end;
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

/// What follows a backslash; the result is its length.
fn escape(rest: &str, out: &mut String) -> Result<usize, QueryError> {
    let Some(c) = rest.chars().next() else {
        return refuse("a regular expression ends in a backslash".to_owned());
    };
    match c {
        'Z' => out.push_str("\\z"),
        '1'..='9' => return refuse("a reference to a group is not supported in an expression".to_owned()),
        '0' => out.push_str("\\x00"),
        'z' | 'p' | 'P' | 'G' | 'K' | 'U' => {
            return refuse(format!("unknown escape `\\{c}` in an expression"));
        }
        '<' | '>' => out.push(c),
        c if c.is_ascii() => out.extend(['\\', c]),
        c => out.push(c),
    }
    Ok(c.len_utf8())
}

/// A set of characters after its `[`: in Python `[`, `&&`, `--` and `~~` mean themselves.
fn class(rest: &str, out: &mut String) -> Result<usize, QueryError> {
    out.push('[');
    let mut at = 0;
    if rest.starts_with('^') {
        out.push('^');
        at += 1;
    }
    let first = at;
    while let Some(c) = rest[at..].chars().next() {
        if c == ']' && at > first {
            out.push(']');
            return Ok(at + 1);
        }
        at += member(&rest[at..], c, out)?;
        let range = rest[at..].strip_prefix('-').and_then(|end| end.chars().next());
        if let Some(end) = range.filter(|end| *end != ']') {
            out.push('-');
            at += 1;
            at += member(&rest[at..], end, out)?;
        }
    }
    refuse("a `[` of a regular expression is not closed".to_owned())
}

/// One member of a set, or one end of a range; the result is its length.
fn member(rest: &str, c: char, out: &mut String) -> Result<usize, QueryError> {
    match c {
        '\\' => return escape(&rest[1..], out).map(|len| len + 1),
        '[' | ']' | '&' | '~' | '-' | '^' => out.extend(['\\', c]),
        c => out.push(c),
    }
    Ok(c.len_utf8())
}

/// A repetition after its `{`, or a brace that means itself.
fn braces(rest: &str, out: &mut String) -> usize {
    let inner = rest.split('}').next().filter(|inner| inner.len() < rest.len()).unwrap_or_default();
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    match inner.split_once(',') {
        Some((least, most)) if is_number(least) && is_number(most) && inner.len() > 1 => {
            let least = if least.is_empty() { "0" } else { least };
            out.push_str(&format!("{{{least},{most}}}"));
        }
        None if !inner.is_empty() && is_number(inner) => out.push_str(&format!("{{{inner}}}")),
        _ => {
            out.push_str("\\{");
            return 0;
        }
    }
    inner.len() + 1
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
        ];
        for (pattern, replacement, name, want) in table {
            assert_eq!(sub(pattern, replacement, name).as_deref(), Ok(want), "{pattern} {replacement}");
        }
    }

    #[test]
    fn expressions_that_are_not_regular_are_refused() {
        for pattern in ["(?=a)", "(?<!a)b", r"(a)\1", "(?P<n>a)(?P=n)", "(", "[a", "*", "\\", r"\w{900}{900}"]
        {
            assert!(Pattern::new(pattern).is_err(), "{pattern}");
        }
        for replacement in [r"\2", r"\g<x>", r"\g<1", r"\q", "\\"] {
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
