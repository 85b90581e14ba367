//! Values as times, zones and numbers of clj-time.

use std::sync::Arc;

use crate::graph::Graph;
use crate::language::classes::cannot_cast;
use crate::language::error::{EvalError, Outcome};
use crate::nodes::fields;
use crate::number::Number;
use crate::object::class;
use crate::object::time::{Moment, Zone};
use crate::value::Value;

pub(super) fn joda(moment: Moment) -> Value {
    Value::Moment(Arc::new(moment))
}

/// The present time, in UTC.
pub(super) fn now(graph: &Graph) -> Moment {
    Moment::joda(graph.now_us().div_euclid(1_000), Zone::UTC)
}

pub(super) fn moment(value: &Value) -> Outcome<Moment> {
    match value {
        Value::Moment(moment) => Ok(**moment),
        other => Err(cannot_cast(other, &class::DATE_TIME)),
    }
}

pub(super) fn zoned(value: &Value) -> Outcome<jiff::ZonedDateTime> {
    moment(value)?.zoned().ok_or_else(too_far)
}

pub(super) fn too_far() -> EvalError {
    EvalError::throw(&class::ARITHMETIC, "a time past the calendar: years are from -9999 to 9999")
}

pub(super) fn zone(value: &Value) -> Outcome<Zone> {
    let Value::Text(name) = value else { return Err(fields::cannot("use as a time zone", value)) };
    let unknown = || EvalError::illegal_argument(format!("The datetime zone id '{name}' is not recognised"));
    Zone::find(name).ok_or_else(unknown)
}

/// An integer that must be one.
pub(super) fn integer(value: &Value) -> Outcome<i64> {
    match fields::number(value)? {
        Number::Int(value) => Ok(*value),
        _ => Err(fields::cannot("use as an integer", value)),
    }
}

/// A field of a map, by its name.
pub(super) fn named<'v>(value: &'v Value, name: &str) -> &'v Value {
    match value {
        Value::Map(map) => map.get(&Value::keyword(name)).unwrap_or(&Value::Nil),
        _ => &Value::Nil,
    }
}
