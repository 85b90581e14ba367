//! Functions of the config among what a stream is made with: streams without one run natively.

use arcstr::ArcStr;

use crate::value::Value;

/// Collections in each other that are looked into.
const DEPTH_MAX: u32 = 16;

/// A function that the config wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// Its name, if it has one.
    pub name: Option<ArcStr>,
}

impl Called {
    /// The first function of the config in values that a stream is made with.
    pub fn of(values: &[Value]) -> Option<Called> {
        Called::among(values.iter(), DEPTH_MAX)
    }

    fn among<'v>(mut values: impl Iterator<Item = &'v Value>, depth: u32) -> Option<Called> {
        values.find_map(|value| Called::within(value, depth))
    }

    fn within(value: &Value, depth: u32) -> Option<Called> {
        let depth = depth.checked_sub(1)?;
        match value {
            Value::Closure(closure) => {
                Some(Called { name: closure.code.name(closure.index).map(ArcStr::from) })
            }
            Value::Var(var) => Called::among(var.get().iter(), depth),
            Value::Bound(bound) => Called::among(bound.arguments.iter(), depth),
            Value::List(list) => Called::among(list.iter(), depth),
            Value::Vector(vector) => Called::among(vector.iter(), depth),
            Value::Set(set) => Called::among(set.iter(), depth),
            Value::Map(map) => map.iter().find_map(|(_, value)| Called::within(value, depth)),
            _ => None,
        }
    }
}
