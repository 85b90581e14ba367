//! When windows end, and the second that labels each (spec statsd §7.1).
//!
//! `Wall` and `Start` share a grid: slot k lies at `anchor + k * window` on the wall clock, and its second is
//! the label of the window that ends there. Waiting is counted on the monotonic clock. A step of the wall
//! clock therefore moves no end that is already set; it counts when the next one is chosen:
//!
//! - forward: slots that the clock jumped over never existed, the next one ahead is taken;
//! - backward by two windows at most: the next slot is still the one after the last, so that no label is used twice, and
//!   windows are longer, up to twice, until the clock has caught up: after two of them at the latest;
//! - backward by more, a jump (`clock_steps`): labels go back with the clock. Where it comes back to where it was before it
//!   went away, no label of before is used again; where it does not, those that it meets again are.
//!
//! Invariant: labels strictly increase but for jumps back, and two windows after any step they are those of the wall clock.

use model::{FlushInfo, Now, SECOND_NS};

use super::clock_steps::{ClockFigures, JUMP_WINDOWS, Jump, Steps};
use super::plan::FlushAlign;

/// Each early end within one slot, as restarts make them, takes a label of its own, a window ahead of the one before.
/// A label further ahead than so many windows is a clock that was set, not a daemon that was restarted.
const RESUME_WINDOWS_MAX: i128 = 16;

/// The open window in terms that mean something to another instance: no monotonic time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OpenWindow {
    pub(super) align: FlushAlign,
    pub(super) window_ns: u64,
    /// Slot 0 of the grid on the wall clock.
    pub(super) anchor_ns: u64,
    /// When it is to end, on the wall clock.
    pub(super) ends_wall_ns: u64,
    /// When it was opened, on the wall clock.
    pub(super) opened_wall_ns: u64,
    /// Label of the window before.
    pub(super) labelled_s: Option<u64>,
}

/// What becomes of a window that another instance had open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reopening {
    /// It has not ended yet.
    GoesOn,
    /// It ended while nobody ran, and nobody has told it.
    Overdue,
    /// It was told.
    Told,
    /// It lies on another grid, or further ahead than can be believed, or was opened by a clock that was set back since.
    Elsewhere,
}

impl OpenWindow {
    /// The label that it is to get.
    fn label_s(&self) -> u64 {
        match self.align {
            FlushAlign::Interval => self.ends_wall_ns / SECOND_NS,
            FlushAlign::Wall | FlushAlign::Start => round_seconds(i128::from(self.ends_wall_ns)),
        }
    }

    /// True when a window with the label `told_s` was this one or a later one.
    fn is_told(&self, told_s: u64) -> bool {
        // What a label is under `Interval` shows only at the window's end: the planned one may be a second off.
        let doubt_s = if self.align == FlushAlign::Interval { self.window_ns / 2 / SECOND_NS } else { 0 };
        told_s.saturating_add(doubt_s) >= self.label_s()
    }

    /// Slot at which it ends.
    fn slot(&self) -> i128 {
        let past_ns = i128::from(self.ends_wall_ns) - i128::from(self.anchor_ns);
        past_ns.div_euclid(i128::from(self.window_ns.max(1)))
    }
}

/// The flush clock of one aggregation.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    align: FlushAlign,
    window_ns: i128,
    /// Slot 0 on the wall clock.
    anchor_ns: i128,
    /// Slot at which the current window ends.
    slot: i128,
    due_ns: u64,
    opened_ns: u64,
    /// Label of the last window.
    labelled_s: Option<u64>,
    steps: Steps,
}

impl Clock {
    pub(super) fn new(align: FlushAlign, window_ms: u64, start: Now) -> Clock {
        let anchor_ns = match align {
            FlushAlign::Start => i128::from(start.wall_seconds_rounded()) * i128::from(SECOND_NS),
            FlushAlign::Wall | FlushAlign::Interval => 0,
        };
        let window_ns = i128::from(window_ms.max(1)) * 1_000_000;
        let mut clock = Clock {
            align,
            window_ns,
            anchor_ns,
            slot: 0,
            due_ns: 0,
            opened_ns: start.mono_ns,
            labelled_s: None,
            steps: Steps::new(start),
        };
        clock.set_due(start, None);
        clock
    }

    /// Takes over another grid; the window that is open goes on until the new grid's next slot.
    pub(super) fn follow(&mut self, align: FlushAlign, window_ms: u64, now: Now) {
        if align == self.align && i128::from(window_ms.max(1)) * 1_000_000 == self.window_ns {
            return;
        }
        let mut next = Clock::new(align, window_ms, now);
        if align == FlushAlign::Start && self.align == FlushAlign::Start {
            next.anchor_ns = self.anchor_ns;
        }
        next.opened_ns = self.opened_ns;
        next.labelled_s = self.labelled_s;
        next.steps = self.steps.clone();
        let after = self.labelled_s.map(|label_s| next.slot_of(label_s));
        next.set_due(now, after);
        *self = next;
    }

    /// An instance before this one labelled a window with `label_s`: on a `Wall` grid the first window here ends
    /// at a later slot, so that no slot is told twice. A label that lies far ahead is dropped.
    pub(super) fn resume(&mut self, label_s: u64, now: Now) {
        if self.align != FlushAlign::Wall || self.believed(Some(label_s), now).is_none() {
            return;
        }
        let label_ns = i128::from(label_s) * i128::from(SECOND_NS);
        self.labelled_s = Some(label_s);
        self.set_due(now, Some((label_ns - self.anchor_ns).div_euclid(self.window_ns)));
    }

    /// The same for the label of another aggregation, which is not dropped but left out when it lies far ahead.
    pub(super) fn resume_after_other(&mut self, label_s: u64, now: Now) {
        if self.is_believed(label_s, now) && self.labelled_s < Some(label_s) {
            self.resume(label_s, now);
        }
    }

    /// A label of an instance before is dropped.
    pub(super) fn drop_label(&mut self) {
        self.steps.figures.labels_dropped += 1;
    }

    /// True when the wall clock was set back after it was `wall_ns`, by more than windows can make good: what was labelled
    /// then has the labels of another clock.
    pub(super) fn was_set_back_since(&self, wall_ns: u64, now: Now) -> bool {
        i128::from(wall_ns) - i128::from(now.wall_ns) > JUMP_WINDOWS * self.window_ns
    }

    /// The window that is open.
    pub(super) fn open_window(&self, now: Now) -> OpenWindow {
        let ends_wall_ns = match self.align {
            FlushAlign::Interval => {
                i128::from(now.wall_ns) + i128::from(self.due_ns) - i128::from(now.mono_ns)
            }
            FlushAlign::Wall | FlushAlign::Start => self.anchor_ns + self.slot * self.window_ns,
        };
        OpenWindow {
            align: self.align,
            window_ns: self.window_ns as u64,
            anchor_ns: self.anchor_ns.max(0) as u64,
            ends_wall_ns: ends_wall_ns.max(0) as u64,
            opened_wall_ns: now.wall_ns.saturating_sub(now.mono_ns.saturating_sub(self.opened_ns)),
            labelled_s: self.labelled_s,
        }
    }

    /// What becomes of the window that an instance before this one had open. Where it is not known whether that `is_told`,
    /// the label of the last window that is known to have been told decides.
    pub(super) fn reopening(
        &self,
        open: &OpenWindow,
        is_told: Option<bool>,
        told_s: Option<u64>,
        now: Now,
    ) -> Reopening {
        let believed = told_s.filter(|label_s| self.is_believed(*label_s, now));
        let ahead_ns = i128::from(open.ends_wall_ns) - i128::from(now.wall_ns);
        if is_told.unwrap_or_else(|| believed.is_some_and(|told_s| open.is_told(told_s))) {
            Reopening::Told
        } else if open.align != self.align
            || i128::from(open.window_ns) != self.window_ns
            || ahead_ns > RESUME_WINDOWS_MAX * self.window_ns
            || self.was_set_back_since(open.opened_wall_ns, now)
        {
            Reopening::Elsewhere
        } else if ahead_ns > 0 {
            Reopening::GoesOn
        } else {
            Reopening::Overdue
        }
    }

    /// Goes on with a window that has not ended yet, on its own grid.
    pub(super) fn go_on(&mut self, open: &OpenWindow, now: Now) {
        self.take_over(open, now);
        if self.align == FlushAlign::Interval {
            let left_ns = open.ends_wall_ns.saturating_sub(now.wall_ns).min(self.window_ns as u64);
            self.due_ns = now.mono_ns + left_ns.max(1);
        } else {
            self.slot = open.slot();
            self.wait_for_slot(now);
        }
        let open_ns = now.wall_ns.saturating_sub(open.opened_wall_ns);
        self.opened_ns = now.mono_ns.saturating_sub(open_ns);
    }

    /// Ends a window whose end has passed while nobody ran, and opens the next.
    pub(super) fn close_overdue(&mut self, open: &OpenWindow, now: Now) -> FlushInfo {
        self.take_over(open, now);
        let elapsed_ns = open.ends_wall_ns.saturating_sub(open.opened_wall_ns);
        let info = FlushInfo {
            time_s: open.label_s(),
            window_s: self.window_ns as f64 / 1e9,
            elapsed_s: if elapsed_ns == 0 { open.window_ns } else { elapsed_ns } as f64 / 1e9,
        };
        self.labelled_s = Some(info.time_s);
        self.opened_ns = now.mono_ns;
        self.set_due(now, Some(open.slot()));
        info
    }

    fn take_over(&mut self, open: &OpenWindow, now: Now) {
        if self.align == FlushAlign::Start {
            self.anchor_ns = i128::from(open.anchor_ns);
        }
        self.labelled_s = self.believed(open.labelled_s, now);
    }

    /// A label of an instance before; none when it is dropped.
    fn believed(&mut self, label_s: Option<u64>, now: Now) -> Option<u64> {
        let believed = label_s.filter(|label_s| self.is_believed(*label_s, now));
        self.steps.figures.labels_dropped += u64::from(label_s.is_some() && believed.is_none());
        believed
    }

    /// False for a label that lies so far ahead that a clock must have been set.
    fn is_believed(&self, label_s: u64, now: Now) -> bool {
        let ahead_ns = i128::from(label_s) * i128::from(SECOND_NS) - i128::from(now.wall_ns);
        ahead_ns <= RESUME_WINDOWS_MAX * self.window_ns
    }

    /// What the wall clock has done so far.
    pub(super) fn figures(&self) -> ClockFigures {
        self.steps.figures
    }

    /// Label of the last window.
    pub(super) fn labelled_s(&self) -> Option<u64> {
        self.labelled_s
    }

    /// Monotonic nanoseconds at which the window ends.
    pub(super) fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Ends the window, late or early, and opens the next.
    pub(super) fn close(&mut self, now: Now) -> FlushInfo {
        let late_ns = i128::from(now.mono_ns) - i128::from(self.due_ns);
        let time_s = match self.align {
            FlushAlign::Interval => self.label_interval(now, late_ns.max(0)),
            FlushAlign::Wall | FlushAlign::Start => {
                self.slot += (late_ns / self.window_ns).max(0);
                round_seconds(self.anchor_ns + self.slot * self.window_ns)
            }
        };
        self.steps.on_label();
        let info = FlushInfo {
            time_s,
            window_s: self.window_ns as f64 / 1e9,
            elapsed_s: now.mono_ns.saturating_sub(self.opened_ns) as f64 / 1e9,
        };
        self.labelled_s = Some(time_s);
        self.opened_ns = now.mono_ns;
        match self.align {
            FlushAlign::Interval if late_ns >= 0 => {
                let slots = late_ns / self.window_ns + 1;
                self.due_ns = (i128::from(self.due_ns) + slots * self.window_ns) as u64;
            }
            FlushAlign::Interval => self.set_due(now, None),
            FlushAlign::Wall | FlushAlign::Start => {
                let jump = self.steps.look(now, self.window_ns, self.labelled_s);
                self.set_due(now, self.last_slot(jump));
            }
        }
        info
    }

    /// The slot that the next window's comes after.
    fn last_slot(&self, jump: Option<Jump>) -> Option<i128> {
        let returned_to = jump.and_then(|jump| jump.returned_to_s).map(|label_s| self.slot_of(label_s));
        match jump {
            Some(Jump { is_back: true, .. }) => returned_to,
            _ => Some(returned_to.unwrap_or(self.slot).max(self.slot)),
        }
    }

    /// The slot that a label is of, or the last one before it.
    fn slot_of(&self, label_s: u64) -> i128 {
        let reached = i128::from(label_s) * i128::from(SECOND_NS) + i128::from(SECOND_NS / 2);
        (reached - self.anchor_ns).div_euclid(self.window_ns)
    }

    /// The wall clock's second when the window was due, or now when it ends early.
    fn label_interval(&mut self, now: Now, late_ns: i128) -> u64 {
        let second = (i128::from(now.wall_ns) - late_ns).max(0) / i128::from(SECOND_NS);
        let whole_seconds = self.window_ns >= i128::from(SECOND_NS);
        let jump = self.steps.look(now, self.window_ns, self.labelled_s);
        let returned_to_s = jump.and_then(|jump| jump.returned_to_s);
        let last_s = match jump {
            Some(Jump { is_back: true, .. }) => returned_to_s,
            _ => self.labelled_s.max(returned_to_s),
        };
        let least = last_s.map_or(0, |last_s| last_s + u64::from(whole_seconds));
        if second as u64 >= least {
            self.steps.in_step(now);
        }
        (second as u64).max(least)
    }

    /// Chooses the slot at which the window that opens at `now` ends: one after `after`.
    fn set_due(&mut self, now: Now, after: Option<i128>) {
        if self.align == FlushAlign::Interval {
            self.due_ns = now.mono_ns + self.window_ns as u64;
            return;
        }
        let past_ns = i128::from(now.wall_ns) - self.anchor_ns;
        let next = match self.align {
            // Half up, as JavaScript rounds.
            FlushAlign::Start => (2 * past_ns + self.window_ns).div_euclid(2 * self.window_ns) + 1,
            _ => past_ns.div_euclid(self.window_ns) + 1,
        };
        self.slot = after.map_or(next, |after| next.max(after + 1));
        if self.slot == next {
            self.steps.in_step(now);
        }
        self.wait_for_slot(now);
    }

    fn wait_for_slot(&mut self, now: Now) {
        let wait = self.anchor_ns + self.slot * self.window_ns - i128::from(now.wall_ns);
        // A small step back is made good by longer windows. What is further ahead are labels that restarts have used up.
        let wait = if wait > (JUMP_WINDOWS + 1) * self.window_ns {
            self.window_ns + self.window_ns / 10
        } else {
            wait.min(2 * self.window_ns)
        };
        self.due_ns = now.mono_ns + wait.max(1) as u64;
    }
}

fn round_seconds(ns: i128) -> u64 {
    (ns + i128::from(SECOND_NS / 2)).div_euclid(i128::from(SECOND_NS)).max(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn at(mono_ms: u64, wall_ms: u64) -> Now {
        Now { mono_ns: mono_ms * MS, wall_ns: wall_ms * MS }
    }

    /// Runs `windows` windows without a step and without lateness: (due in ms since the start, label, elapsed).
    fn run(align: FlushAlign, window_ms: u64, wall_ms: u64, windows: usize) -> Vec<(u64, u64, f64)> {
        let start = at(5_000, wall_ms);
        let mut clock = Clock::new(align, window_ms, start);
        (0..windows)
            .map(|_| {
                let due = clock.due_ns();
                let info = clock.close(start.plus_ns(due - start.mono_ns));
                ((due - start.mono_ns) / MS, info.time_s, info.elapsed_s)
            })
            .collect()
    }

    #[test]
    fn grids_hang_where_the_spec_says() {
        use FlushAlign::{Interval, Start, Wall};
        // The start second is rounded: 1003.4 s to 1003, 1003.6 s to 1004.
        assert_eq!(run(Start, 10_000, 1_003_400, 2), [(9_600, 1013, 9.6), (19_600, 1023, 10.0)]);
        assert_eq!(run(Start, 10_000, 1_003_600, 2), [(10_400, 1014, 10.4), (20_400, 1024, 10.0)]);
        assert_eq!(run(Wall, 10_000, 1_003_400, 2), [(6_600, 1010, 6.6), (16_600, 1020, 10.0)]);
        assert_eq!(run(Wall, 10_000, 1_010_000, 1), [(10_000, 1020, 10.0)]);
        assert_eq!(run(Interval, 10_000, 1_003_900, 2), [(10_000, 1013, 10.0), (20_000, 1023, 10.0)]);
        // Several flushes share a second when the window is shorter; halves round up.
        let labels: Vec<u64> = run(Start, 500, 7_000, 4).iter().map(|window| window.1).collect();
        assert_eq!(labels, [8, 8, 9, 9]);
    }

    #[test]
    fn a_restart_neither_doubles_nor_skips_a_slot() {
        // Stopped in the slot of 1070. (started at, label of the instance before) -> first label here.
        for (start_ms, before, first) in [
            (1_069_200, 1070, 1080),
            (1_071_000, 1070, 1080),
            (1_085_000, 1070, 1090),
            (1_069_200, 1060, 1070),
            (1_069_200, 9_999, 1070),
        ] {
            let mut clock = Clock::new(FlushAlign::Wall, 10_000, at(0, start_ms));
            clock.resume(before, at(0, start_ms));
            let due_ms = clock.due_ns() / MS;
            assert_eq!(clock.close(at(due_ms, start_ms + due_ms)).time_s, first, "{start_ms} {before}");
            assert_eq!(due_ms + start_ms, first * 1000, "{start_ms} {before}");
        }
    }

    #[test]
    fn a_late_flush_skips_slots_as_node_does() {
        let start = at(0, 1_000_000);
        for (align, late_ms, label, next_due_ms) in [
            (FlushAlign::Start, 4_000, 1010, 20_000),
            (FlushAlign::Start, 6_000, 1010, 30_000),
            (FlushAlign::Start, 14_000, 1020, 30_000),
            (FlushAlign::Wall, 6_000, 1010, 20_000),
            (FlushAlign::Wall, 26_000, 1030, 40_000),
            (FlushAlign::Interval, 6_000, 1010, 20_000),
            (FlushAlign::Interval, 26_000, 1010, 40_000),
        ] {
            let mut clock = Clock::new(align, 10_000, start);
            let info = clock.close(start.plus_ns((10_000 + late_ms) * MS));
            assert_eq!((info.time_s, info.window_s), (label, 10.0), "{align:?} late by {late_ms}");
            assert_eq!(clock.due_ns(), next_due_ms * MS, "{align:?} late by {late_ms}");
        }
    }

    #[test]
    fn steps_of_the_wall_clock_neither_double_nor_skip_a_slot() {
        for (align, step_ms, next_label, next_wait_ms) in [
            (FlushAlign::Wall, 300, 10_020, 9_700),
            (FlushAlign::Wall, -300, 10_020, 10_300),
            (FlushAlign::Wall, -4_000, 10_020, 14_000),
            (FlushAlign::Wall, -10_000, 10_020, 20_000),
            (FlushAlign::Wall, -20_000, 10_020, 20_000),
            (FlushAlign::Wall, 3_600_000, 13_620, 10_000),
            (FlushAlign::Wall, -20_001, 9_990, 1),
            (FlushAlign::Wall, -3_600_000, 6_420, 10_000),
            (FlushAlign::Start, -300, 10_020, 10_300),
        ] {
            let mut clock = Clock::new(align, 10_000, at(0, 10_000_000));
            let wall = |mono_ms: u64| (mono_ms + 10_000_000).saturating_add_signed(step_ms);
            // The step falls into the first window: its label is that of the end set before.
            let first = clock.close(at(10_000, wall(10_000)));
            assert_eq!(first.time_s, 10_010, "{align:?} {step_ms}");
            let due_ms = clock.due_ns() / MS;
            assert_eq!(due_ms - 10_000, next_wait_ms, "{align:?} {step_ms}");
            assert_eq!(clock.close(at(due_ms, wall(due_ms))).time_s, next_label, "{align:?} {step_ms}");
        }
        let mut driven = Driven::new(FlushAlign::Interval);
        assert_eq!(driven.labels(2), [10, 20]);
        driven.step_s(-15);
        assert_eq!(driven.labels(3), [21, 25, 35], "no label is used twice");
    }

    /// A clock that is driven on time, and steps.
    struct Driven {
        clock: Clock,
        now: Now,
    }

    impl Driven {
        fn new(align: FlushAlign) -> Driven {
            let now = at(0, 1_700_000_000_000);
            Driven { clock: Clock::new(align, 10_000, now), now }
        }

        fn step_s(&mut self, step_s: i64) {
            self.now.wall_ns = self.now.wall_ns.saturating_add_signed(step_s * 1_000_000_000);
        }

        /// Labels of so many windows, as seconds since the start by the clock that does not step.
        fn labels(&mut self, windows: usize) -> Vec<i64> {
            let label = |_| {
                self.now = self.now.plus_ns(self.clock.due_ns() - self.now.mono_ns);
                self.clock.close(self.now).time_s as i64 - 1_700_000_000
            };
            (0..windows).map(label).collect()
        }
    }

    #[test]
    fn labels_follow_a_clock_that_jumps_and_comes_back() {
        const DAY_S: i64 = 86_400;
        for align in [FlushAlign::Wall, FlushAlign::Start, FlushAlign::Interval] {
            for away_s in [DAY_S, -DAY_S, 365 * DAY_S, -365 * DAY_S, 3_600, -3_600] {
                let mut driven = Driven::new(align);
                assert_eq!(driven.labels(2), [10, 20], "{align:?} {away_s}");
                driven.step_s(away_s);
                // The end of the window that is open has been set; `interval` has none.
                let first = if align == FlushAlign::Interval { 30 + away_s } else { 30 };
                assert_eq!(driven.labels(3), [first, 40 + away_s, 50 + away_s], "{align:?} {away_s}");
                driven.step_s(-away_s);
                let first = if align == FlushAlign::Interval { 60 } else { 60 + away_s };
                assert_eq!(driven.labels(3), [first, 70, 80], "{align:?} {away_s}");
                let ClockFigures { jumps_ahead, jumps_back, mislabelled, .. } = driven.clock.figures();
                // Of a clock that goes back nobody knows yet that it is wrong then: labels ahead of it count, too.
                let ahead = match align {
                    _ if away_s > 0 => 0,
                    FlushAlign::Interval => 2,
                    _ => 3,
                };
                assert_eq!((jumps_ahead, jumps_back, mislabelled), (1, 1, 3 + ahead), "{align:?} {away_s}");
            }
        }
    }

    #[test]
    fn a_jump_within_a_window_leaves_no_trace() {
        let mut driven = Driven::new(FlushAlign::Wall);
        driven.labels(1);
        driven.step_s(86_400);
        driven.now = driven.now.plus_ns(2_000 * MS);
        driven.step_s(-86_400);
        assert_eq!(driven.labels(3), [20, 30, 40]);
        assert_eq!(driven.clock.figures(), ClockFigures::default());
    }

    #[test]
    fn a_clock_that_was_ahead_from_the_start_is_followed_back() {
        let mut driven = Driven::new(FlushAlign::Wall);
        assert_eq!(driven.labels(3), [10, 20, 30]);
        driven.step_s(-86_400);
        assert_eq!(driven.labels(3), [40, 50 - 86_400, 60 - 86_400]);
        let ClockFigures { jumps_back, mislabelled, .. } = driven.clock.figures();
        assert_eq!((jumps_back, mislabelled), (1, 4), "all that were labelled so far");
    }

    #[test]
    fn a_label_that_an_instance_before_took_from_a_wrong_clock_is_dropped() {
        // Windows of 10 s: 16 of them are as far as restarts may have gone.
        for (ahead_s, dropped) in [(10, 0), (160, 0), (161, 1), (86_400, 1)] {
            let now = at(0, 1_700_000_000_000);
            let mut clock = Clock::new(FlushAlign::Wall, 10_000, now);
            clock.resume(1_700_000_000 + ahead_s, now);
            assert_eq!(clock.figures().labels_dropped, dropped, "{ahead_s}");
            assert_eq!(clock.labelled_s().is_none(), dropped == 1, "{ahead_s}");
        }
    }

    #[test]
    fn a_window_of_a_clock_that_was_set_back_since_is_not_gone_on_with() {
        // Windows of 2 s; the clock of the instance before was so many seconds ahead.
        for (ahead_s, want) in [
            (0, Reopening::GoesOn),
            (4, Reopening::GoesOn),
            (5, Reopening::Elsewhere),
            (30, Reopening::Elsewhere),
        ] {
            let before = Clock::new(FlushAlign::Wall, 2_000, at(7_000, 1_700_000_000_000 + ahead_s * 1000));
            let open = before.open_window(at(7_500, 1_700_000_000_500 + ahead_s * 1000));
            let now = at(0, 1_700_000_000_000);
            let clock = Clock::new(FlushAlign::Wall, 2_000, now);
            assert_eq!(clock.reopening(&open, Some(false), None, now), want, "{ahead_s}");
        }
    }

    #[test]
    fn the_label_of_another_aggregation_only_moves_ahead_what_it_can() {
        let now = at(0, 1_700_000_004_000);
        for (label_s, first) in [(0, 10), (10, 20), (30, 40), (161, 170), (165, 10)] {
            let mut clock = Clock::new(FlushAlign::Wall, 10_000, now);
            clock.resume_after_other(1_700_000_000 + label_s, now);
            assert_eq!(clock.close(now).time_s, 1_700_000_000 + first, "{label_s}");
            assert_eq!(clock.figures().labels_dropped, 0, "{label_s}");
        }
    }

    #[test]
    fn an_early_end_takes_the_label_of_its_slot() {
        let start = at(0, 1_000_000);
        for (align, label, next_label) in [
            (FlushAlign::Wall, 1010, 1020),
            (FlushAlign::Start, 1010, 1020),
            (FlushAlign::Interval, 1004, 1014),
        ] {
            let mut clock = Clock::new(align, 10_000, start);
            let info = clock.close(start.plus_ns(4_000 * MS));
            assert_eq!((info.time_s, info.elapsed_s), (label, 4.0), "{align:?}");
            let due = clock.due_ns();
            assert_eq!(clock.close(start.plus_ns(due)).time_s, next_label, "{align:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn labels_strictly_increase_but_for_jumps_back(
            align in prop_oneof![Just(FlushAlign::Wall), Just(FlushAlign::Start), Just(FlushAlign::Interval)],
            window_ms in 1_000u64..30_000,
            start_ms in 1_000_000_000u64..1_000_100_000,
            moves in prop::collection::vec((0u64..40_000, -100_000i64..100_000, 0u8..4, 1_000u64..30_000), 1..60),
        ) {
            let mut now = at(77_000, start_ms);
            let mut clock = Clock::new(align, window_ms, now);
            let (mut last, mut back) = (None, 0);
            for (late_ms, step_ms, what, other_ms) in moves {
                let wait = clock.due_ns().saturating_sub(now.mono_ns);
                match what {
                    0 => now = now.plus_ns(wait),
                    1 => now = now.plus_ns(wait + late_ms * MS),
                    2 => now = now.plus_ns(wait / 2),
                    _ => {
                        now = now.plus_ns(wait / 3);
                        clock.follow(align, other_ms, now);
                        now = now.plus_ns(clock.due_ns() - now.mono_ns);
                    }
                }
                let before = clock.figures().jumps_back;
                let info = clock.close(now);
                // On a grid a jump shows in the label of the window after it.
                let jumped = clock.figures().jumps_back > if align == FlushAlign::Interval { before } else { back };
                prop_assert!(jumped || last.is_none_or(|last| info.time_s > last), "{last:?} then {info:?}");
                back = before;
                prop_assert!(clock.due_ns() > now.mono_ns);
                last = Some(info.time_s);
                now.wall_ns = now.wall_ns.saturating_add_signed(step_ms * 1_000_000);
            }
        }

        #[test]
        fn two_windows_after_any_step_labels_are_those_of_the_wall_clock(
            align in prop_oneof![Just(FlushAlign::Wall), Just(FlushAlign::Start), Just(FlushAlign::Interval)],
            steps in prop::collection::vec((0usize..4, -40_000_000i64..40_000_000, 0u64..10_000), 1..20),
        ) {
            let mut driven = Driven::new(align);
            for (windows, step_s, into_ms) in steps {
                driven.labels(windows);
                let into_ns = (into_ms * MS).min(driven.clock.due_ns() - driven.now.mono_ns);
                driven.now = driven.now.plus_ns(into_ns);
                driven.step_s(step_s >> (into_ms % 25));
            }
            driven.labels(2);
            let wall_s = |now: Now| now.wall_ns as f64 / 1e9 - 1.7e9;
            for _window in 0..3 {
                let label = driven.labels(1)[0];
                prop_assert!((label as f64 - wall_s(driven.now)).abs() <= 1.0, "{label} {:?}", wall_s(driven.now));
            }
        }
    }
}
