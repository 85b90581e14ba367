//! Files of Net::Statsd::Server: values and mistakes by table, random text.

use proptest::prelude::*;

use super::*;
use config::diagnostic::Code;

#[test]
fn relaxed_json_is_perl() {
    let table: &[(&str, Value)] = &[
        ("null # end", Value::Null),
        ("\u{feff}# it's\n true", Value::Bool(true)),
        ("-0.5e+1", Value::Number(-5.0)),
        (r#""a\u0041\n\/\ud83d\ude00""#, Value::Text("aA\n/\u{1f600}".into())),
        ("\"a\tb # c\"", Value::Text("a\tb # c".into())),
        (r#""\ud83d\u0041""#, Value::Text("\u{fffd}A".into())),
        ("[ # nothing\n]", Value::Array(Vec::new())),
        ("{}", Value::Object(Vec::new())),
    ];
    for (text, want) in table {
        assert_eq!(perl(text).map(|node| node.value), Ok(want.clone()), "text {text}");
    }
    let node = perl(r#"{"a": [1, 2,], "b": {"c": 3,}, "a": 4,}"#).unwrap();
    assert_eq!(node.members().len(), 2);
    assert_eq!(node.member("a").map(|member| &member.value.value), Some(&Value::Number(4.0)));
}

#[test]
fn mistakes_are_located() {
    let table = [
        ("", 0),
        ("{\"a\": 1 \"b\": 2}", 8),
        ("{\"a\" 1}", 5),
        ("{,}", 1),
        ("[,]", 1),
        ("[1,,2]", 3),
        ("{a: 1}", 1),
        ("['a']", 1),
        ("[1] // x", 4),
        ("[01]", 1),
        ("[1.]", 1),
        ("[.5]", 1),
        ("[+1]", 1),
        ("[1e]", 1),
        ("[0x10]", 1),
        ("[True]", 1),
        ("[nullx]", 1),
        ("\"abc", 0),
        ("\"a\nb\"", 2),
        (r#""\x""#, 1),
        (r#""\u12g4""#, 1),
        ("[1", 2),
        ("{\"a\": 1", 7),
        ("1 2", 2),
    ];
    for (text, start) in table {
        let found = perl(text).expect_err(text);
        let place = found[0].place.unwrap();
        assert_eq!((place.start, found[0].code), (start, Code::ImportSyntax), "text {text:?} {found:?}");
    }
}

#[test]
fn depth_and_length_are_bounded() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(perl(&deep(DEPTH_MAX)).is_ok());
    assert!(perl(&deep(DEPTH_MAX + 1)).is_err());
    let long = |n: usize| format!("1{}", " ".repeat(n - 1));
    assert!(perl(&long(TEXT_BYTES_MAX)).is_ok());
    assert!(perl(&long(TEXT_BYTES_MAX + 1)).is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_or_rejected(text in "(?s)([\\[\\]{}\",:#\\\\ue0-9.\\- \n]|true|null|.){0,60}") {
        if let Err(found) = perl(&text) {
            let place = found[0].place.unwrap();
            prop_assert!(text.get(place.start..place.end).is_some());
        }
    }
}
