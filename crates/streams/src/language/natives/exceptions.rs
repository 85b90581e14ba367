//! Exceptions as values.

use crate::language::classes::{cannot_cast, class_of};
use crate::language::error::{EvalError, Outcome};
use crate::natives;
use crate::object::class;
use crate::object::exception::Exception;
use crate::print::to_str;
use crate::value::Value;

natives! {
    /// Exceptions.
    pub NATIVES = {
        "ex-info", 2, 3, "An exception with a message and a map, and perhaps a cause.", |_, a| {
            if !matches!(a[1], Value::Map(_) | Value::Event(_) | Value::Nil) { return Err(cannot_cast(&a[1], &class::IPERSISTENT_MAP)); }
            let exception = Exception::new(&class::EXCEPTION_INFO, to_str(&a[0]));
            let cause = a.get(2).cloned().unwrap_or_default();
            Ok(Value::Exception(std::sync::Arc::new(Exception { data: a[1].clone(), cause, ..exception })))
        };
        "ex-data", 1, 1, "The map of an exception, or nil.", |_, a| Ok(exception(&a[0]).map(|e| e.data.clone()).unwrap_or_default());
        "ex-message", 1, 1, "The message of an exception, or nil.", |_, a| Ok(exception(&a[0]).map(message).unwrap_or_default());
        "ex-cause", 1, 1, "The cause of an exception, or nil.", |_, a| Ok(exception(&a[0]).map(|e| e.cause.clone()).unwrap_or_default());
        "Throwable->map", 1, 1, "The message and the map of an exception.", |_, a| Ok(Value::map([
            (Value::keyword("cause"), exception(&a[0]).map(message).unwrap_or_default()),
            (Value::keyword("data"), exception(&a[0]).map(|e| e.data.clone()).unwrap_or_default()),
        ]));
        " target", 2, 2, "", |_, a| match &mut a[0] {
            Value::Nil => Err(EvalError::throw(&class::NULL_POINTER, format!("Cannot invoke \".{}\" of nil", to_str(&a[1])))),
            target => Ok(std::mem::take(target)),
        };
        " throw-assert", 1, 1, "", |_, a| Err(EvalError::throw(&class::ASSERTION_ERROR, to_str(&a[0])));
        " throw-case", 1, 1, "", |m, a| {
            let value = m.realize(&a[0])?;
            Err(EvalError::illegal_argument(format!("No matching clause: {}", to_str(&value))))
        };
    }
}

fn exception(value: &Value) -> Option<&Exception<Value>> {
    match value {
        Value::Exception(exception) => Some(exception),
        _ => None,
    }
}

/// The message of an exception, or nil.
pub(super) fn message(exception: &Exception<Value>) -> Value {
    exception.message.clone().map_or(Value::Nil, Value::Text)
}

/// An exception, or the error that there is none.
pub(super) fn required(value: &Value) -> Outcome<&Exception<Value>> {
    exception(value).ok_or_else(|| {
        let class = class_of(value).name;
        EvalError::illegal_argument(format!("No matching method found for class {class}"))
    })
}
