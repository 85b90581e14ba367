//! What aggregations must still hold when the next process begins (docs/restarts.md): of the followed counters at most what
//! came since the last checkpoint began is forgotten, and nothing is counted twice.
//!
//! One window may be told twice, under one label: its flush was on its way when the process died, or a loss of power took
//! the note of it along. What was in the checkpoint of that window is then given again, and no more.
//! A fault that no checkpoint can undo (a write that the disk lost, a flipped byte) lets more be forgotten, or brings an earlier
//! checkpoint back, whose window was told since.

use std::collections::BTreeMap;

use config::plan::{Plan, TransformPlan};

use super::watch::Watch;
use crate::world::keeping::Event;

/// The aggregation whose counters are followed.
pub(super) const FOLLOWED: &str = "t";

/// Checkpoints that have to be whole before a fault that may have damaged one counts no more: it happens to one of the next
/// [`super::outage::LOST_WRITE_MAX`] writes, and there are two generations.
const CHECKPOINTS_HEAL: u32 = super::outage::LOST_WRITE_MAX as u32 + 3;

/// Counter -> sum of what was sent.
type Sums = BTreeMap<String, u64>;

/// How things were when saving began.
#[derive(Clone, Debug)]
struct Snapshot {
    number: u64,
    sent: Sums,
    given: BTreeMap<String, f64>,
    /// Flushes that had ended.
    flushes: u64,
}

/// See the module's header.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Those that were begun and are not whole, in order: several may be on their way to a slow disk.
    begun: Vec<Snapshot>,
    whole: Option<Snapshot>,
    /// The first one, which may be whole: the process died in writing it.
    first: Option<Snapshot>,
    /// Flushes that have ended; the last of them that the process knows, and the last that is noted on disk.
    told: u64,
    known: u64,
    noted: u64,
    /// What had been sent when the process began.
    sent_before: Sums,
    /// Checkpoints that have to be whole before all can be relied on again.
    damaged: u32,
    /// Checkpoints that were whole.
    pub(super) checkpoints: u64,
}

impl Memory {
    /// Something happened, after what `watch` has seen and with all of `sent`.
    pub(super) fn note(&mut self, event: &Event, sent: &Sums, watch: &Watch) {
        match event {
            Event::Begun { name, number } if name == FOLLOWED => {
                let (sent, given) = (sent.clone(), watch.given());
                self.begun.push(Snapshot { number: *number, sent, given, flushes: self.told });
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
            Event::Told { name } if name == FOLLOWED => {
                self.told += 1;
                self.known = self.told;
            }
            Event::Noted => self.noted = self.known,
            _ => {}
        }
    }

    /// A fault that may damage what is on disk.
    pub(super) fn damage(&mut self) {
        self.damaged = CHECKPOINTS_HEAL;
    }

    /// True when what is on disk may be damaged.
    pub(super) fn may_be_damaged(&self) -> bool {
        self.damaged > 0
    }

    /// A process has begun whose plan has checkpoints, or none: then those that there were are removed.
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

    /// A new process has begun, and `back` of the followed counters is back. `forgotten` is what has been since the one
    /// before began, `given` what one output was given in points.
    ///
    /// # Errors
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
        // The process may have died between the last write of a checkpoint and what follows it.
        let there = || whole.into_iter().chain(&self.first).chain(self.begun.first());
        let in_doubt = || there().filter(|there| power || self.noted <= there.flushes);
        for (name, sent) in sent {
            let of = |map: &BTreeMap<String, f64>| map.get(name).copied().unwrap_or(0.0);
            let (back, given, forgotten) = (of(back), of(given), of(forgotten));
            let is_given = self.damaged > 0 || in_doubt().any(|there| given > of(&there.given));
            let twice = if is_given { back } else { 0.0 };
            if forgotten < -twice {
                return Err(format!(
                    "{} of counter `{name}` are counted twice, and {twice} may be: {sent} were sent, {given} given, \
                     {back} are back",
                    -forgotten
                ));
            }
            let Some(whole) = whole.filter(|_| self.damaged == 0) else { continue };
            let counted = |sums: &Sums| sums.get(name).copied().unwrap_or(0);
            let since = sent - counted(&whole.sent).max(counted(&self.sent_before));
            if forgotten > since as f64 {
                return Err(format!(
                    "{forgotten} of counter `{name}` are forgotten, and {since} were sent since the last checkpoint: \
                     {back} are back"
                ));
            }
        }
        Ok(())
    }

    /// That process goes on.
    pub(super) fn restart(&mut self, power: bool, sent: &Sums) {
        self.sent_before.clone_from(sent);
        let begun = std::mem::take(&mut self.begun).into_iter().next();
        self.first = self.first.take().or(begun);
        if power {
            // An older note may be back.
            self.noted = 0;
        }
        self.known = self.noted;
    }
}
