//! The only reader of clocks. Everything below the binary is told the time.

use model::Now;

use crate::sys;

/// The system's clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clock;

impl Clock {
    /// Both clocks, now: two calls that do not enter the kernel. Once per batch, never once per record.
    #[inline]
    pub fn now() -> Now {
        Now { mono_ns: sys::monotonic_ns(), wall_ns: sys::realtime_ns() }
    }

    /// Monotonic nanoseconds alone: for intervals.
    #[inline]
    pub fn mono_ns() -> u64 {
        sys::monotonic_ns()
    }
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
