//! Limits (at the limit and beyond it), and invalid plans.

use model::OutputId;

use crate::aggregation_rules::{COMPUTES_MAX, Compute};
use crate::sharding::Sharding;

use super::super::*;
use super::rig::*;

#[test]
fn copies_of_a_line_beyond_the_limit_are_counted() {
    let many = |count: u16| vec![cluster("many", copies(), &(0..count).collect::<Vec<_>>())];
    let all = |count| router(many(count), vec![Statement::Match(matching(&[], to(&[0]), false))]);
    let max = COPIES_MAX as u16;
    let at = all(max);
    assert_eq!(at.decide(Entry::Records, b"x").plain().map(<[OutputId]>::len), Some(COPIES_MAX));
    assert_eq!(decided(&at, "x", "").1.copies_refused, 0);
    let past = all(max + 3);
    assert_eq!(past.decide(Entry::Records, b"x").plain(), None);
    let (acts, routing) = decided(&past, "x", "");
    assert_eq!((acts.len(), routing.copies, routing.copies_refused), (COPIES_MAX, max.into(), 3));
    let explained = past.explain(Entry::Records, Line { name: b"x", rest: b"" }, 0);
    assert_eq!(explained.routing, routing);
}

#[test]
fn a_rewritten_name_that_cannot_be_sent_is_counted_and_not_used() {
    let twice = vec![rewrite("^(.*)$", r"\1\1"), Statement::Match(matching(&[], to(&[0]), false))];
    let router = router(two(), twice);
    let of = |length: usize| {
        let name = "x".repeat(length);
        let (acts, routing) = decided(&router, &name, "");
        (acts[0].len(), routing.names_refused)
    };
    assert_eq!(of(NAME_BYTES_MAX / 2), (2 + NAME_BYTES_MAX, 0));
    assert_eq!(of(NAME_BYTES_MAX / 2 + 1), (1, 1), "it keeps its name");
    for (into, want) in [
        ("a b", "0; Exhausted"),
        ("a\tb", "0; Exhausted"),
        ("", "0; Exhausted"),
        ("é;t=1", "0 é;t=1; Exhausted"),
    ] {
        let statements = vec![rewrite("^x$", into), Statement::Match(matching(&[], to(&[0]), false))];
        assert_eq!(routed(&super::rig::router(two(), statements), "x", ""), want, "{into:?}");
    }
}

#[test]
fn an_expression_that_gives_up_counts_as_no_match_and_is_counted() {
    let slow = r"^(a|aa)+\1b";
    let (check, once) = (valid(slow, false), |every_occurrence| {
        let into = "x".to_owned();
        Statement::Rewrite(RewritePlan { expression: slow.into(), into, every_occurrence })
    });
    let statements = vec![
        Statement::Match(matching(&["^$", slow], to(&[0]), true)),
        once(false),
        once(true),
        aggregate(&[slow], &["sum"], To::Nowhere, true),
        Statement::Match(MatchPlan { validate: check, ..matching(&["^a"], to(&[0]), false) }),
        Statement::Match(matching(&[], to(&[1]), false)),
    ];
    let router = router(two(), statements);
    // With its `b`: without it no search would begin.
    let slow = format!("{}cb", "a".repeat(60));
    let gave_up = |name: &str, rest: &str| decided(&router, name, rest).1.gave_up;
    assert_eq!(routed(&router, &slow, "1 2"), "invalid, 1; Exhausted");
    assert_eq!((gave_up(&slow, "1 2"), gave_up("y", &slow), gave_up("ay", &slow)), (4, 0, 1));
    let line = Line { name: slow.as_bytes(), rest: slow.as_bytes() };
    let explained = router.explain(Entry::Records, line, 0);
    let statement = |statement, expression| MistakeAt::Statement { statement, expression };
    let want = [
        statement(0, Some(1)),
        statement(1, Some(0)),
        statement(2, Some(0)),
        statement(3, Some(0)),
        MistakeAt::Validate { statement: 4 },
    ];
    assert_eq!((&*explained.gave_up, explained.routing.gave_up), (&want[..], 5));
    assert_eq!(explained.routing, decided(&router, &slow, &slow).1);
}

#[test]
fn backtracking_searches_of_a_record_share_a_limit() {
    // Each of them takes a while to reject a name of many `a`.
    let expressions: Vec<String> = (1..=100).map(|number| format!("(?=a*b{{{number}}})x")).collect();
    let texts: Vec<&str> = expressions.iter().map(String::as_str).collect();
    let checked = |text: &&str| {
        Statement::Match(MatchPlan { validate: valid(text, false), ..matching(&["^m$"], to(&[0]), false) })
    };
    let mut statements = vec![Statement::Match(matching(&texts, to(&[0]), false))];
    statements.extend(texts.iter().take(40).map(checked));
    let router = router(two(), statements);
    let gave_up = |name: &str, rest: &str| {
        let routing = decided(&router, name, rest).1;
        let line = Line { name: name.as_bytes(), rest: rest.as_bytes() };
        assert_eq!(router.explain(Entry::Records, line, 0).routing, routing, "{name} {rest}");
        routing.gave_up
    };
    let name = |length| format!("{}bx", "a".repeat(length));
    assert_eq!(gave_up(&name(200), "1 2"), 0, "ordinary names are searched by all of them");
    let long = name(1900);
    assert!((90..100).contains(&gave_up(&long, "1 2")), "a few of a hundred were searched to the end");
    assert_eq!(gave_up(&name(200), "1 2"), 0, "the next name has a new budget");
    assert!((30..40).contains(&gave_up("m", &long)));
    assert!(
        (120..140).contains(&(gave_up(&long, "1 2") + gave_up("m", &long))),
        "rests have their own limit"
    );
}

#[test]
fn a_search_for_all_matches_in_a_name_has_a_limit() {
    let every = |expression: &str| {
        let into = "c".to_owned();
        Statement::Rewrite(RewritePlan { expression: expression.into(), into, every_occurrence: true })
    };
    let of = |expression: &str, length: usize| {
        let statements = vec![every(expression), Statement::Match(matching(&[], to(&[0]), false))];
        let (acts, routing) = decided(&router(two(), statements), &"a".repeat(length), "");
        (acts == [format!("0 {}", "c".repeat(length))], routing.gave_up)
    };
    // After each match the rest of the name is searched for the `b` again.
    assert_eq!(of("(a+)*b|a", 1_000), (true, 0));
    assert_eq!(of("(a+)*b|a", 10_000), (false, 1), "it keeps its name");
    assert_eq!(of("a", 10_000), (true, 0), "texts are found in one go");
}

#[test]
fn all_errors_of_a_plan_are_reported_with_their_place() {
    let bad = MatchPlan { validate: valid("(", false), ..matching(&["ok", "a(b", "[z"], to(&[0, 7]), true) };
    let statements = vec![
        Statement::Match(bad),
        rewrite("*", "x"),
        aggregate(&[], &[], to(&[9]), false),
        Statement::Match(matching(&["fine"], to(&[1]), false)),
    ];
    let mut clusters = two();
    clusters.push(cluster("none", copies(), &[]));
    clusters.push(cluster("ring", sharded(Sharding::CarbonCh, 3, false), &[0, 1]));
    let plan = RelayPlan { statistics: to(&[8]), ..plan(clusters, statements) };
    let mistakes = Router::new(&plan).expect_err("mistakes");
    let at: Vec<MistakeAt> = mistakes.iter().map(|mistake| mistake.at).collect();
    let statement = |statement, expression| MistakeAt::Statement { statement, expression };
    let want = [
        MistakeAt::Cluster(ClusterId(2)),
        MistakeAt::Cluster(ClusterId(3)),
        MistakeAt::Validate { statement: 0 },
        statement(0, None),
        statement(0, Some(1)),
        statement(0, Some(2)),
        statement(1, Some(0)),
        statement(2, None),
        statement(2, None),
        statement(2, None),
        MistakeAt::Statistics,
    ];
    assert_eq!(at, want, "{mistakes:#?}");
    assert!(mistakes.iter().all(|mistake| !mistake.why.is_empty() && !mistake.why.contains('\n')));
}

#[test]
fn a_plan_with_too_many_statements_is_rejected() {
    let statements = |count| vec![Statement::Match(matching(&["x"], to(&[0]), false)); count];
    assert!(Router::new(&plan(two(), statements(STATEMENTS_MAX))).is_ok());
    let past = Router::new(&plan(two(), statements(STATEMENTS_MAX + 1))).expect_err("one too many");
    assert_eq!(past.last().map(|mistake| mistake.at), Some(MistakeAt::Plan));
}

#[test]
fn aggregation_rules_beyond_their_limits_are_rejected() {
    let good = aggregation_rule(&[(Compute::Sum, "x")]);
    assert_eq!(good.check(), Ok(()));
    let computes = |count| aggregation_rule(&vec![(Compute::Percentile(99), "x"); count]).check().is_ok();
    assert!(computes(COMPUTES_MAX) && !computes(COMPUTES_MAX + 1) && !computes(0));
    let mut bad = [good.clone(), good.clone(), good.clone(), good.clone()];
    bad[0].every_s = 0;
    bad[1].expire_s = bad[1].every_s;
    bad[2].computes[0].compute = Compute::Percentile(100);
    bad[3].computes[0].compute = Compute::Interpolated(1001);
    assert!(bad.iter().all(|plan| plan.check().is_err()));
}

#[test]
fn the_cache_stays_within_its_limits_and_evicts_the_older_half() {
    let ring = vec![cluster("h", sharded(Sharding::CarbonCh, 1, false), &[0, 1, 2])];
    let plan = plan(ring, vec![Statement::Match(matching(&[], to(&[0]), false))]);
    let cached = |names_max, bytes_max| {
        let router = Router::new(&plan).expect("a valid plan");
        CachedRouter::new(router, CacheLimits { names_max, bytes_max }, 7)
    };
    let name = |number: usize| format!("servers.web{number:06}.cpu").into_bytes();
    fn decide<'c>(cached: &'c mut CachedRouter, name: &[u8]) -> &'c Decision {
        let hash = cached.hash(name);
        cached.decision(Entry::Records, hash, name)
    }

    let mut few = cached(8, 1 << 20);
    for number in 0..4 {
        decide(&mut few, &name(number));
    }
    assert_eq!((few.len(), few.figures().turned), (4, 0), "half of them is the young generation");
    decide(&mut few, &name(4));
    assert_eq!((few.len(), few.figures().turned), (5, 1));
    decide(&mut few, &name(0));
    assert_eq!((few.figures().hits, few.figures().misses), (1, 5), "the old generation is still cached");
    for number in 10..1_000 {
        decide(&mut few, &name(number));
        assert!(few.len() <= 8);
    }
    decide(&mut few, &name(0));
    assert_eq!(few.figures().misses, 5 + 990 + 1, "and is evicted");

    let bytes_max = 64 << 10;
    let mut small = cached(1 << 20, bytes_max);
    for number in 0..10_000 {
        decide(&mut small, &name(number));
        assert!(small.memory_bytes() <= bytes_max, "{}", small.memory_bytes());
    }
    assert!(small.figures().turned > 5 && small.len() > 500, "{} {:?}", small.len(), small.figures());

    // With many names, an evicted generation is freed in small steps, and completely before the next eviction.
    let mut freed = cached(20_000, 16 << 20);
    for number in 0..20_001 {
        decide(&mut freed, &name(number));
    }
    let (at_most, held) = (freed.memory_bytes(), freed.len());
    assert_eq!((held, freed.figures().turned), (10_001, 2));
    for number in 20_001..29_000 {
        decide(&mut freed, &name(number));
        freed.has_worked_much();
    }
    assert!(freed.memory_bytes() < at_most, "{} of {at_most}", freed.memory_bytes());
    assert_eq!(freed.len(), held + 8_999);

    // A name beyond all limits is still routed.
    let long = vec![b'x'; bytes_max];
    assert!(decide(&mut small, &long).plain().is_some());
    decide(&mut small, b"a");
    decide(&mut small, b"b");
    assert!(small.memory_bytes() <= bytes_max * 3);
}
