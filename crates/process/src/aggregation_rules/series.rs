//! One result: which of its windows are open, which have ended, and when it can be removed.
//!
//! Invariant: a window is emitted once, and windows before an emitted one accept no values any more.

use super::result::{Emitted, RuleResult};
use super::window::Window;
use super::windows::Windows;
use super::{AggregationRulePlan, Compute, Stamp};

/// A result with its windows.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) hash: u64,
    pub(super) name: Box<[u8]>,
    pub(super) aggregation_rule: u16,
    pub(super) compute: u16,
    /// Seconds by which its windows are emitted later than those of other results, to spread the load.
    pub(super) splay_s: u64,
    /// Number of the first open window: all before it have been emitted or accept no values.
    pub(super) open: u64,
    /// Windows with values, all from `open` on.
    pub(super) windows: Windows,
}

/// Bytes of a series without its name and windows: its slot, its entry in the free list, and its share of the
/// index.
pub(super) const PLACE_BYTES: usize = size_of::<Option<Series>>() + size_of::<u32>() + 12;

impl AggregationRulePlan {
    /// Maximum windows of a series.
    pub(super) fn windows(&self) -> u64 {
        u64::from(self.expire_s.div_ceil(self.every_s)) + 2
    }

    fn timestamp(&self, window: u64) -> u64 {
        let every = u64::from(self.every_s);
        window * every
            + match self.stamp {
                Stamp::Start => 0,
                Stamp::Middle => every / 2,
                Stamp::End => every,
            }
    }
}

impl Series {
    /// Number of the first window that still accepts points.
    pub(super) fn over(&self, plan: &AggregationRulePlan, now_s: u64) -> u64 {
        // A window is emitted when begin + expire + splay < now.
        let begin_s = now_s.saturating_sub(u64::from(plan.expire_s) + self.splay_s);
        begin_s.div_ceil(u64::from(plan.every_s))
    }

    /// Emits all windows before `over`. Returns the bytes freed.
    pub(super) fn emit_before(
        &mut self,
        plan: &AggregationRulePlan,
        over: u64,
        emitted: &mut Emitted,
        emit: &mut impl FnMut(RuleResult<'_>),
    ) -> usize {
        if !self.windows.is_empty() {
            // Otherwise `open` is kept: it decides when a series without windows can be removed.
            self.open = self.open.max(over);
        }
        self.emit_removed(plan, |windows, ended| windows.end_before(over, ended), emitted, emit).0
    }

    /// Emits the windows that `end` takes out. Returns the bytes freed, and the number of windows.
    fn emit_removed(
        &mut self,
        plan: &AggregationRulePlan,
        end: impl FnOnce(&mut Windows, &mut dyn FnMut(u64, Window)),
        emitted: &mut Emitted,
        emit: &mut impl FnMut(RuleResult<'_>),
    ) -> (usize, u64) {
        let Series { windows, name, aggregation_rule, .. } = self;
        let compute: Compute = plan.computes[usize::from(self.compute)].compute;
        let (before, mut kept, mut count) = (windows.bytes(), 0, 0);
        end(windows, &mut |number, mut window| {
            kept += window.kept_bytes();
            count += 1;
            let value = window.result(compute);
            if !value.is_finite() {
                emitted.not_finite += 1;
                return;
            }
            emitted.results += 1;
            let (timestamp, exact) = (plan.timestamp(number), plan.exact);
            emit(RuleResult { aggregation_rule: *aggregation_rule, compute, name, value, timestamp, exact });
        });
        (before - windows.bytes() + kept, count)
    }

    /// Number of the first open window. It is `first` when the clock was set back before all windows of this
    /// series.
    pub(super) fn open_now(&self, plan: &AggregationRulePlan, now_s: u64, first: u64) -> u64 {
        // A result never ends before its window does: `expire` is longer than `every`.
        if self.open > now_s / u64::from(plan.every_s) { first.min(self.open) } else { self.open }
    }

    /// Emits windows in the future, to which no point can belong since the clock was set back. They would wait
    /// until the clock is there again. Returns the bytes freed, and the number of windows.
    pub(super) fn emit_ahead(
        &mut self,
        plan: &AggregationRulePlan,
        first: u64,
        emitted: &mut Emitted,
        emit: &mut impl FnMut(RuleResult<'_>),
    ) -> (usize, u64) {
        let behind = self.open.max(first).saturating_add(plan.windows());
        self.emit_removed(plan, |windows, ended| windows.end_from(behind, ended), emitted, emit)
    }

    /// Emits every window whose time has passed, and counts the values of the others.
    pub(super) fn finish(
        &mut self,
        plan: &AggregationRulePlan,
        now_s: u64,
        emitted: &mut Emitted,
        emit: &mut impl FnMut(RuleResult<'_>),
    ) {
        self.emit_before(plan, now_s / u64::from(plan.every_s), emitted, emit);
        emitted.values_left += self.values();
    }

    /// Number of values in its windows.
    pub(super) fn values(&self) -> u64 {
        self.windows.iter().map(|(_, window)| window.count).sum()
    }

    /// Bytes of its windows.
    pub(super) fn windows_bytes(&self) -> usize {
        self.windows.bytes() + self.windows.iter().map(|(_, window)| window.kept_bytes()).sum::<usize>()
    }

    /// The second at which its oldest window is emitted. For a series without windows, the second at which it can
    /// be removed: from then on a new series of its name would begin after all windows that this one has emitted.
    pub(super) fn due_s(&self, plan: &AggregationRulePlan) -> u64 {
        let (every, expire) = (u64::from(plan.every_s), u64::from(plan.expire_s));
        match self.windows.first() {
            Some(number) => number * every + expire + self.splay_s + 1,
            None => self.open * every + expire,
        }
    }
}
