//! What outside data can fill has a limit, and what happens there is counted.

use super::rig::{Rig, event};
use crate::graph::{Limit, Limits};
use crate::language::budget;
use crate::language::error::Reason;

#[test]
fn full_windows_drop_or_flush_and_are_counted() {
    let limits = Limits { window_events: 3, empty_windows: 2, ..Limits::default() };
    let table = [
        ("(batch 9 5 out)", "a b c d +5", "[a b c] @5 [d]", Limit::FlushedEarly, 1),
        ("(batch 3 5 out)", "a b c +5", "[a b c]", Limit::FlushedEarly, 0),
        ("(rollup 0 5 out)", "a b c d +5", "[a b c] @5 [d]", Limit::FlushedEarly, 1),
        ("(moving-time-window 9 out)", "a b c d", "[a] [a b] [a b c] [b c d]", Limit::WindowFull, 1),
        ("(fixed-time-window 9 out)", "t0 a b c t9", "[t0 a b] [c]", Limit::FlushedEarly, 1),
        ("(fixed-time-window 1 out)", "t0 t9", "[t0] [] []", Limit::EmptyWindows, 6),
        ("(percentiles 5 [1] out)", "m1 m2 m3 m9 +5", "@5  1,m3", Limit::WindowFull, 1),
        ("(fold-interval-metric 5 total out)", "m1 m2 m3 m9 +5", "@5 m6", Limit::WindowFull, 1),
        ("(stable 5 :state out)", "a,t0 b,t0 c,t0 d,t0 +5", "@5 b,t0 c,t0 d,t0", Limit::WindowFull, 1),
        ("(coalesce 5 out)", "a b c d +0", "[b c d]", Limit::KeysFull, 1),
        (
            "(coalesce-with-event :service (fn [e all] (note e all)))",
            "a b",
            "a-[a] b-[a b]",
            Limit::KeysFull,
            0,
        ),
    ];
    for (stream, inputs, want, limit, count) in table {
        let mut rig = Rig::with_limits(stream, limits);
        rig.run(inputs);
        assert_eq!(rig.outputs(), want, "{stream} gets {inputs}");
        assert_eq!(rig.graph.counts().of(limit), count, "{stream} gets {inputs}");
    }
}

#[test]
fn a_stream_that_takes_all_steps_again_and_again_is_left_out_for_the_rest_of_the_second() {
    let endless = "(fn [e] (loop [] (recur)))";
    let table = [
        // The stream beside it gets nothing while the endless one has taken all, and is not left out itself.
        (format!("(sdo {endless} (smap (fn [e] (first [e])) out))"), "a a a a a a +1 a", "a a", 2),
        ("(sdo (fn [e] (throw (RuntimeException. \"no\"))) out)".to_owned(), "a a a a a a", "a a a a a a", 0),
    ];
    for (stream, inputs, want, left_out) in table {
        let mut rig = Rig::new(&stream);
        rig.graph.evaluation.event_limits.steps = 10_000;
        rig.run(inputs);
        assert_eq!(rig.outputs(), want, "{stream} gets {inputs}");
        assert_eq!(rig.graph.counts().of(Limit::LeftOut), left_out, "{stream} gets {inputs}");
    }
}

#[test]
fn windows_of_more_events_than_may_be_and_other_wrong_arguments_are_refused() {
    for stream in [
        "(moving-event-window 100001 out)",
        "(fixed-event-window 100001 out)",
        "(predict-linear 100001 1 out)",
        "(moving-event-window -1 out)",
        "(moving-event-window 1.5 out)",
        "(rate 0 out)",
        "(rate -1 out)",
        "(rate nil out)",
        "(rate)",
        "(throttle 1 0 out)",
        "(fixed-time-window 0 out)",
        "(percentiles 5 [:a] out)",
        "(with 5 5 out)",
        "(with :a)",
        "(tag 5 out)",
        "(top 1 :metric)",
        "(top 1 :metric out out true 5)",
        "(dual :a out)",
        "(append 5)",
        "(within [1] out)",
        "(by-fn :host)",
        "(where* [:riemann/compare \"?\"] out)",
        "(where* [:riemann/other 1] out)",
        "(fold-interval 5 identity total out)",
    ] {
        assert!(Rig::at(stream, Limits::default(), 0).is_err(), "{stream}");
    }
}

#[test]
fn options_of_windows_and_intervals() {
    let table = [
        ("(fixed-time-window 5 {:flush-after 2} out)", "t0 a +7 b t6 +5", "@7 [t0 a] @12 [b t6]"),
        ("(fixed-time-window 5 {:flush-after 2} out)", "t0 t5 +7 +5", "[t0] @12 [t5]"),
        ("(moving-event-window 0 out)", "a", "[]"),
        ("(top 1 :metric (to T))", "a,m1 b,m5", "T:a,m1 T:b,m5"),
        ("(top 1 :metric (to T) (to B) false)", "a,m1 b,m5", "B:a,t0,:expired T:a,m1 B:b,t0,:expired T:b,m5"),
        (
            "(top 2 :metric (to T))",
            "a,m1 b,m1 c,m1 a b,:expired c,m1",
            "T:a,m1 T:b,m1 T:c,t0,:expired T:a,t0,:expired T:b,:expired T:c,m1",
        ),
        (
            "(part-time-fast 2 nothing (fn [bin e] (note e)) (fn [bin start end] (note start end)))",
            "a +1 b +1 +2 :expired +2",
            "a @1 b @2 0-2 @4 2-4",
        ),
        ("(predict-linear 3 10 5 out)", "m1t0 m3t1 m9t2", "m23t1 m25t2"),
        ("(sum-over-time out)", "m1 m2 a", "m1 m3 a"),
        ("(mean-over-time [out])", "m1 m2", "m1 m3/2"),
        ("(sdo out (to A))", "a", "a A:a"),
        ("(stream out)", "a", "a"),
        ("(async-queue! :q {:core-pool-size 4} out)", "a", "a"),
        ("(execute-on :e out)", "a", "a"),
        ("(bit-bucket)", "a", ""),
        ("(sflatten out)", "[a b] nil 5", "a b !"),
        ("(smap* :state out)", ":ok a", "ok nil"),
        ("(combine :state out)", "a", "nil"),
        ("(sreduce + 0 (smap identity out))", "1 2 3", "1 3 6"),
        ("(window 1 out)", "a b", "[a] [b]"),
        ("(fill-in-last* 2 (fn [e] e) out)", "a +5", "a @2 a,t2 @4 a,t4"),
    ];
    for (stream, inputs, want) in table {
        let mut rig = Rig::new(stream);
        rig.run(inputs);
        assert_eq!(rig.outputs(), want, "{stream} gets {inputs}");
    }
    let limits = Limits { drop_empty_folds: true, ..Limits::default() };
    let mut rig = Rig::with_limits("(fold-interval 3 :metric total out)", limits);
    rig.run("m1 +3 +3 m5 +3");
    assert_eq!(rig.outputs(), "@3 m1 @9 m5");
}

#[test]
fn atoms_keep_events() {
    use crate::nodes::construct;
    use crate::object::reference::{Atom, Sort};
    use crate::value::Value;
    let mut rig = Rig::with_limits("(sdo)", Limits { window_events: 2, ..Limits::default() });
    for (name, want) in [("append", "[b c]"), ("register", "c")] {
        let atom = std::sync::Arc::new(Atom::new(Sort::Atom, Value::Nil));
        let node = construct(&mut rig.graph, name, &[Value::Atom(std::sync::Arc::clone(&atom))]).unwrap();
        let Value::Stream(node) = node else { panic!("a stream") };
        rig.stream = node;
        rig.run("a b c");
        assert_eq!(super::rig::show(&atom.get()), want, "{name}");
    }
}

#[test]
fn each_stream_is_in_a_table_of_the_tests() {
    let texts = [
        include_str!("vectors.rs"),
        include_str!("limits.rs"),
        include_str!("forms.rs"),
        include_str!("by.rs"),
    ]
    .concat();
    for row in crate::nodes::table::STREAMS {
        let is_called =
            |name: &str| texts.contains(&format!("({name} ")) || texts.contains(&format!("({name})"));
        let name = row.native.name.strip_suffix("-fn").unwrap_or(row.native.name);
        let by_macro = name.strip_suffix('*').is_some_and(is_called);
        assert!(is_called(name) || by_macro || texts.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn functions_and_streams_within_each_other_end_at_the_bounds_of_one_stack() {
    let table = [
        "(reduce (fn [below _] (smap* (fn [e] (below e)))) out (range 100000))",
        "(reduce (fn [below _] (smap* (fn f ([e] (f 100 e)) ([n e] (if (= n 0) (below e) (f (dec n) e))))))
            out (range 100000))",
        "(let [a (atom nil)] (sdo (reset! a (fn [e] ((sdo (fn [e] (@a e))) e)))))",
    ];
    for text in table {
        let mut rig = Rig::new(text);
        let thrown = rig.graph.push(rig.stream, &event("a")).map_err(|error| error.class().name);
        let (caught, more) = rig.graph.take_caught();
        let caught: Vec<_> = caught.iter().map(|caught| caught.error.class().name).collect();
        let all: Vec<_> = thrown.err().into_iter().chain(caught).collect();
        assert_eq!((&all[..], more), (&["java.lang.StackOverflowError"][..], 0), "{text}");
        assert_eq!(rig.graph.evaluation.budget.depth(), 0, "{text}");
        assert_eq!(rig.outputs(), "", "{text}");
    }
}

#[test]
fn an_event_and_a_timer_have_one_budget_for_all_functions_that_they_reach() {
    let count = "(dotimes [_ 2000])";
    let text = format!(
        "(sdo (fn [e] {count} (note 1)) (smap (fn [e] {count} (note 2)) out) (periodically-until-expired 1 (fn [] {count} (note 3))))"
    );
    let mut rig = Rig::new(&text);
    rig.graph.evaluation.event_limits = budget::Limits { steps: 10_000, ..budget::Limits::EVENT };
    rig.run("a");
    rig.graph.evaluation.event_limits = budget::Limits { steps: 15_000, ..budget::Limits::EVENT };
    rig.run("a +2");
    let (caught, _) = rig.graph.take_caught();
    assert_eq!(rig.outputs(), "1 1 2 3 @1 3 @2 3");
    assert!(
        !caught.is_empty()
            && caught.iter().all(|caught| matches!(caught.error.reason(), Reason::TooManySteps))
    );
}

#[test]
fn values_that_one_event_leads_to_have_a_limit() {
    let stream = "(smapcat (fn [n] (range n)) (smapcat (fn [_] (range 10)) out))";
    let table = [(111, 0), (110, 1), (50, 11)];
    for (pushes, refused) in table {
        let mut rig = Rig::with_limits(stream, Limits { pushes, ..Limits::default() });
        rig.run("10");
        let got = rig.outputs().split_whitespace().count() as u64;
        assert_eq!((rig.graph.counts().of(Limit::PushesFull), got > 0), (refused, true), "{pushes}");
        rig.run("1");
        assert!(!rig.outputs().is_empty(), "the next event has its own limit");
    }
}

#[test]
fn exact_ratios_become_doubles_where_they_have_too_many_bits() {
    for stream in ["(mean-over-time [out])", "(counter out)", "(sum-over-time out)"] {
        let mut rig = Rig::new(stream);
        for number in 1..2_000_i64 {
            // Sums of 1/n: their denominators have all primes up to n.
            let metric = crate::nodes::fields::divide(
                &crate::number::Number::Int(1),
                &crate::number::Number::Int(2 * number + 1),
            );
            let mut event = crate::event::Event::default();
            event.set(crate::event::Field::Metric, metric.unwrap().into());
            rig.push(&crate::value::Value::Event(std::sync::Arc::new(event)));
        }
        let outputs = rig.outputs();
        let (first, last) = (outputs.split(' ').next().unwrap(), outputs.split(' ').next_back().unwrap());
        assert!(first == "m1/3" && !last.contains('/'), "{stream}: {first} {last}");
        let longest = outputs.split(' ').map(str::len).max().unwrap();
        assert!((500..700).contains(&longest), "{stream}: {longest} bytes");
    }
}
