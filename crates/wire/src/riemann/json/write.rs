//! Events to JSON (spec riemann §3.4).

use std::fmt::Display;
use std::io::Write;

use model::java::{JavaDouble, JavaSingle};
use model::{EventRef, NumberRef, ValueRef};

use super::time::IsoTime;
use crate::riemann::attributes::last_of_each;
use crate::steps::touch;

/// How standard fields without a value are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// As null: events of a connection, and those that `(event {…})` makes.
    Null,
    /// Left out: maps of user code, and events that the index expired.
    Omitted,
}

/// Appends the event as an object: host, service, state, description, metric, tags, time, ttl, and then the attributes, of each key the
/// last one.
pub fn encode(event: EventRef<'_>, absent: Absent, out: &mut Vec<u8>) {
    let mut object = Object::begin(absent, out);
    object.standard("host", event.host(), string);
    object.standard("service", event.service(), string);
    object.standard("state", event.state(), string);
    object.standard("description", event.description(), string);
    object.standard("metric", event.metric(), number);
    object.standard("tags", event.tags(), |tags, out| list(tags, string, out));
    object.standard("time", event.time().map(IsoTime), quoted);
    object.standard("ttl", event.ttl_s(), |ttl_s, out| number(NumberRef::F32(ttl_s), out));
    for (key, found) in last_of_each(event.attributes()) {
        object.member(key, found, value);
    }
    object.end();
}

/// Appends the reply to an event that was rejected.
pub fn error_reply(text: impl Display, out: &mut Vec<u8>) {
    let mut object = Object::begin(Absent::Omitted, out);
    object.member("error", text.to_string().as_str(), string);
    object.end();
}

/// An object that is being written.
struct Object<'o> {
    absent: Absent,
    is_first: bool,
    out: &'o mut Vec<u8>,
}

impl Object<'_> {
    fn begin(absent: Absent, out: &mut Vec<u8>) -> Object<'_> {
        out.push(b'{');
        Object { absent, is_first: true, out }
    }

    fn member<T>(&mut self, name: &str, value: T, write: impl FnOnce(T, &mut Vec<u8>)) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        string(name, self.out);
        self.out.push(b':');
        write(value, self.out);
    }

    fn standard<T>(&mut self, name: &str, value: Option<T>, write: impl FnOnce(T, &mut Vec<u8>)) {
        match (value, self.absent) {
            (Some(value), _) => self.member(name, value, write),
            (None, Absent::Null) => self.member(name, (), |(), out| out.extend_from_slice(b"null")),
            (None, Absent::Omitted) => {}
        }
    }

    fn end(self) {
        self.out.push(b'}');
    }
}

/// A value. An event has a limit of nested ones (`EVENT_NESTING_MAX`).
fn value(found: ValueRef<'_>, out: &mut Vec<u8>) {
    match found {
        ValueRef::Nil => out.extend_from_slice(b"null"),
        ValueRef::Bool(is_true) => out.extend_from_slice(if is_true { b"true" } else { b"false" }),
        ValueRef::Number(found) => number(found, out),
        ValueRef::Text(text) | ValueRef::Keyword(text) => string(text, out),
        ValueRef::List(items) => list(items, value, out),
        ValueRef::Map(entries) => {
            let mut object = Object::begin(Absent::Omitted, out);
            last_of_each(entries).into_iter().for_each(|(key, found)| object.member(key, found, value));
            object.end();
        }
    }
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

/// JSON has no NaN and no infinities: they are strings.
fn number(number: NumberRef<'_>, out: &mut Vec<u8>) {
    match number {
        NumberRef::I64(number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
        NumberRef::F64(number) if number.is_finite() => written(JavaDouble(number), out),
        NumberRef::F64(number) => quoted(JavaDouble(number), out),
        NumberRef::F32(number) if number.is_finite() => written(JavaSingle(number), out),
        NumberRef::F32(number) => quoted(JavaSingle(number), out),
        NumberRef::Ratio(ratio) => {
            written(JavaDouble(ratio.numerator() as f64 / ratio.denominator() as f64), out);
        }
        NumberRef::BigInteger(digits) => out.extend_from_slice(digits.as_bytes()),
    }
}

fn written(text: impl Display, out: &mut Vec<u8>) {
    write!(out, "{text}").expect("writing to a Vec cannot fail");
}

/// A text without characters to escape, as a string.
fn quoted(text: impl Display, out: &mut Vec<u8>) {
    out.push(b'"');
    written(text, out);
    out.push(b'"');
}

/// Escapes what must be escaped, as Jackson does; all else is as it is, whether ASCII or not.
fn string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    touch(text.len());
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        out.extend_from_slice(&rest[..at]);
        out.push(b'\\');
        match rest[at] {
            b'\n' => out.push(b'n'),
            b'\r' => out.push(b'r'),
            b'\t' => out.push(b't'),
            0x08 => out.push(b'b'),
            0x0c => out.push(b'f'),
            control @ 0..0x20 => {
                let hex = |digit: u8| HEX[usize::from(digit)];
                out.extend_from_slice(&[b'u', b'0', b'0', hex(control >> 4), hex(control & 15)]);
            }
            other => out.push(other),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}
