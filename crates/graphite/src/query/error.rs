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
    /// The time for the request is over.
    Deadline,
    /// The client has gone away.
    Cancelled,
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
    /// The target with the mistake, set by [`render`](super::render).
    pub target: Option<String>,
}

impl QueryError {
    /// A mistake without a place.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> QueryError {
        QueryError { code, message: message.into(), hint: None, at: None, function: None, target: None }
    }

    /// A wrong argument.
    pub(crate) fn argument(message: impl Into<String>) -> QueryError {
        QueryError::new(Code::Argument, message)
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> QueryError {
        QueryError { hint: Some(hint.into()), ..self }
    }

    /// Adds the position, unless an inner mistake has one.
    pub(crate) fn at(self, at: usize) -> QueryError {
        QueryError { at: self.at.or(Some(at)), ..self }
    }

    /// Adds the function, unless an inner mistake has one.
    pub(crate) fn in_function(self, name: &str) -> QueryError {
        QueryError { function: self.function.or_else(|| Some(name.to_owned())), ..self }
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

/// The nearest of some names, if one is near enough to be a spelling mistake.
pub(crate) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.get(..name.len().min(64)).unwrap_or_default();
    let wanted = name.to_ascii_lowercase();
    let near = names.map(|other| (distance(&wanted, &other.to_ascii_lowercase()), other));
    near.min().filter(|(distance, _)| *distance <= 1 + name.len() / 4).map(|(_, other)| other)
}

/// Smallest number of inserted, removed and replaced bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[test]
fn the_nearest_name_is_a_spelling_mistake_away() {
    let names = ["sumSeries", "scale", "alias"];
    let near = |name| nearest(name, names.into_iter());
    assert_eq!(near("sumseries"), Some("sumSeries"));
    assert_eq!(near("scael"), Some("scale"));
    assert_eq!(near("holtWinters"), None);
    assert_eq!(near(&"é".repeat(100)), None);
}
