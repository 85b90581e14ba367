//! `riemann.common`: events, times, and sets of tags (spec riemann §§3.3, 9.2, 12.1).

use std::sync::Arc;

use arcstr::ArcStr;

use crate::collections::element::Element;
use crate::event::{Event, Field};
use crate::graph::{Graph, Node, Turn};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::{ANY, Machine};
use crate::natives;
use crate::nodes::fields;
use crate::nodes::predicate::{Matcher, is_tagged, tags_of};
use crate::number::Number;
use crate::object::time::Moment;
use crate::print::to_str;
use crate::value::Value;

natives! {
    /// Predicates that are also names of `riemann.streams`.
    pub(super) PREDICATES = {
        "expired?", 1, 1, "Whether an event has expired.", is_expired;
        "tagged-all?", 2, 2, "Whether an event has all tags.", |_, a| Ok(is_tagged(&a[1], &tags_of(&a[0])?, true).into());
        "tagged-any?", 2, 2, "Whether an event has one of the tags.", |_, a| Ok(is_tagged(&a[1], &tags_of(&a[0])?, false).into());
    }

    /// The namespace.
    pub(super) NATIVES = {
        "event", 1, 1, "The event of a map; its time is whole seconds, or else the present one.", event;
        "event-to-json", 1, 1, "The JSON of an event, its time in ISO 8601.", event_to_json;
        "exception->event", 1, 2, "The event of an exception, and perhaps of the event that it came from.", |m, a| {
            let Value::Exception(thrown) = &a[0] else { return Err(fields::cannot("make an event of", &a[0])) };
            let error = EvalError::new(crate::language::error::Reason::Thrown(Arc::clone(thrown)));
            let original = a.get(1).cloned().unwrap_or_default();
            Ok(crate::graph::exception_event(&error, &original, m.graph.now_us()))
        };
        "expired?", 1, 1, "Whether an event has expired.", is_expired;
        "expire", 1, 1, "The expired event of an event.", |m, a| Ok(fields::expire(&a[0], m.graph.now_us()));
        "match", 2, 2, "Whether a value matches a pattern: a regular expression, a map, a function, a set, or an equal value.", |m, a| matches(m.graph, &a[0], &a[1]);
        "member?", 2, 2, "Whether a value is in a list.", |m, a| {
            let wanted = m.realize(&a[0])?;
            Ok(m.collect(&a[1])?.iter().any(|item| item.equal(&wanted)).into())
        };
        "subset?", 2, 2, "Whether all values of a list are in another one.", |m, a| {
            let (part, whole) = (m.collect(&a[0])?, m.collect(&a[1])?);
            m.budget.step(part.len().saturating_mul(whole.len()))?;
            Ok(part.iter().all(|one| whole.iter().any(|other| one.equal(other))).into())
        };
        "overlap?", 2, 2, "Whether two lists have a value in common.", |m, a| overlap(m, a).map(Value::Bool);
        "disjoint?", 2, 2, "Whether two lists have no value in common.", |m, a| overlap(m, a).map(|overlap| Value::Bool(!overlap));
        "approx-equal", 2, 3, "Whether two numbers differ by less than a hundredth, or the given part.", |_, a| {
            let (x, y) = (fields::number(&a[0])?.as_f64(), fields::number(&a[1])?.as_f64());
            let tolerance = match a.get(2) { Some(given) => fields::number(given)?.as_f64(), None => 0.01 };
            let ratio = if y == 0.0 { 0.0 } else { x / y };
            Ok((x == y || (ratio > 1.0 - tolerance && ratio < 1.0 + tolerance)).into())
        };
        "re-matches?", 2, 2, "The first place where a regular expression matches; nil of nil.", |m, a| match &a[1] {
            Value::Nil => Ok(Value::Nil),
            _ => m.call_core("re-find", a),
        };
        "unix-to-iso8601", 1, 1, "A time in Unix seconds as ISO 8601.", |_, a| {
            let us = fields::to_us(fields::number(&a[0])?);
            let time = jiff::Timestamp::from_millisecond(us.div_euclid(1_000)).map_err(|_| EvalError::illegal_argument("this time is too far away"))?;
            Ok(Value::from(format!("{time:.3}")))
        };
        "iso8601->unix", 1, 1, "The Unix seconds of a time in ISO 8601; without an offset it is in UTC.", |m, a| {
            let text = to_str(&a[0]);
            let time = super::clj_time::usual(m.graph, &text)?;
            let time = time.ok_or_else(|| EvalError::illegal_argument(format!("Invalid format: \"{text}\"")))?;
            Ok(time.milliseconds.div_euclid(1_000).into())
        };
        "time-at", 1, 1, "The date of a time in Unix seconds.", |_, a| {
            let us = fields::to_us(fields::number(&a[0])?);
            Ok(Value::Moment(Arc::new(Moment::date(us.div_euclid(1_000)))))
        };
        "ensure-event-time", 1, 1, "The event, with the present time if it has none.", |m, a| {
            let mut event = a[0].clone();
            if fields::get(&event, Field::Time).is_nil() {
                fields::set(&mut event, Field::Time, Value::of_time_us(m.graph.now_us()))?;
            }
            Ok(event)
        };
        "pkey", 1, 1, "Host and service of an event.", |_, a| {
            Ok(Value::vector([Field::Host, Field::Service].map(|field| fields::get(&a[0], field).clone())))
        };
        "middle", 1, 1, "The value in the middle of a list.", |m, a| {
            let all = m.collect(&a[0])?;
            Ok(all.get(all.len() / 2).cloned().unwrap_or_default())
        };
        "custom-attributes", 1, 1, "The fields of an event besides the standard ones.", |_, a| Ok(match &a[0] {
            Value::Event(event) => Value::map(event.attributes().iter().map(|(name, value)| (Value::Keyword(name.clone()), value.clone()))),
            Value::Map(map) => Value::map(map.iter().filter(|(key, _)| !is_standard(key)).map(|(key, value)| (key.clone(), value.clone()))),
            _ => Value::map([]),
        });
        "truncate", 2, 2, "A text, cut to so many UTF-16 units.", |m, a| {
            let (text, most) = (to_str(&a[0]), length(&a[1])?);
            m.budget.step(1 + text.len() / 64)?;
            let mut units = 0;
            let is_past = |part: char| { units += part.len_utf16(); units > most };
            let end = text.find(is_past).unwrap_or(text.len());
            Ok(Value::from(&text[..end]))
        };
        "truncate-bytes", 2, 2, "A text, cut to so many bytes of UTF-8.", |m, a| {
            let (text, most) = (to_str(&a[0]), length(&a[1])?);
            m.budget.step(1 + text.len() / 64)?;
            Ok(Value::from(&text[..text.floor_char_boundary(most.min(text.len()))]))
        };
        "localhost", 0, 0, "The name of this machine.", |m, _| Ok(Value::from(m.host.host_name()));
        "deprecated", 1, ANY, "The value of its last argument.", |_, a| Ok(a[a.len() - 1].clone());
    }
}

fn is_standard(key: &Value) -> bool {
    matches!(key, Value::Keyword(name) if Field::of(name).is_some())
}

fn is_expired(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    fields::is_expired(&arguments[0], machine.graph.now_us()).map(Value::Bool)
}

/// `(event-to-json event)`
fn event_to_json(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let mut event = machine.realize(&arguments[0])?;
    if let Value::Event(event) = &event {
        return crate::json::charged(&mut machine.budget, |_| crate::json::event_json(event))
            .map(Value::from);
    }
    let time = crate::json::write::iso_time(fields::get(&event, Field::Time));
    if !time.is_nil() {
        fields::set(&mut event, Field::Time, time)?;
    }
    super::cheshire::generate(machine, &mut [event])
}

fn overlap(machine: &mut Machine<'_>, arguments: &[Value]) -> Outcome<bool> {
    let (a, b) = (machine.collect(&arguments[0])?, machine.collect(&arguments[1])?);
    machine.budget.step(a.len().saturating_mul(b.len()))?;
    Ok(a.iter().any(|one| b.iter().any(|other| one.equal(other))))
}

/// `(event map)`
fn event(machine: &mut Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let mut event = match &arguments[0] {
        Value::Event(event) => Event::clone(event),
        Value::Map(map) => {
            let mut event = Event::default();
            for (key, value) in map.iter() {
                let (Value::Keyword(name) | Value::Text(name)) = key else {
                    return Err(EvalError::illegal_argument("the keys of an event are keywords"));
                };
                match Field::of(name) {
                    Some(field) => event.set(field, value.clone()),
                    None => event.set_attribute(ArcStr::clone(name), value.clone()),
                }
            }
            event
        }
        Value::Nil => Event::default(),
        other => return Err(fields::cannot("make an event of", other)),
    };
    let seconds = match event.get(Field::Time) {
        Value::Nil => machine.graph.now_us(),
        time => fields::to_us(fields::number(time)?),
    };
    // Rounded, half up, as Java does it.
    event.set(Field::Time, seconds.saturating_add(500_000).div_euclid(1_000_000).into());
    Ok(Value::Event(Arc::new(event)))
}

/// Runs a matcher within a turn, which it needs to call functions.
#[derive(Debug)]
struct Matching(Matcher);

impl Node for Matching {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.0.is_match(value, turn)
    }
}

fn matches(graph: &mut Graph, pattern: &Value, value: &Value) -> Outcome {
    let node = graph.add(Box::new(Matching(Matcher::of(pattern))), &[]);
    let matched = graph.push(node, value);
    graph.remove(node);
    matched.map(Value::Bool)
}

/// A length; 0 for one under 0.
fn length(value: &Value) -> Outcome<usize> {
    match fields::number(value)? {
        Number::Int(length) => Ok(usize::try_from((*length).max(0)).unwrap_or(usize::MAX)),
        _ => Err(fields::cannot("use as a length", value)),
    }
}

/// A number as events have it: of a metric for a text.
pub(super) fn plain_number(number: &Number) -> Number {
    match number {
        Number::Ratio(_) | Number::Big(_) => Number::Double(number.as_f64()),
        Number::Int(_) | Number::Float(_) | Number::Double(_) => number.clone(),
    }
}
