//! The state of one series: what each kind implements, and what adding to it and closing its window involve.
//!
//! Not here: the arithmetic of a kind (`counters`, `gauges`, …), the tables of series (`table`).

use model::{FlushInfo, Flushed, Kind, Now, SeriesRef};

use super::context::{Context, Tally};
use super::plan::{ExpiryPlan, SeriesExpiry};
use crate::bytes::Bytes;

/// The window that was closed last, while its series are emitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    pub(super) info: FlushInfo,
    /// Divisor that turns sums into rates, in seconds.
    pub(super) divisor: f64,
    /// When it was closed.
    pub(super) started: Now,
    /// When it was closed, in beats.
    pub(super) beat: u32,
    /// Series emitted so far.
    pub(super) emitted: u64,
}

/// The state of one series, implemented by each kind.
pub(super) trait State: Default {
    const KIND: Kind;

    /// The expiry option for this kind.
    fn idle(plan: &ExpiryPlan) -> SeriesExpiry;

    /// Emits the closed window. `active` is true when the series received a sample in it.
    fn emit(
        &mut self,
        series: SeriesRef<'_>,
        active: bool,
        closing: &Closing,
        context: &mut Context,
        emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
    );

    /// Resets the state for the next window.
    fn clear(&mut self, tally: &mut Tally);

    /// Resets to the state of a new series and frees its heap memory.
    fn reset(&mut self, tally: &mut Tally);

    /// Makes the state that of a tombstone, after [`State::clear`]: equal to a new series, but keeps its heap
    /// memory.
    fn make_tombstone(&mut self) {}

    /// True when, under `SeriesExpiry::Delete`, the series survives the flush that just emitted it.
    fn outlives(&mut self, _ttl_windows: u32, _active: bool) -> bool {
        false
    }

    /// Appends the state to a checkpoint.
    fn save(&self, to: &mut Vec<u8>);

    /// Restores a state from a checkpoint into a new series. None when the bytes are invalid: the state may then
    /// only be reset with [`State::reset`]. `seed` is that of [`Entry::hash`](super::entry::Entry::hash).
    fn load(&mut self, from: &mut Bytes<'_>, seed: u32, context: &mut Context) -> Option<()>;

    /// Cost of flushing this series; 1 for an ordinary one, more for a large timer.
    fn work(&self) -> usize {
        1
    }
}

/// Result of adding a value to a timer, or a member to a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddResult {
    Added,
    /// The count of observations would not be finite.
    NonFinite,
    /// The timer has the maximum number of values.
    Full,
    /// The series use the maximum number of bytes.
    NoRoom,
}

impl AddResult {
    pub(super) fn finite(good: bool) -> AddResult {
        if good { AddResult::Added } else { AddResult::NonFinite }
    }
}
