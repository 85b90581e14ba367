//! Points into memory, and what is refused.

use std::sync::atomic::Ordering::Relaxed;

use super::example::Example;
use super::part::{Covered, FileState, Packed, Part};
use super::{Store, locked};
use crate::catalog::{Inserted, Refused, normal_name};
use crate::whisper::names::path_of;
use crate::whisper::rules::header_of;
use crate::whisper::{Header, MAX_FUTURE_LEAST, Point};

/// Why a point is not stored. Closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Its name cannot be that of a series or of a file.
    BadName,
    /// Its line has no number where its value or its time should be.
    NotANumber,
    /// Its series is new, and there are as many as there may be.
    TooManySeries,
    /// Its series is new, and the names use as much memory as they may.
    NamesFull,
    /// Its time is too far in the future for its file.
    InFuture,
    /// It is older than its file covers.
    TooOld,
    /// Its file is damaged, or none of whisper.
    UnusableFile,
    /// Its series was deleted before the point was in its file.
    Deleted,
    /// The file of its series was removed, because the files reached their limit in bytes.
    Expired,
}

impl Refusal {
    /// All refusals.
    pub const ALL: [Refusal; 9] = [
        Refusal::BadName,
        Refusal::NotANumber,
        Refusal::TooManySeries,
        Refusal::NamesFull,
        Refusal::InFuture,
        Refusal::TooOld,
        Refusal::UnusableFile,
        Refusal::Deleted,
        Refusal::Expired,
    ];

    /// Their number.
    pub const COUNT: usize = Refusal::ALL.len();

    pub(super) fn index(self) -> usize {
        self as usize
    }
}

/// What became of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It is in memory.
    Taken,
    /// Points use all the memory that they may. Write some, and try again.
    Full,
    /// It was refused. The caller counts it.
    Refused(Refusal),
}

/// Two readings of the wall clock, in Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// It is taken.
    pub now: i64,
    /// It came: earlier, or later if the clock was set back while it was queued.
    pub came: i64,
}

impl When {
    /// A point that is taken as it comes.
    pub fn at_once(now: i64) -> When {
        When { now, came: now }
    }
}

impl Store {
    /// Takes a point of the block with this number. `name` has its tags. Numbers of blocks never get smaller. `now` in Unix seconds.
    pub fn push(&self, name: &[u8], point: Point, block: u64, now: i64) -> Pushed {
        self.push_queued(name, point, block, When::at_once(now))
    }

    /// The same for a point that was queued before. It is in the future only if it was when it came: a clock that was set back since is no
    /// reason to lose it.
    pub fn push_queued(&self, name: &[u8], point: Point, block: u64, when: When) -> Pushed {
        if self.points_bytes() >= self.options.points_bytes_max {
            return Pushed::Full;
        }
        let (part, hash) = self.part_of(name);
        let mut part = locked(part);
        if let Some(series) = part.find(hash, name) {
            return self.push_to(&mut part, series, point, block, when);
        }
        drop(part);
        self.push_new(name, point, block, when)
    }

    /// All points of the blocks before this one were pushed.
    pub fn pushed_up_to(&self, block: u64) {
        self.pushed_up_to.store(block, Relaxed);
    }

    fn push_to(&self, part: &mut Part, series: u32, point: Point, block: u64, when: When) -> Pushed {
        let now = when.now;
        let known = part.of(series);
        let why = match known.file {
            FileState::Unusable => Some(Refusal::UnusableFile),
            FileState::Unknown | FileState::New | FileState::Absent | FileState::Exists => {
                known.covered.refusal(point, when)
            }
        };
        let time = u32::try_from(point.time).map_err(|_| Refusal::InFuture);
        match (why, time) {
            (None, Ok(time)) => {
                // The last value of a timestamp counts, unless a file is to keep the first.
                let replaces = !self.options.update.first_duplicate;
                let grown = part.push(series, Packed::new(time, point.value), block, now, replaces);
                if grown > 0 {
                    self.points_bytes.fetch_add(grown, Relaxed);
                }
                Pushed::Taken
            }
            (why, _) => self.refused(why.unwrap_or(Refusal::InFuture), part.name(series), point, now),
        }
    }

    /// Keeps the point as an example, if it is the first of its reason since the last [`Store::take_example`]. `name` may be a line that
    /// is no point. Times in Unix seconds.
    #[cold]
    pub fn note_refused(&self, why: Refusal, points: u64, name: &[u8], time: Option<i64>, now: i64) {
        self.examples.note(why.index(), points, name, (time, now));
    }

    /// The first point that was refused for this reason since the last call, and about how many there were.
    pub fn take_example(&self, why: Refusal) -> Option<(u64, Example)> {
        self.examples.take(why.index())
    }

    #[cold]
    fn refused(&self, why: Refusal, name: &[u8], point: Point, now: i64) -> Pushed {
        self.note_refused(why, 1, name, Some(point.time), now);
        Pushed::Refused(why)
    }

    /// A point of a series that has had none since the start, or whose name is not in its normal form.
    #[cold]
    fn push_new(&self, name: &[u8], point: Point, block: u64, when: When) -> Pushed {
        let refused = |why| self.refused(why, name, point, when.now);
        let Ok(normal) = normal_name(name) else { return refused(Refusal::BadName) };
        if path_of(&normal, self.options.names).is_err() {
            return refused(Refusal::BadName);
        }
        let rules = self.rules();
        let Ok(header) = header_of(&rules.schemas, &rules.aggregations, &normal) else {
            return refused(Refusal::BadName);
        };
        let (part, hash) = self.part_of(&normal);
        // Locked before the name is added: a walk would remove a name that has neither a file nor points in memory.
        let mut part = locked(part);
        if let Some(series) = part.find(hash, &normal) {
            return self.push_to(&mut part, series, point, block, when);
        }
        // Names of points that are refused would use up the names that there may be.
        let covered = self.covered(&header);
        if let Some(why) = covered.refusal(point, when) {
            return refused(why);
        }
        let (file, is_new) = match self.add_name(&normal) {
            Ok(Inserted::New(_)) => (FileState::New, true),
            Ok(Inserted::Known(_)) => (FileState::Unknown, false),
            Err(Refused::TooManyNames { .. }) => return refused(Refusal::TooManySeries),
            Err(Refused::TooManyBytes { .. }) => return refused(Refusal::NamesFull),
            Err(Refused::Name(_) | Refused::Exists(_) | Refused::Unknown) => {
                return refused(Refusal::BadName);
            }
        };
        let Some(series) = part.add(hash, &normal, |name| self.part_of(name).1) else {
            if is_new {
                self.remove_name(&normal, &part);
            }
            return refused(Refusal::NamesFull);
        };
        (part.of(series).covered, part.of(series).file) = (covered, file);
        self.push_to(&mut part, series, point, block, when)
    }

    /// Which times a file covers.
    pub(super) fn covered(&self, header: &Header) -> Covered {
        let update = &self.options.update;
        let step = header.archives().first().map_or(0, |archive| archive.step);
        Covered {
            retention: u32::try_from(header.retention()).unwrap_or(u32::MAX),
            future: match update.accept_future {
                true => u32::MAX,
                false => update.max_future.unwrap_or(step.max(MAX_FUTURE_LEAST)),
            },
        }
    }
}

impl Covered {
    fn refusal(self, point: Point, when: When) -> Option<Refusal> {
        let When { now, came } = when;
        let newest = now.max(came).saturating_add(i64::from(self.future));
        if now.saturating_sub(point.time) > i64::from(self.retention) || point.time <= 0 {
            Some(Refusal::TooOld)
        } else if point.time > newest || u32::try_from(point.time).is_err() {
            Some(Refusal::InFuture)
        } else {
            None
        }
    }
}
