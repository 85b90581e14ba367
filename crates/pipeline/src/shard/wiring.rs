//! From a plan to the parts of a shard: at the start, and at a reload, which keeps everything that kept its name.

use std::sync::Arc;

use config::plan::Plan;
use model::{AckWhen, Now, OutputId, SourceId};
use wire::statsd::{Options, Parser};

use super::{Shard, SourceState};
use crate::encode::{OutputEncoder, Routed};
use crate::intake::protocol::Protocol;
use crate::shard::clusters::ClusterState;
use crate::shard::routes;
use crate::shard::transforms::{TransformRoutes, Transforms, Wiring};
use crate::{Accounts, IntakeMaker};

impl Shard {
    /// A shard for `plan` that starts at `now`. `seed` is the seed of the hash of external keys.
    pub fn new(plan: &Plan, accounts: &Accounts, seed: u64, now: Now) -> Shard {
        let mut shard = Shard {
            transforms: Transforms::default(),
            sources: Vec::new(),
            outputs: Vec::new(),
            clusters: Vec::new(),
            down: Vec::new(),
            seed,
        };
        shard.wire(plan, accounts, now, &mut Routed::default());
        shard
    }

    /// Applies a new plan: transforms that keep their name keep their state, the others have their last flush, and open
    /// blocks are closed. A transform that changed its type counts as removed.
    pub fn reconfigure(&mut self, plan: &Plan, accounts: &Accounts, now: Now, out: &mut Routed) {
        let Shard { transforms, outputs, .. } = self;
        transforms.close_for(plan, outputs, now, out);
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
        let is_respelled = |(at, source): (usize, &SourceState)| {
            let before: Option<&Options> = read_before.get(at);
            before != Some(source.parser.options())
        };
        let respelled: Vec<bool> = self.sources.iter().enumerate().map(is_respelled).collect();
        let (down, respelled) = (&*self.down, &*respelled);
        self.transforms.wire(&Wiring { plan, accounts, down, respelled, seed, now });
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
            parses: source.transforms.take_samples()
                || source.transforms.take_events()
                || !source.routes.events.is_empty(),
            raw: source.routes.takes_packets(),
            wants_peers: !source.routes.peers.is_empty(),
        }
    }
}

impl SourceState {
    fn new(plan: &Plan, id: SourceId, accounts: &Accounts, seed: u64) -> SourceState {
        let kind = &plan.sources[id.index()].kind;
        let routes = routes::of_source(plan, id);
        let acks_delivery = plan.sources[id.index()].ack_when == Some(AckWhen::Delivered);
        let parser = Arc::new(Parser::new(kind.reading(), seed));
        let protocol = Protocol::of(kind, &parser, seed);
        let account = Arc::clone(accounts.source(id));
        SourceState {
            name: plan.sources[id.index()].name.clone(),
            account,
            parser,
            protocol,
            acks_delivery,
            transforms: TransformRoutes::of_source(plan, id, accounts),
            routes,
        }
    }
}
