//! Detects jumps of the wall clock by comparing it with the monotonic clock. Drift and small steps are no jumps.
//!
//! Not here: the effect on windows and their labels (`clock`).

use model::{Now, SECOND_NS};

/// A move of the wall clock against the monotonic clock by more than this many windows is a jump.
pub(super) const JUMP_WINDOWS: i128 = 2;

/// Jumps of the wall clock since the start, and their effect on labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockFigures {
    /// Jumps forward.
    pub jumps_ahead: u64,
    /// Jumps back: the labels went back with the clock.
    pub jumps_back: u64,
    /// Windows labelled while the clock was wrong, counted when it returns; and windows whose labels lie ahead of a
    /// clock that was set back.
    pub mislabelled: u64,
    /// Labels of previous instances that were dropped because they lie too far ahead of the clock.
    pub labels_dropped: u64,
}

/// One jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Jump {
    pub(super) is_back: bool,
    /// When the clock has returned to its time before the last jump: the last label from before that jump.
    pub(super) returned_to_s: Option<u64>,
}

/// State before a jump.
#[derive(Clone, Copy, Debug)]
struct Before {
    offset_ns: i128,
    labelled_s: Option<u64>,
}

/// Compares the wall clock with the monotonic clock at the end of each window.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    /// Wall clock minus monotonic clock when the labels last matched the wall clock.
    offset_ns: i128,
    /// State before the last jump, unless the clock has returned.
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

    /// Counts a labelled window.
    pub(super) fn on_label(&mut self) {
        self.windows += 1;
    }

    /// The next label matches the wall clock: earlier steps no longer matter.
    pub(super) fn in_step(&mut self, now: Now) {
        self.offset_ns = offset_ns(now);
    }

    /// The wall clock at `mono_ns` on which labels are based. If that clock was set back since, the time it would
    /// have shown.
    pub(super) fn wall_ns(&self, mono_ns: u64, now: Now, window_ns: i128) -> u64 {
        let is_back = self.offset_ns - offset_ns(now) > JUMP_WINDOWS * window_ns;
        let offset_ns = if is_back { self.offset_ns } else { offset_ns(now) };
        (i128::from(mono_ns) + offset_ns).clamp(0, i128::from(u64::MAX)) as u64
    }

    /// Detects a jump of the wall clock since the labels last matched it. `labelled_s` is the last label.
    pub(super) fn detect_jump(&mut self, now: Now, window_ns: i128, labelled_s: Option<u64>) -> Option<Jump> {
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

/// Number of labels up to `labelled_s` that lie ahead of the wall clock.
fn labels_ahead(labelled_s: Option<u64>, now: Now, window_ns: i128) -> u64 {
    let label_ns = i128::from(labelled_s.unwrap_or(0)) * i128::from(SECOND_NS);
    let ahead_ns = (label_ns - i128::from(now.wall_ns)).max(0);
    u64::try_from((ahead_ns + window_ns - 1) / window_ns).unwrap_or(u64::MAX)
}
