//! A tree with places for TOML and YAML: the contents of a file before its options are checked.

use crate::diagnostic::Place;

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
    /// A string in which variables were replaced.
    pub(crate) substituted: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    /// `whole` is set when it was written as a whole number that fits.
    Number {
        value: f64,
        whole: Option<i64>,
    },
    Flag(bool),
    List(Vec<Node>),
    /// In the order of the file.
    Table(Vec<Entry>),
    /// YAML's `null`, or a key without a value.
    Nothing,
    /// TOML only; no option accepts one.
    Date,
}

/// `key = value`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) node: Node,
}

impl Value {
    /// For messages: `a string`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Number { whole: Some(_), .. } => "a whole number",
            Value::Number { .. } => "a number",
            Value::Flag(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Nothing => "nothing",
            Value::Date => "a date",
        }
    }
}
