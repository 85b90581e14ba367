//! Java's classes that a config can make: exceptions, dates, texts, numbers.

use std::sync::Arc;

use super::arguments::integer;
use super::{numbers, strings};
use crate::language::classes::cannot_cast;
use crate::language::error::{EvalError, Outcome};
use crate::natives;
use crate::object::class;
use crate::object::exception::Exception;
use crate::object::time::Moment;
use crate::print::to_str;
use crate::value::Value;

natives! {
    /// Constructors, each under its class's short name.
    pub NATIVES = {
        "Throwable", 1, 3, "An exception of a class, with a message and a cause.", exception_of_class;
        "Date", 0, 1, "A time: now, or milliseconds since 1970.", |m, a| {
            let milliseconds = match a { [] => m.graph.now_us().div_euclid(1_000), [given, ..] => integer(given)? };
            Ok(Value::Moment(Arc::new(Moment::date(milliseconds))))
        };
        "String", 0, 1, "A text.", |_, a| Ok(Value::from(a.first().map(to_str).unwrap_or_default()));
        "Object", 0, 0, "A value that is equal to nothing else.", |_, _| Ok(Value::Atom(Arc::new(crate::object::reference::Atom::new(crate::object::reference::Sort::Atom, Value::Nil))));
        "Long", 1, 1, "The integer of a text or a number.", |_, a| match &a[0] { Value::Text(text) => strings::parse_integer(text, 10, i64::MIN, i64::MAX), other => integer(other).map(Value::from) };
        "Integer", 1, 1, "The integer of a text or a number.", |_, a| match &a[0] { Value::Text(text) => strings::parse_integer(text, 10, i64::from(i32::MIN), i64::from(i32::MAX)), other => integer(other).map(Value::from) };
        "Double", 1, 1, "The double of a text or a number.", |_, a| match &a[0] {
            Value::Text(text) => numbers::parse_double(text.trim()).map(Value::from).ok_or_else(|| EvalError::throw(&class::NUMBER_FORMAT, format!("For input string: \"{text}\""))),
            other => Ok(super::arguments::number(other)?.as_f64().into()),
        };
    }
}

fn exception_of_class(_: &mut crate::language::machine::Machine<'_>, arguments: &mut [Value]) -> Outcome {
    let Value::Class(class) = arguments[0] else { return Err(cannot_cast(&arguments[0], &class::CLASS)) };
    let mut exception = Exception { class, message: None, data: Value::Nil, cause: Value::Nil };
    for argument in &arguments[1..] {
        match argument {
            Value::Exception(cause) => {
                exception.cause = argument.clone();
                if exception.message.is_none() {
                    exception.message = Some(arcstr::format!(
                        "{}",
                        EvalError::new(crate::language::error::Reason::Thrown(Arc::clone(cause)))
                    ));
                }
            }
            Value::Nil => {}
            other => exception.message = Some(to_str(other).into()),
        }
    }
    Ok(Value::Exception(Arc::new(exception)))
}
