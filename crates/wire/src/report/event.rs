//! Events as JSON lines.

use model::event::attribute;
use model::{Entries, EventRef, EventTime, NumberRef, ValueRef};

use crate::text::{integer, json_number, json_string};

/// Attributes that are members of their own, and the names of these members, in their order. They stand before the tags.
const BEFORE_TAGS: [(&str, &str); 4] = [
    (attribute::PRIORITY, "priority"),
    (attribute::ALERT_TYPE, "alert"),
    (attribute::AGGREGATION_KEY, "aggregation_key"),
    (attribute::SOURCE_TYPE_NAME, "source_type"),
];

/// Appends the event as one line of JSON, ended by LF.
///
/// Absent and empty texts are omitted, and so are absent numbers. `time` is Unix seconds. Attributes that have no member of
/// their own are in `attributes`.
pub fn event_json_line(event: EventRef<'_>, out: &mut Vec<u8>) {
    out.push(b'{');
    text_member("kind", event.text_attribute(attribute::KIND), out);
    text_member("service", event.service(), out);
    if let Some(time) = event.time() {
        name("time", out);
        match time {
            EventTime::Seconds(seconds) => signed(seconds, out),
            EventTime::Micros(micros) => json_number(micros as f64 / 1e6, out),
        }
    }
    text_member("state", event.state(), out);
    text_member("host", event.host(), out);
    text_member("description", event.description(), out);
    if let Some(metric) = event.metric() {
        name("metric", out);
        number(metric, out);
    }
    if let Some(ttl_s) = event.ttl_s() {
        name("ttl", out);
        single(ttl_s, out);
    }
    for (key, member) in BEFORE_TAGS {
        text_member(member, event.text_attribute(key), out);
    }
    if let Some(tags) = event.tags().filter(|tags| tags.len() > 0) {
        name("tags", out);
        list(tags, |tag, out| json_string(tag.as_bytes(), out), out);
    }
    text_member("container", event.text_attribute(attribute::CONTAINER_ID), out);
    other_attributes(event.attributes(), out);
    out.extend_from_slice(b"}\n");
}

/// The attribute that is written as a member of this name.
pub(crate) fn attribute_of(member: &str) -> Option<&'static str> {
    let others = [(attribute::KIND, "kind"), (attribute::CONTAINER_ID, "container")];
    let mut all = BEFORE_TAGS.into_iter().chain(others);
    all.find(|(_, name)| *name == member).map(|(key, _)| key)
}

/// The attributes that are no members of their own.
fn other_attributes(attributes: Entries<'_>, out: &mut Vec<u8>) {
    let is_member = |key: &str| {
        [attribute::KIND, attribute::CONTAINER_ID].contains(&key)
            || BEFORE_TAGS.iter().any(|(attribute, _)| *attribute == key)
    };
    let is_other =
        |(key, value): &(&str, ValueRef<'_>)| !(is_member(key) && matches!(value, ValueRef::Text(_)));
    let mut others = attributes.filter(is_other).peekable();
    if others.peek().is_some() {
        name("attributes", out);
        map(others, out);
    }
}

/// Appends the value of an attribute as JSON.
pub fn value_json(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::Nil => out.extend_from_slice(b"null"),
        ValueRef::Bool(true) => out.extend_from_slice(b"true"),
        ValueRef::Bool(false) => out.extend_from_slice(b"false"),
        ValueRef::Number(value) => number(value, out),
        ValueRef::Text(text) | ValueRef::Keyword(text) => json_string(text.as_bytes(), out),
        // An event has a limit of nested values (`EVENT_NESTING_MAX`).
        ValueRef::List(items) => list(items, value_json, out),
        ValueRef::Map(entries) => map(entries, out),
    }
}

fn map<'a>(entries: impl Iterator<Item = (&'a str, ValueRef<'a>)>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (key, value) in entries {
        name(key, out);
        value_json(value, out);
    }
    out.push(b'}');
}

fn list<T>(items: impl Iterator<Item = T>, write: impl Fn(T, &mut Vec<u8>), out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

/// Appends a number as JSON. NaN and the infinities are `null`.
pub fn number(number: NumberRef<'_>, out: &mut Vec<u8>) {
    match number {
        NumberRef::I64(number) => signed(number, out),
        NumberRef::F64(number) => json_number(number, out),
        NumberRef::F32(number) => single(number, out),
        NumberRef::Ratio(ratio) => json_number(ratio.numerator() as f64 / ratio.denominator() as f64, out),
        NumberRef::BigInteger(digits) => out.extend_from_slice(digits.as_bytes()),
    }
}

/// With the fewest digits that give the same number in single precision.
fn single(number: f32, out: &mut Vec<u8>) {
    if number.is_finite() {
        out.extend_from_slice(number.to_string().as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

fn signed(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    integer(number.unsigned_abs(), out);
}

fn text_member(member: &str, text: Option<&str>, out: &mut Vec<u8>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        name(member, out);
        json_string(text.as_bytes(), out);
    }
}

/// The name of a member, with a comma before it unless it is the first one.
fn name(name: &str, out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    json_string(name.as_bytes(), out);
    out.push(b':');
}
