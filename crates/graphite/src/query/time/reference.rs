//! The part of a time expression before its offset: a time of day, a day, or both.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::{Timestamp, ToSpan};

use super::{Clock, Part, TimeError, Unit, error};

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("sun", Weekday::Sunday),
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
];

/// True for eight digits that are a date and not epoch seconds.
pub(super) fn is_date(digits: &str) -> bool {
    let number = |from: usize, to: usize| digits.get(from..to).and_then(|d| d.parse::<u32>().ok());
    digits.len() == 8
        && number(0, 4).is_some_and(|year| year > 1900)
        && number(4, 6).is_some_and(|month| month < 13)
        && number(6, 8).is_some_and(|day| day < 32)
}

/// Epoch seconds of a reference; an empty one is now.
pub(super) fn resolve(part: Part<'_>, clock: &Clock<'_>) -> Result<i64, TimeError> {
    if part.text.is_empty() || part.text == "now" {
        return Ok(clock.now);
    }
    let today = local(clock)?;
    let (time, day) = time_of_day(part)?;
    let date = day_of(day, today.date())?;
    seconds(date.to_datetime(time), clock).map_or_else(|| part.error("this date does not exist"), Ok)
}

fn local(clock: &Clock<'_>) -> Result<DateTime, TimeError> {
    let Ok(now) = Timestamp::from_second(clock.now) else {
        return error(0, "the current time is outside of the years 1 to 9999");
    };
    Ok(clock.zone.to_datetime(now))
}

/// Local time to epoch seconds. A time that occurs twice is the second one, a skipped one is moved forward.
fn seconds(local: DateTime, clock: &Clock<'_>) -> Option<i64> {
    clock.zone.to_ambiguous_timestamp(local).later().ok().map(Timestamp::as_second)
}

/// The time of day (midnight if none is given), and the rest.
fn time_of_day(part: Part<'_>) -> Result<(Time, Part<'_>), TimeError> {
    const WORDS: [(&str, i8); 3] = [("noon", 12), ("midnight", 0), ("teatime", 16)];
    let digits = part.digits();
    let after = part.after(digits);
    let (hour, minute, rest) = if digits <= 2 && digits > 0 {
        let hour = number(&part, digits)?;
        if after.text.starts_with(':') {
            let minutes = after.after(1);
            let len = minutes.digits().min(2);
            if len == 0 {
                return minutes.error("expected minutes, such as `18:30`");
            }
            let (hour, rest) = half_of_day(hour, minutes.after(len));
            (hour, number(&minutes, len)?, rest)
        } else if after.text.starts_with("am") || after.text.starts_with("pm") {
            let (hour, rest) = half_of_day(hour, after);
            (hour, 0, rest)
        } else {
            (0, 0, part)
        }
    } else if let Some((word, hour)) = WORDS.iter().find(|(word, _)| part.text.starts_with(word)) {
        (*hour, 0, part.after(word.len()))
    } else {
        (0, 0, part)
    };
    match Time::new(hour, minute, 0, 0) {
        Ok(time) => Ok((time, rest)),
        Err(_) => part.error("a time of day is between 00:00 and 23:59"),
    }
}

/// Reads `am` or `pm`: `pm` adds twelve hours modulo 24, `am` none.
fn half_of_day(hour: i8, rest: Part<'_>) -> (i8, Part<'_>) {
    if rest.text.starts_with("am") {
        (hour, rest.after(2))
    } else if rest.text.starts_with("pm") {
        ((hour + 12) % 24, rest.after(2))
    } else {
        (hour, rest)
    }
}

/// The first `len` digits of a part; at most two, so they fit.
fn number(part: &Part<'_>, len: usize) -> Result<i8, TimeError> {
    part.text[..len].parse::<i8>().or_else(|_| part.error("expected a number"))
}

fn day_of(day: Part<'_>, today: Date) -> Result<Date, TimeError> {
    let shifted = |days: i64| {
        let moved = today.checked_add(days.days());
        moved.or_else(|_| day.error("this day is outside of the years 1 to 9999"))
    };
    match day.text {
        "" | "today" => return Ok(today),
        "yesterday" => return shifted(-1),
        "tomorrow" => return shifted(1),
        _ => {}
    }
    if day.text.matches('/').count() == 2 {
        return slashes(day);
    }
    if day.text.len() == 8 && day.digits() == 8 {
        let all: i32 = day.text.parse().or_else(|_| day.error("expected a date"))?;
        return date(day, all / 10_000, all / 100 % 100, all % 100);
    }
    let name = day.text.get(..3).unwrap_or_default();
    if let Some(month) = (1..).zip(MONTHS).find(|(_, month)| *month == name).map(|(number, _)| number) {
        let digits = day.text.bytes().rev().take_while(u8::is_ascii_digit).count().min(2);
        let Ok(number) = day.text[day.text.len() - digits..].parse() else {
            return day.after(day.text.len()).error("expected the day of the month, such as `jan5`");
        };
        return date(day, i32::from(today.year()), month, number);
    }
    if let Some((_, weekday)) = WEEKDAYS.iter().find(|(weekday, _)| *weekday == name) {
        return shifted(-i64::from(today.weekday().since(*weekday)));
    }
    let text = day.text;
    let hint = if day.digits() > 0 { ": an interval before now begins with `-`" } else { "" };
    day.error(format!("unknown time or day `{text}`{hint}"))
}

/// `MM/DD/YY` or `MM/DD/YYYY`.
fn slashes(day: Part<'_>) -> Result<Date, TimeError> {
    let mut numbers = day.text.split('/').map(|n| n.parse::<i32>().ok().filter(|n| (0..=9999).contains(n)));
    let mut next = || numbers.next().flatten();
    let (Some(month), Some(number), Some(year)) = (next(), next(), next()) else {
        return day.error("expected a date such as `12/31/24`");
    };
    let year = if year < 1900 { year + 1900 } else { year };
    let year = if year < 1970 { year + 100 } else { year };
    date(day, year, month, number)
}

fn date(part: Part<'_>, year: i32, month: i32, day: i32) -> Result<Date, TimeError> {
    let made = match (i16::try_from(year), i8::try_from(month), i8::try_from(day)) {
        (Ok(year), Ok(month), Ok(day)) if year > 0 => Date::new(year, month, day).ok(),
        _ => None,
    };
    made.map_or_else(|| part.error(format!("there is no day {year:04}-{month:02}-{day:02}")), Ok)
}

/// The start of the unit that contains a time, in the zone. Weeks begin at `weekday` (1 = Monday … 7 = Sunday).
#[must_use]
pub fn floor(time: i64, unit: Unit, weekday: i8, zone: &jiff::tz::TimeZone) -> i64 {
    let clock = Clock { now: time, zone };
    let Ok(local) = local(&clock) else { return time };
    let at = |date: Date, hour, minute, second| {
        Time::new(hour, minute, second, 0)
            .ok()
            .and_then(|t| seconds(date.to_datetime(t), &clock))
            .unwrap_or(time)
    };
    let date = local.date();
    match unit {
        Unit::Seconds => time,
        // Minutes and hours are subtracted: local times that occur twice keep their own.
        Unit::Minutes => time - i64::from(local.second()),
        Unit::Hours => time - i64::from(local.second()) - 60 * i64::from(local.minute()),
        Unit::Days => at(date, 0, 0, 0),
        Unit::Weeks => {
            let back = (date.weekday().to_monday_one_offset() - weekday).rem_euclid(7);
            date.checked_sub(i64::from(back).days()).map_or(time, |date| at(date, 0, 0, 0))
        }
        Unit::Months => at(date.first_of_month(), 0, 0, 0),
        Unit::Years => at(date.first_of_year(), 0, 0, 0),
    }
}

/// True when daylight saving time applies at this time.
#[must_use]
pub fn is_summer_time(time: i64, zone: &jiff::tz::TimeZone) -> bool {
    Timestamp::from_second(time).is_ok_and(|time| zone.to_offset_info(time).dst().is_dst())
}
