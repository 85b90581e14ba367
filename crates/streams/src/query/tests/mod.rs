mod errors;
mod expressions;
mod properties;
mod vectors;

use std::sync::Arc;

use super::{Meter, Query};
use crate::event::{Event, Field};
use crate::number::Number;
use crate::value::Value;

/// A text as a value.
pub(super) fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// A vector of texts.
pub(super) fn tags(tags: &[&str]) -> Value {
    Value::Vector(Arc::new(tags.iter().map(|tag| text(tag)).collect()))
}

/// An event with a host, a service and a state.
pub(super) fn event(host: Option<&str>, service: &str, state: &str, metric: Number) -> Event {
    let mut event = Event::default();
    event.set(Field::Host, host.map_or(Value::Nil, text));
    event.set(Field::Service, text(service));
    event.set(Field::State, text(state));
    event.set(Field::Metric, Value::Number(metric));
    event.set(Field::Time, Value::Number(Number::Int(1_700_000_000)));
    event.set(Field::Ttl, Value::Number(Number::Float(300.0)));
    event
}

/// Whether the event matches the query.
fn matches(query: &str, event: &Event) -> bool {
    let query = Query::new(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    query.matches(event, &mut Meter::default())
}
