//! Converts a document to the routing plan ([`RelayPlan`]), and lists the outputs of the plan.
//!
//! Each server is one output, even if several clusters share it, and so is each file. Expressions and replacements are
//! copied as written: `process::relay` compiles them, and its errors are reported here with their places, so that the
//! daemon accepts every file that `check` accepts.
//! Not here: addresses (`useall` and names are resolved when the daemon runs), queues, listeners.

use std::collections::BTreeMap;

use model::OutputId;
use model::limits::OUTPUTS_MAX;
use process::aggregation_rules::{AggregationRulePlan, ComputePlan, Late};
use process::relay::{
    AggregateStatement, Distribution, ExpressionPlan, MatchPlan, Member, MemberNode, MistakeAt, RelayCluster,
    RelayPlan, RewritePlan, Router, Statement, ValidatePlan,
};

use super::document::*;
use super::mistakes::Mistakes;
use super::pattern::Pattern;
use config::diagnostic::{Code, Place};

/// A plan and its outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    /// How records are routed.
    pub plan: RelayPlan,
    /// The output of each [`OutputId`] of the plan.
    pub outputs: Vec<RelayOutput>,
}

/// One output of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayOutput {
    /// Index into the document's servers.
    Server(usize),
    /// A file that lines are appended to.
    File {
        /// Its path as written.
        path: String,
        /// With the client's address at the start of each line.
        ip: bool,
    },
}

/// The plan of a document.
pub fn lower(conf: &RelayConf) -> Lowered {
    let mut outputs: Vec<RelayOutput> = (0..conf.servers.len()).map(RelayOutput::Server).collect();
    let mut files = BTreeMap::new();
    let clusters = conf.clusters.iter();
    let clusters = clusters.map(|cluster| self::cluster(conf, cluster, &mut outputs, &mut files)).collect();
    let statements = conf.rules.iter().map(statement).collect();
    let plan = RelayPlan { clusters, statements, statistics: conf.statistics.send.clone(), once: false };
    Lowered { plan, outputs }
}

/// Reports errors of the router. If there are other errors already, only its errors about expressions: the rest may
/// follow from statements that were left out.
pub(super) fn check(conf: &RelayConf, mistakes: &mut Mistakes) {
    let is_whole = !mistakes.has_errors();
    let Lowered { plan, outputs } = lower(conf);
    if outputs.len() > OUTPUTS_MAX {
        mistakes.whole(Code::TooMany, format!("there are more than {OUTPUTS_MAX} servers and files"));
        return;
    }
    for refused in Router::new(&plan).err().unwrap_or_default() {
        let span = span_of(conf, refused.at);
        // The syntax of expressions was checked before, so an error now is about a whole expression.
        if refused.within.is_some() {
            let report = mistakes.error(Code::BadExpression, span, refused.why);
            report.label("in this expression").hint_if(refused.hint);
        } else if is_whole {
            mistakes.error(Code::ImportBadValue, span, refused.why);
        }
    }
}

/// The place in the file for a mistake of the router.
fn span_of(conf: &RelayConf, at: MistakeAt) -> Span {
    let nowhere = Span { file: 0, place: Place::new(0, 0) };
    match at {
        // This language has no `unless`.
        MistakeAt::Plan | MistakeAt::Statistics | MistakeAt::Unless { .. } => nowhere,
        MistakeAt::Cluster(id) => conf.clusters.get(id.index()).map_or(nowhere, |cluster| cluster.span),
        MistakeAt::Statement { statement, expression } => {
            let Some(rule) = conf.rules.get(statement) else { return nowhere };
            expression.and_then(|at| rule.patterns().get(at)).map_or(rule.span(), |pattern| pattern.span)
        }
        MistakeAt::Validate { statement } => match conf.rules.get(statement) {
            Some(Rule::Match(MatchRule { validate: Some(validate), .. })) => validate.pattern.span,
            _ => nowhere,
        },
    }
}

/// Indices of the outputs that are files, by path and options: the same file is one output.
type Files = BTreeMap<(String, bool), usize>;

fn cluster(
    conf: &RelayConf,
    cluster: &Cluster,
    outputs: &mut Vec<RelayOutput>,
    files: &mut Files,
) -> RelayCluster {
    let member = |at: &usize| {
        let server = &conf.servers[*at];
        let instance = server.instance.clone();
        // More servers than ids are an error that `check` reports.
        Member {
            node: MemberNode::Output(OutputId(*at as u16)),
            host: server.host.clone(),
            port: server.port,
            instance,
        }
    };
    let (members, distribution) = match &cluster.kind {
        ClusterKind::Servers { distribution, members, .. } => {
            (members.iter().map(member).collect(), distribution.clone())
        }
        ClusterKind::File { ip, paths } => {
            (paths.iter().map(|path| file(path, *ip, outputs, files)).collect(), Distribution::Copies)
        }
    };
    RelayCluster { name: cluster.name.clone(), members, distribution }
}

/// A file as a member.
fn file(path: &str, ip: bool, outputs: &mut Vec<RelayOutput>, files: &mut Files) -> Member {
    let at = *files.entry((path.to_owned(), ip)).or_insert_with(|| {
        outputs.push(RelayOutput::File { path: path.to_owned(), ip });
        outputs.len() - 1
    });
    Member { node: MemberNode::Output(OutputId(at as u16)), host: path.to_owned(), port: 0, instance: None }
}

/// Expressions of a statement; none for `*`.
fn expressions(patterns: &[Pattern]) -> Vec<ExpressionPlan> {
    match patterns {
        [Pattern { class: None, .. }] => Vec::new(),
        _ => patterns.iter().map(Pattern::plan).collect(),
    }
}

fn statement(rule: &Rule) -> Statement {
    let compute = |compute: &Compute| ComputePlan { compute: compute.what, name: compute.name.clone() };
    match rule {
        Rule::Match(rule) => Statement::Match(MatchPlan {
            expressions: expressions(&rule.patterns),
            unless: Vec::new(),
            validate: rule
                .validate
                .as_ref()
                .map(|validate| ValidatePlan { expression: validate.pattern.plan(), log: validate.log }),
            route_using: rule.route_using.clone(),
            to: rule.send.clone(),
            stop: rule.stop,
        }),
        Rule::Rewrite(rule) => Statement::Rewrite(RewritePlan {
            expression: rule.pattern.plan(),
            into: rule.into.clone(),
            every_occurrence: false,
        }),
        Rule::Aggregate(rule) => Statement::Aggregate(AggregateStatement {
            expressions: rule.patterns.iter().map(Pattern::plan).collect(),
            aggregation_rule: AggregationRulePlan {
                every_s: rule.every_s,
                expire_s: rule.expire_s,
                stamp: rule.timestamp,
                computes: rule.computes.iter().map(compute).collect(),
                late: Late::Dropped,
                exact: false,
            },
            to: rule.send.clone(),
            stop: rule.stop,
            replaces: false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use process::aggregation_rules::{Compute as AggregationRuleCompute, Stamp};
    use process::relay::{ClusterId, To};
    use process::sharding::Sharding;

    use super::super::read_text;
    use super::*;

    fn lowered(text: &str) -> Lowered {
        let reading = read_text("relay.conf", text);
        lower(&reading.conf.unwrap_or_else(|| panic!("{text}: {:?}", reading.mistakes)))
    }

    #[test]
    fn clusters_share_outputs_and_statements_keep_their_order() {
        let text = "cluster a forward 10.0.0.1 10.0.0.2; cluster b carbon_ch replication 2 10.0.0.2 10.0.0.3;\n\
            cluster f file /x /y; cluster g file /y; cluster h file ip /y; cluster d fnv1a_ch dynamic 10.0.0.3;\n\
            cluster o failover 10.0.0.9; cluster l lb 10.0.0.8; cluster y any_of 10.0.0.7;\n\
            match * validate x else log route using k send to a f;\n\
            rewrite (a)b into \\1; match q \"*\" send to blackhole;\n\
            aggregate s every 10 seconds expire after 30 seconds timestamp at middle of bucket\n\
              compute median write to m compute percentile9 write to p send to b stop;\n\
            statistics send to g;";
        let Lowered { plan, outputs } = lowered(text);
        let file = |path: &str, ip| RelayOutput::File { path: path.into(), ip };
        assert_eq!(outputs[6..], [file("/x", false), file("/y", false), file("/y", true)]);
        let members = |at: usize| {
            plan.clusters[at]
                .members
                .iter()
                .filter_map(|m| m.node.output())
                .map(|id| id.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (members(0), members(1), members(2), members(3)),
            (vec![0, 1], vec![1, 2], vec![6, 7], vec![7])
        );
        assert_eq!((members(4), members(5)), (vec![8], vec![2]));
        let distribution: Vec<&Distribution> =
            plan.clusters.iter().map(|cluster| &cluster.distribution).collect();
        let placed =
            |sharding, replication, fail_over| Distribution::Sharded { sharding, replication, fail_over };
        assert_eq!(*distribution[1], placed(Sharding::CarbonCh, 2, false));
        assert_eq!(*distribution[5], placed(Sharding::Fnv1aCh, 1, true));
        assert_eq!((distribution[6], distribution[7]), (&Distribution::Failover, &Distribution::RoundRobin));
        assert_eq!(*distribution[8], placed(Sharding::AnyOf, 1, true));
        assert_eq!(plan.statistics, To::Clusters(vec![ClusterId(3)]));
        let Statement::Match(first) = &plan.statements[0] else { panic!("{:?}", plan.statements[0]) };
        assert_eq!((first.expressions.len(), first.route_using.as_deref()), (0, Some("k")));
        let Statement::Match(third) = &plan.statements[2] else { panic!("{:?}", plan.statements[2]) };
        assert_eq!((third.expressions[1].text.as_str(), &third.to, third.stop), ("^", &To::Blackhole, true));
        let Statement::Aggregate(last) = &plan.statements[3] else { panic!("{:?}", plan.statements[3]) };
        assert_eq!((last.aggregation_rule.stamp, last.stop), (Stamp::Middle, true));
        assert_eq!(last.aggregation_rule.computes[1].compute, AggregationRuleCompute::Percentile(9));
    }

    #[test]
    fn errors_of_the_router_are_reported_with_their_place() {
        let members: String = (0..2000).map(|at| format!(" h{at}")).collect();
        let reading =
            read_text("relay.conf", &format!("match a send to blackhole;\ncluster c carbon_ch{members};"));
        let wrong = &reading.mistakes[0];
        assert_eq!(wrong.diagnostic.place, Some(Place::new(35, 36)), "{:?}", reading.mistakes);
        assert!(reading.conf.is_none());
    }
}
