//! What queries need of a store.

use std::fmt;

use super::budget::Room;
use super::call::Range;
use super::series::Fetched;

/// Which series a part of a target wants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask {
    /// Which series.
    pub selector: Selector,
    /// The time range.
    pub range: Range,
}

/// Why a request ends before its answer is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Its time is over.
    Deadline,
    /// Nobody waits for the answer any more.
    Cancelled,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stop::Deadline => "the time for this request is over",
            Stop::Cancelled => "the client has gone away",
        })
    }
}

/// Why the store has no answer. The texts say what happened, in one sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// A limit of the request is reached, and the request has to change.
    Limit(String),
    /// What is asked for is not a valid expression.
    Invalid(String),
    /// The store cannot answer.
    Failed(String),
    /// The request has to end.
    Stopped(Stop),
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchError::Limit(message) | FetchError::Invalid(message) | FetchError::Failed(message) => {
                f.write_str(message)
            }
            FetchError::Stopped(stop) => stop.fmt(f),
        }
    }
}

impl std::error::Error for FetchError {}

impl From<Stop> for FetchError {
    fn from(stop: Stop) -> FetchError {
        FetchError::Stopped(stop)
    }
}

/// A store of series, and of events.
pub trait Fetch {
    /// The series of each of `asks`, sorted by name, one for each name. All that a request wants comes in one call, except
    /// what depends on data. A selector that matches nothing has no series. The answer has as many lists as `asks`:
    /// another number is an error.
    ///
    /// # Errors
    /// When there is more than `room` for, or when the store cannot answer.
    fn fetch(&mut self, asks: &[Ask], room: Room) -> Result<Vec<Vec<Fetched>>, FetchError>;

    /// Whether to go on. It is called before and after each fetch, and after about every
    /// [`STEPS_BETWEEN_POLLS`](super::STEPS_BETWEEN_POLLS) units of work, also within functions: a deadline and a client that
    /// goes away end an evaluation here, usually within a millisecond, and within some 40 ms in the functions that handle
    /// 20,000 series, or a million values of one series, in one loop.
    ///
    /// # Errors
    /// Why the request has to end.
    fn keep_going(&mut self) -> Result<(), Stop>;

    /// Times of the events in a range that have all of these tags, or of all events; one time for each event.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn events(&mut self, range: Range, tags: Option<&[String]>) -> Result<Vec<i64>, FetchError> {
        let _ = (range, tags);
        Ok(Vec::new())
    }
}
