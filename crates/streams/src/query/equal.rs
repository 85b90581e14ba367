//! Clojure's `=` for the values of events (spec riemann §3.2).

use std::sync::Arc;

use crate::event::{Event, Field};
use crate::value::Value;

/// Deepest nesting of vectors and events that is compared; deeper ones are not equal.
const DEPTH_MAX: usize = 64;

/// Whether two values are equal for Clojure's `=`: numbers by value within their sort, everything else by contents.
pub fn equal(a: &Value, b: &Value) -> bool {
    equal_to_depth(a, b, DEPTH_MAX)
}

fn equal_to_depth(a: &Value, b: &Value, depth: usize) -> bool {
    match (a, b) {
        (Value::Nil, other) => matches!(other, Value::Nil),
        (Value::Bool(a), other) => matches!(other, Value::Bool(b) if a == b),
        (Value::Number(a), other) => matches!(other, Value::Number(b) if a.equal(b)),
        (Value::Char(a), other) => matches!(other, Value::Char(b) if a == b),
        (Value::Text(a), other) => matches!(other, Value::Text(b) if a == b),
        (Value::Keyword(a), other) => matches!(other, Value::Keyword(b) if a == b),
        (Value::Vector(a), Value::Vector(b)) => {
            let same = |(a, b)| equal_to_depth(a, b, depth - 1);
            Arc::ptr_eq(a, b) || depth > 0 && a.len() == b.len() && a.iter().zip(b.iter()).all(same)
        }
        (Value::Event(a), Value::Event(b)) => Arc::ptr_eq(a, b) || depth > 0 && events(a, b, depth - 1),
        (Value::Vector(_) | Value::Event(_), _) => false,
    }
}

/// Whether two events have the same fields. The order of custom fields does not matter.
fn events(a: &Event, b: &Event, depth: usize) -> bool {
    let standard = Field::ALL.into_iter().all(|field| equal_to_depth(a.get(field), b.get(field), depth));
    let mut custom = a.attributes().iter().map(|(name, value)| (value, b.attribute(name)));
    standard
        && a.attributes().len() == b.attributes().len()
        && custom.all(|(value, other)| other.is_some_and(|other| equal_to_depth(value, other, depth)))
}
