//! Hands blocks of an output's queue to a store, and settles them once their records are durable in it.
//!
//! Path of a record: the queue -> **[`StoreSender::poll`]** -> the caller puts the records into the store, [`StoreSender::taken`] -> the block
//! stays queued, without its bytes -> the store is synced -> [`StoreSender::settle`].
//! Not here: the store, and when it is synced.
//! Invariant: a block is settled after all earlier ones; a copy is settled as delivered only when the caller says that its block is durable.
//! Blocks that are not settled when the sender ends are queued again, and their records go into the store a second time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Now, OutputAccount};

use crate::endpoint::{EndpointState, Failure, Health, StateChange};
use crate::queue::{Entry, Queue, StoredBlock};

/// See the module's header.
#[derive(Debug)]
pub struct StoreSender {
    account: Arc<OutputAccount>,
    health: Health,
    /// The block whose records are being taken, and how many of its bytes are.
    taking: Option<(Entry, usize)>,
    /// Records of it that the store has refused.
    refused: Refused,
    /// Blocks whose records are in the store, with those that it has refused.
    stored: VecDeque<(StoredBlock, Refused)>,
    is_stopped: bool,
}

/// Records that are taken next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled<'s> {
    /// The number of their block.
    pub number: u64,
    /// Its bytes that were not taken yet.
    pub bytes: &'s [u8],
    /// What the wall clock said when the block was queued, Unix nanoseconds. None for a queue in memory.
    pub queued_wall_ns: Option<u64>,
}

/// Outcomes of records that a store has refused.
type Refused = Vec<(CopyOutcome, u64)>;

impl StoreSender {
    /// A sender that has taken nothing.
    pub fn new(account: Arc<OutputAccount>) -> StoreSender {
        let (taking, refused, stored) = (None, Vec::new(), VecDeque::new());
        StoreSender { account, health: Health::new(), taking, refused, stored, is_stopped: false }
    }

    /// The next records. None when nothing is queued.
    pub fn poll(&mut self, queue: &mut impl Queue, now: Now) -> Option<Polled<'_>> {
        if self.is_stopped {
            return None;
        }
        if self.taking.is_none() {
            let entry = queue.pop(now)?;
            let settled = entry.settled;
            self.taking = Some((entry, settled));
        }
        let (entry, taken) = self.taking.as_ref()?;
        let bytes = &entry.block().bytes[*taken..];
        Some(Polled { number: entry.number(), bytes, queued_wall_ns: entry.made_wall_ns() })
    }

    /// So many more bytes of the block of the last [`StoreSender::poll`] are in the store.
    pub fn taken(&mut self, bytes: usize) {
        let Some((entry, taken)) = &mut self.taking else { return };
        *taken = (*taken + bytes).min(entry.block().bytes.len());
        if *taken == entry.block().bytes.len()
            && let Some((entry, _)) = self.taking.take()
        {
            self.stored.push_back((entry.stored(), std::mem::take(&mut self.refused)));
        }
    }

    /// The store has refused a record of the block of the last [`StoreSender::poll`].
    pub fn refused(&mut self, outcome: CopyOutcome) {
        match self.refused.iter_mut().find(|(other, _)| *other == outcome) {
            Some((_, count)) => *count += 1,
            None => self.refused.push((outcome, 1)),
        }
    }

    /// The records of all blocks before number `up_to` are durable, were refused when they were taken, or have one of the outcomes in
    /// `others`, whose counts go down by what could be settled. Returns the copies that were settled as delivered.
    pub fn settle(&mut self, up_to: u64, others: &mut Vec<(CopyOutcome, u64)>) -> u64 {
        let mut delivered = 0;
        while let Some((mut block, refused)) = self.stored.pop_front_if(|(block, _)| block.number() < up_to) {
            for (outcome, count) in refused {
                block.settle(outcome, count);
            }
            for (outcome, count) in &mut *others {
                *count -= block.settle(*outcome, *count);
            }
            delivered += block.settle(CopyOutcome::Delivered, u64::MAX);
        }
        others.retain(|(_, count)| *count > 0);
        delivered
    }

    /// The store can be written.
    pub fn on_written(&mut self, now: Now) {
        self.health.succeed(self.waiting_copies(), now);
    }

    /// The store cannot be opened, written or synced.
    pub fn on_error(&mut self, failure: Failure, now: Now) {
        self.account.errors.fetch_add(1, Relaxed);
        self.health.fail(failure, now);
    }

    /// The store begins anew, with nothing: blocks that are not settled are queued again, and polled again by their numbers.
    pub fn begin_anew(&mut self) {
        self.taking = None;
        self.refused.clear();
        self.stored.clear();
    }

    /// Ends: blocks that are not settled are queued again.
    pub fn finish_stop(&mut self, queue: &mut impl Queue, now: Now) {
        (self.taking, self.is_stopped) = (None, true);
        self.stored.clear();
        queue.on_sender_stopped();
        self.health.stop(now);
    }

    /// Copies in the sender.
    pub fn waiting_copies(&self) -> u64 {
        let taking = self.taking.as_ref().map_or(0, |(entry, _)| entry.copies());
        taking + self.stored.iter().map(|(block, _)| block.copies()).sum::<u64>()
    }

    /// Blocks whose records are in the store and not settled.
    pub fn stored_blocks(&self) -> usize {
        self.stored.len()
    }

    /// Memory in use by the sender.
    pub fn queued_bytes(&self) -> u64 {
        let taking = self.taking.as_ref().map_or(0, |(entry, _)| entry.memory_bytes());
        taking + self.stored.iter().map(|(block, _)| block.memory_bytes()).sum::<u64>()
    }

    /// State of the store.
    pub fn state(&self) -> EndpointState {
        self.health.state()
    }

    /// The next state change to log.
    pub fn take_state_change(&mut self) -> Option<StateChange> {
        self.health.take_state_change()
    }
}

#[cfg(test)]
mod tests {
    use model::Dropped;

    use super::*;
    use crate::disk_queue::faulty_disk::FaultyDisk;
    use crate::disk_queue::{DiskQueue, DiskQueuePlan};
    use crate::plan::QueueLimits;
    use crate::queue::{Block, MemoryQueue};

    #[test]
    fn blocks_are_settled_in_order_once_they_are_durable_and_others_are_queued_again() {
        let account = Arc::<OutputAccount>::default();
        let mut queue = MemoryQueue::new(QueueLimits::default(), Arc::clone(&account));
        for _ in 0..4 {
            let kept = queue.append(Block::lines(b"a 1 1\nb 1 1\n".to_vec(), 2, 0), Now::default());
            assert_eq!(kept, crate::queue::Appended::Kept);
        }
        let mut sender = StoreSender::new(Arc::clone(&account));
        for number in 0..3 {
            let polled = sender.poll(&mut queue, Now::default()).expect("a block is queued");
            assert_eq!((polled.number, polled.bytes.len()), (number, 12));
            sender.taken(6);
            let rest = sender.poll(&mut queue, Now::default()).expect("half of it");
            assert_eq!(rest, Polled { number, bytes: b"b 1 1\n", queued_wall_ns: None });
            if number < 2 {
                sender.taken(6);
            }
        }
        sender.refused(CopyOutcome::Dropped(Dropped::UnsafeName));
        assert_eq!((sender.stored_blocks(), sender.waiting_copies(), queue.copies()), (2, 6, 2));
        let mut others = vec![(CopyOutcome::Dropped(Dropped::TooBig), 3)];
        assert_eq!(sender.settle(1, &mut others), 0);
        assert_eq!(others, [(CopyOutcome::Dropped(Dropped::TooBig), 1)]);
        assert_eq!((sender.settle(9, &mut others), others), (1, vec![]));
        let sum = account.sum(queue.copies() + sender.waiting_copies());
        assert!(sum.holds() && sum.delivered == 1 && sum.queued == 4, "{sum:?}");
        sender.finish_stop(&mut queue, Now::default());
        assert_eq!(sender.waiting_copies(), 0);
        assert_eq!(sender.poll(&mut queue, Now::default()), None);
        assert!(account.sum(queue.copies()).holds());
    }

    #[test]
    fn a_store_that_begins_anew_gets_all_blocks_that_are_not_settled_again() {
        let account = Arc::<OutputAccount>::default();
        let (disk, plan) = (FaultyDisk::default(), DiskQueuePlan::default());
        let opened = DiskQueue::open(disk, plan, Arc::clone(&account), 1, Now::default());
        let (mut queue, _) = opened.expect("an empty disk");
        for _ in 0..4 {
            let kept = queue.append(Block::lines(b"a 1 1\nb 1 1\n".to_vec(), 2, 0), Now::default());
            assert_eq!(kept, crate::queue::Appended::Kept);
        }
        let mut sender = StoreSender::new(Arc::clone(&account));
        for bytes in [12, 12, 6] {
            assert!(sender.poll(&mut queue, Now::default()).is_some());
            sender.taken(bytes);
        }
        assert_eq!(sender.settle(1, &mut Vec::new()), 2);
        sender.begin_anew();
        for number in 1..4 {
            let polled = sender.poll(&mut queue, Now::default()).expect("a block is queued");
            assert_eq!((polled.number, polled.bytes.len()), (number, 12), "from its beginning");
            sender.taken(12);
        }
        assert_eq!(sender.settle(4, &mut Vec::new()), 6);
        assert!(account.sum(queue.copies() + sender.waiting_copies()).holds());
    }
}
