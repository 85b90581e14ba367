//! From a plan to the parts of a shard: at the start, and at a reload, which keeps everything that kept its name.

use std::sync::Arc;

use config::kinds::RecordKind;
use config::plan::{AggregateTransform, Plan};
use model::{AckWhen, Now, OutputId, RecordAccount, SourceId, TransformId};
use process::relay::Entry;
use wire::statsd::{Options, Parser};

use super::{Gone, Shard, SourceState};
use crate::encode::{OutputEncoder, Routed};
use crate::intake::protocol::Protocol;
use crate::shard::clusters::ClusterState;
use crate::shard::routes;
use crate::shard::transforms::aggregation::{Aggregation, Fed};
use crate::shard::transforms::chain::{Next, Relays};
use crate::shard::transforms::relay::Relay;
use crate::shard::transforms::results::Results;
use crate::{Accounts, IntakeMaker};

impl Shard {
    /// A shard for `plan` that starts at `now`. `seed` is the seed of the hash of external keys.
    pub fn new(plan: &Plan, accounts: &Accounts, seed: u64, now: Now) -> Shard {
        let mut shard = Shard {
            aggregations: Vec::new(),
            relays: Relays::default(),
            sources: Vec::new(),
            outputs: Vec::new(),
            clusters: Vec::new(),
            down: Vec::new(),
            gone: Gone::default(),
            seed,
        };
        shard.wire(plan, accounts, now, &mut Routed::default());
        shard
    }

    /// Applies a new plan: aggregations and relays that keep their name keep their state, the others have their last
    /// flush, and open blocks are closed. A transform that changed its type counts as removed.
    pub fn reconfigure(&mut self, plan: &Plan, accounts: &Accounts, now: Now, out: &mut Routed) {
        let Shard { aggregations, relays, outputs, gone, .. } = self;
        for state in aggregations.iter_mut() {
            let _all = state.to.route(relays, outputs, now, out, &mut || true);
        }
        let is_aggregate = |name: &str| plan.aggregates().any(|(_, kept, _)| kept.name == name);
        for state in aggregations.iter_mut().filter(|state| !is_aggregate(&state.name)) {
            state.flush_all(outputs, now, out);
            let _all = state.to.route(relays, outputs, now, out, &mut || true);
            gone.note(state);
        }
        for at in relays.in_order() {
            match plan.relays().find(|(_, kept, _)| kept.name == relays.at(at).name) {
                Some((_, _, relay)) => relays.close_rules(at, relay, outputs, now, out),
                None => relays.finish(at, outputs, now, out, &mut || true),
            }
        }
        self.wire(plan, accounts, now, out);
        self.close_lines(now, out);
    }

    fn wire(&mut self, plan: &Plan, accounts: &Accounts, now: Now, out: &mut Routed) {
        let seed = self.seed;
        let read_before: Vec<Options> = self.sources.iter().map(|source| *source.parser.options()).collect();
        self.sources = (0..plan.sources.len())
            .map(|at| SourceState::new(plan, SourceId(at as u16), accounts, seed))
            .collect();
        let mut encoders = std::mem::take(&mut self.outputs).into_iter();
        self.outputs = (0..plan.outputs.len())
            .map(|at| {
                let id = OutputId(at as u16);
                match encoders.next() {
                    // A flush may be in progress: its document or frame continues.
                    Some(kept) if kept.fits(plan, id) => kept,
                    Some(mut replaced) => {
                        replaced.finish(now, out);
                        OutputEncoder::new(plan, id, accounts, seed, now)
                    }
                    None => OutputEncoder::new(plan, id, accounts, seed, now),
                }
            })
            .collect();
        let mut before = std::mem::take(&mut self.clusters);
        self.clusters = (plan.clusters.iter())
            .map(|cluster| {
                let known = before.iter().position(|known| known.name() == cluster.name);
                ClusterState::replanned(known.map(|known| before.swap_remove(known)), cluster)
            })
            .collect();
        self.wire_relays(plan, accounts);
        let mut before = std::mem::take(&mut self.aggregations);
        for (id, transform, aggregate) in plan.aggregates() {
            let outputs = routes::of_transform(plan, id);
            let aggregate = &aggregate_for(plan, aggregate, &outputs);
            let known = before.iter().position(|known| known.name == transform.name);
            let mut state = match known {
                Some(known) => before.swap_remove(known),
                None => Aggregation::new(id, &transform.name, aggregate, now),
            };
            if known.is_some() {
                let options = |id: &SourceId| *self.sources[id.index()].parser.options();
                let other = |id: &SourceId| read_before.get(id.index()) != Some(&options(id));
                state.reconfigure(aggregate, transform.sources().any(|id| other(&id)), now);
            }
            state.id = id;
            state.to = fed(plan, (id, &transform.name), aggregate, &outputs, accounts);
            if known.is_none() {
                let label_s = self.gone.label_of(&state.to.outputs);
                label_s.into_iter().for_each(|label_s| state.aggregator.resume_after_other(label_s, now));
                // Its own labels count from now on.
                self.gone.notes.remove(&state.name);
            }
            self.aggregations.push(state);
        }
    }

    fn wire_relays(&mut self, plan: &Plan, accounts: &Accounts) {
        let mut before = self.relays.take();
        let places: Vec<_> = plan.relays().map(|(id, transform, _)| (id, &*transform.name)).collect();
        let (mut relays, mut edges) = (Vec::with_capacity(places.len()), Vec::with_capacity(places.len()));
        for (_, transform, relay) in plan.relays() {
            let known = before.iter().position(|known| known.name == transform.name);
            relays.push(match known.map(|known| before.swap_remove(known)) {
                Some(mut known) => {
                    known.replan(relay, &self.down, self.seed);
                    known
                }
                None => Relay::new(&transform.name, relay, &self.down, self.seed),
            });
            let next = relay.plan.next_relays().into_iter().filter_map(|id| {
                let at = places.iter().position(|(known, _)| *known == id)?;
                let account = accounts.edge(places[at].1, &transform.name).map(Arc::clone);
                Some(Next::new(id, at, account.unwrap_or_default()))
            });
            edges.push(next.collect());
        }
        self.relays.replace(relays, edges, plan.relays_in_order());
    }

    /// The maker of the intakes of the source `id`.
    pub fn intakes(&self, plan: &Plan, id: SourceId, accounts: &Accounts) -> IntakeMaker {
        let source = &self.sources[id.index()];
        IntakeMaker {
            source: id,
            plan: Arc::new(plan.sources[id.index()].clone()),
            account: Arc::clone(accounts.source(id)),
            unfinished: Arc::clone(accounts.unfinished()),
            unfinished_bytes_max: plan.unfinished_bytes_max,
            protocol: source.protocol.clone(),
            parses: source.routes.parses(),
            raw: source.routes.takes_packets(),
            wants_peers: !source.routes.peers.is_empty(),
        }
    }
}

impl SourceState {
    fn new(plan: &Plan, id: SourceId, accounts: &Accounts, seed: u64) -> SourceState {
        let kind = &plan.sources[id.index()].kind;
        let routes = routes::of_source(plan, id);
        let entry = if kind.as_relay_own().is_some() { Entry::Statistics } else { Entry::Records };
        let acks_delivery = plan.sources[id.index()].ack_when == Some(AckWhen::Delivered);
        let parser = Arc::new(Parser::new(kind.reading(), seed));
        let protocol = Protocol::of(kind, &parser, seed);
        let account = Arc::clone(accounts.source(id));
        let name = &plan.sources[id.index()].name;
        let edge = |transform: &str| accounts.edge(transform, name).map(Arc::clone).unwrap_or_default();
        let edges = |transforms: Vec<&str>, at: &[usize]| -> Vec<Arc<RecordAccount>> {
            at.iter().map(|at| edge(transforms[*at])).collect()
        };
        let aggregations = plan.aggregates().map(|(_, transform, _)| &*transform.name).collect();
        let relays = plan.relays().map(|(_, transform, _)| &*transform.name).collect();
        SourceState {
            name: plan.sources[id.index()].name.clone(),
            account,
            parser,
            protocol,
            acks_delivery,
            entry,
            aggregation_edges: edges(aggregations, &routes.aggregations),
            relay_edges: edges(relays, &routes.relays),
            routes,
        }
    }
}

/// Where the results of an aggregation go.
fn fed(
    plan: &Plan,
    (id, name): (TransformId, &str),
    aggregate: &AggregateTransform,
    outputs: &[OutputId],
    accounts: &Accounts,
) -> Fed {
    let all: Vec<_> = plan.relays().collect();
    let relays = routes::relays_of_transform(plan, id).into_iter().map(|at| {
        let edge = accounts.edge(&all[at].1.name, name).map(Arc::clone).unwrap_or_default();
        (at, edge)
    });
    let relays: Vec<_> = relays.collect();
    Fed {
        outputs: outputs.iter().map(|id| id.index()).collect(),
        results: (!relays.is_empty()).then(|| Results::new(&aggregate.namespace)),
        relays,
    }
}

/// The plan of an aggregation that feeds `outputs`: outputs that send samples need the members of sets.
fn aggregate_for(plan: &Plan, of: &AggregateTransform, outputs: &[OutputId]) -> AggregateTransform {
    let mut aggregate = of.clone();
    let samples = |id: &OutputId| plan.outputs[id.index()].kind.takes().contains(&RecordKind::Packets);
    aggregate.plan.set_members |= outputs.iter().any(samples);
    aggregate
}
