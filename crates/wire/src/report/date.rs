//! Unix seconds to civil dates, in UTC.

/// A moment in the civil calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Civil {
    year: u64,
    /// 0 for January.
    month: usize,
    day: u64,
    /// 0 for Sunday.
    weekday: usize,
    hour: u64,
    minute: u64,
    second: u64,
}

const DAY_S: u64 = 86_400;
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Last second of the year 9999: later times print as this one, so that dates keep their width.
const TIME_MAX_S: u64 = 253_402_300_799;

/// JavaScript's date text: `Tue Nov 14 2023 22:13:22 GMT+0000 (Coordinated Universal Time)`.
pub(super) fn javascript(time_s: u64) -> String {
    let c = Civil::at(time_s);
    let (weekday, month) = (WEEKDAYS[c.weekday], MONTHS[c.month]);
    format!(
        "{weekday} {month} {:02} {:04} {:02}:{:02}:{:02} GMT+0000 (Coordinated Universal Time)",
        c.day, c.year, c.hour, c.minute, c.second
    )
}

/// Perl's `scalar localtime` in UTC: `Tue Nov  7 22:13:22 2023`, the day padded with a space.
pub(super) fn perl_localtime(time_s: u64) -> String {
    let c = Civil::at(time_s);
    let (weekday, month) = (WEEKDAYS[c.weekday], MONTHS[c.month]);
    format!("{weekday} {month} {:2} {:02}:{:02}:{:02} {:04}", c.day, c.hour, c.minute, c.second, c.year)
}

/// `2023-11-14 22:13:22`, in UTC.
pub fn numeric_date(time_s: u64) -> String {
    let c = Civil::at(time_s);
    let month = c.month + 1;
    format!("{:04}-{month:02}-{:02} {:02}:{:02}:{:02}", c.year, c.day, c.hour, c.minute, c.second)
}

/// `2023-11-14T22:13:22`.
pub(crate) fn date_time(time_s: u64) -> String {
    numeric_date(time_s).replacen(' ', "T", 1)
}

impl Civil {
    /// The days are counted from 1 March of the year 0 in eras of 400 years, so that the leap day is the
    /// last day of its year and of its era.
    fn at(time_s: u64) -> Civil {
        const ERA_DAYS: u64 = 146_097;
        const DAYS_TO_1970: u64 = 719_468;

        let time_s = time_s.min(TIME_MAX_S);
        let (days, second) = (time_s / DAY_S, time_s % DAY_S);
        let since = days + DAYS_TO_1970;
        let (era, of_era) = (since / ERA_DAYS, since % ERA_DAYS);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = (from_march + 2) % 12;
        Civil {
            year: era * 400 + year_of_era + u64::from(month < 2),
            month: usize::try_from(month).expect("under 12"),
            day,
            weekday: usize::try_from((days + 4) % 7).expect("under 7"),
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
        let next_in_month = (now.year, now.month, now.day) == (before.year, before.month, before.day + 1);
        let first =
            now.day == 1 && now.year * 12 + now.month as u64 == before.year * 12 + before.month as u64 + 1;
        assert!(next_in_month || first && (28..=31).contains(&before.day), "{before:?} {now:?}");
        before = now;
    }
}
