//! Limits of the index and of its searches, and what happens at them.

use std::fmt;

/// Steps of a slice of a search that holds its thread for about a tenth of a millisecond, and with a hostile query for
/// some tenths: see `examples/index_speed.rs`.
pub const SLICE_STEPS: u64 = 10_000;

/// Events of a slice of a sweep that takes less than a millisecond, also if all of them are removed.
pub const SWEEP_EVENTS: usize = 250;

/// Limits of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of events.
    pub events_max: u32,
    /// Maximum of [`super::Index::memory_bytes`].
    pub bytes_max: u64,
}

impl Limits {
    /// What holds unless the options say otherwise.
    pub const DEFAULT: Limits = Limits { events_max: 4_000_000, bytes_max: 4 << 30 };
}

/// Why an event was not indexed. Closed and `Copy`: also the tag of the self-metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// It has no time.
    NoTime,
    /// Its host or service is something that cannot be a key: a collection, or not a number.
    BadKey,
    /// The index has `events_max` events, and this one's host and service are new.
    TooManyEvents,
    /// The index would take more than `bytes_max`.
    TooManyBytes,
}

impl Reject {
    /// Its name in self-metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Reject::NoTime => "no_time",
            Reject::BadKey => "bad_key",
            Reject::TooManyEvents => "max_events",
            Reject::TooManyBytes => "max_bytes",
        }
    }
}

/// The first sentence is upstream's.
impl fmt::Display for Reject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Reject::NoTime => "cannot index event with no time",
            Reject::BadKey => "cannot index event: its host or service is a collection or not a number",
            Reject::TooManyEvents => "cannot index event: the index is full (max_events)",
            Reject::TooManyBytes => "cannot index event: the index is full (max_bytes)",
        })
    }
}

impl std::error::Error for Reject {}

/// Limits of one search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Maximum number of events in the result.
    pub results_max: usize,
    /// Maximum work, in steps of some ten nanoseconds.
    pub steps_max: u64,
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The slice has done its steps: call again.
    More,
    /// The result is complete.
    Done,
    /// A limit was reached: the result is incomplete.
    Stopped(Stop),
}

/// Why a result is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// More events match than `results_max`.
    Results,
    /// The search took more than `steps_max`.
    Steps,
}

impl Stop {
    /// Its name in self-metrics and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Stop::Results => "max_results",
            Stop::Steps => "max_steps",
        }
    }
}
