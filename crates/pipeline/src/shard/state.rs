//! The state of a shard's aggregations and aggregation rules as bytes, for checkpoints and for a process that takes
//! over.
//!
//! Each aggregation is saved on its own, under its name; the format belongs to `process::aggregate::checkpoint`. Not
//! here: files, and when to save (`staunch`).

use std::sync::Arc;

use config::plan::Plan;
use model::{Figure, Kind, Now, RawKey};
use process::aggregate::checkpoint::{LastFlush, NotRestored, Restored, Slice};
use process::aggregation_rules;
use wire::statsd::Parser;

use crate::shard::transforms::aggregation::{Aggregation, HeldByAggregation};
use crate::shard::transforms::relay::HeldByRelay;
use crate::{Routed, Shard};

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
    /// Aggregations.
    pub aggregations: Vec<String>,
    /// Relays.
    pub relays: Vec<String>,
}

impl Kept {
    /// All transforms of a plan.
    pub fn of(plan: &Plan) -> Kept {
        Kept {
            aggregations: plan.aggregates().map(|(_, transform, _)| transform.name.clone()).collect(),
            relays: plan.relays().map(|(_, transform, _)| transform.name.clone()).collect(),
        }
    }
}

/// The state of aggregations and relays before their last flush.
#[derive(Debug, Default)]
pub struct BeforeLast {
    aggregations: Vec<(usize, HeldByAggregation)>,
    relays: Vec<(usize, HeldByRelay)>,
}

impl Shard {
    /// The current state, for [`Shard::import`] in another process. No window is closed: a flush in progress is
    /// finished first, and waiting lines are forwarded. Nothing may be pushed afterwards, unless the other process does
    /// not continue: then this one does, and its next checkpoints contain everything.
    ///
    /// `id` is a number that is not known outside. Transforms that are not `kept` are left out.
    pub fn export(&mut self, kept: &Kept, id: u64, now: Now, out: &mut Routed) -> Vec<SavedState> {
        let Shard { aggregations, relays, outputs, .. } = self;
        relays.route_all_results(outputs, now, out);
        for state in aggregations.iter_mut() {
            let _all = state.to.route(relays, outputs, now, out, &mut || true);
            while state.aggregator.due_ns() == 0 {
                state.tick(outputs, now, usize::MAX, out);
                let _all = state.to.route(relays, outputs, now, out, &mut || true);
            }
        }
        self.close_lines(now, out);
        let saved = |name: &str, bytes| SavedState { name: name.to_owned(), bytes };
        let mut states = Vec::new();
        for state in self.aggregations.iter_mut().filter(|state| kept.aggregations.contains(&state.name)) {
            let mut bytes = Vec::new();
            if state.aggregator.save_whole(id, now, &mut bytes) {
                states.push(saved(&state.name, bytes));
            }
        }
        let relays = self.relays.iter().filter(|relay| kept.relays.contains(&relay.name));
        let of_relays = relays.filter_map(|relay| Some(saved(&relay.name, relay.export(id)?)));
        states.extend(of_relays);
        states
    }

    /// True while ended windows are being emitted: exporting now would have to finish that first.
    pub fn is_flushing(&self) -> bool {
        self.aggregations.iter().any(|state| state.aggregator.due_ns() == 0)
    }

    /// The last flush of every aggregation and relay that is not in `kept`: no process continues them. Returns what
    /// [`Shard::go_back`] needs to undo it.
    pub fn flush_others(&mut self, kept: &Kept, now: Now, out: &mut Routed) -> BeforeLast {
        let Shard { aggregations, relays, outputs, .. } = self;
        let mut before = BeforeLast::default();
        let is_kept = |state: &Aggregation| kept.aggregations.contains(&state.name);
        let ending = aggregations.iter().filter(|state| !is_kept(state));
        // Kept relays get results of aggregations and relays that are not kept, and may have to be restored then.
        let changed = ending.flat_map(|state| state.to.relays.iter().map(|to| to.0));
        let is_ending = |at: &usize| !kept.relays.contains(&relays.at(*at).name);
        let changed = relays.reached_from(changed.chain((0..relays.len()).filter(is_ending)));
        before.relays.extend(changed.into_iter().map(|at| (at, relays.at(at).held())));
        for (at, state) in aggregations.iter_mut().enumerate() {
            if !is_kept(state) {
                before.aggregations.push((at, state.held()));
                state.flush_all(outputs, now, out);
                let _all = state.to.route(relays, outputs, now, out, &mut || true);
            }
        }
        for at in relays.in_order() {
            if !kept.relays.contains(&relays.at(at).name) {
                relays.finish(at, outputs, now, out, &mut || true);
            }
        }
        self.close_lines(now, out);
        before
    }

    /// The blocks of [`Shard::flush_others`] went nowhere: restores the state before.
    pub fn go_back(&mut self, before: BeforeLast) {
        for (at, held) in before.relays {
            self.relays.at_mut(at).take_back(held);
        }
        for (at, held) in before.aggregations {
            self.aggregations[at].take_back(held);
        }
    }

    /// Restores the saved aggregation rules of the relay `name`, before the first batch. None when there is no such
    /// relay.
    pub fn import_aggregation_rules(
        &mut self,
        name: &str,
        bytes: &[u8],
    ) -> Option<Result<aggregation_rules::Restored, aggregation_rules::NotRestored>> {
        let relay = self.relays.iter_mut().find(|relay| relay.name == name)?;
        Some(relay.import(bytes))
    }

    /// The figures of each relay, by its name.
    pub fn counted_by_relays(&self) -> Vec<(String, Vec<Figure>)> {
        self.relays.iter().map(|relay| (relay.name.clone(), relay.counted())).collect()
    }

    /// Continues the figures of the relay `name` of another process, if there is one of that name.
    pub fn go_on_with_relay(&mut self, name: &str, counted: &[Figure]) {
        let relay = self.relays.iter_mut().find(|relay| relay.name == name);
        relay.into_iter().for_each(|relay| relay.go_on_with(counted));
    }

    /// Restores the saved state of the aggregation `name`, before the first batch. `last` is what is known of its last
    /// flush, see `Aggregator::restore`. None when there is no such aggregation.
    pub fn import(
        &mut self,
        name: &str,
        bytes: &[u8],
        last: LastFlush,
        now: Now,
    ) -> Option<Result<Restored, NotRestored>> {
        let at = self.aggregations.iter().position(|state| state.name == name)?;
        let parser = self.parser_of(at)?;
        let canonical = |kind: Kind, key: RawKey<'_>, name: &mut Vec<u8>| parser.canonical(kind, key, name);
        let state = &mut self.aggregations[at];
        let restored = state.aggregator.restore(bytes, last, now, canonical);
        if let Ok(Restored { last_flush_s: Some(label_s), .. }) = restored {
            state.flushed_at_s = Some(label_s);
        }
        Some(restored)
    }

    /// Starts to save the aggregation `name`, see `Aggregator::save_begin`. False while it cannot be saved.
    pub fn save_begin(&mut self, name: &str, id: u64, number: u64, now: Now, to: &mut Vec<u8>) -> bool {
        let state = self.aggregations.iter_mut().find(|state| state.name == name);
        let Some(state) = state else { return false };
        let begun = state.aggregator.save_begin(id, number, now, to);
        if begun {
            state.saved = Some(number);
        }
        begun
    }

    /// Reports that all saves of the aggregation `name` on disk have numbers before `number`. Returns the next one,
    /// which is also greater than those of saves started here, which may be on their way to disk.
    pub(crate) fn saved_before(&mut self, name: &str, number: u64) -> u64 {
        let Some(state) = self.aggregations.iter_mut().find(|state| state.name == name) else {
            return number;
        };
        let next = state.saved.map_or(number, |saved| number.max(saved + 1));
        state.saved = Some(next.saturating_sub(1));
        next
    }

    /// Continues the save, see `Aggregator::save_slice`.
    pub fn save_slice(&mut self, name: &str, series_max: usize, to: &mut Vec<u8>) -> Slice {
        let state = self.aggregations.iter_mut().find(|state| state.name == name);
        state.map_or(Slice::Void, |state| state.aggregator.save_slice(series_max, to))
    }

    /// The last save of the aggregation `name` may not be on disk: the next one is made even without changes.
    pub(crate) fn save_again(&mut self, name: &str) {
        let state = self.aggregations.iter_mut().find(|state| state.name == name);
        state.into_iter().for_each(|state| state.aggregator.save_again());
    }

    /// True when saving the aggregation `name` would differ from its last save.
    pub fn is_changed(&self, name: &str) -> bool {
        self.aggregations.iter().any(|state| state.name == name && state.aggregator.is_changed())
    }

    /// The parser for the names of an aggregation: all its sources read them by the same rules.
    fn parser_of(&self, at: usize) -> Option<Arc<Parser>> {
        let source = self.sources.iter().find(|source| source.routes.aggregations.contains(&at))?;
        Some(Arc::clone(&source.parser))
    }
}
