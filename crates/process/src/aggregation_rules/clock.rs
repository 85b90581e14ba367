//! Clock of the aggregation rules: the wall clock, except that small steps back are absorbed.
//!
//! After a step back by at most two windows the clock stands still until the wall clock has caught up, so that no
//! window is emitted twice. After a larger step it follows: windows of the new time are open again. If the clock
//! had jumped ahead before, windows that have begun stay closed, because they may have been emitted during that
//! time.
//! Not here: the effect on series (`series`).

use model::{Now, SECOND_NS};

/// Largest step back that is absorbed, in windows of the shortest aggregation rule.
pub(super) const STILL_WINDOWS: u64 = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct AggregationRuleClock {
    /// The current second.
    pub(super) now_s: u64,
    /// Monotonic time at which the clock first showed it; None before the first reading.
    mono_ns: Option<u64>,
    /// True after a jump ahead, until the clock returns.
    is_ahead: bool,
    /// Time of the last return from a jump ahead: windows that had begun by then are closed.
    floor_s: Option<u64>,
    /// Steps back that were followed.
    pub(super) jumps_back: u64,
}

impl AggregationRuleClock {
    /// Reads the clock. `shortest_s` is the shortest window. True when the clock has gone back.
    pub(super) fn read(&mut self, now: Now, shortest_s: u64) -> bool {
        let (second, still_s) = (now.wall_seconds(), STILL_WINDOWS * shortest_s);
        let (before_s, is_back) = (self.now_s, self.is_back(now, shortest_s));
        if second < before_s && !is_back {
            return false;
        }
        let passed_s = self.mono_ns.map(|mono_ns| now.mono_ns.saturating_sub(mono_ns) / SECOND_NS);
        (self.now_s, self.mono_ns) = (second, Some(now.mono_ns));
        if is_back {
            self.floor_s = std::mem::take(&mut self.is_ahead).then_some(second);
            self.jumps_back += 1;
        } else if passed_s.is_some_and(|passed_s| second - before_s > passed_s + still_s) {
            self.is_ahead = true;
        }
        is_back
    }

    /// True when a reading would go back.
    pub(super) fn is_back(&self, now: Now, shortest_s: u64) -> bool {
        now.wall_seconds().saturating_add(STILL_WINDOWS * shortest_s) < self.now_s
    }

    /// Number of the first window that a new result may have.
    pub(super) fn first(&self, every_s: u32, expire_s: u32) -> u64 {
        let every_s = u64::from(every_s);
        // The window of the time at which a point may have been sent.
        let first = self.now_s.saturating_sub(u64::from(expire_s)) / every_s;
        // Since then the clock may have stepped back a little.
        let floor = self.floor_s.map_or(0, |floor_s| floor_s.min(self.now_s) / every_s + 1);
        first.max(floor)
    }
}
