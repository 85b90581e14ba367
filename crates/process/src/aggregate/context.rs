//! What all series share while they are added to and flushed: labels, scratch space, tallies.

use model::Label;

use super::labels::Labels;
use super::plan::AggregatePlan;

/// Sums over all series that are kept up to date rather than counted anew.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Memory that states own outside their slab.
    pub(super) heap_bytes: u64,
    /// Timer values held.
    pub(super) timer_values: u64,
    /// Timers that went over to a sketch, ever.
    pub(super) timer_sketches: u64,
    /// Sets that went over to an estimate, ever.
    pub(super) set_estimates: u64,
}

impl Tally {
    /// Replaces `before` bytes by `after` bytes.
    pub(super) fn heap(&mut self, before: usize, after: usize) {
        self.heap_bytes = self.heap_bytes.wrapping_add(after as u64).wrapping_sub(before as u64);
    }
}

/// Space for the computing of one timer, kept from one to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// (place in the labels, value).
    pub(super) aggregates: Vec<(u16, f64)>,
    /// (value, weight), ascending.
    pub(super) pairs: Vec<(f64, f64)>,
    /// Running sums: of values, of their squares, of weights.
    pub(super) sums: Vec<f64>,
    pub(super) squares: Vec<f64>,
    pub(super) weights: Vec<f64>,
}

/// The parts of the plan that adding and flushing look at, with scratch space and tallies.
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
    /// Bytes of keys and entries, as [`Context::note_keys`] was told last.
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

    /// Takes over a new plan; the tallies stay.
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

    /// Takes notice of the bytes that keys and entries take now.
    pub(super) fn note_keys(&mut self, bytes: u64) {
        self.keys_bytes = bytes;
    }

    /// True while all that the series hold is below `bytes_max`: it is passed by what one sample adds, no more.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.keys_bytes.saturating_add(self.tally.heap_bytes) < self.bytes_max
    }

    /// All labels of the plan.
    pub(super) fn names(&self) -> &[Label] {
        self.labels.names()
    }
}
