//! The state of a shard's aggregations, Riemann configs and aggregation rules as bytes, for checkpoints and for a process that takes
//! over.
//!
//! Each aggregation is saved on its own, under its name; the format belongs to `process::aggregate::checkpoint`. Not
//! here: files, and when to save (`staunch`).

use std::sync::Arc;

use model::{Figure, Kind, Now, RawKey};
use process::aggregate::checkpoint::{LastFlush, NotRestored, Restored, Slice};
use process::aggregation_rules;
use wire::statsd::Parser;

use crate::shard::transforms::streams::RestoredStreams;
use crate::shard::transforms::{BeforeLast, Kept, SavedState};
use crate::{Routed, Shard};

impl Shard {
    /// The current state, for [`Shard::import`] in another process. No window is closed: a flush in progress is
    /// finished first, and waiting lines are forwarded. Nothing may be pushed afterwards, unless the other process does
    /// not continue: then this one does, and its next checkpoints contain everything.
    ///
    /// `id` is a number that is not known outside. Transforms that are not `kept` are left out.
    pub fn export(&mut self, kept: &Kept, id: u64, now: Now, out: &mut Routed) -> Vec<SavedState> {
        let Shard { transforms, outputs, .. } = self;
        transforms.end_sweeps(outputs, now, out);
        self.close_lines(now, out);
        self.transforms.save(kept, id, now)
    }

    /// True while ended windows are being emitted: exporting now would have to finish that first.
    pub fn is_flushing(&self) -> bool {
        self.transforms.is_flushing()
    }

    /// The last flush of every transform that is not in `kept`: no process continues them. Returns what
    /// [`Shard::go_back`] needs to undo it.
    pub fn flush_others(&mut self, kept: &Kept, now: Now, out: &mut Routed) -> BeforeLast {
        let Shard { transforms, outputs, .. } = self;
        let before = transforms.flush_others(kept, outputs, now, out);
        self.close_lines(now, out);
        before
    }

    /// The blocks of [`Shard::flush_others`] went nowhere: restores the state before.
    pub fn go_back(&mut self, before: BeforeLast) {
        self.transforms.go_back(before);
    }

    /// Restores the saved aggregation rules of the relay `name`, before the first batch. None when there is no such
    /// relay.
    pub fn import_aggregation_rules(
        &mut self,
        name: &str,
        bytes: &[u8],
    ) -> Option<Result<aggregation_rules::Restored, aggregation_rules::NotRestored>> {
        let relay = self.transforms.relays.iter_mut().find(|relay| relay.name == name)?;
        Some(relay.import(bytes))
    }

    /// The figures of each relay, by its name.
    pub fn counted_by_relays(&self) -> Vec<(String, Vec<Figure>)> {
        self.transforms.relays.iter().map(|relay| (relay.name.clone(), relay.counted())).collect()
    }

    /// Continues the figures of the relay `name` of another process, if there is one of that name.
    pub fn go_on_with_relay(&mut self, name: &str, counted: &[Figure]) {
        let relay = self.transforms.relays.iter_mut().find(|relay| relay.name == name);
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
        let at = self.transforms.aggregations.place_of(name)?;
        let parser = self.parser_of(at)?;
        let canonical = |kind: Kind, key: RawKey<'_>, name: &mut Vec<u8>| parser.canonical(kind, key, name);
        let state = self.transforms.aggregations.at_mut(at);
        let restored = state.aggregator.restore(bytes, last, now, canonical);
        if let Ok(Restored { last_flush_s: Some(label_s), .. }) = restored {
            state.flushed_at_s = Some(label_s);
        }
        Some(restored)
    }

    /// Restores the saved state of the Riemann config `name`, before the first batch. None when there is no such config.
    pub fn import_streams(
        &mut self,
        name: &str,
        bytes: &[u8],
    ) -> Option<Result<RestoredStreams, NotRestored>> {
        self.transforms.streams.named_mut(name).map(|streams| streams.restore(bytes))
    }

    /// Starts to save the aggregation `name`, see `Aggregator::save_begin`. False while it cannot be saved.
    pub fn save_begin(&mut self, name: &str, id: u64, number: u64, now: Now, to: &mut Vec<u8>) -> bool {
        let Some(state) = self.transforms.aggregations.named_mut(name) else {
            let streams = self.transforms.streams.named_mut(name);
            return streams.is_some_and(|streams| streams.save_begin(id, number, now, to));
        };
        let begun = state.aggregator.save_begin(id, number, now, to);
        if begun {
            state.saved = Some(number);
        }
        begun
    }

    /// Reports that all saves of the aggregation `name` on disk have numbers before `number`. Returns the next one,
    /// which is also greater than those of saves started here, which may be on their way to disk.
    pub(crate) fn saved_before(&mut self, name: &str, number: u64) -> u64 {
        let saved = match self.transforms.aggregations.named_mut(name) {
            Some(state) => &mut state.saved,
            None => match self.transforms.streams.named_mut(name) {
                Some(streams) => &mut streams.saved,
                None => return number,
            },
        };
        let next = saved.map_or(number, |saved| number.max(saved + 1));
        *saved = Some(next.saturating_sub(1));
        next
    }

    /// Continues the save, see `Aggregator::save_slice`.
    pub fn save_slice(&mut self, name: &str, series_max: usize, to: &mut Vec<u8>) -> Slice {
        match self.transforms.aggregations.named_mut(name) {
            Some(state) => state.aggregator.save_slice(series_max, to),
            None => match self.transforms.streams.named_mut(name) {
                Some(streams) => streams.save_slice(series_max, to),
                None => Slice::Void,
            },
        }
    }

    /// The last save of the aggregation `name` may not be on disk: the next one is made even without changes.
    pub(crate) fn save_again(&mut self, name: &str) {
        let state = self.transforms.aggregations.named_mut(name);
        state.into_iter().for_each(|state| state.aggregator.save_again());
        let streams = self.transforms.streams.named_mut(name);
        streams.into_iter().for_each(|streams| streams.engine.save_again());
    }

    /// True when saving the aggregation `name` would differ from its last save.
    pub fn is_changed(&self, name: &str) -> bool {
        self.transforms.aggregations.iter().any(|state| state.name == name && state.aggregator.is_changed())
            || self.transforms.streams.is_changed(name)
    }

    /// The parser for the names of an aggregation: all its sources read them by the same rules.
    fn parser_of(&self, at: usize) -> Option<Arc<Parser>> {
        let source = self.sources.iter().find(|source| source.transforms.feed_aggregation(at))?;
        Some(Arc::clone(&source.parser))
    }
}
