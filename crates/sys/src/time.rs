//! Raw readings of the system's clocks, only for `crate::clock`. On Linux both are read without entering the kernel
//! (vDSO), in some 20 ns.

use std::io;

/// Nanoseconds of the monotonic clock, from an arbitrary start.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).expect("every system has a monotonic clock")
}

/// Nanoseconds since the Unix epoch; 0 when the clock is set before it.
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME).expect("every system has a wall clock")
}

/// Offset of local time from UTC at that Unix second, in seconds; 0 when the system does not know.
pub fn utc_offset_s(time_s: u64) -> i64 {
    let Ok(time) = libc::time_t::try_from(time_s) else { return 0 };
    // SAFETY: all zeros is a valid value of this struct of integers and one pointer, which is never dereferenced.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both are valid places for the call.
    let known = unsafe { !libc::localtime_r(&time, &mut local).is_null() };
    if known { local.tm_gmtoff } else { 0 }
}

/// Nanoseconds of one clock; 0 for a time before its start.
///
/// # Errors
/// When there is no such clock (for example that of an ended process).
pub(super) fn read(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place to write to; the clock's number is checked by the call.
    super::handle::checked(unsafe { libc::clock_gettime(clock, &mut time) })?;
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Ok(seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0)))
}
