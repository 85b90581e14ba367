//! Random plans, names and endpoint states: the explanation, the decision and the cached decision agree.

use model::{OutputId, TransformId};
use proptest::prelude::*;

use crate::sharding::{CarbonHash, Sharding};

use super::super::*;
use super::rig::*;

const OUTPUTS: u16 = 5;

fn expression() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\^?[ab.]{1,2}\\$?",
        "\\^?[abc]{1,3}",
        Just("^(a|b)\\.(.*)$".to_owned()),
        Just("([abc]+)\\.?".to_owned()),
        Just("(c)?b".to_owned()),
        Just("[^.]+$".to_owned()),
        Just("(?<!\\.)b\\.(?!c)".to_owned()),
        Just("([ab])\\.?\\1".to_owned()),
        Just("(?>[ab]+)c".to_owned()),
    ]
}

fn replacement() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\\1".to_owned()),
        Just("x.\\2.\\_1".to_owned()),
        Just("\\^.1b".to_owned()),
        Just("a.c".to_owned()),
        Just(String::new()),
        Just("a b".to_owned()),
    ]
}

fn distribution() -> impl Strategy<Value = Distribution> {
    let sharding = prop_oneof![
        Just(Sharding::CarbonCh),
        Just(Sharding::Fnv1aCh),
        Just(Sharding::JumpFnv1aCh),
        Just(Sharding::CarbonPython { hash: CarbonHash::Mmh3Ch, fast: false, diverse: true }),
    ];
    prop_oneof![
        Just(Distribution::Copies),
        Just(Distribution::Failover),
        Just(Distribution::RoundRobin),
        Just(sharded(Sharding::AnyOf, 1, true)),
        (sharding, 1u8..=2, any::<bool>()).prop_map(|(sharding, replication, fail_over)| sharded(
            sharding,
            replication,
            fail_over
        )),
    ]
}

fn relay_cluster() -> impl Strategy<Value = RelayCluster> {
    let outputs = proptest::collection::btree_set(0..OUTPUTS, 2..=4);
    let relays = prop_oneof![3 => Just(0), 1 => any::<u16>()];
    (distribution(), outputs, relays).prop_map(|(distribution, outputs, relays)| {
        let mut cluster = cluster("c", distribution, &outputs.into_iter().collect::<Vec<_>>());
        for member in &mut cluster.members {
            let number = member.node.output().expect("all are outputs").0;
            if relays >> number & 1 == 1 {
                member.node = MemberNode::Relay(TransformId(number));
            }
        }
        cluster
    })
}

fn destination() -> impl Strategy<Value = To> {
    prop_oneof![
        2 => Just(To::Nowhere),
        1 => Just(To::Blackhole),
        8 => proptest::collection::vec(0u16..3, 1..3).prop_map(|clusters| to(&clusters)),
    ]
}

fn statement() -> impl Strategy<Value = Statement> {
    let match_ = (
        proptest::collection::vec(expression(), 0..3),
        proptest::option::of(any::<bool>()),
        proptest::option::of(replacement()),
        destination(),
        proptest::bool::weighted(0.3),
        proptest::collection::vec(expression(), 0..2),
    )
        .prop_map(|(expressions, check, route_using, to, stop, unless)| {
            let validate = check.and_then(|log| valid("^[0-9.]+ ", log));
            let texts: Vec<&str> = expressions.iter().map(String::as_str).collect();
            let unless = unless.iter().map(|text| text.as_str().into()).collect();
            Statement::Match(MatchPlan { validate, route_using, unless, ..matching(&texts, to, stop) })
        });
    let rewrite =
        (expression(), replacement(), any::<bool>()).prop_map(|(expression, into, every_occurrence)| {
            Statement::Rewrite(RewritePlan { expression: expression.as_str().into(), into, every_occurrence })
        });
    let aggregate = (
        proptest::collection::vec(expression(), 1..3),
        proptest::collection::vec(replacement(), 1..3),
        destination(),
        proptest::bool::weighted(0.3),
        any::<bool>(),
    )
        .prop_map(|(expressions, results, to, stop, replaces)| {
            let expressions: Vec<&str> = expressions.iter().map(String::as_str).collect();
            let results: Vec<&str> = results.iter().map(String::as_str).collect();
            match aggregate(&expressions, &results, to, stop) {
                Statement::Aggregate(plan) => Statement::Aggregate(AggregateStatement { replaces, ..plan }),
                other => other,
            }
        });
    prop_oneof![5 => match_, 2 => rewrite, 1 => aggregate]
}

/// The actions that an explanation describes, as [`text`] prints them, always with their name.
fn explained_acts(explanation: &Explanation, name: &[u8]) -> Vec<String> {
    let mut acts = Vec::new();
    let mut copies = 0;
    let mut sent = |sent: &[Sent], name: &[u8], acts: &mut Vec<String>| {
        for chosen in sent.iter().flat_map(|sent| &sent.chosen).filter(|_| {
            copies += 1;
            copies <= COPIES_MAX
        }) {
            let renamed = Some(name);
            acts.push(text(match chosen.node {
                MemberNode::Output(output) => Act::Copy { output, renamed },
                MemberNode::Relay(relay) => Act::Relay { relay, renamed },
            }));
        }
    };
    sent(&explanation.direct, name, &mut acts);
    for meeting in &explanation.matches {
        if meeting.valid == Some(false) {
            acts.push("invalid".into());
        }
        match &meeting.action {
            RuleAction::Sent(clusters) => sent(clusters, &meeting.name, &mut acts),
            RuleAction::Fed { aggregation_rule, names } => {
                for (compute, name) in names.iter().enumerate() {
                    let compute = compute as u16;
                    acts.extend(
                        name.iter().map(|name| {
                            text(Act::Feed { aggregation_rule: *aggregation_rule, compute, name })
                        }),
                    );
                }
            }
            RuleAction::Nothing
            | RuleAction::Blackholed
            | RuleAction::Renamed(_)
            | RuleAction::NotRenamed(_) => {}
        }
    }
    acts
}

/// An act as text, always with its name, never with its log flag.
fn full(act: Act<'_>, name: &[u8]) -> String {
    match act {
        Act::Copy { output, renamed } => text(Act::Copy { output, renamed: renamed.or(Some(name)) }),
        Act::Relay { relay, renamed } => text(Act::Relay { relay, renamed: renamed.or(Some(name)) }),
        Act::Invalid { .. } => "invalid".into(),
        Act::Feed { .. } => text(act),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn explanation_decision_and_cache_agree(
        clusters in proptest::collection::vec(relay_cluster(), 3),
        statements in proptest::collection::vec(statement(), 0..8),
        statistics in destination(),
        names in proptest::collection::vec(("[abc.]{1,6}", any::<bool>(), 0u8..4), 1..30),
        downs in proptest::collection::vec((0..OUTPUTS, any::<bool>()), 30),
        (seed, same_hash, once) in (any::<u64>(), any::<bool>(), any::<bool>()),
    ) {
        let plan = RelayPlan { clusters, statements, statistics, once };
        let router = Router::new(&plan).expect("a valid plan");
        let aggregation_rules = router.aggregation_rules().len() as u16;
        let mut cached =
            CachedRouter::new(router, CacheLimits { names_max: 8, bytes_max: 1 << 20 }, seed);
        for (turn, ((name, good, entry), (output, up))) in names.iter().zip(&downs).enumerate() {
            cached.set_live(OutputId(*output), *up);
            let entry = match entry {
                0 if aggregation_rules > 0 => Entry::Result(turn as u16 % aggregation_rules),
                1 => Entry::Statistics,
                _ => Entry::Records,
            };
            let name = name.as_bytes();
            let line = Line { name, rest: if *good { b"1.5 2" } else { b"x 2" } };
            let explained = cached.router().explain(entry, line, turn as u64);
            let decision = cached.router().decide(entry, name);
            let mut by_decision = Vec::new();
            let routing = decision
                .run(cached.router(), line, turn as u64, &mut |act| by_decision.push(full(act, name)));
            prop_assert_eq!(&explained_acts(&explained, name), &by_decision);
            prop_assert_eq!(explained.routing, routing);
            let other = cached.router().snapshot().into_router();
            prop_assert_eq!(&other.explain(entry, line, turn as u64), &explained);
            let hash = if same_hash { seed } else { cached.hash(name) };
            prop_assert_eq!(cached.decision(entry, hash, name), &decision);
            let mut remembered = Vec::new();
            let routed = cached.route(entry, hash, line, &mut |act| remembered.push(full(act, name)));
            prop_assert_eq!(&remembered, &by_decision);
            prop_assert_eq!(routed, routing);
            prop_assert!(cached.len() <= 8);
            if !decision.needs_rest() {
                let other = Line { name, rest: b"" };
                prop_assert_eq!(cached.router().explain(entry, other, turn as u64), explained);
            }
        }
    }

    #[test]
    fn no_expression_and_no_name_cause_a_panic(
        texts in proptest::collection::vec("[a\\\\\\[\\](){}.*+?^$|:,=!<0-9é-]{0,12}", 1..4),
        replacement in "[\\\\_^.g{}0-9aé ]{0,12}",
        name in proptest::collection::vec(any::<u8>(), 0..40),
        rest in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let is_good = |text: &&str| Expression::new(&(*text).into(), true).is_ok();
        let good: Vec<&str> = texts.iter().map(String::as_str).filter(is_good).collect();
        let mut statements: Vec<Statement> = good.iter().map(|text| rewrite(text, &replacement)).collect();
        statements.extend(good.iter().map(|text| {
            let (validate, route_using) = (valid(text, false), Some(replacement.clone()));
            Statement::Match(MatchPlan { validate, route_using, ..matching(&[text], to(&[0, 1]), false) })
        }));
        statements.extend(good.iter().map(|text| aggregate(&[text], &[&replacement], To::Nowhere, false)));
        let plan = plan(two(), statements);
        plan.warnings();
        let router = Router::new(&plan).expect("each expression is valid alone");
        let line = Line { name: &name, rest: &rest };
        let explained = router.explain(Entry::Records, line, 0);
        let decision = router.decide(Entry::Records, &name);
        let mut acts = Vec::new();
        let routing = decision.run(&router, line, 0, &mut |act| acts.push(full(act, &name)));
        prop_assert_eq!(explained.routing, routing);
        prop_assert_eq!(explained_acts(&explained, &name), acts);
    }
}
