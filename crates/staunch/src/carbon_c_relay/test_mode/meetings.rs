//! The matching rules of a name, in the output format of carbon-c-relay's test mode (spec graphite §2.11).
//!
//! Path: a line of stdin -> `process::relay::Router::explain` -> text. The rules' texts come from the document, the
//! decisions from the router: the output shows what the relay does. Where the original's test mode differs from its own
//! relay, ours follows the relay: tags are not part of the name.

use std::io::Write;

use import::relay::{AggregateRule, Cluster, MatchRule, Pattern, RelayConf, Rule, lower, stub};
use process::relay::{
    Class, ClusterId, Distribution, Entry, Explanation, Line, Member, RelayPlan, Router, RuleAction,
    RuleMatch, Sent, To,
};

use crate::route_explanation::{GaveUpAt, gave_up_at};

/// A configuration for matching names.
pub(crate) struct Meetings<'a> {
    conf: &'a RelayConf,
    plan: RelayPlan,
    router: Router,
    debug: bool,
    tags_are_name: bool,
}

/// A parsed line of stdin.
pub(crate) struct Parts<'a> {
    /// Up to the first space, including tags.
    shown: &'a [u8],
    pub(crate) line: Line<'a>,
    tags: &'a [u8],
    /// The text after the name with its space; one space if there is none.
    tail: Vec<u8>,
}

impl<'a> Parts<'a> {
    /// With `tags_are_name`, a `;` does not end the name.
    pub(crate) fn of(text: &'a [u8], tags_are_name: bool) -> Parts<'a> {
        let space = text.iter().position(|byte| matches!(byte, b' ' | b'\t'));
        let shown = &text[..space.unwrap_or(text.len())];
        let tags_at = shown.iter().position(|byte| *byte == b';' && !tags_are_name);
        let (name, tags) = shown.split_at(tags_at.unwrap_or(shown.len()));
        let behind = space.map_or(&text[text.len()..], |space| &text[space + 1..]);
        let rest = if tags.is_empty() { behind } else { &text[name.len()..] };
        let mut tail = text[name.len()..].to_vec();
        if space.is_none() {
            tail.push(b' ');
        }
        Parts { shown, line: Line { name, rest }, tags, tail }
    }
}

impl<'a> Meetings<'a> {
    /// With `debug`, positions are printed, and results of aggregations are followed. With `tags_are_name`, a `;` does
    /// not end the name.
    pub(crate) fn new(conf: &'a RelayConf, debug: bool, tags_are_name: bool) -> Meetings<'a> {
        let plan = lower(conf).plan;
        let router = Router::new(&plan).expect("the check of the configuration made this router before");
        Meetings { conf, plan, router, debug, tags_are_name }
    }

    /// Writes the matching rules of a line's name. Returns the expressions whose search reached a limit, which the
    /// original does not have; `place` as in [`Way::new`](crate::route_explanation::Way::new).
    pub(crate) fn write(
        &self,
        text: &[u8],
        out: &mut Vec<u8>,
        place: &dyn Fn(usize, usize) -> String,
    ) -> Vec<GaveUpAt> {
        let parts = Parts::of(text, self.tags_are_name);
        let Explanation { matches: meetings, gave_up, .. } =
            self.router.explain(Entry::Records, parts.line, 0);
        for meeting in &meetings {
            self.meeting(meeting, &parts, out);
        }
        if meetings.is_empty() {
            line(out, 0, &[b"nothing matched ", parts.shown]);
        }
        gave_up.iter().filter_map(|at| gave_up_at(&self.plan, *at, place)).collect()
    }

    fn meeting(&self, meeting: &RuleMatch, parts: &Parts<'_>, out: &mut Vec<u8>) {
        let rule = &self.conf.rules[meeting.statement];
        let kind = match rule {
            Rule::Match(_) => "match",
            Rule::Rewrite(_) => "rewrite",
            Rule::Aggregate(_) => "aggregation",
        };
        let pattern = &rule.patterns()[meeting.expression];
        line(out, 0, &[kind.as_bytes()]);
        let class = self.router.class(meeting.statement, meeting.expression);
        matched(pattern, class, &[&meeting.name, parts.tags], out);
        match rule {
            Rule::Match(rule) => self.match_rule(rule, meeting, parts, out),
            Rule::Rewrite(rule) => rewrite(&rule.into, meeting, parts, out),
            Rule::Aggregate(rule) => self.aggregate(rule, pattern, meeting, parts, out),
        }
        if meeting.stopped {
            line(out, 1, &[b"stop"]);
        }
    }

    fn match_rule(&self, rule: &MatchRule, meeting: &RuleMatch, parts: &Parts<'_>, out: &mut Vec<u8>) {
        if let (Some(validate), Some(valid)) = (&rule.validate, meeting.valid) {
            line(out, 1, &[b"validate"]);
            line(out, 2, &[validate.pattern.written.as_bytes(), b" -> ", parts.line.rest]);
            let fails = if validate.log { "fail -> log" } else { "fail -> drop" };
            line(out, 2, &[if valid { "match" } else { fails }.as_bytes()]);
        }
        match &meeting.action {
            RuleAction::Blackholed => line(out, 1, &[b"blackholed"]),
            RuleAction::Sent(sent) => {
                let using = rule.route_using.as_deref();
                sent.iter().for_each(|sent| self.sent(sent, using, parts, out));
            }
            _ => {}
        }
    }

    fn aggregate(
        &self,
        rule: &AggregateRule,
        pattern: &Pattern,
        meeting: &RuleMatch,
        parts: &Parts<'_>,
        out: &mut Vec<u8>,
    ) {
        let RuleAction::Fed { aggregation_rule, names } = &meeting.action else { return };
        let follows = self.debug && rule.send != To::Nowhere;
        let stub = if follows { stub(meeting.statement) } else { String::new() };
        for (compute, name) in rule.computes.iter().zip(names) {
            let from = format!("{}({stub}{})", compute.word, compute.name);
            let from = if pattern.groups == 0 { &compute.word } else { &from };
            let result = name.as_deref().unwrap_or_default();
            line(out, 1, &[from.as_bytes(), b" -> ", stub.as_bytes(), result, &parts.tail]);
            if follows {
                self.result(*aggregation_rule, result, parts, out);
            }
        }
        match &rule.send {
            To::Clusters(clusters) if !follows => {
                clusters.iter().for_each(|cluster| self.destination(cluster.index(), out));
            }
            To::Blackhole if !follows => line(out, 1, &[b"blackholed"]),
            _ => {}
        }
    }

    /// A cluster for results: the member is unknown before there is a result.
    fn destination(&self, at: usize, out: &mut Vec<u8>) {
        let cluster = &self.conf.clusters[at];
        heading(cluster, out);
        if self.plan.clusters[at].distribution == Distribution::Copies {
            self.plan.clusters[at].members.iter().for_each(|member| self::member(member, out));
        }
    }

    /// The destination of a result according to the original's hidden rule.
    fn result(&self, aggregation_rule: u16, name: &[u8], parts: &Parts<'_>, out: &mut Vec<u8>) {
        line(out, 0, &[b"match"]);
        line(out, 1, &[b"* -> ", name, parts.tags]);
        let explained =
            self.router.explain(Entry::Result(aggregation_rule), Line { name, rest: parts.line.rest }, 0);
        explained.direct.iter().for_each(|sent| self.sent(sent, None, parts, out));
        if explained.direct.is_empty() {
            line(out, 1, &[b"blackholed"]);
        }
        line(out, 1, &[b"stop"]);
    }

    fn sent(&self, sent: &Sent, using: Option<&str>, parts: &Parts<'_>, out: &mut Vec<u8>) {
        let ClusterId(at) = sent.cluster;
        let cluster = &self.conf.clusters[usize::from(at)];
        let plan = &self.plan.clusters[usize::from(at)];
        heading(cluster, out);
        if let (Some(using), Some(key), true) = (using, &sent.key, plan.distribution.follows_route_using()) {
            line(out, 2, &[b"using(", using.as_bytes(), b") -> ", key, &parts.tail]);
        }
        if let (true, true, Some(position)) =
            (self.debug, cluster.kind.word().ends_with("_ch"), sent.position)
        {
            line(out, 2, &[format!("hash_pos({position})").as_bytes()]);
        }
        sent.chosen.iter().for_each(|chosen| member(&plan.members[chosen.member], out));
    }
}

/// The matching expression, and the matched part.
fn matched(pattern: &Pattern, class: Option<&Class>, name: &[&[u8]; 2], out: &mut Vec<u8>) {
    let [name, tags] = name;
    let written = pattern.written.as_bytes();
    let (way, text) = match class {
        None => return line(out, 1, &[b"* -> ", name, tags]),
        Some(_) if pattern.class.is_none() => return line(out, 1, &[b"* -> ", name, tags]),
        Some(Class::Regex) => return line(out, 1, &[written, b" (regex) -> ", name, tags]),
        Some(Class::Contains(text)) => ("strstr", text),
        Some(Class::Begins(text)) => ("strncmp", text),
        Some(Class::Ends(text)) => ("tailcmp", text),
        Some(Class::Equals(text)) => ("strcmp", text),
    };
    line(out, 1, &[written, b" [", way.as_bytes(), b": ", text, b"]"]);
    line(out, 1, &[b"-> ", name, tags]);
}

fn rewrite(into: &str, meeting: &RuleMatch, parts: &Parts<'_>, out: &mut Vec<u8>) {
    let (RuleAction::Renamed(name) | RuleAction::NotRenamed(name)) = &meeting.action else { return };
    line(out, 1, &[b"into(", into.as_bytes(), b") -> ", name, parts.tags]);
}

fn heading(cluster: &Cluster, out: &mut Vec<u8>) {
    line(out, 1, &[format!("{}({})", cluster.kind.word(), cluster.name).as_bytes()]);
}

fn member(member: &Member, out: &mut Vec<u8>) {
    let text = match (member.port, member.host.contains(':')) {
        (0, _) => member.host.clone(),
        (port, true) => format!("[{}]:{port}", member.host),
        (port, false) => format!("{}:{port}", member.host),
    };
    line(out, 2, &[text.as_bytes()]);
}

/// A line, indented by this many levels of four spaces.
fn line(out: &mut Vec<u8>, depth: usize, parts: &[&[u8]]) {
    let _infallible = write!(out, "{:1$}", "", depth * 4);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out.push(b'\n');
}
