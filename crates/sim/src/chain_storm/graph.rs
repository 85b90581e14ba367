//! A random graph of relays, an aggregation and outputs, and what it should do with a line.
//!
//! The expectation comes from the explanations of the relays (`pipeline::explain_chain`), which evaluate rules in another way than
//! the shard. No cluster fails over: then copies do not depend on endpoints.

use std::collections::BTreeMap;

use config::diagnostic::Source;
use config::plan::{Feed, Plan, TransformKind};
use model::TransformId;
use pipeline::{ChainExplanation, explain_chain};
use process::relay::{Entry, Line, Router};

use crate::random::Random;

/// Source of points.
pub(super) const LINES: &str = "lines";
/// Source of samples, for the aggregation.
pub(super) const SAMPLES: &str = "app";
/// The aggregation.
pub(super) const STATS: &str = "stats";

const RELAYS_MAX: u64 = 4;
const OUTPUTS: u64 = 4;

/// Patterns of rules. Names of lines begin with `k0`, `k1` or `k2`, or what a rewrite makes of them; aggregates with `stats`.
const PATTERNS: &[&str] = &["^k0", "^k1", "^k2", "^n", "s[0-4]", "stats", "*"];

/// What happens to a line of a name.
#[derive(Clone, Debug, Default)]
pub(super) struct Route {
    /// By output: names under which copies arrive, each with how many.
    pub(super) copies: BTreeMap<usize, BTreeMap<String, u64>>,
    /// By edge between two relays: visits.
    pub(super) visits: BTreeMap<(String, String), u64>,
}

/// See the header.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) plan: Plan,
    relays: Vec<(TransformId, String, Router)>,
}

/// The text of a graph while it grows: who reads from whom.
struct Draft<'a> {
    random: &'a mut Random,
    from: BTreeMap<String, Vec<String>>,
}

impl Draft<'_> {
    fn feed(&mut self, taker: &str, giver: &str) {
        let from = self.from.entry(taker.to_owned()).or_default();
        if !from.iter().any(|known| known == giver) {
            from.push(giver.to_owned());
        }
    }

    /// Feeds a node from the outside by chance, and in any case if nothing else does.
    fn feed_from_outside(&mut self, taker: &str) {
        for giver in [LINES, STATS] {
            if self.random.chance(25) {
                self.feed(taker, giver);
            }
        }
        if !self.from.contains_key(taker) {
            self.feed(taker, LINES);
        }
    }

    /// Clusters and rules of the relay of that number among so many.
    fn relay(&mut self, at: u64, relays: u64) -> String {
        let name = format!("r{at}");
        let nodes: Vec<String> = (at + 1..relays)
            .map(|next| format!("r{next}"))
            .chain((0..OUTPUTS).map(|at| format!("o{at}")))
            .collect();
        let mut text = String::new();
        let clusters = self.random.between(1, 3);
        for cluster in 0..clusters {
            let mut members: Vec<&String> = nodes.iter().filter(|_| self.random.chance(40)).collect();
            if members.is_empty() {
                members.push(self.random.pick(&nodes));
            }
            let kind = *self.random.pick(&["forward", "fnv1a_ch", "jump_fnv1a_ch"]);
            text +=
                &format!("[transforms.{name}.clusters.c{cluster}]\ntype = \"{kind}\"\nto = {members:?}\n");
            for member in members.into_iter().cloned().collect::<Vec<_>>() {
                self.feed(&member, &name);
            }
        }
        for _ in 0..self.random.between(1, 5) {
            let pattern = *self.random.pick(PATTERNS);
            text += &format!("[[transforms.{name}.rules]]\nmatch = \"{pattern}\"\n");
            if pattern.starts_with("^k") && self.random.chance(30) {
                text += &format!("into = \"n{}\"\n", &pattern[2..]);
                continue;
            }
            let to = format!("c{}", self.random.below(clusters));
            text += &format!("to = \"{to}\"\nstop = {}\n", self.random.chance(25));
        }
        text
    }
}

/// The text of a native config.
fn text(random: &mut Random, on_disk: bool) -> String {
    let relays = random.between(1, RELAYS_MAX);
    let mut draft = Draft { random, from: BTreeMap::new() };
    draft.feed("r0", LINES);
    let bodies: Vec<String> = (0..relays).map(|at| draft.relay(at, relays)).collect();
    let mut text = format!(
        "[sources.{LINES}]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:2003\"]\n\
         [sources.{SAMPLES}]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:8125\"]\n\
         [transforms.{STATS}]\ntype = \"aggregate\"\nfrom = [\"{SAMPLES}\"]\nwindow = \"5s\"\n"
    );
    for (at, body) in bodies.into_iter().enumerate() {
        let name = format!("r{at}");
        draft.feed_from_outside(&name);
        let once = draft.random.chance(20);
        text += &format!(
            "[transforms.{name}]\ntype = \"relay\"\nfrom = {:?}\nonce = {once}\n{body}",
            draft.from[&name]
        );
    }
    // Something always reads the aggregates.
    draft.feed("o0", STATS);
    for at in 0..OUTPUTS {
        let name = format!("o{at}");
        draft.feed_from_outside(&name);
        let kind = if on_disk { "disk" } else { "memory" };
        text += &format!(
            "[outputs.{name}]\ntype = \"graphite\"\nfrom = {:?}\nto = [\"tcp://10.0.0.{at}:2003\"]\n\
             queue = {{ kind = \"{kind}\" }}\n",
            draft.from[&name]
        );
    }
    text
}

impl Graph {
    pub(super) fn new(random: &mut Random, on_disk: bool) -> Graph {
        let text = text(random, on_disk);
        let (plan, wrong) = config::check(Source { name: "chain.toml", text: &text }, config::Format::Toml);
        let mut plan = plan.unwrap_or_else(|| panic!("{wrong:?}\n{text}"));
        for output in &mut plan.outputs {
            if random.chance(30) {
                output.queue.bytes_max = random.between(2_000, 50_000);
            }
        }
        let relays = plan.relays().map(|(id, transform, relay)| {
            let router = Router::new(&relay.plan).expect("the check has made it");
            (id, transform.name.clone(), router)
        });
        let relays = relays.collect();
        Graph { plan, relays }
    }

    /// Without the last rule of each relay that sends somewhere, which is a bug that a storm has to find.
    pub(super) fn without_last_rules(&self) -> Plan {
        let mut plan = self.plan.clone();
        for transform in &mut plan.transforms {
            if let TransformKind::Relay(relay) = &mut transform.kind {
                relay.plan.statements.pop();
            }
        }
        plan
    }

    fn chain(&self, first: &str, line: Line<'_>) -> ChainExplanation {
        let mut explain = |id: Option<TransformId>, line: Line<'_>| {
            let is_it = |(known, name, _): &&(TransformId, String, Router)| match id {
                Some(id) => *known == id,
                None => name == first,
            };
            let (.., router) = self.relays.iter().find(is_it)?;
            Some(router.explain(Entry::Records, line, 0))
        };
        explain_chain(line, &mut explain).expect("every relay answers")
    }

    /// What happens to a line of a source, or a point of the aggregation.
    pub(super) fn route(&self, giver: &str, name: &str) -> Route {
        let mut route = Route::default();
        let is_fed = |from: &[Feed]| from.iter().any(|feed| self.plan.name_of(*feed) == giver);
        let mut copy = |output: usize, name: &str| {
            *route.copies.entry(output).or_default().entry(name.to_owned()).or_default() += 1;
        };
        for (at, _) in self.plan.outputs.iter().enumerate().filter(|(_, output)| is_fed(&output.from)) {
            copy(at, name);
        }
        for first in
            self.plan.transforms.iter().filter(|first| first.kind.as_relay().is_some() && is_fed(&first.from))
        {
            let chain = self.chain(&first.name, Line { name: name.as_bytes(), rest: b"" });
            for (_, _, output, name) in chain.sent() {
                copy(output.index(), &String::from_utf8_lossy(name));
            }
            for visit in &chain.visits {
                let Some(by) = visit.by else { continue };
                let name_of = |id: Option<TransformId>| match id {
                    Some(id) => self.plan.transforms[id.index()].name.clone(),
                    None => first.name.clone(),
                };
                let edge = (name_of(chain.visits[by.visit].relay), name_of(visit.relay));
                *route.visits.entry(edge).or_default() += 1;
            }
        }
        route
    }
}
