//! The rule files as statements of a relay, in carbon's order: blacklist and whitelist; for an aggregator (spec graphite
//! §4.6) rewrites of `[pre]`, aggregation rules, rewrites of `[post]`; then routes.
//!
//! Results of aggregation rules go to the destinations directly, without other rules.
//! Not here: sources and outputs (`plan`), reading files.

use std::collections::BTreeSet;

use graphite::whisper::rules::{AggregationRule as StorageAggregation, SchemaRule};
use process::relay::{
    ClusterId, Distribution, ExpressionPlan, MatchPlan, Member, RelayCluster, RelayPlan, Statement, To,
};
use process::sharding::Sharding;

use super::conf::{Conf, Method};
use super::{
    AggregationRule, CarbonDestination, CarbonRelayRules, RewriteRules, aggregation_statements,
    list_statements, relay_statements, rewrite_statements,
};

/// Name of the cluster that hashing and `constant` use.
const DESTINATIONS: &str = "destinations";

/// Content of the rule files.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) relay: Option<CarbonRelayRules>,
    pub(super) rewrite: RewriteRules,
    pub(super) aggregation: Vec<AggregationRule>,
    pub(super) blacklist: Vec<String>,
    pub(super) whitelist: Vec<String>,
    pub(super) schemas: Vec<SchemaRule>,
    pub(super) aggregations: Vec<StorageAggregation>,
    /// storage-aggregation.conf was read.
    pub(super) has_aggregations: bool,
}

/// The relay; `output` maps a destination to an output.
pub(super) fn relay(
    conf: &Conf,
    rules: &Rules,
    output: &mut dyn FnMut(&CarbonDestination) -> model::OutputId,
) -> RelayPlan {
    let (mut statements, forwards) = before_routes(conf, rules);
    if !forwards {
        let clusters = vec![destinations(conf, output)];
        return RelayPlan { clusters, statements, ..RelayPlan::default() };
    }
    let routes = routes(conf, rules, output);
    statements.extend(routes.statements);
    RelayPlan { statements, ..routes }
}

/// The routes alone: of the daemon's own metrics, which pass no other rule.
pub(super) fn routes(
    conf: &Conf,
    rules: &Rules,
    output: &mut dyn FnMut(&CarbonDestination) -> model::OutputId,
) -> RelayPlan {
    let (clusters, statements) = match (conf.method, &rules.relay) {
        (Method::Rules, Some(rules)) => by_rules(rules, output),
        (Method::Rules, None) => (Vec::new(), Vec::new()),
        _ => (vec![destinations(conf, output)], by_hash(conf, rules)),
    };
    // Only needed where a route continues; otherwise no point is sent to an output twice anyway.
    let once = statements.len() > 1
        && statements.iter().any(|route| matches!(route, Statement::Match(route) if !route.stop));
    RelayPlan { clusters, statements, statistics: To::Nowhere, once }
}

/// The same with one cluster for everything: the store of a cache or an aggregator-cache.
pub(super) fn to_cluster(conf: &Conf, rules: &Rules, cluster: RelayCluster) -> RelayPlan {
    let (mut statements, forwards) = before_routes(conf, rules);
    if forwards {
        let to = To::Clusters(vec![ClusterId(0)]);
        statements.push(Statement::Match(MatchPlan { to, ..MatchPlan::default() }));
    }
    RelayPlan { clusters: vec![cluster], statements, ..RelayPlan::default() }
}

/// Lists, rewrites and aggregations, and whether points that came are forwarded after them.
fn before_routes(conf: &Conf, rules: &Rules) -> (Vec<Statement>, bool) {
    let mut statements = list_statements(&rules.blacklist, &rules.whitelist);
    if !conf.is_aggregator {
        return (statements, true);
    }
    let to = To::Clusters(vec![ClusterId(0)]);
    statements.extend(rewrite_statements(&rules.rewrite.pre));
    statements.extend(aggregation_statements(&rules.aggregation, &to));
    if conf.forward_all {
        statements.extend(rewrite_statements(&rules.rewrite.post));
    } else {
        statements.push(Statement::Match(MatchPlan { to: To::Blackhole, ..MatchPlan::default() }));
    }
    (statements, conf.forward_all)
}

/// The cluster of all DESTINATIONS.
fn destinations(conf: &Conf, output: &mut dyn FnMut(&CarbonDestination) -> model::OutputId) -> RelayCluster {
    let members: Vec<Member> =
        conf.destinations.iter().map(|destination| destination.member(output(destination))).collect();
    let most = members.len().clamp(1, 255) as u8;
    let sharding =
        Sharding::CarbonPython { hash: conf.hash, fast: conf.method.is_fast(), diverse: conf.diverse };
    let distribution = match conf.method {
        Method::Constant | Method::Rules => Distribution::Copies,
        _ => Distribution::Sharded {
            sharding,
            // Carbon sends to all destinations if there are fewer.
            replication: conf.replication.min(most),
            fail_over: conf.dynamic,
        },
    };
    RelayCluster { name: DESTINATIONS.to_owned(), members, distribution }
}

fn by_rules(
    rules: &CarbonRelayRules,
    output: &mut dyn FnMut(&CarbonDestination) -> model::OutputId,
) -> (Vec<RelayCluster>, Vec<Statement>) {
    let (mut clusters, statements) = relay_statements(rules, output);
    let mut taken = BTreeSet::from([config::plan::BLACKHOLE.to_owned()]);
    for cluster in &mut clusters {
        while !taken.insert(cluster.name.clone()) {
            cluster.name.push('_');
        }
    }
    (clusters, statements)
}

/// To the owners of the name, or of each name that an aggregation rule makes of it.
fn by_hash(conf: &Conf, rules: &Rules) -> Vec<Statement> {
    let to = To::Clusters(vec![ClusterId(0)]);
    let mut statements: Vec<Statement> = Vec::new();
    let mut unless: Vec<ExpressionPlan> = Vec::new();
    let (mut seen, mut inputs) = (BTreeSet::new(), BTreeSet::new());
    for rule in rules.aggregation.iter().filter(|_| conf.method.is_aggregated()) {
        let expression = ExpressionPlan::from(&*rule.input);
        if seen.insert((&rule.input, &rule.output)) {
            statements.push(Statement::Match(MatchPlan {
                expressions: vec![expression.clone()],
                route_using: Some(rule.output.clone()),
                to: to.clone(),
                ..MatchPlan::default()
            }));
        }
        if inputs.insert(&rule.input) {
            unless.push(expression);
        }
    }
    statements.push(Statement::Match(MatchPlan { unless, to, ..MatchPlan::default() }));
    statements
}
