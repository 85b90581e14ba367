//! Time expressions of graphite-web: `-1h`, `noon yesterday`, `18:30_20240101`, and offsets such as `1d2h`.
//!
//! Path of a text: [`parse_time`] -> `Cleaned` (lower case, no spaces) -> reference and offset -> epoch seconds.
//! Pure: the current time and the zone are arguments. Invariant: any text gives a time or a [`TimeError`], never a panic
//! (fuzz target `graphite_time`).
//! Kept as in the original: `12am` is noon, `12pm` is midnight, a month has 30 days and a year 365.
//! Not here: which parameters are times (`table`).

mod reference;
#[cfg(test)]
mod tests;

use std::fmt;

use jiff::tz::TimeZone;

/// Longest accepted time expression in bytes.
pub const TIME_BYTES_MAX: usize = 256;

/// Largest and smallest time of a result: the years 1 to 9999, as in the original.
const SECONDS_MAX: i64 = 253_402_207_199;
const SECONDS_MIN: i64 = -62_135_510_400;

const SECONDS_PER_DAY: i64 = 86_400;

/// The current time and the zone in which texts are read.
#[derive(Clone, Copy, Debug)]
pub struct Clock<'z> {
    /// Epoch seconds to which `now` and offsets refer.
    pub now: i64,
    /// Zone of `noon`, `today` and dates.
    pub zone: &'z TimeZone,
}

/// Why a text is not a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeError {
    /// Byte position in the text.
    pub at: usize,
    /// What is wrong there, without a full stop.
    pub message: String,
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.message, self.at)
    }
}

impl std::error::Error for TimeError {}

fn error<T>(at: usize, message: impl Into<String>) -> Result<T, TimeError> {
    Err(TimeError { at, message: message.into() })
}

/// A unit of offsets and alignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Names that begin with `s`.
    Seconds,
    /// Names that begin with `min`.
    Minutes,
    /// Names that begin with `h`.
    Hours,
    /// Names that begin with `d`.
    Days,
    /// Names that begin with `w`.
    Weeks,
    /// Names that begin with `mon`; 30 days in an offset.
    Months,
    /// Names that begin with `y`; 365 days in an offset.
    Years,
}

impl Unit {
    /// The unit that a name begins with; only the beginning is read.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Unit> {
        const NAMES: [(&str, Unit); 7] = [
            ("s", Unit::Seconds),
            ("min", Unit::Minutes),
            ("h", Unit::Hours),
            ("d", Unit::Days),
            ("w", Unit::Weeks),
            ("mon", Unit::Months),
            ("y", Unit::Years),
        ];
        NAMES.iter().find(|(start, _)| name.starts_with(start)).map(|(_, unit)| *unit)
    }

    fn seconds(self) -> i64 {
        match self {
            Unit::Seconds => 1,
            Unit::Minutes => 60,
            Unit::Hours => 3_600,
            Unit::Days => SECONDS_PER_DAY,
            Unit::Weeks => 7 * SECONDS_PER_DAY,
            Unit::Months => 30 * SECONDS_PER_DAY,
            Unit::Years => 365 * SECONDS_PER_DAY,
        }
    }
}

/// A text in lower case without spaces, `_` and `,`, with the position of each byte in the original.
struct Cleaned {
    text: String,
    places: Vec<usize>,
}

impl Cleaned {
    fn new(text: &str) -> Result<Cleaned, TimeError> {
        if text.len() > TIME_BYTES_MAX {
            return error(TIME_BYTES_MAX, format!("a time has at most {TIME_BYTES_MAX} bytes"));
        }
        let mut cleaned = Cleaned { text: String::with_capacity(text.len()), places: Vec::new() };
        for (at, c) in text.char_indices() {
            if !c.is_ascii() {
                return error(at, format!("unexpected character `{c}` in a time"));
            }
            if !matches!(c, '_' | ',') && !c.is_ascii_whitespace() {
                cleaned.text.push(c.to_ascii_lowercase());
                cleaned.places.push(at);
            }
        }
        cleaned.places.push(text.len());
        Ok(cleaned)
    }

    /// Position in the original text.
    fn place(&self, at: usize) -> usize {
        self.places.get(at).or(self.places.last()).copied().unwrap_or(0)
    }

    fn part(&self, from: usize, to: usize) -> Part<'_> {
        Part { whole: self, from, text: &self.text[from..to] }
    }
}

/// A piece of a cleaned text.
#[derive(Clone, Copy)]
struct Part<'t> {
    whole: &'t Cleaned,
    from: usize,
    text: &'t str,
}

impl<'t> Part<'t> {
    /// Without its first `len` bytes.
    fn after(self, len: usize) -> Part<'t> {
        Part { from: self.from + len, text: &self.text[len..], ..self }
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, TimeError> {
        error(self.whole.place(self.from), message)
    }

    /// Number of leading digits.
    fn digits(&self) -> usize {
        self.text.bytes().take_while(u8::is_ascii_digit).count()
    }
}

/// Reads a time expression as epoch seconds.
///
/// # Errors
/// The position and the reason when the text is no time, or is outside of the years 1 to 9999.
pub fn parse_time(text: &str, clock: &Clock<'_>) -> Result<i64, TimeError> {
    let cleaned = Cleaned::new(text)?;
    let all = &cleaned.text;
    if !all.is_empty() && all.bytes().all(|b| b.is_ascii_digit()) && !reference::is_date(all) {
        return match all.parse::<i64>() {
            Ok(seconds) if seconds <= SECONDS_MAX => Ok(seconds),
            _ => error(0, "this time is after the year 9999"),
        };
    }
    let split = all.find('+').or_else(|| all.find('-')).unwrap_or(all.len());
    let start = reference::resolve(cleaned.part(0, split), clock)?;
    let offset = offset_of(cleaned.part(split, all.len()))?;
    match start.checked_add(offset) {
        Some(seconds) if (SECONDS_MIN..=SECONDS_MAX).contains(&seconds) => Ok(seconds),
        _ => error(cleaned.place(split), "this time is outside of the years 1 to 9999"),
    }
}

/// What users may not expect of a time expression although it is valid: for a warning beside the answer.
#[must_use]
pub fn warning(text: &str) -> Option<&'static str> {
    let text = Cleaned::new(text).ok()?.text;
    let offset = text.find(['+', '-']).map(|at| &text[at..]).unwrap_or_default();
    if text.starts_with("12am") {
        Some("12am is noon here, as in graphite-web: write 00:00 or midnight")
    } else if text.starts_with("12pm") {
        Some("12pm is midnight here, as in graphite-web: write 12:00 or noon")
    } else if offset.contains("mon") {
        Some("a month is 30 days here, as in graphite-web")
    } else if offset.contains('y') && !offset.contains("day") {
        Some("a year is 365 days here, as in graphite-web")
    } else {
        None
    }
}

/// Reads an offset such as `-1d2h` or `5min` as seconds; without a sign it is positive.
///
/// # Errors
/// The position and the reason when the text is no offset.
pub fn parse_offset(text: &str) -> Result<i64, TimeError> {
    let cleaned = Cleaned::new(text)?;
    if cleaned.text.is_empty() {
        return error(0, "expected an interval such as `5min`, found nothing");
    }
    offset_of(cleaned.part(0, cleaned.text.len()))
}

fn offset_of(part: Part<'_>) -> Result<i64, TimeError> {
    let sign = match part.text.bytes().next() {
        None => return Ok(0),
        Some(b'-') => -1,
        _ => 1,
    };
    let signs = usize::from(matches!(part.text.as_bytes()[0], b'+' | b'-'));
    let mut rest = part.after(signs);
    let mut sum = 0_i64;
    if rest.text.is_empty() {
        return Ok(0);
    }
    while !rest.text.is_empty() {
        let digits = rest.digits();
        if digits == 0 {
            return rest.error("expected a number and a unit, such as `5min`");
        }
        let unit_part = rest.after(digits);
        let letters = unit_part.text.bytes().take_while(u8::is_ascii_alphabetic).count();
        let name = &unit_part.text[..letters];
        let Some(unit) = Unit::from_name(name) else {
            return unit_part.error(match name {
                "" => "the unit is missing: s, min, h, d, w, mon or y".to_owned(),
                "m" => "`m` is ambiguous: write `min` or `mon`".to_owned(),
                _ => format!("unknown unit `{name}`: use s, min, h, d, w, mon or y"),
            });
        };
        let seconds = rest.text[..digits].parse::<i64>().ok().and_then(|n| n.checked_mul(unit.seconds()));
        let Some(total) = seconds.and_then(|s| sum.checked_add(s)).filter(|s| *s <= 2 * SECONDS_MAX) else {
            return rest.error("this interval is too long");
        };
        sum = total;
        rest = unit_part.after(letters);
    }
    Ok(sign * sum)
}

pub use reference::{floor, is_summer_time};
