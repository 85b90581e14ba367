//! What streams remember through a reload, a restart and a crash.

use super::Running;
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
