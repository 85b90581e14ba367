//! Unix seconds to civil dates, in UTC.

use std::fmt::{self, Display};

/// A moment in the civil calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Civil {
    year: i64,
    /// 0 for January.
    month: usize,
    day: i64,
    /// 0 for Sunday.
    weekday: usize,
    hour: i64,
    minute: i64,
    second: i64,
}

const DAY_S: i64 = 86_400;
/// Days of 400 years.
const ERA_DAYS: i64 = 146_097;
/// Days from 1 March of the year 0 to 1970.
const DAYS_TO_1970: i64 = 719_468;
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Last second of the year 9999: later times print as this one, so that dates keep their width.
const TIME_MAX_S: u64 = 253_402_300_799;

/// JavaScript's date text: `Tue Nov 14 2023 22:13:22 GMT+0000 (Coordinated Universal Time)`.
pub(super) fn javascript(time_s: u64) -> String {
    let c = Civil::at_most(time_s);
    let (weekday, month) = (WEEKDAYS[c.weekday], MONTHS[c.month]);
    format!(
        "{weekday} {month} {:02} {:04} {:02}:{:02}:{:02} GMT+0000 (Coordinated Universal Time)",
        c.day, c.year, c.hour, c.minute, c.second
    )
}

/// Perl's `scalar localtime` in UTC: `Tue Nov  7 22:13:22 2023`, the day padded with a space.
pub(super) fn perl_localtime(time_s: u64) -> String {
    let c = Civil::at_most(time_s);
    let (weekday, month) = (WEEKDAYS[c.weekday], MONTHS[c.month]);
    format!("{weekday} {month} {:2} {:02}:{:02}:{:02} {:04}", c.day, c.hour, c.minute, c.second, c.year)
}

/// Java's date text in UTC: `Tue Nov 14 22:13:22 UTC 2023`.
pub fn java_date(time_s: u64) -> String {
    let c = Civil::at_most(time_s);
    let (weekday, month) = (WEEKDAYS[c.weekday], MONTHS[c.month]);
    format!("{weekday} {month} {:02} {:02}:{:02}:{:02} UTC {:04}", c.day, c.hour, c.minute, c.second, c.year)
}

/// `2023-11-14 22:13:22`, in UTC.
pub fn numeric_date(time_s: u64) -> String {
    let c = Civil::at_most(time_s);
    let month = c.month + 1;
    format!("{:04}-{month:02}-{:02} {:02}:{:02}:{:02}", c.year, c.day, c.hour, c.minute, c.second)
}

/// `2023-11-14T22:13:22`.
pub(crate) fn date_time(time_s: u64) -> String {
    numeric_date(time_s).replacen(' ', "T", 1)
}

/// `2023-11-14T22:13:22` of any time. Years before 1 have a `-`, those after 9999 more digits.
pub(crate) fn signed_date_time(time_s: i64) -> impl Display {
    let c = Civil::at(time_s);
    let (sign, year, month) = (if c.year < 0 { "-" } else { "" }, c.year.unsigned_abs(), c.month + 1);
    fmt::from_fn(move |f| {
        write!(f, "{sign}{year:04}-{month:02}-{:02}T{:02}:{:02}:{:02}", c.day, c.hour, c.minute, c.second)
    })
}

/// Unix days of a date; the month is 1 to 12. `None` if there is no such date.
pub(crate) fn unix_days(year: i64, month: i64, day: i64) -> Option<i64> {
    const YEAR_MAX: i64 = 9_999;
    if !(0..=YEAR_MAX).contains(&year) || !(1..=12).contains(&month) || day < 1 {
        return None;
    }
    let (year_from_march, from_march) = (year - i64::from(month < 3), (month + 9) % 12);
    let (era, year_of_era) = (year_from_march.div_euclid(400), year_from_march.rem_euclid(400));
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    let of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + of_year;
    let days = era * ERA_DAYS + of_era - DAYS_TO_1970;
    let back = Civil::at(days * DAY_S);
    (back.month as i64 + 1 == month && back.day == day).then_some(days)
}

impl Civil {
    /// Times after [`TIME_MAX_S`] are that one.
    fn at_most(time_s: u64) -> Civil {
        Civil::at(time_s.min(TIME_MAX_S) as i64)
    }

    /// The days are counted from 1 March of the year 0 in eras of 400 years, so that the leap day is the
    /// last day of its year and of its era.
    fn at(time_s: i64) -> Civil {
        let (days, second) = (time_s.div_euclid(DAY_S), time_s.rem_euclid(DAY_S));
        let since = days + DAYS_TO_1970;
        let (era, of_era) = (since.div_euclid(ERA_DAYS), since.rem_euclid(ERA_DAYS));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = (from_march + 2) % 12;
        Civil {
            year: era * 400 + year_of_era + i64::from(month < 2),
            month: usize::try_from(month).expect("under 12"),
            day,
            weekday: usize::try_from((days + 4).rem_euclid(7)).expect("under 7"),
            hour: second / 3_600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}

#[test]
fn dates_read_as_the_originals_write_them() {
    let table: &[(u64, &str, &str, &str)] = &[
        (0, "Thu Jan 01 1970 00:00:00", "Thu Jan  1 00:00:00 1970", "1970-01-01 00:00:00"),
        (951_782_399, "Mon Feb 28 2000 23:59:59", "Mon Feb 28 23:59:59 2000", "2000-02-28 23:59:59"),
        (951_782_400, "Tue Feb 29 2000 00:00:00", "Tue Feb 29 00:00:00 2000", "2000-02-29 00:00:00"),
        (951_868_800, "Wed Mar 01 2000 00:00:00", "Wed Mar  1 00:00:00 2000", "2000-03-01 00:00:00"),
        (1_700_000_002, "Tue Nov 14 2023 22:13:22", "Tue Nov 14 22:13:22 2023", "2023-11-14 22:13:22"),
        (1_709_251_199, "Thu Feb 29 2024 23:59:59", "Thu Feb 29 23:59:59 2024", "2024-02-29 23:59:59"),
        (4_107_542_400, "Mon Mar 01 2100 00:00:00", "Mon Mar  1 00:00:00 2100", "2100-03-01 00:00:00"),
        (TIME_MAX_S, "Fri Dec 31 9999 23:59:59", "Fri Dec 31 23:59:59 9999", "9999-12-31 23:59:59"),
        (u64::MAX, "Fri Dec 31 9999 23:59:59", "Fri Dec 31 23:59:59 9999", "9999-12-31 23:59:59"),
    ];
    for (time_s, of_javascript, of_perl, in_numbers) in table {
        let zone = " GMT+0000 (Coordinated Universal Time)";
        assert_eq!(javascript(*time_s), format!("{of_javascript}{zone}"));
        assert_eq!(perl_localtime(*time_s), *of_perl);
        assert_eq!(numeric_date(*time_s), *in_numbers);
        assert_eq!(date_time(*time_s), in_numbers.replace(' ', "T"));
    }
}

#[test]
fn each_day_follows_the_one_before() {
    let mut before = Civil::at(0);
    for day in 1..150_000 {
        let now = Civil::at(day * DAY_S);
        assert_eq!(now.weekday, (before.weekday + 1) % 7);
        assert_eq!(unix_days(now.year, now.month as i64 + 1, now.day), Some(day));
        let next_in_month = (now.year, now.month, now.day) == (before.year, before.month, before.day + 1);
        let first =
            now.day == 1 && now.year * 12 + now.month as i64 == before.year * 12 + before.month as i64 + 1;
        assert!(next_in_month || first && (28..=31).contains(&before.day), "{before:?} {now:?}");
        before = now;
    }
}

#[test]
fn dates_before_1970_and_after_9999_are_dates_too() {
    let table: &[(i64, &str)] = &[
        (0, "1970-01-01T00:00:00"),
        (-1, "1969-12-31T23:59:59"),
        (-62_167_219_200, "0000-01-01T00:00:00"),
        (-62_167_219_201, "-0001-12-31T23:59:59"),
        (TIME_MAX_S as i64, "9999-12-31T23:59:59"),
        (TIME_MAX_S as i64 + 1, "10000-01-01T00:00:00"),
        (i64::MAX, "292277026596-12-04T15:30:07"),
        (i64::MIN, "-292277022657-01-27T08:29:52"),
    ];
    for (time_s, want) in table {
        assert_eq!(signed_date_time(*time_s).to_string(), *want);
    }
}

#[test]
fn there_are_only_the_days_of_the_calendar() {
    let table: &[(i64, i64, i64, Option<i64>)] = &[
        (1970, 1, 1, Some(0)),
        (1969, 12, 31, Some(-1)),
        (2000, 2, 29, Some(11_016)),
        (2013, 2, 29, None),
        (2100, 2, 29, None),
        (2013, 4, 31, None),
        (2013, 0, 1, None),
        (2013, 13, 1, None),
        (2013, 1, 0, None),
        (0, 1, 1, Some(-719_528)),
        (-1, 12, 31, None),
        (10_000, 1, 1, None),
    ];
    for (year, month, day, want) in table {
        assert_eq!(unix_days(*year, *month, *day), *want, "{year}-{month}-{day}");
    }
}
