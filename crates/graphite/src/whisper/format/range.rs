//! Which values a request gets: archive, times and step (spec graphite §5.7, steps 1 to 3). Only the header is needed, so
//! that a caller can limit a request before anything is read, and can find the places of points that are not in the file
//! yet.

use std::fmt;

use super::header::{Archive, Header};

/// Times are limited to this in both directions before anything is computed with them. All times of a file have 32 bits.
const TIME_MAX: i64 = 1 << 40;

/// Values of one archive at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchRange {
    /// Number of the archive, from 0.
    pub archive: usize,
    /// Time of the first value, in Unix seconds.
    pub start: i64,
    /// Time of the last value plus a step.
    pub end: i64,
    /// Seconds between two values.
    pub step: u32,
}

impl FetchRange {
    /// Number of values; at least 1, at most the points of the archive.
    pub fn points(&self) -> u64 {
        ((self.end - self.start) / i64::from(self.step)).unsigned_abs()
    }
}

/// Why a range has no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeError {
    /// It ends before it begins.
    Backwards {
        /// Its begin.
        from: i64,
        /// Its end.
        until: i64,
    },
    /// No archive has this step.
    NoSuchStep {
        /// The step.
        step: u32,
    },
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RangeError::Backwards { from, until } => {
                write!(f, "the range begins at {from}, after its end {until}")
            }
            RangeError::NoSuchStep { step } => write!(f, "no archive has a step of {step} s"),
        }
    }
}

impl std::error::Error for RangeError {}

impl Header {
    /// The values after `from` up to `until`, from the finest archive that covers `from`, with at least one step. None
    /// when the range is older than the file covers, or begins after `now`. All times in Unix seconds.
    ///
    /// # Errors
    /// The range is backwards.
    pub fn range(&self, from: i64, until: i64, now: i64) -> Result<Option<FetchRange>, RangeError> {
        let Some((from, until, now)) = self.clamped(from, until, now)? else { return Ok(None) };
        // The coarsest archive has at least the retention of the file, to which `from` is clamped.
        let covers = self.archives().iter().position(|archive| archive.retention() >= now - from);
        Ok(Some(self.range_in(covers.unwrap_or(self.archives().len() - 1), from, until)))
    }

    /// The same from the archive with this step, as far as that one covers it.
    ///
    /// # Errors
    /// The range is backwards, or no archive has this step.
    pub fn range_of_step(
        &self,
        step: u32,
        from: i64,
        until: i64,
        now: i64,
    ) -> Result<Option<FetchRange>, RangeError> {
        let Some((from, until, now)) = self.clamped(from, until, now)? else { return Ok(None) };
        let found = self.archives().iter().position(|archive| archive.step == step);
        let index = found.ok_or(RangeError::NoSuchStep { step })?;
        let oldest = now - self.archives()[index].retention();
        if until < oldest {
            return Ok(None);
        }
        Ok(Some(self.range_in(index, from.max(oldest), until)))
    }

    /// The values after `from` up to `until` in one archive: at least one, at most as many as the archive has.
    pub(in crate::whisper) fn range_in(&self, index: usize, from: i64, until: i64) -> FetchRange {
        let Archive { step, points, .. } = self.archives()[index];
        let [from, until] = [from, until].map(|time| time.clamp(-TIME_MAX, TIME_MAX));
        let seconds = i64::from(step);
        let behind = |time: i64| time - time.rem_euclid(seconds) + seconds;
        let start = behind(from);
        let values = ((behind(until) - start) / seconds).clamp(1, i64::from(points));
        FetchRange { archive: index, start, end: start + values * seconds, step }
    }

    /// The range and now, with the range inside the time that the file covers.
    fn clamped(&self, from: i64, until: i64, now: i64) -> Result<Option<(i64, i64, i64)>, RangeError> {
        if from > until {
            return Err(RangeError::Backwards { from, until });
        }
        let [from, until, now] = [from, until, now].map(|time| time.clamp(-TIME_MAX, TIME_MAX));
        let oldest = now - self.retention();
        if from > now || until < oldest {
            return Ok(None);
        }
        Ok(Some((from.max(oldest), until.min(now), now)))
    }
}
