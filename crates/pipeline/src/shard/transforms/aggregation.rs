//! One aggregation in a shard: its aggregator, the outputs that it feeds, its self counters and the figures of its
//! flushes.
//!
//! Path of a packet: `Transforms::push_samples` -> **[`Aggregation::add`]** -> `process::aggregate` -> at the window's
//! end **[`Aggregation::tick`]** -> `encode`. Not here: which batches it gets (`transforms`), all aggregations together
//! (`aggregations`), checkpoints (`checkpoints`, `shard::state`).

use config::plan::{AggregateTransform, SelfCounters};
use model::{
    Dropped, FlushInfo, Flushed, Kind, Now, Outcome, Peer, RawKey, Reject, Samples, SourceAccount, Tally,
    TransformId,
};
use process::aggregate::{Added, Aggregator, FlushEnd, Tick};
use process::relay::Entry;
use wire::statsd::Parser;

use crate::checkpoints::Note;
use crate::encode::{OutputEncoder, Routed};
use crate::intake::complaints::quote;
use crate::shard::transforms::chain::AT_ONCE_POINTS;
use crate::shard::transforms::point_events::POINTS_AT_ONCE;
use crate::shard::transforms::results::Results;
use crate::shard::transforms::takers::{PointEdges, Takers};
use crate::shard::transforms::wiring::Edge;

/// One aggregation and its state in the shard.
#[derive(Debug)]
pub(crate) struct Aggregation {
    pub(crate) id: TransformId,
    pub(crate) name: String,
    pub(crate) aggregator: Aggregator,
    /// Where its results go.
    pub(crate) to: Fed,
    pub(crate) names: SelfNames,
    /// Label of the previous flush, for `timestamp_lag`.
    pub(crate) flushed_at_s: Option<u64>,
    pub(crate) last_flush: Option<FlushEnd>,
    /// Flushes that have ended.
    pub(crate) flushes: u64,
    /// Number of the last save of the open window, or of an earlier one; none without checkpoints.
    pub(crate) saved: Option<u64>,
    /// The value of `saved` when the last flush ended.
    pub(crate) flushed_number: Option<u64>,
    /// The label after which another instance continues once that flush has ended; 0 for none.
    flushed_label_s: Option<u64>,
    pub(crate) key_flush: bool,
}

/// The consumers of an aggregation's results.
#[derive(Debug, Default)]
pub(crate) struct Fed {
    /// Indexes in `Shard::outputs` of the outputs that take them directly.
    pub(crate) outputs: Vec<usize>,
    /// Transforms that take them as points.
    pub(crate) takers: PointEdges,
    /// Points for those transforms; none without them.
    pub(crate) results: Option<Results>,
}

impl Fed {
    /// One series of a flush.
    #[inline]
    pub(crate) fn flushed(
        &mut self,
        outputs: &mut [OutputEncoder],
        (info, flushed): (&FlushInfo, &Flushed<'_>),
        now: Now,
        out: &mut Routed,
    ) {
        self.outputs.iter().for_each(|at| outputs[*at].flushed(info, flushed, now, out));
        if let Some(results) = &mut self.results {
            results.flushed(info, flushed);
        }
    }

    pub(crate) fn has_results(&self) -> bool {
        self.results.as_ref().is_some_and(|results| !results.is_empty())
    }

    /// Routes points that were made of results, and returns whether that was all: `go_on` is called after those whose
    /// names need long searches.
    pub(crate) fn route(
        &mut self,
        takers: Takers<'_>,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> bool {
        let Takers { relays, streams } = takers;
        let Some(results) = &mut self.results else { return true };
        if results.is_empty() {
            return true;
        }
        // They have no sender.
        outputs.iter_mut().for_each(|output| output.set_peer(Peer::OWN));
        while results.routed < results.points.len() {
            let end = results.points.len().min(results.routed + AT_ONCE_POINTS);
            let points = &mut results.points[results.routed..end];
            let mut has_worked = false;
            for Edge { at, account } in &self.takers.relays {
                let relay = relays.at(*at);
                points.iter_mut().for_each(|point| point.hash = relay.hash(point.name(&results.bytes)));
                let worked = &mut || {
                    has_worked = true;
                    true
                };
                let taken =
                    relays.points(*at, Entry::Records, &results.bytes, points, outputs, now, out, worked);
                account.receive(points.len() as u64);
                taken.here.settle_on(account);
            }
            let to = (&*self.takers.streams, None);
            let of_streams = streams.push_points(to, (&results.bytes, points), outputs, now, out);
            has_worked |= of_streams.is_some() && end.is_multiple_of(POINTS_AT_ONCE);
            results.routed = end;
            if has_worked && !go_on() {
                break;
            }
        }
        let all = results.routed == results.points.len();
        if all {
            self.takers.iter().for_each(|edge| results.count_lost(&edge.account));
            results.clear();
        }
        all
    }
}

/// The state of an aggregation before a flush.
#[derive(Debug)]
pub(crate) struct HeldByAggregation {
    aggregator: Aggregator,
    flushed_at_s: Option<u64>,
    last_flush: Option<FlushEnd>,
    flushes: u64,
    flushed_number: Option<u64>,
    flushed_label_s: Option<u64>,
}

/// Names of the self counters, made once.
#[derive(Debug)]
pub(crate) struct SelfNames {
    packets_received: Option<String>,
    metrics_received: Option<String>,
    bad_lines_seen: Option<String>,
    timestamp_lag: Option<String>,
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

impl Aggregation {
    /// One that starts at `now`; no input feeds it yet.
    pub(crate) fn new(id: TransformId, name: &str, plan: &AggregateTransform, now: Now) -> Aggregation {
        let mut aggregator = Aggregator::new(plan.plan.clone(), now);
        let names = SelfNames::of(plan);
        // The self counters exist from the first flush on, at 0.
        add_tally(&mut aggregator, &names, Tally::default(), &mut |_, _| {});
        Aggregation {
            id,
            name: name.to_owned(),
            aggregator,
            to: Fed::default(),
            names,
            flushed_at_s: None,
            last_flush: None,
            flushes: 0,
            saved: None,
            flushed_number: None,
            flushed_label_s: None,
            key_flush: plan.plan.key_flush.is_some(),
        }
    }

    /// Adds the samples of a source, whose names `parser` has read.
    #[inline]
    pub(crate) fn add(
        &mut self,
        (samples, parser, source): (&Samples<'_>, &Parser, &SourceAccount),
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) -> Added {
        if self.key_flush {
            samples.names.iter().for_each(|name| self.aggregator.count_name(name.of(&samples.bytes)));
        }
        let Aggregation { aggregator, to, names, .. } = self;
        let mut emit = |info: &FlushInfo, flushed: Flushed<'_>| {
            to.flushed(outputs, (info, &flushed), now, out);
        };
        add_tally(aggregator, names, samples.tally, &mut emit);
        let canonical = |kind, key: RawKey<'_>, name: &mut Vec<u8>| parser.canonical(kind, key, name);
        let added = aggregator.add(samples.view(), now, canonical, &mut emit);
        if added.dropped_series_max > 0 {
            source.note_refused_series(|| quote(aggregator.first_dropped()));
        }
        added
    }

    /// Closes the window if it is over, and sweeps at most `budget` series.
    pub(crate) fn tick(&mut self, outputs: &mut [OutputEncoder], now: Now, budget: usize, out: &mut Routed) {
        let to = &mut self.to;
        let mut emit = |info: &FlushInfo, flushed: Flushed<'_>| {
            to.flushed(outputs, (info, &flushed), now, out);
        };
        let tick = self.aggregator.tick(now, budget, &mut emit);
        match tick {
            Tick::Started(info) => {
                // `timestamp_lag`: the distance to the previous flush minus a window (spec statsd §15).
                let before = self.flushed_at_s.replace(info.time_s);
                if let (Some(name), Some(before)) = (&self.names.timestamp_lag, before) {
                    let lag = info.time_s as f64 - before as f64 - info.window_s;
                    self.aggregator.add_self_metric_closing(name, lag, &mut emit);
                }
            }
            Tick::Ended(end) => self.end_flush(end, outputs, now, out),
            Tick::Idle | Tick::Sweeping => {}
        }
    }

    /// Its last flush. Relays stop after a result whose name needed long searches if `go_on` returns false.
    pub(crate) fn finish(
        &mut self,
        takers: Takers<'_>,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) {
        self.flush_all(outputs, now, out);
        let _all = self.to.route(takers, outputs, now, out, go_on);
    }

    /// Closes the window and sweeps all of it.
    fn flush_all(&mut self, outputs: &mut [OutputEncoder], now: Now, out: &mut Routed) {
        let to = &mut self.to;
        let end = self.aggregator.flush_all(now, |info, flushed| {
            to.flushed(outputs, (info, &flushed), now, out);
        });
        self.end_flush(end, outputs, now, out);
    }

    /// Its state, for [`Aggregation::take_back`].
    pub(crate) fn held(&self) -> HeldByAggregation {
        let Aggregation {
            aggregator,
            flushed_at_s,
            last_flush,
            flushes,
            flushed_number,
            flushed_label_s,
            ..
        } = self;
        HeldByAggregation {
            aggregator: aggregator.clone(),
            flushed_at_s: *flushed_at_s,
            last_flush: *last_flush,
            flushes: *flushes,
            flushed_number: *flushed_number,
            flushed_label_s: *flushed_label_s,
        }
    }

    /// Restores that state, as if it had not been flushed since.
    pub(crate) fn take_back(&mut self, held: HeldByAggregation) {
        let HeldByAggregation {
            aggregator,
            flushed_at_s,
            last_flush,
            flushes,
            flushed_number,
            flushed_label_s,
        } = held;
        (self.aggregator, self.flushed_at_s, self.last_flush) = (aggregator, flushed_at_s, last_flush);
        (self.flushes, self.flushed_number, self.flushed_label_s) =
            (flushes, flushed_number, flushed_label_s);
    }

    /// Applies a new plan, and keeps its state. With `forget_spellings` sources spell names differently than before.
    pub(crate) fn reconfigure(&mut self, plan: &AggregateTransform, forget_spellings: bool, now: Now) {
        self.aggregator.reconfigure(plan.plan.clone(), now);
        if forget_spellings {
            self.aggregator.drop_aliases();
        }
        self.names = SelfNames::of(plan);
        self.key_flush = plan.plan.key_flush.is_some();
    }

    /// Its last flush; none before the first one has ended. A label of a clock that was set back since does not count.
    pub(crate) fn note(&self) -> Option<Note> {
        let label_s = self.flushed_label_s.filter(|_| self.last_flush.is_some())?;
        Some(Note { label_s, number: self.flushed_number })
    }

    fn end_flush(&mut self, end: FlushEnd, outputs: &mut [OutputEncoder], now: Now, out: &mut Routed) {
        self.last_flush = Some(end);
        // Nothing is saved during a sweep.
        self.flushed_number = self.saved;
        self.flushed_label_s = Some(self.aggregator.labelled_s().unwrap_or(0));
        self.flushes += 1;
        for at in &self.to.outputs {
            outputs[*at].end_flush(&end, now, out);
        }
        if let Some(results) = &mut self.to.results {
            results.end_flush(&end, now);
        }
    }
}

/// How the samples of a batch ended in an aggregation.
pub(crate) fn outcomes(added: Added) -> impl Iterator<Item = (Outcome, u64)> {
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

/// Adds the figures of a batch to the self counters.
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
            aggregator.add_self_metric(Kind::Counter, name, count as f64, &mut *emit);
        }
    }
}
