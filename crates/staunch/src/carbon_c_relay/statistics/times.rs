//! Busy and idle times over several processes: each reports those of its predecessors with its own.

use model::Figure;

use super::figures::RelayTotals;
use crate::daemon::worker::LoopTimes;

/// Family of times, for another process.
const TIME_NS: &str = "time_ns";

/// The figure with that name.
pub(super) fn one(figures: &[Figure], family: &str, reason: &str) -> Option<u64> {
    let found = figures.iter().find(|figure| figure.family == family && figure.reason == reason);
    found.map(|figure| figure.count)
}

/// Busy and idle times of the threads of earlier processes, up to their last report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    shard: LoopTimes,
    runtime_busy_ns: u64,
    reports_busy_ns: u64,
}

impl Times {
    /// The times of all processes so far.
    pub(super) fn in_all(totals: &RelayTotals) -> Times {
        let RelayTotals { shard, runtime_busy_ns, internal, .. } = totals;
        Times { shard: *shard, runtime_busy_ns: *runtime_busy_ns, reports_busy_ns: internal.busy_ns }
    }

    /// The times from another process.
    pub(super) fn of(figures: &[Figure]) -> Times {
        let time = |reason| one(figures, TIME_NS, reason).unwrap_or(0);
        Times {
            shard: LoopTimes { busy_ns: time("shard_busy"), slept_ns: time("shard_slept") },
            runtime_busy_ns: time("runtime_busy"),
            reports_busy_ns: time("reports_busy"),
        }
    }

    /// The figures for another process.
    pub(super) fn figures(self) -> [Figure; 4] {
        let Times { shard, runtime_busy_ns, reports_busy_ns } = self;
        [
            ("shard_busy", shard.busy_ns),
            ("shard_slept", shard.slept_ns),
            ("runtime_busy", runtime_busy_ns),
            ("reports_busy", reports_busy_ns),
        ]
        .map(|(reason, ns)| Figure::new(TIME_NS, reason, ns, 0))
    }

    /// Adds the times of earlier processes to the totals.
    pub(super) fn add_to(self, totals: &mut RelayTotals) {
        totals.shard.busy_ns += self.shard.busy_ns;
        totals.shard.slept_ns += self.shard.slept_ns;
        totals.runtime_busy_ns += self.runtime_busy_ns;
        totals.internal.busy_ns += self.reports_busy_ns;
    }
}

#[test]
fn times_add_up_over_any_number_of_processes() {
    let totals = |ns: u64| RelayTotals {
        shard: LoopTimes { busy_ns: ns, slept_ns: 2 * ns },
        runtime_busy_ns: 3 * ns,
        internal: super::figures::Destination { busy_ns: 4 * ns, ..Default::default() },
        ..RelayTotals::default()
    };
    let mut before = Times::default();
    for process in 1..4 {
        let mut now = totals(10);
        before.add_to(&mut now);
        assert_eq!(now, totals(10 * process));
        before = Times::of(&Times::in_all(&now).figures());
    }
}
