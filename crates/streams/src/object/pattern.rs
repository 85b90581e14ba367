//! Regular expressions with Java's syntax.
//!
//! `fancy-regex` has nearly Java's syntax. What differs is rewritten: `\d`, `\w`, `\s`, `\h`, `\b` are ASCII, `.` stops at every line
//! end that Java knows, `\p{Alpha}` and its like, `\Q…\E`, and `\Z`.
//! A search has a limit on its backtracking, and a pattern one on its size.

use std::sync::OnceLock;

use arcstr::ArcStr;
use fancy_regex::{Regex, RegexBuilder};

/// Most bytes of a pattern's text.
const PATTERN_BYTES_MAX: usize = 16 * 1024;
/// Most bytes of a compiled pattern, and of each of its caches.
const COMPILED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most steps of a search that has to backtrack.
const BACKTRACK_MAX: usize = 100_000;
/// Steps of the budget for such a search, whatever it takes.
const BACKTRACK_STEPS: usize = 500;

/// A regular expression.
#[derive(Debug)]
pub struct Pattern {
    /// Its text as it was written.
    pub source: ArcStr,
    translated: String,
    /// Whether a search may go back and try again, which the engine does only for what no automaton can find.
    backtracks: bool,
    search: Regex,
    whole: OnceLock<Result<Regex, String>>,
}

impl Pattern {
    /// Compiles a pattern; the error says what is wrong with it.
    pub fn new(source: ArcStr) -> Result<Pattern, String> {
        if source.len() > PATTERN_BYTES_MAX {
            return Err(format!("a regular expression of more than {PATTERN_BYTES_MAX} bytes"));
        }
        let translated = translate(&source);
        let search = compile(&translated)?;
        let backtracks = may_backtrack(&translated);
        Ok(Pattern { source, translated, backtracks, search, whole: OnceLock::new() })
    }

    /// Steps of the budget for a search in so many bytes.
    pub fn steps(&self, bytes: usize) -> usize {
        1 + bytes / 64 + if self.backtracks { BACKTRACK_STEPS } else { 0 }
    }

    /// What searches for it anywhere in a text.
    pub fn search(&self) -> &Regex {
        &self.search
    }

    /// What matches whole texts only.
    pub fn whole(&self) -> Result<&Regex, String> {
        let whole = self.whole.get_or_init(|| compile(&format!(r"\A(?:{})\z", self.translated)));
        whole.as_ref().map_err(Clone::clone)
    }
}

/// Whether the engine may have to backtrack: for looking around, atomic groups, possessive repetition and references to groups. Errs on
/// the side of yes.
fn may_backtrack(translated: &str) -> bool {
    const LOOKS: [&str; 6] = ["(?=", "(?!", "(?<=", "(?<!", "(?>", "(?("];
    let mut escaped = false;
    let refers = translated.bytes().any(|byte| {
        let refers = escaped && (byte.is_ascii_digit() || b"kgKG".contains(&byte));
        escaped = byte == b'\\' && !escaped;
        refers
    });
    let is_possessive = ["++", "*+", "?+", "}+"].iter().any(|end| translated.contains(end));
    refers || is_possessive || LOOKS.iter().any(|look| translated.contains(look))
}

fn compile(translated: &str) -> Result<Regex, String> {
    RegexBuilder::new(translated)
        .backtrack_limit(BACKTRACK_MAX)
        .delegate_size_limit(COMPILED_BYTES_MAX)
        .delegate_dfa_size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|error| error.to_string())
}

/// Rewrites what Java understands in another way.
fn translate(source: &str) -> String {
    let all_lines = source.contains("(?s") || source.contains("(?is") || source.contains("(?ms");
    let mut to = String::with_capacity(source.len() + 16);
    let mut rest = source.chars();
    // How many brackets of classes are open: `[a[bc]]` is a class in Java too.
    let mut classes = 0_usize;
    while let Some(part) = rest.next() {
        match part {
            '\\' => escape(&mut rest, classes > 0, &mut to),
            '[' => {
                classes += 1;
                to.push('[');
                if rest.as_str().starts_with('^') {
                    rest.next();
                    to.push('^');
                }
                if rest.as_str().starts_with(']') {
                    rest.next();
                    to.push_str("\\]");
                }
            }
            ']' if classes > 0 => {
                classes -= 1;
                to.push(']');
            }
            // Set operations of the engine that Java does not have.
            '-' | '~' if classes > 0 && rest.as_str().starts_with(part) => {
                to.push('\\');
                to.push(part);
            }
            '.' if classes == 0 && !all_lines => to.push_str(r"[^\n\r\u{85}\u{2028}\u{2029}]"),
            other => to.push(other),
        }
    }
    to
}

fn escape(rest: &mut std::str::Chars<'_>, in_class: bool, to: &mut String) {
    let Some(part) = rest.next() else {
        to.push('\\');
        return;
    };
    let class = |inner: &str, to: &mut String| {
        let plain = in_class && !inner.starts_with('^');
        to.push_str(&if plain { inner.to_owned() } else { format!("[{inner}]") });
    };
    match part {
        'd' => class("0-9", to),
        'D' => class("^0-9", to),
        'w' => class("a-zA-Z0-9_", to),
        'W' => class("^a-zA-Z0-9_", to),
        's' => class(r" \t\n\x0B\f\r", to),
        'S' => class(r"^ \t\n\x0B\f\r", to),
        'h' => class(r" \t\u{A0}\u{1680}\u{180e}\u{2000}-\u{200a}\u{202f}\u{205f}\u{3000}", to),
        // The engine's own ones need Unicode's tables.
        'b' if !in_class => {
            to.push_str(r"(?:(?<=[a-zA-Z0-9_])(?![a-zA-Z0-9_])|(?<![a-zA-Z0-9_])(?=[a-zA-Z0-9_]))")
        }
        'B' if !in_class => {
            to.push_str(r"(?:(?<=[a-zA-Z0-9_])(?=[a-zA-Z0-9_])|(?<![a-zA-Z0-9_])(?![a-zA-Z0-9_]))")
        }
        'R' if !in_class => to.push_str(r"(?:\r\n|[\n\x0B\f\r\u{85}\u{2028}\u{2029}])"),
        'Z' if !in_class => to.push_str(r"(?=\n?\z)"),
        'e' => to.push_str(r"\x1B"),
        'Q' => {
            let text = rest.as_str();
            let (quoted, after) = text.split_once("\\E").unwrap_or((text, ""));
            quoted.chars().for_each(|part| literal(part, to));
            *rest = after.chars();
        }
        'E' => {}
        // The engine's own `\\K`, which Java does not have, moves the start of a match behind its end: `\\Y` is an error in both.
        'K' if !in_class => to.push_str(r"\Y"),
        'p' | 'P' => property(part == 'P', rest, to, &class),
        // A sign that Java lets one escape and the engine does not.
        other if !other.is_ascii_alphanumeric() => literal(other, to),
        other => {
            to.push('\\');
            to.push(other);
        }
    }
}

fn literal(part: char, to: &mut String) {
    if part.is_ascii_punctuation() {
        to.push('\\');
    }
    to.push(part);
}

/// `\p{…}`: POSIX names are ASCII, others are the engine's own.
fn property(
    negated: bool,
    rest: &mut std::str::Chars<'_>,
    to: &mut String,
    class: &dyn Fn(&str, &mut String),
) {
    let text = rest.as_str();
    let named = text.strip_prefix('{').and_then(|text| text.split_once('}'));
    let inner = named.and_then(|(name, _)| posix(name));
    if let (Some((_, after)), Some(inner)) = (named, inner) {
        *rest = after.chars();
        let inner = if negated { format!("^{inner}") } else { inner.to_owned() };
        class(&inner, to);
        return;
    }
    to.push_str(if negated { "\\P" } else { "\\p" });
    if let Some((name, after)) = named {
        // `\p{IsAlphabetic}`, `\p{InGreek}`, `\p{javaLowerCase}`.
        let name = match name {
            "javaLowerCase" => "Lowercase",
            "javaUpperCase" => "Uppercase",
            name => name.strip_prefix("Is").or_else(|| name.strip_prefix("In")).unwrap_or(name),
        };
        *rest = after.chars();
        to.push('{');
        to.push_str(name);
        to.push('}');
    }
}

fn posix(name: &str) -> Option<&'static str> {
    Some(match name {
        "Lower" => "a-z",
        "Upper" => "A-Z",
        "ASCII" => r"\x00-\x7F",
        "Alpha" => "a-zA-Z",
        "Digit" => "0-9",
        "Alnum" => "a-zA-Z0-9",
        "Punct" => r"!-/:-@\[-`{-~",
        "Graph" => "!-~",
        "Print" => r"\x20-~",
        "Blank" => r" \t",
        "Cntrl" => r"\x00-\x1F\x7F",
        "XDigit" => "0-9a-fA-F",
        "Space" => r" \t\n\x0B\f\r",
        _ => return None,
    })
}

#[test]
fn escapes_that_java_does_not_have_are_errors() {
    for source in [r"a\K", r"(?=a\K)", r"\Y"] {
        assert!(Pattern::new(source.into()).is_err(), "{source}");
    }
    assert!(Pattern::new(r"[\w]\b".into()).is_ok());
}
