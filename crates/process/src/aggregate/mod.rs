//! Aggregates samples by window: holds the state of all series, and emits the results of each window.
//!
//! Path of a sample: `pipeline Shard::push` -> **`Aggregator::add`** -> `Index::probe` (by the parser's hash) ->
//! `Keys::confirm` (the key's bytes) -> `Counter::add` and its like. At the window's end: `tick` ->
//! `Clock::close` -> `table::flush` per series -> the caller's `emit`.
//!
//! Closing a window only flips the parity. A sweep then flushes all series in slices. A sample for a series that
//! the sweep has not reached flushes that series first. So no sample waits for a flush, and values of two windows
//! never mix.
//!
//! Not here: names in outputs (`wire`), where flushed values go (`pipeline`). No I/O, no clock.
//! Invariants: every sample given to `add` is counted once in [`Added`]; every series of a closed window is emitted
//! or expires exactly once; when no sweep is under way, all entries have the current parity.

mod add;
mod arena;
mod cells;
pub mod checkpoint;
mod clock;
mod clock_steps;
mod context;
mod counters;
mod create;
mod cursor;
mod entry;
mod figures;
mod gauges;
mod hint;
mod hyperloglog;
mod index;
mod key_flush;
mod keys;
mod labels;
mod manage;
mod plan;
mod self_metric_names;
mod self_metrics;
mod sets;
mod sketch;
mod slab;
mod state;
mod sweep;
mod table;
#[cfg(test)]
mod tests;
mod timer_maths;
mod timers;

pub use clock_steps::ClockFigures;
pub use figures::Figures;
pub use key_flush::BUSY_NAMES_MAX;
pub use manage::{Current, Visit};
pub use plan::{
    AggregatePlan, ExpiryPlan, FlushAlign, HistogramPlan, KeyFlushPlan, PercentLabel, SeriesExpiry,
};
pub use sweep::{FlushEnd, Tick};

use model::{Kind, Now};

use checkpoint::Saving;
use clock::Clock;
use context::Context;
use cursor::Cursor;
use hint::Found;
use key_flush::BusyNames;
use keys::Keys;
use self_metric_names::SelfMetrics;
use state::Closing;
use table::Tables;

/// Outcomes of the samples of one [`Aggregator::add`]. The first six add up to the number of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Added to an aggregate.
    pub aggregated: u64,
    /// Carried a timestamp and were emitted at once.
    pub routed: u64,
    /// Needed a new series beyond `series_max`.
    pub dropped_series_max: u64,
    /// Belonged to a timer with the maximum number of values.
    pub dropped_timer_values: u64,
    /// Needed memory beyond `bytes_max`: for a new series, a timer value or a set member.
    pub dropped_bytes_max: u64,
    /// Would have made a sum that is not finite.
    pub rejected_non_finite: u64,
    /// New series whose name exists under another kind. Their samples are counted above.
    pub conflicts: u64,
}

/// All series of one aggregation, owned by one thread.
#[derive(Clone, Debug)]
pub struct Aggregator {
    plan: AggregatePlan,
    clock: Clock,
    keys: Keys,
    tables: Tables,
    context: Context,
    self_metrics: SelfMetrics,
    /// The closed window whose series are still being emitted.
    closing: Option<Closing>,
    cursor: Cursor,
    /// A checkpoint that is being written.
    saving: Option<Saving>,
    /// True when a sample arrived or a series was deleted since the last checkpoint began.
    changed: bool,
    /// Parity of the current window; see [`entry::PARITY`].
    parity: u32,
    /// Time of the last samples.
    beat: u32,
    busy: BusyNames,
    totals: Totals,
    /// Buffer for canonical keys.
    canonical: Vec<u8>,
    /// Start of the first raw key that was dropped at `series_max`, in the last batch with one.
    first_dropped: Vec<u8>,
    /// Within a batch: the series of the previous sample.
    found: Option<Found>,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    created: u64,
    expired: u64,
    deleted: u64,
    aliases_refused: u64,
    conflicts: u64,
}

impl Aggregator {
    /// An aggregation without series; its first window begins at `start`.
    pub fn new(plan: AggregatePlan, start: Now) -> Aggregator {
        Aggregator {
            clock: Clock::new(plan.align, plan.window_ms, start),
            keys: Keys::new(),
            tables: Tables::new(),
            context: Context::new(&plan),
            self_metrics: SelfMetrics::default(),
            closing: None,
            cursor: Cursor::default(),
            saving: None,
            changed: true,
            parity: 0,
            beat: entry::beat(start),
            busy: BusyNames::new(plan.key_flush, start),
            totals: Totals::default(),
            canonical: Vec::new(),
            first_dropped: Vec::new(),
            found: None,
            plan,
        }
    }

    /// The plan in force.
    pub fn plan(&self) -> &AggregatePlan {
        &self.plan
    }

    /// Switches to another plan and keeps all state. An open window ends on the new grid, and its samples stay.
    pub fn reconfigure(&mut self, plan: AggregatePlan, now: Now) {
        self.clock.follow(plan.align, plan.window_ms, now);
        // The header of a checkpoint describes the window as it was.
        self.saving = None;
        self.changed = true;
        self.context.follow(&plan);
        self.busy.follow(plan.key_flush, now);
        let keeps_change = plan.keep_contains != self.plan.keep_contains;
        self.plan = plan;
        if keeps_change {
            self.renew_exemptions();
        }
    }

    /// Continues after an instance that labelled its last window `label_s` (Unix seconds): with windows on the wall
    /// clock's grid no label is used twice and none is skipped. Call it before the first record.
    pub fn resume_after(&mut self, label_s: u64, now: Now) {
        self.clock.resume(label_s, now);
    }

    /// As [`Aggregator::resume_after`], for the label of another aggregation that fed the same outputs and may have
    /// emitted the same series. An implausible label is ignored and not counted.
    pub fn resume_after_other(&mut self, label_s: u64, now: Now) {
        self.clock.resume_after_other(label_s, now);
    }

    /// The label that the next instance continues from: the last one, unless its clock was set back since.
    pub fn labelled_s(&self) -> Option<u64> {
        self.clock.labelled_s()
    }

    /// Counts a label of a previous instance that is implausible and was dropped.
    pub fn drop_label(&mut self) {
        self.clock.drop_label();
    }

    /// Drops all aliases because the sources read names by other rules now. The series and their values stay.
    pub fn drop_aliases(&mut self) {
        self.keys.forget_aliases();
    }

    /// Series of one kind that exist now.
    pub fn len(&self, kind: Kind) -> usize {
        self.tables.len(kind)
    }

    /// True when there is no series of any kind.
    pub fn is_empty(&self) -> bool {
        Kind::ALL.iter().all(|kind| self.tables.len(*kind) == 0)
    }

    /// Counts one line for the `keyFlush` report. Does nothing without a `key_flush` plan.
    pub fn count_name(&mut self, name: &[u8]) {
        self.busy.count(name);
    }

    /// The `keyFlush` report when it is due: (name, lines), busiest first, as many as the plan asks for. At most
    /// [`BUSY_NAMES_MAX`] names are counted between two reports.
    pub fn key_flush(&mut self, now: Now) -> Option<Vec<(Vec<u8>, u64)>> {
        self.busy.report(now)
    }

    /// Monotonic nanoseconds at which the next `keyFlush` report is due. None without a plan for it.
    pub fn key_flush_due_ns(&self) -> Option<u64> {
        self.busy.due_ns()
    }

    /// The first raw key that was dropped by the last [`Aggregator::add`] with `dropped_series_max`, cut to a
    /// maximum length.
    pub fn first_dropped(&self) -> &[u8] {
        &self.first_dropped
    }

    /// Figures about this aggregation. Cheap, but not free: call it once per flush or request, not per batch.
    pub fn figures(&self) -> Figures {
        let mut series = [0; Kind::ALL.len()];
        for kind in Kind::ALL {
            series[kind as usize] = self.tables.len(kind) as u64;
        }
        let tally = &self.context.tally;
        let memory = self.keys.memory_bytes() + self.tables.memory_bytes() + self.busy.memory_bytes();
        Figures {
            series,
            created: self.totals.created,
            expired: self.totals.expired,
            deleted: self.totals.deleted,
            aliases: u64::from(self.keys.aliases()),
            aliases_refused: self.totals.aliases_refused,
            conflicts: self.totals.conflicts,
            timer_values: tally.timer_values,
            timer_sketches: tally.timer_sketches,
            set_estimates: tally.set_estimates,
            busy_names: self.busy.len() as u64,
            busy_names_dropped: self.busy.dropped(),
            clock: self.clock.figures(),
            memory_bytes: memory as u64 + tally.heap_bytes,
        }
    }
}
