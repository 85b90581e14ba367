//! Reads JSON with the places of all values: strict like `JSON.parse`, relaxed for Net::Statsd::Server's files.
//!
//! Invariant: any text gives a tree or one [`JsonFault`]; nesting is limited by [`DEPTH_MAX`].

use super::javascript::{DEPTH_MAX, Member, Members, Node, Value};
use config::diagnostic::Place;

/// Which texts are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grammar {
    /// RFC 8259.
    Strict,
    /// Also `#` comments, trailing commas, and TAB in texts (JSON::XS `relaxed`).
    Relaxed,
}

/// Why a text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JsonFault {
    pub place: Place,
    pub message: String,
    pub hint: Option<&'static str>,
}

/// Reads all of `text` as one value.
pub(super) fn read(text: &str, grammar: Grammar) -> Result<Node, JsonFault> {
    let mut reader = Reader { text, grammar, at: 0, depth: 0 };
    if grammar == Grammar::Relaxed && text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    let node = reader.value()?;
    reader.blank();
    match reader.peek() {
        None => Ok(node),
        Some(_) => Err(reader.fault("the file continues after its value")),
    }
}

struct Reader<'a> {
    text: &'a str,
    grammar: Grammar,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn fault(&self, message: impl Into<String>) -> JsonFault {
        let end = self.at + self.peek().map_or(0, char::len_utf8);
        let hint = match self.peek() {
            _ if self.grammar == Grammar::Strict => None,
            Some('\'') => Some("strings and keys need double quotes here"),
            Some('/') => Some("comments begin with `#` here"),
            Some(c) if c.is_alphabetic() || c == '_' || c == '$' => {
                Some("keys and strings need double quotes in a Perl file; is this a config of node's statsd?")
            }
            _ => None,
        };
        JsonFault { place: Place::new(self.at, end), message: message.into(), hint }
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    fn blank(&mut self) {
        loop {
            let rest = self.rest();
            match rest.as_bytes().first() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(b'#') if self.grammar == Grammar::Relaxed => {
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn value(&mut self) -> Result<Node, JsonFault> {
        self.blank();
        let start = self.at;
        let value = match self.peek() {
            Some('"') => Value::Text(self.string()?),
            Some('[' | '{') if self.depth >= DEPTH_MAX => {
                return Err(self.fault(format!("nested more than {DEPTH_MAX} deep")));
            }
            Some('[') => {
                self.depth += 1;
                let value = self.array()?;
                self.depth -= 1;
                value
            }
            Some('{') => {
                self.depth += 1;
                let value = self.object()?;
                self.depth -= 1;
                value
            }
            Some('-' | '0'..='9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { value, place: Place::new(start, self.at) })
    }

    fn word(&mut self) -> Result<Value, JsonFault> {
        let words = [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)];
        for (word, value) in words {
            let rest = self.rest();
            let ends = rest.strip_prefix(word).map(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()));
            if ends == Some(true) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.fault("a value is missing"))
    }

    fn array(&mut self) -> Result<Value, JsonFault> {
        self.at += 1;
        let mut nodes = Vec::new();
        loop {
            self.blank();
            if self.closes(']', nodes.is_empty()) {
                return Ok(Value::Array(nodes));
            }
            nodes.push(self.value()?);
            self.blank();
            if self.take(']') {
                return Ok(Value::Array(nodes));
            }
            self.comma(']')?;
        }
    }

    fn object(&mut self) -> Result<Value, JsonFault> {
        self.at += 1;
        let mut members = Members::default();
        let mut first = true;
        loop {
            self.blank();
            if self.closes('}', first) {
                return Ok(members.finish());
            }
            first = false;
            let start = self.at;
            if self.peek() != Some('"') {
                return Err(self.fault("a key in double quotes is missing"));
            }
            let key = self.string()?;
            let key_place = Place::new(start, self.at);
            self.blank();
            if !self.take(':') {
                return Err(self.fault(format!("`:` is missing behind the key `{key}`")));
            }
            let value = self.value()?;
            members.set(Member { key, key_place, value });
            self.blank();
            if self.take('}') {
                return Ok(members.finish());
            }
            self.comma('}')?;
        }
    }

    /// At the start of an entry: whether the list ends instead, because it is empty or after a trailing comma.
    fn closes(&mut self, close: char, empty: bool) -> bool {
        (empty || self.grammar == Grammar::Relaxed) && self.take(close)
    }

    fn comma(&mut self, close: char) -> Result<(), JsonFault> {
        if self.take(',') { Ok(()) } else { Err(self.fault(format!("`,` or `{close}` is missing"))) }
    }

    fn number(&mut self) -> Result<Value, JsonFault> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let digits = |from: usize| bytes.iter().skip(from).take_while(|b| b.is_ascii_digit()).count();
        let whole = usize::from(bytes[0] == b'-');
        let mut end = whole + digits(whole);
        let mut good = end > whole && (bytes[whole] != b'0' || end == whole + 1);
        if bytes.get(end) == Some(&b'.') {
            let fraction = digits(end + 1);
            good &= fraction > 0;
            end += 1 + fraction;
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let from = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(from);
            good &= exponent > 0;
            end = (from + exponent).min(bytes.len());
        }
        match rest[..end].parse() {
            Ok(number) if good => {
                self.at += end;
                Ok(Value::Number(number))
            }
            _ => Err(self.fault("this is not a JSON number")),
        }
    }

    fn string(&mut self) -> Result<String, JsonFault> {
        let open = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(c) = self.peek() else {
                self.at = open;
                return Err(self.fault("this string has no end"));
            };
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(text);
                }
                '\\' => text.push(self.escape()?),
                '\t' if self.grammar == Grammar::Relaxed => {
                    self.at += 1;
                    text.push('\t');
                }
                '\0'..='\u{1f}' => {
                    return Err(self.fault("line ends and control characters need an escape in a string"));
                }
                _ => {
                    self.at += c.len_utf8();
                    text.push(c);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonFault> {
        let c = match self.text.as_bytes().get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.fault("this escape is not JSON")),
        };
        self.at += 2;
        Ok(c)
    }

    /// `\u` and four digits; a surrogate pair is one character, half of a pair is U+FFFD.
    fn unicode(&mut self) -> Result<char, JsonFault> {
        let unit = |at: usize| {
            let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
            digits
                .bytes()
                .all(|b| b.is_ascii_hexdigit())
                .then(|| u16::from_str_radix(digits, 16).ok())
                .flatten()
        };
        let Some(high) = unit(self.at) else {
            return Err(self.fault("this escape is not JSON"));
        };
        if let Some(low) = unit(self.at + 6)
            && let Some(Ok(pair)) = char::decode_utf16([high, low]).next()
            && u32::from(pair) > 0xffff
        {
            self.at += 12;
            return Ok(pair);
        }
        self.at += 6;
        Ok(char::from_u32(u32::from(high)).unwrap_or('\u{fffd}'))
    }
}
