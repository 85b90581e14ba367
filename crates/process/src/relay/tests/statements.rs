//! The effect of each statement, alone and after others.

use crate::sharding::Sharding;

use super::super::*;
use super::rig::*;
use model::OutputId;

fn check(router: &Router, table: &[(&str, &str)]) {
    for (name, want) in table {
        assert_eq!(routed(router, name, "1 2"), *want, "{name}");
    }
}

#[test]
fn matches_send_in_order_until_one_stops() {
    let statements = vec![
        Statement::Match(matching(&["^a", "b$"], to(&[0]), false)),
        Statement::Match(matching(&["stop"], to(&[1]), true)),
        Statement::Match(matching(&[], to(&[0, 1]), false)),
    ];
    check(
        &router(two(), statements),
        &[
            ("x", "0, 1; Exhausted"),
            ("a.x", "0, 0, 1; Exhausted"),
            // Two expressions of one statement are two rules.
            ("a.b", "0, 0, 0, 1; Exhausted"),
            ("a.stop", "0, 1; Stopped"),
        ],
    );
}

#[test]
fn stop_without_a_destination_does_nothing_and_the_blackhole_stops_always() {
    let statements = vec![
        Statement::Match(matching(&["alone"], To::Nowhere, true)),
        Statement::Match(matching(&["hole"], To::Blackhole, false)),
        Statement::Match(matching(&["a"], to(&[0]), false)),
    ];
    check(
        &router(two(), statements),
        &[("alone.a", "0; Exhausted"), ("a.hole", "; Blackholed"), ("x", "; Exhausted")],
    );
}

#[test]
fn a_rewrite_applies_to_all_later_statements() {
    let statements = vec![
        Statement::Match(matching(&["^a"], to(&[0]), false)),
        rewrite(r"^a\.(.*)$", r"b.\1"),
        Statement::Match(matching(&["^b"], to(&[1]), false)),
        rewrite("^b", "c"),
        rewrite("c$", ""),
        Statement::Match(matching(&["^c"], to(&[0]), true)),
    ];
    check(
        &router(two(), statements),
        &[
            ("a.x", "0, 1 b.x, 0 c.x; Stopped"),
            ("b.x", "1, 0 c.x; Stopped"),
            ("x", "; Exhausted"),
            // A rewrite to an invalid name is not applied: `b` becomes `c`, but `c` does not become an empty name.
            ("b", "1, 0 c; Stopped"),
        ],
    );
}

#[test]
fn every_occurrence_is_replaced_with_the_option() {
    let every = |expression: &str, into: &str| {
        let into = into.to_owned();
        Statement::Rewrite(RewritePlan { expression: expression.into(), into, every_occurrence: true })
    };
    let statements =
        vec![every("ab", "x"), every(r"(\d)\.", r"\1_"), Statement::Match(matching(&[], to(&[0]), false))];
    check(
        &router(two(), statements),
        &[("ab.ab", "0 x.x; Exhausted"), ("1.2.3.a", "0 1_2_3_a; Exhausted"), ("y", "0; Exhausted")],
    );
    // As in Python: an empty match may follow another match, and none splits a character.
    for (expression, want) in
        [("l*", "0 --é-d-; Exhausted"), ("(?!x)l*", "0 --é-d-; Exhausted"), ("$", "0 léd-; Exhausted")]
    {
        let statements = vec![every(expression, "-"), Statement::Match(matching(&[], to(&[0]), false))];
        check(&router(two(), statements), &[("léd", want)]);
    }
}

#[test]
fn names_in_unless_are_excluded() {
    let unless = vec!["c".into(), r"\.$".into()];
    let route = MatchPlan { unless, ..matching(&["^a"], to(&[0]), true) };
    let statements = vec![Statement::Match(route), Statement::Match(matching(&[], to(&[1]), false))];
    let names =
        [("ab", "0; Stopped"), ("abc", "1; Exhausted"), ("a.", "1; Exhausted"), ("b", "1; Exhausted")];
    check(&router(two(), statements), &names);
}

#[test]
fn an_output_gets_a_name_once_with_the_option() {
    let both = || vec![cluster("a", copies(), &[0, 1]), cluster("b", copies(), &[1, 2])];
    let sends = |check| MatchPlan { validate: check, ..matching(&[], to(&[0]), false) };
    let statements = |check| {
        let all = [sends(None), matching(&["b"], to(&[1]), false), sends(check)];
        all.map(Statement::Match).to_vec()
    };
    let once = |check| RelayPlan { once: true, ..plan(both(), statements(check)) };
    let names = [("a", "0, 1; Exhausted"), ("b", "0, 1, 2; Exhausted")];
    check(&Router::new(&once(None)).expect("a plan"), &names);
    check(&Router::new(&once(valid("", false))).expect("a plan"), &names);
    check(&router(both(), statements(None)), &[("b", "0, 1, 1, 2, 0, 1; Exhausted")]);
}

#[test]
fn a_result_replaces_points_of_its_own_name() {
    let aggregation_rule =
        |expression: &str, result: &str| match aggregate(&[expression], &[result], to(&[1]), false) {
            Statement::Aggregate(plan) => Statement::Aggregate(AggregateStatement { replaces: true, ..plan }),
            other => other,
        };
    let statements = vec![
        aggregation_rule(r"^(a)\.(.*)$", r"\1.sum"),
        rewrite("sum", "x"),
        aggregation_rule("^a", "all"),
        Statement::Match(matching(&[], to(&[0]), false)),
    ];
    check(
        &router(two(), statements),
        &[("a.b", "+0.0 a.sum, +1.0 all, 0; Exhausted"), ("a.sum", "+0.0 a.sum, +1.0 all; Stopped")],
    );
}

#[test]
fn validate_checks_the_rest_of_the_line() {
    let checked = |expressions: &[&str], to, stop, log| {
        let validate = valid(r"^[0-9.]+ [0-9]+$", log);
        Statement::Match(MatchPlan { validate, ..matching(expressions, to, stop) })
    };
    let statements = vec![
        Statement::Match(matching(&["first"], to(&[1]), false)),
        checked(&["alone"], To::Nowhere, false, false),
        checked(&["sent"], to(&[0]), false, true),
        checked(&["last"], to(&[0]), true, false),
        checked(&["hole"], To::Blackhole, false, false),
        Statement::Match(matching(&[], to(&[1]), false)),
    ];
    let router = router(two(), statements);
    for (name, good, bad) in [
        // Without a destination, an invalid line goes no further.
        ("alone", "1; Exhausted", "invalid; Invalid"),
        ("first.alone", "1, 1; Exhausted", "1, invalid; Invalid"),
        // With a destination, an invalid line only skips that destination.
        ("sent", "0, 1; Exhausted", "logged, 1; Exhausted"),
        ("last", "0; Stopped", "invalid; Stopped"),
        ("hole", "; Blackholed", "invalid; Blackholed"),
    ] {
        assert_eq!(routed(&router, name, "1.5 2"), good, "{name}");
        assert_eq!(routed(&router, name, "nan 2"), bad, "{name}");
        assert!(router.decide(Entry::Records, name.as_bytes()).needs_rest(), "{name}");
    }
    assert!(!router.decide(Entry::Records, b"x").needs_rest());
    assert_eq!(router.decide(Entry::Records, b"x").plain(), Some(&[OutputId(1)][..]));
}

#[test]
fn route_using_sets_the_sharding_key() {
    let ring = || sharded(Sharding::CarbonCh, 1, false);
    let any_of = cluster("any", sharded(Sharding::AnyOf, 1, true), &[3, 4, 5]);
    let clusters = vec![cluster("h", ring(), &[0, 1, 2]), any_of];
    let using = MatchPlan {
        route_using: Some(r"\1".into()),
        ..matching(&[r"^servers\.(web\d+)\..*$"], to(&[0, 1]), true)
    };
    let statements = vec![Statement::Match(using), Statement::Match(matching(&[], to(&[0, 1]), false))];
    let router = router(clusters, statements);
    let of = |name: &str| decided(&router, name, "").0[0].clone();
    let by_key = of;
    // `any_of` uses the name: checked with carbon-c-relay 3.7.3.
    let any_of = |name: &str| decided(&router, name, "").0[1].clone();
    let names = (0..9).map(|metric| format!("servers.web1.{metric}"));
    let members: std::collections::BTreeSet<String> = names.map(|name| any_of(&name)).collect();
    assert_eq!(members.len(), 3);
    for host in 0..20 {
        let key = format!("web{host}");
        for metric in ["cpu", "load.1", "disk.sda.await"] {
            assert_eq!(of(&format!("servers.{key}.{metric}")), by_key(&key), "{metric} of {key}");
        }
    }
    let explained = router.explain(Entry::Records, Line { name: b"servers.web7.cpu", rest: b"" }, 0);
    let RuleAction::Sent(sent) = &explained.matches[0].action else { panic!("a match sends") };
    assert_eq!(sent[0].key.as_deref(), Some(&b"web7"[..]));
}

#[test]
fn aggregation_rules_are_fed_and_their_results_go_to_their_destination() {
    let statements = vec![
        aggregate(&[r"^sys\.([^.]+)\.cpu$", "cpu"], &[r"all.\1", "total"], to(&[1]), false),
        aggregate(&["^halt"], &["stopped"], To::Nowhere, true),
        Statement::Match(matching(&["^stopped"], to(&[0]), true)),
        Statement::Match(matching(&[], to(&[1]), false)),
    ];
    let router = router(two(), statements);
    assert_eq!(router.aggregation_rules().len(), 2);
    // The second expression has no groups: results have the configured name.
    let want = "+0.0 all.h, +0.1 total, +0.0 all.\\1, +0.1 total, 1; Exhausted";
    assert_eq!(routed(&router, "sys.h.cpu", "1 2"), want);
    assert_eq!(routed(&router, "halt.x", "1 2"), "+1.0 stopped; Stopped");
    let of = |entry, name: &str| {
        let mut acts = Vec::new();
        let line = Line { name: name.as_bytes(), rest: b"" };
        let decision = router.decide(entry, name.as_bytes());
        let routing = decision.run(&router, line, 0, &mut |act| acts.push(text(act)));
        format!("{}; {:?}", acts.join(", "), routing.end)
    };
    assert_eq!(of(Entry::Result(0), "stopped"), "1; Stopped", "directly to its cluster");
    assert_eq!(of(Entry::Result(1), "stopped"), "0; Stopped", "from the top");
    assert_eq!(of(Entry::Statistics, "carbon.x"), "1; Exhausted", "from the top");
}

#[test]
fn statistics_go_straight_to_their_cluster_when_they_have_one() {
    let statements = vec![Statement::Match(matching(&[], To::Blackhole, false))];
    let plan = RelayPlan { statistics: to(&[1]), ..plan(two(), statements) };
    let router = Router::new(&plan).expect("a valid plan");
    assert_eq!(router.decide(Entry::Statistics, b"x").plain(), Some(&[OutputId(1)][..]));
    assert_eq!(routed(&router, "x", ""), "; Blackholed");
}

#[test]
fn members_that_are_down_fail_over() {
    let clusters = vec![
        cluster("any", sharded(Sharding::AnyOf, 1, true), &[0, 1, 2]),
        cluster("over", Distribution::Failover, &[3, 4]),
        cluster("turns", Distribution::RoundRobin, &[5, 6]),
        cluster("ring", sharded(Sharding::Fnv1aCh, 2, false), &[0, 1, 2]),
        cluster("dynamic", sharded(Sharding::Fnv1aCh, 2, true), &[0, 1, 2]),
    ];
    let statement =
        |at: u16| Statement::Match(matching(&[["a", "o", "t", "r", "d"][at as usize]], to(&[at]), true));
    let mut router = router(clusters, (0..5).map(statement).collect());
    let at = |router: &Router, name: &str, turn| {
        let decision = router.decide(Entry::Records, name.as_bytes());
        let line = Line { name: name.as_bytes(), rest: b"" };
        let mut acts = Vec::new();
        decision.run(router, line, turn, &mut |act| acts.push(text(act)));
        acts.join(",")
    };
    let first = at(&router, "a", 0);
    let of = |text: &str| OutputId(text.parse().expect("one output"));
    router.set_live(of(&first), false);
    let second = at(&router, "a", 0);
    assert_ne!(first, second);
    assert_eq!(at(&router, "a", 9), second, "the same failover member for each line");
    (0..3).for_each(|output| router.set_live(OutputId(output), false));
    assert_eq!(at(&router, "a", 0), first, "no member is up: the line is queued for its owner");
    (0..3).for_each(|output| router.set_live(OutputId(output), true));

    for (three, four, want) in
        [(true, true, "3"), (false, true, "4"), (false, false, "3"), (true, false, "3")]
    {
        router.set_live(OutputId(3), three);
        router.set_live(OutputId(4), four);
        assert_eq!(at(&router, "o", 0), want, "{three} {four}");
    }
    let turns = |router: &Router| (0..4).map(|turn| at(router, "t", turn)).collect::<Vec<_>>().join(" ");
    assert_eq!(turns(&router), "5 6 5 6");
    router.set_live(OutputId(5), false);
    assert_eq!(turns(&router), "6 6 6 6");
    router.set_live(OutputId(6), false);
    assert_eq!(turns(&router), "5 6 5 6");

    let ring = at(&router, "r.x", 0);
    let owner = of(&ring[..1]);
    router.set_live(owner, false);
    assert_eq!(at(&router, "r.x", 0), ring, "without `dynamic` records wait");
    let names = ["d.x", "d.y", "d.z", "d.xy", "d.zzz"];
    for name in names {
        let copies = at(&router, name, 0);
        let copies: Vec<&str> = copies.split(',').collect();
        assert!(copies.len() == 2 && copies[0] != copies[1], "{name}: {copies:?}");
        assert!(copies.iter().all(|copy| of(copy) != owner), "{name}: {copies:?}");
    }
}
