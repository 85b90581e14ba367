//! A line of JSON to an event (spec riemann §6.2).
//!
//! Keys become fields as they are, and the last one counts where one repeats. Values of attributes keep their types. Standard fields
//! must have theirs: a number or a boolean as host, service, state or description becomes its text; a metric and a ttl are numbers, or
//! `"NaN"`, `"Infinity"` and `"-Infinity"`, as events are written; tags are a list of texts; null is the same as an absent field.

use std::borrow::Cow;

use model::limits::QUOTED_BYTES_MAX;
use model::{EventTime, EventWriter, EventsBuilder, NumberRef, TextField, ValueRef};

use super::text::{Cursor, Token};
use super::{JsonReject, recorded, time};

/// Spans of a batch have 32 bits.
const TEXT_BYTES_MAX: usize = u32::MAX as usize;

/// What is read of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonTimes {
    /// Whole seconds, truncated toward 1970, as in Riemann.
    Seconds,
    /// Microseconds where it has a fraction.
    Micros,
}

/// How lines are read.
#[derive(Clone, Copy, Debug)]
pub struct JsonOptions {
    /// Longest line.
    pub bytes_max: usize,
    /// What is read of a time.
    pub times: JsonTimes,
}

/// What the members of a line are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Members {
    /// Fields as they are; the time is a date.
    Fields,
    /// As `report::event_json_line` writes them: the time is Unix seconds, and attributes have names of their own or are in `attributes`.
    OfFile,
}

/// What a line was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonLine {
    /// An event, which was added to the batch.
    Event,
    /// `null`, or blanks only: nothing was added. Riemann closes a WebSocket then.
    Null,
}

/// Decodes one line, or one frame of a WebSocket, and appends its event to `into`. An event without a time gets the time of
/// `received`. What is not UTF-8 becomes U+FFFD.
///
/// # Errors
/// Why the line was rejected. No event was added.
pub fn decode(
    line: &[u8],
    received: EventTime,
    options: JsonOptions,
    into: &mut EventsBuilder,
) -> Result<JsonLine, JsonReject> {
    decode_members(line, received, options, Members::Fields, into)
}

/// As [`decode`], with these members.
pub(super) fn decode_members(
    line: &[u8],
    received: EventTime,
    options: JsonOptions,
    members: Members,
    into: &mut EventsBuilder,
) -> Result<JsonLine, JsonReject> {
    if line.len() > options.bytes_max {
        return Err(JsonReject::TooLong(options.bytes_max));
    }
    let text = String::from_utf8_lossy(line);
    // No escape is shorter than its character.
    if text.len() >= TEXT_BYTES_MAX.saturating_sub(into.text_bytes()) {
        return Err(JsonReject::TooMuchText);
    }
    let mut cursor = Cursor::new(&text);
    if cursor.is_at_end() {
        return Ok(JsonLine::Null);
    }
    let line = match cursor.value()? {
        Token::Null => JsonLine::Null,
        Token::Map => JsonLine::Event,
        Token::Bool(_) | Token::Number(..) | Token::Text(_) | Token::List => {
            return Err(JsonReject::NotAnObject);
        }
    };
    let mut event = into.event();
    let mut fields = Fields::default();
    if line == JsonLine::Event {
        cursor.entries(|cursor, key| fields.read(&key, cursor, (options.times, members), &mut event))?;
    }
    if !cursor.is_at_end() {
        return Err(cursor.expected("the line's end"));
    }
    if line == JsonLine::Event {
        fields.write(received, event)?;
    }
    Ok(line)
}

/// The standard fields, of which the last one counts.
#[derive(Default)]
struct Fields<'a> {
    host: Option<Cow<'a, str>>,
    service: Option<Cow<'a, str>>,
    state: Option<Cow<'a, str>>,
    description: Option<Cow<'a, str>>,
    metric: Option<NumberRef<'a>>,
    /// Before the items of their list: they are read a second time once it is known that they count.
    tags: Option<Cursor<'a>>,
    time: Option<EventTime>,
    ttl_s: Option<f32>,
}

impl<'a> Fields<'a> {
    /// Reads the value of one key.
    fn read(
        &mut self,
        key: &str,
        cursor: &mut Cursor<'a>,
        (times, members): (JsonTimes, Members),
        event: &mut EventWriter<'_>,
    ) -> Result<(), JsonReject> {
        match key {
            "host" => self.host = text("host", cursor)?,
            "service" => self.service = text("service", cursor)?,
            "state" => self.state = text("state", cursor)?,
            "description" => self.description = text("description", cursor)?,
            "metric" => self.metric = number("metric", cursor)?,
            "tags" => self.tags = tags(cursor)?,
            "time" if members == Members::OfFile => self.time = recorded::time(cursor)?,
            "time" => self.time = time(cursor, times)?,
            "ttl" => self.ttl_s = number("ttl", cursor)?.map(single),
            _ if members == Members::OfFile => recorded::attribute_of_file(key, cursor, event)?,
            _ => attribute(key, cursor, event)?,
        }
        Ok(())
    }

    fn write(self, received: EventTime, mut event: EventWriter<'_>) -> Result<(), JsonReject> {
        let texts = [
            (TextField::Host, self.host),
            (TextField::Service, self.service),
            (TextField::State, self.state),
            (TextField::Description, self.description),
        ];
        for (field, text) in texts {
            text.iter().for_each(|text| event.plain_text(field, text));
        }
        self.metric.into_iter().for_each(|metric| event.metric(metric));
        self.ttl_s.into_iter().for_each(|ttl_s| event.ttl_s(ttl_s));
        event.time(self.time.unwrap_or(received));
        if let Some(mut cursor) = self.tags {
            event.no_tags();
            cursor.items(|cursor| Ok(event.plain_tag(&tag(cursor)?)?))?;
        }
        event.finish();
        Ok(())
    }
}

pub(super) fn bad<T>(field: &'static str, want: &'static str) -> Result<T, JsonReject> {
    Err(JsonReject::BadField { field, want })
}

fn text<'a>(field: &'static str, cursor: &mut Cursor<'a>) -> Result<Option<Cow<'a, str>>, JsonReject> {
    match cursor.value()? {
        Token::Null => Ok(None),
        Token::Text(text) => Ok(Some(text)),
        Token::Number(_, text) => Ok(Some(Cow::Borrowed(text))),
        Token::Bool(is_true) => Ok(Some(Cow::Borrowed(if is_true { "true" } else { "false" }))),
        Token::List | Token::Map => bad(field, "a text"),
    }
}

fn number<'a>(field: &'static str, cursor: &mut Cursor<'a>) -> Result<Option<NumberRef<'a>>, JsonReject> {
    let number = match cursor.value()? {
        Token::Null => return Ok(None),
        Token::Number(number, _) => number,
        Token::Text(text) => match &*text {
            "NaN" => NumberRef::F64(f64::NAN),
            "Infinity" => NumberRef::F64(f64::INFINITY),
            "-Infinity" => NumberRef::F64(f64::NEG_INFINITY),
            _ => return bad(field, "a number"),
        },
        Token::Bool(_) | Token::List | Token::Map => return bad(field, "a number"),
    };
    Ok(Some(number))
}

/// In single precision, as a ttl is.
fn single(number: NumberRef<'_>) -> f32 {
    match number {
        NumberRef::I64(number) => number as f32,
        NumberRef::F64(number) => number as f32,
        NumberRef::F32(number) => number,
        NumberRef::Ratio(ratio) => (ratio.numerator() as f64 / ratio.denominator() as f64) as f32,
        NumberRef::BigInteger(digits) => crate::number::double(digits.as_bytes()).unwrap_or(f64::NAN) as f32,
    }
}

/// Checks the tags, and gives the cursor before them.
fn tags<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Cursor<'a>>, JsonReject> {
    match cursor.value()? {
        Token::Null => Ok(None),
        Token::List => {
            let before = *cursor;
            cursor.items(|cursor| tag(cursor).map(drop))?;
            Ok(Some(before))
        }
        Token::Bool(_) | Token::Number(..) | Token::Text(_) | Token::Map => bad("tags", "a list of texts"),
    }
}

fn tag<'a>(cursor: &mut Cursor<'a>) -> Result<Cow<'a, str>, JsonReject> {
    match cursor.value()? {
        Token::Text(tag) => Ok(tag),
        Token::Null | Token::Bool(_) | Token::Number(..) | Token::List | Token::Map => {
            bad("tags", "a list of texts")
        }
    }
}

fn time(cursor: &mut Cursor<'_>, times: JsonTimes) -> Result<Option<EventTime>, JsonReject> {
    let text = match cursor.value()? {
        Token::Null => return Ok(None),
        Token::Text(text) => text,
        Token::Bool(_) | Token::Number(..) | Token::List | Token::Map => {
            return bad("time", "a date and time as text, like \"2026-11-20T20:12:33.000Z\"");
        }
    };
    let Some(micros) = time::read(&text) else {
        let end = text.floor_char_boundary(QUOTED_BYTES_MAX);
        return Err(JsonReject::BadTime(text[..end].to_owned()));
    };
    Ok(Some(match times {
        JsonTimes::Micros if micros % 1_000_000 != 0 => EventTime::Micros(micros),
        JsonTimes::Micros | JsonTimes::Seconds => EventTime::Seconds(micros / 1_000_000),
    }))
}

/// Adds an attribute, an item or an entry. The writer refuses deeply nested values before they are read.
pub(super) fn attribute(
    key: &str,
    cursor: &mut Cursor<'_>,
    event: &mut EventWriter<'_>,
) -> Result<(), JsonReject> {
    match cursor.value()? {
        Token::Null => event.attribute(key, ValueRef::Nil)?,
        Token::Bool(is_true) => event.attribute(key, ValueRef::Bool(is_true))?,
        Token::Number(number, _) => event.attribute(key, ValueRef::Number(number))?,
        Token::Text(text) => event.plain_attribute(key, &text)?,
        Token::List => {
            event.begin_list(key)?;
            cursor.items(|cursor| attribute("", cursor, event))?;
            event.end();
        }
        Token::Map => {
            event.begin_map(key)?;
            cursor.entries(|cursor, key| attribute(&key, cursor, event))?;
            event.end();
        }
    }
    Ok(())
}
