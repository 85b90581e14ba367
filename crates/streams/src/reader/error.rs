//! Why a text could not be read.

use crate::position::Position;

/// A mistake in the syntax.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub struct ReadError {
    /// Where it is.
    pub at: Position,
    /// What is wrong.
    pub message: String,
    /// What may help.
    pub hint: Option<String>,
}

impl ReadError {
    /// A mistake without a hint.
    pub fn new(at: Position, message: impl Into<String>) -> Self {
        ReadError { at, message: message.into(), hint: None }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        ReadError { hint: Some(hint.into()), ..self }
    }
}
