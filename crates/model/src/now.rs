//! Time as an argument. Only the binary reads clocks.

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// One reading of both clocks.
///
/// Intervals are measured with `mono_ns`; `wall_ns` is only for timestamps in output. A step of the wall clock
/// therefore never changes the length of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Now {
    /// Monotonic nanoseconds since an arbitrary start.
    pub mono_ns: u64,
    /// Nanoseconds since the Unix epoch. May step in both directions.
    pub wall_ns: u64,
}

impl Now {
    /// Unix seconds, rounded to the nearest second as the node daemon rounds them (spec statsd §7.1).
    pub fn wall_seconds_rounded(self) -> u64 {
        (self.wall_ns + SECOND_NS / 2) / SECOND_NS
    }

    /// Unix seconds, rounded down.
    pub fn wall_seconds(self) -> u64 {
        self.wall_ns / SECOND_NS
    }

    /// The same as a signed number, as times of points are.
    pub fn unix_seconds(self) -> i64 {
        i64::try_from(self.wall_seconds()).unwrap_or(i64::MAX)
    }

    /// Both clocks advanced by `ns`.
    #[must_use]
    pub fn plus_ns(self, ns: u64) -> Now {
        Now { mono_ns: self.mono_ns + ns, wall_ns: self.wall_ns + ns }
    }
}

#[test]
fn seconds_round_as_node_rounds() {
    let at = |ms: u64| Now { mono_ns: 0, wall_ns: ms * 1_000_000 };
    for (ms, rounded, down) in [(0, 0, 0), (499, 0, 0), (500, 1, 0), (1499, 1, 1), (1500, 2, 1)] {
        assert_eq!(at(ms).wall_seconds_rounded(), rounded, "{ms} ms");
        assert_eq!(at(ms).wall_seconds(), down, "{ms} ms");
    }
}
