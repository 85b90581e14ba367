//! What rows of several files share: lists of sections (made in `section`), limits, and short forms of types.

use crate::options::field::Words;
use crate::options::row::Type;
pub(super) use crate::options::section::shared::{
    AGGREGATE, ENDPOINTS, FLUSHED, LINES, LISTENING, NAMED, NAMING, OUTPUTS, PACKETS, POINTS, RETRIED,
    ROTATED, SOURCES, STREAMS,
};
use crate::text::{DURATION, SIZE};

pub(super) const SECOND: u64 = 1_000;
pub(super) const HOUR: u64 = 3_600 * SECOND;
pub(super) const YEAR: u64 = 365 * 24 * HOUR;
pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const TIB: u64 = 1 << 40;

/// Most values of a timer, or members of a set, that can be configured to be stored exactly.
pub(super) const EXACT_MAX: u64 = 1_000_000_000;

/// The timer aggregates that `timer_aggregates` can name (spec statsd §7.7).
pub const TIMER_AGGREGATES: &[&str] = &[
    "count_percent",
    "mean_percent",
    "upper_percent",
    "lower_percent",
    "sum_percent",
    "sum_squares_percent",
    "std",
    "upper",
    "lower",
    "count",
    "count_ps",
    "sum",
    "sum_squares",
    "mean",
    "median",
    "histogram",
];

/// A text such as `"10s"`, in milliseconds.
pub(super) const fn duration(min: u64, max: u64) -> Type {
    Type::Quantity { of: &DURATION, min, max, or_off: false }
}

pub(super) const fn duration_or_off(min: u64, max: u64) -> Type {
    Type::Quantity { of: &DURATION, min, max, or_off: true }
}

/// A text such as `"64MiB"`, in bytes.
pub(super) const fn size(min: u64, max: u64) -> Type {
    Type::Quantity { of: &SIZE, min, max, or_off: false }
}

pub(super) const fn size_or_off(min: u64, max: u64) -> Type {
    Type::Quantity { of: &SIZE, min, max, or_off: true }
}

pub(super) const fn whole(min: u64, max: u64) -> Type {
    Type::Whole { min, max }
}

pub(super) const fn number(min: f64, max: f64) -> Type {
    Type::Number { min, max }
}

/// One of the words that [`words!`](crate::options::field::words) gives to a type.
pub(super) const fn one_of<W: Words>() -> Type {
    Type::Word(W::WORDS)
}
