//! Creation times of records: the disk stores wall clock time, the running process uses the monotonic clock.
//!
//! A record is stamped with the offset of the wall clock to the monotonic clock at its append, so that the ages stay
//! right in the next run even if the clock was set since the daemon started. While the queue is open no step of the
//! wall clock changes an age: the offset of each record is remembered.
//! Not here: which records are too old (`super`).

use std::collections::VecDeque;

use model::{Now, SECOND_NS};

use super::format::RecordHeader;

/// A smaller change of the offset since the last step is drift, not a step.
const STEP_NS_MIN: u64 = SECOND_NS;

/// Most steps of the wall clock to remember, steps without queued records left out. Past it records are stamped with
/// the last offset.
const STEPS_MAX: usize = 64;

/// See the module's header. Its wall times are relative to the clocks at the time when the queue was opened.
#[derive(Debug)]
pub(super) struct Stamps {
    opened: Now,
    /// Records below it are of earlier runs.
    opened_end: u64,
    /// The first record after each step of the wall clock, with the offset since then; in order.
    steps: VecDeque<(u64, i128)>,
}

/// Offset of the wall clock to the monotonic clock.
fn offset_ns(now: Now) -> i128 {
    i128::from(now.wall_ns) - i128::from(now.mono_ns)
}

fn clamped(ns: i128) -> u64 {
    u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
}

impl Stamps {
    /// For a queue that is opened now, and whose next record is `opened_end`.
    pub(super) fn new(opened: Now, opened_end: u64) -> Stamps {
        Stamps { opened, opened_end, steps: VecDeque::new() }
    }

    /// Unix nanoseconds for the record `number`, the next one, created at `at_ns` (monotonic). `settled`: all records
    /// below it are settled.
    pub(super) fn stamp(&mut self, number: u64, settled: u64, at_ns: u64, now: Now) -> u64 {
        // An earlier attempt at that number was not written.
        while self.steps.back().is_some_and(|(first, _)| *first >= number) {
            self.steps.pop_back();
        }
        while self.steps.get(1).is_some_and(|(first, _)| *first <= settled) {
            self.steps.pop_front();
        }
        let moved_ns = offset_ns(now) - self.offset_of(number);
        if moved_ns.unsigned_abs() >= u128::from(STEP_NS_MIN) && self.steps.len() < STEPS_MAX {
            self.steps.push_back((number, offset_ns(now)));
        }
        clamped(i128::from(at_ns) + self.offset_of(number))
    }

    fn offset_of(&self, number: u64) -> i128 {
        let step = self.steps.iter().rev().find(|(first, _)| *first <= number);
        step.map_or(offset_ns(self.opened), |(_, offset_ns)| *offset_ns)
    }

    /// Unix nanoseconds at which a record was created; not in the future, should the clock have stepped back between two
    /// runs.
    pub(super) fn made_wall_ns(&self, header: &RecordHeader) -> u64 {
        let number = header.before.records;
        if number < self.opened_end {
            return header.made_wall_ns.min(self.opened.wall_ns);
        }
        let since_ns = i128::from(header.made_wall_ns) - self.offset_of(number);
        clamped(since_ns + offset_ns(self.opened))
    }

    pub(super) fn mono_ns_of(&self, wall_ns: u64) -> u64 {
        wall_ns.saturating_add(self.opened.mono_ns).saturating_sub(self.opened.wall_ns)
    }

    pub(super) fn wall_ns_of(&self, mono_ns: u64) -> u64 {
        mono_ns.saturating_add(self.opened.wall_ns).saturating_sub(self.opened.mono_ns)
    }
}

#[test]
fn clock_steps_are_remembered_while_their_records_are_queued() {
    let at = |mono_s: u64, wall_s: u64| Now { mono_ns: mono_s * SECOND_NS, wall_ns: wall_s * SECOND_NS };
    let mut stamps = Stamps::new(at(0, 0), 0);
    // A clock that is set before each record, while all of them are queued.
    for number in 0..2 * STEPS_MAX as u64 {
        let stamp = stamps.stamp(number, 0, number * SECOND_NS, at(number, (number + 1) * 1000));
        let known = number.min(STEPS_MAX as u64 - 1);
        let offset_s = (known + 1) * 1000 - known;
        assert_eq!(stamp, (number + offset_s) * SECOND_NS, "{number}");
    }
    // All are settled but the last ones.
    let number = 2 * STEPS_MAX as u64;
    assert_eq!(stamps.stamp(number, number - 1, number * SECOND_NS, at(number, 7)), 7 * SECOND_NS);
    assert_eq!(stamps.steps.len(), 2);
    // Drift is no step, and the same record may be appended twice.
    let drift = Now { wall_ns: 7 * SECOND_NS + STEP_NS_MIN - 1, ..at(number, 0) };
    assert_eq!(stamps.stamp(number + 1, number - 1, number * SECOND_NS, drift), 7 * SECOND_NS);
    assert_eq!(stamps.stamp(number, number - 1, number * SECOND_NS, at(number, 9)), 9 * SECOND_NS);
    assert_eq!(stamps.steps.len(), 2);
}
