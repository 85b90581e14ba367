//! Points in time as values, and the time zones in which they are read.

use std::sync::OnceLock;

use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ZonedDateTime};

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Zone {
    /// So many seconds east of UTC.
    Fixed(i32),
    /// A zone of the tz database, by its place among the names.
    Named(u16),
}

/// The names of the zones, in their order. They are those of the program, not of the host, so that the answer is the same everywhere.
fn names() -> &'static [String] {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut names: Vec<String> =
            TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect();
        names.sort();
        names
    })
}

impl Zone {
    /// UTC.
    pub const UTC: Zone = Zone::Fixed(0);

    /// The zone of a name, such as `Europe/Berlin`, `UTC`, or `+02:00`.
    pub fn find(name: &str) -> Option<Zone> {
        if matches!(name, "UTC" | "Z" | "GMT") {
            return Some(Zone::UTC);
        }
        if let Some(seconds) = offset(name) {
            return Some(Zone::Fixed(seconds));
        }
        let at = names().binary_search_by(|known| known.as_str().cmp(name)).ok()?;
        u16::try_from(at).ok().map(Zone::Named)
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Zone::Fixed(0) => "UTC".to_owned(),
            Zone::Fixed(seconds) => offset_text(seconds, true),
            Zone::Named(at) => names().get(usize::from(at)).cloned().unwrap_or_default(),
        }
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        names().iter().map(String::as_str)
    }

    fn time_zone(self) -> TimeZone {
        match self {
            Zone::Fixed(seconds) => Offset::from_seconds(seconds).map_or(TimeZone::UTC, TimeZone::fixed),
            Zone::Named(_) => TimeZoneDatabase::bundled().get(&self.name()).unwrap_or(TimeZone::UTC),
        }
    }
}

/// The seconds of `+02:00`, `+0200` or `-5`.
fn offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(both) => both,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let number = |text: &str, most: i32| {
        let is_plain = !text.is_empty() && text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| is_plain && *number <= most)
    };
    Some(sign * (number(hours, 23)? * 3600 + number(minutes, 59)? * 60))
}

/// `+02:00`, or `+0200` without the colon.
pub fn offset_text(seconds: i32, colon: bool) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    format!("{sign}{:02}{}{:02}", minutes / 60, if colon { ":" } else { "" }, minutes % 60)
}

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Milliseconds since 1970 in UTC.
    pub milliseconds: i64,
    /// Whether it is a date of clj-time (`org.joda.time.DateTime`) rather than a `java.util.Date`.
    pub is_joda: bool,
    /// The zone of its hours and days; UTC of a `java.util.Date`.
    pub zone: Zone,
}

impl Moment {
    /// A `java.util.Date`.
    pub fn date(milliseconds: i64) -> Moment {
        Moment { milliseconds, is_joda: false, zone: Zone::UTC }
    }

    /// A date of clj-time.
    pub fn joda(milliseconds: i64, zone: Zone) -> Moment {
        Moment { milliseconds, is_joda: true, zone }
    }

    /// Its hours and days in its zone; `None` past the years from -9999 to 9999.
    pub fn zoned(self) -> Option<ZonedDateTime> {
        let timestamp = Timestamp::from_millisecond(self.milliseconds).ok()?;
        Some(timestamp.to_zoned_datetime(self.zone.time_zone()))
    }

    /// The date of clj-time of hours and days in a zone; in a gap of the zone, the time after it.
    pub fn of_civil(time: jiff::civil::DateTime, zone: Zone) -> Option<Moment> {
        let zoned = zone.time_zone().to_zoned_datetime(time).ok()?;
        Some(Moment::joda(zoned.timestamp().as_millisecond(), zone))
    }
}
