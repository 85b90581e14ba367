//! Saving and restoring: a restart changes no result, and invalid bytes are rejected.

use model::SECOND_NS;
use proptest::collection::vec;
use proptest::prelude::*;

use super::promises::{self, at, keys, plans, sealed};
use super::*;

fn aggregation_rules(plans: Vec<AggregationRulePlan>, seed: u64) -> AggregationRules {
    AggregationRules::new(plans, AggregationRuleLimits::default(), seed)
}

/// One step: the clock moves, a value arrives, and due results are emitted.
#[derive(Clone, Copy, Debug)]
struct Step {
    clock: i64,
    aggregation_rule: u16,
    compute: u16,
    name: u8,
    value: i32,
    /// Age of the value in seconds.
    age: i64,
    /// Maximum series emitted in this step.
    series_max: usize,
}

fn step() -> impl Strategy<Value = Step> {
    let of = (-2_i64..9, 0_u16..2, 0_u16..4, 0_u8..4, -50..50, -20_i64..45, 0_usize..4);
    of.prop_map(|(clock, aggregation_rule, compute, name, value, age, series_max)| {
        let compute = if aggregation_rule == 1 { compute % 2 } else { compute };
        Step { clock, aggregation_rule, compute, name, value, age, series_max }
    })
}

fn line(result: RuleResult<'_>) -> String {
    let mut line = format!("{} {:?} ", result.aggregation_rule, result.compute).into_bytes();
    line.extend_from_slice(result.name);
    result.write_rest(&mut line);
    String::from_utf8(line).expect("text")
}

fn run(
    aggregation_rules: &mut AggregationRules,
    now_s: &mut i64,
    steps: &[Step],
    lines: &mut Vec<String>,
) -> Vec<Fed> {
    let mut all = Vec::new();
    for step in steps {
        // A step back by more than two windows of the shorter aggregation rule would be followed.
        *now_s = (*now_s + step.clock).max(aggregation_rules.clock.now_s as i64 - 6);
        let now = at(*now_s as u64);
        let name = [b'n', step.name];
        let (value, timestamp) = (f64::from(step.value) / 4.0, *now_s - step.age);
        let feed = Feed {
            aggregation_rule: step.aggregation_rule,
            compute: step.compute,
            name: &name,
            value,
            timestamp,
        };
        all.push(aggregation_rules.feed(feed, now));
        if step.series_max > 0 {
            // In slices, so that the restart may happen during a sweep; then to the end of the sweep.
            let series_max = aggregation_rules.tick(now, step.series_max, |result| lines.push(line(result)));
            if series_max.more && step.series_max > 1 {
                aggregation_rules.tick(now, usize::MAX, |result| lines.push(line(result)));
            }
        }
    }
    all
}

proptest! {
    #[test]
    fn a_restart_changes_no_result(before in vec(step(), 0..60), after in vec(step(), 0..60)) {
        let plans = plans();
        let keys = keys(&plans);
        let (mut whole, mut first) = (aggregation_rules(plans.clone(), 1), aggregation_rules(plans.clone(), 2));
        let (mut want, mut got) = (Vec::new(), Vec::new());
        let (mut now_whole, mut now_broken) = (1_000, 1_000);
        run(&mut whole, &mut now_whole, &before, &mut want);
        run(&mut first, &mut now_broken, &before, &mut got);
        let bytes = first.save(&keys, 99);
        // Both have emitted the same when the current sweep has ended.
        let end = |aggregation_rules: &mut AggregationRules, lines: &mut Vec<String>, now_s: i64| {
            // The first sweep may be one that began earlier. The second visits all series, due or not: a visited
            // series accepts nothing for windows that are over and empty, and a sweep runs when any series is due.
            for _sweep in 0..2 {
                aggregation_rules.tick(at(now_s as u64), usize::MAX, |result| lines.push(line(result)));
                aggregation_rules.due_s = 0;
            }
        };
        let mut second = aggregation_rules(plans, 3);
        let restored = second.restore(&keys, &bytes).expect("a valid saved state");
        prop_assert_eq!(restored.values_left, 0);
        let figures = |aggregation_rules: &AggregationRules| AggregationRuleFigures { bytes: 0, ..aggregation_rules.figures() };
        prop_assert_eq!(figures(&second), figures(&first));
        prop_assert!(second.figures().bytes <= first.figures().bytes, "spare capacity is not saved");
        prop_assert_eq!(second.save(&keys, 99).len(), bytes.len());
        end(&mut whole, &mut want, now_whole);
        end(&mut second, &mut got, now_broken);
        // Series have other indexes now, so slices of a sweep contain other series.
        let after: Vec<Step> = after.into_iter().map(|step| Step { series_max: step.series_max * 100, ..step }).collect();
        let fed = run(&mut whole, &mut now_whole, &after, &mut want);
        prop_assert_eq!(run(&mut second, &mut now_broken, &after, &mut got), fed);
        let emitted = whole.finish(at(now_whole as u64), |result| want.push(line(result)));
        let emitted_second = second.finish(at(now_broken as u64), |result| got.push(line(result)));
        prop_assert_eq!(emitted.values_left, emitted_second.values_left);
        // Series that were created again have other indexes, and so another order.
        want.sort();
        got.sort();
        prop_assert_eq!(&got, &want);
        got.dedup();
        prop_assert_eq!(got.len(), want.len(), "no window is emitted twice");
    }

    #[test]
    fn damaged_bytes_are_rejected_as_a_whole(steps in vec(step(), 1..20), place in any::<prop::sample::Index>(), bit in 0..8) {
        let (plans, mut lines) = (plans(), Vec::new());
        let keys = keys(&plans);
        let mut saved = aggregation_rules(plans.clone(), 1);
        run(&mut saved, &mut 1_000, &steps, &mut lines);
        let bytes = saved.save(&keys, 5);
        let mut damaged = bytes.clone();
        damaged[place.index(bytes.len())] ^= 1_u8 << bit;
        for bytes in [&damaged[..], &bytes[..place.index(bytes.len())]] {
            let mut other = aggregation_rules(plans.clone(), 1);
            prop_assert!(other.restore(&keys, bytes).is_err());
            prop_assert_eq!(other.figures(), AggregationRuleFigures::default());
        }
    }

    /// Bytes with a valid checksum that nobody saved.
    #[test]
    fn random_bytes_cause_no_panic(body in vec(any::<u8>(), 0..200), steps in vec(step(), 0..10)) {
        let plans = plans();
        let keys = keys(&plans);
        let (mut from, mut lines) = (aggregation_rules(plans, 1), Vec::new());
        let _restored = from.restore(&keys, &sealed(&body));
        run(&mut from, &mut 1_000, &steps, &mut lines);
        from.finish(at(u64::MAX / SECOND_NS), |_| {});
        for which in 0..3 {
            promises::check_one(&[&[which], &body[..]].concat());
        }
    }

    /// Bytes that look like series: small numbers, few lengths.
    #[test]
    fn bytes_that_look_like_series_cause_no_panic(body in vec(prop_oneof![0_u8..5, 0_u8..5, any::<u8>()], 0..120)) {
        promises::check_one(&[&[2], &body[..]].concat());
    }

    #[test]
    fn windows_of_any_number_and_count_are_restored(
        open in any::<u64>(),
        number in any::<u64>(),
        count in any::<u64>(),
        compute in 0_u8..5,
    ) {
        let mut body = vec![0, compute, 1, b'n'];
        crate::bytes::put_varint(open, &mut body);
        body.push(1);
        for varint in [number, count] {
            crate::bytes::put_varint(varint, &mut body);
        }
        body.extend_from_slice(&[0; 17]);
        promises::check_one(&[&[2, 1], &body[..]].concat());
        promises::check_one(&[&[2, 2], &body[..], &body[..]].concat());
    }
}

/// Two aggregation rules, each with one value at second 1000.
fn two() -> AggregationRules {
    let mut two = aggregation_rules(plans(), 1);
    for aggregation_rule in 0..2 {
        let feed = Feed { aggregation_rule, compute: 0, name: b"n", value: 5.0, timestamp: 1_000 };
        assert_eq!(two.feed(feed, at(1_000)), Fed::Counted);
    }
    two
}

#[test]
fn values_that_cannot_be_restored_are_counted() {
    let plans = plans();
    let all = keys(&plans);
    let bytes = two().save(&all, 1);
    let of = |plans: &[usize]| plans.iter().map(|at| self::plans()[*at].clone()).collect::<Vec<_>>();
    let none = AggregationRuleLimits { series_max: 0, ..AggregationRuleLimits::default() };
    let one = AggregationRuleLimits { series_max: 1, ..AggregationRuleLimits::default() };
    let small = AggregationRuleLimits { bytes_max: 10, ..AggregationRuleLimits::default() };
    let usual = AggregationRuleLimits::default();
    let table = [
        (of(&[0, 1]), usual, 2, 0),
        (of(&[1, 0]), usual, 2, 0),
        (of(&[0]), usual, 1, 1),
        (of(&[]), usual, 0, 2),
        (of(&[0, 0, 1]), one, 1, 1),
        (of(&[0, 1]), none, 0, 2),
        (of(&[0, 1]), small, 0, 2),
    ];
    for (plans, limits, series, values_left) in table {
        let mut other = AggregationRules::new(plans.clone(), limits, 1);
        assert_eq!(other.restore(&keys(&plans), &bytes), Ok(Restored { series, values_left }), "{plans:?}");
        assert_eq!(u64::from(other.figures().series), series);
    }
    let mut version = bytes.clone();
    version[8] = 2;
    let mut other = aggregation_rules(plans, 1);
    assert_eq!(other.restore(&all, &version), Err(NotRestored::Version));
    assert_eq!(other.restore(&all, b"STNAGG\r\n"), Err(NotRestored::NotSavedState));
    assert_eq!(other.restore(&all, b"STNROL\r\n"), Err(NotRestored::Damaged));
}

#[test]
fn a_step_back_during_a_restart_is_absorbed_or_followed() {
    let keys = keys(&plans());
    let mut before = two();
    let mut lines = Vec::new();
    before.tick(at(1_100), usize::MAX, |result| lines.push(line(result)));
    assert_eq!(lines.len(), 2);
    let mut after = aggregation_rules(plans(), 9);
    after.restore(&keys, &before.save(&keys, 3)).expect("a valid saved state");
    let feed = Feed { aggregation_rule: 0, compute: 0, name: b"n", value: 5.0, timestamp: 1_000 };
    // Two windows of the shorter aggregation rule: for this long no window is emitted twice.
    assert_eq!(after.feed(feed, at(1_094)), Fed::Late);
    assert_eq!(after.figures().jumps_back, 0);
    assert_eq!(after.feed(feed, at(1_001)), Fed::Counted, "the wrong clock is not kept");
    assert_eq!(after.figures().jumps_back, 1);
}

#[test]
fn results_of_removed_rules_end_at_a_reload() {
    let mut aggregation_rules = two();
    let now = vec![plans().remove(1), plans().remove(1)];
    let to = matched(&keys(&plans()), &keys(&now));
    assert_eq!(to, [None, Some(0)]);
    let mut lines = Vec::new();
    // The window of the first rule, which began at 1000, has ended, but would accept late values.
    let emitted = aggregation_rules
        .replan(now, AggregationRuleLimits::default(), &to, at(1_012), |result| lines.push(line(result)));
    assert_eq!((emitted.results, emitted.values_left), (1, 0));
    assert_eq!(lines, ["0 Sum n 5.000000 1010"]);
    assert_eq!(aggregation_rules.figures().series, 1);
    let mut lines = Vec::new();
    aggregation_rules.tick(at(1_030), usize::MAX, |result| lines.push(line(result)));
    assert_eq!(lines, ["0 Sum n 5.000000 1002"], "under its new number");
    let emitted = two().replan(vec![], AggregationRuleLimits::default(), &[None, None], at(1_001), |_| {});
    assert_eq!((emitted.results, emitted.values_left), (0, 2), "no window has ended");
}

#[test]
fn equal_statements_are_matched_in_order() {
    let keys = |text: &str| text.bytes().map(|key| vec![key]).collect::<Vec<_>>();
    for (before, now, want) in [
        ("ab", "ab", vec![Some(0), Some(1)]),
        ("ab", "ba", vec![Some(1), Some(0)]),
        ("aa", "a", vec![Some(0), None]),
        ("aa", "xaa", vec![Some(1), Some(2)]),
        ("", "a", vec![]),
    ] {
        assert_eq!(matched(&keys(before), &keys(now)), want, "{before} {now}");
    }
}
