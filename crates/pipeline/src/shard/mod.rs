//! The shard: owns aggregates and open blocks exclusively.
//!
//! Path of a packet: `Intake` -> [`Shard::push`] -> `process::aggregate` (or a raw block). At a window's end
//! [`Shard::tick`] sweeps the series in slices and `encode` turns them into blocks of [`Routed`]. Not here: how a plan
//! becomes a shard (`wiring`), which outputs fail over (`failover`), threads. With one reader its thread runs the
//! shard; connections reach it through `Exchange`.
//! Invariant: `push` settles the whole receipt of a batch, whatever happens to its records.

pub(crate) mod clusters;
mod explain;
mod failover;
mod inspect;
pub(crate) mod packets;
mod routes;
mod state;
pub(crate) mod transforms;
mod wiring;

pub use self::explain::{ChainExplanation, ChainVisit, MATCHES_MAX, RelayToAsk, SentBy, explain_chain};
pub use self::inspect::{
    DumpCursor, DumpRow, DumpSlice, Held, SLICE_BYTES_MAX, SLICE_SERIES_MAX, SeriesCopy, SeriesRow,
    SeriesSlice,
};
pub use self::state::{BeforeLast, Kept, SavedState};
pub use self::transforms::relay::{FedFigures, RelayFigures, RelayState};

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{
    AckWhen, Batch, Batches, Dropped, Events, FlushInfo, Flushed, Now, Outcome, OutputId, Packets, Points,
    Receipt, RecordAccount, Records, Reject, Samples, SourceAccount, SourceId, TransformId,
};
use process::aggregate::{Added, Figures, FlushEnd};
use process::relay::Entry;

use wire::statsd::Parser;

use crate::checkpoints::Note;
use crate::encode::{OutputEncoder, OutputFigures, Routed};
use crate::intake::complaints::quote;
use crate::intake::protocol::Protocol;
use crate::shard::clusters::ClusterState;
use crate::shard::routes::SourceRoutes;
use crate::shard::transforms::aggregation::{AT_ONCE_POINTS, Aggregation, add_tally};
use crate::shard::transforms::chain::{Relays, Taken};
use crate::shard::transforms::relay::Relay;

/// Most events of one batch; further ones are dropped as `events_max`.
const EVENTS_MAX: usize = 10_000;

/// State of one worker: all series, all open blocks.
pub struct Shard {
    pub(crate) aggregations: Vec<Aggregation>,
    pub(crate) relays: Relays,
    pub(crate) sources: Vec<SourceState>,
    pub(crate) outputs: Vec<OutputEncoder>,
    clusters: Vec<ClusterState>,
    /// Outputs whose endpoints are down and that have failed over.
    down: Vec<OutputId>,
    /// Aggregations that reloads have removed.
    gone: Gone,
    /// Seed of the hashes of external keys.
    seed: u64,
}

/// The last labels of removed aggregations: one that makes the same series for the same outputs from now on continues
/// after them.
#[derive(Debug, Default)]
struct Gone {
    /// By the index of the output: the latest label.
    labels: BTreeMap<usize, u64>,
    /// By name, for the instance that follows.
    notes: BTreeMap<String, Note>,
    /// Their flushes.
    flushes: u64,
}

impl Gone {
    fn note(&mut self, state: &Aggregation) {
        self.flushes += state.flushes;
        let Some(note) = state.note() else { return };
        self.notes.insert(state.name.clone(), note);
        for at in &state.to.outputs {
            let label_s = self.labels.entry(*at).or_default();
            *label_s = note.label_s.max(*label_s);
        }
    }

    /// The latest label that was emitted to one of these outputs.
    fn label_of(&self, outputs: &[usize]) -> Option<u64> {
        outputs.iter().filter_map(|at| self.labels.get(at).copied()).max()
    }
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
    /// The routes of its points to relays.
    entry: Entry,
    /// Accounts of the edges to its aggregations and relays, in the order of the routes.
    aggregation_edges: Vec<Arc<RecordAccount>>,
    relay_edges: Vec<Arc<RecordAccount>>,
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
    /// Its current figures.
    pub figures: Figures,
    /// The last finished flush.
    pub last_flush: Option<FlushEnd>,
}

impl Shard {
    /// Processes the batches of a read and settles their receipts.
    pub fn push(&mut self, batches: Batches<'_>, now: Now, out: &mut Routed) {
        let left = self.push_while(batches, now, out, &mut || true);
        assert!(left.is_none(), "nobody said that it should end");
    }

    /// The same, or the first part of it: after a point whose name needed long searches in a relay, or gave many values
    /// to aggregation rules, it calls `go_on`, and returns the rest of the batches if that returns false. The rest has
    /// its share of the receipts, and must be pushed before anything else of its source. At least one point has been
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
                Records::Events(events) => self.push_events(source, events, receipt.take(), now, out),
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
        let Shard { relays, sources, outputs, .. } = self;
        let SourceState { routes, entry, relay_edges, .. } = &sources[source.index()];
        let (bytes, points) = (&*batch.bytes, &*batch.points);
        routes.peers.iter().for_each(|id| outputs[id.index()].set_peer(batch.peer));
        // A record has one outcome: it was forwarded unchanged, or else its outcome at the first relay.
        let mut ended = None;
        let taken = match &routes.relays[..] {
            [] => points.len(),
            [only] => {
                let Taken { here, through, points: taken } =
                    relays.points(*only, *entry, bytes, points, outputs, now, out, go_on);
                relay_edges[0].receive(taken as u64);
                here.settle_on(&relay_edges[0]);
                ended = Some(through);
                taken
            }
            several => {
                let mut taken = 0;
                let (mut has_worked, mut goes_on) = (false, true);
                while goes_on && taken < points.len() {
                    let some = &points[taken..points.len().min(taken + AT_ONCE_POINTS)];
                    for (place, at) in several.iter().enumerate() {
                        let worked = &mut || {
                            has_worked = true;
                            true
                        };
                        let Taken { here, through, points: _all } =
                            relays.points(*at, *entry, bytes, some, outputs, now, out, worked);
                        relay_edges[place].receive(some.len() as u64);
                        here.settle_on(&relay_edges[place]);
                        if place == 0 {
                            ended.get_or_insert_default().add(through);
                        }
                    }
                    taken += some.len();
                    goes_on = !std::mem::take(&mut has_worked) || go_on();
                }
                taken
            }
        };
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
        let Shard { aggregations, relays, sources, outputs, .. } = self;
        let SourceState { routes, parser, account, aggregation_edges, .. } = &sources[source.index()];
        let mut first = true;
        for (at, edge) in routes.aggregations.iter().zip(aggregation_edges) {
            let state = &mut aggregations[*at];
            if state.key_flush {
                samples.names.iter().for_each(|name| state.aggregator.count_name(name.of(&samples.bytes)));
            }
            let Aggregation { aggregator, to, names: own, .. } = state;
            let mut emit = |info: &FlushInfo, flushed: Flushed<'_>| {
                to.flushed(outputs, (info, &flushed), now, out);
            };
            add_tally(aggregator, own, samples.tally, &mut emit);
            let canonical =
                |kind, key: model::RawKey<'_>, name: &mut Vec<u8>| parser.canonical(kind, key, name);
            let added = aggregator.add(samples.view(), now, canonical, &mut emit);
            if added.dropped_series_max > 0 {
                account.note_refused_series(|| quote(aggregator.first_dropped()));
            }
            edge.receive(samples.samples.len() as u64);
            for (outcome, records) in outcomes(added) {
                edge.settle(outcome, records);
                // A record has one outcome; with several aggregations the first one decides it.
                if first && let Some(receipt) = &mut receipt {
                    receipt.split(records).settle(outcome);
                }
            }
            first = false;
            // Samples with a time of their own leave at once, as far as there is time.
            let _all = to.route(relays, outputs, now, out, go_on);
        }
        // The rest had no aggregation to go to.
        receipt.into_iter().for_each(|receipt| receipt.settle(Outcome::Filtered));
    }

    fn push_events(
        &mut self,
        source: SourceId,
        events: &Events<'_>,
        receipt: Option<Receipt>,
        now: Now,
        out: &mut Routed,
    ) {
        let Shard { sources, outputs, .. } = self;
        let routes = &sources[source.index()].routes;
        let events = events.view();
        let taken = events.len().min(EVENTS_MAX);
        for event in events.iter().take(taken) {
            routes.events.iter().for_each(|id| outputs[id.index()].event(event, now, out));
        }
        let Some(mut receipt) = receipt else { return };
        receipt.split((events.len() - taken) as u64).settle(Outcome::Dropped(Dropped::EventsMax));
        receipt.settle(if routes.events.is_empty() { Outcome::Filtered } else { Outcome::Routed });
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

    /// True when a batch of the source may need more room than [`Shard::room_for`] returns: a relay gives lines other
    /// names, and sends several copies of a line to one output.
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

    /// True while results of aggregations wait to be routed: [`Shard::tick`] continues with them at once.
    pub fn has_results(&self) -> bool {
        self.aggregations.iter().any(|state| state.to.has_results())
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
        let Shard { aggregations, relays, outputs, .. } = self;
        let mut due_ns = u64::MAX;
        for state in aggregations.iter_mut() {
            // Emitted results are routed before anything else is emitted.
            let mut all = state.to.route(relays, outputs, now, out, go_on);
            if all && state.aggregator.due_ns() <= now.mono_ns {
                state.tick(outputs, now, budget, out);
                all = state.to.route(relays, outputs, now, out, go_on);
            }
            due_ns = due_ns.min(if all { state.aggregator.due_ns() } else { now.mono_ns });
        }
        due_ns.min(relays.tick(now, budget, outputs, out, go_on))
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
        let relays = self.relays.to_ask(relay)?;
        Some(relays.into_iter().map(|(id, relay)| RelayToAsk::new(id, relay)).collect())
    }

    /// The figures of every relay.
    pub fn relays(&self) -> impl Iterator<Item = RelayState> + '_ {
        self.relays.iter().map(Relay::state)
    }

    /// The same for at most `max` relays, from an index on.
    pub fn relays_from(&self, from: usize, max: usize) -> Vec<RelayState> {
        self.relays.iter().skip(from).take(max).map(Relay::state).collect()
    }

    /// The last flush: every open window is closed and swept at once.
    pub fn stop(&mut self, now: Now, out: &mut Routed) {
        self.stop_while(now, out, &mut || true);
    }

    /// The same; results of relays for which there is no time, as `go_on` decides, are counted and dropped.
    pub fn stop_while(&mut self, now: Now, out: &mut Routed, go_on: &mut dyn FnMut() -> bool) {
        let Shard { aggregations, relays, outputs, .. } = self;
        for state in aggregations.iter_mut() {
            state.flush_all(outputs, now, out);
            let _all = state.to.route(relays, outputs, now, out, go_on);
        }
        for at in relays.in_order() {
            relays.finish(at, outputs, now, out, go_on);
        }
        self.close_lines(now, out);
    }

    /// Flushes that have ended, of all aggregations: when it has changed, [`Shard::last_notes`] has.
    pub fn flushes(&self) -> u64 {
        self.gone.flushes + self.aggregations.iter().map(|state| state.flushes).sum::<u64>()
    }

    /// The last note of every aggregation that has flushed, by name, for the next instance.
    pub fn last_notes(&self) -> impl Iterator<Item = (&str, Note)> {
        let gone = self.gone.notes.iter().map(|(name, note)| (name.as_str(), *note));
        let here = self.aggregations.iter().filter_map(|state| Some((state.name.as_str(), state.note()?)));
        gone.chain(here)
    }

    /// The previous instance has emitted `label_s` for an aggregation that was removed: the one called `name`, which
    /// may make the same series, continues after it.
    pub fn resume_after_other(&mut self, name: &str, label_s: u64, now: Now) {
        for state in self.aggregations.iter_mut().filter(|state| state.name == name) {
            state.aggregator.resume_after_other(label_s, now);
        }
    }

    /// The label that the previous instance noted for the aggregation `name` cannot be right: it is dropped and
    /// counted.
    pub fn drop_label(&mut self, name: &str) {
        for state in self.aggregations.iter_mut().filter(|state| state.name == name) {
            state.aggregator.drop_label();
        }
    }

    /// Continues after the window `label_s` that the previous instance emitted of the aggregation `name`, see
    /// `Aggregator::resume_after`: it matters only to windows aligned to the wall clock.
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

    /// The figures of the last flushes of at most `max` outputs, from an index on.
    pub fn output_figures_from(&self, from: usize, max: usize) -> Vec<OutputFigures> {
        self.outputs.iter().skip(from).take(max).map(OutputEncoder::figures).collect()
    }

    /// Figures of every aggregation.
    pub fn figures(&self) -> Vec<ShardFigures> {
        self.figures_from(0, usize::MAX)
    }

    /// Figures of at most `max` aggregations, from an index on.
    pub fn figures_from(&self, from: usize, max: usize) -> Vec<ShardFigures> {
        let figures = |state: &Aggregation| ShardFigures {
            transform: state.name.clone(),
            figures: state.aggregator.figures(),
            last_flush: state.last_flush,
        };
        self.aggregations.iter().skip(from).take(max).map(figures).collect()
    }
}

/// How the samples of a batch ended in an aggregation.
fn outcomes(added: Added) -> impl Iterator<Item = (Outcome, u64)> {
    let parts = [
        (Outcome::Aggregated, added.aggregated),
        (Outcome::Routed, added.routed),
        (Outcome::Dropped(Dropped::SeriesMax), added.dropped_series_max),
        (Outcome::Dropped(Dropped::TimerValuesMax), added.dropped_timer_values),
        (Outcome::Dropped(Dropped::AggregateFull), added.dropped_bytes_max),
        (Outcome::Rejected(Reject::NonFinite), added.rejected_non_finite),
    ];
    parts.into_iter().filter(|(_, records)| *records > 0)
}
