//! Events to messages (spec riemann §1.2).

use model::{EventTime, EventWriter, NumberRef, Ratio, TextField, ValueRef};

use super::{decoded, field, fits, one};
use crate::frame::LengthFramer;
use crate::riemann::{Message, OK_REPLY, error_reply, event_messages, events_reply, framed, framer, request};

type Write = fn(&mut EventWriter<'_>);

#[test]
fn fields_that_are_present_are_written_in_the_order_of_their_numbers() {
    let table: &[(Write, &[u8])] = &[
        (|_| {}, b""),
        (
            |event| {
                event.text(TextField::Host, "h");
                event.text(TextField::Service, "");
                event.text(TextField::State, "ok");
                event.text(TextField::Description, "d");
                fits(event.tag("b"));
                fits(event.tag("a"));
                event.ttl_s(1.5);
            },
            b"\x12\x02ok\x1a\x00\x22\x01h\x2a\x01d\x3a\x01b\x3a\x01a\x45\0\0\xc0\x3f",
        ),
        (|event| event.no_tags(), b""),
        // Both times.
        (|event| event.time(EventTime::Seconds(2)), b"\x08\x02\x50\x80\x89\x7a"),
        (|event| event.time(EventTime::Micros(2_999_999)), b"\x08\x02\x50\xbf\x8d\xb7\x01"),
        (|event| event.time(EventTime::Micros(-1)), b"\x08\x00\x50\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        // Microseconds of such a time have more than 64 bits.
        (|event| event.time(EventTime::Seconds(i64::MAX)), b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        // Attributes.
        (|event| fits(event.text_attribute("k", "v")), b"\x4a\x06\x0a\x01k\x12\x01v"),
        (|event| fits(event.text_attribute("", "")), b"\x4a\x04\x0a\x00\x12\x00"),
        (|event| fits(event.attribute("k", ValueRef::Nil)), b""),
        (|event| fits(event.attribute("k", ValueRef::Bool(true))), b"\x4a\x09\x0a\x01k\x12\x04true"),
        (|event| fits(event.attribute("k", ValueRef::Keyword("a"))), b"\x4a\x07\x0a\x01k\x12\x02:a"),
        (
            |event| fits(event.attribute("k", ValueRef::Number(NumberRef::F64(1e11)))),
            b"\x4a\x0b\x0a\x01k\x12\x061.0E11",
        ),
        (
            |event| {
                fits(event.text_attribute("k", "first"));
                fits(event.text_attribute("l", ""));
                fits(event.text_attribute("k", "last"));
            },
            b"\x4a\x05\x0a\x01l\x12\x00\x4a\x09\x0a\x01k\x12\x04last",
        ),
    ];
    for (write, want) in table {
        let (batch, mut out) = (one(write), Vec::new());
        request(None, batch.view().iter(), &mut out);
        assert_eq!(out.escape_ascii().to_string(), field(6, want).escape_ascii().to_string());
    }
}

#[test]
fn a_metric_is_written_in_single_precision_and_exactly() {
    const BIG: &str = "92233720368547758070";
    let sint64 = |bytes: &[u8]| [b"\x68", bytes].concat();
    let double = |number: f64| [&b"\x71"[..], &number.to_le_bytes()].concat();
    let table = [
        (NumberRef::I64(0), sint64(b"\0"), 0.0),
        (NumberRef::I64(-1), sint64(b"\x01"), -1.0),
        (NumberRef::I64(64), sint64(b"\x80\x01"), 64.0),
        (NumberRef::I64(i64::MAX), sint64(b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 9.223_372e18),
        // By way of a double it would be 2^60.
        (
            NumberRef::I64((1 << 60) + (1 << 36) + 1),
            sint64(b"\x82\x80\x80\x80\x80\x84\x80\x80\x20"),
            1_152_921_642_045_800_400.0,
        ),
        (NumberRef::F64(0.1), double(0.1), 0.1),
        (NumberRef::F64(1e300), double(1e300), f32::INFINITY),
        (NumberRef::F32(0.1), double(0.100_000_001_490_116_12), 0.1),
        (Ratio::of(1, 3).expect("it is small"), double(1.0 / 3.0), 1.0 / 3.0),
        (NumberRef::BigInteger(BIG), double(9.223_372_036_854_776e19), 9.223_372e19),
        (NumberRef::BigInteger("-7"), sint64(b"\x0d"), -7.0),
    ];
    for (metric, exact, single) in table {
        let (batch, mut out) = (one(|event| event.metric(metric)), Vec::new());
        request(None, batch.view().iter(), &mut out);
        let want = field(6, &[&exact[..], b"\x7d", &f32::to_le_bytes(single)].concat());
        assert_eq!(out.escape_ascii().to_string(), want.escape_ascii().to_string(), "{metric:?}");
    }
}

#[test]
fn lengths_of_any_size_are_written() {
    for len in [0, 1, 0x7b, 0x7c, 0x7d, 0x7e, 0x3ffa, 0x3ffb, 0x4000, 0x20_0000] {
        let text = "x".repeat(len);
        let batch = one(|event| {
            event.time(EventTime::Seconds(0));
            fits(event.text_attribute("k", &text));
            fits(event.attribute("l", ValueRef::Keyword(&text)));
        });
        let mut out = Vec::new();
        request(Some(&text), batch.view().iter(), &mut out);
        let (got, result) = decoded(&out);
        assert_eq!(result.expect("it is a message").query.as_deref(), Some(&*text));
        let event = got.view().iter().next().expect("one event");
        assert_eq!(event.text_attribute("k"), Some(&*text));
        assert_eq!(event.text_attribute("l"), Some(&*format!(":{text}")));
    }
}

#[test]
fn replies_are_those_of_riemann() {
    assert_eq!(decoded(OK_REPLY).1, Ok(Message { ok: Some(true), ..Message::default() }));
    let mut out = Vec::new();
    error_reply("no index", &mut out);
    assert_eq!(out, b"\x10\x00\x1a\x08no index");
    let batch = one(|event| event.text(TextField::Host, "h"));
    let mut out = Vec::new();
    events_reply(batch.view().iter(), &mut out);
    assert_eq!(out, b"\x10\x01\x32\x03\x22\x01h");
    let mut out = b"before".to_vec();
    assert!(framed(&mut out, |out| out.extend_from_slice(OK_REPLY)));
    assert_eq!(out, b"before\0\0\0\x02\x10\x01");
}

/// The messages of a stream, as numbers of events.
fn messages(stream: &[u8]) -> Vec<usize> {
    let (mut connection, mut numbers): (LengthFramer, _) = (framer(1 << 20), Vec::new());
    let each = |message: &[u8]| numbers.push(decoded(message).1.expect("it is a message").events);
    connection.push(stream, each).expect("they are short");
    assert_eq!(connection.held(), 0, "the last message is whole");
    numbers
}

#[test]
fn events_are_split_into_messages_at_both_limits() {
    let mut batch = model::EventsBuilder::default();
    for bytes in [1, 1, 1, 90, 1, 40, 40] {
        let mut event = batch.event();
        event.text(TextField::Host, "h".repeat(bytes));
        event.finish();
    }
    let table: &[(usize, usize, &[usize])] = &[
        (100, 1_000, &[7]),
        (2, 1_000, &[2, 2, 2, 1]),
        (1, 0, &[1, 1, 1, 1, 1, 1, 1]),
        (100, 0, &[1, 1, 1, 1, 1, 1, 1]),
        // Events of 5, 5, 5, 94, 5, 44 and 44 bytes.
        (100, 92, &[3, 1, 2, 1]),
        (100, 93, &[3, 1, 3]),
        (100, 98, &[3, 1, 3]),
        (100, 99, &[3, 2, 2]),
    ];
    for (events_max, bytes_max, want) in table {
        let mut out = Vec::new();
        let number = event_messages(batch.view(), *events_max, *bytes_max, &mut out);
        assert_eq!((number, &*messages(&out)), (want.len(), *want), "{events_max} events, {bytes_max} bytes");
    }
    let mut out = Vec::new();
    assert_eq!(event_messages(model::EventsBuilder::default().view(), 1, 1, &mut out), 0);
    assert!(out.is_empty(), "no message without an event");
}
