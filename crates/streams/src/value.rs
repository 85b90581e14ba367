//! What the language of the configs computes with.

use std::sync::Arc;

use arcstr::ArcStr;

use crate::event::Event;
use crate::number::Number;

/// Any value of the language. Cheap to clone: whatever is large is shared.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `nil`; also what an absent field of an event is.
    #[default]
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A character.
    Char(char),
    /// A text.
    Text(ArcStr),
    /// A keyword, without its colon; with its namespace and a slash if it has one.
    Keyword(ArcStr),
    /// A persistent vector.
    Vector(Arc<rpds::VectorSync<Value>>),
    /// An event: a map whose standard fields are found without a search.
    Event(Arc<Event>),
}

const _: () = assert!(size_of::<Value>() == 16, "a value is two words");

impl Value {
    /// What `if`, `where` and queries take as true: anything but nil and false.
    pub fn is_true(&self) -> bool {
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    /// A time as events have it: Unix seconds, as an integer where it is whole, or else as an exact ratio (spec riemann §3.2).
    pub fn of_time_us(time_us: i64) -> Value {
        const SECOND_US: i64 = 1_000_000;
        Value::Number(match time_us % SECOND_US {
            0 => Number::Int(time_us / SECOND_US),
            _ => Number::Ratio(Arc::new(num_rational::Ratio::new(time_us.into(), SECOND_US.into()))),
        })
    }
}
