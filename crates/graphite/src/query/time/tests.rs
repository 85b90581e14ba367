use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;

/// 2024-03-13T15:42:30Z, a Wednesday.
const NOW: i64 = 1_710_344_550;

fn new_york() -> TimeZone {
    TimeZone::get("America/New_York").expect("the tests have their zones")
}

fn parse(text: &str, zone: &TimeZone) -> Result<i64, TimeError> {
    parse_time(text, &Clock { now: NOW, zone })
}

#[test]
fn times_are_read_as_in_graphite_web() {
    let table = [
        ("now", 1_710_344_550),
        ("", 1_710_344_550),
        ("today", 1_710_288_000),
        ("yesterday", 1_710_201_600),
        ("tomorrow", 1_710_374_400),
        ("noon", 1_710_331_200),
        ("teatime", 1_710_345_600),
        ("midnight", 1_710_288_000),
        ("6pm", 1_710_352_800),
        ("12am", 1_710_331_200),
        ("12pm", 1_710_288_000),
        ("18:30_20240101", 1_704_133_800),
        ("6:30pm 20240101", 1_704_133_800),
        ("04:00_20110501", 1_304_222_400),
        ("20240229-1d", 1_709_078_400),
        ("03/14/05", 1_110_758_400),
        ("03/14/2005", 1_110_758_400),
        ("mon", 1_710_115_200),
        ("wednesday", 1_710_288_000),
        ("thursday", 1_709_769_600),
        ("march 1", 1_709_251_200),
        ("dec31", 1_735_603_200),
        ("-1h", 1_710_340_950),
        ("-1d2h", 1_710_250_950),
        ("-1mon", 1_707_752_550),
        ("-1y", 1_678_808_550),
        ("now-1h", 1_710_340_950),
        ("NOW - 1 Hour", 1_710_340_950),
        ("midnight+3h", 1_710_298_800),
        ("noonyesterday", 1_710_244_800),
        ("19001231", 19_001_231),
        ("20240101", 1_704_067_200),
        ("1710000000", 1_710_000_000),
    ];
    for (text, want) in table {
        assert_eq!(parse(text, &TimeZone::UTC), Ok(want), "{text:?}");
    }
}

#[test]
fn times_of_day_are_local() {
    let zone = new_york();
    for (text, want) in [("today", 1_710_302_400), ("6pm", 1_710_367_200), ("18:30_20240101", 1_704_151_800)]
    {
        assert_eq!(parse(text, &zone), Ok(want), "{text:?}");
    }
    assert_eq!(parse("01:30_20241103", &zone), Ok(1_730_615_400), "the hour occurs twice: the second one");
    assert_eq!(parse("02:30_20240310", &zone), Ok(1_710_055_800), "the hour is skipped: moved forward");
}

#[test]
fn mistakes_have_a_position() {
    let table = [
        ("1h", 0),
        ("-1m", 2),
        ("foo", 0),
        ("-5", 2),
        ("jan", 3),
        ("24:00", 0),
        ("18:", 3),
        ("noon+-1h", 5),
        ("noon + x", 7),
        ("20240231", 0),
        ("13/40/24", 0),
        ("99999999999999999999", 0),
        ("now+9999999y", 4),
        ("tödäy", 1),
    ];
    for (text, at) in table {
        assert_eq!(parse(text, &TimeZone::UTC).map_err(|e| e.at), Err(at), "{text:?}");
    }
}

#[test]
fn offsets_have_units() {
    let table = [
        ("5min", Ok(300)),
        ("-1d2h", Ok(-93_600)),
        ("+3s", Ok(3)),
        ("1w", Ok(604_800)),
        ("1 Hour", Ok(3_600)),
    ];
    for (text, want) in table {
        assert_eq!(parse_offset(text), want, "{text:?}");
    }
    for text in ["", "5", "5m", "min", "1h-", "1h-2h", "h5"] {
        assert!(parse_offset(text).is_err(), "{text:?}");
    }
}

#[test]
fn surprising_times_have_a_warning() {
    for (text, word) in
        [("12am", "noon"), ("12pm yesterday", "midnight"), ("-1mon", "30 days"), ("now-2y", "365 days")]
    {
        assert!(warning(text).is_some_and(|warning| warning.contains(word)), "{text}");
    }
    for text in ["-1d", "6pm", "monday", "noon-2days", "", "yesterday"] {
        assert_eq!(warning(text), None, "{text}");
    }
}

#[test]
fn long_texts_are_refused() {
    let at_limit = format!("now{}", " ".repeat(TIME_BYTES_MAX - 3));
    assert_eq!(parse(&at_limit, &TimeZone::UTC), Ok(NOW));
    assert!(parse(&format!("{at_limit} "), &TimeZone::UTC).is_err());
}

#[test]
fn units_begin_in_the_zone() {
    let zone = new_york();
    let table = [
        (Unit::Minutes, 1_710_344_520),
        (Unit::Hours, 1_710_342_000),
        (Unit::Days, 1_710_302_400),
        (Unit::Weeks, 1_710_129_600),
        (Unit::Months, 1_709_269_200),
        (Unit::Years, 1_704_085_200),
    ];
    for (unit, want) in table {
        assert_eq!(floor(NOW, unit, 1, &zone), want, "{unit:?}");
    }
    assert_eq!(floor(NOW, Unit::Weeks, 4, &TimeZone::UTC), 1_709_769_600, "weeks that begin on Thursday");
}

/// Checks each line of each committed file.
fn corpus(folder: &str, check: impl Fn(&str)) {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/corpus/graphite_time")
        .join(folder);
    let mut lines = 0;
    for file in std::fs::read_dir(root).expect("it is in the repository") {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("text");
        for line in text.lines() {
            check(line);
            lines += 1;
        }
    }
    assert!(lines > 0);
}

#[test]
fn committed_times_are_valid_or_not() {
    corpus("good", |line| assert!(parse(line, &TimeZone::UTC).is_ok(), "{line}"));
    corpus("bad", |line| assert!(parse(line, &TimeZone::UTC).is_err(), "{line}"));
}

proptest! {
    #[test]
    fn any_text_is_a_time_or_a_mistake_within_it(text in ".{0,40}", parts in "[-+0-9:/a-z_ ]{0,20}") {
        for text in [text, parts] {
            if let Err(mistake) = parse(&text, &new_york()) {
                prop_assert!(mistake.at <= text.len());
            }
            let _ = parse_offset(&text);
        }
    }

    #[test]
    fn an_offset_moves_the_reference(hours in 0_i64..100_000) {
        prop_assert_eq!(parse(&format!("today-{hours}h"), &TimeZone::UTC), Ok(1_710_288_000 - hours * 3_600));
    }
}
