//! What a config would send, as texts for people: bodies of requests as JSON, without secrets.

use percent_encoding::percent_decode_str;

use super::declared::{Output, PostForm};
use super::posts::{BODY, PATH};
use crate::collections::map::Map;
use crate::event::Event;
use crate::json::read::read;
use crate::json::write::{Style, write_object};
use crate::json::{self, EVENT_BYTES_MAX};
use crate::language::budget::{Budget, Limits};
use crate::print::to_str;
use crate::value::Value;

/// Ends of the names of members that are secrets.
const SECRETS: [&str; 12] = [
    "token",
    "password",
    "passwd",
    "secret",
    "credentials",
    "authorization",
    "api_key",
    "apikey",
    "app_key",
    "access_key",
    "routing_key",
    "service_key",
];

/// In the place of a secret.
const MASK: &str = "***";

/// What is sent of an event to an output.
pub(super) fn shown(output: Option<&Output>, event: &Event) -> String {
    let members: Vec<(&str, Value)> = match output {
        Some(Output::Post(post)) if post.form == PostForm::Body => {
            vec![("path", event.named(&PATH).clone()), ("body", body(&to_str(event.named(&BODY))))]
        }
        Some(Output::Mail(_)) => {
            let all = event.attributes().iter();
            all.map(|(name, value)| (name.as_str(), value.clone())).collect()
        }
        Some(Output::Post(_) | Output::Graphite { .. } | Output::Riemann { .. } | Output::Named(_))
        | None => {
            return json::event_json(event).unwrap_or_else(|error| format!("an event: {error}"));
        }
    };
    let members = members.iter().filter(|(_, value)| !value.is_nil()).map(|(name, value)| (*name, value));
    write_object(members, Style::plain(EVENT_BYTES_MAX)).unwrap_or_else(|error| format!("a request: {error}"))
}

/// The body of a request: JSON, lines of JSON, a form, or another text.
fn body(text: &str) -> Value {
    let text = text.trim();
    let is_json = |text: &str| text.starts_with(['{', '[']);
    if is_json(text) {
        let lines: Vec<Value> = text.lines().map(json_value).collect();
        return if lines.len() == 1 {
            lines.into_iter().next().unwrap_or_default()
        } else {
            Value::vector(lines)
        };
    }
    let pairs: Option<Vec<(&str, &str)>> = text.split('&').map(|pair| pair.split_once('=')).collect();
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.[]%".contains(&byte))
    };
    let Some(pairs) = pairs.filter(|pairs| pairs.iter().all(|(name, _)| is_name(name))) else {
        return Value::text(text);
    };
    let pairs = pairs.into_iter().map(|(name, value)| {
        let value = percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned();
        let shown = if is_json(&value) { json_value(&value) } else { Value::from(value) };
        (Value::text(name), if is_secret(name) { Value::text(MASK) } else { shown })
    });
    Value::map(pairs)
}

/// Without its secrets. What cannot be read is not shown, as it may have some.
fn json_value(text: &str) -> Value {
    match read(text, false, &mut Budget::new(Limits::LOAD)) {
        Ok(value) => masked(&value.unwrap_or_default()),
        Err(_) => Value::from(format!("{} bytes", text.len())),
    }
}

/// Values of JSON have no other collections than vectors and maps.
fn masked(value: &Value) -> Value {
    match value {
        Value::Vector(items) => Value::vector(items.iter().map(masked)),
        Value::Map(map) => {
            let mut made = Map::default();
            for (key, value) in map.iter() {
                let is_secret = is_secret(&to_str(key));
                made.insert(key.clone(), if is_secret { Value::text(MASK) } else { masked(value) });
            }
            Value::Map(std::sync::Arc::new(made))
        }
        other => other.clone(),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    SECRETS.iter().any(|end| name.ends_with(end))
}

/// A text without the places `file:line:column` of these files; `None` if it has none.
pub(super) fn without_places(text: &str, files: &[String]) -> Option<String> {
    let mut found: Option<String> = None;
    for file in files {
        let text = found.as_deref().unwrap_or(text);
        let (mut made, mut rest, mut is_found) = (String::new(), text, false);
        while let Some(at) = rest.find(file.as_str()) {
            let (before, from) = rest.split_at(at);
            let is_part = before.ends_with(|c: char| c.is_alphanumeric() || "/.-_".contains(c));
            let len = if is_part { 0 } else { place_len(&from[file.len()..]) };
            made.push_str(before);
            let end = file.len() + len;
            made.push_str(if len > 0 { "…" } else { &from[..end] });
            is_found |= len > 0;
            rest = &from[end..];
        }
        if is_found {
            made.push_str(rest);
            found = Some(made);
        }
    }
    found
}

/// The length of `:12:3`; 0 of anything else.
fn place_len(text: &str) -> usize {
    let mut len = 0;
    for _ in 0..2 {
        let Some(rest) = text[len..].strip_prefix(':') else { return 0 };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return 0;
        }
        len += 1 + digits;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_shown_as_json_without_secrets() {
        for (text, want) in [
            (
                "{\"routing_key\":\"s\",\"dedup_key\":\"d\",\"payload\":{\"Token\":1,\"n\":[1.5]}}",
                "{\"routing_key\":\"***\",\"dedup_key\":\"d\",\"payload\":{\"Token\":\"***\",\"n\":[1.5]}}",
            ),
            ("{\"index\":1}\n{\"a\":2}\n", "[{\"index\":1},{\"a\":2}]"),
            (
                "payload=%7B%22a%22%3A1%7D&api-key=s&c=d+e",
                "{\"payload\":{\"a\":1},\"api-key\":\"***\",\"c\":\"d e\"}",
            ),
            ("cpu 5\n", "\"cpu 5\""),
            ("{\"token\":\"s\"", "\"12 bytes\""),
        ] {
            let shown = json::write::write(&body(text), Style::plain(1_000));
            assert_eq!(shown.as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn places_are_left_out_of_texts_where_they_name_a_file() {
        let files = ["a".to_owned(), "b/c.clj".to_owned()];
        for (text, want) in [
            ("x in a:1:2 (b/c.clj:30:4)", Some("x in … (…)")),
            ("at 10:11:12, data:1:2, a:1, a:b:2", None),
            ("a:1:2a:3:4", Some("……")),
        ] {
            assert_eq!(without_places(text, &files).as_deref(), want, "{text}");
        }
    }
}
