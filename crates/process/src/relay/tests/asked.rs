//! A router that is asked on another thread: the same answers, and nothing shared that a search or a change of endpoints
//! would wait for or spend.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use model::OutputId;

use crate::sharding::Sharding;

use super::super::router::Action;
use super::super::*;
use super::rig::*;

/// A relay with an automaton, expressions that backtrack, a rest that is looked at, and a ring.
fn asked() -> Router {
    let ring = cluster("ring", placed(Sharding::CarbonCh, 1, true), &[0, 1, 2]);
    let checked = MatchPlan { validate: valid("^[0-9]+ ", false), ..matching(&["[a-c]+x"], to(&[0]), false) };
    let mut statements = vec![Statement::Match(checked), rewrite("^(b+)[.]", r"\1-")];
    let hard: Vec<String> = (1..=100).map(|number| format!("(?=a*b{{{number}}})x")).collect();
    let hard: Vec<&str> = hard.iter().map(String::as_str).collect();
    statements.push(Statement::Match(matching(&hard, to(&[0]), false)));
    router(vec![ring], statements)
}

#[test]
fn a_search_under_way_keeps_no_question_waiting() {
    let router = Arc::new(asked());
    let (said, hears) = channel();
    let of_thread = Arc::clone(&router);
    // As long as this is held the router's own thread searches.
    let search = router.statements.lock_searches();
    let question = std::thread::spawn(move || {
        let apart = of_thread.to_ask().apart();
        let line = Line { name: b"abcx", rest: b"1 2" };
        let meetings = apart.explain(Entry::Records, line, 0).meetings.len();
        said.send(meetings).expect("the test waits");
    });
    let met = hears.recv_timeout(Duration::from_secs(20));
    drop(search);
    question.join().expect("it ends");
    assert_eq!(met, Ok(1));
}

#[test]
fn what_a_question_spends_is_not_taken_from_a_line() {
    let router = asked();
    let long = format!("{}bx", "a".repeat(1900));
    let line = Line { name: long.as_bytes(), rest: b"" };
    let quiet = router.decide(Entry::Records, long.as_bytes());
    let apart = router.to_ask().apart();
    router.begin_name();
    let used_up = apart.explain(Entry::Records, line, 0);
    assert!(used_up.gave_up.len() > 80, "the question came to its own limit");
    assert!(router.statements.takes(16 << 10), "and took nothing of the line's");
    assert!(!router.statements.takes(1));
    // Nor does a line take from a question.
    assert_eq!(apart.explain(Entry::Records, line, 0), used_up);
    assert_eq!(router.decide(Entry::Records, long.as_bytes()), quiet);
}

#[test]
fn a_change_of_endpoints_during_a_question_copies_no_statements() {
    let mut router = asked();
    let statements = Arc::as_ptr(&router.statements);
    let apart = router.to_ask().apart();
    let to_ask = router.to_ask();
    router.set_live(OutputId(0), false);
    router.set_live(OutputId(7), false);
    assert_eq!(Arc::as_ptr(&router.statements), statements);
    assert!(!router.clusters[0].up[0] && apart.clusters[0].up[0], "a question is of its moment");
    assert!(to_ask.apart().clusters[0].up[0]);
    assert!(!router.to_ask().apart().clusters[0].up[0]);
}

#[test]
fn a_way_ends_before_the_search_that_is_one_too_many() {
    let router = asked();
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
