//! Figures about an aggregation, for self-metrics and the API (spec statsd §15).

use model::Kind;

use super::clock_steps::ClockFigures;

/// Figures about an aggregation. Totals count since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Series now, by kind; see [`Figures::series`].
    pub(super) series: [u64; Kind::ALL.len()],
    /// Series that were created.
    pub created: u64,
    /// Series that were removed because they were idle.
    pub expired: u64,
    /// Series that were deleted on request.
    pub deleted: u64,
    /// Aliases (other raw keys of a series) now.
    pub aliases: u64,
    /// Samples whose alias was not cached because `series_max` aliases exist. They are slower, but correct.
    pub aliases_refused: u64,
    /// New series whose name existed under another kind.
    pub conflicts: u64,
    /// Timer values in memory now, without those in sketches.
    pub timer_values: u64,
    /// Timers that were converted to a sketch.
    pub timer_sketches: u64,
    /// Sets that were converted to an estimate.
    pub set_estimates: u64,
    /// Names in the `keyFlush` table now.
    pub busy_names: u64,
    /// Lines that the `keyFlush` table had no room for.
    pub busy_names_dropped: u64,
    /// Jumps of the wall clock and their effect on labels.
    pub clock: ClockFigures,
    /// Memory of series, keys, index and tables in bytes, including their free capacity.
    pub memory_bytes: u64,
}

impl Figures {
    /// Series of one kind now.
    pub fn series(&self, kind: Kind) -> u64 {
        self.series[kind as usize]
    }

    /// Series of all kinds now.
    pub fn series_total(&self) -> u64 {
        self.series.iter().sum()
    }
}
