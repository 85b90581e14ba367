//! Which labels are allowed, and how many samples must have been flushed (docs/restarts.md, "A wall clock that is
//! set").
//!
//! Not here: the clock's steps and the process's restarts (`clock_storm`).

use std::collections::BTreeMap;

use model::SECOND_NS;

/// For this many windows after a step, labels may differ from the clock.
const GRACE_WINDOWS: u64 = 2;

/// At a start, labels that are ahead of the clock by more windows than this are dropped.
const RESUME_WINDOWS: u64 = 16;

/// A step by this many windows is a jump.
const JUMP_WINDOWS: i128 = 2;

/// A clock that was right, and then differs so much that every window shows it.
#[derive(Debug)]
struct Away {
    /// Windows that the process had counted as mislabelled before the step.
    counted: u64,
    /// Windows with wrong labels since then.
    wrong: u64,
    returned: bool,
}

/// See the module's header.
#[derive(Debug)]
pub(super) struct Ledger {
    away: Option<Away>,
    /// The process started with a right clock. Since then, the clock was only set far away and back, so no other time
    /// can be mistaken for the right one.
    knows: bool,
    /// Labels lie on the wall clock's grid, so a new process knows them.
    on_wall: bool,
    /// How far a label may be ahead of the window's usual end: `start` rounds windows, as node does.
    rounded_ns: i128,
    window_s: u64,
    pub(super) sent: u64,
    given: u64,
    /// Samples that kills may have lost, and samples that they may have duplicated.
    forgotten_max: u64,
    twice_max: u64,
    /// Checkpoints that were begun: their numbers, and the samples sent by then.
    begun: Vec<(u64, u64)>,
    safe: u64,
    /// Flushes without a note on disk: after a kill, they may be emitted again.
    unnoted: Vec<(u64, u64)>,
    /// Labels of windows in which the clock was right all the time, and the windows' ends.
    right: BTreeMap<u64, u64>,
    /// Labels that may be emitted once more.
    doubtful: Vec<u64>,
    offset_ns: i128,
    /// The clock has been right since the window was opened.
    opened_right: bool,
    /// The wall clock at the start of the process.
    began_wall_ns: u64,
    /// The clock was right at the start of the process, and has been since.
    begun_right: bool,
    /// Windows since the clock was set, or since the first start.
    since_step: u64,
    /// The process has not flushed yet: its first flush may be of a window of its predecessor.
    fresh: bool,
    last_s: Option<u64>,
    /// The last label of the predecessor.
    left_s: Option<u64>,
    /// How many windows the predecessors' labels may be ahead, and this process's labels behind.
    carried: u64,
    last_jumped: bool,
    /// When windows ended early, in right time.
    early_ns: Vec<u64>,
}

impl Ledger {
    pub(super) fn new(align: &str, window_s: u64) -> Ledger {
        let half_ns = i128::from(window_s * SECOND_NS / 2);
        Ledger {
            away: None,
            knows: true,
            on_wall: align == "wall",
            rounded_ns: if align == "start" { half_ns } else { 0 },
            window_s,
            sent: 0,
            given: 0,
            forgotten_max: 0,
            twice_max: 0,
            begun: Vec::new(),
            safe: 0,
            unnoted: Vec::new(),
            right: BTreeMap::new(),
            doubtful: Vec::new(),
            offset_ns: 0,
            opened_right: true,
            begun_right: true,
            began_wall_ns: 0,
            since_step: GRACE_WINDOWS,
            fresh: true,
            last_s: None,
            left_s: None,
            carried: 0,
            last_jumped: false,
            early_ns: Vec::new(),
        }
    }

    /// `counted`: windows that the process has counted as mislabelled so far.
    pub(super) fn clock_was_set(&mut self, offset_ns: i128, counted: u64) {
        let moved_ns = offset_ns - self.offset_ns;
        let is_far = offset_ns.abs() > (JUMP_WINDOWS + 1) * i128::from(self.window_s * SECOND_NS);
        self.knows &= is_far && self.offset_ns == 0 || self.away.is_some() && offset_ns == 0;
        self.away = match self.away.take().filter(|_| self.knows) {
            None if self.knows
                && self.offset_ns == 0
                && self.since_step >= GRACE_WINDOWS
                && is_far
                && !self.fresh =>
            {
                Some(Away { counted, wrong: 0, returned: false })
            }
            Some(away) if offset_ns == 0 && !away.returned => Some(Away { returned: true, ..away }),
            _ => None,
        };
        self.last_jumped |= moved_ns < -JUMP_WINDOWS * i128::from(self.window_s * SECOND_NS);
        self.offset_ns = offset_ns;
        (self.opened_right, self.begun_right) = (false, false);
        self.since_step = 0;
    }

    pub(super) fn save_begins(&mut self, number: u64) {
        self.begun.push((number, self.sent));
    }

    pub(super) fn save_is_whole(&mut self, number: u64) {
        if let Some((_, sent)) = self.begun.iter().find(|(begun, _)| *begun == number) {
            self.safe = *sent;
        }
        self.begun.retain(|(begun, _)| *begun > number);
    }

    pub(super) fn is_noted(&mut self) {
        self.unnoted.clear();
    }

    pub(super) fn was_stopped(&mut self) {
        (self.safe, self.doubtful) = (self.sent, Vec::new());
    }

    pub(super) fn was_killed(&mut self) {
        self.forgotten_max += self.sent - self.safe;
        self.twice_max += self.unnoted.iter().map(|(_, value)| value).sum::<u64>();
        self.doubtful = self.unnoted.iter().map(|(label_s, _)| *label_s).collect();
        self.begun.clear();
    }

    /// A process has started when the wall clock was `wall_ns`.
    pub(super) fn has_restarted(&mut self, wall_ns: u64) {
        (self.fresh, self.began_wall_ns) = (true, wall_ns);
        self.away = None;
        self.knows = self.offset_ns == 0;
        self.left_s = self.last_s.take().or(self.left_s);
        // A start drops it if the clock was set back.
        let jump_ns = JUMP_WINDOWS as u64 * self.window_s * SECOND_NS;
        self.doubtful.extend(self.left_s.filter(|left_s| left_s * SECOND_NS > wall_ns + jump_ns));
        // Early ends or a fast clock may have used them up: both are possible.
        let ahead_ns = self.left_s.map_or(0, |left_s| (left_s * SECOND_NS).saturating_sub(wall_ns));
        let is_carried = ahead_ns <= RESUME_WINDOWS * self.window_s * SECOND_NS;
        self.carried = if is_carried { ahead_ns.div_ceil(self.window_s * SECOND_NS) } else { 0 };
        self.begun_right = self.offset_ns == 0;
    }

    /// A window was flushed, `at` in right time and by the wall clock (nanoseconds).
    pub(super) fn flushed(
        &mut self,
        label_s: u64,
        value: u64,
        at: (u64, u64),
        early: bool,
    ) -> Result<(), String> {
        let (right_ns, wall_ns) = at;
        self.given += value;
        self.unnoted.push((label_s, value));
        let window_ns = self.window_s * SECOND_NS;
        self.early_ns.retain(|early_ns| early_ns + RESUME_WINDOWS * window_ns > right_ns);
        let off_ns = (i128::from(label_s * SECOND_NS) - i128::from(right_ns)).abs();
        if let Some(away) = &mut self.away {
            away.wrong += u64::from(off_ns > JUMP_WINDOWS * i128::from(window_ns));
        }
        let fresh = std::mem::take(&mut self.fresh);
        let was_over = fresh && label_s * SECOND_NS <= self.began_wall_ns;
        if let Some(last_s) = self.last_s.replace(label_s)
            && label_s <= last_s
            && !std::mem::take(&mut self.last_jumped)
            && self.since_step > GRACE_WINDOWS
        {
            return Err(format!("label {label_s} comes behind {last_s}, and the clock did not jump"));
        }
        if self.since_step >= GRACE_WINDOWS {
            self.check_clock(label_s, wall_ns, fresh, early)?;
        }
        if self.on_wall && self.opened_right && (self.offset_ns == 0 || was_over) {
            self.check_right(label_s, right_ns, was_over)?;
        }
        if early {
            self.early_ns.push(right_ns);
        }
        self.since_step += u64::from(!was_over);
        // If a window ended while no process ran, the start of the process opened the next one.
        self.opened_right = if was_over { self.begun_right } else { self.offset_ns == 0 };
        Ok(())
    }

    /// Windows with labels of a wrong clock are counted two windows after the clock is right again.
    pub(super) fn check_counted(&mut self, counted: u64) -> Result<(), String> {
        let is_over = |away: &mut Away| away.returned && self.since_step > GRACE_WINDOWS;
        match self.away.take_if(is_over) {
            Some(away) if away.wrong > counted - away.counted => Err(format!(
                "{} windows are mislabelled, but {} are counted",
                away.wrong,
                counted - away.counted
            )),
            _ => Ok(()),
        }
    }

    /// Two windows after a step, labels follow the clock again, except for labels that early ends have used up.
    fn check_clock(&mut self, label_s: u64, wall_ns: u64, fresh: bool, early: bool) -> Result<(), String> {
        let off_ns = i128::from(label_s * SECOND_NS) - i128::from(wall_ns);
        let window_ns = i128::from(self.window_s * SECOND_NS);
        let used_up = self.carried.max(self.early_ns.len() as u64) as i128 + i128::from(early);
        // A window may be up to twice as long, and may end early.
        let rounded_ns = if early { self.rounded_ns.max(window_ns) } else { 0 };
        let rounded_ns = if self.carried > 0 { rounded_ns.max(self.rounded_ns) } else { rounded_ns };
        let ahead_max_ns = used_up * window_ns + rounded_ns + i128::from(SECOND_NS);
        // A window that ended while no process ran has its own label.
        if off_ns > ahead_max_ns || (off_ns < -i128::from(SECOND_NS) && !fresh) {
            return Err(format!(
                "label {label_s} is not that of the clock, {:.3}, {} windows after it was set",
                wall_ns as f64 / 1e9,
                self.since_step
            ));
        }
        if off_ns <= i128::from(SECOND_NS) {
            self.carried = 0;
        }
        Ok(())
    }

    /// While the clock is right, no label is used twice or skipped.
    fn check_right(&mut self, label_s: u64, right_ns: u64, was_over: bool) -> Result<(), String> {
        let doubtful = self.doubtful.contains(&label_s);
        if let Some(ended_ns) = self.right.insert(label_s, right_ns)
            && !doubtful
        {
            return Err(format!(
                "label {label_s} is used twice while the clock is right, first at {:.3}",
                ended_ns as f64 / 1e9
            ));
        }
        let before = label_s - self.window_s;
        let ahead_ns = (label_s * SECOND_NS).saturating_sub(right_ns);
        let free = ahead_ns >= self.window_s * SECOND_NS && !self.right.contains_key(&before);
        if free && !was_over && self.since_step > GRACE_WINDOWS {
            return Err(format!("label {before} is free and left out for {label_s}"));
        }
        Ok(())
    }

    /// All samples have been flushed.
    pub(super) fn end(&self) -> Result<(), String> {
        let (least, most) = (self.sent.saturating_sub(self.forgotten_max), self.sent + self.twice_max);
        if self.given < least || self.given > most {
            return Err(format!(
                "{} of {} samples were flushed: {least} to {most} are right",
                self.given, self.sent
            ));
        }
        Ok(())
    }
}
