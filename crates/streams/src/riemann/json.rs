//! Values as JSON, for the bodies of requests.

use crate::event::{Event, Field};
use crate::nodes::fields;
use crate::number::Number;
use crate::print::{number_text, to_str};
use crate::value::Value;

/// Deepest value; what is deeper is null.
const DEPTH_MAX: u32 = 32;

/// Appends a value. Keywords are texts, NaN and the infinities null, and whatever JSON cannot say is its text.
pub(super) fn push(value: &Value, out: &mut String) {
    push_at(value, DEPTH_MAX, out);
}

/// Appends a text with its quotes.
fn push_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn push_at(value: &Value, depth: u32, out: &mut String) {
    if depth == 0 {
        return out.push_str("null");
    }
    match value {
        Value::Nil => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => push_number(value, out),
        Value::Text(text) | Value::Keyword(text) => push_string(text, out),
        Value::Map(map) => {
            push_members_at(map.iter().map(|(key, value)| (name_of(key), value.clone())), depth, out);
        }
        Value::Event(event) => push_members_at(members(event), depth, out),
        Value::List(_) | Value::Vector(_) | Value::Set(_) | Value::Seq(_) => {
            out.push('[');
            for (at, item) in fields::items(value).unwrap_or_default().iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_at(item, depth - 1, out);
            }
            out.push(']');
        }
        other => push_string(&to_str(other), out),
    }
}

/// Names and values of a map or an event that are not nil.
pub(super) fn members_of(value: &Value) -> Vec<(String, Value)> {
    match value {
        Value::Event(event) => members(event).collect(),
        Value::Map(map) => map
            .iter()
            .filter(|(_, value)| !value.is_nil())
            .map(|(key, value)| (name_of(key), value.clone()))
            .collect(),
        _ => Vec::new(),
    }
}

fn name_of(key: &Value) -> String {
    match key {
        Value::Keyword(name) => name.to_string(),
        other => to_str(other),
    }
}

/// The fields that are not nil.
fn members(event: &Event) -> impl Iterator<Item = (String, Value)> + '_ {
    let standard = Field::ALL.into_iter().map(|field| (field.name().to_owned(), event.get(field).clone()));
    let custom = event.attributes().iter().map(|(name, value)| (name.to_string(), value.clone()));
    standard.chain(custom).filter(|(_, value)| !value.is_nil())
}

/// Appends an object.
pub(super) fn push_members(members: impl Iterator<Item = (String, Value)>, out: &mut String) {
    push_members_at(members, DEPTH_MAX, out);
}

fn push_members_at(members: impl Iterator<Item = (String, Value)>, depth: u32, out: &mut String) {
    out.push('{');
    for (at, (name, value)) in members.enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_string(&name, out);
        out.push(':');
        push_at(&value, depth - 1, out);
    }
    out.push('}');
}

fn push_number(number: &Number, out: &mut String) {
    match number {
        Number::Int(_) | Number::Big(_) => out.push_str(number_text(number, false).trim_end_matches('N')),
        Number::Float(_) | Number::Double(_) | Number::Ratio(_) => {
            let value = number.as_f64();
            if value.is_finite() { out.push_str(&value.to_string()) } else { out.push_str("null") }
        }
    }
}
