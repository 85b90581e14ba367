//! The second that aggregation rules go by: the wall clock's, but that it does not go back by a little.
//!
//! A wall clock that is set back by two windows at most stands still until it is where it was, so that no window is told
//! twice. One that is set back by more is followed: windows are open again as its time has them. When it had jumped ahead before,
//! it comes back from there: then windows that have begun stay closed, since they may have been told in that time.
//! Not here: what becomes of series (`series`).

use model::{Now, SECOND_NS};

/// Windows, of the shortest aggregation rule, that the clock may be set back by and is waited for.
pub(super) const STILL_WINDOWS: u64 = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct AggregationRuleClock {
    /// The second that holds.
    pub(super) now_s: u64,
    /// When the clock showed it first, on the monotonic one; none before the first reading.
    mono_ns: Option<u64>,
    /// It jumped ahead, and has not come back.
    is_ahead: bool,
    /// When it came back from ahead last: windows that had begun by then are closed.
    floor_s: Option<u64>,
    /// Times that it was followed back.
    pub(super) jumps_back: u64,
}

impl AggregationRuleClock {
    /// Takes a reading. `shortest_s` is the shortest window. True when the clock has gone back.
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

    /// Whether a reading would go back.
    pub(super) fn is_back(&self, now: Now, shortest_s: u64) -> bool {
        now.wall_seconds().saturating_add(STILL_WINDOWS * shortest_s) < self.now_s
    }

    /// Number of the first window that a result may begin with.
    pub(super) fn first(&self, every_s: u32, expire_s: u32) -> u64 {
        let every_s = u64::from(every_s);
        // The window that covers the time at which a point may have begun its way.
        let first = self.now_s.saturating_sub(u64::from(expire_s)) / every_s;
        // Since then the clock may have gone back a little.
        let floor = self.floor_s.map_or(0, |floor_s| floor_s.min(self.now_s) / every_s + 1);
        first.max(floor)
    }
}
