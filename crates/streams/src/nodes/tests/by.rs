//! `by`: forks, their limits and their end.

use super::rig::Rig;
use crate::graph::{Limit, Limits};

const SECOND_US: i64 = 1_000_000;

#[test]
fn keys_are_values_of_fields_functions_or_lists_of_them() {
    let table = [
        (
            "(by [:host :service] (counter out))",
            "^h,a,m1 ^h,b,m2 ^h,a,m3 m1 m2",
            "a,m1,^h b,m2,^h a,m4,^h m1 m3",
        ),
        ("(by [:host] (counter out))", "^h,m1 ^h,m2 ^i,m5", "m1,^h m3,^h m5,^i"),
        ("(by service-of (counter out))", "a,m1 a,m2", "a,m1 a,m3"),
        ("(by :dc (counter out))", "m1,dc=1 m2,dc=2 m3,dc=1", "m1,dc=1 m2,dc=2 m4,dc=1"),
        ("(by :metric (counter out))", "m1 m1.0 m1", "m1 m1 m2"),
        ("(by :tags (counter out))", "m1,#a,#b m2,#a m3,#a,#b", "m1,#a,#b m2,#a m4,#a,#b"),
        ("(by :host (to A) (to B))", "^h", "A:^h B:^h"),
        ("(by-builder [key :host] (fn [e] (note key e)))", "^h,a ^i", "h-a,^h i-^i"),
        ("(by :host (by :service (counter out)))", "^h,a,m1 ^h,b,m2 ^h,a,m3", "a,m1,^h b,m2,^h a,m4,^h"),
        ("(changed-state {:init \"ok\"} out)", "^a,:ok ^b,:bad ^a,:bad ^b,:bad", ":bad,^b :bad,^a"),
    ];
    for (stream, inputs, want) in table {
        let mut rig = Rig::new(stream);
        rig.run(inputs);
        assert_eq!(rig.outputs(), want, "{stream} gets {inputs}");
    }
}

#[test]
fn forks_that_were_idle_for_long_are_removed_with_all_that_they_made() {
    let limits = Limits { fork_idle_us: 100 * SECOND_US, ..Limits::default() };
    let mut rig = Rig::with_limits("(by :host (by :service (rate 5 (counter out))))", limits);
    let before = rig.graph.len();
    rig.run("^h,a,m1t0l10 ^h,b,m1t0l10 ^i,a,m1t0l10");
    assert_eq!((rig.graph.counts().forks(), rig.graph.len()), (5, before + 2 + 3 * 2));
    rig.run("+90 ^i,a,m1t90l10 +90");
    assert_eq!(rig.graph.counts().forks(), 2, "one host, one service");
    assert_eq!(rig.graph.counts().of(Limit::ForkIdle), 1, "the two inner ones went with the outer one");
}

#[test]
fn a_ttl_over_the_idle_time_keeps_a_fork() {
    let limits = Limits { fork_idle_us: 100 * SECOND_US, ..Limits::default() };
    let mut rig = Rig::with_limits("(by :host (counter out))", limits);
    rig.run("^h,m1l1000 ^i,m1 +300");
    assert_eq!(rig.graph.counts().forks(), 1);
    rig.run("^h,m1 +300");
    assert_eq!(rig.graph.counts().forks(), 0);
    assert_eq!(rig.graph.next_due_us(), None, "no sweep without forks");
    rig.run("^h,m5");
    assert_eq!(rig.outputs().split(' ').next_back(), Some("m5,^h"), "it begins anew");
}

#[test]
fn events_of_new_keys_are_dropped_at_the_limit_of_forks() {
    let mut rig = Rig::with_limits("(by :host (counter out))", Limits { forks: 2, ..Limits::default() });
    rig.run("^a,m1 ^b,m1 ^c,m1 ^a,m1");
    assert_eq!(rig.outputs(), "m1,^a m1,^b m2,^a");
    assert_eq!((rig.graph.counts().of(Limit::ForksFull), rig.graph.counts().forks()), (1, 2));
}

#[test]
fn exceptions_of_forks_go_to_the_handler_around_them() {
    let mut rig = Rig::new("(exception-stream (to E) (by :host (where (> metric 1) out)))");
    rig.run("^h,m2 ^h");
    let outputs = rig.outputs();
    assert!(outputs.starts_with("m2,^h E:riemann exception,t0,:error,description="), "{outputs}");
    assert!(outputs.contains("#java.lang.NullPointerException,event=^h"), "{outputs}");
}

#[test]
fn a_handler_gets_the_event_and_the_exception_though_the_stream_had_the_event() {
    let throw = "(throw (RuntimeException. \"no\"))";
    let table = [
        format!("(coalesce-with-event :service (fn [e all] {throw}))"),
        format!("(part-time-fast 5 nothing (fn [bin e] {throw}) nothing)"),
        format!("(part-time-simple 5 nothing (fn [state e] 1) (fn [state e] {throw}) nothing)"),
        format!("(smap (fn [e] {throw}) out)"),
    ];
    for stream in table {
        let handler = "(fn [e] (note (:event e) (.getMessage (:exception e))))";
        let mut rig = Rig::new(&format!("(exception-stream {handler} {stream})"));
        rig.run("a");
        assert_eq!(rig.outputs(), "a-no", "{stream}");
    }
    for stream in ["(fn [e] (/ 1 0))", "(sdo (fn [e] (/ 1 0)))", "elsewhere"] {
        let handler = "(fn [e] (note (:event e)))";
        let mut rig = Rig::new(&format!(
            "(let [elsewhere (where (> metric 1) out)] (exception-stream {handler} {stream} out))"
        ));
        rig.run("a");
        assert_eq!(rig.outputs(), "a a", "{stream}");
    }
    for stream in ["(adjust [:metric identity] out)", "(with :a 1 out)", "(default :a 1 out)"] {
        let mut rig = Rig::new(&format!("(exception-stream (fn [e] (note (:event e))) {stream})"));
        rig.run("5");
        assert_eq!(rig.outputs(), "5", "{stream}");
    }
}
