//! The characters of a text with their places, and the words and texts that are made of them.

use arcstr::ArcStr;

use super::error::ReadError;
use crate::position::Position;

/// A place in a text that moves on.
#[derive(Debug)]
pub(super) struct Characters<'t> {
    rest: &'t str,
    file: ArcStr,
    line: u32,
    column: u32,
}

impl<'t> Characters<'t> {
    pub(super) fn new(text: &'t str, file: ArcStr) -> Self {
        Characters { rest: text.strip_prefix('\u{feff}').unwrap_or(text), file, line: 1, column: 1 }
    }

    pub(super) fn position(&self) -> Position {
        Position { file: self.file.clone(), line: self.line, column: self.column }
    }

    /// The next character, which stays.
    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// The one after the next.
    pub(super) fn peek_second(&self) -> Option<char> {
        self.rest.chars().nth(1)
    }

    pub(super) fn take(&mut self) -> Option<char> {
        let part = self.peek()?;
        self.rest = &self.rest[part.len_utf8()..];
        if part == '\n' {
            self.line = self.line.saturating_add(1);
            self.column = 1;
        } else {
            self.column = self.column.saturating_add(1);
        }
        Some(part)
    }

    /// Passes what separates forms: space, commas, comments to the end of the line, `#!`.
    pub(super) fn skip_space(&mut self) {
        while let Some(part) = self.peek() {
            let is_comment = part == ';' || part == '#' && self.peek_second() == Some('!');
            if is_comment {
                while self.peek().is_some_and(|part| part != '\n') {
                    self.take();
                }
            } else if part.is_whitespace() || part == ',' {
                self.take();
            } else {
                return;
            }
        }
    }

    /// The characters up to what ends a word.
    pub(super) fn word(&mut self) -> &'t str {
        let ends = |part: char| part.is_whitespace() || "\",;@^`~()[]{}\\".contains(part);
        let len = self.rest.find(ends).unwrap_or(self.rest.len());
        let word = &self.rest[..len];
        // A word has no line end.
        self.column = self.column.saturating_add(u32::try_from(word.chars().count()).unwrap_or(u32::MAX));
        self.rest = &self.rest[len..];
        word
    }

    /// The text after an opening quote, without its escapes.
    pub(super) fn quoted(&mut self, at: &Position) -> Result<String, ReadError> {
        let mut text = String::new();
        loop {
            let here = self.position();
            match self.take() {
                None => return Err(unclosed(at, "text", "\"")),
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.escape(&here)?),
                Some(part) => text.push(part),
            }
        }
    }

    /// The text of a regular expression after its opening quote: backslashes stay.
    pub(super) fn pattern(&mut self, at: &Position) -> Result<String, ReadError> {
        let mut text = String::new();
        loop {
            match self.take() {
                None => return Err(unclosed(at, "regular expression", "\"")),
                Some('"') => return Ok(text),
                Some('\\') => {
                    text.push('\\');
                    text.extend(self.take());
                }
                Some(part) => text.push(part),
            }
        }
    }

    fn escape(&mut self, at: &Position) -> Result<char, ReadError> {
        let unknown = |part: Option<char>| {
            let part = part.map(String::from).unwrap_or_default();
            ReadError::new(at.clone(), format!("`\\{part}` is no escape of a text")).hint(
                "a backslash is `\\\\`; in regular expressions write `#\"…\"`, where it needs no escape",
            )
        };
        Ok(match self.take() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some(part @ ('"' | '\\')) => part,
            Some('u') => {
                let digits: String =
                    (0..4).filter_map(|_| self.take_if(|part| part.is_ascii_hexdigit())).collect();
                self.unicode(&digits, 16).ok_or_else(|| unknown(Some('u')))?
            }
            Some(first @ '0'..='7') => {
                let more = (0..2).filter_map(|_| self.take_if(|part| part.is_digit(8)));
                let digits: String = std::iter::once(first).chain(more).collect();
                self.unicode(&digits, 8).ok_or_else(|| unknown(Some(first)))?
            }
            other => return Err(unknown(other)),
        })
    }

    /// The character of a code; a pair of surrogates is one character, a single one the replacement character.
    fn unicode(&mut self, digits: &str, radix: u32) -> Option<char> {
        if radix == 16 && digits.len() != 4 {
            return None;
        }
        let code = u32::from_str_radix(digits, radix).ok()?;
        let next = || u32::from_str_radix(self.rest.strip_prefix("\\u")?.get(..4)?, 16).ok();
        if let (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) = (code, next()) {
            for _ in 0..6 {
                self.take();
            }
            return char::from_u32(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
        }
        Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn take_if(&mut self, accept: impl Fn(char) -> bool) -> Option<char> {
        self.peek().filter(|part| accept(*part))?;
        self.take()
    }
}

/// The error for something that the text ends within.
pub(super) fn unclosed(at: &Position, what: &str, end: &str) -> ReadError {
    ReadError::new(at.clone(), format!("this {what} is not closed: `{end}` is missing"))
}

/// The character after a backslash.
pub(super) fn named_character(word: &str) -> Option<char> {
    let mut parts = word.chars();
    if let (Some(part), None) = (parts.next(), parts.next()) {
        return Some(part);
    }
    match word {
        "newline" => Some('\n'),
        "space" => Some(' '),
        "tab" => Some('\t'),
        "return" => Some('\r'),
        "backspace" => Some('\u{8}'),
        "formfeed" => Some('\u{c}'),
        _ => {
            let (digits, radix) = match word.strip_prefix('u') {
                Some(digits) if digits.len() == 4 => (digits, 16),
                _ => (word.strip_prefix('o')?, 8),
            };
            char::from_u32(u32::from_str_radix(digits, radix).ok()?)
        }
    }
}
