//! Flush clock: decides when windows end, and which second labels each (spec statsd §7.1).
//!
//! `Wall` and `Start` share a grid: slot k lies at `anchor + k * window` on the wall clock, and its second is the
//! label of the window that ends there. Waiting uses the monotonic clock. So a step of the wall clock does not move
//! an end that is already set. It takes effect when the next end is chosen:
//!
//! - A step forward skips the slots in between; the next slot ahead of the clock is taken.
//! - A step back by at most two windows changes no slot: the next slot is the one after the last, so no label is
//!   used twice. Windows are up to twice as long until the clock has caught up, which takes two of them at most.
//! - A step back by more is a jump (`clock_steps`): labels go back with the clock. When the clock returns from a
//!   jump, no label from before it is used again. When it was simply set back, labels repeat from there on.
//!
//! Invariant: labels strictly increase except at jumps back, and two windows after any step they match the wall
//! clock.

use model::{FlushInfo, Now, SECOND_NS};

use super::clock_steps::{ClockFigures, JUMP_WINDOWS, Jump, Steps};
use super::plan::FlushAlign;

/// A window that ends early, as at a restart, uses up a label that lies one window ahead of the previous one. So a
/// label up to this many windows ahead is plausible; one further ahead means that the clock was set.
const RESUME_WINDOWS_MAX: i128 = 16;

/// Number of label runs whose last labels are remembered. Each start and each jump of the clock begins a run.
const RUNS_MAX: usize = 4;

/// The open window without monotonic times, so that another instance can continue it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OpenWindow {
    pub(super) align: FlushAlign,
    pub(super) window_ns: u64,
    /// Slot 0 of the grid on the wall clock.
    pub(super) anchor_ns: u64,
    /// Planned end, on the wall clock.
    pub(super) ends_wall_ns: u64,
    /// When it was opened, on the wall clock that its label is based on. Another instance detects by it that the
    /// clock was set back since.
    pub(super) opened_wall_ns: u64,
    /// Label of the previous window.
    pub(super) labelled_s: Option<u64>,
}

/// How to continue with a window that another instance had open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reopening {
    /// It has not ended yet.
    Continue,
    /// It ended while no instance ran, and was not emitted.
    Overdue,
    /// It was emitted.
    Emitted,
    /// It cannot be used: another grid, implausibly far ahead, or opened by a clock that was set back since.
    Unusable,
}

impl OpenWindow {
    /// The planned label.
    fn label_s(&self) -> u64 {
        match self.align {
            FlushAlign::Interval => self.ends_wall_ns / SECOND_NS,
            FlushAlign::Wall | FlushAlign::Start => round_seconds(i128::from(self.ends_wall_ns)),
        }
    }

    /// True when a window with this label was this one or a later one.
    fn is_emitted(&self, emitted_s: u64) -> bool {
        // Under `Interval` the label is known only at the window's end: the planned one may be a second off.
        let doubt_s = if self.align == FlushAlign::Interval { self.window_ns / 2 / SECOND_NS } else { 0 };
        emitted_s.saturating_add(doubt_s) >= self.label_s()
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
    /// Last labels of the previous runs, latest first. When the clock returns to the end of a run, labels continue
    /// after it.
    run_ends_s: [Option<u64>; RUNS_MAX],
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
            run_ends_s: [None; RUNS_MAX],
            steps: Steps::new(start),
        };
        clock.set_due(start, None);
        clock
    }

    /// Switches to another grid. The open window continues until the new grid's next slot.
    pub(super) fn follow(&mut self, align: FlushAlign, window_ms: u64, now: Now) {
        if align == self.align && i128::from(window_ms.max(1)) * 1_000_000 == self.window_ns {
            return;
        }
        let mut next = Clock::new(align, window_ms, now);
        if align == FlushAlign::Start && self.align == FlushAlign::Start {
            next.anchor_ns = self.anchor_ns;
        }
        next.opened_ns = self.opened_ns;
        (next.labelled_s, next.run_ends_s) = (self.labelled_s, self.run_ends_s);
        next.steps = self.steps.clone();
        let after = self.labelled_s.map(|label_s| next.slot_of(label_s));
        next.set_due(now, after);
        *self = next;
    }

    /// Continues after an instance that labelled a window `label_s`: on a `Wall` grid the first window here ends at
    /// a later slot, so that no slot is emitted twice. A label that lies too far ahead is dropped.
    pub(super) fn resume(&mut self, label_s: u64, now: Now) {
        if self.align != FlushAlign::Wall || self.plausible_label(Some(label_s), now).is_none() {
            return;
        }
        let label_ns = i128::from(label_s) * i128::from(SECOND_NS);
        self.use_label(label_s);
        self.set_due(now, Some((label_ns - self.anchor_ns).div_euclid(self.window_ns)));
    }

    /// As `resume`, for the label of another aggregation. A label that lies too far ahead is ignored, not counted
    /// as dropped.
    pub(super) fn resume_after_other(&mut self, label_s: u64, now: Now) {
        if self.is_plausible(label_s, now) && self.labelled_s < Some(label_s) {
            self.resume(label_s, now);
        }
    }

    /// Counts a label of a previous instance that was dropped.
    pub(super) fn drop_label(&mut self) {
        self.steps.figures.labels_dropped += 1;
    }

    /// True when the wall clock was set back since it showed `wall_ns`, by more than longer windows can absorb.
    /// Labels made then belong to another clock.
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
            opened_wall_ns: self.steps.wall_ns(self.opened_ns, now, self.window_ns),
            labelled_s: self.labelled_s,
        }
    }

    /// Decides how to continue with a window that a previous instance had open. When `is_emitted` is unknown, the
    /// label of the last window that is known to be emitted decides.
    pub(super) fn reopening(
        &self,
        open: &OpenWindow,
        is_emitted: Option<bool>,
        emitted_s: Option<u64>,
        now: Now,
    ) -> Reopening {
        let plausible = emitted_s.filter(|label_s| self.is_plausible(*label_s, now));
        let ahead_ns = i128::from(open.ends_wall_ns) - i128::from(now.wall_ns);
        if is_emitted.unwrap_or_else(|| plausible.is_some_and(|emitted_s| open.is_emitted(emitted_s))) {
            Reopening::Emitted
        } else if open.align != self.align
            || i128::from(open.window_ns) != self.window_ns
            || ahead_ns > RESUME_WINDOWS_MAX * self.window_ns
            || self.was_set_back_since(open.opened_wall_ns, now)
        {
            Reopening::Unusable
        } else if ahead_ns > 0 {
            Reopening::Continue
        } else {
            Reopening::Overdue
        }
    }

    /// Continues a window that has not ended yet, on its own grid.
    pub(super) fn continue_window(&mut self, open: &OpenWindow, now: Now) {
        self.hot_restart(open, now);
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

    /// Closes a window whose end passed while no instance ran, and opens the next.
    pub(super) fn close_overdue(&mut self, open: &OpenWindow, now: Now) -> FlushInfo {
        self.hot_restart(open, now);
        let elapsed_ns = open.ends_wall_ns.saturating_sub(open.opened_wall_ns);
        let info = FlushInfo {
            time_s: open.label_s(),
            window_s: self.window_ns as f64 / 1e9,
            elapsed_s: if elapsed_ns == 0 { open.window_ns } else { elapsed_ns } as f64 / 1e9,
        };
        self.use_label(info.time_s);
        self.opened_ns = now.mono_ns;
        self.set_due(now, Some(open.slot()));
        info
    }

    fn hot_restart(&mut self, open: &OpenWindow, now: Now) {
        if self.align == FlushAlign::Start {
            self.anchor_ns = i128::from(open.anchor_ns);
        }
        self.labelled_s = self.plausible_label(open.labelled_s, now);
    }

    /// Returns the label of a previous instance, or drops and counts it when it is implausible.
    fn plausible_label(&mut self, label_s: Option<u64>, now: Now) -> Option<u64> {
        let plausible = label_s.filter(|label_s| self.is_plausible(*label_s, now));
        self.steps.figures.labels_dropped += u64::from(label_s.is_some() && plausible.is_none());
        plausible
    }

    /// False for a label so far ahead that the clock must have been set.
    fn is_plausible(&self, label_s: u64, now: Now) -> bool {
        let ahead_ns = i128::from(label_s) * i128::from(SECOND_NS) - i128::from(now.wall_ns);
        ahead_ns <= RESUME_WINDOWS_MAX * self.window_ns
    }

    /// Jumps of the wall clock, and their effects so far.
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
        self.use_label(time_s);
        self.opened_ns = now.mono_ns;
        match self.align {
            FlushAlign::Interval if late_ns >= 0 => {
                let slots = late_ns / self.window_ns + 1;
                let next_ns = i128::from(self.due_ns) + slots * self.window_ns;
                self.due_ns = (next_ns + self.short_ns(time_s, next_ns, now)) as u64;
            }
            FlushAlign::Interval => self.set_due(now, None),
            FlushAlign::Wall | FlushAlign::Start => {
                let jump = self.steps.detect_jump(now, self.window_ns, self.labelled_s);
                self.set_due(now, self.last_slot(jump, now));
                if let Some(Jump { is_back: true, returned_to_s }) = jump {
                    // The next instance continues after labels of the clock in force.
                    self.end_run();
                    self.labelled_s = returned_to_s;
                }
            }
        }
        info
    }

    /// Records the label of a window. It continues the current run of labels or starts another.
    fn use_label(&mut self, label_s: u64) {
        let Some(last_s) = self.labelled_s.replace(label_s) else { return };
        let ahead_ns = (i128::from(label_s) - i128::from(last_s)) * i128::from(SECOND_NS);
        if ahead_ns < 0 || ahead_ns > JUMP_WINDOWS * self.window_ns {
            self.note_run(last_s);
        }
    }

    fn end_run(&mut self) {
        self.labelled_s.take().into_iter().for_each(|label_s| self.note_run(label_s));
    }

    fn note_run(&mut self, end_s: u64) {
        self.run_ends_s.rotate_right(1);
        self.run_ends_s[0] = Some(end_s);
    }

    /// The end of a run of labels, when the next slot of the clock is exactly that one. It happens after a jump
    /// back: a previous process ended its window early, and was followed by one whose clock was ahead. None
    /// otherwise: labels then follow the clock.
    fn run_end_at(&self, now: Now) -> Option<i128> {
        let next = self.next_slot(now);
        self.run_ends_s.iter().flatten().map(|end_s| self.slot_of(*end_s)).find(|end| *end == next)
    }

    /// The slot that the next window's slot must come after.
    fn last_slot(&self, jump: Option<Jump>, now: Now) -> Option<i128> {
        let returned_to = jump.and_then(|jump| jump.returned_to_s).map(|label_s| self.slot_of(label_s));
        match jump {
            Some(Jump { is_back: true, .. }) => returned_to.or_else(|| self.run_end_at(now)),
            _ => Some(returned_to.unwrap_or(self.slot).max(self.slot)),
        }
    }

    /// The slot of a label, or the last slot before it.
    fn slot_of(&self, label_s: u64) -> i128 {
        let reached = i128::from(label_s) * i128::from(SECOND_NS) + i128::from(SECOND_NS / 2);
        (reached - self.anchor_ns).div_euclid(self.window_ns)
    }

    /// The wall clock's second when the window was due, or the current one when it ends early.
    fn label_interval(&mut self, now: Now, late_ns: i128) -> u64 {
        let second = (i128::from(now.wall_ns) - late_ns).max(0) / i128::from(SECOND_NS);
        let whole_seconds = self.window_ns >= i128::from(SECOND_NS);
        let jump = self.steps.detect_jump(now, self.window_ns, self.labelled_s);
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

    /// Extra length of an `Interval` window, so that its label matches the clock. Without it, after a small step
    /// back, labels of one-second windows would stay ahead for good.
    fn short_ns(&self, label_s: u64, due_ns: i128, now: Now) -> i128 {
        if self.window_ns < i128::from(SECOND_NS) {
            return 0;
        }
        let wall_ns = i128::from(now.wall_ns) + due_ns - i128::from(now.mono_ns);
        let least_ns = i128::from(label_s + 1) * i128::from(SECOND_NS);
        (least_ns - wall_ns).clamp(0, self.window_ns)
    }

    /// Chooses the slot at which the window opened at `now` ends: one after `after`.
    fn set_due(&mut self, now: Now, after: Option<i128>) {
        if self.align == FlushAlign::Interval {
            self.due_ns = now.mono_ns + self.window_ns as u64;
            return;
        }
        let next = self.next_slot(now);
        self.slot = after.map_or(next, |after| next.max(after + 1));
        if self.slot == next {
            self.steps.in_step(now);
        }
        self.wait_for_slot(now);
    }

    /// The next slot of the wall clock.
    fn next_slot(&self, now: Now) -> i128 {
        let past_ns = i128::from(now.wall_ns) - self.anchor_ns;
        match self.align {
            // Rounds half up, as JavaScript does.
            FlushAlign::Start => (2 * past_ns + self.window_ns).div_euclid(2 * self.window_ns) + 1,
            FlushAlign::Wall | FlushAlign::Interval => past_ns.div_euclid(self.window_ns) + 1,
        }
    }

    fn wait_for_slot(&mut self, now: Now) {
        let wait = self.anchor_ns + self.slot * self.window_ns - i128::from(now.wall_ns);
        // A small step back is absorbed by longer windows. Anything further ahead are labels used up by restarts.
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
mod tests;
