//! JavaScript values, each with its place in the text, and their conversions.

use std::collections::BTreeMap;

use config::diagnostic::Place;

use super::number::{to_number, to_text};

/// A value and its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// The expression that gave it, in bytes of the text.
    pub place: Place,
}

/// A JavaScript value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `undefined`
    Undefined,
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// Any number, NaN and the infinities included.
    Number(f64),
    /// A text. Lone surrogates are U+FFFD.
    Text(String),
    /// A regular expression as written; opaque.
    Regex(String),
    /// A list; holes are `undefined`.
    Array(Vec<Node>),
    /// Members in JavaScript's order: integer keys ascending, then the others as first written. Keys are distinct.
    Object(Vec<Member>),
}

/// One member of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its key.
    pub key: String,
    /// Where the key was written.
    pub key_place: Place,
    /// Its value.
    pub value: Node,
}

impl Node {
    /// The member `key` of an object; none for other values.
    pub fn member(&self, key: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.key == key)
    }

    /// The members of an object; empty for other values.
    pub fn members(&self) -> &[Member] {
        match &self.value {
            Value::Object(members) => members,
            _ => &[],
        }
    }
}

impl Value {
    /// Whether JavaScript converts it to true.
    pub fn truthy(&self) -> bool {
        match self {
            Value::Undefined | Value::Null => false,
            Value::Bool(truth) => *truth,
            Value::Number(number) => *number != 0.0 && !number.is_nan(),
            Value::Text(text) => !text.is_empty(),
            Value::Regex(_) | Value::Array(_) | Value::Object(_) => true,
        }
    }

    /// `String(value)`: `1,2` for a list, `[object Object]` for an object.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) {
        match self {
            Value::Undefined => out.push_str("undefined"),
            Value::Null => out.push_str("null"),
            Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Value::Number(number) => out.push_str(&to_text(*number)),
            Value::Text(text) | Value::Regex(text) => out.push_str(text),
            Value::Array(nodes) => join(nodes, ",", out),
            Value::Object(_) => out.push_str("[object Object]"),
        }
    }

    /// `Number(value)`.
    pub fn to_number(&self) -> f64 {
        match self {
            Value::Undefined => f64::NAN,
            Value::Null => 0.0,
            Value::Bool(truth) => f64::from(u8::from(*truth)),
            Value::Number(number) => *number,
            Value::Text(text) => to_number(text),
            Value::Regex(_) | Value::Array(_) | Value::Object(_) => to_number(&self.to_text()),
        }
    }

    /// A description for messages: `the text "x"`, `a list`.
    pub fn describe(&self) -> String {
        match self {
            Value::Undefined | Value::Null | Value::Bool(_) => self.to_text(),
            Value::Number(number) => format!("the number {}", to_text(*number)),
            Value::Text(text) if text.chars().count() > 60 => "a long string".into(),
            Value::Text(text) => format!("the string {text:?}"),
            Value::Regex(_) => "a regular expression".into(),
            Value::Array(_) => "a list".into(),
            Value::Object(_) => "an object".into(),
        }
    }
}

/// `array.join(separator)`: undefined and null are empty.
pub(super) fn join(nodes: &[Node], separator: &str, out: &mut String) {
    for (at, node) in nodes.iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        if !matches!(node.value, Value::Undefined | Value::Null) {
            node.value.write(out);
        }
    }
}

/// Collects an object's members: the last of equal keys wins, at the place of the first.
#[derive(Default)]
pub(super) struct Members {
    members: Vec<Member>,
    index: BTreeMap<String, usize>,
}

impl Members {
    pub(super) fn set(&mut self, member: Member) {
        match self.index.get(&member.key) {
            Some(&at) => self.members[at] = member,
            None => {
                self.index.insert(member.key.clone(), self.members.len());
                self.members.push(member);
            }
        }
    }

    /// The object, in JavaScript's order.
    pub(super) fn finish(mut self) -> Value {
        self.members.sort_by_key(|member| array_index(&member.key).map_or(u64::MAX, u64::from));
        Value::Object(self.members)
    }
}

/// The integer of a key that JavaScript treats as an array index.
pub(super) fn array_index(key: &str) -> Option<u32> {
    let number: u32 = key.parse().ok()?;
    (number != u32::MAX && number.to_string() == key).then_some(number)
}
