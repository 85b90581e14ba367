//! What queries need of a store.

use std::fmt;

use super::budget::Room;
use super::call::Range;
use super::series::Fetched;

/// Which series a part of a target wants.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// Those whose names match a path with globs.
    Glob(String),
    /// Those whose tags match all of these expressions, such as `host=~web.*`: the arguments of `seriesByTag`.
    Tags(Vec<String>),
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Glob(path) => f.write_str(path),
            Selector::Tags(expressions) => write!(f, "seriesByTag('{}')", expressions.join("', '")),
        }
    }
}

/// Some series for one time range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Which series.
    pub selector: Selector,
    /// The time range.
    pub range: Range,
}

/// Why the store has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchError {
    /// True when a limit of the request is reached, and the request has to change.
    pub is_limit: bool,
    /// What happened, in one sentence without a full stop.
    pub message: String,
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FetchError {}

/// A store of series, and of events.
pub trait Fetch {
    /// The series of each of `asks`, sorted by name, one for each name. All that a request wants comes in one call, except
    /// what depends on data. A selector that matches nothing has no series. The answer has as many lists as `asks`:
    /// another number is an error.
    ///
    /// # Errors
    /// When there is more than `room` for, or when the store cannot answer.
    fn fetch(&mut self, asks: &[Ask], room: Room) -> Result<Vec<Vec<Fetched>>, FetchError>;

    /// Times of the events in a range that have all of these tags, or of all events; one time for each event.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn events(&mut self, range: Range, tags: Option<&[String]>) -> Result<Vec<i64>, FetchError> {
        let _ = (range, tags);
        Ok(Vec::new())
    }
}
