//! The only reader of clocks. All other crates get the time as an argument.

use model::Now;

#[cfg(unix)]
use crate::{monotonic_ns, realtime_ns};

/// The system's clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clock;

impl Clock {
    /// Both clocks: two calls that do not enter the kernel. Called once per batch, never per record.
    #[inline]
    pub fn now() -> Now {
        Now { mono_ns: monotonic_ns(), wall_ns: realtime_ns() }
    }

    /// The monotonic clock only, in nanoseconds: for intervals.
    #[inline]
    pub fn mono_ns() -> u64 {
        monotonic_ns()
    }
}

/// Nanoseconds since the first reading.
#[cfg(windows)]
#[allow(clippy::disallowed_methods, reason = "this file is where clocks are read")]
fn monotonic_ns() -> u64 {
    static FIRST: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    u64::try_from(FIRST.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds since the Unix epoch; 0 when the clock is set before it.
#[cfg(windows)]
#[allow(clippy::disallowed_methods, reason = "this file is where clocks are read")]
fn realtime_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[test]
fn both_clocks_move_forward_and_the_wall_clock_shows_this_century() {
    let first = Clock::now();
    std::thread::sleep(std::time::Duration::from_millis(2));
    let second = Clock::now();
    assert!(second.mono_ns - first.mono_ns >= 2_000_000);
    assert!(second.wall_seconds() > 1_600_000_000);
    assert!(Clock::mono_ns() >= second.mono_ns);
}
