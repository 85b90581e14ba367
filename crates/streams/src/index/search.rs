//! Searches in slices: each call looks at some events and remembers where it stopped.
//!
//! Between two slices the index may change. An event that is in the index all the time, replaced or not, is looked at
//! exactly once; an event that comes or goes meanwhile may be in the result or not.

use std::sync::Arc;

use arcstr::ArcStr;

use super::limits::{Progress, SearchLimits, Stop};
use super::plan::{Access, PartOf, SetOf, TextTest, plan};
use super::slot_set::Slots;
use super::table::Index;
use crate::event::{Event, Field};
use crate::query::{Meter, Operand, Query, Tree};
use crate::value::Value;

/// Steps of looking at one event: it has to be fetched from memory.
const EVENT_STEPS: u64 = 6;

/// Past the slots of a text: no event has this number.
const PAST_ALL: u32 = u32::MAX;

/// A search that is under way.
#[derive(Debug)]
pub struct Search {
    query: Arc<Query>,
    limits: SearchLimits,
    access: Access,
    /// The next slot to look at.
    slot: u32,
    /// The text whose slots are looked at.
    text: Option<ArcStr>,
    counts: SearchCounts,
    meter: Meter,
    ended: Option<Progress>,
}

/// What a search has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchCounts {
    /// Events that were looked at.
    pub looked_at: u64,
    /// Events in the result.
    pub found: usize,
    /// Work, in steps of some ten nanoseconds.
    pub steps: u64,
    /// Regular expressions that gave up at a limit, and so did not match.
    pub gave_up: u64,
}

impl Search {
    /// Begins a search: chooses the sets that it looks at.
    pub fn new(query: &Arc<Query>, index: &Index, limits: SearchLimits) -> Search {
        let mut meter = Meter::default();
        let access = plan(query.tree(), index, &mut meter);
        Search { meter, ..Search::with(access, query, limits) }
    }

    /// A search that looks at all events, to compare with.
    pub fn scan(query: &Arc<Query>, limits: SearchLimits) -> Search {
        Search::with(Access::All, query, limits)
    }

    fn with(access: Access, query: &Arc<Query>, limits: SearchLimits) -> Search {
        Search {
            query: Arc::clone(query),
            limits,
            access,
            slot: 0,
            text: None,
            counts: SearchCounts::default(),
            meter: Meter::default(),
            ended: None,
        }
    }

    /// What it has done so far.
    pub fn counts(&self) -> SearchCounts {
        SearchCounts { steps: self.meter.steps, gave_up: self.meter.gave_up, ..self.counts }
    }

    /// Looks at events until it has done `steps_max` steps, and appends those that match to `found`. The last event of a
    /// slice may take more: the work for one event is bounded by the query and the event. After [`Progress::Done`] or
    /// [`Progress::Stopped`] it does nothing.
    pub fn run(&mut self, index: &Index, steps_max: u64, found: &mut Vec<Arc<Event>>) -> Progress {
        if let Some(ended) = self.ended {
            return ended;
        }
        let slice = Slice { index, until: self.meter.steps.saturating_add(steps_max), found };
        let access = std::mem::replace(&mut self.access, Access::Nothing);
        let ended = match &access {
            Access::Nothing => None,
            Access::Key { host, service } => {
                let event = slice.index.lookup(host, service);
                event.and_then(|event| self.check(event, slice.found))
            }
            Access::Sets(sets) => self.sets(sets, slice),
            Access::Texts { part, prefix, tests } => self.texts(*part, prefix, tests, slice),
            Access::All => self.all(slice),
        };
        self.access = access;
        let progress = ended.unwrap_or(Progress::Done);
        if progress != Progress::More {
            self.ended = Some(progress);
        }
        progress
    }

    /// Runs a slice and removes from the index what it finds, which is appended to `removed`.
    pub fn delete(&mut self, index: &mut Index, steps_max: u64, removed: &mut Vec<Arc<Event>>) -> Progress {
        let first = removed.len();
        let progress = self.run(index, steps_max, removed);
        for event in &removed[first..] {
            let deleted = index.delete(event.get(Field::Host), event.get(Field::Service));
            debug_assert!(deleted.is_some(), "it was found in this slice");
        }
        progress
    }

    fn all(&mut self, slice: Slice<'_>) -> Option<Progress> {
        while self.slot < slice.index.entries.end() {
            let entry = slice.index.entries.get(self.slot);
            self.slot += 1;
            self.meter.steps += 1;
            let stop = entry.and_then(|entry| self.check(&entry.event, slice.found));
            if let Some(stop) = stop.or_else(|| self.pause(slice.until)) {
                return Some(stop);
            }
        }
        None
    }

    fn sets(&mut self, sets: &[SetOf], slice: Slice<'_>) -> Option<Progress> {
        let from = |set: &SetOf| Some(set.slots(slice.index)?.from(self.slot).peekable());
        let mut iterators: Vec<std::iter::Peekable<Slots<'_>>> = sets.iter().filter_map(from).collect();
        loop {
            let slot = iterators.iter_mut().filter_map(|slots| slots.peek().copied()).min()?;
            for slots in &mut iterators {
                slots.next_if_eq(&slot);
            }
            self.slot = slot + 1;
            self.meter.steps += (sets.len() / 4) as u64;
            let stop = self.check(&slice.index.entries.at(slot).event, slice.found);
            if let Some(stop) = stop.or_else(|| self.pause(slice.until)) {
                return Some(stop);
            }
        }
    }

    fn texts(
        &mut self,
        part: PartOf,
        prefix: &str,
        tests: &[TextTest],
        slice: Slice<'_>,
    ) -> Option<Progress> {
        let (from, slot) = (self.text.take(), self.slot);
        for (text, slots) in part.texts(slice.index).with_prefix(prefix, from.as_deref()) {
            // Where the last slice stopped, unless that text is gone.
            let first = if from.as_ref() == Some(text) { slot } else { 0 };
            if first == PAST_ALL {
                continue;
            }
            self.meter.steps += 2;
            let passes = tests.iter().any(|test| test.passes(text, &mut self.meter));
            for slot in slots.from(first).take_while(|_| passes) {
                let stop = self.check(&slice.index.entries.at(slot).event, slice.found);
                if let Some(stop) = stop.or_else(|| self.pause(slice.until)) {
                    (self.text, self.slot) = (Some(text.clone()), slot + 1);
                    return Some(stop);
                }
            }
            if !passes && let Some(stop) = self.pause(slice.until) {
                (self.text, self.slot) = (Some(text.clone()), PAST_ALL);
                return Some(stop);
            }
        }
        None
    }

    /// Whether the slice or the whole search has done its steps. Asked after each event, so that each slice gets ahead.
    fn pause(&self, until: u64) -> Option<Progress> {
        if self.meter.steps >= self.limits.steps_max {
            return Some(Progress::Stopped(Stop::Steps));
        }
        (self.meter.steps >= until).then_some(Progress::More)
    }

    /// Looks at an event.
    fn check(&mut self, event: &Arc<Event>, found: &mut Vec<Arc<Event>>) -> Option<Progress> {
        self.meter.steps += EVENT_STEPS;
        self.counts.looked_at += 1;
        if !self.query.matches(event, &mut self.meter) {
            return None;
        }
        if self.counts.found == self.limits.results_max {
            return Some(Progress::Stopped(Stop::Results));
        }
        self.counts.found += 1;
        found.push(Arc::clone(event));
        None
    }
}

/// One call of `run`.
struct Slice<'i> {
    index: &'i Index,
    /// Steps of the search at which the slice ends.
    until: u64,
    found: &'i mut Vec<Arc<Event>>,
}

/// The query for events that have this event's values in these fields (`delete-from-index` with fields).
pub fn same_fields(fields: &[ArcStr], event: &Event) -> Tree {
    let same = |name: &ArcStr| {
        let value: &Value = event.named(name);
        Tree::Equal(Operand::Field(name.clone()), Operand::Literal(value.clone()))
    };
    Tree::and(fields.iter().map(same).collect())
}
