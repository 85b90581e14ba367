//! Functions that streams take as arguments: those that only read fields run natively.

use arcstr::ArcStr;

use super::fields;
use crate::event::Field;
use crate::graph::Turn;
use crate::language::error::Outcome;
use crate::value::Value;

/// A function of one value.
#[derive(Clone, Debug)]
pub enum Function {
    /// A keyword that names a standard field.
    Field(Field),
    /// Another keyword.
    Attribute(ArcStr),
    /// A list of functions, for `by`: gives the vector of their values.
    Keys(Box<[Function]>),
    /// Any other value that can be called.
    Value(Value),
}

impl Function {
    /// The function that a value is.
    pub fn of(value: &Value) -> Function {
        match value {
            Value::Keyword(name) => match Field::of(name) {
                Some(field) => Function::Field(field),
                None => Function::Attribute(name.clone()),
            },
            other => Function::Value(other.clone()),
        }
    }

    /// The same for the fields of `by`, where a vector or a list of functions is one too.
    pub fn of_keys(value: &Value) -> Function {
        match value {
            Value::Vector(_) | Value::List(_) => {
                let keys = fields::items(value).unwrap_or_default();
                Function::Keys(keys.iter().map(Function::of).collect())
            }
            other => Function::of(other),
        }
    }

    /// Its value without a call, if it reads one field.
    pub fn read<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Function::Field(field) => Some(fields::get(value, *field)),
            Function::Attribute(name) => Some(fields::named(value, name)),
            Function::Keys(_) | Function::Value(_) => None,
        }
    }

    /// Its value.
    ///
    /// # Errors
    /// What it throws.
    pub fn call(&self, value: &Value, turn: &mut Turn<'_>) -> Outcome {
        match self {
            Function::Field(field) => Ok(fields::get(value, *field).clone()),
            Function::Attribute(name) => Ok(fields::named(value, name).clone()),
            Function::Keys(keys) => {
                let values: Outcome<Vec<Value>> = keys.iter().map(|key| key.call(value, turn)).collect();
                values.map(Value::vector)
            }
            Function::Value(function) => turn.value_of(function, std::slice::from_ref(value)),
        }
    }
}
