//! Numbers about the aggregation itself, for self-metrics and the API (spec statsd §15).

use model::Kind;

use super::clock_steps::ClockFigures;

/// The state of an aggregation in numbers. Totals count since the start.
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
    /// Other spellings of series that are remembered now.
    pub aliases: u64,
    /// Samples whose spelling could not be remembered because `series_max` aliases exist: slower, still right.
    pub aliases_refused: u64,
    /// New series whose name existed under another kind.
    pub conflicts: u64,
    /// Timer values held now; those in sketches are not.
    pub timer_values: u64,
    /// Times that a timer went over to a sketch.
    pub timer_sketches: u64,
    /// Times that a set went over to an estimate.
    pub set_estimates: u64,
    /// Names in the `keyFlush` table now.
    pub busy_names: u64,
    /// Lines that the `keyFlush` table had no room for.
    pub busy_names_dropped: u64,
    /// What the wall clock has done to the labels.
    pub clock: ClockFigures,
    /// Memory held by series, keys, index and tables, free room in them included, in bytes.
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
