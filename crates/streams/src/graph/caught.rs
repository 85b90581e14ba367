//! Exceptions that streams of a config threw: as they are kept, and as events for a handler.

use std::sync::Arc;

use arcstr::literal;

use super::id::NodeId;
use crate::event::{Event, Field};
use crate::language::error::{EvalError, Reason};
use crate::object::exception::Exception;
use crate::value::Value;

/// Exceptions that nobody has taken yet, at most; further ones are counted.
pub(super) const CAUGHT_MAX: usize = 1_000;

/// What happened to a value at a stream that threw.
#[derive(Clone, Debug)]
pub struct Caught {
    /// Whose child threw.
    pub parent: NodeId,
    /// The child.
    pub node: NodeId,
    /// What it threw.
    pub error: EvalError,
    /// What it got.
    pub value: Value,
}

/// The event of an exception (spec riemann §10.6).
pub(crate) fn exception_event(error: &EvalError, value: &Value, now_us: i64) -> Value {
    let mut event = Event::default();
    event.set(Field::Service, Value::Text(literal!("riemann exception")));
    event.set(Field::State, Value::Text(literal!("error")));
    let tags = [literal!("exception"), error.class().name.into()];
    event.set(Field::Tags, Value::vector(tags.map(Value::Text)));
    event.set(Field::Time, Value::of_time_us(now_us));
    event.set(Field::Description, Value::Text(error.to_string().into()));
    event.set_attribute(literal!("event"), value.clone());
    event.set_attribute(literal!("exception"), Value::Exception(exception_of(error)));
    Value::Event(Arc::new(event))
}

/// The exception as a value; a limit as one of the class that says the same.
fn exception_of(error: &EvalError) -> Arc<Exception<Value>> {
    match error.reason() {
        Reason::Thrown(exception) => Arc::clone(exception),
        Reason::TooManySteps | Reason::TooDeep | Reason::TooMuchMemory => {
            Arc::new(Exception::new(error.class(), error.to_string()))
        }
    }
}
