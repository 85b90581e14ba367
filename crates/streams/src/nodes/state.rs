//! What a node remembers, as a map of the language, and back.
//!
//! Readers take whatever they get: what does not fit is as if it was not there.

use crate::graph::{TimerId, Turn};
use crate::number::Number;
use crate::value::Value;

/// A map of these entries.
pub(super) fn saved<const N: usize>(entries: [(&'static str, Value); N]) -> Value {
    Value::map(entries.map(|(name, value)| (Value::keyword(name), value)))
}

/// An entry of such a map; nil if it is missing.
pub(super) fn entry(saved: &Value, name: &str) -> Value {
    match saved {
        Value::Map(map) => map.get(&Value::keyword(name)).cloned().unwrap_or_default(),
        _ => Value::Nil,
    }
}

/// An entry that is an integer.
pub(super) fn int(saved: &Value, name: &str) -> Option<i64> {
    match entry(saved, name) {
        Value::Number(Number::Int(value)) => Some(value),
        _ => None,
    }
}

/// An entry that is a count.
pub(super) fn count(saved: &Value, name: &str) -> Option<usize> {
    int(saved, name).and_then(|count| usize::try_from(count).ok())
}

/// An entry that is a number.
pub(super) fn number(saved: &Value, name: &str) -> Option<Number> {
    entry(saved, name).as_number().cloned()
}

/// An entry that is a vector; empty if it is missing.
pub(super) fn values(saved: &Value, name: &str) -> Vec<Value> {
    match entry(saved, name) {
        Value::Vector(values) => values.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

/// Two values of a vector of two.
pub(super) fn pair(value: &Value) -> Option<(Value, Value)> {
    match value {
        Value::Vector(pair) if pair.len() == 2 => Some((pair.first()?.clone(), pair.last()?.clone())),
        _ => None,
    }
}

/// A vector of copies.
pub(super) fn vector<'v>(values: impl IntoIterator<Item = &'v Value>) -> Value {
    Value::vector(values.into_iter().cloned())
}

/// A timer, or none.
pub(super) fn of_timer(timer: Option<TimerId>) -> Value {
    timer.map_or(Value::Nil, TimerId::save)
}

/// An entry that is a timer: sets it, after the one that `start` may have set is cancelled. It is due `after_us` from now at the latest.
pub(super) fn timer(
    (saved, name): (&Value, &str),
    old: Option<TimerId>,
    after_us: i64,
    turn: &mut Turn<'_>,
) -> Option<TimerId> {
    if let Some(old) = old {
        turn.cancel_timer(old);
    }
    TimerId::of(&entry(saved, name)).map(|timer| turn.set_timer_again(timer, after_us))
}
