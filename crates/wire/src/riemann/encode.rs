//! Messages as bytes: replies, and requests of clients and of `forward` (spec riemann §1.2, §1.3, §14.1).
//!
//! Fields are written in the order of their numbers, as Java's encoder does. On a connection each message follows its length
//! ([`framed`]); a datagram is one message alone.
//! Not here: which events a query finds; waiting for the reply.

use std::io::Write;

use model::event::EventsView;
use model::{EventRef, EventTime, NumberRef, ValueRef};

use super::attributes::last_of_each;
use super::keys::{attribute, event as keys, message, query as query_keys};
use super::string_form::StringForm;
use crate::steps::touch;

/// The reply to a request without a query: `ok` is true.
pub const OK_REPLY: &[u8] = b"\x10\x01";

/// Appends a message with its length before it, as on a connection; `write` appends the message. False, and nothing appended, if the
/// message has 4 GiB or more, which no length can say.
pub fn framed(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> bool {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let Ok(len) = u32::try_from(out.len() - begin - 4) else {
        out.truncate(begin);
        return false;
    };
    out[begin..begin + 4].copy_from_slice(&len.to_be_bytes());
    true
}

/// Appends the reply to a request that failed: `ok` is false, and `text` says why.
pub fn error_reply(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x10\x00");
    bytes_field(message::ERROR, text.as_bytes(), out);
}

/// Appends the reply to a query: `ok` is true, and its events.
pub fn events_reply<'e>(events: impl IntoIterator<Item = EventRef<'e>>, out: &mut Vec<u8>) {
    out.extend_from_slice(OK_REPLY);
    events.into_iter().for_each(|event| event_field(event, out));
}

/// Appends further events to a reply or a request.
pub fn more_events<'e>(events: impl IntoIterator<Item = EventRef<'e>>, out: &mut Vec<u8>) {
    events.into_iter().for_each(|event| event_field(event, out));
}

/// Appends a request with events, a query, or both.
pub fn request<'e>(query: Option<&str>, events: impl IntoIterator<Item = EventRef<'e>>, out: &mut Vec<u8>) {
    if let Some(query) = query {
        delimited(message::QUERY, out, |out| bytes_field(query_keys::STRING, query.as_bytes(), out));
    }
    events.into_iter().for_each(|event| event_field(event, out));
}

/// Appends framed requests with all events, for `forward`. A message has at most `events_max` events and is cut before an event that
/// would take it over `message_bytes_max`; one event alone may be larger. Gives the number of messages: as many replies follow.
///
/// # Panics
/// When `events_max` is 0.
pub fn event_messages(
    events: EventsView<'_>,
    events_max: usize,
    message_bytes_max: usize,
    out: &mut Vec<u8>,
) -> usize {
    assert!(events_max > 0, "a message has an event");
    let events = events.iter();
    let (mut messages, mut next) = (0, Vec::new());
    let mut rest = events.peekable();
    // The encoded event that did not fit the message before, or the first one.
    while rest.peek().is_some() || !next.is_empty() {
        let is_whole = framed(out, |out| {
            let begin = out.len();
            let mut number = 0;
            while number < events_max {
                if next.is_empty() {
                    let Some(event) = rest.next() else { break };
                    event_field(event, &mut next);
                }
                if number > 0 && out.len() - begin + next.len() > message_bytes_max {
                    break;
                }
                out.append(&mut next);
                number += 1;
            }
        });
        messages += usize::from(is_whole);
    }
    messages
}

/// Appends an event as a field of a message.
fn event_field(event: EventRef<'_>, out: &mut Vec<u8>) {
    delimited(message::EVENT, out, |out| event_fields(event, out));
}

fn event_fields(event: EventRef<'_>, out: &mut Vec<u8>) {
    // Truncated toward zero, as Clojure's `long` does.
    let (seconds, micros) = match event.time() {
        None => (None, None),
        Some(EventTime::Seconds(seconds)) => (Some(seconds), seconds.checked_mul(1_000_000)),
        Some(EventTime::Micros(micros)) => (Some(micros / 1_000_000), Some(micros)),
    };
    if let Some(seconds) = seconds {
        varint_field(keys::TIME, seconds as u64, out);
    }
    let texts = [
        (keys::STATE, event.state()),
        (keys::SERVICE, event.service()),
        (keys::HOST, event.host()),
        (keys::DESCRIPTION, event.description()),
    ];
    for (key, text) in texts {
        if let Some(text) = text {
            bytes_field(key, text.as_bytes(), out);
        }
    }
    for tag in event.tags().into_iter().flatten() {
        bytes_field(keys::TAG, tag.as_bytes(), out);
    }
    if let Some(ttl_s) = event.ttl_s() {
        four_field(keys::TTL, ttl_s.to_le_bytes(), out);
    }
    for (key, value) in last_of_each(event.attributes()) {
        match value {
            ValueRef::Nil => {}
            ValueRef::Text(text) => delimited(keys::ATTRIBUTE, out, |out| {
                bytes_field(attribute::KEY, key.as_bytes(), out);
                bytes_field(attribute::VALUE, text.as_bytes(), out);
            }),
            other => delimited(keys::ATTRIBUTE, out, |out| {
                bytes_field(attribute::KEY, key.as_bytes(), out);
                delimited(attribute::VALUE, out, |out| {
                    write!(out, "{}", StringForm(other)).expect("writing to a Vec cannot fail");
                });
            }),
        }
    }
    if let Some(micros) = micros {
        varint_field(keys::TIME_MICROS, micros as u64, out);
    }
    event.metric().into_iter().for_each(|metric| metric_fields(metric, out));
}

/// An integer within 64 bits, or else a number of double precision; in addition always one of single precision.
fn metric_fields(metric: NumberRef<'_>, out: &mut Vec<u8>) {
    let (integer, double) = match metric {
        NumberRef::I64(number) => (Some(number), number as f64),
        NumberRef::F64(number) => (None, number),
        NumberRef::F32(number) => (None, f64::from(number)),
        NumberRef::Ratio(ratio) => (None, ratio.numerator() as f64 / ratio.denominator() as f64),
        NumberRef::BigInteger(digits) => {
            (digits.parse().ok(), crate::number::double(digits.as_bytes()).unwrap_or(f64::NAN))
        }
    };
    let single = match (metric, integer) {
        (NumberRef::F32(number), _) => number,
        // Not by way of a double, which would round twice.
        (_, Some(number)) => number as f32,
        (_, None) => double as f32,
    };
    match integer {
        Some(number) => varint_field(keys::METRIC_SINT64, ((number << 1) ^ (number >> 63)) as u64, out),
        None => {
            push_key(keys::METRIC_D, out);
            out.extend_from_slice(&double.to_le_bytes());
        }
    }
    four_field(keys::METRIC_F, single.to_le_bytes(), out);
}

/// Each key is one byte.
fn push_key(key: u32, out: &mut Vec<u8>) {
    debug_assert!(key < 0x80, "the numbers of Riemann's fields are below 16");
    out.push(key as u8);
}

fn varint_field(key: u32, value: u64, out: &mut Vec<u8>) {
    push_key(key, out);
    varint(value, out);
}

fn four_field(key: u32, value: [u8; 4], out: &mut Vec<u8>) {
    push_key(key, out);
    out.extend_from_slice(&value);
}

fn bytes_field(key: u32, value: &[u8], out: &mut Vec<u8>) {
    touch(value.len());
    push_key(key, out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// Appends a field of what `write` appends. Most are shorter than 128 bytes and have a length of one byte; longer ones move.
fn delimited(key: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    push_key(key, out);
    out.push(0);
    let begin = out.len();
    write(out);
    let len = out.len() - begin;
    if len < 0x80 {
        out[begin - 1] = len as u8;
        return;
    }
    touch(len);
    // One byte for each 7 bits.
    let length_bytes = (len.ilog2() as usize / 7) + 1;
    out.resize(begin - 1 + length_bytes + len, 0);
    out.copy_within(begin..begin + len, begin - 1 + length_bytes);
    for at in 0..length_bytes {
        let more = if at + 1 < length_bytes { 0x80 } else { 0 };
        out[begin - 1 + at] = (len >> (7 * at)) as u8 & 0x7F | more;
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
