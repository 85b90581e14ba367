//! Test helpers: short constructors for plans, and actions on lines as text.

use model::OutputId;

use crate::aggregation_rules::{AggregationRulePlan, Compute, ComputePlan, Late, Stamp};
use crate::sharding::Sharding;

use super::super::*;

pub(super) fn copies() -> Distribution {
    Distribution::Copies
}

pub(super) fn sharded(sharding: Sharding, replication: u8, fail_over: bool) -> Distribution {
    Distribution::Sharded { sharding, replication, fail_over }
}

/// A cluster of the given outputs, each on a host of the same number.
pub(super) fn cluster(name: &str, distribution: Distribution, outputs: &[u16]) -> RelayCluster {
    let member = |output: &u16| Member {
        node: MemberNode::Output(OutputId(*output)),
        host: format!("10.0.0.{}", output + 1),
        port: 2003,
        instance: None,
    };
    RelayCluster { name: name.into(), members: outputs.iter().map(member).collect(), distribution }
}

pub(super) fn to(clusters: &[u16]) -> To {
    To::Clusters(clusters.iter().copied().map(ClusterId).collect())
}

/// A match; without expressions it is `*`.
pub(super) fn matching(expressions: &[&str], to: To, stop: bool) -> MatchPlan {
    let expressions = expressions.iter().map(|text| (*text).into()).collect();
    MatchPlan { expressions, to, stop, ..MatchPlan::default() }
}

pub(super) fn rewrite(expression: &str, into: &str) -> Statement {
    let into = into.to_owned();
    Statement::Rewrite(RewritePlan { expression: expression.into(), into, every_occurrence: false })
}

pub(super) fn valid(expression: &str, log: bool) -> Option<ValidatePlan> {
    Some(ValidatePlan { expression: expression.into(), log })
}

pub(super) fn aggregation_rule(computes: &[(Compute, &str)]) -> AggregationRulePlan {
    let plan = |(compute, name): &(Compute, &str)| ComputePlan { compute: *compute, name: (*name).into() };
    AggregationRulePlan {
        every_s: 10,
        expire_s: 20,
        stamp: Stamp::End,
        computes: computes.iter().map(plan).collect(),
        late: Late::Dropped,
        exact: false,
    }
}

pub(super) fn aggregate(expressions: &[&str], results: &[&str], to: To, stop: bool) -> Statement {
    let results: Vec<(Compute, &str)> = results.iter().map(|name| (Compute::Sum, *name)).collect();
    let expressions = expressions.iter().map(|text| (*text).into()).collect();
    Statement::Aggregate(AggregateStatement {
        expressions,
        aggregation_rule: aggregation_rule(&results),
        to,
        stop,
        replaces: false,
    })
}

pub(super) fn plan(clusters: Vec<RelayCluster>, statements: Vec<Statement>) -> RelayPlan {
    RelayPlan { clusters, statements, ..RelayPlan::default() }
}

pub(super) fn router(clusters: Vec<RelayCluster>, statements: Vec<Statement>) -> Router {
    Router::new(&plan(clusters, statements)).expect("a valid plan")
}

/// Two clusters that copy, to outputs 0 and 1.
pub(super) fn two() -> Vec<RelayCluster> {
    vec![cluster("a", copies(), &[0]), cluster("b", copies(), &[1])]
}

/// An act as text: `0`, `0 NAME` under another name, `t0` for relay 0, `+RULE.COMPUTE NAME`, `invalid`, `logged`.
pub(super) fn text(act: Act<'_>) -> String {
    match act {
        Act::Copy { output, renamed: None } => output.0.to_string(),
        Act::Copy { output, renamed: Some(name) } => {
            format!("{} {}", output.0, String::from_utf8_lossy(name))
        }
        Act::Relay { relay, renamed: None } => format!("t{}", relay.0),
        Act::Relay { relay, renamed: Some(name) } => {
            format!("t{} {}", relay.0, String::from_utf8_lossy(name))
        }
        Act::Feed { aggregation_rule, compute, name } => {
            format!("+{aggregation_rule}.{compute} {}", String::from_utf8_lossy(name))
        }
        Act::Invalid { log } => if log { "logged" } else { "invalid" }.into(),
    }
}

/// The actions for a line according to the decision for its name.
pub(super) fn decided(router: &Router, name: &str, rest: &str) -> (Vec<String>, Routing) {
    let decision = router.decide(Entry::Records, name.as_bytes());
    let line = Line { name: name.as_bytes(), rest: rest.as_bytes() };
    let mut acts = Vec::new();
    let routing = decision.run(router, line, 0, &mut |act| acts.push(text(act)));
    (acts, routing)
}

/// The same as one text: `0, 1 x.y; Stopped`.
pub(super) fn routed(router: &Router, name: &str, rest: &str) -> String {
    let (acts, routing) = decided(router, name, rest);
    format!("{}; {:?}", acts.join(", "), routing.end)
}
