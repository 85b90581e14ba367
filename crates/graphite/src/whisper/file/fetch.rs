//! Values of a range of time (spec graphite §5.7, step 4; steps 1 to 3 are [`Header::range`]).
//!
//! [`Header::range`]: crate::whisper::format::Header::range

use model::TreeFile;

use super::error::{FetchError, FileError};
use super::open::WhisperFile;
use super::ring::{self, CHUNK_POINTS_MAX};
use crate::whisper::format::{Archive, FetchRange, POINT_BYTES, RangeError};

/// Values of one archive at equal distances.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// Time of the first value, in Unix seconds.
    pub start: i64,
    /// Time of the last value plus a step.
    pub end: i64,
    /// Seconds between two values.
    pub step: u32,
    /// (end - start) / step values; none where nothing is stored. Queries have NaN there:
    /// [`series_of_file`](crate::series_of_file).
    pub values: Vec<Option<f64>>,
}

impl Fetched {
    /// The known values with their times.
    pub fn points(&self) -> impl Iterator<Item = (i64, f64)> + '_ {
        let times = (self.start..).step_by(self.step as usize);
        times.zip(&self.values).filter_map(|(time, value)| value.map(|value| (time, value)))
    }
}

impl<F: TreeFile> WhisperFile<F> {
    /// The values after `from` up to `until`, from the finest archive that covers `from`, with at least one step. None
    /// when the range is older than the file covers, or begins after `now`. All times in Unix seconds. As many values
    /// as the archive has points: a caller with a limit asks [`Header::range`] first.
    ///
    /// [`Header::range`]: crate::whisper::format::Header::range
    ///
    /// # Errors
    /// The range is backwards, or the disk failed.
    pub fn fetch(&self, from: i64, until: i64, now: i64) -> Result<Option<Fetched>, FetchError> {
        let range = self.header().range(from, until, now)?;
        range.map(|range| self.fetch_range(range)).transpose()
    }

    /// The same from the archive with this step, as far as that one covers it.
    ///
    /// # Errors
    /// As [`WhisperFile::fetch`], or no archive has this step.
    pub fn fetch_step(
        &self,
        step: u32,
        from: i64,
        until: i64,
        now: i64,
    ) -> Result<Option<Fetched>, FetchError> {
        let range = self.header().range_of_step(step, from, until, now)?;
        range.map(|range| self.fetch_range(range)).transpose()
    }

    /// The values of a range that the header of this file, or an equal one, returned.
    ///
    /// # Errors
    /// The file has no such archive, or the disk failed.
    pub fn fetch_range(&self, range: FetchRange) -> Result<Fetched, FetchError> {
        let FetchRange { archive, start, end, step } = range;
        let fits = |found: &Archive| found.step == step && range.points() <= u64::from(found.points);
        if !self.header().archives().get(archive).is_some_and(fits) || end <= start {
            return Err(FetchError::Range(RangeError::NoSuchStep { step }));
        }
        Ok(self.read_range(range)?)
    }

    /// The values after `from` up to `until` in one archive: at least one, at most as many as the archive has.
    pub(in crate::whisper) fn fetch_archive(
        &self,
        index: usize,
        from: i64,
        until: i64,
    ) -> Result<Fetched, FileError> {
        self.read_range(self.header().range_in(index, from, until))
    }

    fn read_range(&self, range: FetchRange) -> Result<Fetched, FileError> {
        let FetchRange { archive: index, start, end, step } = range;
        let archive = self.archive(index);
        let count = range.points();
        let base = self.known_base(index)?;
        if base == 0 {
            return Ok(Fetched { start, end, step, values: vec![None; count as usize] });
        }
        let mut values = Vec::with_capacity(count as usize);
        let mut buffer = vec![0; (count as usize).min(CHUNK_POINTS_MAX) * POINT_BYTES as usize];
        let mut expected = start;
        let first = ring::slot(archive, base, start);
        ring::read(&self.file, archive, first, count, &mut buffer, |time, value| {
            values.push((i64::from(time) == expected).then_some(value));
            expected += i64::from(step);
        })?;
        Ok(Fetched { start, end, step, values })
    }

    /// Gives the slots of an archive to `each` as they are stored, from the first one on: number, time and value. Empty
    /// ones have time 0. It ends when `each` returns false, at the latest with the chunk that is read.
    ///
    /// # Errors
    /// The disk failed.
    ///
    /// # Panics
    /// There is no archive of this number.
    pub fn each_slot(
        &self,
        index: usize,
        mut each: impl FnMut(u32, u32, f64) -> bool,
    ) -> Result<(), FileError> {
        let archive = self.archive(index);
        let (mut number, mut goes_on, mut buffer) = (0, true, Vec::new());
        while goes_on && number < archive.points {
            let points = u64::from(archive.points - number).min(CHUNK_POINTS_MAX as u64);
            ring::read(&self.file, archive, number, points, &mut buffer, |time, value| {
                goes_on = goes_on && each(number, time, value);
                number += 1;
            })?;
        }
        Ok(())
    }
}
