//! Jumps of the wall clock, told from drift and small steps by what the monotonic clock says.
//!
//! Not here: what becomes of windows and their labels (`clock`).

use model::{Now, SECOND_NS};

/// A wall clock that has moved by more than so many windows against the monotonic one has jumped.
pub(super) const JUMP_WINDOWS: i128 = 2;

/// What the wall clock has done to an aggregation's labels since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockFigures {
    /// Jumps ahead.
    pub jumps_ahead: u64,
    /// Jumps back: the labels went back with the clock.
    pub jumps_back: u64,
    /// Windows that were labelled while the clock was away, as its way back shows; and those whose labels lie ahead of a clock
    /// that was set back.
    pub mislabelled: u64,
    /// Labels left by an instance before that lie too far ahead of the clock, and were dropped.
    pub labels_dropped: u64,
}

/// One jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Jump {
    pub(super) is_back: bool,
    /// The clock is where it was before the last jump: the label that was the last one then.
    pub(super) returned_to_s: Option<u64>,
}

/// How things stood before a jump.
#[derive(Clone, Copy, Debug)]
struct Before {
    offset_ns: i128,
    labelled_s: Option<u64>,
}

/// The two clocks of one aggregation, compared at the end of each window.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    /// What the wall clock was ahead of the monotonic one when labels were last those of the wall clock.
    offset_ns: i128,
    /// Of the last jump, unless it has been undone.
    before: Option<Before>,
    /// Windows labelled since the last jump.
    windows: u64,
    pub(super) figures: ClockFigures,
}

fn offset_ns(now: Now) -> i128 {
    i128::from(now.wall_ns) - i128::from(now.mono_ns)
}

impl Steps {
    pub(super) fn new(start: Now) -> Steps {
        Steps { offset_ns: offset_ns(start), before: None, windows: 0, figures: ClockFigures::default() }
    }

    /// A window was labelled.
    pub(super) fn on_label(&mut self) {
        self.windows += 1;
    }

    /// The next label is that of the wall clock: whatever it did before is made good.
    pub(super) fn in_step(&mut self, now: Now) {
        self.offset_ns = offset_ns(now);
    }

    /// What the wall clock that labels go by was at `mono_ns`: of one that was set back since, what it would have been.
    pub(super) fn wall_ns(&self, mono_ns: u64, now: Now, window_ns: i128) -> u64 {
        let is_back = self.offset_ns - offset_ns(now) > JUMP_WINDOWS * window_ns;
        let offset_ns = if is_back { self.offset_ns } else { offset_ns(now) };
        (i128::from(mono_ns) + offset_ns).clamp(0, i128::from(u64::MAX)) as u64
    }

    /// Whether the wall clock has jumped since labels were last its own. `labelled_s` is the last label.
    pub(super) fn look(&mut self, now: Now, window_ns: i128, labelled_s: Option<u64>) -> Option<Jump> {
        let (offset_ns, near_ns) = (offset_ns(now), JUMP_WINDOWS * window_ns);
        let moved_ns = offset_ns - self.offset_ns;
        if moved_ns.abs() <= near_ns {
            return None;
        }
        let is_back = moved_ns < 0;
        let before = Before { offset_ns: self.offset_ns, labelled_s };
        let returned = self.before.take_if(|before| (offset_ns - before.offset_ns).abs() <= near_ns);
        self.figures.mislabelled += match (returned, is_back) {
            (Some(_), _) => self.windows,
            (None, true) => labels_ahead(labelled_s, now, window_ns).min(self.windows),
            (None, false) => 0,
        };
        if returned.is_none() {
            self.before = Some(before);
        }
        match is_back {
            true => self.figures.jumps_back += 1,
            false => self.figures.jumps_ahead += 1,
        }
        self.windows = 0;
        self.offset_ns = offset_ns;
        Some(Jump { is_back, returned_to_s: returned.and_then(|before| before.labelled_s) })
    }
}

/// Labels up to `labelled_s` that the wall clock has not come to.
fn labels_ahead(labelled_s: Option<u64>, now: Now, window_ns: i128) -> u64 {
    let label_ns = i128::from(labelled_s.unwrap_or(0)) * i128::from(SECOND_NS);
    let ahead_ns = (label_ns - i128::from(now.wall_ns)).max(0);
    u64::try_from((ahead_ns + window_ns - 1) / window_ns).unwrap_or(u64::MAX)
}
