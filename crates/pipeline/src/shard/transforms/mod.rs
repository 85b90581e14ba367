//! The transforms of a shard: all kinds, what each takes from sources and from other transforms, and the calls that
//! all of them get.
//!
//! Path of a record: `Shard::push` -> **[`Transforms::push_samples`]** -> `aggregation`, or
//! **[`Transforms::push_points`]** -> `chain` -> `relay`, and `point_events` -> `streams`. At a window's end **[`Transforms::tick`]** ->
//! `aggregations` -> the outputs, relays and Riemann configs that take the results.
//! A new kind has files of its own here, and of the other files of the shard only this one names it: a field in
//! [`Transforms`] and in [`TransformRoutes`], and a line in each function for records that it takes or work that it has.
//! Not here: records that go from a source to an output (`shard`, `routes`), one kind (its files), threads.

pub(crate) mod aggregation;
mod aggregations;
pub(crate) mod chain;
pub(crate) mod point_events;
pub(crate) mod relay;
mod results;
pub(crate) mod streams;
mod takers;
mod wiring;

pub use self::aggregations::{BusyNames, ShardFigures};
pub use self::relay::{FedFigures, RelayFigures, RelayState};
pub use self::streams::{RestoredStreams, StreamsFigures};
pub(crate) use self::wiring::Wiring;

use config::plan::{Feed, Plan, TransformKind, TransformPlan};
use model::{EventsView, Now, OutputId, Point, Receipt, Samples, SourceAccount, SourceId};
use process::relay::Entry;
use wire::statsd::Parser;

use crate::Accounts;
use crate::encode::{OutputEncoder, Routed};
use crate::shard::transforms::aggregation::{Aggregation, HeldByAggregation, outcomes};
use crate::shard::transforms::aggregations::Aggregations;
use crate::shard::transforms::chain::Relays;
use crate::shard::transforms::point_events::{EndedInStreams, POINTS_AT_ONCE, PointsEnded};
use crate::shard::transforms::relay::{Ended, HeldByRelay};
use crate::shard::transforms::streams::AllStreams;
use crate::shard::transforms::takers::{PointEdges, Takers};
use crate::shard::transforms::wiring::Edge;

/// All transforms of a shard.
#[derive(Debug, Default)]
pub(crate) struct Transforms {
    pub(crate) aggregations: Aggregations,
    pub(crate) relays: Relays,
    pub(crate) streams: AllStreams,
}

/// The transforms that a source feeds, by the records that they take.
#[derive(Debug)]
pub(crate) struct TransformRoutes {
    /// Aggregations of its samples.
    aggregations: Vec<Edge>,
    /// Relays of its points, and Riemann configs of its points or events.
    takers: PointEdges,
    /// Which statements of the relays its points meet.
    entry: Entry,
    /// The source.
    source: SourceId,
}

impl TransformRoutes {
    /// The edges of the source `id`.
    pub(crate) fn of_source(plan: &Plan, id: SourceId, accounts: &Accounts) -> TransformRoutes {
        let (feed, kind) = (Feed::Source(id), &plan.sources[id.index()].kind);
        let aggregations = plan.aggregates().map(|(_, transform, _)| transform);
        TransformRoutes {
            aggregations: Edge::all_from(feed, plan, accounts, aggregations),
            takers: PointEdges::from(feed, plan, accounts),
            source: id,
            entry: if kind.as_relay_own().is_some() { Entry::Statistics } else { Entry::Records },
        }
    }

    /// True when a transform takes samples of the source.
    pub(crate) fn take_samples(&self) -> bool {
        !self.aggregations.is_empty()
    }

    /// True when a transform takes events of the source.
    pub(crate) fn take_events(&self) -> bool {
        !self.takers.streams.is_empty()
    }

    /// Places of the Riemann configs that the source feeds.
    pub(crate) fn streams(&self) -> impl Iterator<Item = usize> {
        self.takers.streams.iter().map(|edge| edge.at)
    }

    /// True when an output may get more from a batch of the source than the batch has: a relay gives lines other names,
    /// and sends several copies of a line to one output.
    pub(crate) fn multiply(&self) -> bool {
        !self.takers.relays.is_empty()
    }

    /// Whether the source feeds the aggregation with this index.
    pub(crate) fn feed_aggregation(&self, at: usize) -> bool {
        self.aggregations.iter().any(|edge| edge.at == at)
    }
}

/// The state of one aggregation, or of the aggregation rules of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedState {
    /// Name of the transform.
    pub name: String,
    /// Its state.
    pub bytes: Vec<u8>,
}

/// The transforms that another process continues, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Aggregations and Riemann configs.
    pub aggregations: Vec<String>,
    /// Relays.
    pub relays: Vec<String>,
}

impl Kept {
    /// All transforms of a plan.
    pub fn of(plan: &Plan) -> Kept {
        let mut kept = Kept::default();
        for TransformPlan { name, kind, .. } in &plan.transforms {
            let names = match kind {
                TransformKind::Aggregate(_) => &mut kept.aggregations,
                TransformKind::Relay(_) => &mut kept.relays,
                TransformKind::Streams(_) => &mut kept.aggregations,
            };
            names.push(name.clone());
        }
        kept
    }
}

/// The state of aggregations and relays before their last flush.
#[derive(Debug, Default)]
pub struct BeforeLast {
    aggregations: Vec<(usize, HeldByAggregation)>,
    relays: Vec<(usize, HeldByRelay)>,
}

impl Transforms {
    /// Passes samples to the transforms that take them, and settles their share of the receipt.
    #[expect(clippy::too_many_arguments, reason = "what it works on, once for each batch")]
    #[inline]
    pub(crate) fn push_samples(
        &mut self,
        routes: &TransformRoutes,
        (samples, parser, source): (&Samples<'_>, &Parser, &SourceAccount),
        receipt: &mut Option<Receipt>,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) {
        let Transforms { aggregations, relays, streams } = self;
        let mut first = true;
        for Edge { at, account } in &routes.aggregations {
            let state = aggregations.at_mut(*at);
            let added = state.add((samples, parser, source), outputs, now, out);
            account.receive(samples.samples.len() as u64);
            for (outcome, records) in outcomes(added) {
                account.settle(outcome, records);
                // A record has one outcome; with several transforms the first one decides it.
                if first && let Some(receipt) = receipt {
                    receipt.split(records).settle(outcome);
                }
            }
            first = false;
            // Samples with a time of their own leave at once, as far as there is time.
            let _all = state.to.route(Takers { relays, streams }, outputs, now, out, go_on);
        }
    }

    /// Passes points, whose lines lie in `bytes`, to the transforms that take them. Returns how many they have taken,
    /// and their outcomes at the first of them; none if there are none. After a point that needed long searches,
    /// `go_on` is called: if it returns false, the rest is left.
    #[expect(clippy::too_many_arguments, reason = "what it works on, once for each batch")]
    #[inline]
    pub(crate) fn push_points(
        &mut self,
        routes: &TransformRoutes,
        bytes: &[u8],
        points: &[Point],
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> (usize, Option<PointsEnded>) {
        let TransformRoutes { takers, entry, .. } = routes;
        if !takers.streams.is_empty() {
            return self.push_points_to_all(routes, bytes, points, outputs, now, out, go_on);
        }
        let (taken, ended) =
            self.relays.push(&takers.relays, *entry, bytes, points, outputs, now, out, go_on);
        (taken, ended.map(PointsEnded::Relays))
    }

    /// The same where Riemann configs take them: after [`POINTS_AT_ONCE`] the shard may do something else.
    #[expect(clippy::too_many_arguments, reason = "what it works on, once for each batch")]
    fn push_points_to_all(
        &mut self,
        routes: &TransformRoutes,
        bytes: &[u8],
        points: &[Point],
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> (usize, Option<PointsEnded>) {
        let TransformRoutes { takers, entry, source, .. } = routes;
        let (mut taken, mut goes_on) = (0, true);
        let (mut by_relays, mut by_streams): (Option<Ended>, Option<EndedInStreams>) = (None, None);
        while goes_on && taken < points.len() {
            let some = &points[taken..points.len().min(taken + POINTS_AT_ONCE)];
            let mut asked = || {
                goes_on = go_on();
                goes_on
            };
            let (number, ended) =
                self.relays.push(&takers.relays, *entry, bytes, some, outputs, now, out, &mut asked);
            if let Some(ended) = ended {
                by_relays.get_or_insert_default().add(ended);
            }
            let to = (&*takers.streams, Some(*source));
            let ended = self.streams.push_points(to, (bytes, &some[..number]), outputs, now, out);
            match (&mut by_streams, ended) {
                (Some(all), Some(ended)) => all.add(&ended),
                (all, ended) => *all = ended,
            }
            taken += number;
            goes_on = goes_on && (taken == points.len() || go_on());
        }
        // A record has one outcome; with several transforms the first one decides it.
        (taken, by_relays.map(PointsEnded::Relays).or(by_streams.map(PointsEnded::Streams)))
    }

    /// Passes `number` events from index `from` on to the transforms that take them.
    pub(crate) fn push_events(
        &mut self,
        routes: &TransformRoutes,
        (events, from, number): (EventsView<'_>, usize, usize),
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) {
        let edges = &routes.takers.streams;
        self.streams.push((edges, routes.source), (events, from, number), outputs, now, out);
    }

    /// Closes windows that are due, and emits at most `budget` series of each transform. Returns the monotonic
    /// nanosecond of the next work. Relays stop after a result whose name needed long searches if `go_on` returns
    /// false.
    pub(crate) fn tick(
        &mut self,
        now: Now,
        budget: usize,
        outputs: &mut [OutputEncoder],
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> u64 {
        let Transforms { aggregations, relays, streams } = self;
        let takers = Takers { relays, streams };
        let due_ns = aggregations.tick(now, budget, takers, outputs, out, go_on);
        let due_ns = due_ns.min(relays.tick(now, budget, outputs, out, go_on));
        due_ns.min(streams.tick(now, outputs, out))
    }

    /// True while results wait to be routed.
    pub(crate) fn has_results(&self) -> bool {
        self.aggregations.iter().any(|state| state.to.has_results())
    }

    /// True while ended windows are being emitted.
    pub(crate) fn is_flushing(&self) -> bool {
        self.aggregations.is_flushing()
    }

    /// Whether a transform that is no relay feeds the output.
    pub(crate) fn feed_without_relay(&self, output: OutputId) -> bool {
        let at = output.index();
        self.aggregations.iter().any(|state| state.to.outputs.contains(&at)) || self.streams.feed(at)
    }

    /// The last flush of all. Results of relays for which there is no time, as `go_on` decides, are counted and
    /// dropped.
    pub(crate) fn stop(
        &mut self,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) {
        let Transforms { aggregations, relays, streams } = self;
        for state in aggregations.iter_mut() {
            state.finish(Takers { relays, streams }, outputs, now, out, go_on);
        }
        for at in relays.in_order() {
            relays.finish(at, outputs, now, out, go_on);
        }
    }

    /// Before another plan applies: the last flush of transforms that it does not have. One that changes its type
    /// counts as removed.
    pub(crate) fn close_for(
        &mut self,
        plan: &Plan,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) {
        let Transforms { aggregations, relays, streams } = self;
        aggregations.close_for(plan, Takers { relays, streams }, outputs, now, out);
        relays.close_for(plan, outputs, now, out);
    }

    /// Applies a plan: transforms that keep their name and type keep their state.
    pub(crate) fn wire(&mut self, wiring: &Wiring<'_>) {
        self.relays.wire(wiring);
        self.aggregations.wire(wiring);
        self.streams.wire(wiring);
    }

    /// Before [`Transforms::save`]: emits the rest of the windows that have ended, and routes all results.
    pub(crate) fn end_sweeps(&mut self, outputs: &mut [OutputEncoder], now: Now, out: &mut Routed) {
        let Transforms { aggregations, relays, streams } = self;
        relays.route_all_results(outputs, now, out);
        aggregations.end_sweeps(Takers { relays, streams }, outputs, now, out);
    }

    /// The state of transforms that are `kept`, for another process; `id` is a number that is not known outside.
    pub(crate) fn save(&mut self, kept: &Kept, id: u64, now: Now) -> Vec<SavedState> {
        let saved = |name: &str, bytes| SavedState { name: name.to_owned(), bytes };
        let mut states = Vec::new();
        for state in self.aggregations.iter_mut().filter(|state| kept.aggregations.contains(&state.name)) {
            let mut bytes = Vec::new();
            if state.aggregator.save_whole(id, now, &mut bytes) {
                states.push(saved(&state.name, bytes));
            }
        }
        for streams in self.streams.iter_mut().filter(|streams| kept.aggregations.contains(&streams.name)) {
            let bytes = streams.save_whole(id, now);
            states.push(saved(&streams.name, bytes));
        }
        let relays = self.relays.iter().filter(|relay| kept.relays.contains(&relay.name));
        let of_relays = relays.filter_map(|relay| Some(saved(&relay.name, relay.export(id)?)));
        states.extend(of_relays);
        states
    }

    /// The last flush of every transform that is not in `kept`. Returns what [`Transforms::go_back`] needs to undo it.
    pub(crate) fn flush_others(
        &mut self,
        kept: &Kept,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) -> BeforeLast {
        let Transforms { aggregations, relays, streams } = self;
        let mut before = BeforeLast::default();
        let is_kept = |state: &Aggregation| kept.aggregations.contains(&state.name);
        let ending = aggregations.iter().filter(|state| !is_kept(state));
        // Kept relays get results of transforms that are not kept, and may have to be restored then.
        let changed = ending.flat_map(|state| state.to.takers.relays.iter().map(|to| to.at));
        let is_ending = |at: &usize| !kept.relays.contains(&relays.at(*at).name);
        let changed = relays.reached_from(changed.chain((0..relays.len()).filter(is_ending)));
        before.relays.extend(changed.into_iter().map(|at| (at, relays.at(at).held())));
        for (at, state) in aggregations.iter_mut().enumerate().filter(|(_, state)| !is_kept(state)) {
            before.aggregations.push((at, state.held()));
            // What streams made of it is not undone: their state is with the other process already.
            state.finish(Takers { relays, streams }, outputs, now, out, &mut || true);
        }
        for at in relays.in_order() {
            if !kept.relays.contains(&relays.at(at).name) {
                relays.finish(at, outputs, now, out, &mut || true);
            }
        }
        before
    }

    /// The blocks of [`Transforms::flush_others`] went nowhere: restores the state before.
    pub(crate) fn go_back(&mut self, before: BeforeLast) {
        for (at, held) in before.relays {
            self.relays.at_mut(at).take_back(held);
        }
        for (at, held) in before.aggregations {
            self.aggregations.at_mut(at).take_back(held);
        }
    }
}
