//! Retention texts: `60s:1d`, `1min:5years`, `60:1440` (spec graphite §4.3).
//!
//! The first part is the step, in seconds or with a unit. The second one is the number of points, or with a unit the
//! time that they cover.

use std::fmt;
use std::ops::Range;

use super::layout::ArchivePlan;

/// Longest list of retentions.
pub const RETENTION_BYTES_MAX: usize = 4096;

/// Units: a word is valid if one of these words begins with it, the first that does.
const UNITS: [(&str, u64); 6] = [
    ("seconds", 1),
    ("minutes", 60),
    ("hours", 3_600),
    ("days", 86_400),
    ("weeks", 7 * 86_400),
    ("years", 365 * 86_400),
];

/// A mistake in a text of retentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionError {
    /// Its place in the text, in bytes.
    pub at: Range<usize>,
    /// What is wrong there.
    pub fault: RetentionFault,
}

/// What is wrong with a retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionFault {
    /// There is no `:` between step and points.
    NoColon,
    /// Not a whole number, or one without a unit that is known.
    NotANumber,
    /// The unit is none of seconds, minutes, hours, days, weeks, years, nor the beginning of one.
    Unit,
    /// The number does not fit into 32 bits.
    TooLarge,
    /// The step is 0.
    ZeroStep,
    /// There are no points: the number is 0, or the time is shorter than a step.
    NoPoints,
    /// The text has more than [`RETENTION_BYTES_MAX`] bytes.
    TextTooLong,
}

impl fmt::Display for RetentionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RetentionFault::NoColon => "no `:` between step and points, as in `60s:1d`",
            RetentionFault::NotANumber => "not a whole number with or without a unit, as in `60` or `10min`",
            RetentionFault::Unit => {
                "the unit is none of seconds, minutes, hours, days, weeks, years (or s, m, h, d, w, y)"
            }
            RetentionFault::TooLarge => "the number is larger than 2^32 - 1",
            RetentionFault::ZeroStep => "the step is 0 seconds",
            RetentionFault::NoPoints => "no point: the time is shorter than the step",
            RetentionFault::TextTooLong => "the text of the retentions is too long",
        })
    }
}

impl fmt::Display for RetentionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Before the first mistake a text has digits, units and colons only: bytes are columns.
        write!(f, "{} (column {})", self.fault, self.at.start + 1)
    }
}

impl std::error::Error for RetentionError {}

/// Reads a list of retentions with commas between them, in the order of the text.
///
/// # Errors
/// The first mistake.
pub fn parse_retentions(text: &str) -> Result<Vec<ArchivePlan>, RetentionError> {
    if text.len() > RETENTION_BYTES_MAX {
        return Err(RetentionError { at: 0..text.len(), fault: RetentionFault::TextTooLong });
    }
    let mut start = 0;
    let mut archives = Vec::new();
    for part in text.split(',') {
        archives.push(retention_at(part, start)?);
        start += part.len() + 1;
    }
    Ok(archives)
}

/// Reads one retention.
///
/// # Errors
/// The first mistake.
pub fn parse_retention(text: &str) -> Result<ArchivePlan, RetentionError> {
    retention_at(text, 0)
}

fn retention_at(text: &str, start: usize) -> Result<ArchivePlan, RetentionError> {
    let start = start + (text.len() - text.trim_start().len());
    let text = text.trim();
    let fail = |from: usize, length: usize, fault| {
        Err(RetentionError { at: start + from..start + from + length, fault })
    };
    let Some((step_text, points_text)) = text.split_once(':') else {
        return fail(0, text.len(), RetentionFault::NoColon);
    };
    let points_at = step_text.len() + 1;
    let (step, unit) = match number(step_text) {
        Ok(found) => found,
        Err(fault) => return fail(0, step_text.len(), fault),
    };
    let step = step.saturating_mul(unit.unwrap_or(1));
    if step == 0 {
        return fail(0, step_text.len(), RetentionFault::ZeroStep);
    }
    let Ok(step_seconds) = u32::try_from(step) else {
        return fail(0, step_text.len(), RetentionFault::TooLarge);
    };
    let (count, unit) = match number(points_text) {
        Ok(found) => found,
        Err(fault) => return fail(points_at, points_text.len(), fault),
    };
    let points = unit.map_or(count, |unit| count.saturating_mul(unit) / step);
    match u32::try_from(points) {
        Ok(0) => fail(points_at, points_text.len(), RetentionFault::NoPoints),
        Ok(points) => Ok(ArchivePlan { step: step_seconds, points }),
        Err(_) => fail(points_at, points_text.len(), RetentionFault::TooLarge),
    }
}

/// A number, and the seconds of its unit if there is one.
fn number(text: &str) -> Result<(u64, Option<u64>), RetentionFault> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(RetentionFault::NotANumber);
    }
    let seconds = if unit.is_empty() {
        None
    } else if unit.bytes().all(|byte| byte.is_ascii_lowercase()) {
        let found = UNITS.iter().find(|(word, _)| word.starts_with(unit));
        Some(found.ok_or(RetentionFault::Unit)?.1)
    } else {
        return Err(RetentionFault::NotANumber);
    };
    // Only digits: what cannot be read is too large.
    let number = number.parse().map_err(|_| RetentionFault::TooLarge)?;
    Ok((number, seconds))
}
