//! Points into memory, and what is refused.

use std::sync::atomic::Ordering::Relaxed;

use super::part::{FileState, Packed, Part};
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

impl Store {
    /// Takes a point of the block with this number. `name` has its tags. Numbers of blocks never get smaller. `now` in Unix seconds.
    pub fn push(&self, name: &[u8], point: Point, block: u64, now: i64) -> Pushed {
        if self.points_bytes() >= self.options.points_bytes_max {
            return Pushed::Full;
        }
        let (part, hash) = self.part_of(name);
        let mut part = locked(part);
        if let Some(series) = part.find(hash, name) {
            return self.push_to(&mut part, series, point, block, now);
        }
        drop(part);
        self.push_new(name, point, block, now)
    }

    /// All points of the blocks before this one were pushed.
    pub fn pushed_up_to(&self, block: u64) {
        self.pushed_up_to.store(block, Relaxed);
    }

    fn push_to(&self, part: &mut Part, series: u32, point: Point, block: u64, now: i64) -> Pushed {
        let known = part.of(series);
        let age = now.saturating_sub(point.time);
        let why = if known.file == FileState::Unusable {
            Some(Refusal::UnusableFile)
        } else if age > i64::from(known.retention) || point.time <= 0 {
            Some(Refusal::TooOld)
        } else if age < -i64::from(known.future) {
            Some(Refusal::InFuture)
        } else {
            None
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
            (why, _) => Pushed::Refused(why.unwrap_or(Refusal::InFuture)),
        }
    }

    /// A point of a series that has had none since the start, or whose name is not in its normal form.
    #[cold]
    fn push_new(&self, name: &[u8], point: Point, block: u64, now: i64) -> Pushed {
        let Ok(normal) = normal_name(name) else { return Pushed::Refused(Refusal::BadName) };
        if path_of(&normal, self.options.names).is_err() {
            return Pushed::Refused(Refusal::BadName);
        }
        let rules = self.rules();
        let Ok(header) = header_of(&rules.schemas, &rules.aggregations, &normal) else {
            return Pushed::Refused(Refusal::BadName);
        };
        let (part, hash) = self.part_of(&normal);
        // Locked before the name is added: a walk would remove a name that has neither a file nor points in memory.
        let mut part = locked(part);
        let file = match self.add_name(&normal) {
            Ok(Inserted::New(_)) => FileState::New,
            Ok(Inserted::Known(_)) => FileState::Unknown,
            Err(Refused::TooManyNames { .. }) => return Pushed::Refused(Refusal::TooManySeries),
            Err(Refused::TooManyBytes { .. }) => return Pushed::Refused(Refusal::NamesFull),
            Err(Refused::Name(_) | Refused::Exists(_) | Refused::Unknown) => {
                return Pushed::Refused(Refusal::BadName);
            }
        };
        let series = match part.find(hash, &normal) {
            Some(series) => series,
            None => {
                let rehash = |name: &[u8]| self.part_of(name).1;
                let Some(series) = part.add(hash, &normal, rehash) else {
                    return Pushed::Refused(Refusal::NamesFull);
                };
                self.set_covered(part.of(series), &header);
                part.of(series).file = file;
                series
            }
        };
        self.push_to(&mut part, series, point, block, now)
    }

    /// Notes which times a file covers.
    pub(super) fn set_covered(&self, series: &mut super::part::Series, header: &Header) {
        let update = &self.options.update;
        let step = header.archives().first().map_or(0, |archive| archive.step);
        series.retention = u32::try_from(header.retention()).unwrap_or(u32::MAX);
        series.future = match update.accept_future {
            true => u32::MAX,
            false => update.max_future.unwrap_or(step.max(MAX_FUTURE_LEAST)),
        };
    }
}
