//! Arguments as what a native needs them to be.

use arcstr::ArcStr;

use crate::arithmetic;
use crate::language::classes::cannot_cast;
use crate::language::error::{EvalError, Outcome};
use crate::number::Number;
use crate::object::class;
use crate::value::Value;

/// A number.
pub(in crate::language) fn number(value: &Value) -> Outcome<&Number> {
    value.as_number().ok_or_else(|| cannot_cast(value, &class::NUMBER))
}

/// A number as a 64-bit integer, towards zero.
pub(in crate::language) fn integer(value: &Value) -> Outcome<i64> {
    match value {
        Value::Number(Number::Int(value)) => Ok(*value),
        Value::Char(part) => Ok(i64::from(u32::from(*part))),
        other => {
            let number = number(other)?;
            let range =
                |_| EvalError::illegal_argument(format!("Value out of range for long: {}", text_of(number)));
            arithmetic::to_long(number).map_err(range)
        }
    }
}

/// How many: a number, 0 for one under 0.
pub(in crate::language) fn count(value: &Value) -> Outcome<usize> {
    Ok(usize::try_from(integer(value)?.max(0)).unwrap_or(usize::MAX))
}

/// A text.
pub(in crate::language) fn text(value: &Value) -> Outcome<&ArcStr> {
    value.as_text().ok_or_else(|| cannot_cast(value, &class::STRING))
}

fn text_of(number: &Number) -> String {
    crate::print::number_text(number, false)
}
