//! The time axis: lines and labels by seconds per pixel, at round times of the zone (spec graphite §6.5).

use jiff::fmt::strtime;
use jiff::{Timestamp, ZonedDateTime};

use super::options::Options;
use super::request::View;
use super::text::{clean, width};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Most characters of a label.
const LABEL_CHARS_MAX: usize = 60;

/// One row of the table; times are in seconds.
struct Row {
    /// Fewest seconds per pixel.
    per_pixel: f64,
    minor: i64,
    major: i64,
    label: i64,
    format: &'static str,
    /// Longest range.
    range_max: i64,
}

const fn row(per_pixel: f64, lines: [i64; 3], format: &'static str, range_max: i64) -> Row {
    let [minor, major, label] = lines;
    Row { per_pixel, minor, major, label, format, range_max }
}

const TABLE: [Row; 23] = [
    row(0.0, [5, MINUTE, 5], "%H:%M:%S", 10 * MINUTE),
    row(0.07, [10, MINUTE, 10], "%H:%M:%S", 20 * MINUTE),
    row(0.14, [15, MINUTE, 15], "%H:%M:%S", 30 * MINUTE),
    row(0.27, [30, 2 * MINUTE, MINUTE], "%H:%M", 2 * HOUR),
    row(0.5, [MINUTE, 2 * MINUTE, MINUTE], "%H:%M", 2 * HOUR),
    row(1.2, [MINUTE, 4 * MINUTE, 2 * MINUTE], "%H:%M", 3 * HOUR),
    row(2.0, [MINUTE, 10 * MINUTE, 5 * MINUTE], "%H:%M", 6 * HOUR),
    row(5.0, [2 * MINUTE, 10 * MINUTE, 10 * MINUTE], "%H:%M", 12 * HOUR),
    row(10.0, [5 * MINUTE, 20 * MINUTE, 20 * MINUTE], "%H:%M", DAY),
    row(30.0, [10 * MINUTE, HOUR, HOUR], "%H:%M", 2 * DAY),
    row(60.0, [30 * MINUTE, 2 * HOUR, 2 * HOUR], "%H:%M", 2 * DAY),
    row(100.0, [2 * HOUR, 4 * HOUR, 4 * HOUR], "%a %-l%p", 6 * DAY),
    row(255.0, [6 * HOUR, 12 * HOUR, 12 * HOUR], "%m/%d %-l%p", 10 * DAY),
    row(600.0, [6 * HOUR, DAY, DAY], "%m/%d", 14 * DAY),
    row(1_000.0, [12 * HOUR, DAY, DAY], "%m/%d", 365 * DAY),
    row(2_000.0, [DAY, 2 * DAY, 2 * DAY], "%m/%d", 365 * DAY),
    row(4_000.0, [2 * DAY, 4 * DAY, 4 * DAY], "%m/%d", 365 * DAY),
    row(8_000.0, [84 * HOUR, 7 * DAY, 7 * DAY], "%m/%d", 365 * DAY),
    row(16_000.0, [7 * DAY, 14 * DAY, 14 * DAY], "%m/%d", 365 * DAY),
    row(32_000.0, [15 * DAY, 30 * DAY, 30 * DAY], "%m/%d", 365 * DAY),
    row(64_000.0, [30 * DAY, 60 * DAY, 60 * DAY], "%m/%d %Y", i64::MAX),
    row(100_000.0, [60 * DAY, 120 * DAY, 120 * DAY], "%m/%d %Y", i64::MAX),
    row(120_000.0, [120 * DAY, 240 * DAY, 240 * DAY], "%m/%d %Y", i64::MAX),
];

/// The lines and labels of a time axis, as epoch seconds.
#[derive(Debug, Default)]
pub(super) struct Times {
    pub(super) minor: Vec<i64>,
    pub(super) major: Vec<i64>,
    pub(super) labels: Vec<(i64, String)>,
}

impl Times {
    /// Those of a range on so many pixels.
    pub(super) fn new(range: (i64, i64), pixels: f64, options: &Options, view: &View<'_>) -> Times {
        let (start, end) = range;
        let length = (end - start).max(1);
        let per_pixel = length as f64 / pixels.max(1.0);
        let fits = |row: &&Row| row.per_pixel <= per_pixel && length <= row.range_max;
        let found = TABLE.iter().rev().find(fits);
        // A wide image of a long range has no row: the first that knows such a range has the most lines.
        let row = found.or_else(|| TABLE.iter().find(|row| length <= row.range_max)).unwrap_or(&TABLE[22]);
        // Beyond the table the lines keep their distance in pixels.
        let factor = (per_pixel / 240_000.0).ceil().max(1.0) as i64;
        let steps = [row.minor, row.major, row.label].map(|step| step.saturating_mul(factor));
        let text = |at: i64| {
            let custom = options.x_format.as_deref().and_then(|format| formatted(format, at, view));
            custom.or_else(|| formatted(row.format, at, view)).unwrap_or_default()
        };
        let widest = [start, start + length / 2, end].map(|at| width(&text(at), &options.font));
        let room = widest.into_iter().fold(0.0, f64::max) + options.font.size;
        let per_label = (room / (steps[2] as f64 / per_pixel)).ceil().max(1.0) as i64;
        let labels = round_times(range, steps[2].saturating_mul(per_label), view);
        Times {
            minor: round_times(range, steps[0], view),
            major: round_times(range, steps[1], view),
            labels: labels.into_iter().map(|at| (at, text(at))).collect(),
        }
    }
}

/// Seconds that the zone is ahead of UTC at a time.
fn offset(at: i64, view: &View<'_>) -> i64 {
    Timestamp::from_second(at).map_or(0, |at| i64::from(view.zone.to_offset(at).seconds()))
}

/// Times whose local time is a multiple of the step.
fn round_times(range: (i64, i64), step: i64, view: &View<'_>) -> Vec<i64> {
    /// More lines than this look like one area.
    const TIMES_MAX: usize = 2_000;
    let (start, end) = range;
    let local = start.saturating_add(offset(start, view));
    let first = local.div_euclid(step).saturating_mul(step);
    let at = |number: i64| {
        let local = first.saturating_add(number.saturating_mul(step));
        // The offset of a time near by: the same unless clocks change in these hours.
        let guess = local.saturating_sub(offset(local, view));
        local.saturating_sub(offset(guess, view))
    };
    let all = (0..).map(at).take_while(|at| *at <= end).take(TIMES_MAX);
    all.filter(|at| *at >= start).collect()
}

fn formatted(format: &str, at: i64, view: &View<'_>) -> Option<String> {
    let zoned = ZonedDateTime::new(Timestamp::from_second(at).ok()?, view.zone.clone());
    Some(clean(&strtime::format(format, &zoned).ok()?, LABEL_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::super::options::tests::options;
    use super::*;
    use crate::query::TimeZone;

    fn labels(range: (i64, i64), zone: &str, query: &str) -> Vec<String> {
        let zone = TimeZone::get(zone).expect("a zone");
        let view = View { from: range.0, until: range.1, zone: &zone };
        let times = Times::new(range, 300.0, &options(query).expect("right"), &view);
        times.labels.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn labels_follow_seconds_per_pixel() {
        // 2024-03-09 16:00:00 UTC, a Saturday.
        let start = 1_710_000_000;
        for (length, want) in [
            (30, "16:00:00"),
            (10 * MINUTE, "16:00"),
            (HOUR, "16:00"),
            (6 * HOUR, "18:00"),
            (DAY / 2, "Sat 4PM"),
            (DAY, "03/10 12AM"),
            (3 * DAY, "03/10"),
            (5 * DAY, "03/10"),
            (30 * DAY, "03/11"),
            (200 * DAY, "03/11"),
            (300 * DAY, "03/18 2024"),
            (3_000 * DAY, "04/23 2024"),
        ] {
            let all = labels((start, start + length), "UTC", "");
            let shown = format!("{length}: {all:?}");
            assert!((1..=13).contains(&all.len()), "{shown}");
            assert_eq!(all[0].len(), want.len(), "{shown}");
        }
        assert_eq!(labels((start, start + HOUR), "Asia/Kolkata", "")[0], "21:40");
        assert_eq!(labels((start, start + HOUR), "UTC", "xFormat=at %H")[0], "at 16");
        assert_eq!(labels((start, start + HOUR), "UTC", "xFormat=%!")[0], "16:00", "no format: ignored");
    }

    #[test]
    fn days_begin_at_midnight_of_the_zone_when_clocks_change() {
        // From 2024-03-27 to 2024-04-05: Berlin's clocks change on the 31st.
        let zone = TimeZone::get("Europe/Berlin").expect("a zone");
        let view = View { from: 1_711_494_000, until: 1_712_271_600, zone: &zone };
        let days = round_times((view.from, view.until), DAY, &view);
        assert_eq!(days.len(), 10);
        for day in days {
            assert_eq!(formatted("%H:%M", day, &view).as_deref(), Some("00:00"));
        }
    }

    #[test]
    fn any_range_has_few_lines() {
        let zone = TimeZone::UTC;
        for range in [(0, 1), (i64::MIN / 4, i64::MAX / 4), (-1, 1_000_000_000_000), (5, 5)] {
            let view = View { from: range.0, until: range.1, zone: &zone };
            let times = Times::new(range, 300.0, &options("xFormat=%Y").expect("right"), &view);
            assert!(times.minor.len() <= 2_000 && times.labels.len() <= 2_000, "{range:?}");
        }
    }
}
