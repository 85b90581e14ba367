//! Points into their slots (spec graphite §5.4, §5.5), and an account of each point.
//!
//! Two deliberate differences from the original, each with an option to have its behaviour: of several points with the
//! same time the last one of the call is stored, not the first; and points far in the future are rejected, which would
//! overwrite the oldest ones. Points of the first step of 1970 are never stored: time 0 marks an empty slot.

use std::ops::Range;

use model::{DiskError, TreeFile};

use super::error::{FileError, NotCovered, UpdateError};
use super::open::WhisperFile;
use super::propagate::Level;
use super::ring::{self, aligned};
use crate::whisper::format::Archive;

/// Points may be this many seconds in the future, or a step of the finest archive if that is longer.
pub const MAX_FUTURE_LEAST: u32 = 600;

/// A point to store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Unix seconds. Only times from 1 to 2^32 - 1 can be stored.
    pub time: i64,
    /// Any double, also NaN and infinities.
    pub value: f64,
}

/// Differences from the original.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpdateOptions {
    /// Of several points with the same time the first one of the call is stored, as the original does.
    pub first_duplicate: bool,
    /// Points in the future are stored, as the original does, up to 2^32 - 1.
    pub accept_future: bool,
    /// Most seconds that a point may be in the future. Default: [`MAX_FUTURE_LEAST`], or a step of the finest archive if
    /// that is longer.
    pub max_future: Option<u32>,
}

impl UpdateOptions {
    /// The behaviour of the original.
    pub const ORIGINAL: UpdateOptions =
        UpdateOptions { first_duplicate: true, accept_future: true, max_future: None };
}

/// Where the points of a call went. The sum of all but `propagated` is the number of points of the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// In a slot of the file.
    pub written: u64,
    /// Another point of the call with the same time was stored.
    pub duplicate: u64,
    /// A later point of the call in the same step was stored, or one a whole turn of the archive later.
    pub same_slot: u64,
    /// Older than the coarsest archive covers.
    pub too_old: u64,
    /// Too far in the future.
    pub in_future: u64,
    /// Points of coarser archives that were computed and written.
    pub propagated: u64,
}

/// Memory of updates, for use again: a caller with many files keeps one per thread.
#[derive(Debug, Default)]
pub struct Scratch {
    run: Vec<u8>,
    level: Level,
}

impl<F: TreeFile> WhisperFile<F> {
    /// Stores one point, with the rules of the original's single update: its age must be less than the maximum
    /// retention, and not negative.
    ///
    /// # Errors
    /// The point is not covered, or the disk failed.
    pub fn update(&mut self, point: Point, now: i64, scratch: &mut Scratch) -> Result<Written, UpdateError> {
        let age = now.saturating_sub(point.time);
        let retention = self.header().retention();
        let covers = self.header().archives().iter().position(|archive| archive.retention() >= age);
        let index = match covers {
            Some(index) if (0..retention).contains(&age) && is_storable(point.time, self.archive(index)) => {
                index
            }
            _ => return Err(UpdateError::NotCovered(NotCovered { age, retention })),
        };
        let mut written = Written::default();
        self.group(index, &[point], scratch, &mut written)?;
        Ok(written)
    }

    /// Stores many points: each in the finest archive that covers it, and propagated from there. Sorts `points`; sorted
    /// ones cost least. `now` in Unix seconds.
    ///
    /// # Errors
    /// The disk failed. Any part may have been written then; the same call again has the same result as if the first one
    /// had not been.
    pub fn update_many(
        &mut self,
        points: &mut [Point],
        now: i64,
        options: &UpdateOptions,
        scratch: &mut Scratch,
    ) -> Result<Written, FileError> {
        if options.first_duplicate {
            points.reverse();
        }
        if !points.is_sorted_by_key(|point| point.time) {
            points.sort_by_key(|point| point.time);
        }
        let mut written = Written::default();
        let points = self.without_future(points, now, options, &mut written);
        // From the newest point to the oldest, and from the finest archive to the coarsest.
        let (mut end, mut index) = (points.len(), 0);
        while end > 0 {
            let Some(archive) = self.header().archives().get(index).copied() else { break };
            let oldest = now.saturating_sub(archive.retention());
            let start = points[..end]
                .partition_point(|point| point.time < oldest || !is_storable(point.time, archive));
            self.group(index, &points[start..end], scratch, &mut written)?;
            (end, index) = (start, index + 1);
        }
        written.too_old += end as u64;
        Ok(written)
    }

    /// Leaves off the points that are too far in the future.
    fn without_future<'p>(
        &self,
        points: &'p [Point],
        now: i64,
        options: &UpdateOptions,
        written: &mut Written,
    ) -> &'p [Point] {
        let max_future = options.max_future.unwrap_or(self.archive(0).step.max(MAX_FUTURE_LEAST));
        let newest = match options.accept_future {
            true => i64::from(u32::MAX),
            false => now.saturating_add(i64::from(max_future)).min(i64::from(u32::MAX)),
        };
        let end = points.partition_point(|point| point.time <= newest);
        written.in_future += (points.len() - end) as u64;
        &points[..end]
    }

    /// Stores points, sorted by time, in one archive, whatever their age, and propagates them from there. Times that no
    /// file can have are left off.
    pub(in crate::whisper) fn update_archive(
        &mut self,
        index: usize,
        points: &[Point],
        scratch: &mut Scratch,
        written: &mut Written,
    ) -> Result<(), FileError> {
        let archive = self.archive(index);
        let start = points.partition_point(|point| point.time < i64::from(archive.step));
        let end = points.partition_point(|point| point.time <= i64::from(u32::MAX));
        written.too_old += start as u64;
        written.in_future += (points.len() - end) as u64;
        self.group(index, points.get(start..end).unwrap_or_default(), scratch, written)
    }

    /// Writes points to one archive and propagates them to the coarser ones.
    fn group(
        &mut self,
        index: usize,
        points: &[Point],
        scratch: &mut Scratch,
        written: &mut Written,
    ) -> Result<(), FileError> {
        if points.is_empty() {
            return Ok(());
        }
        let times = points.iter().map(|point| point.time);
        let stored = self.write_points(index, points, &mut scratch.run, written);
        match stored.and_then(|()| self.propagate(index, times, &mut scratch.level)) {
            Ok(propagated) => {
                written.propagated += propagated;
                Ok(())
            }
            Err(error) => {
                self.forget_bases();
                Err(error.into())
            }
        }
    }

    /// Writes points, ascending, to one archive: those of neighbouring slots by one call.
    fn write_points(
        &mut self,
        index: usize,
        points: &[Point],
        run: &mut Vec<u8>,
        written: &mut Written,
    ) -> Result<(), DiskError> {
        let archive = self.archive(index);
        let step = i64::from(archive.step);
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return Ok(()) };
        let first = aligned(first.time, archive.step);
        let base = match self.base(index)? {
            0 => u32::try_from(first).expect("only times of 32 bits are storable"),
            base => base,
        };
        let lapped =
            if last.time - first >= archive.retention() { lapped(archive, base, points) } else { Vec::new() };
        run.clear();
        let mut start = first;
        let mut next = None;
        for (at, point) in points.iter().enumerate() {
            let interval = aligned(point.time, archive.step);
            match points.get(at + 1) {
                Some(after) if after.time == point.time => {
                    written.duplicate += 1;
                    continue;
                }
                Some(after) if aligned(after.time, archive.step) == interval => {
                    written.same_slot += 1;
                    continue;
                }
                _ => {}
            }
            if is_in(&lapped, at) {
                written.same_slot += 1;
                continue;
            }
            if next != Some(interval) {
                if next.is_some() {
                    ring::write(&self.file, archive, ring::slot(archive, base, start), run)?;
                    run.clear();
                }
                start = interval;
            }
            ring::push_point(run, interval, point.value);
            next = Some(interval + step);
            written.written += 1;
        }
        ring::write(&self.file, archive, ring::slot(archive, base, start), run)?;
        self.remember(index, base);
        Ok(())
    }
}

/// Points that this archive can store: from the first step on, as interval 0 marks an empty slot.
fn is_storable(time: i64, archive: Archive) -> bool {
    (i64::from(archive.step)..=i64::from(u32::MAX)).contains(&time)
}

/// Ranges of points that later ones of the call overwrite, a turn or more of the archive later.
fn lapped(archive: Archive, base: u32, points: &[Point]) -> Vec<Range<usize>> {
    let slot_of = |point: &Point| ring::slot(archive, base, aligned(point.time, archive.step));
    let mut by_slot: Vec<(u32, usize)> =
        points.iter().enumerate().map(|(at, point)| (slot_of(point), at)).collect();
    by_slot.sort_unstable();
    let over = by_slot.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].1);
    let mut over: Vec<usize> = over.collect();
    over.sort_unstable();
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in over {
        match ranges.last_mut() {
            Some(last) if last.end == at => last.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

fn is_in(ranges: &[Range<usize>], at: usize) -> bool {
    let before = ranges.partition_point(|range| range.end <= at);
    ranges.get(before).is_some_and(|range| range.contains(&at))
}
