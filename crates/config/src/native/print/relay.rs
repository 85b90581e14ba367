//! Relays as native options: the mirror of `native::relay`.

use process::aggregation_rules::{AggregationRulePlan, Compute, Late, Stamp};
use process::relay::{
    AggregateStatement, Distribution, ExpressionPlan, MatchPlan, Member, RelayCluster, RelayPlan,
    RewritePlan, Statement, To,
};
use process::sharding::Sharding;

use super::super::relay::{BLACKHOLE, compute_word, default_plan, distribution_word};
use super::{Out, Section, bare_or_quoted, inline, list, name_of, text, texts};
use crate::options::Section::{RelayRule, TransformRelay};
use crate::options::table::relay::{AGGREGATION_RULE, RELAY};
use crate::plan::{Plan, RelayTransform, TransformPlan};
use crate::text::duration;

/// Longest line of a list; longer ones have a line for each entry.
const LINE_CHARS_MAX: usize = 100;

pub(super) fn print_relay(
    out: &mut Out,
    plan: &Plan,
    sections: &[Section<'_>],
    transform: &TransformPlan,
    relay: &RelayTransform,
) {
    let name = bare_or_quoted(&transform.name);
    out.heading(&format!("transforms.{name}"));
    out.key("type", text("relay"));
    out.key("from", texts(transform.from.iter().filter_map(|feed| name_of(plan, feed))));
    out.options(TransformRelay, &RELAY, relay, &default_plan());
    if relay.plan.statistics != To::Nowhere {
        out.key("statistics", format!("{{ to = {} }}", to(&relay.plan, &relay.plan.statistics)));
    }
    for cluster in &relay.plan.clusters {
        out.heading(&format!("transforms.{name}.clusters.{}", bare_or_quoted(&cluster.name)));
        print_cluster(out, plan, sections, cluster);
    }
    for statement in &relay.plan.statements {
        out.heading(&format!("[transforms.{name}.rules]"));
        match statement {
            Statement::Match(rule) => print_route(out, &relay.plan, rule),
            Statement::Rewrite(rule) => print_rewrite(out, rule),
            Statement::Aggregate(rule) => print_aggregation_rule(out, &relay.plan, rule),
        }
    }
}

fn print_cluster(out: &mut Out, plan: &Plan, sections: &[Section<'_>], cluster: &RelayCluster) {
    out.key("type", text(distribution_word(&cluster.distribution).unwrap_or_default()));
    if let Distribution::Sharded { sharding, replication, fail_over } = &cluster.distribution {
        out.key_unless("replication", replication.to_string(), "1".to_owned());
        out.flag_unless("dynamic", *fail_over, *sharding == Sharding::AnyOf);
        if let Sharding::CarbonPython { diverse, .. } = sharding {
            out.flag_unless("diverse_replicas", *diverse, true);
        }
    }
    long_list(out, "to", &members(plan, sections, &cluster.members));
}

/// Members as the file names them: all endpoints of a section that stand together by the section's name.
fn members(plan: &Plan, sections: &[Section<'_>], members: &[Member]) -> Vec<String> {
    let mut names = Vec::with_capacity(members.len());
    let mut rest = members;
    while let Some(member) = rest.first() {
        let section = sections.iter().find(|section| section.first == member.output.index());
        let whole = section.filter(|section| {
            let size = section.outputs.len();
            let alike = |(at, member): (usize, &Member)| {
                member.output.index() == section.first + at && member.instance.is_none()
            };
            size > 1 && rest.len() >= size && rest[..size].iter().enumerate().all(alike)
        });
        if let Some(section) = whole {
            names.push(text(section.name));
            rest = &rest[section.outputs.len()..];
            continue;
        }
        let name = plan.outputs.get(member.output.index()).map_or("", |output| &*output.name);
        names.push(match &member.instance {
            Some(instance) => text(&format!("{name}={instance}")),
            None => text(name),
        });
        rest = &rest[1..];
    }
    names
}

/// A list in one line, or in a line for each entry when that is long.
fn long_list(out: &mut Out, key: &str, values: &[String]) {
    let line = list(values.iter().cloned());
    if line.chars().count() + key.len() <= LINE_CHARS_MAX {
        return out.key(key, line);
    }
    out.line(&format!("{key} = ["));
    values.iter().for_each(|value| out.line(&format!("    {value},")));
    out.line("]");
}

fn to(relay: &RelayPlan, to: &To) -> String {
    match to {
        To::Nowhere => list([]),
        To::Blackhole => text(BLACKHOLE),
        To::Clusters(ids) => {
            let names = ids.iter().filter_map(|id| relay.clusters.get(id.index()));
            texts(names.map(|cluster| &*cluster.name))
        }
    }
}

fn print_to(out: &mut Out, relay: &RelayPlan, to: &To) {
    if *to != To::Nowhere {
        out.key("to", self::to(relay, to));
    }
}

fn print_expressions(out: &mut Out, expressions: &[ExpressionPlan], unless: &[ExpressionPlan]) {
    for (key, plans) in [("match", expressions), ("unless", unless)] {
        if !plans.is_empty() {
            let texts: Vec<String> = plans.iter().map(|expression| written(&expression.text)).collect();
            long_list(out, key, &texts);
        }
    }
    let mut all = expressions.iter().chain(unless);
    out.flag_unless("ignore_case", all.any(|expression| expression.ignore_case), false);
}

fn print_route(out: &mut Out, relay: &RelayPlan, rule: &MatchPlan) {
    if rule.expressions.is_empty() {
        // Said although it is the default: a rule without it looks as if something were missing.
        out.key("match", text("*"));
    }
    print_expressions(out, &rule.expressions, &rule.unless);
    if let Some(validate) = &rule.validate {
        out.key("validate", written(&validate.expression.text));
        out.key_unless("on_invalid", text(if validate.log { "log" } else { "drop" }), text("log"));
    }
    if let Some(key) = &rule.route_using {
        out.key("key", written(key));
    }
    print_to(out, relay, &rule.to);
    out.flag_unless("stop", rule.stop, false);
}

fn print_rewrite(out: &mut Out, rule: &RewritePlan) {
    print_expressions(out, std::slice::from_ref(&rule.expression), &[]);
    out.key("into", written(&rule.into));
    out.flag_unless("all", rule.every_occurrence, false);
}

fn print_aggregation_rule(out: &mut Out, relay: &RelayPlan, rule: &AggregateStatement) {
    let seconds = |seconds: u32| text(&duration(u64::from(seconds) * 1000));
    let aggregation_rule = &rule.aggregation_rule;
    print_expressions(out, &rule.expressions, &[]);
    out.key("every", seconds(aggregation_rule.every_s));
    out.key("expire", seconds(aggregation_rule.expire_s));
    let pair = |(compute, name): (Compute, &str)| (compute_word(compute), written(name));
    let computes = || aggregation_rule.computes.iter().map(|compute| (compute.compute, &*compute.name));
    let distinct =
        aggregation_rule.computes.iter().enumerate().all(|(at, one)| {
            !aggregation_rule.computes[..at].iter().any(|other| other.compute == one.compute)
        });
    if distinct {
        out.key("compute", inline(computes().map(pair)));
    } else {
        let each: Vec<String> = computes().map(|compute| inline([pair(compute)])).collect();
        long_list(out, "compute", &each);
    }
    let default = AggregationRulePlan {
        stamp: Stamp::End,
        late: Late::Dropped,
        exact: false,
        ..aggregation_rule.clone()
    };
    out.options(RelayRule, &AGGREGATION_RULE, aggregation_rule, &default);
    print_to(out, relay, &rule.to);
    out.flag_unless("stop", rule.stop, false);
    out.flag_unless("replaces", rule.replaces, false);
}

/// An expression or a replacement: within `'…'`, where no `\` is doubled, if it can stand there.
fn written(expression: &str) -> String {
    let literal =
        expression.contains(['\\', '"']) && !expression.contains(|c: char| c == '\'' || c.is_control());
    if literal { format!("'{expression}'") } else { text(expression) }
}
