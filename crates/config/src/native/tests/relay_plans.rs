//! Random valid plans with relays.

use deliver::plan::{QueueKind, QueueLimits, SenderPlan};
use model::{OutputId, SourceId, TransformId};
use process::aggregation_rules::{
    AggregationRuleLimits, AggregationRulePlan, Compute, ComputePlan, Late, Stamp,
};
use process::relay::{
    AggregateStatement, ClusterId, Distribution, ExpressionPlan, MatchPlan, Member, MemberNode, RelayCluster,
    RelayPlan, RewritePlan, Statement, To, ValidatePlan,
};
use process::sharding::{CarbonHash, Sharding};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use wire::graphite::Namespace;
use wire::graphite::input::Compatibility;

use super::super::graphite_source;
use crate::plan::*;

/// One to three relays with their own outputs; some relays feed the next one.
pub(super) fn plan() -> impl Strategy<Value = Plan> {
    vec((vec(output(), 1..5), vec(cluster(), 1..4), vec(statement(), 0..6), statistics(), limits()), 1..4)
        .prop_map(|relays| {
            let mut plan = Plan { sources: vec![source()], ..Plan::default() };
            for (at, (outputs, clusters, statements, statistics, (names_max, aggregation_rules))) in
                relays.into_iter().enumerate()
            {
                let first = plan.outputs.len();
                for (n, (kind, endpoints)) in outputs.into_iter().enumerate() {
                    push_outputs(&mut plan, (at, n), &kind, endpoints);
                }
                let members: Vec<Member> =
                    (first..plan.outputs.len()).map(|id| member(&plan.outputs[id], id)).collect();
                let count = clusters.len();
                let clusters = clusters.into_iter().enumerate();
                let clusters = clusters.map(|(n, draft)| finish_cluster(n, &members, draft)).collect();
                let to = |to: To| match to {
                    To::Clusters(ids) => {
                        To::Clusters(ids.iter().map(|id| ClusterId(id.0 % count as u16)).collect())
                    }
                    other => other,
                };
                let statements = statements.into_iter().map(|statement| match statement {
                    Statement::Match(rule) => Statement::Match(MatchPlan { to: to(rule.to.clone()), ..rule }),
                    Statement::Aggregate(rule) => {
                        Statement::Aggregate(AggregateStatement { to: to(rule.to.clone()), ..rule })
                    }
                    other => other,
                });
                let statements = statements.collect();
                let statistics = to(statistics);
                let relay = RelayTransform {
                    plan: RelayPlan { clusters, statements, statistics, once: names_max % 2 == 0 },
                    names_max,
                    aggregation_rules,
                };
                let kind = TransformKind::Relay(Box::new(relay));
                plan.transforms.push(TransformPlan {
                    name: format!("r.{at}"),
                    kind,
                    from: vec![Feed::Source(SourceId(0))],
                });
            }
            chain(&mut plan);
            plan
        })
}

/// Some relays also send to the next one.
fn chain(plan: &mut Plan) {
    for at in 1..plan.transforms.len() {
        let TransformKind::Relay(relay) = &mut plan.transforms[at - 1].kind else { continue };
        if relay.names_max % 3 == 0 {
            let node = MemberNode::Relay(TransformId(at as u16));
            let member = Member { node, host: format!("r.{at}"), port: 0, instance: None };
            relay.plan.clusters[0].members.push(member);
            plan.transforms[at].from.push(Feed::Transform(TransformId(at as u16 - 1)));
        }
    }
}

fn source() -> SourcePlan {
    graphite_source("lines", Compatibility::CRelay)
}

fn limits() -> impl Strategy<Value = (u64, AggregationRuleLimits)> {
    let any = (2u64..=64_000_000, 1u32..=1_000_000_000, 0usize..1 << 40).prop_map(
        |(names, series_max, bytes_max)| {
            (names, AggregationRuleLimits { series_max, bytes_max, ..AggregationRuleLimits::default() })
        },
    );
    prop_oneof![Just((RelayTransform::NAMES_MAX, AggregationRuleLimits::default())), any]
}

/// Kind and number of endpoints.
fn output() -> impl Strategy<Value = (OutputKind, usize)> {
    let sender = SenderPlan { retry_min_ms: 250, retry_max_ms: 1_000, ..SenderPlan::default() };
    let to = Endpoint { host: "h".into(), port: 1 };
    let (form, namespace) = (GraphiteEncoding::Lines, Namespace::default());
    let lines = OutputKind::Graphite {
        to: to.clone(),
        form,
        namespace: namespace.clone(),
        sender,
        connections: 2,
        line_bytes_max: 1 << 20,
        compression: Compression::Gzip,
        tls: None,
    };
    let datagrams =
        OutputKind::GraphiteDatagrams { to, syslog: true, namespace: Namespace::default(), sender };
    let path = std::path::PathBuf::new();
    let file = OutputKind::GraphiteFile { path, file_bytes_max: 0, files_max: 0, peer: true, namespace };
    prop_oneof![
        3 => (1usize..4).prop_map(move |endpoints| (lines.clone(), endpoints)),
        1 => (1usize..3).prop_map(move |endpoints| (datagrams.clone(), endpoints)),
        1 => Just((file, 1)),
    ]
}

fn push_outputs(plan: &mut Plan, (relay, at): (usize, usize), kind: &OutputKind, endpoints: usize) {
    for n in 0..endpoints {
        let mut kind = kind.clone();
        let mut name = format!("o-{relay}.{at}");
        match &mut kind {
            OutputKind::Graphite { to, .. } | OutputKind::GraphiteDatagrams { to, .. } => {
                *to = Endpoint { host: ["h", "fe80::1", "10.0.0.5"][n].into(), port: 1000 + at as u16 };
                if endpoints > 1 {
                    name = super::super::endpoint_name(&name, &Destination::Tcp(to.clone()));
                }
            }
            OutputKind::GraphiteFile { path, .. } => *path = format!("/files/{relay}.{at}").into(),
            _ => {}
        }
        let queue_kind = QueueKind::Memory;
        plan.outputs.push(OutputPlan {
            name,
            kind,
            from: vec![Feed::Transform(TransformId(relay as u16))],
            queue: QueueLimits::default_of(queue_kind),
            queue_kind,
            required: false,
            check: None,
        });
    }
}

fn member(output: &OutputPlan, id: usize) -> Member {
    let (host, port) = match &output.kind {
        OutputKind::Graphite { to, .. } | OutputKind::GraphiteDatagrams { to, .. } => {
            (to.host.clone(), to.port)
        }
        OutputKind::GraphiteFile { path, .. } => (path.display().to_string(), 0),
        _ => unreachable!("no relay feeds others"),
    };
    Member { node: MemberNode::Output(OutputId(id as u16)), host, port, instance: None }
}

type Draft = (Distribution, Vec<(Index, Option<String>)>, bool);

fn cluster() -> impl Strategy<Value = Draft> {
    let sharding = vec![
        Sharding::CarbonCh,
        Sharding::Fnv1aCh,
        Sharding::JumpFnv1aCh,
        Sharding::CarbonPython { hash: CarbonHash::CarbonCh, fast: false, diverse: true },
        Sharding::CarbonPython { hash: CarbonHash::Fnv1aCh, fast: false, diverse: false },
        Sharding::CarbonPython { hash: CarbonHash::Mmh3Ch, fast: true, diverse: true },
    ];
    let rings = (select(sharding), 1u8..3, any::<bool>()).prop_map(|(sharding, replication, fail_over)| {
        Distribution::Sharded { sharding, replication, fail_over }
    });
    let others = select(vec![
        Distribution::Copies,
        Distribution::Failover,
        Distribution::RoundRobin,
        Distribution::Sharded { sharding: Sharding::AnyOf, replication: 1, fail_over: true },
    ]);
    let picks = vec((any::<Index>(), option::of("[a-z0-9é =.]{1,5}")), 1..5);
    (prop_oneof![rings, others], picks, any::<bool>())
}

/// Some of the members in any order, or all of them in theirs.
fn finish_cluster(at: usize, members: &[Member], (mut distribution, picks, all): Draft) -> RelayCluster {
    let mut of: Vec<Member> = if all { members.to_vec() } else { Vec::new() };
    for (index, instance) in picks.into_iter().filter(|_| !all) {
        let member = Member { instance, ..members[index.index(members.len())].clone() };
        if !of.contains(&member) {
            of.push(member);
        }
    }
    if let Distribution::Sharded { replication, .. } = &mut distribution {
        *replication = (*replication).min(of.len() as u8);
    }
    RelayCluster { name: ["all", "é \"x\"", "c-1", "4"][at].to_owned(), members: of, distribution }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z.]{1,6}",
        Just("^sys\\.(.*)$".to_owned()),
        Just("it's\\.(a|b)\"".to_owned()),
        Just("a\t[^.]+\\d{2}".to_owned()),
        Just("é".to_owned()),
    ]
}

fn replacement() -> impl Strategy<Value = String> {
    prop_oneof![
        text(),
        Just("x.\\1.\\_2".to_owned()),
        Just("\\^1'".to_owned()),
        Just(String::new()),
        "\\PC{0,4}"
    ]
}

fn statistics() -> impl Strategy<Value = To> {
    prop_oneof![Just(To::Nowhere), Just(To::Blackhole), to()]
}

fn to() -> impl Strategy<Value = To> {
    let clusters = vec(0u16..4, 1..3).prop_map(|ids| To::Clusters(ids.into_iter().map(ClusterId).collect()));
    prop_oneof![1 => Just(To::Nowhere), 1 => Just(To::Blackhole), 5 => clusters]
}

fn expressions(least: usize) -> impl Strategy<Value = Vec<ExpressionPlan>> {
    (vec(text(), least..4), any::<bool>()).prop_map(|(texts, ignore_case)| {
        texts.into_iter().map(|text| ExpressionPlan { text, ignore_case }).collect()
    })
}

fn statement() -> impl Strategy<Value = Statement> {
    let validate = option::of((text(), any::<bool>()));
    let unless = (expressions(0), 0..3usize);
    let route = (expressions(0), validate, option::of(replacement()), to(), any::<bool>(), unless).prop_map(
        |(expressions, validate, route_using, to, stop, (mut unless, count))| {
            unless.truncate(count);
            // One `ignore_case` applies to both.
            let ignore_case = expressions.first().or(unless.first()).is_some_and(|first| first.ignore_case);
            unless.iter_mut().for_each(|each| each.ignore_case = ignore_case);
            let validate =
                validate.map(|(text, log)| ValidatePlan { expression: ExpressionPlan::from(&*text), log });
            Statement::Match(MatchPlan { expressions, unless, validate, route_using, to, stop })
        },
    );
    let rewrite = (text(), any::<bool>(), replacement(), any::<bool>()).prop_map(
        |(text, ignore_case, into, every_occurrence)| {
            let expression = ExpressionPlan { text, ignore_case };
            Statement::Rewrite(RewritePlan { expression, into, every_occurrence })
        },
    );
    let aggregation_rule = (expressions(1), aggregation_rule(), to(), any::<[bool; 2]>()).prop_map(
        |(expressions, aggregation_rule, to, flags)| {
            let [stop, replaces] = flags;
            Statement::Aggregate(AggregateStatement { expressions, aggregation_rule, to, stop, replaces })
        },
    );
    prop_oneof![route, rewrite, aggregation_rule]
}

fn aggregation_rule() -> impl Strategy<Value = AggregationRulePlan> {
    let compute = prop_oneof![
        select(vec![
            Compute::Sum,
            Compute::Count,
            Compute::Max,
            Compute::Min,
            Compute::Average,
            Compute::Variance,
            Compute::Stddev,
        ]),
        (1u8..=99).prop_map(Compute::Percentile),
        (1u16..=999).prop_map(Compute::Interpolated),
    ];
    let compute = (compute, replacement()).prop_map(|(compute, name)| ComputePlan { compute, name });
    let times = (1u32..=100_000, 1u32..=100_000);
    let stamp = select(vec![Stamp::Start, Stamp::Middle, Stamp::End]);
    (times, vec(compute, 1..5), stamp, select(vec![Late::Dropped, Late::Oldest])).prop_map(
        |((every_s, more), computes, stamp, late)| AggregationRulePlan {
            every_s,
            expire_s: every_s + more,
            stamp,
            computes,
            late,
            exact: every_s % 2 == 0,
        },
    )
}
