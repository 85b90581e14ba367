//! Values of JSON, as Jackson reads it: strictly RFC 8259, but the text after the first value does not matter.

use std::sync::Arc;

use num_bigint::BigInt;

use crate::language::budget::{Budget, ITEMS_MAX, VALUE_DEPTH_MAX};
use crate::language::error::{EvalError, Outcome};
use crate::number::Number;
use crate::object::class;
use crate::value::Value;

/// Most bytes of a number, as in Jackson: a big integer takes time with the square of its length.
pub const NUMBER_BYTES_MAX: usize = 1_000;
/// Bytes of a value in an array.
const ITEM_BYTES: usize = 2 * size_of::<Value>();
/// Bytes of an entry of an object.
const ENTRY_BYTES: usize = 6 * size_of::<Value>();

/// The first value of a text; `None` if there is nothing but white space. Keys are keywords, or else texts.
///
/// # Errors
/// If it is not JSON; if it is too deep, or too much for the budget.
pub fn read(text: &str, keywords: bool, budget: &mut Budget) -> Outcome<Option<Value>> {
    budget.text(text.len())?;
    budget.step(1 + text.len() / 64)?;
    let mut reader = Reader { text, at: 0, keywords, budget };
    reader.space();
    if reader.at == text.len() {
        return Ok(None);
    }
    reader.value(1).map(Some)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    keywords: bool,
    budget: &'t mut Budget,
}

impl Reader<'_> {
    fn wrong(&self, expected: &str) -> EvalError {
        let found = match self.text[self.at..].chars().next() {
            Some(part) => format!("{part:?}"),
            None => "the end".to_owned(),
        };
        let message = format!("{found} at byte {}, where {expected} should be", self.at);
        EvalError::throw(&class::JSON_PARSE, message)
    }

    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: u32) -> Outcome {
        if depth > VALUE_DEPTH_MAX {
            return Err(EvalError::too_deep());
        }
        self.budget.step(1)?;
        match self.peek() {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string().map(Value::from),
            b'-' | b'0'..=b'9' => self.number(),
            _ => {
                let words =
                    [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Nil)];
                let rest = &self.text[self.at..];
                let found = words.into_iter().find(|(word, _)| rest.starts_with(word));
                let (word, value) = found.ok_or_else(|| self.wrong("a value"))?;
                self.at += word.len();
                Ok(value)
            }
        }
    }

    /// Whether the array or object goes on, after one of its parts.
    fn goes_on(&mut self, end: u8) -> Outcome<bool> {
        self.space();
        let next = self.peek();
        if next != b',' && next != end {
            return Err(self.wrong(if end == b']' { "`,` or `]`" } else { "`,` or `}`" }));
        }
        self.at += 1;
        self.space();
        Ok(next == b',')
    }

    fn array(&mut self, depth: u32) -> Outcome {
        self.at += 1;
        self.space();
        let mut items = Vec::new();
        if self.peek() == b']' {
            self.at += 1;
            return Ok(Value::vector(items));
        }
        loop {
            if items.len() == ITEMS_MAX {
                return Err(EvalError::too_much_memory());
            }
            self.budget.memory(ITEM_BYTES)?;
            items.push(self.value(depth + 1)?);
            if !self.goes_on(b']')? {
                return Ok(Value::vector(items));
            }
        }
    }

    fn object(&mut self, depth: u32) -> Outcome {
        self.at += 1;
        self.space();
        let mut map = crate::collections::map::Map::default();
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(Value::Map(Arc::new(map)));
        }
        loop {
            if map.len() == ITEMS_MAX {
                return Err(EvalError::too_much_memory());
            }
            self.budget.memory(ENTRY_BYTES)?;
            if self.peek() != b'"' {
                return Err(self.wrong("a key"));
            }
            let key = self.string()?;
            self.space();
            if self.peek() != b':' {
                return Err(self.wrong("`:`"));
            }
            self.at += 1;
            self.space();
            let value = self.value(depth + 1)?;
            map.insert(if self.keywords { Value::keyword(&key) } else { Value::from(key) }, value);
            if !self.goes_on(b'}')? {
                return Ok(Value::Map(Arc::new(map)));
            }
        }
    }

    fn string(&mut self) -> Outcome<String> {
        self.at += 1;
        let mut to = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\');
            let plain = plain.unwrap_or(rest.len());
            to.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                b'"' => {
                    self.at += 1;
                    self.budget.text(to.len())?;
                    return Ok(to);
                }
                b'\\' => {
                    self.at += 1;
                    to.push(self.escape()?);
                }
                _ => return Err(self.wrong("the end of the text, or an escape")),
            }
        }
    }

    fn escape(&mut self) -> Outcome<char> {
        let part = match self.peek() {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.wrong("an escape")),
        };
        self.at += 1;
        Ok(part)
    }

    /// A character of one or two UTF-16 units; half of a pair is U+FFFD.
    fn unicode(&mut self) -> Outcome<char> {
        let first = self.unit()?;
        if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            let second = self.unit()?;
            if let Some(Ok(part)) = char::decode_utf16([first, second]).next() {
                return Ok(part);
            }
            self.at = before;
        }
        Ok(char::from_u32(u32::from(first)).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn unit(&mut self) -> Outcome<u16> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|d| d.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let unit = unit.ok_or_else(|| self.wrong("four hexadecimal digits"))?;
        self.at += 4;
        Ok(unit)
    }

    fn digits(&mut self) -> Outcome<()> {
        if !self.peek().is_ascii_digit() {
            return Err(self.wrong("a digit"));
        }
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Outcome {
        let begin = self.at;
        self.at += usize::from(self.peek() == b'-');
        let is_zero = self.peek() == b'0';
        let first = self.at;
        self.digits()?;
        if is_zero && self.at > first + 1 {
            self.at = first;
            return Err(self.wrong("a number without leading zeros"));
        }
        let whole = self.at;
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), b'+' | b'-'));
            self.digits()?;
        }
        let text = &self.text[begin..self.at];
        if text.len() > NUMBER_BYTES_MAX {
            self.at = begin;
            return Err(self.wrong("a shorter number"));
        }
        if self.at > whole {
            let value: f64 = text.parse().map_err(|_| self.wrong("a number"))?;
            return Ok(value.into());
        }
        match text.parse::<i64>() {
            Ok(value) => Ok(value.into()),
            Err(_) => {
                self.budget.memory(text.len())?;
                let big: BigInt = text.parse().map_err(|_| self.wrong("a number"))?;
                Ok(Value::Number(Number::Big(Arc::new(big))))
            }
        }
    }
}
