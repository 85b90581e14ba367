//! The Java class of each value.

use crate::number::Number;
use crate::object::class::{self, Class};
use crate::object::reference::Sort;
use crate::value::Value;

/// The class of a value other than nil; `java.lang.Object` of nil.
pub fn class_of(value: &Value) -> &'static Class {
    match value {
        Value::Nil => &class::OBJECT,
        Value::Bool(_) => &class::BOOLEAN,
        Value::Number(number) => match number {
            Number::Int(_) => &class::LONG,
            Number::Big(_) => &class::BIG_INT,
            Number::Ratio(_) => &class::RATIO,
            Number::Float(_) => &class::FLOAT,
            Number::Double(_) => &class::DOUBLE,
        },
        Value::Char(_) => &class::CHARACTER,
        Value::Text(_) => &class::STRING,
        Value::Keyword(_) => &class::KEYWORD,
        Value::Symbol(_) => &class::SYMBOL,
        Value::List(_) => &class::LIST,
        Value::Vector(_) => &class::VECTOR,
        Value::Map(_) => &class::ARRAY_MAP,
        Value::Set(_) => &class::HASH_SET,
        Value::Seq(_) => &class::LAZY_SEQ,
        Value::Event(_) => &class::EVENT,
        Value::Pattern(_) => &class::PATTERN,
        Value::Closure(_) | Value::Native(_) | Value::Bound(_) | Value::Stream(_) => &class::FUNCTION,
        Value::Var(_) => &class::VAR,
        Value::Atom(atom) => match atom.sort {
            Sort::Atom | Sort::Ref | Sort::Volatile | Sort::Agent | Sort::Promise => &class::ATOM,
        },
        Value::Delay(_) => &class::DELAY,
        Value::Exception(exception) => exception.class,
        Value::Class(_) => &class::CLASS,
        Value::Namespace(_) => &class::NAMESPACE,
        Value::Moment(instant) => {
            if instant.is_joda {
                &class::DATE_TIME
            } else {
                &class::DATE
            }
        }
    }
}

/// The error that a value is not of a class.
pub fn cannot_cast(value: &Value, to: &Class) -> super::error::EvalError {
    if value.is_nil() {
        let message = format!("nil is no {}", to.short_name());
        return super::error::EvalError::throw(&class::NULL_POINTER, message);
    }
    let message = format!("{} cannot be cast to {}", class_of(value).name, to.name);
    super::error::EvalError::throw(&class::CLASS_CAST, message)
}
