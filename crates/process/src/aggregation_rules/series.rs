//! One result: which of its windows are open, which are over, and when it can be forgotten.
//!
//! Invariant: a window is told once, and none before one that was told takes a value again.

use super::window::Window;
use super::windows::Windows;
use super::{AggregationRulePlan, Compute, Rolled, Stamp, Told};

/// One result under way.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) hash: u64,
    pub(super) name: Box<[u8]>,
    pub(super) aggregation_rule: u16,
    pub(super) compute: u16,
    /// Seconds by which its windows are told later than those of others.
    pub(super) splay_s: u64,
    /// Number of the first window that is open: all before have been told or can take nothing.
    pub(super) open: u64,
    /// Those that have values; all from `open` on.
    pub(super) windows: Windows,
}

/// What the place of a series takes, without its name and its windows: itself, its number where it is free, and its part of
/// the index.
pub(super) const PLACE_BYTES: usize = size_of::<Option<Series>>() + size_of::<u32>() + 12;

impl AggregationRulePlan {
    /// Windows that a series keeps.
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
    /// Number of the first window that takes points for longer.
    pub(super) fn over(&self, plan: &AggregationRulePlan, now_s: u64) -> u64 {
        // Told when begin + expire + splay < now.
        let begin_s = now_s.saturating_sub(u64::from(plan.expire_s) + self.splay_s);
        begin_s.div_ceil(u64::from(plan.every_s))
    }

    /// Tells all windows before `over`; gives the bytes that they took.
    pub(super) fn tell(
        &mut self,
        plan: &AggregationRulePlan,
        over: u64,
        told: &mut Told,
        emit: &mut impl FnMut(Rolled<'_>),
    ) -> usize {
        if !self.windows.is_empty() {
            // Else it stays: it says when a series without windows can be forgotten.
            self.open = self.open.max(over);
        }
        self.ended(plan, |windows, ended| windows.end_before(over, ended), told, emit).0
    }

    /// Tells the windows that `end` takes out; gives the bytes that they took, and their number.
    fn ended(
        &mut self,
        plan: &AggregationRulePlan,
        end: impl FnOnce(&mut Windows, &mut dyn FnMut(u64, Window)),
        told: &mut Told,
        emit: &mut impl FnMut(Rolled<'_>),
    ) -> (usize, u64) {
        let Series { windows, name, aggregation_rule, .. } = self;
        let compute: Compute = plan.computes[usize::from(self.compute)].compute;
        let (before, mut kept, mut count) = (windows.bytes(), 0, 0);
        end(windows, &mut |number, mut window| {
            kept += window.kept_bytes();
            count += 1;
            let value = window.result(compute);
            if !value.is_finite() {
                told.not_finite += 1;
                return;
            }
            told.results += 1;
            let (timestamp, exact) = (plan.timestamp(number), plan.exact);
            emit(Rolled { aggregation_rule: *aggregation_rule, compute, name, value, timestamp, exact });
        });
        (before - windows.bytes() + kept, count)
    }

    /// Number of the first window that is open: `first`, when the clock has been set back behind all that this one knows.
    pub(super) fn open_now(&self, plan: &AggregationRulePlan, now_s: u64, first: u64) -> u64 {
        // A result never ends before its window has: `expire` is longer than `every`.
        if self.open > now_s / u64::from(plan.every_s) { first.min(self.open) } else { self.open }
    }

    /// Tells the windows that no point can belong to yet, since the clock was set back: they would wait until it is there
    /// again. Gives the bytes that they took, and their number.
    pub(super) fn tell_ahead(
        &mut self,
        plan: &AggregationRulePlan,
        first: u64,
        told: &mut Told,
        emit: &mut impl FnMut(Rolled<'_>),
    ) -> (usize, u64) {
        let behind = self.open.max(first).saturating_add(plan.windows());
        self.ended(plan, |windows, ended| windows.end_from(behind, ended), told, emit)
    }

    /// Tells every window whose seconds have passed, and counts the values of the others.
    pub(super) fn finish(
        &mut self,
        plan: &AggregationRulePlan,
        now_s: u64,
        told: &mut Told,
        emit: &mut impl FnMut(Rolled<'_>),
    ) {
        self.tell(plan, now_s / u64::from(plan.every_s), told, emit);
        told.values_left += self.values();
    }

    /// Values in its windows.
    pub(super) fn values(&self) -> u64 {
        self.windows.iter().map(|(_, window)| window.count).sum()
    }

    /// What its windows take.
    pub(super) fn windows_bytes(&self) -> usize {
        self.windows.bytes() + self.windows.iter().map(|(_, window)| window.kept_bytes()).sum::<usize>()
    }

    /// The second at which its oldest window is told; without windows the one at which it can be forgotten: from then on
    /// a series of its name would begin with a window that this one has not told.
    pub(super) fn due_s(&self, plan: &AggregationRulePlan) -> u64 {
        let (every, expire) = (u64::from(plan.every_s), u64::from(plan.expire_s));
        match self.windows.first() {
            Some(number) => number * every + expire + self.splay_s + 1,
            None => self.open * every + expire,
        }
    }
}
