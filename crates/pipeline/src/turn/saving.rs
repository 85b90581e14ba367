//! Checkpoints of aggregations, a slice in each turn, and notes of the flushes that have ended.
//!
//! Not here: which aggregation is saved when, and how ([`crate::checkpoints`]).

use config::plan::Plan;
use model::Now;

use super::{Host, Turn};
use crate::checkpoints::{Keep, Piece};

impl Turn {
    /// Notes the flushes that have ended: their blocks are in the queues.
    pub fn note_flushes(&mut self, host: &mut impl Host) {
        let flushes = self.shard.flushes();
        if std::mem::replace(&mut self.flushes_noted, flushes) != flushes {
            self.shard.last_notes().for_each(|(name, note)| host.note(name, note));
        }
    }

    /// The flushes so far need no notes.
    pub fn skip_notes(&mut self) {
        self.flushes_noted = self.shard.flushes();
    }

    /// Saves a slice, if there is something to save.
    pub fn save(&mut self, keep: &mut impl Keep, now: Now) {
        self.saver.turn(&mut self.shard, self.limits.save_series, keep, now);
    }

    /// Monotonic nanosecond at which [`Turn::save`] has something to do.
    pub fn save_due_ns(&self) -> u64 {
        self.saver.due_ns()
    }

    /// Takes the checkpoints of a plan: see [`crate::checkpoints::Saver::follow`].
    pub fn follow_checkpoints(&mut self, plan: &Plan, next_number: impl Fn(&str) -> u64, now: Now) {
        self.saver.follow(plan, &mut self.shard, next_number, now);
    }

    /// Aggregations with checkpoints, and the nanoseconds between two.
    pub fn checkpoints(&self) -> impl Iterator<Item = (&str, u64)> {
        self.saver.jobs()
    }

    /// Saves no more before [`Turn::follow_checkpoints`].
    pub fn end_checkpoints(&mut self) {
        self.saver.end(&mut self.shard);
    }

    /// The last checkpoints, of everything as it is now, and the pieces that are still to be written before them.
    pub(super) fn last_checkpoints(&mut self, keep: &mut impl Keep, now: Now) -> Vec<Piece> {
        self.saver.last(&mut self.shard, keep, now)
    }
}
