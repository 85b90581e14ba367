//! relay-rules.conf: chooses destinations by expressions on the name.

use std::collections::BTreeSet;

use model::OutputId;
use process::relay::{
    ClusterId, Distribution, ExpressionPlan, MatchPlan, Member, MemberNode, RelayCluster, Statement, To,
};

use super::ini::Entry;
use super::{RULES_MAX, expression, ini};
use crate::report::Reports;
use config::diagnostic::{Code, Diagnostic, Place, has_errors};

/// Content of a relay-rules.conf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarbonRelayRules {
    /// In the order of the file.
    pub rules: Vec<CarbonRelayRule>,
    /// Destinations of records that no rule ended.
    pub default: Vec<CarbonDestination>,
}

/// One section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarbonRelayRule {
    /// Its name.
    pub name: String,
    /// Searched in the name, ignoring case; in the relay's syntax.
    pub pattern: String,
    /// At least one, unless none of them is known.
    pub destinations: Vec<CarbonDestination>,
    /// Later rules are tried as well.
    pub continues: bool,
}

/// `host:port[:instance]`
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CarbonDestination {
    /// Name or address without brackets.
    pub host: String,
    /// Port, never 0.
    pub port: u16,
    /// Its name on hash rings.
    pub instance: Option<String>,
}

impl CarbonDestination {
    /// A member of a cluster, whose points go to `output`.
    pub(super) fn member(&self, output: OutputId) -> Member {
        Member {
            node: MemberNode::Output(output),
            host: self.host.clone(),
            port: self.port,
            instance: self.instance.clone(),
        }
    }
}

/// Reads the file. With `known`, the DESTINATIONS of carbon.conf, other destinations are left out, as in carbon.
pub fn relay_rules(
    text: &str,
    known: Option<&[CarbonDestination]>,
) -> (Option<CarbonRelayRules>, Vec<Diagnostic>) {
    let mut wrong = Vec::new();
    let known: Option<BTreeSet<&CarbonDestination>> = known.map(|known| known.iter().collect());
    let mut rules = CarbonRelayRules { rules: Vec::new(), default: Vec::new() };
    let mut default: Option<Place> = None;
    for section in ini::sections(text, &mut wrong).into_iter().take(RULES_MAX) {
        section.warn_unknown(&["pattern", "destinations", "servers", "default", "continue"], &mut wrong);
        let destinations = destinations(&section, known.as_ref(), &mut wrong);
        let says_default = section.get("default").is_some();
        let is_default = says_default && section.flag("default", &mut wrong);
        if !is_default && section.get("pattern").is_none() {
            let message = format!("section `{}` is skipped: it is not a rule", section.name);
            let report = wrong.warning(Code::ImportSkipped, section.place, message);
            report.label("skipped by carbon").hint("add `pattern = EXPRESSION`, or `default = true`");
            continue;
        }
        if says_default && (is_default || section.get("pattern").is_some()) {
            if default.is_some() {
                let report = wrong.error(Code::Repeated, section.place, "two sections are the default");
                report.label("the second one").hint("only one section has `default = true`");
            }
            if let Some(entry) = section.get("pattern") {
                let message = "a section has `pattern` or `default`, and not both";
                let report = wrong.error(Code::ImportBadValue, entry.place, message);
                report.label("the default is for names that match no other section");
            }
            default = Some(section.place);
            rules.default = destinations;
            continue;
        }
        let Some(pattern) = section.get("pattern") else { continue };
        let read = expression::read(&pattern.value, pattern.place.start, true, &mut wrong);
        rules.rules.push(CarbonRelayRule {
            name: section.name.to_owned(),
            pattern: read.map_or_else(String::new, |read| read.text),
            destinations,
            continues: section.flag("continue", &mut wrong),
        });
    }
    if default.is_none() {
        let hint = "add a section with `default = true` and destinations: carbon does not start without";
        wrong.error(Code::MissingKey, None, "no section is the default").hint(hint);
    }
    (Some(rules).filter(|_| !has_errors(&wrong)), wrong)
}

fn destinations(
    section: &ini::Section<'_>,
    known: Option<&BTreeSet<&CarbonDestination>>,
    wrong: &mut Vec<Diagnostic>,
) -> Vec<CarbonDestination> {
    let Some(entry) = section.get("destinations").or_else(|| section.get("servers")) else {
        let message = format!("section `{}` has no `destinations`", section.name);
        let report = wrong.error(Code::MissingKey, section.place, message);
        report.hint("add `destinations = HOST:PORT:INSTANCE, …`");
        return Vec::new();
    };
    let mut destinations = Vec::new();
    for (destination, text) in listed(entry, wrong) {
        if known.is_some_and(|known| !known.contains(&destination)) {
            let message = format!("`{text}` is skipped: it is not in DESTINATIONS of carbon.conf");
            let report = wrong.warning(Code::ImportSkipped, entry.place_of(text), message);
            report.label("skipped by carbon").hint("add it to DESTINATIONS, or remove it here");
            continue;
        }
        destinations.push(destination);
    }
    destinations
}

/// The destinations of a list, with their texts.
pub(super) fn listed<'a>(
    entry: &'a Entry<'_>,
    wrong: &mut Vec<Diagnostic>,
) -> Vec<(CarbonDestination, &'a str)> {
    let mut listed = Vec::new();
    for text in entry.value.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        match destination(text) {
            Some(destination) => listed.push((destination, text)),
            None => {
                let message = format!("`{text}` is not a valid destination");
                let report = wrong.error(Code::ImportBadValue, entry.place_of(text), message);
                report.hint("write HOST:PORT or HOST:PORT:INSTANCE");
            }
        }
    }
    listed
}

/// `HOST:PORT` or `HOST:PORT:INSTANCE`.
fn destination(text: &str) -> Option<CarbonDestination> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]:")?,
        None => text.split_once(':')?,
    };
    let (port, instance) = match rest.split_once(':') {
        Some((port, instance)) if !instance.is_empty() => (port, Some(instance.to_owned())),
        Some(_) => return None,
        None => (rest, None),
    };
    let port = port.parse().ok().filter(|port| *port > 0)?;
    (!host.is_empty()).then(|| CarbonDestination { host: host.to_owned(), port, instance })
}

/// The rules as clusters and statements; `output` maps a destination to an output.
pub fn relay_statements(
    rules: &CarbonRelayRules,
    mut output: impl FnMut(&CarbonDestination) -> OutputId,
) -> (Vec<RelayCluster>, Vec<Statement>) {
    let (mut clusters, mut statements) = (Vec::new(), Vec::new());
    let each = rules.rules.iter().map(|rule| (&*rule.name, Some(rule), &rule.destinations));
    for (name, rule, destinations) in each.chain([("default", None, &rules.default)]) {
        let members: Vec<Member> =
            destinations.iter().map(|destination| destination.member(output(destination))).collect();
        let stop = rule.is_none_or(|rule| !rule.continues);
        // A rule without a destination drops the records that it ends.
        let to = if members.is_empty() && stop {
            To::Blackhole
        } else if members.is_empty() {
            continue;
        } else {
            clusters.push(RelayCluster {
                name: name.to_owned(),
                members,
                distribution: Distribution::Copies,
            });
            To::Clusters(vec![ClusterId((clusters.len() - 1) as u16)])
        };
        let expression =
            |rule: &CarbonRelayRule| ExpressionPlan { text: rule.pattern.clone(), ignore_case: true };
        statements.push(Statement::Match(MatchPlan {
            expressions: rule.map(expression).into_iter().collect(),
            to,
            stop,
            ..MatchPlan::default()
        }));
    }
    (clusters, statements)
}
