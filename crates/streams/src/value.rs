//! What the language of the configs computes with.
//!
//! Not here: equality and order (`compare`), hashes (`hash`), text forms (`print`).

use std::sync::Arc;

use arcstr::ArcStr;

use crate::collections::list::List;
use crate::collections::map::Map;
use crate::collections::seq::{Lazy, Seq};
use crate::collections::set::Set;
use crate::collections::vector::Vector;
use crate::event::Event;
use crate::function::{Bound, Closure, Native};
use crate::graph::NodeId;
use crate::number::Number;
use crate::object::class::Class;
use crate::object::exception::Exception;
use crate::object::pattern::Pattern;
use crate::object::reference::{Atom, Var};
use crate::object::time::Moment;
use crate::symbol::Symbol;

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
    /// A symbol.
    Symbol(Arc<Symbol>),
    /// A persistent list.
    List(Arc<List<Value>>),
    /// A persistent vector.
    Vector(Arc<Vector<Value>>),
    /// A persistent map.
    Map(Arc<Map<Value>>),
    /// A persistent set.
    Set(Arc<Set<Value>>),
    /// A sequence of another sort, perhaps without an end.
    Seq(Arc<Seq<Value>>),
    /// An event: a map whose standard fields are found without a search.
    Event(Arc<Event>),
    /// A regular expression.
    Pattern(Arc<Pattern>),
    /// A function that a config wrote.
    Closure(Arc<Closure<Value>>),
    /// A function of ours.
    Native(&'static Native),
    /// A function of ours with values that it was made with: `(partial f 1)`.
    Bound(Arc<Bound<Value>>),
    /// A stream, by its node in the graph: callable.
    Stream(NodeId),
    /// A global name: `#'f`.
    Var(Arc<Var<Value>>),
    /// A cell whose value changes: `atom`, `ref`, `volatile!`, `promise`.
    Atom(Arc<Atom<Value>>),
    /// `delay`.
    Delay(Arc<Lazy<Value>>),
    /// An exception.
    Exception(Arc<Exception<Value>>),
    /// A Java class.
    Class(&'static Class),
    /// A namespace, by its name.
    Namespace(ArcStr),
    /// A time: `java.util.Date`, or a date of clj-time.
    Moment(Arc<Moment>),
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

    /// Whether it is nil.
    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    /// A text.
    pub fn text(text: &str) -> Value {
        Value::Text(ArcStr::from(text))
    }

    /// A keyword, without its colon.
    pub fn keyword(name: &str) -> Value {
        Value::Keyword(ArcStr::from(name))
    }

    /// A symbol without a place.
    pub fn symbol(name: &str) -> Value {
        Value::Symbol(Arc::new(Symbol::new(ArcStr::from(name))))
    }

    /// A vector of these values.
    pub fn vector(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Vector(Arc::new(items.into_iter().collect()))
    }

    /// A list of these values.
    pub fn list(items: impl IntoIterator<Item = Value>) -> Value {
        Value::List(Arc::new(items.into_iter().collect()))
    }

    /// A map of these entries.
    pub fn map(entries: impl IntoIterator<Item = (Value, Value)>) -> Value {
        Value::Map(Arc::new(entries.into_iter().collect()))
    }

    /// A set of these values.
    pub fn set(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Set(Arc::new(items.into_iter().collect()))
    }

    /// The name of a symbol.
    pub fn as_symbol(&self) -> Option<&ArcStr> {
        match self {
            Value::Symbol(symbol) => Some(&symbol.name),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&ArcStr> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Number(Number::Int(value))
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Value {
        Value::Number(Number::Int(i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Number(Number::Double(value))
    }
}

impl From<Number> for Value {
    fn from(value: Number) -> Value {
        Value::Number(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::text(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(ArcStr::from(text))
    }
}

impl<V: Into<Value>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Value {
        value.map_or(Value::Nil, Into::into)
    }
}
