//! The aggregations of a shard: made from a plan, and what is done with all of them.
//!
//! Path of a sample: `Transforms::push_samples` -> `Aggregation::add`, and at the window's end
//! **[`Aggregations::tick`]** -> `Aggregation::tick` -> the outputs and relays that take its results. Not here: one
//! aggregation (`aggregation`), its state as bytes (`shard::state`), its series for the API (`shard::inspect`).

use std::collections::BTreeMap;

use config::kinds::RecordKind;
use config::plan::{AggregateTransform, Feed, Plan};
use model::{Now, OutputId, TransformId};
use process::aggregate::{Figures, FlushEnd};

use crate::checkpoints::Note;
use crate::encode::{OutputEncoder, Routed};
use crate::shard::transforms::aggregation::{Aggregation, Fed};
use crate::shard::transforms::results::Results;
use crate::shard::transforms::takers::{PointEdges, Takers};
use crate::shard::transforms::wiring::Wiring;

/// All aggregations of a shard.
#[derive(Debug, Default)]
pub(crate) struct Aggregations {
    /// In the order of the plan.
    all: Vec<Aggregation>,
    /// Those that reloads have removed.
    gone: Gone,
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

impl Aggregations {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Aggregation> {
        self.all.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Aggregation> {
        self.all.iter_mut()
    }

    pub(crate) fn at_mut(&mut self, at: usize) -> &mut Aggregation {
        &mut self.all[at]
    }

    /// The index of the aggregation of that name.
    pub(crate) fn place_of(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|state| state.name == name)
    }

    /// The aggregation of that name.
    pub(crate) fn named_mut(&mut self, name: &str) -> Option<&mut Aggregation> {
        self.all.iter_mut().find(|state| state.name == name)
    }

    /// Closes windows that are due and sweeps at most `budget` series of each. Returns the monotonic nanosecond of the
    /// next work. Relays stop after a result whose name needed long searches if `go_on` returns false.
    pub(crate) fn tick(
        &mut self,
        now: Now,
        budget: usize,
        Takers { relays, streams }: Takers<'_>,
        outputs: &mut [OutputEncoder],
        out: &mut Routed,
        go_on: &mut dyn FnMut() -> bool,
    ) -> u64 {
        let mut due_ns = u64::MAX;
        for state in &mut self.all {
            // Emitted results are routed before anything else is emitted.
            let mut all = state.to.route(Takers { relays, streams }, outputs, now, out, go_on);
            if all && state.aggregator.due_ns() <= now.mono_ns {
                state.tick(outputs, now, budget, out);
                all = state.to.route(Takers { relays, streams }, outputs, now, out, go_on);
            }
            due_ns = due_ns.min(if all { state.aggregator.due_ns() } else { now.mono_ns });
        }
        due_ns
    }

    /// Emits the rest of the windows that have ended, and routes all results.
    pub(crate) fn end_sweeps(
        &mut self,
        Takers { relays, streams }: Takers<'_>,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) {
        for state in &mut self.all {
            let _all = state.to.route(Takers { relays, streams }, outputs, now, out, &mut || true);
            while state.aggregator.due_ns() == 0 {
                state.tick(outputs, now, usize::MAX, out);
                let _all = state.to.route(Takers { relays, streams }, outputs, now, out, &mut || true);
            }
        }
    }

    /// Before another plan applies: routes all results, and does the last flush of those that it does not have.
    pub(crate) fn close_for(
        &mut self,
        plan: &Plan,
        Takers { relays, streams }: Takers<'_>,
        outputs: &mut [OutputEncoder],
        now: Now,
        out: &mut Routed,
    ) {
        let Aggregations { all, gone } = self;
        for state in all.iter_mut() {
            let _all = state.to.route(Takers { relays, streams }, outputs, now, out, &mut || true);
        }
        let is_aggregate = |name: &str| plan.aggregates().any(|(_, kept, _)| kept.name == name);
        for state in all.iter_mut().filter(|state| !is_aggregate(&state.name)) {
            state.finish(Takers { relays, streams }, outputs, now, out, &mut || true);
            gone.note(state);
        }
    }

    /// Applies a plan: those that keep their name keep their state.
    pub(crate) fn wire(&mut self, wiring: &Wiring<'_>) {
        let Wiring { plan, respelled, now, .. } = *wiring;
        let mut before = std::mem::take(&mut self.all);
        for (id, transform, aggregate) in plan.aggregates() {
            let outputs = outputs_of(plan, id);
            let aggregate = &aggregate_for(plan, aggregate, &outputs);
            let known = before.iter().position(|known| known.name == transform.name);
            let mut state = match known {
                Some(known) => before.swap_remove(known),
                None => Aggregation::new(id, &transform.name, aggregate, now),
            };
            if known.is_some() {
                let forget_spellings = transform.sources().any(|id| respelled[id.index()]);
                state.reconfigure(aggregate, forget_spellings, now);
            }
            state.id = id;
            state.to = fed(wiring, id, aggregate, &outputs);
            if known.is_none() {
                let label_s = self.gone.label_of(&state.to.outputs);
                label_s.into_iter().for_each(|label_s| state.aggregator.resume_after_other(label_s, now));
                // Its own labels count from now on.
                self.gone.notes.remove(&state.name);
            }
            self.all.push(state);
        }
    }

    /// True while ended windows are being emitted.
    pub(crate) fn is_flushing(&self) -> bool {
        self.all.iter().any(|state| state.aggregator.due_ns() == 0)
    }

    /// Flushes that have ended, those of removed aggregations included.
    pub(crate) fn flushes(&self) -> u64 {
        self.gone.flushes + self.all.iter().map(|state| state.flushes).sum::<u64>()
    }

    /// The last note of each that has flushed, by name, those of removed aggregations included.
    pub(crate) fn last_notes(&self) -> impl Iterator<Item = (&str, Note)> {
        let gone = self.gone.notes.iter().map(|(name, note)| (name.as_str(), *note));
        let here = self.all.iter().filter_map(|state| Some((state.name.as_str(), state.note()?)));
        gone.chain(here)
    }

    /// Reports of busy names that are due (`keyFlush`).
    pub(crate) fn key_flush(&mut self, now: Now) -> Vec<(TransformId, BusyNames)> {
        let reports = self.all.iter_mut().filter_map(|state| {
            let report = state.aggregator.key_flush(now)?;
            Some((state.id, report))
        });
        reports.collect()
    }

    /// Figures of at most `max` of them, from an index on.
    pub(crate) fn figures_from(&self, from: usize, max: usize) -> Vec<ShardFigures> {
        let figures = |state: &Aggregation| ShardFigures {
            transform: state.name.clone(),
            figures: state.aggregator.figures(),
            last_flush: state.last_flush,
        };
        self.all.iter().skip(from).take(max).map(figures).collect()
    }
}

/// Where the results of an aggregation go.
fn fed(wiring: &Wiring<'_>, id: TransformId, aggregate: &AggregateTransform, outputs: &[OutputId]) -> Fed {
    let Wiring { plan, accounts, .. } = *wiring;
    let takers = PointEdges::from(Feed::Transform(id), plan, accounts);
    Fed {
        outputs: outputs.iter().map(|id| id.index()).collect(),
        results: (!takers.is_empty()).then(|| Results::new(&aggregate.namespace)),
        takers,
    }
}

/// Outputs of the flushes of the transform `id`.
fn outputs_of(plan: &Plan, id: TransformId) -> Vec<OutputId> {
    let outputs = plan.outputs.iter().enumerate();
    let fed = outputs.filter(|(_, output)| {
        output.from.contains(&Feed::Transform(id)) && output.kind.takes().contains(&RecordKind::Aggregates)
    });
    fed.map(|(at, _)| OutputId(at as u16)).collect()
}

/// The plan of an aggregation that feeds `outputs`: outputs that send samples need the members of sets.
fn aggregate_for(plan: &Plan, of: &AggregateTransform, outputs: &[OutputId]) -> AggregateTransform {
    let mut aggregate = of.clone();
    let samples = |id: &OutputId| plan.outputs[id.index()].kind.takes().contains(&RecordKind::Packets);
    aggregate.plan.set_members |= outputs.iter().any(samples);
    aggregate
}
