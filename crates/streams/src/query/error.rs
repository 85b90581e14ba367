//! Why a query was rejected.

use std::fmt;

/// Why a query was rejected: upstream's sentence where the spec binds it (§5.4), and where in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// One line. Also the text of the error reply.
    pub message: String,
    /// Position in the text, in bytes; at most its length. 0 for a tree that a config built by hand.
    pub at: usize,
}

impl QueryError {
    pub(super) fn new(at: usize, message: impl Into<String>) -> QueryError {
        QueryError { message: on_one_line(&message.into()), at }
    }

    /// Line and column of the position, both from 1; the column counts characters.
    pub fn line_and_column(&self, text: &str) -> (usize, usize) {
        let before = text.get(..self.at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        (line, before[start..].chars().count() + 1)
    }
}

/// A message with parts of a text from outside, without its line breaks.
pub(super) fn on_one_line(message: &str) -> String {
    message.replace('\n', "\\n").replace('\r', "\\r")
}

impl fmt::Display for QueryError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for QueryError {}
