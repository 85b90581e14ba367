//! A relay as a section that parses to the same relay.

use process::aggregation_rules::{ComputePlan, Late, Stamp};
use process::relay::{
    AggregateStatement, Distribution, ExpressionPlan, MatchPlan, Member, RelayCluster, RelayPlan,
    RewritePlan, Statement, To,
};
use process::sharding::Sharding;

use super::clusters::distribution_word;
use super::rules::compute_word;
use crate::diagnostic::Place;
use crate::native::fields::Fields;
use crate::native::output_group::OutputGroup;
use crate::options::Section;
use crate::options::checked::Checked;
use crate::options::field::{Form, Table};
use crate::options::table::relay::{RuleOptions, Target};
use crate::plan::{BLACKHOLE, Feed, Plan, RelayTransform};

/// The section of a relay.
pub(in crate::native) fn fields(
    plan: &Plan,
    groups: &[OutputGroup<'_>],
    from: &[Feed],
    transform: &RelayTransform,
) -> Fields {
    let mut fields = Fields::node(Section::TransformRelay, plan.names_of(from));
    fields.give_table(transform);
    let relay = &transform.plan;
    if let Some(to) = Target::checked(&names(relay, &relay.statistics)) {
        let mut statistics = Fields::empty(Section::RelayStatistics);
        statistics.give_value("to", to);
        fields.give_value("statistics", Checked::Table(statistics));
    }
    let cluster = |cluster: &RelayCluster| (cluster.name.clone(), cluster_fields(plan, groups, cluster));
    fields.give_value("clusters", Checked::NamedTables(relay.clusters.iter().map(cluster).collect()));
    let rules = relay.statements.iter().map(|statement| rule_fields(relay, statement));
    fields.give_value("rules", Checked::Tables(rules.collect()));
    fields
}

fn cluster_fields(plan: &Plan, groups: &[OutputGroup<'_>], cluster: &RelayCluster) -> Fields {
    let mut fields = Fields::empty(Section::RelayCluster);
    let word = distribution_word(&cluster.distribution).unwrap_or_default();
    fields.give_value("type", Checked::Word(word));
    if let Distribution::Sharded { sharding, replication, fail_over } = &cluster.distribution {
        let flag = Checked::Flag;
        fields.give_value_unless("replication", Checked::Whole((*replication).into()), Checked::Whole(1));
        fields.give_value_unless("dynamic", flag(*fail_over), flag(*sharding == Sharding::AnyOf));
        if let Sharding::CarbonPython { diverse, .. } = sharding {
            fields.give_value_unless("diverse_replicas", flag(*diverse), flag(true));
        }
    }
    fields.give_value("to", Checked::texts(members(plan, groups, &cluster.members)));
    fields
}

/// Members with their names in the file: all consecutive endpoints of a group by the group's name.
fn members(plan: &Plan, groups: &[OutputGroup<'_>], members: &[Member]) -> Vec<String> {
    let mut names = Vec::with_capacity(members.len());
    let mut rest = members;
    while let Some(member) = rest.first() {
        let place = |member: &Member| member.node.output().map(|output| output.index());
        let group = groups.iter().find(|group| Some(group.first) == place(member));
        let whole = group.filter(|group| {
            let size = group.outputs.len();
            let alike = |(at, member): (usize, &Member)| {
                place(member) == Some(group.first + at) && member.instance.is_none()
            };
            size > 1 && rest.len() >= size && rest[..size].iter().enumerate().all(alike)
        });
        if let Some(group) = whole {
            names.push(group.name.to_owned());
            rest = &rest[group.outputs.len()..];
            continue;
        }
        let name = plan.member_name(member.node);
        names.push(match &member.instance {
            Some(instance) => format!("{name}={instance}"),
            None => name.to_owned(),
        });
        rest = &rest[1..];
    }
    names
}

fn names(relay: &RelayPlan, to: &To) -> Option<Vec<String>> {
    match to {
        To::Nowhere => None,
        To::Blackhole => Some(vec![BLACKHOLE.to_owned()]),
        To::Clusters(ids) => {
            let clusters = ids.iter().filter_map(|id| relay.clusters.get(id.index()));
            Some(clusters.map(|cluster| cluster.name.clone()).collect())
        }
    }
}

/// Order of the options of a rule: names, processing, destinations.
const ORDER: &str = "match unless ignore_case validate on_invalid key into all every expire compute stamp late \
                     exact to stop replaces";

fn rule_fields(relay: &RelayPlan, statement: &Statement) -> Fields {
    let mut rule = RuleOptions::empty(None);
    let texts = |plans: &[ExpressionPlan]| plans.iter().map(|plan| plan.text.clone()).collect();
    match statement {
        Statement::Match(MatchPlan { expressions, unless, validate, route_using, to, stop }) => {
            (rule.expressions, rule.unless) = (texts(expressions), texts(unless));
            rule.ignore_case = expressions.iter().chain(unless).any(|expression| expression.ignore_case);
            rule.validate = validate.as_ref().map(|validate| validate.expression.text.clone());
            rule.silent = validate.as_ref().is_some_and(|validate| !validate.log);
            rule.key.clone_from(route_using);
            (rule.to, rule.stop) = (names(relay, to), *stop);
        }
        Statement::Rewrite(RewritePlan { expression, into, every_occurrence }) => {
            rule.expressions = vec![expression.text.clone()];
            rule.ignore_case = expression.ignore_case;
            rule.into = Some(into.clone());
            rule.every_occurrence = *every_occurrence;
        }
        Statement::Aggregate(AggregateStatement { expressions, aggregation_rule, to, stop, replaces }) => {
            rule.expressions = texts(expressions);
            rule.ignore_case = expressions.iter().any(|expression| expression.ignore_case);
            rule.every_ms = Some(u64::from(aggregation_rule.every_s) * 1000);
            rule.expire_ms = Some(u64::from(aggregation_rule.expire_s) * 1000);
            let pair = |of: &ComputePlan| ((compute_word(of.compute), Place::new(0, 0)), of.name.clone());
            rule.computes = aggregation_rule.computes.iter().map(pair).collect();
            rule.stamp = (aggregation_rule.stamp != Stamp::End).then_some(aggregation_rule.stamp);
            rule.late = (aggregation_rule.late != Late::Dropped).then_some(aggregation_rule.late);
            rule.exact = aggregation_rule.exact;
            (rule.to, rule.stop, rule.replaces) = (names(relay, to), *stop, *replaces);
        }
    }
    let mut fields = Fields::of(&rule);
    if rule.expressions.is_empty() {
        // Written although it is the default, because a rule without it looks incomplete.
        fields.give_value("match", Checked::Text("*".to_owned()));
    }
    fields.sort_by_key(|key| ORDER.split(' ').position(|known| known == key));
    fields
}
