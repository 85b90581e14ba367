//! When records were made: the disk keeps that by the wall clock, and the running process by the monotonic one.
//!
//! A record is stamped with what the wall clock is ahead of the monotonic one when it is appended, so that a daemon that
//! began before the clock was set leaves ages that the next one can go by. While the queue is open no step of the wall
//! clock changes an age: what each record was stamped with is remembered.
//! Not here: what is too old (`super`).

use std::collections::VecDeque;

use model::{Now, SECOND_NS};

use super::format::RecordHeader;

/// A wall clock that has moved by less against the monotonic one since the last step has not been set.
const STEP_NS_MIN: u64 = SECOND_NS;

/// Steps of the wall clock that are remembered, those in whose time nothing waits left out. Past it records are stamped as
/// the last one was.
const STEPS_MAX: usize = 64;

/// See the module's header. Wall times that it gives are in the terms of the moment at which the queue was opened.
#[derive(Debug)]
pub(super) struct Stamps {
    opened: Now,
    /// Records below it are of earlier runs.
    opened_end: u64,
    /// The first record after each step of the wall clock, with the offset since then; in order.
    steps: VecDeque<(u64, i128)>,
}

/// What the wall clock is ahead of the monotonic one.
fn offset_ns(now: Now) -> i128 {
    i128::from(now.wall_ns) - i128::from(now.mono_ns)
}

fn clamped(ns: i128) -> u64 {
    u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
}

impl Stamps {
    /// Of a queue that is opened now, and whose next record is `opened_end`.
    pub(super) fn new(opened: Now, opened_end: u64) -> Stamps {
        Stamps { opened, opened_end, steps: VecDeque::new() }
    }

    /// Unix nanoseconds for the record `number`, the next one, made at `at_ns` (monotonic). `settled`: all below it are done
    /// with.
    pub(super) fn stamp(&mut self, number: u64, settled: u64, at_ns: u64, now: Now) -> u64 {
        // A record of that number was tried before and is none.
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

    /// Unix nanoseconds at which a record was made; not in the future, should the clock have stepped back between two
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
fn as_many_steps_are_remembered_as_have_records() {
    let at = |mono_s: u64, wall_s: u64| Now { mono_ns: mono_s * SECOND_NS, wall_ns: wall_s * SECOND_NS };
    let mut stamps = Stamps::new(at(0, 0), 0);
    // A clock that is set before each record, which all wait.
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
    // Drift is no step, and the same record may be tried twice.
    let drift = Now { wall_ns: 7 * SECOND_NS + STEP_NS_MIN - 1, ..at(number, 0) };
    assert_eq!(stamps.stamp(number + 1, number - 1, number * SECOND_NS, drift), 7 * SECOND_NS);
    assert_eq!(stamps.stamp(number, number - 1, number * SECOND_NS, at(number, 9)), 9 * SECOND_NS);
    assert_eq!(stamps.steps.len(), 2);
}
