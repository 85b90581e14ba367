//! A break changes nothing, whatever came before and after it; and bytes that are not what was saved are refused.

use model::SECOND_NS;
use proptest::collection::vec;
use proptest::prelude::*;

use super::promises::{self, at, keys, plans, sealed};
use super::*;

fn aggregation_rules(plans: Vec<AggregationRulePlan>, seed: u64) -> AggregationRules {
    AggregationRules::new(plans, AggregationRuleLimits::default(), seed)
}

/// What happens in one step: the clock moves, a value comes, and what is over is told.
#[derive(Clone, Copy, Debug)]
struct Step {
    clock: i64,
    aggregation_rule: u16,
    compute: u16,
    name: u8,
    value: i32,
    /// Seconds of the value before the clock's.
    age: i64,
    /// Series that are told then.
    told: usize,
}

fn step() -> impl Strategy<Value = Step> {
    let of = (-2_i64..9, 0_u16..2, 0_u16..4, 0_u8..4, -50..50, -20_i64..45, 0_usize..4);
    of.prop_map(|(clock, aggregation_rule, compute, name, value, age, told)| {
        let compute = if aggregation_rule == 1 { compute % 2 } else { compute };
        Step { clock, aggregation_rule, compute, name, value, age, told }
    })
}

fn line(rolled: Rolled<'_>) -> String {
    let mut line = format!("{} {:?} ", rolled.aggregation_rule, rolled.compute).into_bytes();
    line.extend_from_slice(rolled.name);
    rolled.write_rest(&mut line);
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
        // Further back than two windows of the shorter aggregation rule the clock would be followed.
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
        if step.told > 0 {
            // In slices, so that a break finds a sweep under way; then to its end.
            let told = aggregation_rules.tick(now, step.told, |rolled| lines.push(line(rolled)));
            if told.more && step.told > 1 {
                aggregation_rules.tick(now, usize::MAX, |rolled| lines.push(line(rolled)));
            }
        }
    }
    all
}

proptest! {
    #[test]
    fn a_break_changes_nothing(before in vec(step(), 0..60), after in vec(step(), 0..60)) {
        let plans = plans();
        let keys = keys(&plans);
        let (mut whole, mut first) = (aggregation_rules(plans.clone(), 1), aggregation_rules(plans.clone(), 2));
        let (mut want, mut got) = (Vec::new(), Vec::new());
        let (mut now_whole, mut now_broken) = (1_000, 1_000);
        run(&mut whole, &mut now_whole, &before, &mut want);
        run(&mut first, &mut now_broken, &before, &mut got);
        let bytes = first.save(&keys, 99);
        // Both have told as much, when the sweep under way has come to its end.
        let end = |aggregation_rules: &mut AggregationRules, lines: &mut Vec<String>, now_s: i64| {
            // The first may end a sweep that began earlier. The second visits all, due or not: a series that was visited takes
            // nothing more for windows that are over and empty, and a sweep comes when any of the series is due.
            for _sweep in 0..2 {
                aggregation_rules.tick(at(now_s as u64), usize::MAX, |rolled| lines.push(line(rolled)));
                aggregation_rules.due_s = 0;
            }
        };
        let mut second = aggregation_rules(plans, 3);
        let restored = second.restore(&keys, &bytes).expect("it is whole");
        prop_assert_eq!(restored.values_left, 0);
        let figures = |aggregation_rules: &AggregationRules| AggregationRuleFigures { bytes: 0, ..aggregation_rules.figures() };
        prop_assert_eq!(figures(&second), figures(&first));
        prop_assert!(second.figures().bytes <= first.figures().bytes, "room for more is not saved");
        prop_assert_eq!(second.save(&keys, 99).len(), bytes.len());
        end(&mut whole, &mut want, now_whole);
        end(&mut second, &mut got, now_broken);
        // Series have other places now, so that slices of a sweep are of others.
        let after: Vec<Step> = after.into_iter().map(|step| Step { told: step.told * 100, ..step }).collect();
        let fed = run(&mut whole, &mut now_whole, &after, &mut want);
        prop_assert_eq!(run(&mut second, &mut now_broken, &after, &mut got), fed);
        let told = whole.finish(at(now_whole as u64), |rolled| want.push(line(rolled)));
        let told_second = second.finish(at(now_broken as u64), |rolled| got.push(line(rolled)));
        prop_assert_eq!(told.values_left, told_second.values_left);
        // Series that began again have other places, and so another turn.
        want.sort();
        got.sort();
        prop_assert_eq!(&got, &want);
        got.dedup();
        prop_assert_eq!(got.len(), want.len(), "no window is told twice");
    }

    #[test]
    fn damaged_bytes_are_refused_whole(steps in vec(step(), 1..20), place in any::<prop::sample::Index>(), bit in 0..8) {
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

    /// Bytes whose checksum is right, and that nobody saved.
    #[test]
    fn no_bytes_make_it_panic(body in vec(any::<u8>(), 0..200), steps in vec(step(), 0..10)) {
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
    fn likely_bytes_make_it_panic_no_more(body in vec(prop_oneof![0_u8..5, 0_u8..5, any::<u8>()], 0..120)) {
        promises::check_one(&[&[2], &body[..]].concat());
    }

    #[test]
    fn windows_of_any_number_and_count_go_on(
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

/// One value in each of two aggregation rules at second 1000.
fn two() -> AggregationRules {
    let mut two = aggregation_rules(plans(), 1);
    for aggregation_rule in 0..2 {
        let feed = Feed { aggregation_rule, compute: 0, name: b"n", value: 5.0, timestamp: 1_000 };
        assert_eq!(two.feed(feed, at(1_000)), Fed::Counted);
    }
    two
}

#[test]
fn what_cannot_go_on_is_counted() {
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
    assert_eq!(other.restore(&all, b"STNAGG\r\n"), Err(NotRestored::NoneOfOurs));
    assert_eq!(other.restore(&all, b"STNROL\r\n"), Err(NotRestored::Damaged));
}

#[test]
fn a_clock_that_was_set_back_over_a_restart_is_waited_for_or_followed() {
    let keys = keys(&plans());
    let mut before = two();
    let mut lines = Vec::new();
    before.tick(at(1_100), usize::MAX, |rolled| lines.push(line(rolled)));
    assert_eq!(lines.len(), 2);
    let mut after = aggregation_rules(plans(), 9);
    after.restore(&keys, &before.save(&keys, 3)).expect("it is whole");
    let feed = Feed { aggregation_rule: 0, compute: 0, name: b"n", value: 5.0, timestamp: 1_000 };
    // Two windows of the shorter aggregation rule: so many seconds no window is told twice.
    assert_eq!(after.feed(feed, at(1_094)), Fed::Late);
    assert_eq!(after.figures().jumps_back, 0);
    assert_eq!(after.feed(feed, at(1_001)), Fed::Counted, "a clock that was wrong is not carried on");
    assert_eq!(after.figures().jumps_back, 1);
}

#[test]
fn other_plans_end_what_they_do_not_have() {
    let mut aggregation_rules = two();
    let now = vec![plans().remove(1), plans().remove(1)];
    let to = matched(&keys(&plans()), &keys(&now));
    assert_eq!(to, [None, Some(0)]);
    let mut lines = Vec::new();
    // The window of the first, which began at 1000, is over: it would have taken late values.
    let told = aggregation_rules
        .replan(now, AggregationRuleLimits::default(), &to, at(1_012), |rolled| lines.push(line(rolled)));
    assert_eq!((told.results, told.values_left), (1, 0));
    assert_eq!(lines, ["0 Sum n 5.000000 1010"]);
    assert_eq!(aggregation_rules.figures().series, 1);
    let mut lines = Vec::new();
    aggregation_rules.tick(at(1_030), usize::MAX, |rolled| lines.push(line(rolled)));
    assert_eq!(lines, ["0 Sum n 5.000000 1002"], "under its new number");
    let told = two().replan(vec![], AggregationRuleLimits::default(), &[None, None], at(1_001), |_| {});
    assert_eq!((told.results, told.values_left), (0, 2), "nothing is over");
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
