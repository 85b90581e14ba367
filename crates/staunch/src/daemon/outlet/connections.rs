//! The connections that share an outlet's queue: what each sender takes and publishes, and which of them gets waiting
//! blocks.
//!
//! With one connection there is only the queue; with several, `deliver::shared_queue` keeps the order of each series.
//! Invariant: lanes are locked after the queue, never before it.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deliver::EndpointState;
use deliver::queue::{OutputQueue, Queue};
use deliver::shared_queue::SharedQueue;
use deliver::stream::{Action, StreamSender};
use model::{Dropped, Now};

use super::Outlet;
use super::state::SenderSlot;
use sys::disk::Folder;

impl SenderSlot {
    pub(super) fn state(&self) -> Option<EndpointState> {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outlet {
    /// With so many connections that share the queue.
    #[must_use]
    pub fn with_connections(mut self, connections: usize) -> Outlet {
        if connections > 1 {
            self.lanes = Some(Mutex::new(SharedQueue::new(connections)));
            self.senders = (0..connections).map(|_| SenderSlot::default()).collect();
        }
        self
    }

    /// How many connections share the queue.
    pub fn connections(&self) -> usize {
        self.senders.len()
    }

    pub(super) fn lanes(&self) -> Option<MutexGuard<'_, SharedQueue>> {
        self.lanes.as_ref().map(|lanes| lanes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks the sender of connection `number` what to do next.
    pub fn poll<'s>(&self, number: usize, sender: &'s mut StreamSender, now: Now) -> Action<'s> {
        let mut queue = self.queue();
        match self.lanes() {
            None => sender.poll(&mut *queue, now),
            Some(mut lanes) => sender.poll(&mut lanes.of(&mut *queue, number), now),
        }
    }

    /// The sender of connection `number` ends: its blocks are returned.
    pub fn finish_stop(&self, number: usize, sender: &mut StreamSender, now: Now) {
        let mut queue = self.queue();
        match self.lanes() {
            None => sender.finish_stop(&mut *queue, now),
            Some(mut lanes) => sender.finish_stop(&mut lanes.of(&mut *queue, number), now),
        }
    }

    /// Returns the blocks that wait for one of several connections: the queue then has everything that no sender holds.
    pub fn recall(&self) {
        let mut queue = self.queue();
        if let Some(mut lanes) = self.lanes() {
            lanes.put_back_all(&mut *queue);
        }
    }

    /// Wakes the senders that may take something now and could not before.
    fn wake_others(&self) {
        if self.lanes.is_none() {
            return;
        }
        let ready = {
            let mut queue = self.queue();
            self.lanes().map_or(0, |mut lanes| lanes.take_ready(&mut *queue))
        };
        let slots = self.senders.iter().enumerate().filter(|(number, _)| ready & (1 << number) != 0);
        slots.for_each(|(_, slot)| slot.more.notify_one());
    }

    /// [`Queue::drop_older`], also for blocks that wait for other connections than the next one. None while the outlet
    /// is parked: then nothing in it may change.
    pub fn drop_older(&self, age_ns: u64, reason: Dropped, blocks_max: usize, now: Now) -> Option<bool> {
        let mut queue = self.queue();
        if self.is_parked() {
            return None;
        }
        Some(match self.lanes() {
            None => queue.drop_older(age_ns, reason, blocks_max, now),
            Some(mut lanes) => lanes.of(&mut *queue, 0).drop_older(age_ns, reason, blocks_max, now),
        })
    }

    /// Age of the oldest block that no sender holds, in nanoseconds.
    pub(super) fn oldest_age_of(&self, queue: &mut OutputQueue<Folder>, now: Now) -> Option<u64> {
        match self.lanes() {
            None => queue.oldest_age_ns(now),
            Some(mut lanes) => lanes.of(queue, 0).oldest_age_ns(now),
        }
    }

    /// Resolves when there may be something to do for connection `number`.
    pub async fn woken(&self, number: usize) {
        self.senders[number].more.notified().await;
    }

    /// Publishes what the sender of connection `number` holds, for the account.
    pub fn publish(&self, number: usize, copies: u64, bytes: u64, state: EndpointState) {
        let slot = &self.senders[number];
        slot.copies.store(copies, Relaxed);
        slot.bytes.store(bytes, Relaxed);
        *slot.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
        self.progressed();
        self.wake_sync();
        self.wake_others();
        self.look_at_endpoint();
        if self.has_no_room() {
            self.update_room(&*self.queue());
        }
        if self.health.degraded_since_ns.load(Relaxed) != 0 && !self.is_nearly_full(&*self.queue()) {
            self.health.degraded_since_ns.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use deliver::plan::QueueLimits;
    use deliver::queue::Block;
    use model::{CopyOutcome, OutputAccount, SECOND_NS};

    use super::*;

    fn at(s: u64) -> Now {
        Now::default().plus_ns(s * SECOND_NS)
    }

    #[test]
    fn blocks_that_wait_for_other_connections_are_dropped_by_age_as_well() {
        let account = Arc::new(OutputAccount::default());
        let outlet = Outlet::new("o", QueueLimits::default(), &account).with_connections(4);
        for partition in 0..4 {
            let block = Block::lines(b"a 1 2\n".to_vec(), 1, at(u64::from(partition)).mono_ns);
            assert!(outlet.append(Block { partition: Some(partition), ..block }, at(3)).is_some());
        }
        // The last connection takes its own block, and the blocks before it wait for the others.
        let held = outlet.lanes().expect("four connections").of(&mut *outlet.queue(), 3).pop(at(5));
        assert_eq!(outlet.look(at(5)).oldest_age_ns, Some(5 * SECOND_NS));
        assert_eq!(outlet.drop_older(4 * SECOND_NS, Dropped::ByOperator, 9, at(5)), Some(false));
        assert_eq!(
            (account.dropped(Dropped::ByOperator), outlet.look(at(5)).oldest_age_ns),
            (2, Some(3 * SECOND_NS))
        );
        assert_eq!(outlet.drop_older(0, Dropped::ByOperator, 1, at(5)), Some(true), "there may be more");
        assert_eq!((account.dropped(Dropped::ByOperator), account.copies_queued()), (3, 1));
        held.expect("it took its own").settle(CopyOutcome::Delivered);
        assert!(account.sum(0).holds());
    }
}
