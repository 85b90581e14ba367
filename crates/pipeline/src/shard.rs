//! The shard: owns aggregates and open blocks, and nothing else touches them.
//!
//! Path of a packet: `Intake` -> [`Shard::push`] -> `process::aggregate` (or a raw block). At a window's end
//! [`Shard::tick`] sweeps the series in slices and `encode` turns them into blocks of [`Routed`].
//! Not here: threads. With one reader its thread runs the shard; connections reach it through `Exchange`.
//! Invariant: `push` settles the whole receipt of a batch, whatever happens to its records.

use std::sync::Arc;

use config::plan::{AggregateTransform, OutputKind, Plan, SelfCounters, SourceKind};
use deliver::standing::Patience;
use model::{
    AckWhen, CopyOutcome, Event, FlushInfo, Flushed, Kind, Now, Outcome, OutputId, Receipt, Reject,
    SampleBatch, Shed, SourceId, Tally, TransformId,
};
use process::aggregate::{Added, Aggregator, Figures, FlushEnd, Tick};
use process::relay::{Entry, Explanation, Heirs, Line, RelayPlan, Sharing};
use wire::statsd::{Options, Parser};

use crate::batch::borrowed;
use crate::checkpoints::Note;
use crate::clusters::ClusterState;
use crate::encode::{OutputEncoder, OutputFigures, Routed};
use crate::points::PointReading;
use crate::relay::{Relay, RelayState};
use crate::routes::{self, SourceRoutes};
use crate::{Accounts, Batch, IntakeMaker};

/// Most events of one batch; further ones are shed as `events_max`.
const EVENTS_MAX: usize = 10_000;

/// State of one worker: every series, every open block.
pub struct Shard {
    pub(crate) aggregations: Vec<Aggregation>,
    pub(crate) relays: Vec<Relay>,
    pub(crate) sources: Vec<SourceState>,
    pub(crate) outputs: Vec<OutputEncoder>,
    clusters: Vec<ClusterState>,
    /// Outputs whose endpoints others stand in for.
    down: Vec<OutputId>,
    /// Seed of the hashes of outside keys.
    seed: u64,
}

/// One aggregation and what belongs to it.
#[derive(Debug)]
pub(crate) struct Aggregation {
    pub(crate) id: TransformId,
    pub(crate) name: String,
    pub(crate) aggregator: Aggregator,
    /// Places of its outputs in `Shard::outputs`.
    outputs: Vec<usize>,
    names: SelfNames,
    /// Label of the flush before, for `timestamp_lag`.
    pub(crate) flushed_at_s: Option<u64>,
    last_flush: Option<FlushEnd>,
    /// Flushes that have ended.
    flushes: u64,
    /// Number of the last save of the open window, or of an earlier one; none without checkpoints.
    pub(crate) saved: Option<u64>,
    /// What it was when the last flush ended.
    told: Option<u64>,
    key_flush: bool,
}

/// Names of the self counters, made once.
#[derive(Debug)]
struct SelfNames {
    packets_received: Option<String>,
    metrics_received: Option<String>,
    bad_lines_seen: Option<String>,
    timestamp_lag: Option<String>,
}

pub(crate) struct SourceState {
    pub(crate) routes: SourceRoutes,
    pub(crate) parser: Arc<Parser>,
    /// How its lines are read when they are points; the parser is idle then.
    points: Option<PointReading>,
    /// Its clients are told when a line is delivered.
    tells_of_delivery: bool,
}

impl SourceState {
    fn new(plan: &Plan, id: SourceId, seed: u64) -> SourceState {
        let kind = &plan.sources[id.index()].kind;
        let routes = routes::of_source(plan, id);
        let points = match kind {
            SourceKind::Graphite(source) => Some(PointReading::new(source, !routes.raw.is_empty(), seed)),
            SourceKind::Statsd(_) | SourceKind::Own(_) => None,
        };
        let tells_of_delivery = plan.sources[id.index()].ack_when == Some(AckWhen::Delivered);
        SourceState { routes, parser: Arc::new(Parser::new(kind.reading(), seed)), points, tells_of_delivery }
    }
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard").field("aggregations", &self.aggregations.len()).finish_non_exhaustive()
    }
}

/// Names with their line counts, most first.
pub type BusyNames = Vec<(Vec<u8>, u64)>;

/// Figures of one aggregation, for self-metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardFigures {
    /// Name of the transform.
    pub transform: String,
    /// What it holds and has seen.
    pub figures: Figures,
    /// The last finished flush.
    pub last_flush: Option<FlushEnd>,
}

impl SelfNames {
    fn of(plan: &AggregateTransform) -> SelfNames {
        let name = |exists: bool, what: &str| {
            (exists && !plan.stats_prefix.is_empty()).then(|| format!("{}.{what}", plan.stats_prefix))
        };
        let any = plan.self_counters != SelfCounters::None;
        let node = plan.self_counters == SelfCounters::Node;
        SelfNames {
            packets_received: name(any, "packets_received"),
            metrics_received: name(node, "metrics_received"),
            bad_lines_seen: name(any, "bad_lines_seen"),
            timestamp_lag: name(node, "timestamp_lag"),
        }
    }
}

impl Shard {
    /// A shard for `plan` that starts at `now`. `seed` seeds the hash of outside keys.
    pub fn new(plan: &Plan, accounts: &Accounts, seed: u64, now: Now) -> Shard {
        let mut shard = Shard {
            aggregations: Vec::new(),
            relays: Vec::new(),
            sources: Vec::new(),
            outputs: Vec::new(),
            clusters: Vec::new(),
            down: Vec::new(),
            seed,
        };
        shard.wire(plan, accounts, now, &mut Routed::default());
        shard
    }

    /// Takes a new plan: aggregations that keep their name keep their state, the others have their last flush, and
    /// open blocks are closed.
    pub fn reconfigure(&mut self, plan: &Plan, accounts: &Accounts, now: Now, out: &mut Routed) {
        let Shard { aggregations, relays, outputs, .. } = self;
        let is_kept = |name: &str| plan.transforms.iter().any(|kept| kept.name == name);
        for state in aggregations.iter_mut().filter(|state| !is_kept(&state.name)) {
            state.flush_all(outputs, now, out);
        }
        for relay in relays.iter_mut().filter(|relay| !is_kept(&relay.name)) {
            relay.finish(outputs, now, out);
        }
        self.wire(plan, accounts, now, out);
        self.close_lines(now, out);
    }

    fn wire(&mut self, plan: &Plan, accounts: &Accounts, now: Now, out: &mut Routed) {
        let seed = self.seed;
        let read_before: Vec<Options> = self.sources.iter().map(|source| *source.parser.options()).collect();
        self.sources =
            (0..plan.sources.len()).map(|at| SourceState::new(plan, SourceId(at as u16), seed)).collect();
        let mut encoders = std::mem::take(&mut self.outputs).into_iter();
        self.outputs = (0..plan.outputs.len())
            .map(|at| {
                let id = OutputId(at as u16);
                match encoders.next() {
                    // A flush may be under way: its document or frame goes on.
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
        let mut before = std::mem::take(&mut self.relays);
        for (_, transform, relay) in plan.relays() {
            let known = before.iter().position(|known| known.name == transform.name);
            self.relays.push(match known.map(|known| before.swap_remove(known)) {
                Some(mut known) => {
                    known.replan(relay, &self.down, seed, &mut self.outputs, now, out);
                    known
                }
                None => Relay::new(&transform.name, relay, &self.down, seed),
            });
        }
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
                state.aggregator.reconfigure(aggregate.plan.clone(), now);
                let options = |id: &SourceId| *self.sources[id.index()].parser.options();
                if transform.from.iter().any(|id| read_before.get(id.index()) != Some(&options(id))) {
                    state.aggregator.forget_spellings();
                }
                state.names = SelfNames::of(aggregate);
                state.key_flush = aggregate.plan.key_flush.is_some();
            }
            state.id = id;
            state.outputs = outputs.iter().map(|id| id.index()).collect();
            self.aggregations.push(state);
        }
    }

    /// What makes the intakes of the source `id`.
    pub fn intakes(&self, plan: &Plan, id: SourceId, accounts: &Accounts) -> IntakeMaker {
        let source = &self.sources[id.index()];
        IntakeMaker {
            source: id,
            plan: Arc::new(plan.sources[id.index()].clone()),
            account: Arc::clone(accounts.source(id)),
            parser: Arc::clone(&source.parser),
            parses: source.routes.parses(),
            raw: source.routes.takes_packets(),
            wants_peers: !source.routes.peers.is_empty(),
            points: source.points.clone(),
        }
    }

    /// Takes a batch and settles its receipt.
    pub fn push(&mut self, batch: Batch<'_>, now: Now, out: &mut Routed) {
        let Batch { view, peer, packets, names, events, points, tally, mut receipt } = batch;
        let Shard { aggregations, relays, sources, outputs, clusters, .. } = self;
        let source = &sources[view.source.index()];
        source.routes.raw.blocks(view.bytes, packets, now, out);
        if source.points.is_some() {
            source.routes.peers.iter().for_each(|id| outputs[id.index()].set_peer(peer));
            for id in &source.routes.points {
                outputs[id.index()].points(view.bytes, points, now, out);
            }
            // A record has one outcome: that it went on as it is, or else what the first relay says.
            let mut first = !source.routes.takes_points();
            for at in &source.routes.relays {
                let ended = relays[*at].points(Entry::Records, view.bytes, points, outputs, now, out);
                if std::mem::take(&mut first) {
                    ended.settle(&mut receipt);
                }
            }
            receipt.settle(if source.routes.takes_points() { Outcome::Routed } else { Outcome::Filtered });
            return;
        }
        for id in &source.routes.lines {
            outputs[id.index()].packets(view.bytes, packets, now, out);
        }
        for at in &source.routes.clusters {
            clusters[*at].lines(view.bytes, packets, outputs, now, out);
        }
        if !source.routes.parses() {
            receipt.settle(Outcome::Routed);
            return;
        }
        settle_events(&source.routes, outputs, events, &mut receipt, now, out);
        let mut first = true;
        for at in &source.routes.aggregations {
            let state = &mut aggregations[*at];
            if state.key_flush {
                names.iter().for_each(|name| state.aggregator.count_name(name.of(view.bytes)));
            }
            let Aggregation { aggregator, outputs: fed, names: own, .. } = state;
            let mut emit = |info: &FlushInfo, flushed: Flushed<'_>| {
                fed.iter().for_each(|at| outputs[*at].flushed(info, &flushed, now, out));
            };
            add_tally(aggregator, own, tally, &mut emit);
            let parser = &source.parser;
            let canonical =
                |kind, key: model::RawKey<'_>, name: &mut Vec<u8>| parser.canonical(kind, key, name);
            let added = aggregator.add(view, now, canonical, &mut emit);
            // A record has one outcome; with several aggregations the first one speaks for it.
            if std::mem::take(&mut first) {
                settle_added(&mut receipt, added);
            }
        }
        // What is left had no aggregation to go to.
        receipt.settle(Outcome::Filtered);
    }

    /// Outputs that must have room before a batch of the source is taken, if the source can wait: those of its packets
    /// with `when_full = "block"`.
    pub fn blocking(&self, source: SourceId) -> &[OutputId] {
        self.sources.get(source.index()).map_or(&[], |source| &source.routes.blocking)
    }

    /// Outputs that take something of the source without an aggregation in between.
    pub fn reached(&self, source: SourceId) -> &[OutputId] {
        self.sources.get(source.index()).map_or(&[], |source| &source.routes.reached)
    }

    /// True when what takes from the source can keep the promise.
    pub fn keeps(&self, source: SourceId, when: AckWhen) -> bool {
        self.sources.get(source.index()).is_some_and(|source| source.routes.acks.contains(&when))
    }

    /// Hands on everything of the source that waits for more to come.
    pub fn close_reached(&mut self, source: SourceId, now: Now, out: &mut Routed) {
        let Some(source) = self.sources.get(source.index()) else { return };
        for id in &source.routes.reached {
            self.outputs[id.index()].close_lines(now, out);
        }
    }

    /// Room that the queue of an output needs before a batch is taken, at most: (bytes of memory, records). Lines that
    /// its encoder holds already and that are no block yet are included.
    pub fn room_for(&self, output: OutputId, batch: &SampleBatch) -> (u64, u64) {
        self.outputs.get(output.index()).map_or((0, 0), |encoder| encoder.room_for(batch))
    }

    /// True when more may become of a batch of the source than [`Shard::room_for`] says: a relay gives lines other names,
    /// and sends several copies of a line to one output.
    pub fn multiplies(&self, source: SourceId) -> bool {
        self.sources.get(source.index()).is_some_and(|source| !source.routes.relays.is_empty())
    }

    /// Outputs that some source waits for, each at least once.
    pub fn waited_for(&self) -> impl Iterator<Item = OutputId> + '_ {
        self.sources.iter().flat_map(|source| source.routes.blocking.iter().copied())
    }

    /// True when some source waits for some output.
    pub fn blocks(&self) -> bool {
        self.sources.iter().any(|source| !source.routes.blocking.is_empty())
    }

    /// Takes a batch that crossed a thread border.
    pub fn push_owned(&mut self, batch: SampleBatch, now: Now, out: &mut Routed) {
        borrowed(batch, |batch| self.push(batch, now, out));
    }

    /// Closes windows that are due and sweeps at most `budget` series of each aggregation.
    /// Returns the monotonic nanosecond at which there is something to do again.
    pub fn tick(&mut self, now: Now, budget: usize, out: &mut Routed) -> u64 {
        let Shard { aggregations, relays, outputs, .. } = self;
        let mut due_ns = u64::MAX;
        for state in aggregations.iter_mut() {
            if state.aggregator.due_ns() <= now.mono_ns {
                state.tick(outputs, now, budget, out);
            }
            due_ns = due_ns.min(state.aggregator.due_ns());
        }
        for relay in relays.iter_mut() {
            due_ns = due_ns.min(relay.tick(now, budget, outputs, out));
        }
        due_ns
    }

    /// Closes every block that holds something, so that nothing waits for more to come. Packets of lines that are not
    /// due stay open.
    pub fn close_blocks(&mut self, now: Now, out: &mut Routed) {
        for output in &mut self.outputs {
            output.close(now, out);
        }
    }

    /// Hands on lines that have waited long enough for others to share a packet with. Gives the monotonic nanosecond
    /// at which those that are left have; `u64::MAX` when there are none.
    pub fn close_due(&mut self, now: Now, out: &mut Routed) -> u64 {
        let due_ns = self.outputs.iter_mut().filter_map(|output| output.close_due(now, out));
        due_ns.min().unwrap_or(u64::MAX)
    }

    /// Hands on everything that waits for more to come.
    pub(crate) fn close_lines(&mut self, now: Now, out: &mut Routed) {
        for output in &mut self.outputs {
            output.close_lines(now, out);
        }
    }

    /// Takes the endpoint of a cluster's output out of the placement, or back in. False when nothing changed.
    pub fn set_member_live(&mut self, output: OutputId, live: bool) -> bool {
        let was_live = !self.down.contains(&output);
        if live {
            self.down.retain(|known| *known != output);
        } else if was_live {
            self.down.push(output);
        }
        self.relays.iter_mut().for_each(|relay| relay.set_live(output, live));
        let changed = self.clusters.iter_mut().any(|cluster| cluster.set_live(output, live));
        changed || (was_live != live && !self.relays.is_empty())
    }

    /// How long the output's endpoint may fail until others stand in for it; none when nobody does.
    pub fn patience(&self, output: OutputId) -> Option<Patience> {
        if !self.outputs.get(output.index()).is_some_and(OutputEncoder::has_connections) {
            // A datagram or a file tells too little of who is there.
            return None;
        }
        let clusters = self.relays.iter().flat_map(|relay| relay.router().sharing_with_others(output));
        let patience = clusters.map(|sharing| match sharing {
            Sharing::Failover => Patience::None,
            _ => Patience::AWhile,
        });
        patience.min()
    }

    /// True when others take everything new that would go to the output, since its endpoint is down.
    pub fn is_spared(&self, output: OutputId) -> bool {
        let mut relays = self.relays_of(output).peekable();
        self.down.contains(&output)
            && relays.peek().is_some()
            && relays.all(|relay| relay.router().is_spared(output))
    }

    /// Relays that name the output.
    fn relays_of(&self, output: OutputId) -> impl Iterator<Item = &Relay> {
        self.relays.iter().filter(move |relay| relay.router().names(output))
    }

    /// Who takes over what waits for an output that is down; none when that waits until it is back. Clients that are told of
    /// deliveries were told of this output's.
    pub(crate) fn heirs(&self, output: OutputId) -> Option<Heirs<'_>> {
        let answers =
            |source: &SourceState| source.routes.reached.contains(&output) && source.tells_of_delivery;
        // What waits does not say who sent it there.
        let from_source = |source: &SourceState| source.routes.points.contains(&output);
        let from_aggregation = |state: &Aggregation| state.outputs.contains(&output.index());
        let mut relays = self.relays_of(output);
        let (relay, another) = (relays.next()?, relays.next());
        let from_others = another.is_some()
            || self.sources.iter().any(from_source)
            || self.aggregations.iter().any(from_aggregation);
        if from_others || self.sources.iter().any(answers) {
            return None;
        }
        relay.router().heirs(output)
    }

    /// Outputs whose endpoints are down and that others stand in for.
    pub fn down(&self) -> &[OutputId] {
        &self.down
    }

    /// What the relay of that name would do with a line of `name`; none when there is no such relay.
    pub fn explain(&self, relay: &str, entry: Entry, name: &[u8], rest: &[u8]) -> Option<Explanation> {
        let relay = self.relays.iter().find(|known| known.name == relay)?;
        Some(relay.router().explain(entry, Line { name, rest }, 0))
    }

    /// The statements of the relay of that name: what [`Shard::explain`] numbers.
    pub fn relay_plan(&self, relay: &str) -> Option<&RelayPlan> {
        self.relays.iter().find(|known| known.name == relay).map(Relay::plan)
    }

    /// What every relay has done, remembers and holds.
    pub fn relays(&self) -> impl Iterator<Item = RelayState> + '_ {
        self.relays.iter().map(Relay::state)
    }

    /// Labels of the live members of a cluster, by its place in the plan, in the order that decides between equal
    /// places on its ring; none when there is no such cluster.
    pub fn live_labels(&self, cluster: usize) -> Vec<String> {
        self.clusters.get(cluster).map(|cluster| cluster.live_labels().collect()).unwrap_or_default()
    }

    /// The last flush: every open window is closed and swept at once.
    pub fn stop(&mut self, now: Now, out: &mut Routed) {
        let Shard { aggregations, relays, outputs, .. } = self;
        aggregations.iter_mut().for_each(|state| state.flush_all(outputs, now, out));
        relays.iter_mut().for_each(|relay| relay.finish(outputs, now, out));
        self.close_lines(now, out);
    }

    /// Flushes that have ended, of all aggregations: when it has changed, [`Shard::last_told`] has.
    pub fn flushes(&self) -> u64 {
        self.aggregations.iter().map(|state| state.flushes).sum()
    }

    /// What every aggregation that has flushed told last, by name, for the instance that follows.
    pub fn last_told(&self) -> impl Iterator<Item = (&str, Note)> {
        let note =
            |state: &Aggregation| Some(Note { label_s: state.last_flush?.info.time_s, number: state.told });
        self.aggregations.iter().filter_map(move |state| Some((state.name.as_str(), note(state)?)))
    }

    /// Takes up what the instance before has told of the aggregation `name`, see [`Aggregator::resume_after`]: it
    /// matters to windows that hang on the wall clock only.
    pub fn resume_after(&mut self, name: &str, label_s: u64, now: Now) {
        for state in self.aggregations.iter_mut().filter(|state| state.name == name) {
            state.aggregator.resume_after(label_s, now);
        }
    }

    /// Reports of busy names that are due (`keyFlush`).
    pub fn key_flush(&mut self, now: Now) -> Vec<(TransformId, BusyNames)> {
        let mut reports = Vec::new();
        for state in &mut self.aggregations {
            if let Some(report) = state.aggregator.key_flush(now) {
                reports.push((state.id, report));
            }
        }
        reports
    }

    /// What the last flushes of every output were like.
    pub fn output_figures(&self) -> Vec<OutputFigures> {
        self.outputs.iter().map(OutputEncoder::figures).collect()
    }

    /// Figures of every aggregation.
    pub fn figures(&self) -> Vec<ShardFigures> {
        let figures = |state: &Aggregation| ShardFigures {
            transform: state.name.clone(),
            figures: state.aggregator.figures(),
            last_flush: state.last_flush,
        };
        self.aggregations.iter().map(figures).collect()
    }
}

/// The plan of an aggregation that feeds `outputs`: those that send samples on need the members of sets.
fn aggregate_for(plan: &Plan, of: &AggregateTransform, outputs: &[OutputId]) -> AggregateTransform {
    let mut aggregate = of.clone();
    let samples = |id: &OutputId| matches!(plan.outputs[id.index()].kind, OutputKind::Packets(_));
    aggregate.plan.set_members |= outputs.iter().any(samples);
    aggregate
}

impl Aggregation {
    fn new(id: TransformId, name: &str, plan: &AggregateTransform, now: Now) -> Aggregation {
        let mut aggregator = Aggregator::new(plan.plan.clone(), now);
        let names = SelfNames::of(plan);
        // The self counters are there from the first flush on, at 0.
        add_tally(&mut aggregator, &names, Tally::default(), &mut |_, _| {});
        Aggregation {
            id,
            name: name.to_owned(),
            aggregator,
            outputs: Vec::new(),
            names,
            flushed_at_s: None,
            last_flush: None,
            flushes: 0,
            saved: None,
            told: None,
            key_flush: plan.plan.key_flush.is_some(),
        }
    }

    pub(crate) fn tick(&mut self, outputs: &mut [OutputEncoder], now: Now, budget: usize, out: &mut Routed) {
        let fed = &self.outputs;
        let mut emit = |info: &FlushInfo, flushed: Flushed<'_>| {
            fed.iter().for_each(|at| outputs[*at].flushed(info, &flushed, now, out));
        };
        let tick = self.aggregator.tick(now, budget, &mut emit);
        match tick {
            Tick::Started(info) => {
                // `timestamp_lag`: how far this flush is off the one before and a window (spec statsd §15).
                let before = self.flushed_at_s.replace(info.time_s);
                if let (Some(name), Some(before)) = (&self.names.timestamp_lag, before) {
                    let lag = info.time_s as f64 - before as f64 - info.window_s;
                    self.aggregator.add_own_closing(name, lag, &mut emit);
                }
            }
            Tick::Ended(end) => self.end_flush(end, outputs, now, out),
            Tick::Idle | Tick::Sweeping => {}
        }
    }

    pub(crate) fn flush_all(&mut self, outputs: &mut [OutputEncoder], now: Now, out: &mut Routed) {
        let fed = &self.outputs;
        let end = self.aggregator.flush_all(now, |info, flushed| {
            fed.iter().for_each(|at| outputs[*at].flushed(info, &flushed, now, out));
        });
        self.end_flush(end, outputs, now, out);
    }

    fn end_flush(&mut self, end: FlushEnd, outputs: &mut [OutputEncoder], now: Now, out: &mut Routed) {
        self.last_flush = Some(end);
        // Nothing is saved during a sweep.
        self.told = self.saved;
        self.flushes += 1;
        for at in &self.outputs {
            outputs[*at].end_flush(&end, now, out);
        }
    }
}

fn add_tally(
    aggregator: &mut Aggregator,
    names: &SelfNames,
    tally: Tally,
    emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
) {
    let counters = [
        (&names.bad_lines_seen, tally.bad),
        (&names.packets_received, tally.packets),
        (&names.metrics_received, tally.lines),
    ];
    for (name, count) in counters {
        if let Some(name) = name {
            aggregator.add_own(Kind::Counter, name, count as f64, &mut *emit);
        }
    }
}

fn settle_events(
    routes: &SourceRoutes,
    outputs: &mut [OutputEncoder],
    events: Vec<Event>,
    receipt: &mut Receipt,
    now: Now,
    out: &mut Routed,
) {
    if events.is_empty() {
        return;
    }
    let taken = events.len().min(EVENTS_MAX);
    receipt.split((events.len() - taken) as u64).settle(Outcome::Shed(Shed::EventsMax));
    let outcome = if routes.events.is_empty() { Outcome::Filtered } else { Outcome::Routed };
    for event in &events[..taken] {
        routes.events.iter().for_each(|id| outputs[id.index()].event(event, now, out));
    }
    receipt.split(taken as u64).settle(outcome);
}

fn settle_added(receipt: &mut Receipt, added: Added) {
    let parts = [
        (Outcome::Aggregated, added.aggregated),
        (Outcome::Routed, added.routed),
        (Outcome::Shed(Shed::SeriesMax), added.shed_series_max),
        (Outcome::Shed(Shed::TimerValuesMax), added.shed_timer_values),
        (Outcome::Rejected(Reject::NonFinite), added.rejected_non_finite),
    ];
    for (outcome, records) in parts {
        if records > 0 {
            receipt.split(records).settle(outcome);
        }
    }
}

/// Counts points that were never written: they are copies that were routed and shed at once.
pub(crate) fn shed_points(account: &model::OutputAccount, reason: Shed, points: u64) {
    if points > 0 {
        account.pass(CopyOutcome::Shed(reason), points, 0);
    }
}
