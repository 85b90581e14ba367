//! Texts of JSON that an event makes: they use its budget.

use super::write::WriteError;
use crate::language::budget::{Budget, TEXT_BYTES_MAX};
use crate::language::error::{EvalError, Outcome};
use crate::object::class;

/// What `write` writes, which gets the most bytes that there may be.
///
/// # Errors
/// If it is too long for the budget, or a value has no JSON.
pub fn charged(
    budget: &mut Budget,
    write: impl FnOnce(usize) -> Result<String, WriteError>,
) -> Outcome<String> {
    let left = usize::try_from(budget.memory_left()).unwrap_or(usize::MAX);
    match write(TEXT_BYTES_MAX.min(left)) {
        Ok(text) => {
            budget.text(text.len())?;
            budget.step(1 + text.len() / 64)?;
            Ok(text)
        }
        Err(WriteError::TooLong) => Err(EvalError::too_much_memory()),
        Err(error @ WriteError::NoJson(_)) => {
            Err(EvalError::throw(&class::JSON_GENERATION, error.to_string()))
        }
    }
}
