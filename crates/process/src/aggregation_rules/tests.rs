//! Windows over time as tables, each limit, and random points and clocks compared with a naive implementation.

use std::collections::BTreeMap;

use model::SECOND_NS;
use proptest::prelude::*;

use super::window::VALUE_BYTES;
use super::*;

fn at(second: u64) -> Now {
    Now { mono_ns: 0, wall_ns: second * SECOND_NS }
}

fn plan(every_s: u32, expire_s: u32, computes: &[Compute]) -> AggregationRulePlan {
    let compute = |compute: &Compute| ComputePlan { compute: *compute, name: String::new() };
    AggregationRulePlan {
        every_s,
        expire_s,
        stamp: Stamp::Start,
        computes: computes.iter().map(compute).collect(),
        late: Late::Dropped,
        exact: false,
    }
}

fn aggregation_rules(plans: Vec<AggregationRulePlan>) -> AggregationRules {
    AggregationRules::new(plans, AggregationRuleLimits::default(), 7)
}

fn feed<'a>(name: &'a str, value: f64, timestamp: i64) -> Feed<'a> {
    Feed { aggregation_rule: 0, compute: 0, name: name.as_bytes(), value, timestamp }
}

fn line(result: RuleResult<'_>) -> String {
    let mut line = result.name.to_vec();
    result.write_rest(&mut line);
    String::from_utf8(line).expect("text")
}

fn ticked(aggregation_rules: &mut AggregationRules, second: u64) -> Vec<String> {
    let mut lines = Vec::new();
    let emitted = aggregation_rules.tick(at(second), usize::MAX, |result| lines.push(line(result)));
    assert!(emitted.results == lines.len() as u64 && !emitted.more);
    lines
}

/// The delay of a name's windows of ten seconds and more.
fn splay(name: &str) -> u64 {
    key_hash(name.as_bytes()) % 10
}

#[test]
fn the_vector_of_the_specification_as_lines() {
    let all = [
        Compute::Sum,
        Compute::Count,
        Compute::Max,
        Compute::Min,
        Compute::Average,
        Compute::Percentile(50),
        Compute::Percentile(90),
        Compute::Variance,
        Compute::Stddev,
    ];
    let mut aggregation_rules = aggregation_rules(vec![plan(60, 120, &all)]);
    for value in [1.0, 2.5, 3.0, 10.0, -4.0] {
        for compute in 0..all.len() as u16 {
            let fed = aggregation_rules.feed(Feed { compute, ..feed("x", value, 615) }, at(620));
            assert_eq!(fed, Fed::Counted);
        }
    }
    let lines = ticked(&mut aggregation_rules, 600 + 120 + splay("x") + 1);
    let want = [
        "12.500000",
        "5",
        "10.000000",
        "-4.000000",
        "2.500000",
        "2.500000",
        "10.000000",
        "20.200000",
        "4.494441",
    ];
    assert_eq!(lines, want.map(|value| format!("x {value} 600")));
}

#[test]
fn a_window_is_emitted_when_late_points_are_no_longer_accepted() {
    let mut aggregation_rules = aggregation_rules(vec![plan(10, 25, &[Compute::Count])]);
    let name = "n";
    let due = |window: u64| window * 10 + 25 + splay(name) + 1;
    assert_eq!(aggregation_rules.feed(feed(name, 1.0, 1000), at(1004)), Fed::Counted);
    assert_eq!(aggregation_rules.due_s(), Some(due(100)));
    assert_eq!(aggregation_rules.feed(feed(name, 1.0, 1012), at(1014)), Fed::Counted);
    assert_eq!(
        aggregation_rules.feed(feed(name, 1.0, 1009), at(1020)),
        Fed::Counted,
        "late, but not too late"
    );
    assert_eq!(ticked(&mut aggregation_rules, due(100) - 1), [""; 0]);
    assert_eq!(ticked(&mut aggregation_rules, due(100)), ["n 2 1000"]);
    assert_eq!(aggregation_rules.feed(feed(name, 1.0, 1009), at(due(100))), Fed::Late);
    assert_eq!(aggregation_rules.feed(feed(name, 1.0, -1), at(due(100))), Fed::Late);
    assert_eq!(ticked(&mut aggregation_rules, due(101)), ["n 1 1010"]);
    // Empty: removed as soon as a new series would not emit a window again.
    assert_eq!(
        aggregation_rules.figures(),
        AggregationRuleFigures {
            series: 1,
            bytes: PLACE_BYTES + 1 + 2 * WINDOW_BYTES,
            ..AggregationRuleFigures::default()
        }
    );
    assert_eq!(ticked(&mut aggregation_rules, due(101) + 10), [""; 0]);
    assert_eq!((aggregation_rules.figures().series, aggregation_rules.due_s()), (0, None));
}

#[test]
fn a_new_series_begins_with_the_window_of_now_minus_expire() {
    let mut aggregation_rules = aggregation_rules(vec![plan(10, 25, &[Compute::Count])]);
    // At 1004 that is 979, in the window of 970; five windows are kept.
    for (name, timestamp, want) in [
        ("a", 969, Fed::Late),
        ("b", 970, Fed::Counted),
        ("c", 1019, Fed::Counted),
        ("d", 1020, Fed::Early),
        ("e", i64::MAX, Fed::Early),
        ("f", i64::MIN, Fed::Late),
    ] {
        assert_eq!(aggregation_rules.feed(feed(name, 1.0, timestamp), at(1004)), want, "{timestamp}");
    }
    assert_eq!(aggregation_rules.figures().series, 2, "rejected values create no series");
}

#[test]
fn timestamps_are_the_start_the_middle_or_the_end() {
    for (stamp, want) in [(Stamp::Start, 995), (Stamp::Middle, 997), (Stamp::End, 1000)] {
        let mut aggregation_rules =
            aggregation_rules(vec![AggregationRulePlan { stamp, ..plan(5, 6, &[Compute::Sum]) }]);
        aggregation_rules.feed(feed("n", 0.5, 999), at(1000));
        assert_eq!(ticked(&mut aggregation_rules, 1020), [format!("n 0.500000 {want}")]);
    }
}

#[test]
fn late_points_are_added_to_the_oldest_window_with_the_option() {
    let late = AggregationRulePlan { late: Late::Oldest, ..plan(10, 25, &[Compute::Sum]) };
    let mut aggregation_rules = aggregation_rules(vec![late]);
    assert_eq!(aggregation_rules.feed(feed("n", 1.0, 5), at(1004)), Fed::CountedLate);
    assert_eq!(aggregation_rules.feed(feed("n", 2.0, 971), at(1004)), Fed::Counted);
    assert_eq!(aggregation_rules.feed(feed("n", 4.0, -7), at(1004)), Fed::CountedLate);
    assert_eq!(ticked(&mut aggregation_rules, 1100), ["n 7.000000 970"]);
}

#[test]
fn no_window_is_emitted_twice_after_a_small_step_back() {
    let mut aggregation_rules = aggregation_rules(vec![plan(10, 25, &[Compute::Count])]);
    aggregation_rules.feed(feed("n", 1.0, 1000), at(1004));
    assert_eq!(ticked(&mut aggregation_rules, 1060), ["n 1 1000"]);
    assert_eq!(ticked(&mut aggregation_rules, 1080), [""; 0]);
    assert_eq!(aggregation_rules.figures().series, 0);
    for second in [1070, 1060, 1079] {
        assert_eq!(aggregation_rules.feed(feed("n", 1.0, 1000), at(second)), Fed::Late, "{second}");
        assert_eq!(ticked(&mut aggregation_rules, second), [""; 0]);
    }
    assert_eq!(aggregation_rules.feed(feed("n", 1.0, 1058), at(1060)), Fed::Counted);
    assert_eq!(aggregation_rules.figures().jumps_back, 0);
    assert_eq!(aggregation_rules.feed(feed("n", 1.0, 1052), at(1059)), Fed::Counted);
    assert_eq!(aggregation_rules.figures().jumps_back, 1, "a step back by one more second is followed");
}

/// Monotonic time, with a wall clock that is wrong by `by_s`.
fn off(second: u64, by_s: i64) -> Now {
    let mono_ns = second * SECOND_NS;
    Now { mono_ns, wall_ns: (1_700_000_000 + second).saturating_add_signed(by_s) * SECOND_NS }
}

/// A point each second from `from` to `to`, from a sender whose clock is right, while ours is wrong. Returns the
/// outcomes of the points, and the results with their seconds since the start.
fn fed_while_off(
    aggregation_rules: &mut AggregationRules,
    (from, to): (u64, u64),
    by_s: i64,
) -> (Vec<Fed>, Vec<(i64, f64)>) {
    let (mut fed, mut results) = (Vec::new(), Vec::new());
    for second in from..to {
        let now = off(second, by_s);
        fed.push(aggregation_rules.feed(feed("n", 1.0, 1_700_000_000 + second as i64), now));
        if aggregation_rules.is_due(now) {
            let emit = |result: RuleResult<'_>| {
                results.push((result.timestamp as i64 - 1_700_000_000, result.value))
            };
            aggregation_rules.tick(now, usize::MAX, emit);
        }
    }
    (fed, results)
}

#[test]
fn results_are_right_two_windows_after_the_clock_returns_from_a_jump() {
    const DAY_S: i64 = 86_400;
    for away_s in [DAY_S, -DAY_S, 365 * DAY_S, -365 * DAY_S, 3_600, -3_600, 100, -100] {
        for seconds in [1, 2, 50] {
            let mut aggregation_rules = aggregation_rules(vec![plan(10, 25, &[Compute::Count])]);
            let right = fed_while_off(&mut aggregation_rules, (0, 100), 0);
            assert!(right.0.iter().all(|fed| *fed == Fed::Counted));
            let away = fed_while_off(&mut aggregation_rules, (100, 100 + seconds), away_s);
            let back = fed_while_off(&mut aggregation_rules, (100 + seconds, 300), 0);
            let case = format!("{away_s} {seconds}");
            // Two windows later all points are counted, and no window is emitted in parts.
            assert!(back.0[20..].iter().all(|fed| *fed == Fed::Counted), "{case}: {:?}", back.0);
            let from = 100 + seconds as i64 + 20;
            let whole: Vec<_> = back.1.iter().filter(|(label, _)| *label >= from && *label < 260).collect();
            let want: Vec<i64> =
                (0..30).map(|window| window * 10).filter(|at| *at >= from && *at < 260).collect();
            assert_eq!(whole.iter().map(|(label, _)| *label).collect::<Vec<_>>(), want, "{case}");
            assert!(whole.iter().all(|(_, count)| *count == 10.0), "{case}: {whole:?}");
            // Windows that were emitted while the clock was ahead are not emitted again.
            let mut labels: Vec<i64> =
                right.1.iter().chain(&away.1).chain(&back.1).map(|(label, _)| *label).collect();
            labels.sort_unstable();
            let twice = labels.windows(2).filter(|pair| pair[0] == pair[1]).count();
            assert!(twice == 0 || away_s < 0, "{case}: {labels:?}");
            assert!(aggregation_rules.figures().jumps_back == 1, "{case}");
        }
    }
}

#[test]
fn windows_in_the_future_are_emitted_when_the_clock_is_set_back() {
    let mut aggregation_rules = aggregation_rules(vec![plan(10, 25, &[Compute::Count])]);
    let ahead = 1_700_000_000 + 86_400;
    assert_eq!(aggregation_rules.feed(feed("n", 1.0, ahead), off(0, 86_400)), Fed::Counted);
    let mut lines = Vec::new();
    assert!(aggregation_rules.is_due(off(1, 0)));
    aggregation_rules.tick(off(1, 0), usize::MAX, |result| lines.push(line(result)));
    assert_eq!(lines, [format!("n 1 {ahead}")]);
    assert_eq!((aggregation_rules.figures().future_results, aggregation_rules.figures().jumps_back), (1, 1));
}

#[test]
fn each_limit_has_its_outcome() {
    let bytes_max = 2 * (PLACE_BYTES + 1 + WINDOW_BYTES) + 4 * VALUE_BYTES;
    let median = || vec![plan(10, 25, &[Compute::Percentile(50)])];
    let mut aggregation_rules = AggregationRules::new(
        median(),
        AggregationRuleLimits { series_max: 2, bytes_max, ..AggregationRuleLimits::default() },
        7,
    );
    assert_eq!(aggregation_rules.feed(feed("a", f64::NAN, 1000), at(1000)), Fed::NotFinite);
    assert_eq!(aggregation_rules.feed(feed("a", f64::INFINITY, 1000), at(1000)), Fed::NotFinite);
    assert_eq!(aggregation_rules.feed(feed("a", 1.0, 1000), at(1000)), Fed::Counted);
    assert_eq!(aggregation_rules.feed(feed("b", 1.0, 1000), at(1000)), Fed::Counted);
    assert_eq!(aggregation_rules.feed(feed("c", 1.0, 1000), at(1000)), Fed::SeriesMax);
    assert_eq!(aggregation_rules.feed(feed("a", 2.0, 1000), at(1000)), Fed::Counted);
    assert_eq!(aggregation_rules.feed(feed("a", 2.0, 1010), at(1000)), Fed::BytesMax, "a window and a value");
    assert_eq!(aggregation_rules.feed(feed("a", 3.0, 1000), at(1000)), Fed::Counted);
    assert_eq!(aggregation_rules.feed(feed("a", 4.0, 1000), at(1000)), Fed::BytesMax);
    assert_eq!(
        aggregation_rules.figures(),
        AggregationRuleFigures { series: 2, bytes: bytes_max, ..AggregationRuleFigures::default() }
    );
    assert_eq!(ticked(&mut aggregation_rules, 2000), ["a 2.000000 1000", "b 1.000000 1000"]);
    assert_eq!(aggregation_rules.figures(), AggregationRuleFigures::default());

    let one = PLACE_BYTES + 1 + WINDOW_BYTES + VALUE_BYTES;
    for (bytes_max, want) in [(one, Fed::Counted), (one - 1, Fed::BytesMax)] {
        let mut narrow = AggregationRules::new(
            median(),
            AggregationRuleLimits { series_max: 9, bytes_max, ..AggregationRuleLimits::default() },
            7,
        );
        assert_eq!(narrow.feed(feed("a", 1.0, 1000), at(1000)), want);
        assert_eq!(narrow.figures().series, u32::from(want == Fed::Counted));
    }

    let few = AggregationRuleLimits { values_max: 3, ..AggregationRuleLimits::default() };
    let mut few = AggregationRules::new(vec![plan(10, 25, &[Compute::Percentile(50), Compute::Sum])], few, 7);
    for value in [1.0, 2.0, 3.0] {
        assert_eq!(few.feed(feed("a", value, 1000), at(1000)), Fed::Counted);
    }
    assert_eq!(
        few.feed(feed("a", 4.0, 1000), at(1000)),
        Fed::BytesMax,
        "a percentile needs all values at once"
    );
    assert_eq!(few.feed(feed("a", 4.0, 1010), at(1000)), Fed::Counted, "another window");

    let mut sums = super::tests::aggregation_rules(vec![plan(10, 25, &[Compute::Sum])]);
    sums.feed(feed("a", f64::MAX, 1000), at(1000));
    sums.feed(feed("a", f64::MAX, 1000), at(1000));
    let emitted = sums.tick(at(2000), 1, |_| panic!("an infinite sum is not emitted"));
    assert_eq!((emitted.results, emitted.not_finite), (0, 1));
}

#[test]
fn a_slice_is_limited_in_series_windows_and_values() {
    let names: Vec<String> = (0..40).map(|number| format!("n{number}")).collect();
    let calls = |aggregation_rules: &mut AggregationRules| {
        let (mut calls, mut results) = (0, 0);
        loop {
            let emitted = aggregation_rules.tick(at(9000), 40, |_| results += 1);
            calls += 1;
            if !emitted.more {
                return (calls, results);
            }
        }
    };
    for (windows, values, want) in [(1, 1, (1, 40)), (100, 1, (40, 4000)), (1, 1000, (40, 40))] {
        let mut aggregation_rules = aggregation_rules(vec![plan(10, 3600, &[Compute::Percentile(50)])]);
        for (name, at_s) in names.iter().flat_map(|name| (0..windows).map(move |at_s| (name, at_s))) {
            for _ in 0..values {
                assert_eq!(aggregation_rules.feed(feed(name, 1.0, 1000 + at_s * 10), at(4000)), Fed::Counted);
            }
        }
        assert_eq!(calls(&mut aggregation_rules), want, "{windows} windows of {values} values");
    }
}

#[test]
fn allocated_memory_is_counted_and_freed_after_a_peak() {
    let mut aggregation_rules = aggregation_rules(vec![plan(10, 36_000, &[Compute::Percentile(50)])]);
    let names: Vec<String> = (0..3_000).map(|number| format!("n{number}")).collect();
    assert_eq!(aggregation_rules.feed(feed("first", 1.0, 100_000), at(100_000)), Fed::Counted);
    let before = aggregation_rules.figures().bytes;
    for name in &names {
        assert_eq!(aggregation_rules.feed(feed(name, 1.0, 100_000), at(100_000)), Fed::Counted);
    }
    let used = names.iter().map(|name| PLACE_BYTES + name.len() + WINDOW_BYTES + VALUE_BYTES).sum::<usize>();
    assert!(aggregation_rules.figures().bytes > before + used, "spare capacity is counted");
    // One with many windows, each begun before the others, and many values in one of them.
    for window in (0..2_000).rev() {
        assert_eq!(
            aggregation_rules.feed(feed("first", 1.0, 100_010 + window * 10), at(120_010)),
            Fed::Counted
        );
    }
    for _ in 0..1_000 {
        assert_eq!(aggregation_rules.feed(feed("first", 1.0, 100_010), at(120_010)), Fed::Counted);
    }
    let last = 100_000 + 20_000 + 36_000 + 11;
    let results =
        ticked(&mut aggregation_rules, last - 10_000).len() + ticked(&mut aggregation_rules, last - 20).len();
    assert!(results > 3_000 + 1_900, "{results}");
    assert_eq!(
        (aggregation_rules.figures().series, aggregation_rules.figures().bytes > 10 * before),
        (1, false)
    );
    assert!(
        aggregation_rules.series.capacity()
            + aggregation_rules.free.capacity()
            + aggregation_rules.index.capacity()
            < 100
    );
    let _all = (ticked(&mut aggregation_rules, last), ticked(&mut aggregation_rules, last + 40_000));
    assert_eq!(aggregation_rules.figures(), AggregationRuleFigures::default());
}

#[test]
fn finish_emits_ended_windows_and_counts_the_rest() {
    let mut aggregation_rules = aggregation_rules(vec![plan(10, 25, &[Compute::Count])]);
    for timestamp in [1001, 1002, 1011, 1012, 1021] {
        aggregation_rules.feed(feed("n", 1.0, timestamp), at(1020));
    }
    let mut lines = Vec::new();
    let emitted = aggregation_rules.finish(at(1020), |result| lines.push(line(result)));
    assert_eq!(lines, ["n 2 1000", "n 2 1010"]);
    assert_eq!((emitted.results, emitted.values_left), (2, 1));
    assert_eq!(
        (aggregation_rules.figures(), aggregation_rules.due_s()),
        (AggregationRuleFigures::default(), None)
    );
}

#[test]
fn each_rule_compute_and_name_is_a_series_of_its_own() {
    let both = [Compute::Sum, Compute::Count];
    let mut aggregation_rules = aggregation_rules(vec![plan(10, 25, &both), plan(10, 25, &both)]);
    for (aggregation_rule, compute) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        aggregation_rules.feed(Feed { aggregation_rule, compute, ..feed("n", 2.0, 1000) }, at(1000));
    }
    let want = ["n 2.000000 1000", "n 1 1000", "n 2.000000 1000", "n 1 1000"];
    assert_eq!(ticked(&mut aggregation_rules, 2000), want);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Point { name: usize, timestamp: i64 },
    Clock { by: i64 },
    Tick { slice: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0usize..4, -60i64..30).prop_map(|(name, timestamp)| Step::Point { name, timestamp }),
        2 => prop_oneof![8 => 0i64..15, 1 => -100i64..0, 1 => 50i64..400].prop_map(|by| Step::Clock { by }),
        2 => (1usize..4).prop_map(|slice| Step::Tick { slice }),
    ]
}

/// Runs the steps; returns all results in order, and the outcome of each point.
fn run(
    plan: &AggregationRulePlan,
    steps: &[Step],
    seed: u64,
    (whole, jumps): (bool, bool),
) -> (Vec<(String, u64, f64)>, Vec<Fed>, u64) {
    let names = ["a", "b", "some.name", "another.name"];
    let mut aggregation_rules =
        AggregationRules::new(vec![plan.clone()], AggregationRuleLimits::default(), seed);
    let (mut results, mut outcomes, mut wall) = (Vec::new(), Vec::new(), 10_000i64);
    let mut highest = wall;
    let mut emit = |result: RuleResult<'_>| {
        let name = String::from_utf8_lossy(result.name).into_owned();
        results.push((name, result.timestamp, result.value));
    };
    for step in steps {
        highest = highest.max(wall);
        match *step {
            Step::Point { name, timestamp } => {
                let feed = feed(names[name], 1.0, wall + timestamp);
                outcomes.push(aggregation_rules.feed(feed, at(wall as u64)));
            }
            Step::Clock { by } if jumps => wall = (wall + by).max(0),
            // A larger step back would be followed.
            Step::Clock { by } => wall = (wall + by).max(highest - 2 * i64::from(plan.every_s)),
            Step::Tick { slice } => {
                let slice = if whole { usize::MAX } else { slice };
                while aggregation_rules.tick(at(wall as u64), slice, &mut emit).more {}
            }
        }
    }
    let emitted = aggregation_rules.finish(at(wall as u64), &mut emit);
    (results, outcomes, emitted.values_left)
}

proptest! {
    #[test]
    fn every_counted_point_is_emitted_once_with_growing_timestamps(
        every in 1u32..20,
        longer in 1u32..40,
        oldest in any::<bool>(),
        steps in proptest::collection::vec(step(), 0..120),
    ) {
        let late = if oldest { Late::Oldest } else { Late::Dropped };
        let plan = AggregationRulePlan { late, ..plan(every, every + longer, &[Compute::Count]) };
        let (results, outcomes, left) = run(&plan, &steps, 1, (true, false));
        let counted = outcomes.iter().filter(|fed| matches!(fed, Fed::Counted | Fed::CountedLate)).count();
        let emitted: f64 = results.iter().map(|(_, _, count)| count).sum();
        prop_assert_eq!(counted as u64, emitted as u64 + left);
        // Whatever the clock does, no value is lost.
        let (jumped, outcomes_then, left_then) = run(&plan, &steps, 1, (true, true));
        let counted = outcomes_then.iter().filter(|fed| matches!(fed, Fed::Counted | Fed::CountedLate)).count();
        let emitted: f64 = jumped.iter().map(|(_, _, count)| count).sum();
        prop_assert_eq!(counted as u64, emitted as u64 + left_then);
        let mut last = BTreeMap::new();
        for (name, timestamp, _) in &results {
            prop_assert_eq!(timestamp % u64::from(every), 0);
            let before = last.insert(name, *timestamp);
            prop_assert!(before.is_none_or(|before| before < *timestamp), "{} {:?}", timestamp, before);
        }
        prop_assert_eq!(&run(&plan, &steps, 2, (true, false)), &(results.clone(), outcomes.clone(), left));
        prop_assert_eq!(run(&plan, &steps, 3, (false, false)), (results, outcomes, left));
    }
}

#[test]
fn exact_results_have_all_digits() {
    let exact = AggregationRulePlan { exact: true, ..plan(10, 20, &[Compute::Average]) };
    let mut aggregation_rules = aggregation_rules(vec![exact]);
    for value in [0.000_000_1, 0.000_000_2] {
        assert_eq!(aggregation_rules.feed(feed("a", value, 1000), at(1000)), Fed::Counted);
    }
    assert_eq!(ticked(&mut aggregation_rules, 1040), ["a 0.00000015 1000"]);
}
