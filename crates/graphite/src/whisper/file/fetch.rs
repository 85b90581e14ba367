//! Values of a range of time (spec graphite §5.7).

use model::TreeFile;

use super::error::{FetchError, FileError};
use super::open::WhisperFile;
use super::ring::{self, CHUNK_POINTS_MAX, aligned};

/// Times are limited to this in both directions before anything is computed with them. All times of a file have 32 bits.
const TIME_MAX: i64 = 1 << 40;

/// Values of one archive at equal distances.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// Time of the first value, in Unix seconds.
    pub start: i64,
    /// Time of the last value plus a step.
    pub end: i64,
    /// Seconds between two values.
    pub step: u32,
    /// (end - start) / step values; none where nothing is stored.
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
    /// when the range is older than the file covers, or begins after `now`. All times in Unix seconds.
    ///
    /// # Errors
    /// The range is backwards, or the disk failed.
    pub fn fetch(&self, from: i64, until: i64, now: i64) -> Result<Option<Fetched>, FetchError> {
        let Some((from, until, now)) = self.clamped(from, until, now)? else { return Ok(None) };
        let archives = self.header().archives();
        // The coarsest one has the retention of the file, to which `from` is clamped.
        let covers = archives.iter().position(|archive| archive.retention() >= now - from);
        let index = covers.unwrap_or(archives.len() - 1);
        Ok(Some(self.fetch_archive(index, from, until)?))
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
        let Some((from, until, now)) = self.clamped(from, until, now)? else { return Ok(None) };
        let found = self.header().archives().iter().position(|archive| archive.step == step);
        let index = found.ok_or(FetchError::NoSuchStep { step })?;
        let oldest = now - self.archive(index).retention();
        if until < oldest {
            return Ok(None);
        }
        Ok(Some(self.fetch_archive(index, from.max(oldest), until)?))
    }

    /// The range and now, with the range inside the time that the file covers.
    fn clamped(&self, from: i64, until: i64, now: i64) -> Result<Option<(i64, i64, i64)>, FetchError> {
        if from > until {
            return Err(FetchError::Backwards { from, until });
        }
        let [from, until, now] = [from, until, now].map(|time| time.clamp(-TIME_MAX, TIME_MAX));
        let oldest = now - self.header().retention();
        if from > now || until < oldest {
            return Ok(None);
        }
        Ok(Some((from.max(oldest), until.min(now), now)))
    }

    /// The values after `from` up to `until` in one archive, with at least one step. The range must not be longer than
    /// the archive: at its end it is cut.
    pub(in crate::whisper) fn fetch_archive(
        &self,
        index: usize,
        from: i64,
        until: i64,
    ) -> Result<Fetched, FileError> {
        let archive = self.archive(index);
        let step = i64::from(archive.step);
        let start = aligned(from, archive.step) + step;
        let end = (aligned(until, archive.step) + step).max(start + step);
        let count = ((end - start) / step).min(i64::from(archive.points));
        let end = start + count * step;
        let base = self.known_base(index)?;
        let count = count.unsigned_abs();
        if base == 0 {
            return Ok(Fetched { start, end, step: archive.step, values: vec![None; count as usize] });
        }
        let mut values = Vec::with_capacity(count as usize);
        let mut buffer = vec![0; (count as usize).min(CHUNK_POINTS_MAX) * 12];
        let mut expected = start;
        let first = ring::slot(archive, base, start);
        ring::read(&self.file, archive, first, count, &mut buffer, |time, value| {
            values.push((i64::from(time) == expected).then_some(value));
            expected += step;
        })?;
        Ok(Fetched { start, end, step: archive.step, values })
    }

    /// Gives the slots of an archive to `each` as they are stored, from the first one on: number, time and value. Empty
    /// ones have time 0.
    ///
    /// # Errors
    /// The disk failed.
    ///
    /// # Panics
    /// There is no archive of this number.
    pub fn each_slot(&self, index: usize, mut each: impl FnMut(u32, u32, f64)) -> Result<(), FileError> {
        let archive = self.archive(index);
        let mut number = 0;
        ring::read(&self.file, archive, 0, u64::from(archive.points), &mut Vec::new(), |time, value| {
            each(number, time, value);
            number += 1;
        })?;
        Ok(())
    }
}
