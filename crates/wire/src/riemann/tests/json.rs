//! Events to JSON and back (spec riemann §3.4, §6.2).

use model::limits::{EVENT_ENTRIES_MAX, EVENT_NESTING_MAX, EVENT_TAGS_MAX};
use model::{EventLimit, EventTime, EventWriter, EventsBuilder, NumberRef, Ratio, TextField, ValueRef};

use super::{RECEIVED, fits, one};
use crate::riemann::json::{
    Absent, JsonLine, JsonOptions, JsonReject, JsonTimes, NUMBER_BYTES_MAX, decode, encode, error_reply,
};

type Write = fn(&mut EventWriter<'_>);

const OPTIONS: JsonOptions = JsonOptions { bytes_max: 1 << 20, times: JsonTimes::Seconds };

fn encoded(batch: &EventsBuilder, absent: Absent) -> String {
    let mut out = Vec::new();
    encode(batch.view().iter().next().expect("one event"), absent, &mut out);
    String::from_utf8(out).expect("JSON is UTF-8")
}

#[test]
fn events_are_written_field_by_field() {
    let table: &[(Write, Absent, &str)] = &[
        (
            |_| {},
            Absent::Null,
            r#"{"host":null,"service":null,"state":null,"description":null,"metric":null,"tags":null,"time":null,"ttl":null}"#,
        ),
        (|_| {}, Absent::Omitted, "{}"),
        (
            |event| {
                event.ttl_s(60.0);
                event.time(EventTime::Seconds(1_795_205_553));
                fits(event.tag("a"));
                fits(event.tag("b"));
                event.metric(NumberRef::F64(5.0));
                event.text(TextField::Description, "text");
                event.text(TextField::State, "ok");
                event.text(TextField::Service, "cpu");
                event.text(TextField::Host, "web1");
                fits(event.text_attribute("k", "v"));
            },
            Absent::Null,
            r#"{"host":"web1","service":"cpu","state":"ok","description":"text","metric":5.0,"tags":["a","b"],"time":"2026-11-20T20:12:33.000Z","ttl":60.0,"k":"v"}"#,
        ),
        (|event| event.no_tags(), Absent::Omitted, r#"{"tags":[]}"#),
        (
            |event| event.text(TextField::Host, "\"\\/\n\r\t\u{8}\u{c}\0\u{1f}\u{7f}é\u{2028}😀"),
            Absent::Omitted,
            "{\"host\":\"\\\"\\\\/\\n\\r\\t\\b\\f\\u0000\\u001F\u{7f}é\u{2028}😀\"}",
        ),
        (
            |event| {
                fits(event.text_attribute("k", "first"));
                fits(event.attribute("n", ValueRef::Nil));
                fits(event.attribute("b", ValueRef::Bool(false)));
                fits(event.attribute("w", ValueRef::Keyword("ns/w")));
                fits(event.text_attribute("k", "last"));
                fits(event.begin_list("l"));
                fits(event.attribute("", ValueRef::Number(NumberRef::I64(1))));
                fits(event.begin_map(""));
                fits(event.text_attribute("x", "first"));
                fits(event.text_attribute("x", "y"));
                fits(event.text_attribute("z", ""));
                event.end();
                event.end();
            },
            Absent::Omitted,
            r#"{"n":null,"b":false,"w":"ns/w","k":"last","l":[1,{"x":"y","z":""}]}"#,
        ),
    ];
    for (write, absent, want) in table {
        assert_eq!(encoded(&one(write), *absent), *want);
    }
}

#[test]
fn numbers_are_written_as_in_java() {
    let table: &[(NumberRef<'_>, &str)] = &[
        (NumberRef::I64(i64::MIN), "-9223372036854775808"),
        (NumberRef::F64(5.0), "5.0"),
        (NumberRef::F64(1e300), "1.0E300"),
        (NumberRef::F64(f64::NAN), "\"NaN\""),
        (NumberRef::F64(f64::INFINITY), "\"Infinity\""),
        (NumberRef::F64(f64::NEG_INFINITY), "\"-Infinity\""),
        (NumberRef::F32(0.1), "0.1"),
        (NumberRef::F32(f32::NAN), "\"NaN\""),
        (Ratio::of(9, 2).expect("it is small"), "4.5"),
        (NumberRef::BigInteger("92233720368547758070"), "92233720368547758070"),
    ];
    for (number, want) in table {
        let batch = one(|event| event.metric(*number));
        assert_eq!(encoded(&batch, Absent::Omitted), format!("{{\"metric\":{want}}}"));
    }
}

/// Decodes a line into a batch of its own.
fn decoded(line: &[u8], options: JsonOptions) -> (EventsBuilder, Result<JsonLine, JsonReject>) {
    let mut batch = EventsBuilder::default();
    let result = decode(line, RECEIVED, options, &mut batch);
    (batch, result)
}

#[test]
fn keys_become_fields_and_values_keep_their_types() {
    let table: &[(&str, Write)] = &[
        ("{}", |_| {}),
        (" { } \r\n", |_| {}),
        (r#"{"host":"h","service":"s","state":"ok","description":""}"#, |event| {
            event.text(TextField::Host, "h");
            event.text(TextField::Service, "s");
            event.text(TextField::State, "ok");
            event.text(TextField::Description, "");
        }),
        (r#"{"host":5,"service":-1.50,"state":true,"description":null}"#, |event| {
            event.text(TextField::Host, "5");
            event.text(TextField::Service, "-1.50");
            event.text(TextField::State, "true");
        }),
        (r#"{"host":"a","host":"b","state":"x","state":null}"#, |event| event.text(TextField::Host, "b")),
        (r#"{"metric":5}"#, |event| event.metric(NumberRef::I64(5))),
        (r#"{"metric":-0}"#, |event| event.metric(NumberRef::I64(0))),
        (r#"{"metric":5.0}"#, |event| event.metric(NumberRef::F64(5.0))),
        (r#"{"metric":-1.5E+3}"#, |event| event.metric(NumberRef::F64(-1500.0))),
        (r#"{"metric":1e999}"#, |event| event.metric(NumberRef::F64(f64::INFINITY))),
        (r#"{"metric":"Infinity"}"#, |event| event.metric(NumberRef::F64(f64::INFINITY))),
        (r#"{"metric":92233720368547758070}"#, |event| {
            event.metric(NumberRef::BigInteger("92233720368547758070"));
        }),
        (r#"{"metric":1,"metric":null}"#, |_| {}),
        (r#"{"ttl":60}"#, |event| event.ttl_s(60.0)),
        (r#"{"ttl":0.1}"#, |event| event.ttl_s(0.1)),
        (r#"{"tags":[]}"#, |event| event.no_tags()),
        (r#"{"tags":null}"#, |_| {}),
        (r#"{"tags":["a"],"x":1,"tags":["b" , "c\n"]}"#, |event| {
            fits(event.attribute("x", ValueRef::Number(NumberRef::I64(1))));
            fits(event.tag("b"));
            fits(event.tag("c\n"));
        }),
        (r#"{"k":"v","n":null,"b":true,"":{"x":[1,[],{}],"y":"z"}}"#, |event| {
            fits(event.text_attribute("k", "v"));
            fits(event.attribute("n", ValueRef::Nil));
            fits(event.attribute("b", ValueRef::Bool(true)));
            fits(event.begin_map(""));
            fits(event.begin_list("x"));
            fits(event.attribute("", ValueRef::Number(NumberRef::I64(1))));
            fits(event.begin_list(""));
            event.end();
            fits(event.begin_map(""));
            event.end();
            event.end();
            fits(event.text_attribute("y", "z"));
            event.end();
        }),
        (r#"{"\u006b":"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00"}"#, |event| {
            fits(event.text_attribute("k", "\"\\/\u{8}\u{c}\n\r\té😀"));
        }),
        // Half a pair of surrogates.
        (r#"{"a":"\ud800","b":"\ud800\u0041","c":"\udc00x","d":"\ud800\n"}"#, |event| {
            fits(event.text_attribute("a", "\u{fffd}"));
            fits(event.text_attribute("b", "\u{fffd}A"));
            fits(event.text_attribute("c", "\u{fffd}x"));
            fits(event.text_attribute("d", "\u{fffd}\n"));
        }),
    ];
    for (line, write) in table {
        let (got, result) = decoded(line.as_bytes(), OPTIONS);
        assert_eq!(result, Ok(JsonLine::Event), "{line}");
        let want = one(|event| {
            event.time(RECEIVED);
            write(event);
        });
        assert_eq!(got.view().iter().next(), want.view().iter().next(), "{line}");
    }
    let (got, _) = decoded(b"{\"host\":\"a\xff\"}", OPTIONS);
    assert_eq!(got.view().iter().next().and_then(model::EventRef::host), Some("a\u{fffd}"));
}

#[test]
fn times_are_dates_in_seconds_or_in_full() {
    let table: &[(&str, EventTime, EventTime)] = &[
        (
            r#"{"time":"2026-11-20T20:12:33.000Z"}"#,
            EventTime::Seconds(1_795_205_553),
            EventTime::Seconds(1_795_205_553),
        ),
        (
            r#"{"time":"2026-11-20T20:12:33.5Z"}"#,
            EventTime::Seconds(1_795_205_553),
            EventTime::Micros(1_795_205_553_500_000),
        ),
        (r#"{"time":"1969-12-31T23:59:59.5Z"}"#, EventTime::Seconds(0), EventTime::Micros(-500_000)),
        (r#"{"time":null}"#, RECEIVED, RECEIVED),
    ];
    for (line, seconds, micros) in table {
        for (times, want) in [(JsonTimes::Seconds, seconds), (JsonTimes::Micros, micros)] {
            let (batch, _) = decoded(line.as_bytes(), JsonOptions { times, ..OPTIONS });
            assert_eq!(batch.view().iter().next().and_then(model::EventRef::time), Some(*want), "{line}");
        }
    }
}

#[test]
fn null_and_blank_lines_are_no_events() {
    for line in ["null", " null\n", "", " \r\n"] {
        let (batch, result) = decoded(line.as_bytes(), OPTIONS);
        assert_eq!((result, batch.len()), (Ok(JsonLine::Null), 0), "{line:?}");
    }
}

#[test]
fn a_line_that_is_no_event_is_rejected_with_a_text() {
    let table: &[(&str, &str)] = &[
        ("{", "invalid JSON: expected `\"` after 1 bytes"),
        ("}", "invalid JSON: expected a value after 0 bytes"),
        ("{}x", "invalid JSON: expected the line's end after 2 bytes"),
        ("{} {}", "invalid JSON: expected the line's end after 3 bytes"),
        ("{\"a\"}", "invalid JSON: expected `:` after 4 bytes"),
        ("{\"a\":}", "invalid JSON: expected a value after 5 bytes"),
        ("{\"a\":1", "invalid JSON: expected `,` or `}` after 6 bytes"),
        ("{\"a\":1,}", "invalid JSON: expected `\"` after 7 bytes"),
        ("{\"a\":[1 2]}", "invalid JSON: expected `,` or `]` after 8 bytes"),
        ("{\"a\":[1,]}", "invalid JSON: expected a value after 8 bytes"),
        ("{\"a\":\"b}", "invalid JSON: expected the string's end after 8 bytes"),
        ("{\"a\":\"\n\"}", "invalid JSON: expected the string's end after 6 bytes"),
        ("{\"a\":\"\\x\"}", "invalid JSON: expected an escape after 7 bytes"),
        ("{\"a\":\"\\", "invalid JSON: expected an escape after 7 bytes"),
        ("{\"a\":\"\\u12\"}", "invalid JSON: expected four hexadecimal digits after 7 bytes"),
        ("{\"a\":\"\\u12g4\"}", "invalid JSON: expected four hexadecimal digits after 7 bytes"),
        ("{\"a\":\"\\ud800\\u\"}", "invalid JSON: expected four hexadecimal digits after 13 bytes"),
        ("{\"a\":01}", "invalid JSON: expected a number after 7 bytes"),
        ("{\"a\":-}", "invalid JSON: expected a number after 6 bytes"),
        ("{\"a\":1.}", "invalid JSON: expected a digit after 7 bytes"),
        ("{\"a\":1e}", "invalid JSON: expected a digit after 7 bytes"),
        ("{\"a\":NaN}", "invalid JSON: expected a value after 5 bytes"),
        ("{\"a\":nul}", "invalid JSON: expected a value after 5 bytes"),
        ("{'a':1}", "invalid JSON: expected `\"` after 1 bytes"),
        ("[]", "an event must be an object"),
        ("5", "an event must be an object"),
        ("{\"host\":[]}", "`host` must be a text"),
        ("{\"metric\":\"5\"}", "`metric` must be a number"),
        ("{\"ttl\":true}", "`ttl` must be a number"),
        ("{\"tags\":\"a\"}", "`tags` must be a list of texts"),
        ("{\"tags\":[1]}", "`tags` must be a list of texts"),
        ("{\"time\":5}", "`time` must be a date and time as text, like \"2026-11-20T20:12:33.000Z\""),
        ("{\"time\":\"now\"}", "Invalid format: \"now\""),
    ];
    for (line, want) in table {
        let (batch, result) = decoded(line.as_bytes(), OPTIONS);
        let reject = result.expect_err(line);
        assert_eq!(reject.to_string(), *want, "{line}");
        assert_eq!(batch, EventsBuilder::default(), "{line} leaves nothing behind");
        assert_eq!(reject.ends_the_body(), want.starts_with("invalid JSON"), "{line}");
    }
}

#[test]
fn a_line_at_a_limit_is_accepted_and_one_more_is_rejected() {
    let tags = |number: usize| format!("{{\"tags\":[{}\"\"]}}", "\"\",".repeat(number - 1));
    let values = |number: usize| format!("{{\"a\":[{}0]}}", "0,".repeat(number - 2));
    let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    let maps = |depth: usize| format!("{{\"a\":{}1{}}}", "{\"b\":".repeat(depth), "}".repeat(depth));
    let digits = |number: usize| format!("{{\"a\":{}}}", "1".repeat(number));
    let bytes = |number: usize| format!("{{}}{}", " ".repeat(number - 2));
    type Line<'a> = &'a dyn Fn(usize) -> String;
    let table: [(Line<'_>, usize, JsonReject); 6] = [
        (&tags, EVENT_TAGS_MAX, JsonReject::Limit(EventLimit::Tags)),
        (&values, EVENT_ENTRIES_MAX, JsonReject::Limit(EventLimit::Entries)),
        (&nested, EVENT_NESTING_MAX, JsonReject::Limit(EventLimit::Nesting)),
        (&maps, EVENT_NESTING_MAX, JsonReject::Limit(EventLimit::Nesting)),
        (&digits, NUMBER_BYTES_MAX, JsonReject::LongNumber),
        (&bytes, OPTIONS.bytes_max, JsonReject::TooLong(OPTIONS.bytes_max)),
    ];
    for (line, most, reject) in table {
        assert_eq!(decoded(line(most).as_bytes(), OPTIONS).1, Ok(JsonLine::Event), "{reject}");
        let (batch, result) = decoded(line(most + 1).as_bytes(), OPTIONS);
        assert_eq!((result, batch.len()), (Err(reject), 0));
    }
    let deep = nested(100_000);
    assert_eq!(decoded(deep.as_bytes(), OPTIONS).1, Err(JsonReject::Limit(EventLimit::Nesting)));
    let long = format!("{{\"time\":\"{}\"}}", "é".repeat(100));
    assert_eq!(decoded(long.as_bytes(), OPTIONS).1, Err(JsonReject::BadTime("é".repeat(50))));
}

#[test]
fn the_reply_to_a_rejected_event_is_json() {
    let mut out = Vec::new();
    error_reply(JsonReject::BadTime("a\"b".to_owned()), &mut out);
    assert_eq!(String::from_utf8_lossy(&out), r#"{"error":"Invalid format: \"a\"b\""}"#);
}
