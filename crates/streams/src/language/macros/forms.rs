//! Building forms.

use crate::language::error::{EvalError, Outcome};
use crate::value::Value;

/// A symbol.
pub(super) fn symbol(name: &str) -> Value {
    Value::symbol(name)
}

/// A list with a special form's name first.
pub(super) fn special(name: &str, rest: impl IntoIterator<Item = Value>) -> Value {
    Value::list(std::iter::once(symbol(name)).chain(rest).collect::<Vec<_>>())
}

/// A call of a function or macro of `clojure.core`.
pub(super) fn core(name: &str, rest: impl IntoIterator<Item = Value>) -> Value {
    special(&format!("clojure.core/{name}"), rest)
}

/// `(do …)`
pub(super) fn body(forms: &[Value]) -> Value {
    match forms {
        [only] => only.clone(),
        many => special("do", many.iter().cloned()),
    }
}

/// `(let [name value] …)`
pub(super) fn bind(name: Value, value: Value, inner: Value) -> Value {
    special("let", [Value::vector([name, value]), inner])
}

/// `(if test then otherwise)`
pub(super) fn when(test: Value, then: Value, otherwise: Value) -> Value {
    special("if", [test, then, otherwise])
}

/// `(fn [parameters] …)`
pub(super) fn function(parameters: impl IntoIterator<Item = Value>, inner: Value) -> Value {
    special("fn", [Value::vector(parameters), inner])
}

/// `(quote form)`
pub(super) fn quote(form: Value) -> Value {
    special("quote", [form])
}

/// The values of a vector of pairs.
///
/// # Errors
/// If the form is none.
pub(super) fn pairs(form: &Value) -> Outcome<Vec<[Value; 2]>> {
    match form {
        Value::Vector(vector) if vector.len() % 2 == 0 => {
            let items: Vec<Value> = vector.iter().cloned().collect();
            Ok(items.as_chunks::<2>().0.to_vec())
        }
        _ => Err(wrong("bindings are a vector of pairs")),
    }
}

/// The error of a macro that is used in a wrong way.
pub(super) fn wrong(message: &str) -> EvalError {
    EvalError::illegal_argument(message.to_owned())
}

/// The values of a list; `None` for any other form.
pub(super) fn items(form: &Value) -> Option<Vec<Value>> {
    match form {
        Value::List(list) => Some(list.iter().cloned().collect()),
        _ => None,
    }
}
