//! `by`: forks, their limits and their end.

use super::rig::{Rig, event};
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
fn a_new_key_at_the_limit_of_forks_takes_the_place_of_the_one_that_is_idle_longest() {
    let mut rig = Rig::with_limits("(by :host (counter out))", Limits { forks: 3, ..Limits::default() });
    rig.run("^a,m1 +1 ^b,m1 +1 ^c,m1 +1 ^a,m1 +1");
    assert_eq!((rig.graph.counts().of(Limit::ForkEvicted), rig.graph.counts().forks()), (0, 3));
    // b goes, then c, then a: in the order of their last events.
    rig.run("^d,m1 +1 ^e,m1 +1 ^a,m1 +1 ^b,m1");
    assert_eq!(rig.outputs(), "m1,^a @1 m1,^b @2 m1,^c @3 m2,^a @4 m1,^d @5 m1,^e @6 m3,^a @7 m1,^b");
    assert_eq!((rig.graph.counts().of(Limit::ForkEvicted), rig.graph.counts().forks()), (3, 3));
    assert_eq!(rig.graph.counts().of(Limit::ForksFull), 0);
}

#[test]
fn the_longest_idle_forks_go_first_when_many_are_evicted() {
    let mut rig = Rig::with_limits("(by :host (counter out))", Limits { forks: 100, ..Limits::default() });
    // The second half has another event, so that the first half goes first.
    let hosts = |from: usize, to: usize| {
        (from..to).map(|host| format!("^h{host},m1 +1")).collect::<Vec<_>>().join(" ")
    };
    rig.run(&hosts(0, 100));
    rig.run(&hosts(50, 100));
    rig.run(&hosts(100, 150));
    rig.outputs();
    assert_eq!(rig.graph.counts().of(Limit::ForkEvicted), 50);
    rig.run(&hosts(50, 100));
    assert_eq!(rig.graph.counts().of(Limit::ForkEvicted), 50, "none of these was evicted");
    assert!(
        rig.outputs().split(' ').filter(|word| !word.starts_with('@')).all(|event| event.starts_with("m3"))
    );
}

#[test]
fn many_idle_forks_are_removed_in_small_parts() {
    const FORKS: i64 = 80_000;
    let limits = Limits { fork_idle_us: 100 * SECOND_US, ..Limits::default() };
    let mut rig = Rig::with_limits("(by :host (sdo))", limits);
    for host in 0..FORKS {
        rig.push(&event(&format!("^h{host}")));
    }
    let (mut most, mut left) = (0, rig.graph.counts().forks());
    assert_eq!(left, FORKS as u64);
    while let Some(due_us) = rig.graph.next_due_us() {
        assert!(due_us < 300 * SECOND_US, "{left} forks are left after three times the idle time");
        rig.graph.advance(due_us, 1);
        let forks = rig.graph.counts().forks();
        (most, left) = (most.max(left - forks), forks);
    }
    assert_eq!((left, most), (0, 4_096));
    assert_eq!(rig.graph.counts().of(Limit::ForkIdle), FORKS as u64);
}

#[test]
fn restored_forks_are_evicted_in_the_order_of_their_last_events() {
    let limits = Limits { forks: 3, ..Limits::default() };
    let mut rig = Rig::with_limits("(by :host (counter out))", limits);
    rig.run("^a,m1 +1 ^b,m1 +1 ^c,m1 +1 ^a,m1");
    let state = rig.graph.save(rig.stream);
    let mut next = Rig::at("(by :host (counter out))", limits, 10 * SECOND_US).expect("it was right before");
    next.graph.restore(next.stream, &state);
    next.run("^d,m1 ^a,m1 ^c,m1 ^b,m1");
    assert_eq!(next.outputs(), "@10 m1,^d m3,^a m2,^c m1,^b");
}

#[test]
fn an_event_is_dropped_if_other_streams_have_all_forks() {
    let mut rig = Rig::with_limits(
        "(sdo (by :host (counter out)) (by :service (counter out)))",
        Limits { forks: 2, ..Limits::default() },
    );
    rig.run("^a,m1 ^b,m1");
    // The second stream got its one fork by nobody's eviction, and the first one evicts its own.
    assert_eq!(rig.outputs(), "m1,^a m1,^a m1,^b m2,^b");
    let mut rig = Rig::with_limits("(by :host (counter out))", Limits { forks: 0, ..Limits::default() });
    rig.run("^a,m1");
    assert_eq!((rig.outputs().as_str(), rig.graph.counts().of(Limit::ForksFull)), ("", 1));
}

#[test]
fn timers_of_removed_forks_are_cancelled() {
    let limits = Limits { forks: 10, ..Limits::default() };
    let mut rig = Rig::with_limits("(by :host (rate 3600 out))", limits);
    for host in 0..5_000 {
        rig.run(&format!("^h{host},m1t0l100000"));
    }
    assert_eq!(rig.graph.counts().forks(), 10);
    assert!(rig.graph.timers() < 1_100, "{} timers of 10 forks", rig.graph.timers());
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
