//! How an outlet ends: by a stop, by a reload that removes its output, or for its successor.

use std::sync::atomic::Ordering::Relaxed;

use config::plan::OutputPlan;
use deliver::Status;
use model::{Now, SECOND_NS};

use super::Outlet;
use client::stdio;
use sys::clock::Clock;

/// Percentage of the time for stopping in which the output of a queue on disk drains; the rest is for its last sync.
const DRAIN_PERCENT: u64 = 80;

/// Longest time that lines in flight may take to arrive before another endpoint gets the queue.
const LEAVE_NS_MAX: u64 = SECOND_NS;

/// True when a reload has removed the output.
pub fn is_retired(plan: &OutputPlan) -> bool {
    plan.from.is_empty()
}

impl Outlet {
    /// Orders the output to drain until `deadline_ns` and end.
    pub fn stop(&self, deadline_ns: u64) {
        self.ending.deadline_ns.store(deadline_ns, Relaxed);
        self.ending.stopping.store(true, Relaxed);
        self.wake();
    }

    /// The daemon ends: as [`Outlet::stop`], with a last sync of a queue on disk. Part of the time until `deadline_ns`
    /// is kept for that.
    pub fn close(&self, deadline_ns: u64, now: Now) {
        let drains_ns = deadline_ns.saturating_sub(now.mono_ns) / 100 * DRAIN_PERCENT;
        if let Some(disk) = self.disk() {
            disk.closing.store(true, Relaxed);
        }
        self.stop(if self.disk().is_some() { now.mono_ns + drains_ns } else { deadline_ns });
        self.wake_to_end();
    }

    pub(super) fn wake_to_end(&self) {
        if let Some(disk) = self.disk() {
            disk.wake_before(0, &self.queue());
        }
    }

    /// For the log: the waiting records of an output that a reload has removed, and what happens to them with `time` to
    /// send. None when nothing waits.
    pub fn left_behind(&self, time: &str) -> Option<String> {
        let (queued, bytes) = (self.sum().queued, stdio::bytes(self.bytes()));
        let (place, then) = match self.disk() {
            _ if queued == 0 => return None,
            Some(disk) => (
                format!("on disk in {}", disk.folder().path().display()),
                "stays there until an output of that name has a queue on disk again",
            ),
            None => ("in memory".to_owned(), "is dropped as `stopped`"),
        };
        Some(format!(
            "{} ({bytes}) queued {place}; the output has {time} to send them, and the rest {then}",
            stdio::records(queued)
        ))
    }

    /// A reload has removed the output: as [`Outlet::stop`], and the files of a queue on disk are closed when nothing
    /// is left in it.
    pub fn retire(&self, deadline_ns: u64) {
        if let Some(disk) = self.disk() {
            disk.set_retired(true);
        }
        self.stop(deadline_ns);
        // Its task may never have started.
        self.wake_to_end();
    }

    /// Orders the output to leave for its successor: at once, except for lines in flight to a healthy endpoint, which
    /// would be sent twice. They have [`LEAVE_NS_MAX`] to arrive.
    pub fn hand_over(&self) {
        self.ending.leaves_by_ns.store(Clock::mono_ns() + LEAVE_NS_MAX, Relaxed);
        self.stop(0);
    }

    /// When an output that leaves for its successor must have left; none for one that does not.
    pub fn leaves_by_ns(&self) -> Option<u64> {
        Some(self.ending.leaves_by_ns.load(Relaxed)).filter(|by_ns| *by_ns > 0)
    }

    /// True once the output has to drain and end.
    pub fn is_stopping(&self) -> bool {
        self.ending.stopping.load(Relaxed)
    }

    /// When draining ends for connection `number`. When the daemon ends, a queue on disk whose endpoint is down stops
    /// at once: nothing in it is lost, and the next start may be waiting for it.
    pub fn deadline_ns(&self, number: usize) -> u64 {
        let is_down = || self.senders[number].state().is_some_and(|state| state.status == Status::Down);
        let leaves = self.disk().is_some_and(|disk| disk.closing.load(Relaxed));
        if leaves && is_down() {
            return 0;
        }
        self.ending.deadline_ns.load(Relaxed)
    }

    /// Called by the task of connection `number` as its last action.
    pub fn set_ended(&self, number: usize) {
        let ended_before = self.senders[number].ended.swap(true, Relaxed);
        if let (Some(disk), false, true) = (self.disk(), ended_before, self.has_ended()) {
            disk.open.fetch_sub(1, Relaxed);
        }
        self.wake_to_end();
        self.ending.at_end.notify_waiters();
    }

    /// Resolves when all tasks have ended.
    pub async fn ended(&self) {
        loop {
            // Before the check, so that an end in between is not missed.
            let end = self.ending.at_end.notified();
            if self.has_ended() {
                return;
            }
            end.await;
        }
    }

    /// True when all tasks but that of connection `number` have ended.
    pub fn ends_with(&self, number: usize) -> bool {
        let others = self.senders.iter().enumerate().filter(|(other, _)| *other != number);
        others.into_iter().all(|(_, slot)| slot.ended.load(Relaxed))
    }

    /// True when all tasks have ended.
    pub fn has_ended(&self) -> bool {
        self.senders.iter().all(|slot| slot.ended.load(Relaxed))
    }
}

/// An outlet that never had a task, after a failed reload, is not waited for.
impl Drop for Outlet {
    fn drop(&mut self) {
        (0..self.connections()).for_each(|number| self.set_ended(number));
    }
}
