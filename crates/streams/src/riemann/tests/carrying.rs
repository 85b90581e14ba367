//! What streams remember through a reload, a restart and a crash.

use super::Running;
use crate::graph::Limit;
use crate::riemann::state::restoring::Restored;

/// A config whose streams say what they have, in the order of these parts.
fn config(parts: &[&str]) -> String {
    let prelude = "(defn note [name] (fn [e] (println name (:host e) (:metric e))))\n";
    format!("{prelude}{}", parts.join("\n"))
}

const TOTAL: &str = "(streams (where (service \"a\") (counter (note \"total\"))))";
const BY_HOST: &str = "(streams (by :host (counter (note \"host\")) (throttle 1 1000 (note \"first\"))))";
const LOOSE: &str = "(def kept (counter (note \"kept\"))) (streams (fn [e] (kept e)))";
const INDEX: &str = "(let [index (index)] (streams index))";

fn push(running: &mut Running, host: &str, metric: i64) {
    running.run(&format!("a,^{host},m{metric}t0"));
}

/// The lines that were printed since the last call, sorted.
fn lines(running: &Running) -> Vec<String> {
    let mut lines: Vec<String> = running.out().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn events(running: &mut Running) {
    for (host, metric) in [("h", 1), ("i", 10), ("h", 2)] {
        push(running, host, metric);
    }
}

/// What is printed for one more event after the state of a config with the parts `before` went to one with the parts `after`.
fn after_a_restart(before: &[&str], after: &[&str]) -> (Vec<String>, Restored) {
    let mut old = Running::load(&config(before), &[]).unwrap();
    events(&mut old);
    let mut bytes = Vec::new();
    old.engine.save_begin(&mut bytes);
    while old.engine.save_slice(1, &mut bytes).is_none() {}
    let mut new = Running::load(&config(after), &[]).unwrap();
    let restored = new.engine.restore(std::iter::once(&*bytes));
    push(&mut new, "h", 100);
    let printed = lines(&new);
    // A reload gives the same, without bytes.
    let mut other = Running::load(&config(after), &[]).unwrap();
    let carried = other.engine.adopt(old.engine);
    push(&mut other, "h", 100);
    assert_eq!(lines(&other), printed);
    assert_eq!(carried.dropped, restored.dropped);
    (printed, restored)
}

#[test]
fn streams_go_on_where_they_were() {
    let all = [TOTAL, BY_HOST, LOOSE, INDEX];
    let (printed, restored) = after_a_restart(&all, &all);
    // The throttle of host h has passed its event already.
    assert_eq!(printed, ["host h 103", "kept h 113", "total h 113"]);
    assert_eq!((restored.events, restored.is_damaged), (2, false));
    assert!(restored.dropped.is_empty(), "{restored:?}");
}

#[test]
fn a_stream_keeps_its_state_when_others_come_go_and_move() {
    let other = "(streams (where (service \"other\") (counter (note \"other\")) #(prn %)))";
    let tables: &[(&[&str], &[&str])] = &[
        (&[TOTAL, BY_HOST], &[other, TOTAL, BY_HOST]),
        (&[other, TOTAL, BY_HOST], &[BY_HOST, TOTAL]),
        (&[TOTAL, BY_HOST], &[BY_HOST, "\n\n(def x #(inc %))", TOTAL]),
    ];
    for (before, after) in tables {
        let (mut printed, _) = after_a_restart(before, after);
        printed.retain(|line| !line.contains("other"));
        assert_eq!(printed, ["host h 103", "total h 113"], "{before:?} {after:?}");
    }
}

#[test]
fn a_changed_stream_begins_anew_and_is_listed_with_those_below_it() {
    let changed = TOTAL.replace("\"a\"", "#\"a\"");
    let (printed, restored) = after_a_restart(&[TOTAL, BY_HOST], &[&changed, BY_HOST]);
    assert_eq!(printed, ["host h 103", "total h 100"]);
    assert_eq!(restored.dropped.into_iter().collect::<Vec<_>>(), ["counter (riemann.config:3:31)"]);
    // A child that is added changes neither the stream nor its other children.
    let more = TOTAL.replace("(counter", "(note \"too\") (counter");
    let (printed, restored) = after_a_restart(&[TOTAL], &[&more]);
    assert_eq!(printed, ["too h 100", "total h 113"]);
    assert!(restored.dropped.is_empty(), "{restored:?}");
    // In the forks of by, too.
    let more = BY_HOST.replace("(by :host", "(by :host (rate 5 (note \"rate\"))");
    let (printed, _) = after_a_restart(&[BY_HOST], &[&more]);
    assert_eq!(printed, ["host h 103"]);
}

#[test]
fn streams_of_forks_that_begin_anew_are_listed_with_the_number_of_forks() {
    let changed = BY_HOST.replace("throttle 1 1000", "throttle 1 2000");
    let (printed, restored) = after_a_restart(&[BY_HOST], &[&changed]);
    assert_eq!(printed, ["first h 100", "host h 103"]);
    assert_eq!(
        restored.dropped.into_iter().collect::<Vec<_>>(),
        ["throttle (riemann.config:3:44) in forks of by (riemann.config:3:10) (2 of them)"]
    );
    let state = "(streams (changed-state (counter (note \"x\"))))";
    let (_, restored) = after_a_restart(&[state], &[&state.replace("(counter", "(counter 7")]);
    assert_eq!(
        restored.dropped.into_iter().collect::<Vec<_>>(),
        ["counter (riemann.config:3:25) in forks of changed-state (riemann.config:3:10) (2 of them)"]
    );
    // The stream itself has the name that the config uses.
    let (_, restored) = after_a_restart(&[state], &[TOTAL]);
    assert_eq!(restored.dropped.into_iter().collect::<Vec<_>>(), ["changed-state (riemann.config:3:10)"]);
}

#[test]
fn streams_of_one_form_keep_their_order() {
    let two = "(streams (counter (note \"one\")) (where (service \"b\") (counter (note \"x\"))) (counter 5 (note \"five\")) (counter (note \"two\")))";
    let (printed, _) = after_a_restart(&[two], &[two]);
    assert_eq!(printed, ["five h 118", "one h 113", "two h 113"]);
}

#[test]
fn a_state_that_is_cut_or_damaged_gives_what_came_before() {
    let all = config(&[TOTAL, BY_HOST, LOOSE, INDEX]);
    let mut old = Running::load(&all, &[]).unwrap();
    events(&mut old);
    let mut bytes = Vec::new();
    old.engine.save_begin(&mut bytes);
    while old.engine.save_slice(1, &mut bytes).is_none() {}
    for end in 0..bytes.len() {
        let mut new = Running::load(&all, &[]).unwrap();
        new.engine.restore(std::iter::once(&bytes[..end]));
        let mut damaged = bytes.clone();
        damaged[end] ^= 0x5a;
        let mut new = Running::load(&all, &[]).unwrap();
        new.engine.restore(std::iter::once(&*damaged));
        push(&mut new, "h", 100);
    }
}

#[test]
fn a_value_that_shares_its_parts_is_left_out_and_counted() {
    let shared = "(assoc e :wide (nth (iterate (fn [v] [v v]) [1]) 34))";
    let index = format!("(let [index (index)] (streams (smap (fn [e] {shared}) index)))");
    let window = format!(
        "(streams (smap (fn [e] {shared}) (moving-event-window 9 (fn [all] (println (count all))))))"
    );
    let all = config(&[&index, &window]);
    let mut old = Running::load(&all, &[]).unwrap();
    events(&mut old);
    let mut bytes = Vec::new();
    old.engine.save_begin(&mut bytes);
    while old.engine.save_slice(1, &mut bytes).is_none() {}
    assert!(bytes.len() < 10_000, "{}", bytes.len());
    assert_eq!(old.engine.counts().of(Limit::StateTooLarge), 5, "two in the index, three in the window");
    let mut new = Running::load(&all, &[]).unwrap();
    let restored = new.engine.restore(std::iter::once(&*bytes));
    assert_eq!((restored.events, restored.is_damaged), (2, false));
    push(&mut new, "h", 100);
    assert_eq!(lines(&new), ["4"]);
}

/// A config whose clock has stepped to that time.
fn at(config: &str, now_s: i64) -> Running {
    let mut running = Running::load(config, &[]).unwrap();
    running.engine.step_clock(now_s * 1_000_000);
    assert!(running.engine.advance(now_s * 1_000_000, 1_000));
    running
}

/// The engine of a config that takes what another one had, at that time of its clock.
fn restored_at(config: &str, now_s: i64, bytes: &[u8]) -> Running {
    let mut new = at(config, now_s);
    new.engine.restore(std::iter::once(bytes));
    new
}

fn saved(running: &mut Running) -> Vec<u8> {
    let mut bytes = Vec::new();
    running.engine.save_begin(&mut bytes);
    while running.engine.save_slice(1, &mut bytes).is_none() {}
    bytes
}

#[test]
fn a_clock_that_was_ahead_before_a_restart_silences_no_stream() {
    let streams = [
        "(throttle 1 5 (note \"x\"))",
        "(rate 5 (note \"x\"))",
        "(batch 100 5 (fn [all] (println (count all))))",
        "(fixed-time-window 5 {:flush-after 1} (fn [all] (println (count all))))",
        "(by :host (throttle 1 5 (note \"x\")))",
    ];
    for stream in streams {
        let text = config(&[&format!("(streams {stream})")]);
        // Ten years ahead.
        let mut old = at(&text, 1_000_000_000);
        old.run("a,^h,m1t1000000000l100");
        let bytes = saved(&mut old);
        let mut new = restored_at(&text, 684_000_000, &bytes);
        new.run("+7");
        let _ended = new.out();
        new.run("a,^h,m1t684000007l100 +7");
        assert!(!new.out().is_empty(), "{stream}");
    }
}

#[test]
fn forks_of_a_clock_that_was_ahead_are_removed_when_they_are_idle() {
    let text = config(&["(streams (by :host (counter (note \"x\"))))"]);
    let mut old = at(&text, 1_000_000_000);
    push(&mut old, "h", 1);
    let mut new = restored_at(&text, 684_000_000, &saved(&mut old));
    assert_eq!(new.engine.counts().forks(), 1);
    assert!(new.engine.advance((684_000_000 + 3 * 24 * 3_600) * 1_000_000, 1_000_000));
    assert_eq!(new.engine.counts().forks(), 0);
}

#[test]
fn one_event_does_not_spoil_a_state_for_ever() {
    // The stream, the event that spoils it, and what is printed for the one after that.
    let table = [
        ("(counter (note \"x\"))", "a,^h,m9223372036854775807t0", "x h 9223372036854775817N"),
        ("(sum-over-time (note \"x\"))", "a,^h,m9223372036854775807t0", "x h 9223372036854775817N"),
        (
            "(smap (fn [e] (if (= (:metric e) 7) (assoc e :metric ##NaN) e)) (ewma-timeless 1 (note \"x\")))",
            "a,^h,m7t0",
            "x h 9",
        ),
        (
            "(smap (fn [e] (if (= (:metric e) 7) (assoc e :metric ##NaN) e)) (counter (note \"x\")))",
            "a,^h,m7t0",
            "x h 10",
        ),
        (
            "(smap (fn [e] (if (= (:metric e) 7) (assoc e :metric ##Inf) e)) (ewma 1 (where (> metric 4) (note \"x\"))))",
            "a,^h,m7t0",
            "x h 4.5078125",
        ),
        ("(moving-time-window 10 (fn [all] (println (count all))))", "a,^h,m1t1152921504606846976", "2"),
        ("(fixed-time-window 5 (fn [all] (println (count all))))", "a,^h,m1t1152921504606846976", "1"),
    ];
    for (stream, spoils, want) in table {
        let text = config(&[&format!("(streams {stream})")]);
        let mut running = Running::load(&text, &[]).unwrap();
        running.run("a,^h,m1t0");
        running.run(spoils);
        let _printed = running.out();
        let mut new = restored_at(&text, 0, &saved(&mut running));
        for running in [&mut running, &mut new] {
            running.run("a,^h,m9t6");
            assert_eq!(running.out().trim(), want, "{stream}");
        }
    }
    let text = config(&["(streams (moving-time-window 5 (note \"x\")))"]);
    let mut running = Running::load(&text, &[]).unwrap();
    running.run("a,m1t86400 a,m1t86401");
    assert_eq!(running.engine.counts().of(Limit::TimeAhead), 1, "a day ahead is not too far");
}

#[test]
fn after_a_step_of_the_clock_each_timer_runs_once() {
    let text = "(every! 1 (fn [] (println 1))) (streams (fill-in 1 {:host \"h\"} (fn [e] (println 2))))";
    for (gap_s, want) in [(3_600, 7_200), (3_601, 2), (100_000_000, 2)] {
        let mut running = Running::load(text, &[]).unwrap();
        let now_us = gap_s * 1_000_000;
        running.engine.step_clock(now_us);
        assert!(running.engine.advance(now_us, 10_000), "{gap_s}");
        assert_eq!(lines(&running).len(), want, "{gap_s}");
        // They are on the grid of the new time, and the clock is there.
        assert_eq!(
            (running.engine.now_us(), running.engine.next_due_us()),
            (now_us, Some(now_us + 1_000_000))
        );
    }
}
