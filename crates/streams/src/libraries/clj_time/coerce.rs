//! `clj-time.coerce`: times from and to numbers, dates and texts.

use std::sync::Arc;

use super::format;
use super::moments::{integer, joda};
use crate::graph::Graph;
use crate::language::error::{EvalError, Outcome};
use crate::natives;
use crate::nodes::fields;
use crate::object::class;
use crate::object::time::{Moment, Zone};
use crate::print::moment;
use crate::value::Value;

natives! {
    /// The namespace.
    pub(super) NATIVES = {
        "to-date-time", 1, 1, "The time of milliseconds since 1970, of a date, or of a text in one of the usual forms.", |m, a| Ok(read(m.graph, &a[0])?.map(joda).into());
        "to-long", 1, 1, "The milliseconds since 1970.", |m, a| Ok(read(m.graph, &a[0])?.map(|time| time.milliseconds).into());
        "from-long", 1, 1, "The time of milliseconds since 1970.", |_, a| match &a[0] {
            Value::Nil => Ok(Value::Nil),
            other => Ok(joda(Moment::joda(integer(other)?, Zone::UTC))),
        };
        "to-epoch", 1, 1, "The whole seconds since 1970.", |m, a| Ok(read(m.graph, &a[0])?.map(|time| time.milliseconds / 1_000).into());
        "from-epoch", 1, 1, "The time of seconds since 1970.", |_, a| match &a[0] {
            Value::Nil => Ok(Value::Nil),
            other => {
                let milliseconds = integer(other)?.checked_mul(1_000);
                let overflow = || EvalError::throw(&class::ARITHMETIC, "integer overflow");
                Ok(joda(Moment::joda(milliseconds.ok_or_else(overflow)?, Zone::UTC)))
            }
        };
        "to-date", 1, 1, "The java.util.Date of a time.", |m, a| Ok(read(m.graph, &a[0])?.map(date).into());
        "from-date", 1, 1, "The time of a java.util.Date.", |m, a| Ok(read(m.graph, &a[0])?.map(joda).into());
        "to-timestamp", 1, 1, "The java.util.Date of a time.", |m, a| Ok(read(m.graph, &a[0])?.map(date).into());
        "to-sql-time", 1, 1, "The java.util.Date of a time.", |m, a| Ok(read(m.graph, &a[0])?.map(date).into());
        "from-sql-time", 1, 1, "The time of a java.util.Date.", |m, a| Ok(read(m.graph, &a[0])?.map(joda).into());
        "to-string", 1, 1, "A time in ISO 8601, in UTC.", |m, a| {
            let text = |time: Moment| Value::from(moment::iso(Moment { zone: Zone::UTC, ..time }));
            Ok(read(m.graph, &a[0])?.map(text).into())
        };
        "from-string", 1, 1, "The time of a text in one of the usual forms, or nil.", |m, a| {
            if !matches!(a[0], Value::Text(_) | Value::Nil) { return Err(fields::cannot("read as a time", &a[0])); }
            Ok(read(m.graph, &a[0])?.map(joda).into())
        };
    }
}

fn date(time: Moment) -> Value {
    Value::Moment(Arc::new(Moment::date(time.milliseconds)))
}

/// The time of a value; none of nil, and of a text that is no time.
fn read(graph: &mut Graph, value: &Value) -> Outcome<Option<Moment>> {
    match value {
        Value::Nil => Ok(None),
        Value::Moment(time) => Ok(Some(Moment { is_joda: true, ..**time })),
        Value::Text(text) => format::usual(graph, text),
        other => Ok(Some(Moment::joda(integer(other)?, Zone::UTC))),
    }
}
