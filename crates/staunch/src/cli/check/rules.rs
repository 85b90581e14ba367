//! A relay's clusters and rules as tables.
//!
//! Called by `check`. Not here: the route of one name (`keys`, `route_explanation`). Invariant: no line of the text is
//! wider than a terminal, unless a single word is; the JSON document is complete.

use config::plan::Plan;
use process::relay::{Distribution, RelayCluster, RelayPlan, Statement, To};
use serde::Serialize;

use crate::route_explanation::{compute_word, cut, endpoint, how, kind_and_expression, sharing};

/// Columns of a terminal.
const COLUMNS: usize = 80;
/// Widest column for names and places, and for expressions.
const NAME_COLUMNS_MAX: usize = 20;
const EXPRESSION_COLUMNS_MAX: usize = 34;

/// The place of an expression, by the indexes of its statement and of itself in the statement.
pub(crate) type Place<'a> = dyn Fn(usize, usize) -> String + 'a;

/// One relay.
#[derive(Debug, Serialize)]
pub(crate) struct Rules {
    /// Its transform.
    relay: String,
    clusters: Vec<ClusterRow>,
    rules: Vec<RuleRow>,
}

#[derive(Debug, Serialize)]
struct ClusterRow {
    name: String,
    /// The value of `type`, also in carbon-c-relay.
    sharing: &'static str,
    replication: u8,
    /// Failover to another member when one is down.
    fails_over: bool,
    members: Vec<MemberRow>,
}

#[derive(Debug, Serialize)]
struct MemberRow {
    output: String,
    endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
}

/// One expression of a rule.
#[derive(Debug, Serialize)]
struct RuleRow {
    at: String,
    /// `match`, `rewrite`, `aggregate`.
    kind: &'static str,
    /// `*` for every name.
    expression: String,
    /// `all`, `contains`, `begins`, `ends`, `equals`, `regex`.
    how: &'static str,
    /// Names that match one of these are excluded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unless: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validate: Option<String>,
    /// `log` or `drop`: what becomes of lines that `validate` rejects, beside their outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_invalid: Option<&'static str>,
    /// What is placed in place of the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    into: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    computes: Vec<ComputeRow>,
    /// Destinations of copies or results.
    to: Vec<String>,
    blackhole: bool,
    stops: bool,
}

#[derive(Debug, Serialize)]
struct ComputeRow {
    compute: String,
    every_s: u32,
    expire_s: u32,
    name: String,
}

/// One for each relay, in the order of the plan.
pub(crate) fn of_plan(plan: &Plan, place: &Place<'_>) -> Vec<Rules> {
    let relays = plan.relays().map(|(_, transform, relay)| (&transform.name, &relay.plan));
    let rules = |(name, relay): (&String, &RelayPlan)| Rules {
        relay: name.clone(),
        clusters: relay.clusters.iter().map(|cluster| cluster_row(plan, cluster)).collect(),
        rules: relay.statements.iter().enumerate().flat_map(|(at, _)| rule_rows(relay, at, place)).collect(),
    };
    relays.map(rules).collect()
}

fn cluster_row(plan: &Plan, cluster: &RelayCluster) -> ClusterRow {
    let (replication, fails_over) = match cluster.distribution {
        Distribution::Sharded { replication, fail_over, .. } => (replication, fail_over),
        Distribution::Copies => (1, false),
        Distribution::Failover | Distribution::RoundRobin => (1, true),
    };
    let members = cluster.members.iter().map(|member| MemberRow {
        output: plan.member_name(member.node).to_owned(),
        endpoint: endpoint(member),
        instance: member.instance.clone(),
    });
    let (name, sharing) = (cluster.name.clone(), sharing(cluster));
    ClusterRow { name, sharing, replication, fails_over, members: members.collect() }
}

fn rule_rows(relay: &RelayPlan, at: usize, place: &Place<'_>) -> Vec<RuleRow> {
    let statement = &relay.statements[at];
    let expressions = match statement {
        Statement::Match(rule) => rule.expressions.len().max(1),
        Statement::Rewrite(_) => 1,
        Statement::Aggregate(rule) => rule.expressions.len(),
    };
    (0..expressions).map(|expression| rule_row(relay, at, expression, place(at, expression))).collect()
}

fn rule_row(relay: &RelayPlan, statement: usize, expression: usize, at: String) -> RuleRow {
    let statement = &relay.statements[statement];
    let (kind, expression) = kind_and_expression(statement, expression);
    let mut row = RuleRow {
        at,
        kind,
        expression: expression.map_or("*".into(), |expression| expression.text.clone()),
        how: how(expression),
        unless: Vec::new(),
        validate: None,
        on_invalid: None,
        key: None,
        into: None,
        computes: Vec::new(),
        to: Vec::new(),
        blackhole: false,
        stops: false,
    };
    let to = match statement {
        Statement::Match(rule) => {
            row.unless = rule.unless.iter().map(|expression| expression.text.clone()).collect();
            row.validate = rule.validate.as_ref().map(|validate| validate.expression.text.clone());
            row.on_invalid = rule.validate.as_ref().map(|validate| if validate.log { "log" } else { "drop" });
            row.key = rule.route_using.clone();
            row.stops = rule.stop;
            &rule.to
        }
        Statement::Rewrite(rule) => {
            row.into = Some(rule.into.clone());
            &To::Nowhere
        }
        Statement::Aggregate(rule) => {
            let computes = rule.aggregation_rule.computes.iter().map(|compute| ComputeRow {
                compute: compute_word(compute.compute),
                every_s: rule.aggregation_rule.every_s,
                expire_s: rule.aggregation_rule.expire_s,
                name: compute.name.clone(),
            });
            row.computes = computes.collect();
            row.stops = rule.stop;
            &rule.to
        }
    };
    match to {
        To::Nowhere => {}
        To::Blackhole => row.blackhole = true,
        To::Clusters(clusters) => {
            row.to = clusters.iter().map(|id| relay.clusters[id.index()].name.clone()).collect();
        }
    }
    row
}

impl RuleRow {
    /// Its effect, in parts that are not split between lines.
    fn does(&self) -> Vec<String> {
        let mut parts = Vec::new();
        parts.extend(self.unless.iter().map(|expression| format!("unless {expression}")));
        let validate = self.validate.iter().zip(self.on_invalid);
        parts.extend(
            validate.map(|(expression, otherwise)| format!("validate {expression} else {otherwise}")),
        );
        parts.extend(self.into.iter().map(|into| format!("into {into}")));
        for ComputeRow { compute, every_s, name, .. } in &self.computes {
            parts.push(format!("{compute} of {every_s} s: {name}"));
        }
        match (&self.key, self.to.is_empty()) {
            (_, true) => {}
            (None, false) => parts.push(format!("to {}", self.to.join(" "))),
            (Some(key), false) => parts.push(format!("to {} by {key}", self.to.join(" "))),
        }
        if self.blackhole {
            parts.push("to blackhole".into());
        } else if self.stops {
            parts.push("stop".into());
        }
        parts
    }
}

impl ClusterRow {
    fn shares(&self) -> String {
        let many = if self.replication > 1 { format!(" x{}", self.replication) } else { String::new() };
        // For other types, the name says it.
        let dynamic = self.fails_over && self.sharing.ends_with("_ch");
        format!("{}{many}{}", self.sharing, if dynamic { " dynamic" } else { "" })
    }
}

impl Rules {
    /// A table of the clusters and one of the rules.
    pub(crate) fn text(&self) -> String {
        let (clusters, rules) = (counted(self.clusters.len(), "cluster"), counted(self.rules.len(), "rule"));
        let mut out = format!("relay {}: {clusters}, {rules}\n", self.relay);
        let rows = self.clusters.iter().map(|cluster| {
            let member = |member: &MemberRow| match &member.instance {
                Some(instance) => format!("{}={instance}", member.endpoint),
                None => member.endpoint.clone(),
            };
            let members = cluster.members.iter().map(member).collect();
            ([cut(&cluster.name, NAME_COLUMNS_MAX), cluster.shares()], members)
        });
        table(&mut out, ["cluster", "share"], "members", " ", rows.collect());
        let rows = self.rules.iter().map(|rule| {
            let word = if rule.kind == "match" { "" } else { rule.kind };
            let expression = [word, &rule.expression].join(if word.is_empty() { "" } else { " " });
            ([ends_kept(&rule.at), cut(&expression, EXPRESSION_COLUMNS_MAX)], rule.does())
        });
        table(&mut out, ["rule", "names"], "does", "; ", rows.collect());
        out
    }
}

/// The end of a long place, which has the line number.
fn ends_kept(at: &str) -> String {
    let chars = at.chars().count();
    if chars <= NAME_COLUMNS_MAX {
        return at.to_owned();
    }
    std::iter::once('…').chain(at.chars().skip(chars + 1 - NAME_COLUMNS_MAX)).collect()
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Columns with the needed width; the last one is wrapped between its parts.
fn table(
    out: &mut String,
    headings: [&str; 2],
    last: &str,
    between: &str,
    rows: Vec<([String; 2], Vec<String>)>,
) {
    if rows.is_empty() {
        return;
    }
    let width = |at: usize| {
        let cells = rows.iter().map(|(cells, _)| cells[at].chars().count());
        cells.max().unwrap_or(0).max(headings[at].len())
    };
    let widths = [width(0), width(1)];
    let begin = 2 + widths[0] + 2 + widths[1] + 2;
    let room = COLUMNS - begin;
    let mut line = |first: &str, second: &str, last: &str| {
        let text = format!("  {first:<0$}  {second:<1$}  {last}", widths[0], widths[1]);
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(headings[0], headings[1], last);
    for ([first, second], parts) in &rows {
        let mut lines = vec![String::new()];
        for part in parts {
            let part = cut(part, room);
            let now = lines.last_mut().expect("there is always one");
            if now.is_empty() {
                now.push_str(&part);
            } else if now.chars().count() + between.len() + part.chars().count() <= room {
                now.push_str(between);
                now.push_str(&part);
            } else {
                lines.push(part);
            }
        }
        line(first, second, &lines[0]);
        lines[1..].iter().for_each(|more| line("", "", more));
    }
}

#[test]
fn a_rule_says_what_becomes_of_lines_that_it_rejects() {
    for (on_invalid, want) in
        [("", "log"), ("on_invalid = \"log\"", "log"), ("on_invalid = \"drop\"", "drop")]
    {
        let text = format!(
            "[sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n[transforms.relay]\ntype = \"relay\"\n\
             from = [\"lines\"]\n[transforms.relay.clusters]\nc = {{ type = \"forward\", to = [\"o\"] }}\n\
             [[transforms.relay.rules]]\nvalidate = '^1'\n{on_invalid}\nto = [\"c\"]\n[outputs.o]\ntype = \"graphite\"\n\
             from = [\"relay\"]\nto = [\"tcp://127.0.0.1:1\"]\n"
        );
        let (plan, diagnostics) =
            config::check(config::diagnostic::Source { name: "test", text: &text }, config::Format::Toml);
        let plan = plan.unwrap_or_else(|| panic!("{diagnostics:?}"));
        let rules = of_plan(&plan, &|statement, _| format!("rule {statement}"));
        let table = rules[0].text();
        assert!(table.contains(&format!("validate ^1 else {want}; to c")), "{table}");
        assert_eq!(rules[0].rules[0].on_invalid, Some(want));
    }
}
