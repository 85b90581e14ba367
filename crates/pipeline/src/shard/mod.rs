//! The shard: owns aggregates and open blocks exclusively.
//!
//! Path of a packet: `Intake` -> [`Shard::push`] -> `transforms` (or a raw block). At a window's end [`Shard::tick`]
//! sweeps the series in slices and `encode` turns them into blocks of [`Routed`]. Not here: the kinds of transforms
//! (`transforms`), how a plan becomes a shard (`wiring`), which outputs fail over (`failover`), threads. With one reader
//! its thread runs the shard; connections reach it through `Exchange`.
//! Invariant: `push` settles the whole receipt of a batch, whatever happens to its records.

pub(crate) mod clusters;
mod explain;
mod failover;
mod feeds;
mod inspect;
pub(crate) mod packets;
mod queries;
mod routes;
mod state;
mod subscribers;
pub(crate) mod transforms;
mod wiring;

pub use self::explain::{ChainExplanation, ChainVisit, MATCHES_MAX, RelayToAsk, SentBy, explain_chain};
pub use self::feeds::{Pump, Received, Subscriber, SubscriberFigures};
pub use self::inspect::{
    DumpCursor, DumpRow, DumpSlice, Held, SLICE_BYTES_MAX, SLICE_SERIES_MAX, SeriesCopy, SeriesRow,
    SeriesSlice,
};
pub use self::queries::IndexQuery;
pub use self::subscribers::{Subscribed, Subscription};
pub use self::transforms::{
    BeforeLast, BusyNames, FedFigures, Kept, RelayFigures, RelayState, RestoredStreams, SavedState,
    ShardFigures, StreamsFigures,
};

use std::sync::Arc;

use model::{
    AckWhen, Batch, Batches, Events, Now, Outcome, OutputId, Packets, Points, Receipt, Records, Samples,
    SourceAccount, SourceId, TransformId,
};

use wire::statsd::Parser;

use crate::checkpoints::Note;
use crate::encode::{OutputEncoder, OutputFigures, Routed};
use crate::intake::protocol::Protocol;
use crate::shard::clusters::ClusterState;
use crate::shard::routes::SourceRoutes;
use crate::shard::transforms::relay::Relay;
use crate::shard::transforms::{TransformRoutes, Transforms};

/// Events after which the shard may do something else.
const EVENTS_AT_ONCE: usize = 100;

/// State of one worker: all series, all open blocks.
pub struct Shard {
    transforms: Transforms,
    pub(crate) sources: Vec<SourceState>,
    pub(crate) outputs: Vec<OutputEncoder>,
    clusters: Vec<ClusterState>,
    /// Outputs whose endpoints are down and that have failed over.
    down: Vec<OutputId>,
    /// Seed of the hashes of external keys.
    seed: u64,
}

pub(crate) struct SourceState {
    name: String,
    account: Arc<SourceAccount>,
    pub(crate) routes: SourceRoutes,
    /// The parser of its samples' names; idle if it has none.
    pub(crate) parser: Arc<Parser>,
    /// Its protocol, with its parser.
    protocol: Protocol,
    /// Its clients get acknowledgements of deliveries.
    acks_delivery: bool,
    /// The transforms that it feeds.
    transforms: TransformRoutes,
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard")
            .field("aggregations", &self.transforms.aggregations.len())
            .finish_non_exhaustive()
    }
}

impl Shard {
    /// Processes the batches of a read and settles their receipts.
    pub fn push(&mut self, batches: Batches<'_>, now: Now, out: &mut Routed) {
        let left = self.push_while(batches, now, out, &mut || true);
        assert!(left.is_none(), "nobody said that it should end");
    }

    /// The same, or the first part of it: after a point whose name needed long searches in a relay, or gave many values
    /// to aggregation rules, and after a thousand events, it calls `go_on`, and returns the rest of the batches if that returns false. The rest has
    /// its share of the receipts, and must be pushed before anything else of its source. At least one record has been
    /// processed then.
    pub fn push_while<'a>(
        &mut self,
        mut batches: Batches<'a>,
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<Batches<'a>> {
        let source = batches.source;
        while let Some(Batch { records, receipt }) = batches.take_next() {
            match records {
                Records::Packets(packets) => self.push_packets(source, packets, receipt.take(), now, out),
                Records::Samples(samples) => {
                    self.push_samples(source, samples, receipt.take(), now, out, go_on)
                }
                Records::Events(events) => {
                    *receipt = self.push_events(source, events, receipt.take(), now, out, go_on);
                    if receipt.is_some() {
                        batches.put_back();
                        return Some(batches);
                    }
                }
                Records::Points(points) => {
                    *receipt = self.push_points(source, points, receipt.take(), now, out, go_on);
                    if receipt.is_some() {
                        batches.put_back();
                        return Some(batches);
                    }
                }
            }
        }
        None
    }

    fn push_packets(
        &mut self,
        source: SourceId,
        packets: &Packets<'_>,
        receipt: Option<Receipt>,
        now: Now,
        out: &mut Routed,
    ) {
        let Shard { sources, outputs, clusters, .. } = self;
        let routes = &sources[source.index()].routes;
        let Packets { bytes, packets } = packets;
        routes.raw.blocks(bytes, packets, now, out);
        for id in &routes.lines {
            outputs[id.index()].packets(bytes, packets, now, out);
        }
        for at in &routes.clusters {
            clusters[*at].lines(bytes, packets, outputs, now, out);
        }
        receipt.into_iter().for_each(|receipt| receipt.settle(Outcome::Routed));
    }

    /// Returns the receipt of points that are left, which stay in the batch.
    fn push_points(
        &mut self,
        source: SourceId,
        batch: &mut Points<'_>,
        receipt: Option<Receipt>,
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<Receipt> {
        let Shard { transforms, sources, outputs, .. } = self;
        let SourceState { routes, transforms: fed, .. } = &sources[source.index()];
        let (bytes, points) = (&*batch.bytes, &*batch.points);
        routes.peers.iter().for_each(|id| outputs[id.index()].set_peer(batch.peer));
        // A record has one outcome: it was forwarded unchanged, or else its outcome at the first transform.
        let (taken, ended) = transforms.push_points(fed, bytes, points, outputs, now, out, go_on);
        for id in &routes.points {
            outputs[id.index()].points(bytes, &points[..taken], now, out);
        }
        let mut receipt = receipt?;
        let ended = ended.filter(|_| !routes.takes_points());
        // Points that were read before a reload made their source one of samples go nowhere.
        let rest_of_them = if routes.takes_points() { Outcome::Routed } else { Outcome::Filtered };
        let settle = |mut receipt: Receipt| {
            ended.into_iter().for_each(|ended| ended.settle(&mut receipt));
            receipt.settle(rest_of_them);
        };
        if taken == points.len() {
            settle(receipt);
            return None;
        }
        settle(receipt.split(taken as u64));
        batch.skip(taken);
        Some(receipt)
    }

    fn push_samples(
        &mut self,
        source: SourceId,
        samples: &Samples<'_>,
        mut receipt: Option<Receipt>,
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) {
        let Shard { transforms, sources, outputs, .. } = self;
        let SourceState { transforms: fed, parser, account, .. } = &sources[source.index()];
        transforms.push_samples(fed, (samples, parser, account), &mut receipt, outputs, now, out, go_on);
        // The rest had no transform to go to.
        receipt.into_iter().for_each(|receipt| receipt.settle(Outcome::Filtered));
    }

    /// Returns the receipt of events that are left, which stay in the batch.
    fn push_events(
        &mut self,
        source: SourceId,
        events: &mut Events<'_>,
        receipt: Option<Receipt>,
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<Receipt> {
        let Shard { transforms, sources, outputs, .. } = self;
        let SourceState { routes, transforms: fed, .. } = &sources[source.index()];
        let outcome = match (routes.events.is_empty(), fed.take_events()) {
            (false, _) => Outcome::Routed,
            (true, true) => Outcome::Aggregated,
            (true, false) => Outcome::Filtered,
        };
        let view = events.view();
        let mut taken = 0;
        while taken < view.len() {
            let some = view.iter().skip(taken).take(EVENTS_AT_ONCE);
            transforms.push_events(fed, (view, taken, some.len()), outputs, now, out);
            taken += some.len();
            for event in some {
                routes.events.iter().for_each(|id| outputs[id.index()].event(event, now, out));
            }
            if receipt.is_some() && taken < view.len() && !go_on() {
                break;
            }
        }
        let mut receipt = receipt?;
        if taken == view.len() {
            receipt.settle(outcome);
            return None;
        }
        receipt.split(taken as u64).settle(outcome);
        events.skip(taken);
        Some(receipt)
    }

    /// The name of a source.
    pub fn source_name(&self, source: SourceId) -> &str {
        self.sources.get(source.index()).map_or("", |source| &source.name)
    }

    /// The account of a source.
    pub fn account(&self, source: SourceId) -> Option<&Arc<SourceAccount>> {
        self.sources.get(source.index()).map(|source| &source.account)
    }

    /// Outputs that need room before a batch of the source is accepted, if the source can wait: those of its packets
    /// with `when_full = "block"`.
    pub fn blocking(&self, source: SourceId) -> &[OutputId] {
        self.sources.get(source.index()).map_or(&[], |source| &source.routes.blocking)
    }

    /// Outputs that take lines of the source without an aggregation in between.
    pub fn reached(&self, source: SourceId) -> &[OutputId] {
        self.sources.get(source.index()).map_or(&[], |source| &source.routes.reached)
    }

    /// True when the outputs of the source can keep the condition.
    pub fn keeps(&self, source: SourceId, when: AckWhen) -> bool {
        self.sources.get(source.index()).is_some_and(|source| source.routes.acks.contains(&when))
    }

    /// Forwards everything of the source that waits for more lines.
    pub fn close_reached(&mut self, source: SourceId, now: Now, out: &mut Routed) {
        let Some(source) = self.sources.get(source.index()) else { return };
        for id in &source.routes.reached {
            self.outputs[id.index()].close_lines(now, out);
        }
    }

    /// Room that the queue of an output needs before a batch is accepted, at most: (bytes of memory, records). Lines
    /// that its encoder already holds and that are no block yet are included.
    pub fn room_for(&self, output: OutputId, batches: &Batches<'_>) -> (u64, u64) {
        self.outputs.get(output.index()).map_or((0, 0), |encoder| encoder.room_for(batches))
    }

    /// True when a batch of the source may need more room than [`Shard::room_for`] returns: a transform makes several
    /// lines of one, or longer ones, or a template makes long texts of events.
    pub fn multiplies(&self, source: SourceId) -> bool {
        let multiplies =
            |source: &SourceState| source.transforms.multiply() || !source.routes.events.is_empty();
        self.sources.get(source.index()).is_some_and(multiplies)
    }

    /// Outputs that some source waits for, each at least once.
    pub fn waited_for(&self) -> impl Iterator<Item = OutputId> + '_ {
        self.sources.iter().flat_map(|source| source.routes.blocking.iter().copied())
    }

    /// True when some source waits for some output.
    pub fn blocks(&self) -> bool {
        self.sources.iter().any(|source| !source.routes.blocking.is_empty())
    }

    /// True while results of aggregations wait to be routed: [`Shard::tick`] continues with them at once.
    pub fn has_results(&self) -> bool {
        self.transforms.has_results()
    }

    /// When the next timer of streams is due, monotonic nanoseconds: events set timers, between two calls of [`Shard::tick`].
    pub fn timers_ns(&self) -> u64 {
        self.transforms.streams.due_ns()
    }

    /// Closes windows that are due and sweeps at most `budget` series of each aggregation. Returns the monotonic
    /// nanosecond of the next work.
    pub fn tick(&mut self, now: Now, budget: usize, out: &mut Routed) -> u64 {
        self.tick_while(now, budget, out, &mut || true)
    }

    /// The same; relays stop after a result whose name needed long searches if `go_on` returns false.
    pub fn tick_while(
        &mut self,
        now: Now,
        budget: usize,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> u64 {
        let Shard { transforms, outputs, .. } = self;
        transforms.tick(now, budget, outputs, out, go_on)
    }

    /// Closes every non-empty block, so that nothing waits for more lines. Packets of lines that are not due stay open.
    pub fn close_blocks(&mut self, now: Now, out: &mut Routed) {
        for output in &mut self.outputs {
            output.close(now, out);
        }
    }

    /// Forwards lines that have waited long enough for others to share a packet. Returns the monotonic nanosecond at
    /// which the rest is due; `u64::MAX` when there is none.
    pub fn close_due(&mut self, now: Now, out: &mut Routed) -> u64 {
        let due_ns = self.outputs.iter_mut().filter_map(|output| output.close_due(now, out));
        due_ns.min().unwrap_or(u64::MAX)
    }

    /// Forwards everything that waits for more lines.
    pub(crate) fn close_lines(&mut self, now: Now, out: &mut Routed) {
        for output in &mut self.outputs {
            output.close_lines(now, out);
        }
    }

    /// The relay of that name and those behind it, with the endpoints up that are up now, for another thread.
    pub fn relays_to_ask(&self, relay: &str) -> Option<Vec<RelayToAsk>> {
        let relays = self.transforms.relays.to_ask(relay)?;
        Some(relays.into_iter().map(|(id, relay)| RelayToAsk::new(id, relay)).collect())
    }

    /// The figures of every relay.
    pub fn relays(&self) -> impl Iterator<Item = RelayState> + '_ {
        self.transforms.relays.iter().map(Relay::state)
    }

    /// The same for at most `max` relays, from an index on.
    pub fn relays_from(&self, from: usize, max: usize) -> Vec<RelayState> {
        self.transforms.relays.iter().skip(from).take(max).map(Relay::state).collect()
    }

    /// The last flush: every open window is closed and swept at once.
    pub fn stop(&mut self, now: Now, out: &mut Routed) {
        self.stop_while(now, out, &mut || true);
    }

    /// The same; results of relays for which there is no time, as `go_on` decides, are counted and dropped.
    pub fn stop_while(&mut self, now: Now, out: &mut Routed, go_on: &mut dyn FnMut() -> bool) {
        let Shard { transforms, outputs, .. } = self;
        transforms.stop(outputs, now, out, go_on);
        self.close_lines(now, out);
    }

    /// Flushes that have ended, of all aggregations: when it has changed, [`Shard::last_notes`] has.
    pub fn flushes(&self) -> u64 {
        self.transforms.aggregations.flushes()
    }

    /// The last note of every aggregation that has flushed, by name, for the next instance.
    pub fn last_notes(&self) -> impl Iterator<Item = (&str, Note)> {
        self.transforms.aggregations.last_notes()
    }

    /// The previous instance has emitted `label_s` for an aggregation that was removed: the one called `name`, which
    /// may make the same series, continues after it.
    pub fn resume_after_other(&mut self, name: &str, label_s: u64, now: Now) {
        if let Some(state) = self.transforms.aggregations.named_mut(name) {
            state.aggregator.resume_after_other(label_s, now);
        }
    }

    /// The label that the previous instance noted for the aggregation `name` cannot be right: it is dropped and
    /// counted.
    pub fn drop_label(&mut self, name: &str) {
        if let Some(state) = self.transforms.aggregations.named_mut(name) {
            state.aggregator.drop_label();
        }
    }

    /// Continues after the window `label_s` that the previous instance emitted of the aggregation `name`, see
    /// `Aggregator::resume_after`: it matters only to windows aligned to the wall clock.
    pub fn resume_after(&mut self, name: &str, label_s: u64, now: Now) {
        if let Some(state) = self.transforms.aggregations.named_mut(name) {
            state.aggregator.resume_after(label_s, now);
        }
    }

    /// Reports of busy names that are due (`keyFlush`).
    pub fn key_flush(&mut self, now: Now) -> Vec<(TransformId, BusyNames)> {
        self.transforms.aggregations.key_flush(now)
    }

    /// The figures of the last flushes of at most `max` outputs, from an index on.
    pub fn output_figures_from(&self, from: usize, max: usize) -> Vec<OutputFigures> {
        self.outputs.iter().skip(from).take(max).map(OutputEncoder::figures).collect()
    }

    /// Figures of every Riemann config; there are few.
    pub fn streams(&self) -> Vec<StreamsFigures> {
        self.transforms.streams.figures()
    }

    /// Figures of every aggregation.
    pub fn figures(&self) -> Vec<ShardFigures> {
        self.figures_from(0, usize::MAX)
    }

    /// Figures of at most `max` aggregations, from an index on.
    pub fn figures_from(&self, from: usize, max: usize) -> Vec<ShardFigures> {
        self.transforms.aggregations.figures_from(from, max)
    }
}
