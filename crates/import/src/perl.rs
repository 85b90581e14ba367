//! Reads Net::Statsd::Server's configuration files: JSON with `#` comments and trailing commas, without single quotes or
//! bare keys (spec statsd §10.2).

use super::javascript::{Node, TEXT_BYTES_MAX};
use super::json::{self, Grammar};
use config::diagnostic::{Code, Diagnostic};

/// Reads a file's text.
///
/// # Errors
/// One located diagnostic with the first mistake.
pub fn read(text: &str) -> Result<Node, Vec<Diagnostic>> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("the file is longer than {TEXT_BYTES_MAX} bytes");
        return Err(vec![Diagnostic::error(Code::ImportSyntax, message)]);
    }
    json::read(text, Grammar::Relaxed).map_err(|fault| {
        let diagnostic = Diagnostic::error(Code::ImportSyntax, fault.message).at(fault.place);
        vec![match fault.hint {
            Some(hint) => diagnostic.hint(hint),
            None => diagnostic,
        }]
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::javascript::{DEPTH_MAX, Value};

    #[test]
    fn relaxed_json_is_read() {
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
            assert_eq!(read(text).map(|node| node.value), Ok(want.clone()), "text {text}");
        }
        let node = read(r#"{"a": [1, 2,], "b": {"c": 3,}, "a": 4,}"#).unwrap();
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
            ("[0x10]", 2),
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
            let found = read(text).expect_err(text);
            let place = found[0].place.unwrap();
            assert_eq!((place.start, found[0].code), (start, Code::ImportSyntax), "text {text:?} {found:?}");
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(read(&deep(DEPTH_MAX)).is_ok());
        assert!(read(&deep(DEPTH_MAX + 1)).is_err());
        let long = |n: usize| format!("1{}", " ".repeat(n - 1));
        assert!(read(&long(TEXT_BYTES_MAX)).is_ok());
        assert!(read(&long(TEXT_BYTES_MAX + 1)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_rejected(text in "(?s)([\\[\\]{}\",:#\\\\ue0-9.\\- \n]|true|null|.){0,60}") {
            if let Err(found) = read(&text) {
                let place = found[0].place.unwrap();
                prop_assert!(text.get(place.start..place.end).is_some());
            }
        }
    }
}
