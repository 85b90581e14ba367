//! What a request can be refused for. Each mistake of a target has its byte position.

use std::fmt;

/// What kind of mistake it is: it decides the status of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The target does not follow the grammar.
    Syntax,
    /// There is no function of this name.
    UnknownFunction,
    /// An argument is missing, unknown, of the wrong type, or out of range.
    Argument,
    /// A limit of the request is reached.
    Limit,
    /// The store could not answer.
    Fetch,
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// Kind of the mistake.
    pub code: Code,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to change.
    pub hint: Option<String>,
    /// Byte position in the target; None when the mistake is not at one place.
    pub at: Option<usize>,
    /// Name of the function whose argument is wrong.
    pub function: Option<String>,
    /// The target with the mistake, set where targets are evaluated.
    pub target: Option<String>,
}

impl QueryError {
    /// A mistake without a place.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> QueryError {
        QueryError { code, message: message.into(), hint: None, at: None, function: None, target: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> QueryError {
        QueryError { hint: Some(hint.into()), ..self }
    }

    /// Adds the position, unless an inner mistake has one.
    pub(crate) fn at(self, at: usize) -> QueryError {
        QueryError { at: self.at.or(Some(at)), ..self }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(function) = &self.function {
            write!(f, "{function}(): ")?;
        }
        f.write_str(&self.message)?;
        if let Some(at) = self.at {
            write!(f, " (at byte {at})")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for QueryError {}
