//! Python's regular expressions in the syntax of `regex-automata`.
//!
//! Nearly all are the same text in both. What has another meaning there is rewritten; what needs backtracking, and
//! escapes that Python does not know, are rejected.

use super::pattern::PatternFault;

/// Letters with the same meaning after a `\` in both.
const SAME_ESCAPES: &str = "AbBdDsSwWafnrtvx";

/// An expression on its way from one syntax to the other.
struct Translation<'p> {
    text: &'p str,
    at: usize,
    out: String,
}

/// What is before a character of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// The begin of the class, or a range.
    Nothing,
    /// A character, with which a range may begin.
    Item,
    /// The `-` of a range.
    To,
}

/// Translates an expression.
pub(super) fn translated(text: &str) -> Result<String, PatternFault> {
    let mut translation = Translation { text, at: 0, out: String::with_capacity(text.len()) };
    while let Some(next) = translation.peek() {
        match next {
            '\\' => translation.escape(false)?,
            '[' => translation.class()?,
            '(' => translation.group()?,
            '{' => translation.brace(),
            '*' | '+' | '?' => translation.repetition()?,
            _ => translation.copy(next),
        }
    }
    Ok(translation.out)
}

impl<'p> Translation<'p> {
    fn rest(&self) -> &'p str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn copy(&mut self, next: char) {
        self.out.push(next);
        self.at += next.len_utf8();
    }

    /// A `\` and what follows it.
    fn escape(&mut self, in_class: bool) -> Result<(), PatternFault> {
        let at = self.at;
        self.at += 1;
        let Some(escaped) = self.peek() else {
            self.out.push('\\');
            return Ok(());
        };
        self.at += escaped.len_utf8();
        match escaped {
            '1'..='9' => return Err(PatternFault::NeedsBacktracking { at }),
            '0' => self.octal(),
            'Z' if !in_class => self.out.push_str("\\z"),
            'b' if in_class => self.out.push_str("\\x08"),
            'A' | 'B' | 'Z' if in_class => return Err(PatternFault::UnknownEscape { at }),
            _ if SAME_ESCAPES.contains(escaped) => self.out.extend(['\\', escaped]),
            _ if escaped.is_ascii_alphanumeric() => return Err(PatternFault::UnknownEscape { at }),
            // Boundaries of words in the other syntax.
            '<' | '>' => self.out.push(escaped),
            _ if escaped.is_ascii_punctuation() => self.out.extend(['\\', escaped]),
            _ if escaped.is_ascii() || !in_class => self.out.push(escaped),
            _ => return Err(PatternFault::NotAsciiClass { at }),
        }
        Ok(())
    }

    /// The digits of a byte, after `\0`: at most two.
    fn octal(&mut self) {
        let mut byte = 0;
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|next| next.to_digit(8)) else { break };
            byte = byte * 8 + digit;
            self.at += 1;
        }
        self.out.push_str(&format!("\\x{byte:02x}"));
    }

    /// A class in brackets. `[`, `&&`, `--` and `~~` inside have a meaning in the other syntax only.
    fn class(&mut self) -> Result<(), PatternFault> {
        self.copy('[');
        if self.peek() == Some('^') {
            self.copy('^');
        }
        let mut before = Before::Nothing;
        if self.peek() == Some(']') {
            self.out.push_str("\\]");
            self.at += 1;
            before = Before::Item;
        }
        while let Some(next) = self.peek() {
            let is_last = self.rest()[next.len_utf8()..].starts_with(']');
            match next {
                ']' => {
                    self.copy(']');
                    return Ok(());
                }
                '-' if before == Before::Item && !is_last => {
                    self.copy('-');
                    before = Before::To;
                    continue;
                }
                '\\' => self.escape(true)?,
                '-' | '[' | '&' | '~' => {
                    self.out.push('\\');
                    self.copy(next);
                }
                _ if next.is_ascii() => self.copy(next),
                _ => return Err(PatternFault::NotAsciiClass { at: self.at }),
            }
            before = if before == Before::To { Before::Nothing } else { Before::Item };
        }
        Ok(())
    }

    /// A `(`, with what says which kind of group it opens.
    fn group(&mut self) -> Result<(), PatternFault> {
        if self.rest().starts_with("(?#") {
            let length = self.rest().find(')').map_or(self.rest().len(), |end| end + 1);
            self.at += length;
            return Ok(());
        }
        let backtracks = ["(?=", "(?!", "(?<", "(?(", "(?>", "(?P="];
        if backtracks.iter().any(|start| self.rest().starts_with(start)) {
            return Err(PatternFault::NeedsBacktracking { at: self.at });
        }
        self.copy('(');
        if self.peek() == Some('?') {
            self.copy('?');
            // Flags, of which these say only what names are here anyway.
            while let Some(flag) = self.peek().filter(|next| next.is_ascii_alphabetic() && *next != 'P') {
                if matches!(flag, 'a' | 'u' | 'L') { self.at += 1 } else { self.copy(flag) }
            }
            if self.out.ends_with("(?") && self.peek() == Some(')') {
                self.out.truncate(self.out.len() - 2);
                self.at += 1;
            }
        }
        Ok(())
    }

    /// A `{`: a repetition if it looks like one, otherwise text.
    fn brace(&mut self) {
        let (text, at) = (self.text, self.at);
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let inside = text[at + 1..].split_once('}').map_or("", |(inside, _)| inside);
        let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
        if inside.is_empty() || !digits(least) || !digits(most) {
            self.out.push_str("\\{");
            self.at += 1;
            return;
        }
        // Without a least number it is 0.
        self.out.push_str(if least.is_empty() { "{0" } else { "{" });
        self.out.push_str(inside);
        self.out.push('}');
        self.at += inside.len() + 2;
    }

    /// `*`, `+` or `?`, of which a `+` behind it makes a possessive one.
    fn repetition(&mut self) -> Result<(), PatternFault> {
        let next = self.peek().unwrap_or('*');
        if self.rest()[1..].starts_with('+') {
            return Err(PatternFault::NeedsBacktracking { at: self.at });
        }
        self.copy(next);
        Ok(())
    }
}
