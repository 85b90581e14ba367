//! clj-time, with results of clj-time and Joda.

use super::pattern::{PATTERN_BYTES_MAX, Pattern, WIDTH_MAX};
use crate::object::time::{Moment, Zone};
use crate::riemann::tests::printed;

/// Aliases, and expressions with what they give.
fn check(table: &[(&str, &str)]) {
    for (expression, expected) in table {
        let whole = format!(
            "(do (require '[clj-time.core :as t] '[clj-time.coerce :as c] '[clj-time.format :as f]) (eval '{expression}))"
        );
        assert_eq!(printed(&whole), *expected, "{expression}");
    }
}

#[test]
fn dates_and_their_parts() {
    check(&[
        ("(str (t/now))", "\"1970-01-01T00:00:00.000Z\""),
        ("(= (t/epoch) (t/date-time 1970))", "true"),
        ("(str (t/date-time 2026 11 27 23 5 6 7))", "\"2026-11-27T23:05:06.007Z\""),
        ("(str (t/date-midnight 2026 2))", "\"2026-02-01T00:00:00.000Z\""),
        (
            "(try (t/date-time 2026 2 29) (catch IllegalArgumentException e (.getMessage e)))",
            "\"there is no time with the parts [2026 2 29]\"",
        ),
        ("(try (t/date-time 2026 2 2 2 2 60) (catch IllegalArgumentException e 1))", "1"),
        ("(str (t/today-at 9 30))", "\"1970-01-01T09:30:00.000Z\""),
        ("(str (t/today-at-midnight))", "\"1970-01-01T00:00:00.000Z\""),
        (
            "(let [d (t/date-time 2026 11 27 23 5 6 7)] [(t/year d) (t/month d) (t/day d) (t/day-of-week d) (t/hour d) (t/minute d) (t/second d) (t/sec d) (t/milli d)])",
            "[2026 11 27 5 23 5 6 6 7]",
        ),
        ("(let [d (t/date-time 2027 1 3)] [(t/week-number-of-year d) (t/week-year d)])", "[53 2026]"),
        (
            "(let [a (t/epoch) b (t/date-time 2000)] [(t/before? a b) (t/after? a b) (t/equal? a a) (= (t/earliest a b) a) (= (t/latest [a b]) b) (= (t/min-date b a) a) (= (t/max-date b a) b)])",
            "[true false true true true true true]",
        ),
        (
            "(map str [(t/first-day-of-the-month (t/date-time 2024 2 10)) (t/last-day-of-the-month 2024 2)])",
            "(\"2024-02-01T00:00:00.000Z\" \"2024-02-29T00:00:00.000Z\")",
        ),
        ("(t/number-of-days-in-the-month 2023 2)", "28"),
        (
            "(let [d (t/date-time 2026 11 27 23 5 6 7)] (map (fn [p] (str (t/floor d p))) [t/year t/month t/day t/hour t/minute t/second t/milli]))",
            "(\"2026-01-01T00:00:00.000Z\" \"2026-11-01T00:00:00.000Z\" \"2026-11-27T00:00:00.000Z\" \"2026-11-27T23:00:00.000Z\" \"2026-11-27T23:05:00.000Z\" \"2026-11-27T23:05:06.000Z\" \"2026-11-27T23:05:06.007Z\")",
        ),
        ("(try (t/hour 5) (catch ClassCastException e 1))", "1"),
    ]);
}

#[test]
fn dates_in_time_zones() {
    check(&[
        (
            "(let [d (t/to-time-zone (t/date-time 2026 7 1 23) (t/time-zone-for-id \"Europe/Berlin\"))] [(t/hour d) (t/day d) (str d) (t/equal? d (t/date-time 2026 7 1 23))])",
            "[1 2 \"2026-07-02T01:00:00.000+02:00\" true]",
        ),
        (
            "(str (t/from-time-zone (t/date-time 2026 7 1 1) (t/time-zone-for-id \"Europe/Berlin\")))",
            "\"2026-07-01T01:00:00.000+02:00\"",
        ),
        (
            "(str (t/with-time-at-start-of-day (t/to-time-zone (t/date-time 2026 7 1 23) (t/time-zone-for-offset -3 30))))",
            "\"2026-07-01T00:00:00.000-03:30\"",
        ),
        (
            "[t/utc (t/default-time-zone) (t/time-zone-for-offset 2) (contains? (t/available-ids) \"Europe/Berlin\")]",
            "[\"UTC\" \"UTC\" \"+02:00\" true]",
        ),
        // A day has 23 hours where clocks are put forward.
        (
            "(t/hour (t/plus (t/from-time-zone (t/date-time 2026 3 28 12) \"Europe/Berlin\") (t/days 1)))",
            "12",
        ),
        (
            "(t/hour (t/plus (t/from-time-zone (t/date-time 2026 3 28 12) \"Europe/Berlin\") (t/hours 24)))",
            "13",
        ),
        (
            "(try (t/time-zone-for-id \"Nowhere\") (catch IllegalArgumentException e (.getMessage e)))",
            "\"The datetime zone id 'Nowhere' is not recognised\"",
        ),
        ("(try (t/time-zone-for-offset 24) (catch IllegalArgumentException e 1))", "1"),
    ]);
}

#[test]
fn durations_and_intervals() {
    check(&[
        (
            "(str (t/plus (t/date-time 2024 1 31) (t/months 1) (t/hours 2) (t/millis 5)))",
            "\"2024-02-29T02:00:00.005Z\"",
        ),
        (
            "(str (t/minus (t/date-time 2024 2 29) (t/years 1) (t/weeks 1) (t/minutes 1) (t/seconds 1) (t/secs 1)))",
            "\"2023-02-20T23:58:58.000Z\"",
        ),
        (
            "(map str [(t/ago (t/days 1)) (t/from-now (t/days 1))])",
            "(\"1969-12-31T00:00:00.000Z\" \"1970-01-02T00:00:00.000Z\")",
        ),
        ("(t/plus (t/hours 1) (t/hours 2) (t/days 1))", "{:days 1, :hours 3}"),
        (
            "(let [i (t/interval (t/date-time 2024 1 1) (t/date-time 2025 2 2 1 2 3 4))] [(t/in-millis i) (t/in-msecs i) (t/in-seconds i) (t/in-secs i) (t/in-minutes i) (t/in-hours i) (t/in-days i) (t/in-weeks i) (t/in-months i) (t/in-years i)])",
            "[34390923004 34390923004 34390923 34390923 573182 9553 398 56 13 1]",
        ),
        (
            "[(t/in-seconds (t/minutes 2)) (t/in-minutes (t/plus (t/hours 1) (t/days 1))) (t/in-months (t/years 2))]",
            "[120 1500 24]",
        ),
        ("(try (t/in-seconds (t/months 1)) (catch UnsupportedOperationException e 1))", "1"),
        ("(try (t/in-months (t/days 1)) (catch UnsupportedOperationException e 1))", "1"),
        (
            "(let [[a b c] (map t/date-time [2000 2001 2002]) i (t/interval a b)] [(t/within? i a) (t/within? i b) (t/within? a b b) (t/overlaps? i (t/interval b c)) (t/abuts? i (t/interval b c)) (= a (t/start i)) (= b (t/end i))])",
            "[true false true false true true true]",
        ),
        ("(try (t/interval (t/date-time 2001) (t/epoch)) (catch IllegalArgumentException e 1))", "1"),
        ("(try (t/plus (t/epoch) (t/years 9999)) (catch ArithmeticException e 1))", "1"),
        ("(try (t/plus (t/epoch) (t/millis 9223372036854775807)) (catch ArithmeticException e 1))", "1"),
        ("(try (t/minus (t/epoch) (t/days -9223372036854775808)) (catch ArithmeticException e 1))", "1"),
        ("(try (t/plus (t/epoch) 5) (catch ClassCastException e 1))", "1"),
    ]);
}

#[test]
fn times_from_and_to_other_values() {
    check(&[
        (
            "[(c/to-long (t/date-time 2000)) (c/to-epoch (t/date-time 2000)) (c/to-long 5) (c/to-long nil) (c/to-long \"x\")]",
            "[946684800000 946684800 5 nil nil]",
        ),
        (
            "(map str [(c/from-long 1500) (c/from-epoch 1) (c/to-date-time \"2000-01-02\") (c/from-string \"2000-01-02T03:04:05Z\")])",
            "(\"1970-01-01T00:00:01.500Z\" \"1970-01-01T00:00:01.000Z\" \"2000-01-02T00:00:00.000Z\" \"2000-01-02T03:04:05.000Z\")",
        ),
        ("(c/to-string (t/to-time-zone (t/epoch) \"Europe/Berlin\"))", "\"1970-01-01T00:00:00.000Z\""),
        (
            "[(.getTime (c/to-date (t/date-time 2000))) (= (c/to-timestamp 0) (c/to-sql-time 0)) (str (c/from-date (java.util.Date. 0))) (str (c/from-sql-time (java.util.Date. 0)))]",
            "[946684800000 true \"1970-01-01T00:00:00.000Z\" \"1970-01-01T00:00:00.000Z\"]",
        ),
        ("(try (c/from-epoch 9223372036854775807) (catch ArithmeticException e 1))", "1"),
    ]);
}

#[test]
fn formatters_write_and_read() {
    check(&[
        (
            "(f/unparse (f/formatter \"yyyy/MM/dd 'at' HH:mm\") (t/date-time 2026 1 2 3 4))",
            "\"2026/01/02 at 03:04\"",
        ),
        ("(f/unparse (f/formatters :date-time) (t/date-time 2026 1 2))", "\"2026-01-02T00:00:00.000Z\""),
        ("(f/unparse (:rfc822 f/formatters) (t/date-time 2026 1 2))", "\"Fri, 02 Jan 2026 00:00:00 +0000\""),
        (
            "(f/unparse (f/with-zone (f/formatters :date-time) (t/time-zone-for-id \"Asia/Tokyo\")) (t/epoch))",
            "\"1970-01-01T09:00:00.000+09:00\"",
        ),
        ("(f/unparse (f/formatter \"HH\" \"Asia/Tokyo\") (t/epoch))", "\"09\""),
        ("(f/unparse (f/formatter :date) (t/epoch))", "\"1970-01-01\""),
        (
            "(str (f/parse (f/formatter \"dd/MMM/yyyy:HH:mm:ss Z\") \"10/Oct/2000:13:55:36 -0700\"))",
            "\"2000-10-10T20:55:36.000Z\"",
        ),
        (
            "(str (f/parse (f/formatter t/utc \"yyyy-MM-dd\" \"yyyy/MM/dd\") \"2000/01/02\"))",
            "\"2000-01-02T00:00:00.000Z\"",
        ),
        ("(str (f/parse \"2000-01-02T03:04\"))", "\"2000-01-02T03:04:00.000Z\""),
        ("(f/parse \"soon\")", "nil"),
        (
            "(try (f/parse (f/formatter \"yyyy-MM\") \"2000-13\") (catch IllegalArgumentException e (.getMessage e)))",
            "\"Invalid format: \\\"2000-13\\\" is malformed at \\\"13\\\"\"",
        ),
        (
            "(try (f/formatter \"yyyy b\") (catch IllegalArgumentException e (.getMessage e)))",
            "\"Illegal pattern component: b\"",
        ),
        ("(try (f/with-locale 1 2) (catch UnsupportedOperationException e 1))", "1"),
        ("(count (clojure.string/split-lines (with-out-str (f/show-formatters))))", "46"),
    ]);
}

#[test]
fn patterns_are_those_of_joda() {
    // 2026-01-04T15:04:05.678 in Berlin, a Sunday.
    let zone = Zone::find("Europe/Berlin").unwrap();
    let time = Moment::joda(1_767_535_445_678, zone).zoned().unwrap();
    let table = [
        ("CC", "20"),
        ("y yy yyyy yyyyyy Y", "2026 26 2026 002026 2026"),
        ("xxxx-ww-e", "2026-01-7"),
        ("EEE EEEE", "Sun Sunday"),
        ("D DDD", "4 004"),
        ("M MM MMM MMMM", "1 01 Jan January"),
        ("h K H k a", "3 3 15 15 PM"),
        ("S SS SSS SSSSSS", "6 67 678 678000"),
        ("Z ZZ ZZZ XX z", "+0100 +01:00 Europe/Berlin +01:00 CET"),
        ("'it''s' ''d''", "it's '4'"),
    ];
    for (pattern, expected) in table {
        assert_eq!(Pattern::new(pattern).unwrap().format(&time, zone), expected, "{pattern}");
    }
}

#[test]
fn texts_are_read_by_patterns() {
    let table = [
        ("yyyyMMddHHmmss", "20260102030405", Ok(1_767_323_045_000)),
        ("yyyy", "-5", Ok(-62_324_985_600_000)),
        ("yy", "26", Ok(1_767_225_600_000)),
        ("HH:mm", "01:02", Ok(946_688_520_000)),
        ("xxxx-'W'ww-e", "2026-W01-1", Ok(1_766_966_400_000)),
        ("yyyy-DDD", "2026-002", Ok(1_767_312_000_000)),
        ("h a", "12 am", Ok(946_684_800_000)),
        ("h a", "1 PM", Ok(946_731_600_000)),
        ("ss.SSS", "01.5", Ok(946_684_801_500)),
        ("EEEE d MMMM yyyy", "Friday 2 january 2026", Ok(1_767_312_000_000)),
        ("yyyy-MM-dd ZZZ", "2026-01-02 Europe/Berlin", Ok(1_767_308_400_000)),
        ("yyyyZ", "2026Z", Ok(1_767_225_600_000)),
        ("yyyy", "2026x", Err(4)),
        ("yyyy-MM", "2026-é", Err(5)),
        ("dd.MM.yyyy", "31.02.2026", Err(0)),
        ("MMM", "é", Err(0)),
        ("a", "é", Err(0)),
        ("z", "CET", Err(0)),
    ];
    for (pattern, text, expected) in table {
        let read = Pattern::new(pattern).unwrap().parse(text, Zone::UTC, 2026);
        assert_eq!(read.map(|time| time.milliseconds), expected, "{pattern} {text}");
    }
}

#[test]
fn patterns_have_a_limit_on_length_and_width() {
    assert!(Pattern::new(&"-".repeat(PATTERN_BYTES_MAX)).is_ok());
    assert!(Pattern::new(&"-".repeat(PATTERN_BYTES_MAX + 1)).is_err());
    assert!(Pattern::new(&"S".repeat(WIDTH_MAX)).is_ok());
    assert!(Pattern::new(&"S".repeat(WIDTH_MAX + 1)).is_err());
    assert!(Pattern::new("").is_err());
}

#[test]
fn all_formatters_write_what_they_read() {
    check(&[(
        "(let [d (t/date-time 2026 11 27 23 5 6 7)] (filter (fn [[k v]] (let [s (f/unparse v d)] (not= s (f/unparse v (f/parse v s))))) f/formatters))",
        "()",
    )]);
}

proptest::proptest! {
    #[test]
    fn any_pattern_reads_any_text_without_a_panic(
        pattern in "[a-zA-Z' é:-]{0,12}",
        text in ".{0,12}|[0-9:+ZAPM -]{0,20}",
        milliseconds in proptest::num::i64::ANY,
    ) {
        if let Ok(pattern) = Pattern::new(&pattern) {
            let _ = pattern.parse(&text, Zone::UTC, 2026);
            if let Some(time) = Moment::joda(milliseconds, Zone::UTC).zoned() {
                pattern.format(&time, Zone::UTC);
            }
        }
    }
}
