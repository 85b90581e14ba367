//! What is explained of a name is what the shard does with it, in random chains of relays.

#[allow(dead_code, reason = "other tests use the rest of it")]
mod world;

use std::collections::BTreeMap;

use config::plan::Feed;
use model::{OutputId, TransformId};
use pipeline::explain_chain;
use process::relay::{Entry, Line, Router};
use proptest::prelude::*;
use world::{START, World, plan_of};

const OUTPUTS: usize = 4;

/// Patterns of which some match the names of [`NAMES`], and of what the rewrites make of them.
const PATTERNS: [&str; 6] = ["*", "^a", "b$", "x", "^n", "^a.*b"];
const NAMES: [&str; 6] = ["a.b", "a.x;t=v", "x.b", "c", "a", "xx.b.b"];
const INTO: [&str; 3] = ["n.", "x", "a.n"];

/// Clusters, each without `replication`. Not `lb`: whose turn it is depends on what came before.
const TYPES: [&str; 6] = ["forward", "any_of", "failover", "carbon_ch", "jump_fnv1a_ch", "fnv1a_ch"];

/// A rule of a relay: pattern, what it makes of names, whether it validates, stops, and the places of its clusters.
#[derive(Clone, Debug)]
struct Rule {
    pattern: usize,
    into: Option<usize>,
    validates: bool,
    stops: bool,
    to: Vec<usize>,
}

/// A relay: for each cluster its type and which nodes are its members, and the rules.
#[derive(Clone, Debug)]
struct Relay {
    clusters: Vec<(usize, Vec<bool>)>,
    rules: Vec<Rule>,
    once: bool,
}

fn rule() -> impl Strategy<Value = Rule> {
    let into = prop::option::weighted(0.3, 0..INTO.len());
    let to = prop::collection::vec(0..3usize, 1..3);
    (0..PATTERNS.len(), into, prop::bool::weighted(0.1), prop::bool::weighted(0.2), to)
        .prop_map(|(pattern, into, validates, stops, to)| Rule { pattern, into, validates, stops, to })
}

fn relay() -> impl Strategy<Value = Relay> {
    let cluster = (0..TYPES.len(), prop::collection::vec(prop::bool::weighted(0.6), 7));
    let clusters = prop::collection::vec(cluster, 1..4);
    (clusters, prop::collection::vec(rule(), 1..6), prop::bool::weighted(0.2))
        .prop_map(|(clusters, rules, once)| Relay { clusters, rules, once })
}

/// Relays and outputs that relay `at` of so many may send to.
fn nodes(at: usize, relays: usize) -> Vec<String> {
    (at + 1..relays).map(|next| format!("r{next}")).chain((0..OUTPUTS).map(|at| format!("o{at}"))).collect()
}

/// The config, with only the edges that a cluster uses.
fn text(relays: &[Relay]) -> String {
    let mut from: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut text = "[sources.points]\ntype = \"graphite\"\n".to_owned();
    for (at, relay) in relays.iter().enumerate() {
        let nodes = nodes(at, relays.len());
        let mut clusters = String::new();
        for (number, (kind, wanted)) in relay.clusters.iter().enumerate() {
            let mut members: Vec<&String> =
                nodes.iter().zip(wanted).filter(|(_, wanted)| **wanted).map(|(node, _)| node).collect();
            if members.is_empty() {
                members.push(&nodes[number % nodes.len()]);
            }
            for member in &members {
                let givers = from.entry((*member).clone()).or_default();
                let giver = format!("r{at}");
                if !givers.contains(&giver) {
                    givers.push(giver);
                }
            }
            let kind = TYPES[*kind];
            clusters +=
                &format!("[transforms.r{at}.clusters.c{number}]\ntype = \"{kind}\"\nto = {members:?}\n");
        }
        let mut rules = String::new();
        for rule in &relay.rules {
            rules += &format!("[[transforms.r{at}.rules]]\nmatch = \"{}\"\n", PATTERNS[rule.pattern]);
            if let Some(into) = rule.into.filter(|_| PATTERNS[rule.pattern] != "*") {
                rules += &format!("into = \"{}\"\n", INTO[into]);
                continue;
            }
            let to: Vec<String> =
                rule.to.iter().map(|at| format!("c{}", at % relay.clusters.len())).collect();
            rules += &format!("to = {to:?}\nstop = {}\n", rule.stops);
            if rule.validates {
                rules += "validate = \"^[0-4]\"\n";
            }
        }
        let fed = match at {
            0 => "\"points\"".to_owned(),
            _ => "FROM".to_owned() + &at.to_string(),
        };
        text += &format!(
            "[transforms.r{at}]\ntype = \"relay\"\nfrom = [{fed}]\nonce = {}\n{clusters}{rules}",
            relay.once
        );
    }
    for at in 1..relays.len() {
        let givers = from.remove(&format!("r{at}")).unwrap_or_else(|| vec!["points".into()]);
        text = text.replace(&format!("[FROM{at}]"), &format!("{givers:?}"));
    }
    for at in 0..OUTPUTS {
        let givers = from.remove(&format!("o{at}")).unwrap_or_else(|| vec!["points".into()]);
        text += &format!(
            "[outputs.o{at}]\ntype = \"graphite\"\nfrom = {givers:?}\nto = [\"tcp://10.0.0.{at}:2003\"]\n"
        );
    }
    text
}

/// Lines by output, sorted.
type Lines = BTreeMap<String, Vec<String>>;

fn sent(world: &mut World) -> Lines {
    world.shard.close_blocks(START, &mut world.routed);
    let mut sent = Lines::new();
    for (output, block) in world.routed.blocks.drain(..) {
        let lines = String::from_utf8_lossy(&block.bytes).into_owned();
        let of_output = sent.entry(world.plan.outputs[output.index()].name.clone()).or_default();
        of_output.extend(lines.lines().map(str::to_owned));
    }
    sent.values_mut().for_each(|lines| lines.sort_unstable());
    sent
}

/// Nodes among `names` that take from the source: those that no relay uses, too.
fn fed_by_source<'a>(
    world: &'a World,
    names: impl Iterator<Item = (&'a String, &'a Vec<Feed>)>,
) -> Vec<String> {
    let of_source = |from: &Vec<Feed>| from.iter().any(|feed| world.plan.name_of(*feed) == "points");
    names.filter(|(_, from)| of_source(from)).map(|(name, _)| name.clone()).collect()
}

/// What the explanations of all relays that the source feeds say of one line, and what the source sends to outputs by itself.
fn explained(world: &World, name: &str, rest: &str) -> Lines {
    let (plain, tags) = name.split_at(name.find(';').unwrap_or(name.len()));
    let of_validate = format!("{tags}{}{rest}", if tags.is_empty() { "" } else { " " });
    let line = Line { name: plain.as_bytes(), rest: of_validate.as_bytes() };
    let mut lines = Lines::new();
    for first in fed_by_source(world, world.plan.transforms.iter().map(|relay| (&relay.name, &relay.from))) {
        let relays = world.shard.relays_to_ask(&first).expect("it is there");
        let routers: Vec<(Option<TransformId>, Router)> =
            relays.into_iter().map(|relay| (relay.id, relay.router.into_router())).collect();
        let mut explain = |relay: Option<TransformId>, line: Line<'_>| {
            let (_, router) = routers.iter().find(|(id, _)| *id == relay)?;
            Some(router.explain(Entry::Records, line, 0))
        };
        let chain = explain_chain(line, &mut explain).expect("every relay answers");
        assert_eq!(chain.unexplained, 0);
        for (visit, _, output, name) in chain.sent() {
            let way = chain.way_to(visit);
            assert!(way[0] == 0 && way.last() == Some(&visit) && way.is_sorted());
            let line = format!("{}{tags} {rest}", String::from_utf8_lossy(name));
            lines.entry(world.plan.outputs[output.index()].name.clone()).or_default().push(line);
        }
    }
    for output in fed_by_source(world, world.plan.outputs.iter().map(|output| (&output.name, &output.from))) {
        lines.entry(output).or_default().push(format!("{name} {rest}"));
    }
    lines.values_mut().for_each(|lines| lines.sort_unstable());
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn explained_copies_are_those_that_the_shard_sends(
        relays in prop::collection::vec(relay(), 1..5),
        down in prop::collection::vec(prop::bool::weighted(0.3), OUTPUTS),
        value in 1..9u32,
    ) {
        let mut world = World::new(plan_of(&text(&relays)), 1);
        for (at, is_down) in down.iter().enumerate() {
            world.shard.set_member_live(OutputId(at as u16), !is_down);
        }
        for name in NAMES {
            let rest = format!("{value} 5");
            let want = explained(&world, name, &rest);
            world.send(&format!("{name} {rest}\n"), START);
            prop_assert_eq!(sent(&mut world), want, "{}: {}", name, text(&relays));
        }
    }
}
