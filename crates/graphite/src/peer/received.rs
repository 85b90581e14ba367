//! What all encodings share: mistakes of answers, and the series that they become.

use std::fmt;

use crate::query::{Fetched, Room};

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadAnswer {
    /// It cannot be read.
    Malformed(String),
    /// It has more series than the request may have.
    TooManySeries,
    /// It has more values than the request may have.
    TooManyPoints,
    /// It has more paths than one answer may have.
    TooManyPaths,
}

impl fmt::Display for BadAnswer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadAnswer::Malformed(why) => write!(to, "its answer cannot be read: {why}"),
            BadAnswer::TooManySeries => {
                to.write_str("it has too many series: use narrower globs or tag expressions")
            }
            BadAnswer::TooManyPoints => to.write_str("it has too many points: use a shorter time range"),
            BadAnswer::TooManyPaths => to.write_str("it has too many paths: use a narrower query"),
        }
    }
}

impl std::error::Error for BadAnswer {}

pub(super) fn malformed(why: impl fmt::Display) -> BadAnswer {
    BadAnswer::Malformed(why.to_string())
}

/// One series as a node answers it, if its times can be those of a series.
pub(super) fn fetched(
    name: String,
    (start, step): (i64, i64),
    values: Vec<f64>,
) -> Result<Option<Fetched>, BadAnswer> {
    if values.is_empty() {
        return Ok(None);
    }
    let end = i64::try_from(values.len()).ok().and_then(|count| step.checked_mul(count)?.checked_add(start));
    match end {
        Some(end) if step > 0 && start >= 0 => Ok(Some(Fetched { name, start, end, step, values })),
        _ => Err(malformed(format_args!("`{name}` has the start {start} and the step {step}"))),
    }
}

/// Counts one series against the room that is left.
pub(super) fn charge(room: &mut Room, values: usize) -> Result<(), BadAnswer> {
    room.series = room.series.checked_sub(1).ok_or(BadAnswer::TooManySeries)?;
    room.points = room.points.checked_sub(values).ok_or(BadAnswer::TooManyPoints)?;
    Ok(())
}
