//! What holds for any events, at any times.

use proptest::prelude::*;

use super::rig::{Rig, event};
use crate::graph::Limits;
use crate::value::Value;

/// Streams with a state. `out` is at their end.
const WITH_STATE: &[&str] = &[
    "(sreduce max-metric out)",
    "(moving-event-window 3 out)",
    "(fixed-event-window 3 out)",
    "(moving-time-window 3 out)",
    "(fixed-time-window 3 {:flush-after 1} out)",
    "(fixed-offset-time-window 3 out)",
    "(rate 2 out)",
    "(ddt out)",
    "(ddt 2 out)",
    "(percentiles 3 [0 1/2 1] out)",
    "(counter out)",
    "(mean-over-time [out])",
    "(ewma-timeless 1/4 out)",
    "(ewma 2 out)",
    "(throttle 2 3 out)",
    "(rollup 2 3 out)",
    "(batch 3 3 out)",
    "(part-time-simple 3 nothing add-last (fn [all start end] (note start end all)))",
    "(part-time-fast 3 nothing (fn [bin e] (note e)) (fn [bin start end] (note start end)))",
    "(periodically-until-expired 2 (fn [] (note 1)))",
    "(coalesce 2 out)",
    "(coalesce-with-event :service (fn [e all] (note e all)))",
    "(changed :state {:pairs? true} out)",
    "(stable 2 :state out)",
    "(runs 2 :state out)",
    "(fill-in 2 {:metric 0} (fn [e] (note e)))",
    "(fill-in-last 2 {:metric 0} out)",
    "(interpolate-constant 2 out)",
    "(fold-interval-metric 3 total out)",
    "(apdex 2 (state \"ok\") (state \"bad\") out)",
    "(project [(service \"a\") (service \"b\")] out)",
    "(predict-linear 3 10 1 out)",
    "(top 1 :metric (to T) (to B))",
    "(clock-skew out)",
    "(by :host (by :service (rate 2 out)))",
    "(by [:host :service] (throttle 1 3 (to A)) (batch 2 2 (to B)))",
    "(changed-state out)",
];

/// An event, or how many microseconds pass.
#[derive(Clone, Debug)]
enum Step {
    Event(String),
    Advance(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let time = prop_oneof![3 => (0..12_i64).prop_map(Some), 1 => Just(None)];
    let word =
        (prop::sample::select(vec!["a", "b"]), prop::sample::select(vec!["^h", "^i"]), -3..9_i64, time);
    let state = prop::sample::select(vec![",:ok", ",:bad", ",:expired", "", ""]);
    let events =
        (word, state, prop::option::of(1..9_i64)).prop_map(|((service, host, metric, time), state, ttl)| {
            let time = time.map_or(String::new(), |time| format!("t{time}"));
            let ttl = ttl.map_or(String::new(), |ttl| format!("l{ttl}"));
            let metric = if metric < -1 { String::new() } else { format!(",m{metric}") };
            let numbers =
                if metric.is_empty() { format!(",{time}{ttl}") } else { format!("{metric}{time}{ttl}") };
            let numbers = if numbers == "," { String::new() } else { numbers };
            Step::Event(format!("{service},{host}{numbers}{state}"))
        });
    let advance = prop::sample::select(vec![0, 500_000, 1_000_000, 2_500_000, 7_000_000]);
    prop_oneof![3 => events, 1 => advance.prop_map(Step::Advance)]
}

fn run(rig: &mut Rig, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Event(word) => rig.push(&event(word)),
            Step::Advance(us) => rig.advance(*us),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_whose_state_was_saved_and_restored_goes_on_as_if_nothing_had_been(
        steps in prop::collection::vec(step(), 0..40),
        at in 0..40_usize,
    ) {
        for stream in WITH_STATE {
            let at = at.min(steps.len());
            let mut whole = Rig::new(stream);
            run(&mut whole, &steps);
            let mut before = Rig::new(stream);
            run(&mut before, &steps[..at]);
            let saved = before.graph.save(before.stream);
            let mut after = Rig::at(stream, Limits::default(), before.graph.now_us()).unwrap();
            let node = after.stream;
            after.graph.restore(node, &saved);
            run(&mut after, &steps[at..]);
            let (mut outputs, more) = (before.log(), after.log());
            outputs.extend(more);
            prop_assert_eq!(outputs, whole.log(), "{} at {}", stream, at);
        }
    }

    #[test]
    fn a_restore_of_anything_does_not_panic(
        steps in prop::collection::vec(step(), 0..20),
        saved_of in 0..WITH_STATE.len(),
    ) {
        let mut of = Rig::new(WITH_STATE[saved_of]);
        run(&mut of, &steps);
        let saved = of.graph.save(of.stream);
        for stream in WITH_STATE {
            for saved in [&saved, &Value::Nil, &Value::vector([saved.clone()])] {
                let mut rig = Rig::new(stream);
                let node = rig.stream;
                rig.graph.restore(node, saved);
                run(&mut rig, &steps);
            }
        }
    }

    #[test]
    fn each_event_comes_out_once_or_is_dropped_by_the_rule(steps in prop::collection::vec(step(), 0..60)) {
        let events = steps.iter().filter(|step| matches!(step, Step::Event(_))).count();
        let count = |stream: &str| {
            let mut rig = Rig::new(stream);
            run(&mut rig, &steps);
            rig.advance(60_000_000);
            rig.log().iter().filter(|(_, text)| text != "!").count()
        };
        for stream in ["(batch 3 2 (sflatten out))", "(rollup 2 3 (sflatten out))", "(where :metric out (else out))"] {
            let stream = stream.replace("(where :metric", "(where metric");
            prop_assert_eq!(count(&stream), events, "{}", stream);
        }
        let windows = windows_of(&steps, 3_000_000);
        let passed: usize = windows.iter().map(|count| *count.min(&2)).sum();
        prop_assert_eq!(count("(throttle 2 3 out)"), passed);
    }
}

#[test]
fn timers_of_a_state_from_long_ago_are_due_once_and_damaged_ones_do_no_harm() {
    let hour_us = 3_600 * 1_000_000;
    let mut before = Rig::new("(rate 1 out)");
    before.run("m5");
    let saved = before.graph.save(before.stream);
    let mut after = Rig::at("(rate 1 out)", Limits::default(), 10 * hour_us).unwrap();
    let node = after.stream;
    after.graph.restore(node, &saved);
    after.run("+1");
    assert_eq!(after.outputs(), "@36000 m5t36000 @36001 m0t36001");
    for due_us in [i64::MIN, i64::MAX] {
        let timer = Value::vector([Value::from(due_us), Value::from(-1_i64)]);
        for (stream, parts) in [("(rate 1 out)", "clock"), ("(batch 9 1 out)", "grid")] {
            let part = [("timer", timer.clone()), ("end", timer.clone()), ("anchor", Value::from(due_us))];
            let part = Value::map(part.map(|(name, value)| (Value::keyword(name), value)));
            let mut rig = Rig::new(stream);
            let node = rig.stream;
            rig.graph.restore(node, &Value::map([(Value::keyword(parts), part)]));
            rig.run("m1 +5 m1 +5");
            assert!(rig.graph.advance(20_000_000, 1_000), "{stream}: its timers end");
        }
    }
}

/// How many events came in each window of that length.
fn windows_of(steps: &[Step], length_us: i64) -> Vec<usize> {
    let (mut now_us, mut windows) = (0, std::collections::BTreeMap::<i64, usize>::new());
    for step in steps {
        match step {
            Step::Event(_) => *windows.entry(now_us / length_us).or_default() += 1,
            Step::Advance(us) => now_us += us,
        }
    }
    windows.into_values().collect()
}

#[test]
fn each_stream_with_a_state_is_among_those_that_are_saved_and_restored() {
    let all = WITH_STATE.concat();
    let saves = [
        include_str!("../changes.rs"),
        include_str!("../counters.rs"),
        include_str!("../filling.rs"),
        include_str!("../latest.rs"),
        include_str!("../mapping.rs"),
        include_str!("../parts.rs"),
        include_str!("../ranking.rs"),
        include_str!("../rates.rs"),
        include_str!("../throttling.rs"),
        include_str!("../windows.rs"),
        include_str!("../by.rs"),
    ];
    let count: usize = saves.iter().map(|text| text.matches("fn save(&self, ").count()).sum();
    assert_eq!((count, WITH_STATE.len()), (32, 37), "another stream has a state: {all}");
}
