//! JSON of events and values, what is read of JSON, and the functions of a config.

use std::sync::Arc;

use super::read::{NUMBER_BYTES_MAX, read};
use super::write::{Style, WriteError, write};
use super::{EVENT_BYTES_MAX, event_json};
use crate::event::{Event, Field};
use crate::language::budget::{Budget, ITEMS_MAX, Limits, VALUE_DEPTH_MAX};
use crate::language::error::Reason;
use crate::print::to_text;
use crate::riemann::tests::{mistakes, printed};
use crate::value::Value;

fn check(table: &[(&str, &str)]) {
    for (expression, expected) in table {
        assert_eq!(printed(expression), *expected, "{expression}");
    }
}

/// What a JSON text is, printed, or the exception.
fn value_of(text: &str) -> String {
    match read(text, false, &mut Budget::new(Limits::EVENT)) {
        Ok(Some(value)) => to_text(&value, true),
        Ok(None) => "nothing".to_owned(),
        Err(error) => format!("!{error}"),
    }
}

#[test]
fn an_event_has_its_fields_in_order_and_its_time_in_iso_8601() {
    let mut event = Event::default();
    event.set_attribute("dc".into(), "e\"ü".into());
    event.set(Field::Service, "cpu".into());
    event.set(Field::Metric, 5.0.into());
    event.set(Field::Tags, Value::vector(["a".into()]));
    event.set(Field::Time, 1_795_205_553.999_9.into());
    assert_eq!(
        event_json(&event).unwrap(),
        r#"{"host":null,"service":"cpu","state":null,"description":null,"metric":5.0,"tags":["a"],"time":"2026-11-20T20:12:33.999Z","ttl":null,"dc":"e\"ü"}"#
    );
    event.set(Field::State, "expired".into());
    event.set(Field::Time, 0_i64.into());
    event.set_attribute("f".into(), Value::Class(&crate::object::class::STRING));
    assert_eq!(
        event_json(&event).unwrap(),
        r#"{"service":"cpu","state":"expired","metric":5.0,"tags":["a"],"time":"1970-01-01T00:00:00.000Z","dc":"e\"ü","f":"java.lang.String"}"#
    );
}

#[test]
fn numbers_of_an_event_are_those_of_java() {
    let table: &[(Value, &str)] = &[
        (3_i64.into(), "3"),
        (1e300.into(), "1.0E300"),
        (f64::NAN.into(), "\"NaN\""),
        (f64::NEG_INFINITY.into(), "\"-Infinity\""),
        (Value::of_time_us(500_000), "0.5"),
        (Value::Number(crate::number::Number::Float(0.1)), "0.1"),
    ];
    for (metric, expected) in table {
        let mut event = Event::default();
        event.set(Field::Metric, metric.clone());
        let text = event_json(&event).unwrap();
        assert!(text.contains(&format!("\"metric\":{expected},")), "{text}");
    }
}

#[test]
fn an_event_whose_json_is_too_long_has_none() {
    // Each vector has the one before it twice: 30 of them are a gibibyte of text.
    let mut value = Value::text("x");
    for _ in 0..30 {
        value = Value::vector([value.clone(), value]);
    }
    let mut event = Event::default();
    event.set(Field::Description, value);
    assert_eq!(event_json(&event), Err(WriteError::TooLong));
    let rest = event_json(&Event::default()).unwrap().len() - "null".len() + 2;
    event.set(Field::Description, Value::from("x".repeat(EVENT_BYTES_MAX - rest)));
    assert_eq!(event_json(&event).unwrap().len(), EVENT_BYTES_MAX);
    event.set(Field::Description, Value::from("x".repeat(EVENT_BYTES_MAX - rest + 1)));
    assert_eq!(event_json(&event), Err(WriteError::TooLong));
}

#[test]
fn texts_are_written_as_jackson_writes_them() {
    let style = Style { pretty: false, ascii: true, bytes_max: 100 };
    let text = write(&"\u{1}\u{8}\n/é😀\u{7f}".into(), style).unwrap();
    assert_eq!(text, "\"\\u0001\\b\\n/\\u00E9\\uD83D\\uDE00\u{7f}\"");
}

#[test]
fn json_is_read_as_jackson_reads_it() {
    let table = [
        ("", "nothing"),
        (" \n", "nothing"),
        ("null", "nil"),
        ("[1, -0, 2.5, 1e2, true, false, null]", "[1 0 2.5 100.0 true false nil]"),
        ("{\"a\" : {\"b\":[]}, \"c\":{}, \"a\":2}", "{\"a\" 2, \"c\" {}}"),
        (r#""a\"\\\/\b\f\n\r\té\uD83D\uDE00\ud800x""#, "\"a\\\"\\\\/\\b\\f\\n\\r\\té😀\u{fffd}x\""),
        ("9223372036854775808", "9223372036854775808N"),
        ("1 x", "1"),
        (
            "01",
            "!com.fasterxml.jackson.core.JsonParseException: '0' at byte 0, where a number without leading zeros should be",
        ),
        ("[1,]", "!com.fasterxml.jackson.core.JsonParseException: ']' at byte 3, where a value should be"),
        (
            "[1 2]",
            "!com.fasterxml.jackson.core.JsonParseException: '2' at byte 3, where `,` or `]` should be",
        ),
        ("{a:1}", "!com.fasterxml.jackson.core.JsonParseException: 'a' at byte 1, where a key should be"),
        ("{\"a\" 1}", "!com.fasterxml.jackson.core.JsonParseException: '1' at byte 5, where `:` should be"),
        (
            "\"a",
            "!com.fasterxml.jackson.core.JsonParseException: the end at byte 2, where the end of the text, or an escape should be",
        ),
        (
            "\"\\x\"",
            "!com.fasterxml.jackson.core.JsonParseException: 'x' at byte 2, where an escape should be",
        ),
        (
            "\"\\u12é\"",
            "!com.fasterxml.jackson.core.JsonParseException: '1' at byte 3, where four hexadecimal digits should be",
        ),
        ("-", "!com.fasterxml.jackson.core.JsonParseException: the end at byte 1, where a digit should be"),
        ("NaN", "!com.fasterxml.jackson.core.JsonParseException: 'N' at byte 0, where a value should be"),
    ];
    for (text, expected) in table {
        assert_eq!(value_of(text), expected, "{text}");
    }
}

#[test]
fn json_has_limits_on_depth_numbers_items_and_memory() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let most = VALUE_DEPTH_MAX as usize;
    assert_eq!(value_of(&nested(most)), nested(most));
    assert!(value_of(&nested(most + 1)).starts_with("!too deep"));
    assert!(value_of(&"1".repeat(NUMBER_BYTES_MAX)).ends_with('N'));
    assert!(value_of(&"1".repeat(NUMBER_BYTES_MAX + 1)).contains("a shorter number"));
    let reason = |items: usize, limits: Limits| {
        let text = format!("[{}1]", "1,".repeat(items - 1));
        let mut budget = Budget::new(limits);
        read(&text, false, &mut budget).err().map(|error| error.reason().clone())
    };
    assert!(reason(ITEMS_MAX, Limits::LOAD).is_none());
    assert!(matches!(reason(ITEMS_MAX + 1, Limits::LOAD), Some(Reason::TooMuchMemory)));
    assert!(matches!(
        reason(1_000, Limits { memory_bytes: 10_000, ..Limits::EVENT }),
        Some(Reason::TooMuchMemory)
    ));
    assert!(matches!(reason(1_000, Limits { steps: 500, ..Limits::EVENT }), Some(Reason::TooManySteps)));
}

#[test]
fn functions_of_cheshire() {
    check(&[
        (
            "(cheshire.core/generate-string {:a 1 \"b\" [nil true \\c 'd :n/e] 3 #{1/2}})",
            r#""{\"a\":1,\"b\":[null,true,\"c\",\"d\",\"n/e\"],\"3\":[0.5]}""#,
        ),
        ("(cheshire.core/generate-string (map inc [1 2]))", "\"[2,3]\""),
        ("(cheshire.core/generate-string \"é\" {:escape-non-ascii true})", "\"\\\"\\\\u00E9\\\"\""),
        (
            "(cheshire.core/generate-string {:a [1 {:b 2}] :c {} :d []} {:pretty true})",
            "\"{\\n  \\\"a\\\" : [ 1, {\\n    \\\"b\\\" : 2\\n  } ],\\n  \\\"c\\\" : { },\\n  \\\"d\\\" : [ ]\\n}\"",
        ),
        (
            "(try (cheshire.core/generate-string inc) (catch com.fasterxml.jackson.core.JsonGenerationException e (.getMessage e)))",
            "\"Cannot JSON encode object of class: clojure.lang.IFn\"",
        ),
        ("(cheshire.core/encode (java.util.Date. 0))", "\"\\\"1970-01-01T00:00:00Z\\\"\""),
        ("(cheshire.core/parse-string \"{\\\"a\\\":{\\\"b\\\":1}}\")", "{\"a\" {\"b\" 1}}"),
        ("(cheshire.core/parse-string \"{\\\"a\\\":[{\\\"b\\\":1}]}\" true)", "{:a [{:b 1}]}"),
        (
            "(cheshire.core/parse-string \"{\\\"a\\\":[{\\\"b\\\":1}]}\" (fn [k] (keyword (str k \"x\"))))",
            "{:ax [{:bx 1}]}",
        ),
        ("(cheshire.core/parse-string \"[1,[2]]\")", "(1 [2])"),
        ("(cheshire.core/parse-string-strict \"[1]\")", "[1]"),
        (
            "[(cheshire.core/parse-string nil) (cheshire.core/decode \"1\") (cheshire.core/decode-strict \"[]\")]",
            "[nil 1 []]",
        ),
        ("(try (cheshire.core/parse-string \"x\") (catch Exception e 1))", "1"),
    ]);
    for name in [
        "generate-stream",
        "parse-stream",
        "parsed-seq",
        "generate-smile",
        "parse-smile",
        "encode-stream",
        "decode-stream",
    ] {
        let text = printed(&format!(
            "(try (cheshire.core/{name} 1 2) (catch UnsupportedOperationException e (.getMessage e)))"
        ));
        assert!(text.starts_with(&format!("\"cheshire's {name} is not available: use ")), "{text}");
    }
}

#[test]
fn json_that_shares_its_parts_ends_at_the_budget() {
    let text = mistakes("(cheshire.core/generate-string (nth (iterate (fn [v] [v v]) [1]) 60))");
    assert!(text.contains("too much memory"), "{text}");
}

#[test]
fn events_and_exceptions_of_riemann_common() {
    check(&[
        (
            "(common/event-to-json (event {:host \"a\" :time 1.6}))",
            r#""{\"host\":\"a\",\"service\":null,\"state\":null,\"description\":null,\"metric\":null,\"tags\":null,\"time\":\"1970-01-01T00:00:02.000Z\",\"ttl\":null}""#,
        ),
        (
            "(common/event-to-json {:host \"a\" :time 1.5})",
            r#""{\"host\":\"a\",\"time\":\"1970-01-01T00:00:01.500Z\"}""#,
        ),
        ("(common/event-to-json {:host \"a\"})", r#""{\"host\":\"a\"}""#),
        (
            "(let [e (common/exception->event (Exception. \"x\") {:host \"h\"})] [(:service e) (:state e) (:tags e) (:description e) (:time e) (:event e)])",
            "[\"riemann exception\" \"error\" [\"exception\" \"java.lang.Exception\"] \"java.lang.Exception: x\" 0 {:host \"h\"}]",
        ),
        ("(:event (common/exception->event (Exception. \"x\")))", "nil"),
    ]);
}

#[test]
fn an_event_in_an_event_is_written_as_a_record() {
    let mut event = Event::default();
    event.set_attribute("event".into(), Value::Event(Arc::new(Event::default())));
    assert!(event_json(&event).unwrap().ends_with("\"event\":{\"host\":null,\"service\":null,\"state\":null,\"description\":null,\"metric\":null,\"tags\":null,\"time\":null,\"ttl\":null}}"));
}

proptest::proptest! {
    #[test]
    fn any_text_is_json_or_an_exception(text in ".{0,40}|[\\[\\]{}\":,0-9eE.\\\\utrnfalse-]{0,40}") {
        if let Ok(Some(value)) = read(&text, false, &mut Budget::new(Limits::EVENT)) {
            let style = Style { pretty: false, ascii: true, bytes_max: 100_000 };
            let written = write(&value, style).unwrap();
            let again = read(&written, false, &mut Budget::new(Limits::EVENT)).unwrap().unwrap();
            proptest::prop_assert_eq!(again, value);
        }
    }
}
