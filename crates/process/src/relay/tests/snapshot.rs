//! A snapshot of a router on another thread: it gives the same answers, and shares no lock and no budget with the
//! router.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use model::OutputId;

use crate::sharding::Sharding;

use super::super::router::Action;
use super::super::*;
use super::rig::*;

/// A relay with an automaton, expressions that backtrack, a `validate`, and a ring.
fn relay() -> Router {
    let ring = cluster("ring", sharded(Sharding::CarbonCh, 1, true), &[0, 1, 2]);
    let checked = MatchPlan { validate: valid("^[0-9]+ ", false), ..matching(&["[a-c]+x"], to(&[0]), false) };
    let mut statements = vec![Statement::Match(checked), rewrite("^(b+)[.]", r"\1-")];
    let hard: Vec<String> = (1..=100).map(|number| format!("(?=a*b{{{number}}})x")).collect();
    let hard: Vec<&str> = hard.iter().map(String::as_str).collect();
    statements.push(Statement::Match(matching(&hard, to(&[0]), false)));
    router(vec![ring], statements)
}

#[test]
fn an_explanation_does_not_wait_for_a_search_of_the_router() {
    let router = Arc::new(relay());
    let (said, hears) = channel();
    let of_thread = Arc::clone(&router);
    // While this is held, the router's own thread is searching.
    let search = router.statements.lock_searches();
    let question = std::thread::spawn(move || {
        let other = of_thread.snapshot().into_router();
        let line = Line { name: b"abcx", rest: b"1 2" };
        let meetings = other.explain(Entry::Records, line, 0).matches.len();
        said.send(meetings).expect("the test waits");
    });
    let met = hears.recv_timeout(Duration::from_secs(20));
    drop(search);
    question.join().expect("it ends");
    assert_eq!(met, Ok(1));
}

#[test]
fn an_explanation_does_not_use_the_budget_of_a_line() {
    let router = relay();
    let long = format!("{}bx", "a".repeat(1900));
    let line = Line { name: long.as_bytes(), rest: b"" };
    let quiet = router.decide(Entry::Records, long.as_bytes());
    let other = router.snapshot().into_router();
    router.begin_name();
    let used_up = other.explain(Entry::Records, line, 0);
    assert!(used_up.gave_up.len() > 80, "the explanation came to its own limit");
    assert!(router.statements.take_budget(16 << 10), "the line's budget is untouched");
    assert!(!router.statements.take_budget(1));
    // The line's budget does not reduce that of an explanation.
    assert_eq!(other.explain(Entry::Records, line, 0), used_up);
    assert_eq!(router.decide(Entry::Records, long.as_bytes()), quiet);
}

#[test]
fn an_endpoint_change_during_an_explanation_copies_no_statements() {
    let mut router = relay();
    let statements = Arc::as_ptr(&router.statements);
    let other = router.snapshot().into_router();
    let snapshot = router.snapshot();
    router.set_live(OutputId(0), false);
    router.set_live(OutputId(7), false);
    assert_eq!(Arc::as_ptr(&router.statements), statements);
    assert!(!router.clusters[0].up[0] && other.clusters[0].up[0], "the snapshot keeps its state");
    assert!(snapshot.into_router().clusters[0].up[0]);
    assert!(!router.snapshot().into_router().clusters[0].up[0]);
}

#[test]
fn an_explanation_stops_before_the_search_that_is_one_too_many() {
    let router = relay();
    let line = Line { name: b"abcx", rest: b"1 2" };
    let whole = router.explain(Entry::Records, line, 0);
    let rules = router.statements.rules.len();
    assert!(matches!(router.statements.rules[1].action, Action::Rewrite { .. }) && rules == 102);
    for most in [0, 1, 2, 50, rules - 1] {
        let mut left = most;
        let mut goes_on = || {
            let goes_on = left > 0;
            left -= usize::from(goes_on);
            goes_on
        };
        assert_eq!(router.explain_while(Entry::Records, line, 0, &mut goes_on), None, "{most}");
    }
    let mut asked = 0;
    let mut goes_on = || {
        asked += 1;
        true
    };
    assert_eq!(router.explain_while(Entry::Records, line, 0, &mut goes_on), Some(whole));
    assert_eq!(asked, rules);
}
