//! Values as JSON: keys and numbers as cheshire and Jackson write them.
//!
//! A value that shares its parts can be much longer as a text than it is in memory, so each text has a limit.

use std::fmt::Write as _;

use model::java::{JavaDouble, JavaSingle};

use crate::event::{Event, Field};
use crate::language::classes::class_of;
use crate::nodes::fields;
use crate::number::Number;
use crate::object::time::Moment;
use crate::print::to_str;
use crate::value::Value;

/// Most bytes of one event's JSON.
pub const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How a value is written.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// With line ends and indentation, as Jackson does it.
    pub pretty: bool,
    /// With `\u` escapes for what is not ASCII.
    pub ascii: bool,
    /// The most bytes of the text.
    pub bytes_max: usize,
}

/// Why a value has no JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The text would be longer than the limit.
    #[error("the JSON text is too long")]
    TooLong,
    /// A value has a class that JSON does not know.
    #[error("Cannot JSON encode object of class: {0}")]
    NoJson(&'static str),
}

/// The JSON of a value, whose sequences are computed already.
///
/// # Errors
/// If it is longer than the limit, or has a function or the like in it.
pub fn write(value: &Value, style: Style) -> Result<String, WriteError> {
    let mut writer = Writer { to: String::new(), style, indent: 0, is_event: false };
    writer.value(value)?;
    Ok(writer.to)
}

/// The JSON of an object with these members, in their order.
///
/// # Errors
/// As [`write()`].
pub fn write_object<'v>(
    members: impl Iterator<Item = (&'v str, &'v Value)>,
    style: Style,
) -> Result<String, WriteError> {
    let mut writer = Writer { to: String::new(), style, indent: 0, is_event: false };
    writer.object(members.map(|(name, value)| (Key::Name(name), value)))?;
    Ok(writer.to)
}

/// The JSON of an event (spec riemann §3.4): the standard fields in their order, absent ones as null, then the custom ones; its time in
/// ISO 8601 with milliseconds. An event that has expired has no absent fields, as those of the reaper in Riemann. What JSON does not
/// know, such as a function, is its text.
///
/// # Errors
/// If it is longer than [`EVENT_BYTES_MAX`].
pub fn event_json(event: &Event) -> Result<String, WriteError> {
    let style = Style::plain(EVENT_BYTES_MAX);
    let mut writer = Writer { to: String::new(), style, indent: 0, is_event: true };
    let has_expired = matches!(event.get(Field::State), Value::Text(state) if state == "expired");
    let time = iso_time(event.get(Field::Time));
    let standard = Field::ALL.iter().map(|field| (*field, event.get(*field)));
    let standard = standard.filter(|(_, value)| !has_expired || !value.is_nil());
    let standard = standard
        .map(|(field, value)| (Key::Name(field.name()), if field == Field::Time { &time } else { value }));
    let custom = event.attributes().iter().map(|(name, value)| (Key::Name(name.as_str()), value));
    writer.object(standard.chain(custom))?;
    Ok(writer.to)
}

/// A time in Unix seconds as ISO 8601 in UTC, with milliseconds; anything else as it is.
pub fn iso_time(time: &Value) -> Value {
    let Some(seconds) = time.as_number() else { return time.clone() };
    let milliseconds = fields::to_us(seconds).div_euclid(1_000);
    match jiff::Timestamp::from_millisecond(milliseconds) {
        Ok(time) => Value::from(format!("{time:.3}")),
        Err(_) => time.clone(),
    }
}

enum Key<'v> {
    Name(&'v str),
    Value(&'v Value),
}

struct Writer {
    to: String,
    style: Style,
    /// How many objects are around the value: arrays do not indent.
    indent: usize,
    /// Whether it is an event for others, which has to have some JSON.
    is_event: bool,
}

impl Style {
    /// On one line, in UTF-8, of at most so many bytes.
    pub fn plain(bytes_max: usize) -> Style {
        Style { pretty: false, ascii: false, bytes_max }
    }
}

impl Writer {
    fn value(&mut self, value: &Value) -> Result<(), WriteError> {
        match value {
            Value::Nil => self.to.push_str("null"),
            Value::Bool(value) => self.to.push_str(if *value { "true" } else { "false" }),
            Value::Number(number) => self.number(number),
            Value::Char(part) => self.text(part.encode_utf8(&mut [0; 4])),
            Value::Text(text) => self.text(text),
            Value::Keyword(name) => self.text(name),
            Value::Symbol(symbol) => self.text(&symbol.name),
            Value::List(list) => return self.array(list.iter()),
            Value::Vector(vector) => return self.array(vector.iter()),
            Value::Set(set) => return self.array(set.iter()),
            Value::Seq(_) => match fields::items(value) {
                Some(items) => return self.array(items.iter()),
                None => self.text("#<lazy>"),
            },
            Value::Map(map) => {
                let entries = map.iter().map(|(key, value)| match key {
                    Value::Keyword(name) | Value::Text(name) => (Key::Name(name.as_str()), value),
                    other => (Key::Value(other), value),
                });
                return self.object(entries);
            }
            Value::Event(event) => {
                let standard = Field::ALL.iter().map(|field| (Key::Name(field.name()), event.get(*field)));
                let custom = event.attributes().iter().map(|(name, value)| (Key::Name(name.as_str()), value));
                return self.object(standard.chain(custom));
            }
            Value::Moment(moment) => self.text(&cheshire_time(**moment)),
            Value::Pattern(_)
            | Value::Closure(_)
            | Value::Native(_)
            | Value::Stream(_)
            | Value::Bound(_)
            | Value::Var(_)
            | Value::Atom(_)
            | Value::Delay(_)
            | Value::Exception(_)
            | Value::Class(_)
            | Value::Namespace(_) => {
                if !self.is_event {
                    return Err(WriteError::NoJson(class_of(value).name));
                }
                self.text(&to_str(value));
            }
        }
        self.check()
    }

    fn check(&self) -> Result<(), WriteError> {
        if self.to.len() > self.style.bytes_max { Err(WriteError::TooLong) } else { Ok(()) }
    }

    fn number(&mut self, number: &Number) {
        let text = match number {
            Number::Int(value) => value.to_string(),
            Number::Big(value) => value.to_string(),
            Number::Ratio(_) => JavaDouble(number.as_f64()).to_string(),
            Number::Float(value) => JavaSingle(*value).to_string(),
            Number::Double(value) => JavaDouble(*value).to_string(),
        };
        // JSON has no infinities: they are texts.
        if text.ends_with(['N', 'y']) {
            self.text(&text);
        } else {
            self.to.push_str(&text);
        }
    }

    fn array<'v>(&mut self, items: impl Iterator<Item = &'v Value>) -> Result<(), WriteError> {
        self.to.push('[');
        let mut is_first = true;
        for item in items {
            if !std::mem::take(&mut is_first) {
                self.to.push(',');
            }
            if self.style.pretty {
                self.to.push(' ');
            }
            self.value(item)?;
        }
        if self.style.pretty {
            self.to.push(' ');
        }
        self.to.push(']');
        self.check()
    }

    fn object<'v>(&mut self, entries: impl Iterator<Item = (Key<'v>, &'v Value)>) -> Result<(), WriteError> {
        self.to.push('{');
        self.indent += 1;
        let mut is_first = true;
        for (key, value) in entries {
            if !std::mem::take(&mut is_first) {
                self.to.push(',');
            }
            self.line();
            match key {
                Key::Name(name) => self.text(name),
                Key::Value(key) => self.text(&to_str(key)),
            }
            self.to.push_str(if self.style.pretty { " : " } else { ":" });
            self.value(value)?;
        }
        self.indent -= 1;
        match is_first {
            true if self.style.pretty => self.to.push(' '),
            true => {}
            false => self.line(),
        }
        self.to.push('}');
        self.check()
    }

    fn line(&mut self) {
        if self.style.pretty {
            self.to.push('\n');
            self.to.extend(std::iter::repeat_n("  ", self.indent));
        }
    }

    fn text(&mut self, text: &str) {
        self.to.push('"');
        let mut plain = 0;
        for (at, part) in text.char_indices() {
            let is_plain =
                part >= ' ' && part != '"' && part != '\\' && (part.is_ascii() || !self.style.ascii);
            if is_plain {
                continue;
            }
            self.to.push_str(&text[plain..at]);
            plain = at + part.len_utf8();
            match part {
                '"' => self.to.push_str("\\\""),
                '\\' => self.to.push_str("\\\\"),
                '\n' => self.to.push_str("\\n"),
                '\r' => self.to.push_str("\\r"),
                '\t' => self.to.push_str("\\t"),
                '\u{8}' => self.to.push_str("\\b"),
                '\u{c}' => self.to.push_str("\\f"),
                other => {
                    other.encode_utf16(&mut [0; 2]).iter().for_each(|unit| self.escape(u32::from(*unit)))
                }
            }
        }
        self.to.push_str(&text[plain..]);
        self.to.push('"');
    }

    fn escape(&mut self, unit: u32) {
        write!(self.to, "\\u{unit:04X}").expect("writing to a text does not fail");
    }
}

/// As cheshire writes dates: in UTC, without milliseconds.
fn cheshire_time(moment: Moment) -> String {
    match jiff::Timestamp::from_millisecond(moment.milliseconds) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => moment.milliseconds.to_string(),
    }
}
