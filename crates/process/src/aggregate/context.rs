//! State that all series share while samples are added and flushed: labels, scratch buffers, totals.

use model::Label;

use super::labels::Labels;
use super::plan::AggregatePlan;

/// Totals over all series, updated incrementally.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Heap memory of the states, outside their slab.
    pub(super) heap_bytes: u64,
    /// Timer values in memory.
    pub(super) timer_values: u64,
    /// Timers converted to a sketch since the start.
    pub(super) timer_sketches: u64,
    /// Sets converted to an estimate since the start.
    pub(super) set_estimates: u64,
}

impl Tally {
    /// Replaces `before` bytes by `after` bytes in the total.
    pub(super) fn heap(&mut self, before: usize, after: usize) {
        self.heap_bytes = self.heap_bytes.wrapping_add(after as u64).wrapping_sub(before as u64);
    }
}

/// Buffers for computing one timer, reused for the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// (index of the label, value).
    pub(super) aggregates: Vec<(u16, f64)>,
    /// (value, weight), ascending.
    pub(super) pairs: Vec<(f64, f64)>,
    /// Running sums: of values, of their squares, of weights.
    pub(super) sums: Vec<f64>,
    pub(super) squares: Vec<f64>,
    pub(super) weights: Vec<f64>,
}

/// The options that adding and flushing need, with scratch buffers and totals.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) labels: Labels,
    pub(super) timer_weights: bool,
    pub(super) timer_rate_ignored: bool,
    pub(super) timer_exact_max: usize,
    pub(super) set_exact_max: usize,
    pub(super) set_members: bool,
    pub(super) allow_non_finite: bool,
    /// See [`AggregatePlan::bytes_max`].
    bytes_max: u64,
    /// Bytes of keys and entries at the last [`Context::note_keys`].
    keys_bytes: u64,
    pub(super) scratch: Scratch,
    pub(super) tally: Tally,
}

impl Context {
    pub(super) fn new(plan: &AggregatePlan) -> Context {
        let mut context = Context {
            labels: Labels::new(plan),
            timer_weights: false,
            timer_rate_ignored: false,
            timer_exact_max: 0,
            set_exact_max: 0,
            set_members: false,
            allow_non_finite: false,
            bytes_max: 0,
            keys_bytes: 0,
            scratch: Scratch::default(),
            tally: Tally::default(),
        };
        context.follow(plan);
        context
    }

    /// Applies a new plan. The totals stay.
    pub(super) fn follow(&mut self, plan: &AggregatePlan) {
        self.labels = Labels::new(plan);
        self.timer_weights = plan.timer_weights;
        self.timer_rate_ignored = plan.timer_rate_ignored;
        self.timer_exact_max = plan.timer_exact_max;
        self.set_exact_max = plan.set_exact_max;
        self.set_members = plan.set_members;
        self.allow_non_finite = plan.allow_non_finite;
        self.bytes_max = plan.bytes_max;
    }

    /// Sets the bytes that keys and entries use.
    pub(super) fn note_keys(&mut self, bytes: u64) {
        self.keys_bytes = bytes;
    }

    /// True while the series use less than `bytes_max`. One sample may exceed the limit, by its own size.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.keys_bytes.saturating_add(self.tally.heap_bytes) < self.bytes_max
    }

    /// All labels of the plan.
    pub(super) fn names(&self) -> &[Label] {
        self.labels.names()
    }
}
