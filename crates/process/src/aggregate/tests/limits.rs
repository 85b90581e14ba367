//! Limits (at the limit and beyond it), hash collisions, and memory under churn.

use model::{Kind, limits};

use super::rig::{Rig, idle, plan};
use crate::aggregate::{Added, AggregatePlan, SeriesExpiry};

fn delete() -> AggregatePlan {
    AggregatePlan { idle: idle(SeriesExpiry::Delete { ttl_windows: 1 }), ..plan() }
}

#[test]
fn new_series_beyond_series_max_are_dropped_and_existing_ones_are_not() {
    let mut rig = Rig::new(AggregatePlan { series_max: 4, ..delete() });
    rig.aggregator.add_self_metric(Kind::Counter, "own", 1.0, |_, _| {});
    let added = rig.add(0, "a:1|c\na:1|g\na:1|ms\na:1|s");
    assert_eq!(added, Added { aggregated: 4, conflicts: 3, ..Added::default() }, "at the limit");
    let added = rig.add(0, "b:1|c\na:1|c\nb:1|g\nb/c:1|s\nown:1|c");
    assert_eq!(added, Added { aggregated: 2, dropped_series_max: 3, ..Added::default() }, "past it");
    assert_eq!(rig.aggregator.first_dropped(), b"b");
    rig.aggregator.add_self_metric(Kind::Gauge, "own2", 1.0, |_, _| {});
    assert_eq!(
        rig.flushed(2000),
        "c a 2.0 1.0; c own 2.0 1.0; g a 1.0; g own2 1.0; s a 1 ; t a \
        count_90=1.0 mean_90=1.0 upper_90=1.0 sum_90=1.0 sum_squares_90=1.0 \
        std=0.0 upper=1.0 lower=1.0 count=1.0 count_ps=0.5 sum=1.0 sum_squares=1.0 mean=1.0 median=1.0"
    );
    rig.flushed(4000);
    assert_eq!(rig.add(4000, "b:1|c").aggregated, 1, "there is room again");
}

#[test]
fn the_name_of_a_line_with_many_values_is_looked_up_once() {
    let mut rig = Rig::new(AggregatePlan { series_max: 1, ..plan() });
    let added = rig.add_packed(0, b"a/b:1|c\nc/d:1|c\nc/d:2|g\na/b:4|c", 1000);
    assert_eq!(added, Added { aggregated: 2000, dropped_series_max: 2000, ..Added::default() });
    assert_eq!(rig.canonical_calls, 3, "also when there is no series for it");
    assert_eq!(rig.flushed(2000), "c a-b 5000.0 2500.0");
}

#[test]
fn raw_keys_beyond_the_alias_limit_are_canonicalized_each_time() {
    let mut rig = Rig::new(AggregatePlan { series_max: 3, ..plan() });
    rig.add(0, "a-a-a:1|c\na/a/a:1|c\na-a/a:1|c\na/a-a:1|c");
    assert_eq!((rig.canonical_calls, rig.aggregator.figures().aliases), (4, 3));
    rig.add(0, "a-a-a:1|c\na/a/a:1|c\na-a/a:1|c\na/a-a:1|c");
    assert_eq!(rig.canonical_calls, 4, "all are known");
    for _ in 0..3 {
        rig.add(0, "x/x:1|g\nx-x:1|g");
    }
    let figures = rig.aggregator.figures();
    assert_eq!((figures.aliases, figures.aliases_refused, rig.canonical_calls), (3, 3, 8));
    assert_eq!(rig.flushed(2000), "c a-a-a 8.0 4.0; g x-x 1.0");
}

#[test]
fn aliases_are_removed_with_their_series_or_when_unused() {
    let mut rig = Rig::new(delete());
    for window in 1..=3 {
        rig.add(window * 2000 - 1000, "a/b:1|c\na/b:1|c");
        assert_eq!(rig.flushed(window * 2000), "c a-b 2.0 1.0");
    }
    rig.flushed(8000);
    rig.flushed(10_000);
    assert_eq!(rig.aggregator.figures().aliases, 0);
    // The series stays alive by one raw key; the alias of the other is removed after a while.
    let mut rig = Rig::new(plan());
    rig.add(0, "a/b:1|c");
    for window in 1..=70 {
        rig.add(window * 2000 - 1000, "a-b:1|c");
        rig.flush(window * 2000);
    }
    assert_eq!(rig.aggregator.figures().aliases, 0);
    rig.take();
    rig.add(140_500, "a/b:1|c");
    assert_eq!(rig.flushed(142_000), "c a-b 1.0 0.5");
}

#[test]
fn keys_with_equal_hashes_are_distinguished() {
    let mut rig = Rig::new(delete());
    rig.hash = |_, _, _| 42;
    for window in 1..=4 {
        rig.add(window * 2000 - 1000, "a:1|c\nb:2|c\na:1|g\na/b:4|c\na-b:8|c\na:1|s\nb:1|c|#t\nb:1|c|#u,t");
        assert_eq!(
            rig.flushed(window * 2000),
            "c a 1.0 0.5; c a-b 12.0 6.0; c b 2.0 1.0; c b[t,u] 1.0 0.5; c b[t] 1.0 0.5; g a 1.0; s a 1 "
        );
    }
    rig.flushed(10_000);
    assert_eq!(rig.flushed(12_000), "");
    assert!(rig.aggregator.is_empty());
    // Name and tags are two fields, even where their bytes joined are equal.
    rig.add(12_500, "ab:1|c|#c\na:2|c|#bc\nabc:4|c");
    assert_eq!(rig.flushed(14_000), "c a[bc] 2.0 1.0; c ab[c] 1.0 0.5; c abc 4.0 2.0");
}

#[test]
fn sums_that_are_not_finite_are_rejected() {
    let max = format!("c:{:?}|c\ng:{:?}|g", f64::MAX, f64::MAX);
    let mut rig = Rig::new(plan());
    rig.add(0, &max);
    let added = rig.add(
        0,
        &format!("{max}\ng:+{:?}|g\nnew:1e300|c|@1e-10\nt:1|ms|@1e-320\nt:inf|ms\nn:NaN|g", f64::MAX),
    );
    assert_eq!(added, Added { aggregated: 1, rejected_non_finite: 6, ..Added::default() });
    assert_eq!(rig.aggregator.len(Kind::Counter), 1, "no series was created for a rejected sample");
    let mut rig = Rig::new(AggregatePlan { allow_non_finite: true, ..plan() });
    assert_eq!(rig.add(0, "c:inf|c\nc:1|c\ng:-inf|g").rejected_non_finite, 0);
    assert_eq!(rig.flushed(2000), "c c inf inf; g g -inf");
}

#[test]
fn timers_beyond_the_exact_limit_are_sketched() {
    let lines = |count: usize| (1..=count).map(|v| format!("t:{v}|ms\n")).collect::<String>();
    let plan = AggregatePlan { timer_exact_max: 100, ..plan() };
    let mut rig = Rig::new(plan);
    rig.add(0, &lines(100));
    let figures = rig.aggregator.figures();
    assert_eq!((figures.timer_values, figures.timer_sketches), (100, 0), "at the limit");
    rig.add(0, &lines(1000)[lines(100).len()..]);
    let figures = rig.aggregator.figures();
    assert_eq!((figures.timer_values, figures.timer_sketches), (0, 1), "past it");
    let flushed = rig.flushed(2000);
    let value = |label: &str| -> f64 {
        let place = flushed.find(&format!(" {label}=")).expect("the label") + label.len() + 2;
        flushed[place..].split([' ', ';']).next().and_then(|text| text.parse().ok()).expect("a number")
    };
    for (label, want) in [
        ("count", 1000.0),
        ("count_ps", 500.0),
        ("sum", 500_500.0),
        ("sum_squares", 333_833_500.0),
        ("lower", 1.0),
        ("upper", 1000.0),
        ("mean", 500.5),
        ("count_90", 900.0),
    ] {
        assert_eq!(value(label), want, "{label}");
    }
    for (label, want) in [
        ("upper_90", 900.0),
        ("median", 500.5),
        ("mean_90", 450.5),
        ("sum_90", 405_450.0),
        ("std", 288.674_990),
    ] {
        assert!((value(label) / want - 1.0).abs() <= 0.0101, "{label}: {} for {want}", value(label));
    }
    rig.add(2500, &lines(2));
    assert!(rig.flushed(4000).contains("median=1.5"), "the next window is exact again");
}

#[test]
fn without_an_exact_limit_values_are_dropped_at_the_hard_limit() {
    let mut rig = Rig::new(plan());
    let lines = "t:1|ms\n".repeat(50_000);
    for _ in 0..limits::TIMER_VALUES_MAX / 50_000 {
        assert_eq!(rig.add(0, &lines).dropped_timer_values, 0);
    }
    let added = rig.add(0, "t:1|ms\nu:1|ms");
    assert_eq!(added, Added { aggregated: 1, dropped_timer_values: 1, ..Added::default() });
    assert_eq!(rig.aggregator.figures().timer_values, limits::TIMER_VALUES_MAX as u64 + 1);
}

/// Fills an aggregation with samples of one shape until no more are accepted.
fn filled(bytes_max: u64, line: impl Fn(u32) -> String) -> (Rig, Added) {
    let plan = AggregatePlan { bytes_max, timer_exact_max: 65_536, timer_weights: true, ..delete() };
    let mut rig = Rig::new(plan);
    rig.add(0, "known:1|c\nlevel:1|g");
    let mut all = Added::default();
    for number in 0..3_000 {
        let added = rig.add(0, &line(number));
        all.aggregated += added.aggregated;
        all.dropped_bytes_max += added.dropped_bytes_max;
    }
    (rig, all)
}

#[test]
fn series_of_every_kind_are_limited_by_bytes_max() {
    const BYTES_MAX: u64 = 1 << 20;
    // What one sample may add beyond the limit, and tables of fixed size.
    const SLACK_BYTES: u64 = 1 << 20;
    let long = |number: u32| format!("{number}{}", "x".repeat(3000));
    type Line = Box<dyn Fn(u32) -> String>;
    let table: [(&str, Line); 6] = [
        ("names", Box::new(move |number| format!("{}:1|c", long(number)))),
        ("tags", Box::new(move |number| format!("a:1|g|#{}", long(number)))),
        ("spellings", Box::new(move |number| format!("a{}b/:1|c", "/-".repeat(1000) + &long(number)))),
        ("values", Box::new(|number| format!("t{}:1|ms\n", number % 100).repeat(50))),
        ("weights", Box::new(|number| format!("t{}:1|ms|@0.5\n", number % 100).repeat(30))),
        ("members", Box::new(move |number| format!("s{}:{}|s", number % 10, long(number)))),
    ];
    for (what, line) in table {
        let (mut rig, added) = filled(BYTES_MAX, line);
        let held = rig.aggregator.figures().memory_bytes;
        assert!(held < BYTES_MAX + SLACK_BYTES, "{what}: {held} bytes");
        assert!(added.dropped_bytes_max > 0 && added.aggregated > 50, "{what}: {added:?}");
        let known = rig.add(0, "known:1|c\nlevel:2|g");
        assert_eq!(
            known,
            Added { aggregated: 2, ..Added::default() },
            "{what}: existing series still accept samples"
        );
        let new = rig.add(0, "new:1|c");
        assert_eq!(new, Added { dropped_bytes_max: 1, ..Added::default() }, "{what}");
        rig.flushed(2000);
        rig.flushed(4000);
        rig.flushed(6000);
        let again = rig.add(6000, "new:1|c\nt:1|ms\ns:1|s");
        assert_eq!(again.aggregated, 3, "{what}: there is room again");
    }
}

#[test]
fn memory_is_bounded_while_series_come_and_go() {
    let mut rig = Rig::new(AggregatePlan { timer_weights: true, ..delete() });
    let mut bytes = Vec::new();
    for window in 1..=40usize {
        let stem = "n".repeat(10 + window * 5);
        let lines: String = (0..500)
            .map(|at| {
                format!("{stem}/{at}:1|c\n{stem}{at}:{at}|ms|@0.5\n{stem}{at}:{at}|g\n{stem}{at}:{at}|s\n")
            })
            .collect();
        rig.add(window as u64 * 2000 - 1000, &lines);
        rig.flush(window as u64 * 2000);
        rig.emitted.clear();
        bytes.push(rig.aggregator.figures().memory_bytes);
    }
    // Names grow to 20 times their length during the run; memory follows the live names, not all names so far.
    assert!(bytes[39] < bytes[3] * 3, "{bytes:?}");
    for window in 41..=43 {
        rig.flush(window * 2000);
    }
    let figures = rig.aggregator.figures();
    assert_eq!((figures.series_total(), figures.aliases, figures.timer_values), (0, 0, 0));
    assert_eq!(figures.created, figures.expired);
    assert!(figures.memory_bytes < 300_000, "{}", figures.memory_bytes);
}

#[test]
fn a_million_counters_take_less_than_150_bytes_each() {
    let mut rig = Rig::new(plan());
    let empty = rig.aggregator.figures().memory_bytes;
    let lines: String = (0..50_000).map(|at| format!("{:040}:1|c\n", at * 77)).collect();
    rig.add(0, &lines);
    let bytes = (rig.aggregator.figures().memory_bytes - empty) / 50_000;
    assert!(bytes < 120, "{bytes} bytes");
}
