//! Events in InfluxDB's line protocol, as Riemann's output `influxdb` writes them (spec riemann §14.1).
//!
//! The measurement is the service; the field `value` is the metric; state, description and the attributes are fields, unless
//! an option makes them tags. Not here: how lines are sent.

use model::{EventRef, EventTime, NumberRef, ValueRef};

use crate::report::{event_number_json, event_value_json};

/// Digits of the time after those of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds: what InfluxDB expects if the URL does not say otherwise.
    Nanoseconds,
}

/// Attributes that are about other things than the event.
const NO_FIELDS: [&str; 2] = ["precision", "tag-fields"];

/// Appends one line with its LF. False, with nothing appended, when the event has no service
/// (or one of backslashes only), metric or time.
pub fn line(event: EventRef<'_>, tags: &[String], precision: Precision, out: &mut Vec<u8>) -> bool {
    let (Some(service), Some(metric), Some(time)) = (event.service(), event.metric(), event.time()) else {
        return false;
    };
    let begin = out.len();
    escaped(service, b", ", out);
    for key in tags {
        let mut value = Vec::new();
        if tag_value(event, key, &mut value) && has_rest(&value) {
            out.push(b',');
            escaped(key, b",= ", out);
            out.push(b'=');
            escaped(&String::from_utf8_lossy(&value), b",= ", out);
        }
    }
    out.extend_from_slice(b" value=");
    if !has_rest(service.as_bytes()) || !number(metric, out) {
        out.truncate(begin);
        return false;
    }
    let is_tag = |key: &str| tags.iter().any(|tag| tag == key);
    for (key, text) in [("state", event.state()), ("description", event.description())] {
        if let Some(text) = text.filter(|text| !text.is_empty() && !is_tag(key)) {
            name(key, out);
            quoted(text, out);
        }
    }
    for (key, value) in event.attributes() {
        if !is_tag(key) && !NO_FIELDS.contains(&key) && has_rest(key.as_bytes()) {
            field(key, value, out);
        }
    }
    out.push(b' ');
    let micros = match time {
        EventTime::Seconds(seconds) => i128::from(seconds) * 1_000_000,
        EventTime::Micros(micros) => i128::from(micros),
    };
    let time = match precision {
        Precision::Seconds => micros.div_euclid(1_000_000),
        Precision::Milliseconds => micros.div_euclid(1_000),
        Precision::Microseconds => micros,
        Precision::Nanoseconds => micros * 1_000,
    };
    out.extend_from_slice(time.to_string().as_bytes());
    out.push(b'\n');
    true
}

fn tag_value(event: EventRef<'_>, key: &str, out: &mut Vec<u8>) -> bool {
    let text = match key {
        "host" => event.host(),
        "state" => event.state(),
        "description" => event.description(),
        "service" => event.service(),
        key => match event.attribute(key) {
            None | Some(ValueRef::Nil) => None,
            Some(ValueRef::Text(text) | ValueRef::Keyword(text)) => Some(text),
            Some(value) => {
                event_value_json(value, out);
                return true;
            }
        },
    };
    out.extend_from_slice(text.unwrap_or("").as_bytes());
    !out.is_empty()
}

fn name(key: &str, out: &mut Vec<u8>) {
    out.push(b',');
    escaped(key, b",= ", out);
    out.push(b'=');
}

/// Numbers that are none, and empty texts, are left out.
fn field(key: &str, value: ValueRef<'_>, out: &mut Vec<u8>) {
    let begin = out.len();
    name(key, out);
    let written = match value {
        ValueRef::Nil => false,
        ValueRef::Bool(value) => {
            out.extend_from_slice(if value { b"true" } else { b"false" });
            true
        }
        ValueRef::Number(value) => number(value, out),
        ValueRef::Text(text) | ValueRef::Keyword(text) => {
            quoted(text, out);
            !text.is_empty()
        }
        ValueRef::List(_) | ValueRef::Map(_) => {
            let mut json = Vec::new();
            event_value_json(value, &mut json);
            quoted(&String::from_utf8_lossy(&json), out);
            true
        }
    };
    if !written {
        out.truncate(begin);
    }
}

/// Integers end in `i`, as the original's do: the type of a field in the database never changes. Rationals are doubles.
fn number(number: NumberRef<'_>, out: &mut Vec<u8>) -> bool {
    match number {
        NumberRef::I64(whole) => out.extend_from_slice(format!("{whole}i").as_bytes()),
        NumberRef::F64(double) if !double.is_finite() => return false,
        NumberRef::F32(single) if !single.is_finite() => return false,
        NumberRef::F64(_) | NumberRef::F32(_) | NumberRef::Ratio(_) | NumberRef::BigInteger(_) => {
            event_number_json(number, out);
        }
    }
    true
}

/// Line breaks would end the line: they become spaces, which are escaped.
///
/// A backslash of the text before a separator would escape it, or, for parsers that know escaped backslashes, end its escape.
/// There is no form that all databases read alike, so these backslashes are left out.
fn escaped(text: &str, special: &[u8], out: &mut Vec<u8>) {
    let mut backslashes = 0;
    for byte in text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }) {
        if byte == b'\\' {
            backslashes += 1;
            continue;
        }
        if special.contains(&byte) {
            out.push(b'\\');
        } else {
            out.extend(std::iter::repeat_n(b'\\', backslashes));
        }
        backslashes = 0;
        out.push(byte);
    }
}

/// Whether [`escaped`] writes anything for it: no database takes an empty name or tag.
fn has_rest(text: &[u8]) -> bool {
    text.iter().any(|byte| *byte != b'\\')
}

fn quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' | b'\r' => out.push(b' '),
            byte => out.push(byte),
        }
    }
    out.push(b'"');
}

#[test]
fn lines_have_the_fields_that_the_original_writes() {
    use model::{EventsBuilder, TextField};

    let mut events = EventsBuilder::default();
    let mut event = events.event();
    event.plain_text(TextField::Host, "web,1");
    event.plain_text(TextField::Service, "disk free");
    event.plain_text(TextField::State, "ok");
    event.plain_text(TextField::Description, "a \"b\"\nc");
    event.metric(NumberRef::I64(5));
    event.time(EventTime::Seconds(17));
    event.finish();
    let mut event = events.event();
    event.plain_text(TextField::Service, "load");
    event.metric(NumberRef::F64(0.5));
    event.time(EventTime::Micros(17_500_000));
    event.finish();
    for metric in [Some(NumberRef::F64(f64::NAN)), None] {
        let mut event = events.event();
        event.plain_text(TextField::Service, "none");
        if let Some(metric) = metric {
            event.metric(metric);
        }
        event.time(EventTime::Seconds(17));
        event.finish();
    }
    let lines = |tags: &[&str], precision| {
        let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let mut out = Vec::new();
        let written =
            events.view().iter().map(|event| line(event, &tags, precision, &mut out)).collect::<Vec<_>>();
        assert_eq!(written, [true, true, false, false]);
        String::from_utf8_lossy(&out).into_owned()
    };
    assert_eq!(
        lines(&["host"], Precision::Seconds),
        "disk\\ free,host=web\\,1 value=5i,state=\"ok\",description=\"a \\\"b\\\" c\" 17\nload value=0.5 17\n"
    );
    assert_eq!(
        lines(&["state", "rack"], Precision::Milliseconds),
        "disk\\ free,state=ok value=5i,description=\"a \\\"b\\\" c\" 17000\nload value=0.5 17500\n"
    );
    assert!(lines(&[], Precision::Nanoseconds).ends_with("load value=0.5 17500000000\n"));
}

#[test]
fn backslashes_do_not_escape_what_separates() {
    use model::{EventsBuilder, TextField};

    for (service, host, want) in [
        ("a\\", "h", "a,host=h value=1i 0\n"),
        ("a\\\\", "h\\\\", "a,host=h value=1i 0\n"),
        ("a\\\\\\", "h\\\\\\", "a,host=h value=1i 0\n"),
        ("\\a\\\\b\\", "h\\i", "\\a\\\\b,host=h\\i value=1i 0\n"),
        ("a\\,b\\\\ c", "x\\=y", "a\\,b\\ c,host=x\\=y value=1i 0\n"),
        ("a\\\n", "h\\\\\r", "a\\ ,host=h\\  value=1i 0\n"),
        ("a", "\\\\", "a value=1i 0\n"),
        ("\\\\", "h", ""),
        ("", "h", ""),
    ] {
        let mut events = EventsBuilder::default();
        let mut event = events.event();
        event.plain_text(TextField::Host, host);
        event.plain_text(TextField::Service, service);
        event.metric(NumberRef::I64(1));
        event.time(EventTime::Seconds(0));
        event.attribute("\\\\", ValueRef::Bool(true)).expect("there is room");
        event.finish();
        let mut out = Vec::new();
        let written =
            events.view().iter().all(|event| line(event, &["host".to_owned()], Precision::Seconds, &mut out));
        assert_eq!(
            (written, String::from_utf8_lossy(&out).as_ref()),
            (!want.is_empty(), want),
            "{service} {host}"
        );
    }
}
