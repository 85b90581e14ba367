//! Results of an aggregation at the end of a window, borrowed from its state.

use crate::SeriesRef;

/// Name of one timer aggregate, such as `upper_90` or `histogram.bin_10`.
pub type Label = Box<str>;

/// The times of one window, the same for all its series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlushInfo {
    /// Timestamp of the window's points, Unix seconds.
    pub time_s: u64,
    /// Nominal length in seconds: the divisor of rates.
    pub window_s: f64,
    /// Real length on the monotonic clock, in seconds. Longer than `window_s` when a window was skipped.
    pub elapsed_s: f64,
}

/// One series at the end of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flushed<'a> {
    /// A counter: the sum of the window and the sum per second.
    Counter {
        /// The series.
        series: SeriesRef<'a>,
        /// Sum of the window.
        count: f64,
        /// `count` per second of the window.
        rate: f64,
    },
    /// A timer: its aggregates, in the order of spec statsd §7.3.
    Timer {
        /// The series.
        series: SeriesRef<'a>,
        /// All labels of the plan; `aggregates` points into it.
        labels: &'a [Label],
        /// (index in `labels`, value), only those that apply.
        aggregates: &'a [(u16, f64)],
        /// The window's values, ascending.
        values: &'a [f64],
    },
    /// A gauge: its last value.
    Gauge {
        /// The series.
        series: SeriesRef<'a>,
        /// Last value.
        value: f64,
    },
    /// A set: the number of distinct members.
    Set {
        /// The series.
        series: SeriesRef<'a>,
        /// Distinct members; an estimate once the set is over its exact limit.
        count: u64,
        /// Members joined with LF in an order that depends on the seed, if the plan keeps them; otherwise empty.
        members: &'a [u8],
    },
    /// A sample that bypassed aggregation because the client gave it a time.
    Timestamped {
        /// The series.
        series: SeriesRef<'a>,
        /// Counter or gauge.
        kind: crate::Kind,
        /// Its value, multiplied by its weight.
        value: f64,
        /// The client's time, Unix seconds.
        time_s: u64,
    },
}

impl<'a> Flushed<'a> {
    /// The series.
    pub fn series(&self) -> SeriesRef<'a> {
        match self {
            Flushed::Counter { series, .. }
            | Flushed::Timer { series, .. }
            | Flushed::Gauge { series, .. }
            | Flushed::Set { series, .. }
            | Flushed::Timestamped { series, .. } => *series,
        }
    }
}
