//! Failover of an outlet: notifies the shard when its endpoint fails, and lets a moving shard take blocks from its
//! queue.
//!
//! Path: a sender's attempt -> `publish`, or an appended block -> **here** -> `NotifyLive`, a call into the shard
//! -> `Turn::set_live`. Not here: when an endpoint has failed (`deliver::standing`), its failover members
//! (`process::relay`), the moves (`pipeline::Moves`).
//! Invariant: the shard is notified of every change, in order; each attempt reports again the records that wait for a
//! failed endpoint.

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use deliver::failover::{Failover, FailoverDelay};
use deliver::queue::{Block, Entry, Queue};
use model::Now;

use super::Outlet;
use super::state::{NotifyLive, Watcher};
use sys::clock::Clock;

impl Watcher {
    fn tell(&self) {
        (self.notify)(self.failover.is_live(), self.failover.has_failed());
    }
}

impl Outlet {
    /// From now on the shard is notified when the endpoint has failed for `patience`; with `None` it is not.
    pub fn watch(&self, patience: Option<FailoverDelay>, notify: NotifyLive) {
        let mut watched = self.failover.watched.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *watched, patience) {
            (Some(known), Some(patience)) => known.failover.set_delay(patience),
            (known, Some(patience)) => {
                *known = Some(Watcher { failover: Failover::new(patience), notify });
            }
            (known, None) => {
                let before = known.take();
                if let Some(before) = before.filter(|before| !before.failover.is_live()) {
                    (before.notify)(true, false);
                }
            }
        }
        self.failover.is_watched.store(patience.is_some(), Relaxed);
        drop(watched);
        self.look_at_endpoint();
        self.wake();
    }

    /// True when the endpoint fails over to others while it is down.
    pub fn is_watched(&self) -> bool {
        self.failover.is_watched.load(Relaxed)
    }

    /// The state of the endpoint may have changed.
    pub(super) fn look_at_endpoint(&self) {
        if !self.is_watched() {
            return;
        }
        let (waits, state) = (self.account.copies_queued() > 0, self.state());
        let checked_down = self.is_checked_down();
        let mut watched = self.failover.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watched) = &mut *watched else { return };
        let changed = watched.failover.update(state, checked_down, Clock::now());
        if changed || (watched.failover.has_failed() && waits) {
            watched.tell();
        }
    }

    /// True while others receive new records since the queue has no room for a batch.
    pub(super) fn has_no_room(&self) -> bool {
        self.failover.has_no_room.load(Relaxed)
    }

    /// The queue has become fuller, or emptier.
    pub(super) fn update_room(&self, queue: &impl Queue) {
        if !self.is_watched() {
            return;
        }
        let mut watched = self.failover.watched.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watched) = &mut *watched else { return };
        if watched.failover.update_room(queue) {
            self.failover.has_no_room.store(watched.failover.is_full(), Relaxed);
            watched.tell();
        }
    }

    /// Takes the oldest block out of the queue of a failed endpoint, even one that waits for another of several
    /// connections.
    pub fn take_to_move(&self, now: Now) -> Option<Entry> {
        let given_up = {
            let watched = self.failover.watched.lock().unwrap_or_else(PoisonError::into_inner);
            watched.as_ref().is_some_and(|watched| watched.failover.has_failed())
        };
        if !given_up {
            return None;
        }
        self.recall();
        let mut queue = self.queue();
        let entry = if self.is_parked() || self.is_stopping() { None } else { queue.pop(now) };
        self.failover.moving_copies.fetch_add(entry.as_ref().map_or(0, Entry::copies), Relaxed);
        entry
    }

    /// Returns a block that found no room elsewhere.
    pub fn take_back(&self, entry: Entry) {
        let mut queue = self.queue();
        self.failover.moving_copies.fetch_sub(entry.copies(), Relaxed);
        queue.put_back(entry);
        drop(queue);
        self.wake();
    }

    /// This many copies have their outcome: they belong to another output now.
    pub fn has_moved(&self, copies: u64) {
        self.failover.moving_copies.fetch_sub(copies, Relaxed);
        self.changed();
    }

    /// Whether a block that moves here fits, also on the disk.
    pub fn has_room_for(&self, block: &Block, now: Now) -> bool {
        let mut queue = self.queue();
        !self.is_stopping() && queue.has_room_for(block, now)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use deliver::plan::QueueLimits;
    use deliver::{EndpointState, Failure, Status};
    use model::{CopyOutcome, OutputId};

    use super::*;
    use crate::daemon::worker::ShardHandle;

    fn state(status: Status, attempts: u32) -> EndpointState {
        let last_failure = Some((Failure::ConnectFailed, Now::default()));
        EndpointState { status, since_ns: u64::MAX, attempts, last_failure }
    }

    #[test]
    fn the_shard_is_notified_of_every_change_and_of_records_that_wait_for_a_failed_endpoint() {
        let shard = ShardHandle::new().expect("a waker");
        let one = || Block::lines(b"a 1 2\n".to_vec(), 1, 0);
        let limits = QueueLimits { records_max: 16, ..QueueLimits::default() };
        let outlet = Outlet::new("o", limits, &Arc::default());
        outlet.publish(0, 0, 0, state(Status::Down, 9));
        assert_eq!(shard.waiting(), 0, "it has no failover");
        outlet.publish(0, 0, 0, state(Status::Up, 0));
        outlet.watch(Some(FailoverDelay::Grace), shard.notify_live(OutputId(0)));
        assert!(outlet.is_watched() && shard.waiting() == 0);
        for number in 1..=16 {
            let _place = outlet.append(one(), Now::default());
            assert_eq!(shard.waiting(), usize::from(number > 14), "no room behind 15: {number}");
        }
        // No longer degraded, but without room for two batches.
        for number in (0..16).rev() {
            outlet.queue().pop(Now::default()).expect("it waits").settle(CopyOutcome::Delivered);
            outlet.publish(0, 0, 0, state(Status::Up, 0));
            assert_eq!(shard.waiting(), 1 + usize::from(number < 13), "room from 12 on: {number}");
        }
        assert!(outlet.take_to_move(Now::default()).is_none());
        outlet.publish(0, 0, 0, state(Status::Down, 5));
        assert_eq!(shard.waiting(), 2, "it has some patience left");
        outlet.publish(0, 0, 0, state(Status::Down, 6));
        outlet.publish(0, 0, 0, state(Status::Down, 7));
        assert_eq!(shard.waiting(), 3, "nothing waits for it");
        let _place = outlet.append(one(), Now::default());
        outlet.publish(0, 0, 0, state(Status::Down, 8));
        assert_eq!(shard.waiting(), 4, "something does");
        let entry = outlet.take_to_move(Now::default()).expect("it waits");
        assert!(outlet.queue().copies() == 0 && outlet.sum().holds(), "{:?}", outlet.sum());
        outlet.take_back(entry);
        assert!(outlet.queue().copies() == 1 && outlet.sum().holds(), "{:?}", outlet.sum());
        outlet.watch(None, shard.notify_live(OutputId(0)));
        assert!(!outlet.is_watched() && shard.waiting() == 5, "it is where it belongs");
    }
}
