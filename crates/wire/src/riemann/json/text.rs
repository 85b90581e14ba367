//! JSON as values, one after the other, as RFC 8259 has it. Nothing is kept: no tree.

use std::borrow::Cow;

use model::NumberRef;

use super::JsonReject;
use crate::number::double;
use crate::steps::touch;

/// Longest number. Integers beyond 64 bits are exact, and arithmetic on them costs more than their length.
pub const NUMBER_BYTES_MAX: usize = 1_000;

/// Reads a text from its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

/// A value, or the beginning of one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Null,
    Bool(bool),
    /// The number, and as it is in the text.
    Number(NumberRef<'a>, &'a str),
    Text(Cow<'a, str>),
    /// [`Cursor::items`] follows.
    List,
    /// [`Cursor::entries`] follows.
    Map,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0 }
    }

    /// Only blanks are left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip_blanks();
        self.at == self.text.len()
    }

    /// The error that something else is expected here.
    pub(super) fn expected(&self, expected: &'static str) -> JsonReject {
        JsonReject::Syntax { expected, at: self.at }
    }

    /// The next value, or its beginning.
    pub(super) fn value(&mut self) -> Result<Token<'a>, JsonReject> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        for (word, token) in
            [("null", Token::Null), ("true", Token::Bool(true)), ("false", Token::Bool(false))]
        {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(token);
            }
        }
        match rest.bytes().next() {
            Some(b'"') => self.string().map(Token::Text),
            Some(b'[') => {
                self.at += 1;
                Ok(Token::List)
            }
            Some(b'{') => {
                self.at += 1;
                Ok(Token::Map)
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) | None => Err(self.expected("a value")),
        }
    }

    /// Calls `each` before every item of a list, which it must read, up to the list's end.
    pub(super) fn items(
        &mut self,
        mut each: impl FnMut(&mut Cursor<'a>) -> Result<(), JsonReject>,
    ) -> Result<(), JsonReject> {
        if self.skip(b']') {
            return Ok(());
        }
        loop {
            each(self)?;
            if self.skip(b']') {
                return Ok(());
            }
            if !self.skip(b',') {
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    /// Calls `each` with the key of every entry of an object, before its value, which it must read.
    pub(super) fn entries(
        &mut self,
        mut each: impl FnMut(&mut Cursor<'a>, Cow<'a, str>) -> Result<(), JsonReject>,
    ) -> Result<(), JsonReject> {
        if self.skip(b'}') {
            return Ok(());
        }
        loop {
            self.skip_blanks();
            let key = self.string()?;
            if !self.skip(b':') {
                return Err(self.expected("`:`"));
            }
            each(self, key)?;
            if self.skip(b'}') {
                return Ok(());
            }
            if !self.skip(b',') {
                return Err(self.expected("`,` or `}`"));
            }
        }
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        touch(1);
    }

    /// Skips blanks and this byte, if it follows.
    fn skip(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let is_next = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonReject> {
        if !self.text[self.at..].starts_with('"') {
            return Err(self.expected("`\"`"));
        }
        self.at += 1;
        let plain = self.run()?;
        if self.ends_string() {
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = plain.to_owned();
        while !self.ends_string() {
            self.at += 1;
            text.push(self.escaped()?);
            text.push_str(self.run()?);
        }
        Ok(Cow::Owned(text))
    }

    /// Characters up to the end of a string or the next escape.
    fn run(&mut self) -> Result<&'a str, JsonReject> {
        let rest = &self.text[self.at..];
        let end = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap_or(rest.len());
        touch(end);
        self.at += end;
        match self.text.as_bytes().get(self.at) {
            Some(b'"' | b'\\') => Ok(&rest[..end]),
            Some(_) | None => Err(self.expected("the string's end")),
        }
    }

    /// At `"` or `\`, as `run` leaves it: skips `"`.
    fn ends_string(&mut self) -> bool {
        let ends = self.text.as_bytes().get(self.at) == Some(&b'"');
        self.at += usize::from(ends);
        ends
    }

    /// The character of an escape, behind its backslash. Half a pair of surrogates becomes U+FFFD.
    fn escaped(&mut self) -> Result<char, JsonReject> {
        let Some(byte) = self.text.as_bytes().get(self.at) else { return Err(self.expected("an escape")) };
        let character = match byte {
            b'"' | b'\\' | b'/' => char::from(*byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.escaped_unit(),
            _ => return Err(self.expected("an escape")),
        };
        self.at += 1;
        Ok(character)
    }

    fn escaped_unit(&mut self) -> Result<char, JsonReject> {
        let unit = self.unit()?;
        if !(0xD800..0xDC00).contains(&unit) || !self.text[self.at..].starts_with("\\u") {
            return Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let before = self.at;
        self.at += 1;
        let low = self.unit()?;
        if (0xDC00..0xE000).contains(&low) {
            let code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        self.at = before;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    /// The four digits behind `u`.
    fn unit(&mut self) -> Result<u32, JsonReject> {
        let digits = self.text.as_bytes().get(self.at + 1..self.at + 5).unwrap_or_default();
        if digits.len() != 4 {
            return Err(self.expected("four hexadecimal digits"));
        }
        let mut unit = 0;
        for digit in digits {
            let digit = char::from(*digit).to_digit(16);
            unit = unit * 16 + digit.ok_or_else(|| self.expected("four hexadecimal digits"))?;
        }
        self.at += 5;
        Ok(unit)
    }

    fn number(&mut self) -> Result<Token<'a>, JsonReject> {
        let bytes = self.text.as_bytes();
        let begin = self.at;
        self.at += usize::from(bytes[begin] == b'-');
        let whole = self.digits();
        if whole == 0 || (whole > 1 && bytes[self.at - whole] == b'0') {
            return Err(self.expected("a number"));
        }
        let mut is_integer = true;
        if bytes.get(self.at) == Some(&b'.') {
            is_integer = false;
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        if let Some(b'e' | b'E') = bytes.get(self.at) {
            is_integer = false;
            self.at += 1;
            self.at += usize::from(matches!(bytes.get(self.at), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err(self.expected("a digit"));
            }
        }
        let text = &self.text[begin..self.at];
        touch(text.len());
        if text.len() > NUMBER_BYTES_MAX {
            return Err(JsonReject::LongNumber);
        }
        let number = if !is_integer {
            NumberRef::F64(double(text.as_bytes()).ok_or_else(|| self.expected("a number"))?)
        } else if let Ok(number) = text.parse() {
            NumberRef::I64(number)
        } else {
            NumberRef::BigInteger(text)
        };
        Ok(Token::Number(number, text))
    }

    /// Skips digits, and gives their number.
    fn digits(&mut self) -> usize {
        let digits = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        digits
    }
}
