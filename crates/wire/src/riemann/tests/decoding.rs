//! Messages to events (spec riemann §1.1).

use model::limits::{EVENT_ENTRIES_MAX, EVENT_TAGS_MAX};
use model::{EventRef, EventTime, EventWriter, EventsBuilder, NumberRef, TextField};

use super::{RECEIVED, decoded, field, fits, one};
use crate::riemann::{Limits, Message, MessageReject, decode, framer, reference};

/// Writes the event that is wanted, without its time.
type Write = fn(&mut EventWriter<'_>);

/// Decodes each event, of these fields.
fn check(table: &[(&str, &[u8], Write)]) {
    for (title, fields, write) in table {
        let message = field(6, fields);
        reference::compare(&message);
        let (got, result) = decoded(&message);
        let overridden = usize::from(title.contains("overriding"));
        assert_eq!(result, Ok(Message { events: 1, overridden, ..Message::default() }), "{title}");
        let want = one(|event| {
            event.time(RECEIVED);
            write(event);
        });
        assert_eq!(got.view().iter().next(), want.view().iter().next(), "{title}");
    }
}

#[test]
fn fields_of_an_event_are_decoded_by_presence() {
    check(&[
        ("nothing", b"", |_| {}),
        ("texts", b"\x12\x02ok\x1a\x03cpu\x22\x01h\x2a\x04text", |event| {
            event.text(TextField::State, "ok");
            event.text(TextField::Service, "cpu");
            event.text(TextField::Host, "h");
            event.text(TextField::Description, "text");
        }),
        ("an empty text", b"\x22\x00", |event| event.text(TextField::Host, "")),
        ("the last of two texts", b"\x22\x01a\x22\x01b", |event| event.text(TextField::Host, "b")),
        ("an integer", b"\x68\x09", |event| event.metric(NumberRef::I64(-5))),
        ("the least integer", b"\x68\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", |event| {
            event.metric(NumberRef::I64(i64::MIN));
        }),
        ("integer before double", b"\x71\0\0\0\0\0\0\xf0\x3f\x68\x00\x7d\0\0\x80\x3f", |event| {
            event.metric(NumberRef::I64(0));
        }),
        ("double before single", b"\x7d\0\0\x80\x3f\x71\0\0\0\0\0\0\0\0", |event| {
            event.metric(NumberRef::F64(0.0));
        }),
        ("single", b"\x7d\xcd\xcc\xcc\x3d", |event| event.metric(NumberRef::F32(0.1))),
        ("NaN", b"\x71\x01\0\0\0\0\0\xf8\x7f", |event| {
            event.metric(NumberRef::F64(f64::from_bits(0x7ff8_0000_0000_0001)));
        }),
        ("ttl", b"\x45\0\0\xc0\xbf", |event| event.ttl_s(-1.5)),
        ("the last ttl", b"\x45\0\0\x80\x3f\x45\0\0\0\0", |event| event.ttl_s(0.0)),
    ]);
}

#[test]
fn tags_and_attributes_are_decoded_in_order_and_keys_of_fields_override_or_are_dropped() {
    check(&[
        ("tags in order, not deduplicated", b"\x3a\x01b\x3a\x01a\x3a\x00\x3a\x01b", |event| {
            ["b", "a", "", "b"].iter().for_each(|tag| fits(event.tag(tag)));
        }),
        ("an attribute", b"\x4a\x06\x0a\x01k\x12\x01v", |event| fits(event.text_attribute("k", "v"))),
        ("an attribute in another order", b"\x4a\x06\x12\x01v\x0a\x01k", |event| {
            fits(event.text_attribute("k", "v"));
        }),
        ("an empty key and an empty value", b"\x4a\x04\x0a\x00\x12\x00", |event| {
            fits(event.text_attribute("", ""));
        }),
        ("no value", b"\x4a\x03\x0a\x01k", |event| fits(event.text_attribute("k", ""))),
        ("any text as key", b"\x4a\x0c\x0a\x07n s/a.b\x12\x01v", |event| {
            fits(event.text_attribute("n s/a.b", "v"));
        }),
        (
            "keys of a list and of a time",
            b"\x4a\x09\x0a\x04tags\x12\x01v\x4a\x09\x0a\x04time\x12\x01v",
            |_| {},
        ),
        ("keys of numbers", b"\x4a\x08\x0a\x03ttl\x12\x01v\x4a\x0b\x0a\x06metric\x12\x01v", |_| {}),
        ("an overriding host", b"\x4a\x09\x0a\x04host\x12\x01b\x22\x01a", |event| {
            event.text(TextField::Host, "b");
        }),
        ("an overriding service", b"\x4a\x0c\x0a\x07service\x12\x01s", |event| {
            event.text(TextField::Service, "s");
        }),
        ("an overriding state", b"\x4a\x0a\x0a\x05state\x12\x01t", |event| event.text(TextField::State, "t")),
        ("an empty overriding description", b"\x4a\x0f\x0a\x0bdescription\x12\x00", |event| {
            event.text(TextField::Description, "");
        }),
        ("two overriding hosts", b"\x4a\x09\x0a\x04host\x12\x01b\x4a\x09\x0a\x04host\x12\x01c", |event| {
            event.text(TextField::Host, "c");
        }),
    ]);
}

#[test]
fn bad_texts_are_replaced_and_unknown_fields_are_ignored() {
    check(&[
        (
            "text that is not UTF-8",
            b"\x22\x03a\xff\xc3\x3a\x01\xfe\x4a\x06\x0a\x01\xff\x12\x01\xff",
            |event| {
                event.text(TextField::Host, "a\u{fffd}\u{fffd}");
                fits(event.tag("\u{fffd}"));
                fits(event.text_attribute("\u{fffd}", "\u{fffd}"));
            },
        ),
        ("texts that are UTF-8 only with what is between them", b"\x22\x01\xc3\x2a\x01\xa9", |event| {
            event.text(TextField::Host, "\u{fffd}");
            event.text(TextField::Description, "\u{fffd}");
        }),
        ("a length that is the second byte of a character", b"\x22\x01\xc3\x2a\x80\x00\x12\x01x", |event| {
            event.text(TextField::Host, "\u{fffd}");
            event.text(TextField::Description, "");
            event.text(TextField::State, "x");
        }),
        (
            "texts with bytes between them that are not UTF-8",
            b"\x22\x02\xc3\xa9\x08\xff\x01\x12\x01x",
            |event| {
                event.text(TextField::Host, "é");
                event.time(EventTime::Seconds(255));
                event.text(TextField::State, "x");
            },
        ),
        ("unknown numbers", b"\x30\x01\x5a\x01x\x61\0\0\0\0\0\0\0\0\x80\x01\x05", |_| {}),
        ("a group of an unknown and of a known number", b"\x83\x01\x08\x05\x84\x01\x23\x24", |_| {}),
        ("other wire types of texts", b"\x10\x05\x1d\0\0\0\0\x38\x01\x48\x01", |_| {}),
        (
            "numbers in bytes, as packed ones would be",
            b"\x0a\x01\x05\x40\x01\x6a\x02\x01\x02\x72\x00",
            |_| {},
        ),
    ]);
}

#[test]
fn microseconds_come_before_seconds_and_the_time_of_arrival_is_last() {
    let minus_one = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    let table: &[(&[u8], EventTime)] = &[
        (b"", RECEIVED),
        (b"\x08\x05", EventTime::Seconds(5)),
        (b"\x08\x00", EventTime::Seconds(0)),
        (minus_one, EventTime::Seconds(-1)),
        (b"\x50\x00", EventTime::Micros(0)),
        (b"\x50\x07\x08\x05", EventTime::Micros(7)),
        (b"\x08\x05\x50\x07", EventTime::Micros(7)),
        (b"\x08\x05\x08\x06", EventTime::Seconds(6)),
    ];
    for (fields, want) in table {
        let message = field(6, fields);
        reference::compare(&message);
        let (batch, _) = decoded(&message);
        assert_eq!(batch.view().iter().next().and_then(EventRef::time), Some(*want));
    }
}

#[test]
fn queries_states_and_replies_are_read_beside_events() {
    let query = |text: &'static str| Message { query: Some(text.into()), ..Message::default() };
    let table: &[(&[u8], Message<'_>)] = &[
        (b"", Message::default()),
        (b"\x2a\x06\x0a\x04true", query("true")),
        (b"\x2a\x00", query("")),
        (b"\x2a\x03\x0a\x01a\x2a\x03\x0a\x01b", query("b")),
        (b"\x2a\x03\x0a\x01a\x2a\x02\x10\x01", query("a")),
        (b"\x2a\x03\x0a\x01\xff", query("\u{fffd}")),
        (b"\x32\x00\x2a\x03\x0a\x01a\x32\x00", Message { events: 2, ..query("a") }),
        (b"\x22\x04\x08\x01\x12\x00", Message { has_states: true, ..Message::default() }),
        (b"\x22\x00\x32\x00", Message { has_states: true, events: 1, ..Message::default() }),
        (b"\x10\x01", Message { ok: Some(true), ..Message::default() }),
        (b"\x10\x00\x1a\x02no", Message { ok: Some(false), error: Some("no".into()), ..Message::default() }),
        (b"\x10\x01\x10\x00", Message { ok: Some(false), ..Message::default() }),
        (b"\x08\x01\x3a\x01x\x12\x00\x28\x05\x30\x01", Message::default()),
    ];
    for (bytes, want) in table {
        reference::compare(bytes);
        assert_eq!(decoded(bytes).1.as_ref(), Ok(want), "{}", bytes.escape_ascii());
    }
}

#[test]
fn an_undecodable_message_is_rejected_whole() {
    let table: &[&[u8]] = &[
        b"\x32",
        b"\x32\x01",
        b"\x32\x02\x22\x01",
        // An attribute without its key.
        b"\x32\x05\x4a\x03\x12\x01v",
        b"\x32\x02\x4a\x00",
        // Within a state, a query, a group.
        b"\x22\x01\x08",
        b"\x2a\x02\x0a\x01",
        b"\x0b",
        b"\x0b\x14",
        b"\x32\x01\x0c",
        b"\x0c",
        b"\x00\x00",
        b"\xff\xff\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
    ];
    for bytes in table {
        let after_an_event = [b"\x32\x03\x22\x01h", *bytes].concat();
        for bytes in [bytes, &*after_an_event] {
            reference::compare(bytes);
            let (batch, result) = decoded(bytes);
            assert_eq!(result, Err(MessageReject::Undecodable), "{}", bytes.escape_ascii());
            assert_eq!(batch, EventsBuilder::default(), "{}", bytes.escape_ascii());
        }
    }
}

#[test]
fn a_message_at_a_limit_is_accepted_and_one_more_is_rejected() {
    let event = |fields: Vec<u8>| {
        let mut message = b"\x32".to_vec();
        let len = fields.len();
        message.extend((0..4).map(|at| (len >> (7 * at)) as u8 & 0x7F | if at < 3 { 0x80 } else { 0 }));
        [message, fields].concat()
    };
    let tags = |number: usize| event(b"\x3a\x00".repeat(number));
    let attributes = |number: usize| event(b"\x4a\x02\x0a\x00".repeat(number));
    let table = [
        (b"\x32\x00".repeat(3), Ok(3)),
        (b"\x32\x00".repeat(4), Err(MessageReject::TooManyEvents)),
        (tags(EVENT_TAGS_MAX), Ok(1)),
        (tags(EVENT_TAGS_MAX + 1), Err(MessageReject::TooManyTags)),
        (attributes(EVENT_ENTRIES_MAX), Ok(1)),
        (attributes(EVENT_ENTRIES_MAX + 1), Err(MessageReject::TooManyAttributes)),
    ];
    for (message, want) in table {
        let mut batch = EventsBuilder::default();
        let result = decode(&message, RECEIVED, Limits { events_max: 3 }, &mut batch);
        assert_eq!(result.map(|message| message.events), want);
        assert_eq!(batch.len(), want.unwrap_or(0));
        assert_eq!(want.err().and_then(MessageReject::reply).is_some(), want.is_err());
    }
}

#[test]
fn each_reject_has_a_word_and_only_undecodable_messages_have_no_reply() {
    for (at, reject) in MessageReject::ALL.iter().enumerate() {
        assert_eq!(reject.reply().is_none(), *reject == MessageReject::Undecodable);
        assert!(MessageReject::ALL[..at].iter().all(|other| other.word() != reject.word()));
    }
}

#[test]
fn a_connection_is_split_into_messages_up_to_its_limit() {
    let mut got = Vec::new();
    let mut connection = framer(9);
    let read = b"\0\0\0\0\0\0\0\x02\x32\x00\0\0";
    connection.push(read, |message| got.push(message.to_vec())).expect("they are short");
    assert_eq!(got, [&b""[..], b"\x32\x00"]);
    assert_eq!(decoded(&got[0]).1, Ok(Message::default()), "an empty message is legal");
    assert!(connection.push(b"\0\x0a", |_| panic!("it is too long")).is_err());

    // A length of up to 2^31 - 1 may be allowed, and nothing above it.
    for (length, is_fine) in [(i32::MAX as u32, true), (1 << 31, false), (u32::MAX, false)] {
        let mut connection = framer(usize::MAX);
        let read = [&length.to_be_bytes()[..], b"x"].concat();
        assert_eq!(connection.push(&read, |_| panic!("it is not whole")).is_ok(), is_fine, "{length}");
        assert!(connection.memory_bytes() <= 64, "memory is for what has arrived");
    }
}

#[test]
fn events_of_a_rejected_message_are_counted_up_to_the_first_bad_byte() {
    let table: &[(&[u8], usize)] = &[
        (b"", 0),
        (b"\x32\x00", 1),
        // What an event contains is not read.
        (b"\x32\x01\xff\x32\x00", 2),
        // Other fields: `ok`, a query, a state.
        (b"\x10\x01\x2a\x00\x22\x00\x32\x00", 1),
        // An event that is cut, and a key that is.
        (b"\x32\x00\x32\x02x", 1),
        (b"\x32\x00\xff", 1),
    ];
    for (bytes, want) in table {
        assert_eq!(super::super::events_in_rejected(bytes), *want, "{}", bytes.escape_ascii());
    }
}
