//! Parks an outlet: another process may be about to continue its queue (hot restart), and until that is certain its own
//! sender can be restarted as if nothing had happened.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{MutexGuard, PoisonError};

use deliver::disk_queue::{DiskQueue, Unsettled};
use deliver::queue::{Admission, QueuedBlock};

use super::Outlet;
use super::state::Orders;
use sys::clock::Clock;

impl Outlet {
    /// Orders the output to drain until `deadline_ns` and then to wait: undelivered records stay in the queue, until
    /// [`Self::go_on`] or [`Self::let_go`] is called.
    pub fn park(&self, deadline_ns: u64) {
        let orders =
            Orders { stopping: self.is_stopping(), deadline_ns: self.ending.deadline_ns.load(Relaxed) };
        *self.parked() = Some(orders);
        // A thread that has the queue locked and has not seen that it is parked ends before this.
        if let Some(queue) = self.queue().in_memory() {
            queue.keep(true);
        }
        if let Some(disk) = self.disk() {
            // It is synced, and then not touched any more.
            disk.closing.store(true, Relaxed);
        }
        // One that leaves for its successor has no longer than others, which wait for it. 0 stays 0: it does not leave.
        self.ending.leaves_by_ns.fetch_min(deadline_ns, Relaxed);
        self.stop(deadline_ns);
        self.wake_to_end();
    }

    fn parked(&self) -> MutexGuard<'_, Option<Orders>> {
        self.ending.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True while it is parked and undecided.
    pub fn is_parked(&self) -> bool {
        self.parked().is_some()
    }

    /// True when a parked output does nothing any more, neither to its endpoint nor on disk.
    pub fn is_at_rest(&self) -> bool {
        self.has_ended() && self.disk().is_none_or(|disk| disk.released.load(Relaxed))
    }

    /// What waits in memory, oldest first. It stays there.
    pub fn left(&self) -> Vec<QueuedBlock> {
        self.recall();
        self.queue().in_memory().map(|queue| queue.queued_blocks().collect()).unwrap_or_default()
    }

    /// How far its queue on disk has been read; none for a queue in memory, and when nothing was read.
    pub fn unsettled(&self) -> Option<Unsettled> {
        self.recall();
        self.queue().on_disk().and_then(DiskQueue::unsettled)
    }

    /// Appends what waited in another process's memory.
    pub fn go_on_with(&self, left: QueuedBlock) {
        if let Some(queue) = self.queue().in_memory() {
            return queue.append_handed_over(left);
        }
        // For a queue on disk these are only the last blocks that were not yet in its queue.
        if let Some(block) = left.into_whole() {
            self.append_as(block, Admission::Granted, Clock::now());
        }
    }

    /// Called by the thread that syncs after its last sync: true when it may end. False when the output continues after
    /// all.
    pub fn release(&self) -> bool {
        let _both_or_none = self.queue();
        let Some(disk) = self.disk() else { return true };
        let closing = disk.closing.load(Relaxed);
        disk.released.store(closing, Relaxed);
        closing
    }

    /// The output continues as if it had never been parked. True when its queue on disk needs a new thread that syncs
    /// it: the old one has ended.
    #[must_use]
    pub fn go_on(&self) -> bool {
        let Some(orders) = self.parked().take() else { return false };
        let mut queue = self.queue();
        if let Some(queue) = queue.in_memory() {
            queue.keep(false);
        }
        let unsynced = self.disk().is_some_and(|disk| {
            disk.closing.store(false, Relaxed);
            disk.released.swap(false, Relaxed)
        });
        drop(queue);
        self.ending.deadline_ns.store(orders.deadline_ns, Relaxed);
        self.ending.stopping.store(orders.stopping, Relaxed);
        self.senders.iter().for_each(|slot| slot.goes_on.store(true, Relaxed));
        self.ending.unparked.notify_waiters();
        unsynced
    }

    /// Another process has the records: the output ends.
    pub fn let_go(&self) {
        *self.parked() = None;
        self.ending.unparked.notify_waiters();
    }

    /// Called by the task of connection `number` after its end: true when it has to start again. Waits while the output
    /// is parked.
    pub async fn goes_on(&self, number: usize) -> bool {
        loop {
            let mut unparked = std::pin::pin!(self.ending.unparked.notified());
            // Before the check, so that a notification in between is not missed.
            unparked.as_mut().enable();
            if !self.is_parked() {
                break;
            }
            unparked.await;
        }
        let slot = &self.senders[number];
        if !slot.goes_on.swap(false, Relaxed) {
            return false;
        }
        let all_had_ended = self.has_ended();
        slot.ended.store(false, Relaxed);
        if let (Some(disk), true) = (self.disk(), all_had_ended) {
            disk.open.fetch_add(1, Relaxed);
        }
        true
    }
}
