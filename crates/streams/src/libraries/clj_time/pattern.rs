//! Joda's patterns for times, such as `yyyy-MM-dd HH:mm:ss`: to text and back.
//!
//! Letters as in Joda's `DateTimeFormat`, with English names; and `X` of Java, which is `Z` for UTC. Not here: eras, and names of
//! zones in texts that are read.

use jiff::ZonedDateTime;
use jiff::civil::{Date, DateTime, ISOWeekDate, Time, Weekday};

use crate::object::time::{Moment, Zone, offset_text};

/// Most bytes of a pattern.
pub(super) const PATTERN_BYTES_MAX: usize = 256;
/// Most letters of one sort in a row: a wide field is written with as many digits.
pub(super) const WIDTH_MAX: usize = 32;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Field(char, usize),
}

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(Vec<Part>);

impl Pattern {
    /// The parts of a pattern; the error says what is wrong with it.
    pub(super) fn new(text: &str) -> Result<Pattern, String> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(format!("Illegal pattern: more than {PATTERN_BYTES_MAX} bytes"));
        }
        let mut parts: Vec<Part> = Vec::new();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            if letter == '\'' {
                let (literal, after) = quoted(rest);
                push_literal(&mut parts, &literal);
                rest = after;
            } else if letter.is_ascii_alphabetic() {
                let count = rest.len() - rest.trim_start_matches(letter).len();
                if !"CYxyweEDMdaKhHkmsSzZX".contains(letter) || count > WIDTH_MAX {
                    return Err(format!("Illegal pattern component: {}", &rest[..count]));
                }
                parts.push(Part::Field(letter, count));
                rest = &rest[count..];
            } else {
                push_literal(&mut parts, letter.encode_utf8(&mut [0; 4]));
                rest = &rest[letter.len_utf8()..];
            }
        }
        if parts.is_empty() {
            return Err("Invalid pattern specification".to_owned());
        }
        Ok(Pattern(parts))
    }

    /// The text of a time.
    pub(super) fn format(&self, time: &ZonedDateTime, zone: Zone) -> String {
        let mut to = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(text) => to.push_str(text),
                Part::Field(letter, count) => to.push_str(&field(*letter, *count, time, zone)),
            }
        }
        to
    }

    /// The time of a text; its offset counts if it has one, and is in the zone otherwise. The error is the place of the first byte
    /// that does not fit.
    pub(super) fn parse(&self, text: &str, zone: Zone, now_year: i16) -> Result<Moment, usize> {
        let mut read = Read { text, at: 0, now_year, fields: Fields::default() };
        for (at, part) in self.0.iter().enumerate() {
            match part {
                Part::Literal(literal) => read.literal(literal)?,
                Part::Field(letter, count) => read.field(*letter, *count, self.0.get(at + 1))?,
            }
        }
        if read.at < text.len() {
            return Err(read.at);
        }
        read.fields.moment(zone).ok_or(0)
    }
}

fn push_literal(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Literal(last)) => last.push_str(text),
        _ => parts.push(Part::Literal(text.to_owned())),
    }
}

/// What stands between quotes, and what comes after; two quotes are one.
fn quoted(text: &str) -> (String, &str) {
    if let Some(after) = text.strip_prefix("''") {
        return ("'".to_owned(), after);
    }
    let mut literal = String::new();
    let mut rest = &text[1..];
    while let Some(at) = rest.find('\'') {
        literal.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix('\'') {
            Some(after) => {
                literal.push('\'');
                rest = after;
            }
            None => return (literal, rest),
        }
    }
    (literal + rest, "")
}

fn field(letter: char, count: usize, time: &ZonedDateTime, zone: Zone) -> String {
    let number = |value: i64| match value < 0 {
        true => format!("-{:0count$}", -value),
        false => format!("{value:0count$}"),
    };
    let year = |year: i16| number(i64::from(if count == 2 { year.rem_euclid(100) } else { year }));
    let short = |name: &str| if count >= 4 { name.to_owned() } else { name[..3].to_owned() };
    let week = || time.date().iso_week_date();
    let hour = i64::from(time.hour());
    let seconds = time.offset().seconds();
    match letter {
        'C' => number(i64::from(time.year()).div_euclid(100)),
        'Y' | 'y' => year(time.year()),
        'x' => year(week().year()),
        'w' => number(i64::from(week().week())),
        'e' => number(i64::from(time.weekday().to_monday_one_offset())),
        'E' => short(DAYS[usize::from(time.weekday().to_monday_zero_offset().unsigned_abs())]),
        'D' => number(i64::from(time.day_of_year())),
        'M' if count >= 3 => short(MONTHS[usize::from(time.month().unsigned_abs()) - 1]),
        'M' => number(i64::from(time.month())),
        'd' => number(i64::from(time.day())),
        'a' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        'K' => number(hour % 12),
        'h' => number((hour + 11) % 12 + 1),
        'H' => number(hour),
        'k' => number((hour + 23) % 24 + 1),
        'm' => number(i64::from(time.minute())),
        's' => number(i64::from(time.second())),
        'S' => {
            let digits = format!("{:03}{}", time.millisecond(), "0".repeat(WIDTH_MAX));
            digits[..count].to_owned()
        }
        'X' if seconds == 0 => "Z".to_owned(),
        'X' => offset_text(seconds, count > 1),
        'Z' if count > 2 => zone.name(),
        'Z' => offset_text(seconds, count == 2),
        // `z`
        _ => time.time_zone().to_offset_info(time.timestamp()).abbreviation().to_owned(),
    }
}

/// What a text says about a time.
#[derive(Debug, Default)]
struct Fields {
    year: Option<i16>,
    week_year: Option<i16>,
    week: Option<i64>,
    weekday: Option<i64>,
    day_of_year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    is_afternoon: Option<bool>,
    half_hour: Option<i64>,
    hour: Option<i64>,
    minute: Option<i64>,
    second: Option<i64>,
    nanosecond: i32,
    zone: Option<Zone>,
}

impl Fields {
    fn date(&self) -> Option<Date> {
        let small = |value: i64| i8::try_from(value).ok();
        if self.week_year.is_some() || self.week.is_some() {
            let weekday = Weekday::from_monday_one_offset(small(self.weekday.unwrap_or(1))?).ok()?;
            let year = self.week_year.or(self.year).unwrap_or(2000);
            return Some(ISOWeekDate::new(year, small(self.week.unwrap_or(1))?, weekday).ok()?.date());
        }
        // The year of a text without one, as in Joda.
        let year = self.year.unwrap_or(2000);
        if let Some(day) = self.day_of_year {
            return Date::new(year, 1, 1).ok()?.with().day_of_year(i16::try_from(day).ok()?).build().ok();
        }
        Date::new(year, small(self.month.unwrap_or(1))?, small(self.day.unwrap_or(1))?).ok()
    }

    fn moment(&self, zone: Zone) -> Option<Moment> {
        let small = |value: i64| i8::try_from(value).ok();
        let hour = match (self.hour, self.half_hour) {
            (Some(hour), _) => hour,
            (None, Some(half)) => half + if self.is_afternoon == Some(true) { 12 } else { 0 },
            (None, None) => 0,
        };
        let minute = small(self.minute.unwrap_or(0))?;
        let time = Time::new(small(hour)?, minute, small(self.second.unwrap_or(0))?, self.nanosecond).ok()?;
        let read = Moment::of_civil(DateTime::from_parts(self.date()?, time), self.zone.unwrap_or(zone))?;
        Some(Moment { zone, ..read })
    }
}

struct Read<'t> {
    text: &'t str,
    at: usize,
    now_year: i16,
    fields: Fields,
}

impl Read<'_> {
    fn literal(&mut self, literal: &str) -> Result<(), usize> {
        let found = self.text.get(self.at..self.at + literal.len());
        if !found.is_some_and(|found| found.eq_ignore_ascii_case(literal)) {
            return Err(self.at);
        }
        self.at += literal.len();
        Ok(())
    }

    /// So many digits at most, and whether there were as many.
    fn number(&mut self, most: usize) -> Result<(i64, usize), usize> {
        let rest = self.text[self.at..].bytes();
        let count = rest.take(most).take_while(u8::is_ascii_digit).count();
        let value = self.text[self.at..self.at + count].parse().map_err(|_| self.at)?;
        self.at += count;
        Ok((value, count))
    }

    fn ranged(&mut self, most: usize, range: std::ops::RangeInclusive<i64>) -> Result<i64, usize> {
        let begin = self.at;
        let (value, _) = self.number(most)?;
        if range.contains(&value) { Ok(value) } else { Err(begin) }
    }

    /// One of these names, in full or its first three letters.
    fn name(&mut self, names: &[&str]) -> Result<i64, usize> {
        let fits = |name: &str| {
            let found = self.text.get(self.at..self.at + name.len());
            found.is_some_and(|found| found.eq_ignore_ascii_case(name))
        };
        let full = names.iter().position(|name| fits(name)).map(|at| (at, names[at].len()));
        let found = full.or_else(|| names.iter().position(|name| fits(&name[..3])).map(|at| (at, 3)));
        let (at, length) = found.ok_or(self.at)?;
        self.at += length;
        i64::try_from(at + 1).map_err(|_| self.at)
    }

    /// A year; two digits are one near the present, and with a number right after it, only as many digits as letters.
    fn year(&mut self, count: usize, next: Option<&Part>) -> Result<i16, usize> {
        let begin = self.at;
        let is_negative = self.text[self.at..].starts_with('-');
        self.at += usize::from(is_negative);
        let is_before_number = matches!(next, Some(Part::Field(letter, width))
            if "CYxyweDdKhHkmsS".contains(*letter) || *letter == 'M' && *width < 3);
        let (value, digits) = self.number(if is_before_number { count } else { 4.max(count) })?;
        let value = i16::try_from(value).map_err(|_| begin)?;
        if count == 2 && digits == 2 && !is_negative {
            let least = self.now_year - 80;
            return Ok(least + (value - least).rem_euclid(100));
        }
        Ok(if is_negative { -value } else { value })
    }

    fn fraction(&mut self, count: usize) -> Result<i32, usize> {
        let begin = self.at;
        self.number(count)?;
        let digits = format!("{:0<9}", &self.text[begin..self.at]);
        digits[..9].parse().map_err(|_| begin)
    }

    fn offset(&mut self, count: usize) -> Result<Zone, usize> {
        let rest = &self.text[self.at..];
        let is_part = |part: char| match count {
            0..=2 => "+-:Z".contains(part) || part.is_ascii_digit(),
            _ => part.is_ascii_alphanumeric() || "+-:/_".contains(part),
        };
        let length = rest.find(|part| !is_part(part)).unwrap_or(rest.len());
        // The longest beginning that names a zone.
        let found = (1..=length).rev().find_map(|length| Some((length, Zone::find(rest.get(..length)?)?)));
        let (length, zone) = found.ok_or(self.at)?;
        self.at += length;
        Ok(zone)
    }

    fn field(&mut self, letter: char, count: usize, next: Option<&Part>) -> Result<(), usize> {
        match letter {
            'C' => self.fields.year = i16::try_from(self.ranged(2, 0..=99)? * 100).ok(),
            'Y' | 'y' => self.fields.year = Some(self.year(count, next)?),
            'x' => self.fields.week_year = Some(self.year(count, next)?),
            'w' => self.fields.week = Some(self.ranged(2, 1..=53)?),
            'e' => self.fields.weekday = Some(self.ranged(1, 1..=7)?),
            'E' => self.fields.weekday = Some(self.name(&DAYS)?),
            'D' => self.fields.day_of_year = Some(self.ranged(3, 1..=366)?),
            'M' if count >= 3 => self.fields.month = Some(self.name(&MONTHS)?),
            'M' => self.fields.month = Some(self.ranged(2, 1..=12)?),
            'd' => self.fields.day = Some(self.ranged(2, 1..=31)?),
            'a' => self.fields.is_afternoon = Some(self.half()? == 2),
            'K' => self.fields.half_hour = Some(self.ranged(2, 0..=11)?),
            'h' => self.fields.half_hour = Some(self.ranged(2, 1..=12)? % 12),
            'H' => self.fields.hour = Some(self.ranged(2, 0..=23)?),
            'k' => self.fields.hour = Some(self.ranged(2, 1..=24)? % 24),
            'm' => self.fields.minute = Some(self.ranged(2, 0..=59)?),
            's' => self.fields.second = Some(self.ranged(2, 0..=59)?),
            'S' => self.fields.nanosecond = self.fraction(count)?,
            'Z' | 'X' => self.fields.zone = Some(self.offset(count)?),
            // `z`: names such as CET mean several zones.
            _ => return Err(self.at),
        }
        Ok(())
    }

    fn half(&mut self) -> Result<i64, usize> {
        let found = self.text.get(self.at..self.at + 2).ok_or(self.at)?;
        let half = ["AM", "PM"].iter().position(|half| found.eq_ignore_ascii_case(half)).ok_or(self.at)?;
        self.at += 2;
        i64::try_from(half + 1).map_err(|_| self.at)
    }
}
