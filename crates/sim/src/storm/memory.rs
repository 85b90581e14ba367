//! The state that aggregations must have when the next process starts (docs/restarts.md): followed counters lose at
//! most the samples since the last checkpoint began, and nothing is counted twice.
//!
//! One window may be emitted twice with one label, if its flush was incomplete when the process died, or if a power
//! loss removed its note. Only the part of that window that was in the checkpoint is then emitted again.
//! Faults that no checkpoint can repair (a lost write, a flipped byte) allow larger losses, or restore an earlier
//! checkpoint whose window was already emitted.

use std::collections::BTreeMap;

use config::plan::{Plan, TransformPlan};

use super::watch::Watch;
use crate::world::keeping::Event;

/// The aggregation whose counters are followed.
pub(super) const FOLLOWED: &str = "t";

/// A lost write is one of the next this many writes of a disk for checkpoints.
pub(super) const LOST_WRITE_MAX: u64 = 3;

/// Complete checkpoints needed before a fault no longer matters. The fault hits one of the next
/// [`LOST_WRITE_MAX`] writes, and there are two generations of checkpoints.
const CHECKPOINTS_HEAL: u32 = LOST_WRITE_MAX as u32 + 3;

/// Counter -> sum of the samples sent.
type Sums = BTreeMap<String, u64>;

/// The state when saving began.
#[derive(Clone, Debug)]
struct Snapshot {
    number: u64,
    sent: Sums,
    given: BTreeMap<String, f64>,
    /// Completed flushes.
    flushes: u64,
}

/// See the module's header.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Checkpoints that were begun but are incomplete, in order: a slow disk may have several.
    begun: Vec<Snapshot>,
    whole: Option<Snapshot>,
    /// The first of them, which may be complete: the process died while writing it.
    first: Option<Snapshot>,
    /// Completed flushes; the last one that the process knows; the last one noted on disk.
    flushed: u64,
    known: u64,
    noted: u64,
    /// The samples sent before the process started.
    sent_before: Sums,
    /// Complete checkpoints needed before all of them are reliable again.
    damaged: u32,
    /// Complete checkpoints.
    pub(super) checkpoints: u64,
}

impl Memory {
    /// Records an event, after the arrivals that `watch` has seen and with all of `sent`.
    pub(super) fn note(&mut self, event: &Event, sent: &Sums, watch: &Watch) {
        match event {
            Event::Begun { name, number } if name == FOLLOWED => {
                let (sent, given) = (sent.clone(), watch.given());
                self.begun.push(Snapshot { number: *number, sent, given, flushes: self.flushed });
            }
            Event::Whole { name, number } if name == FOLLOWED => {
                self.checkpoints += 1;
                self.damaged = self.damaged.saturating_sub(1);
                let whole = self.begun.iter().find(|begun| begun.number == *number).cloned();
                self.whole = whole.or(self.whole.take());
                self.begun.retain(|begun| begun.number > *number);
                self.first = None;
            }
            Event::Removed { name, is_safe } if name == FOLLOWED => {
                (self.whole, self.first) = (None, None);
                if !is_safe {
                    self.damage();
                }
            }
            Event::Flushed { name } if name == FOLLOWED => {
                self.flushed += 1;
                self.known = self.flushed;
            }
            Event::Noted => self.noted = self.known,
            _ => {}
        }
    }

    /// A fault that may damage data on disk.
    pub(super) fn damage(&mut self) {
        self.damaged = CHECKPOINTS_HEAL;
    }

    /// True while data on disk may be damaged.
    pub(super) fn may_be_damaged(&self) -> bool {
        self.damaged > 0
    }

    /// A process has started. If its plan has no checkpoints, existing ones are removed.
    pub(super) fn begin(&mut self, plan: &Plan) {
        let is_kept = |transform: &TransformPlan| {
            let kept = transform.kind.as_aggregate().is_some_and(|aggregate| aggregate.checkpoint_ms > 0);
            transform.name == FOLLOWED && kept
        };
        if !plan.transforms.iter().any(is_kept) {
            (self.whole, self.first) = (None, None);
            self.begun.clear();
        }
    }

    /// A new process has started and restored `back` of the followed counters. `forgotten` is the loss since its
    /// predecessor started; `given` is the sum of the points given to one output.
    ///
    /// The failed check.
    /// What must not have happened.
    pub(super) fn check(
        &self,
        power: bool,
        sent: &Sums,
        back: &BTreeMap<String, f64>,
        given: &BTreeMap<String, f64>,
        forgotten: &BTreeMap<String, f64>,
    ) -> Result<(), String> {
        let whole = self.whole.as_ref();
        // The process may have died between the last write of a checkpoint and the event for it.
        let there = || whole.into_iter().chain(&self.first).chain(self.begun.first());
        let in_doubt = || there().filter(|there| power || self.noted <= there.flushes);
        for (name, sent) in sent {
            let of = |map: &BTreeMap<String, f64>| map.get(name).copied().unwrap_or(0.0);
            let (back, given, forgotten) = (of(back), of(given), of(forgotten));
            let is_given = self.damaged > 0 || in_doubt().any(|there| given > of(&there.given));
            let twice = if is_given { back } else { 0.0 };
            if forgotten < -twice {
                return Err(format!(
                    "{} of counter `{name}` are counted twice; allowed: {twice}: {sent} were sent, {given} given, \
                     {back} are back",
                    -forgotten
                ));
            }
            let Some(whole) = whole.filter(|_| self.damaged == 0) else { continue };
            let counted = |sums: &Sums| sums.get(name).copied().unwrap_or(0);
            let since = sent - counted(&whole.sent).max(counted(&self.sent_before));
            if forgotten > since as f64 {
                return Err(format!(
                    "{forgotten} of counter `{name}` are lost, but only {since} were sent since the last checkpoint: \
                     {back} are back"
                ));
            }
        }
        Ok(())
    }

    /// The new process continues.
    pub(super) fn restart(&mut self, power: bool, sent: &Sums) {
        self.sent_before.clone_from(sent);
        let begun = std::mem::take(&mut self.begun).into_iter().next();
        self.first = self.first.take().or(begun);
        if power {
            // An older note may have been restored.
            self.noted = 0;
        }
        self.known = self.noted;
    }
}
