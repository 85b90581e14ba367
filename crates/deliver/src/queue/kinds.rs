//! [`OutputQueue`], a queue in memory or on disk, and the room that it has for batches of sources that can wait.
//!
//! Not here: the implementations (`queue`, `disk_queue`).

use std::sync::atomic::Ordering::Relaxed;

use model::{Disk, Dropped, Now};

use super::wait::{Need, WaitBudget, WaitReport};
use super::{Appended, Block, Entry, MemoryQueue, Queue};
use crate::disk_queue::{DiskQueue, Position, Promise};
use crate::plan::{QueueLimits, WhenFull};

/// Room of a queue for a batch from a source that can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// The source has to wait.
    None,
    /// Enough for the batch as it is; a relay may turn it into more copies.
    Tight,
    /// Enough for everything that the batch may turn into.
    Ample,
    /// Sources do not wait for this queue now: what does not fit is dropped as `when_full` says.
    Unneeded,
}

/// Room for so many batches is ample for one: a relay makes no more copies of a line for one output.
const AMPLE_BATCHES: u64 = 128;

/// Most blocks or files that [`OutputQueue::room`] drops in one call.
const DROPS_MAX: usize = 256;

/// The queue of one output, in memory or on disk.
#[derive(Debug)]
pub enum OutputQueue<D: Disk> {
    /// In memory: lost when the process ends.
    Memory(MemoryQueue),
    /// On disk: survives a restart.
    Disk(Box<DiskQueue<D>>),
}

/// Calls the same method on either variant.
macro_rules! either {
    ($queue:expr, $kind:ident => $call:expr) => {
        match $queue {
            OutputQueue::Memory($kind) => $call,
            OutputQueue::Disk($kind) => $call,
        }
    };
}

impl<D: Disk> OutputQueue<D> {
    /// The queue in memory, if it is in memory.
    pub fn in_memory(&mut self) -> Option<&mut MemoryQueue> {
        match self {
            OutputQueue::Memory(queue) => Some(queue),
            OutputQueue::Disk(_) => None,
        }
    }

    /// The queue on disk, if it is on disk.
    pub fn on_disk(&mut self) -> Option<&mut DiskQueue<D>> {
        match self {
            OutputQueue::Memory(_) => None,
            OutputQueue::Disk(queue) => Some(queue),
        }
    }

    /// True when a batch of `bytes` and `records` fits without loss. An empty queue takes any batch. On disk, room for it
    /// is reserved.
    pub fn takes(&mut self, bytes: u64, records: u64, now: Now) -> bool {
        // By the account: the sender may have taken blocks out and not published its figures yet.
        let nothing_queued = either!(self, queue => queue.account().copies_queued()) == 0;
        let fits = nothing_queued || self.has_room(bytes, records);
        fits && self.on_disk().is_none_or(|queue| queue.reserve(bytes, now))
    }

    /// True when the queue is on a disk that did not take the last write or reservation. Then no batch is divided: parts that
    /// still fit would hide the failure, and fill the disk to its last byte.
    pub fn disk_fails(&mut self) -> bool {
        self.on_disk().is_some_and(|queue| queue.write_error().is_some())
    }

    /// Room for a batch of `bytes` and `records` of a source that can wait. `is_down`: whether the endpoint is down.
    pub fn room(&mut self, bytes: u64, records: u64, is_down: impl Fn() -> bool, now: Now) -> Room {
        let when_full = self.limits().when_full;
        if !when_full.ever_waits() {
            return Room::Unneeded;
        }
        if !self.takes_more(bytes, records, now) {
            let waits = match when_full {
                WhenFull::Wait => self.wait_or_drop(Need { bytes, records }, now),
                WhenFull::Block | WhenFull::BlockWhileUp | WhenFull::DropOldest | WhenFull::DropNewest => {
                    when_full.waits(is_down())
                }
            };
            return if waits { Room::None } else { Room::Unneeded };
        }
        if self.is_ample(bytes, records) { Room::Ample } else { Room::Tight }
    }

    /// [`OutputQueue::takes`] for a batch of a source that can wait. Without room, its source does not wait yet: it may ask
    /// for a part of the batch.
    pub fn takes_more(&mut self, bytes: u64, records: u64, now: Now) -> bool {
        if self.limits().when_full == WhenFull::Wait {
            self.update_wait(now);
        }
        self.takes(bytes, records, now)
    }

    /// Latest time of the next [`OutputQueue::room`] while a source waits, monotonic nanoseconds; `u64::MAX` while none does,
    /// or there is no limit for it.
    pub fn look_again_ns(&self) -> u64 {
        either!(self, queue => queue.wait().look_again_ns())
    }

    /// What the log reports about sources that waited, once. [`OutputQueue::room`] leaves it.
    pub fn take_wait_report(&mut self) -> Option<WaitReport> {
        self.wait_mut().take_report()
    }

    /// Ends a wait when there is room for its batch, and goes on dropping where that has begun.
    fn update_wait(&mut self, now: Now) {
        if let Some(Need { bytes, records }) = self.wait_mut().need()
            && self.takes(bytes, records, now)
        {
            self.wait_mut().end(now.mono_ns);
        }
        if self.wait_mut().is_halving {
            self.drop_to_half();
        }
        let dropped = self.dropped_for_room();
        self.wait_mut().update_drops(dropped, now.mono_ns);
    }

    /// There is no room for a batch. True when its source waits. Otherwise sources have waited for long enough: the oldest
    /// blocks are dropped. A disk that accepts no writes costs no block of those that it has.
    fn wait_or_drop(&mut self, need: Need, now: Now) -> bool {
        let max_wait_ms = self.limits().max_wait_ms;
        if self.wait_mut().wait(need, max_wait_ms, now.mono_ns) {
            return true;
        }
        if !self.has_room(need.bytes, need.records) {
            let dropped = self.dropped_for_room();
            self.wait_mut().begin_drops(dropped, now.mono_ns);
            self.wait_mut().is_halving = true;
            self.drop_to_half();
        }
        false
    }

    /// Drops the oldest blocks until the queue is half empty, [`DROPS_MAX`] at most in one call.
    fn drop_to_half(&mut self) {
        let QueueLimits { bytes_max, records_max, .. } = self.limits();
        for _ in 0..DROPS_MAX {
            let account = either!(self, queue => queue.account());
            let bytes = account.queued_bytes.load(Relaxed).saturating_sub(bytes_max / 2);
            let copies = match records_max {
                0 => 0,
                _ => account.copies_queued().saturating_sub(records_max / 2),
            };
            let is_half_empty = (bytes, copies) == (0, 0);
            // What is in flight cannot be dropped.
            if is_half_empty || !self.drop_run(Dropped::QueueFull, (bytes, copies)) {
                self.wait_mut().is_halving = false;
                return;
            }
        }
    }

    fn wait_mut(&mut self) -> &mut WaitBudget {
        either!(self, queue => queue.wait_mut())
    }

    fn dropped_for_room(&self) -> u64 {
        either!(self, queue => queue.account()).dropped(Dropped::QueueFull)
    }

    /// True when there is room for everything that `bytes` and `records` may turn into, and the queue need not be asked batch
    /// by batch.
    pub fn has_ample_room(&self, bytes: u64, records: u64) -> bool {
        !either!(self, queue => queue.wait().in_episode()) && self.is_ample(bytes, records)
    }

    fn is_ample(&self, bytes: u64, records: u64) -> bool {
        let (bytes, records) = (bytes.saturating_mul(AMPLE_BATCHES), records.saturating_mul(AMPLE_BATCHES));
        // An empty queue takes one block larger than the limit; the next block of the same batch would push it out.
        let most = self.limits().records_max;
        let waiting = either!(self, queue => queue.account().copies_queued());
        (most == 0 || waiting.saturating_add(records) <= most) && self.has_room(bytes, records)
    }

    /// Appends a block of an admitted batch ([`Room::Tight`]) even past the limit, when a relay made more copies than
    /// there is room for: the next batch waits longer. The limits apply again to later batches.
    pub fn append_admitted(&mut self, block: Block, now: Now) -> Appended {
        let limits = self.limits();
        self.set_limits(QueueLimits { bytes_max: u64::MAX, records_max: 0, ..limits });
        let appended = self.append(block, now);
        self.set_limits(limits);
        appended
    }

    /// Appends a block that came back ([`Appended::Full`]) and whose source cannot wait. While a disk fails, the block is
    /// kept in memory within limits ([`DiskQueue::hold`]); a full queue in memory drops it.
    pub fn append_or_hold(&mut self, block: Block, now: Now) -> Appended {
        match self {
            OutputQueue::Disk(queue) => queue.hold(block, now),
            OutputQueue::Memory(queue) => {
                queue.drop_block(block, Dropped::QueueFull);
                Appended::Dropped
            }
        }
    }
}

impl<D: Disk> Queue for OutputQueue<D> {
    fn append(&mut self, block: Block, now: Now) -> Appended {
        either!(self, queue => queue.append(block, now))
    }

    fn drop_block(&self, block: Block, reason: Dropped) {
        either!(self, queue => queue.drop_block(block, reason));
    }

    fn pop(&mut self, now: Now) -> Option<Entry> {
        either!(self, queue => queue.pop(now))
    }

    fn put_back(&mut self, entry: Entry) {
        either!(self, queue => queue.put_back(entry));
    }

    fn expire(&mut self, now: Now) {
        either!(self, queue => queue.expire(now));
    }

    fn drop_front(&mut self, reason: Dropped) -> bool {
        either!(self, queue => queue.drop_front(reason))
    }

    fn drop_run(&mut self, reason: Dropped, most: (u64, u64)) -> bool {
        either!(self, queue => queue.drop_run(reason, most))
    }

    fn oldest_age_ns(&mut self, now: Now) -> Option<u64> {
        either!(self, queue => queue.oldest_age_ns(now))
    }

    fn expires_ns(&mut self) -> Option<u64> {
        either!(self, queue => queue.expires_ns())
    }

    fn oldest_ns(&mut self) -> Option<u64> {
        either!(self, queue => queue.oldest_ns())
    }

    fn front_bytes(&mut self) -> Option<u64> {
        either!(self, queue => queue.front_bytes())
    }

    fn is_empty(&mut self) -> bool {
        either!(self, queue => queue.is_empty())
    }

    fn is_paused(&mut self) -> bool {
        either!(self, queue => queue.is_paused())
    }

    fn copies(&self) -> u64 {
        either!(self, queue => queue.copies())
    }

    fn bytes(&mut self) -> u64 {
        either!(self, queue => queue.bytes())
    }

    fn has_room(&self, bytes: u64, copies: u64) -> bool {
        either!(self, queue => queue.has_room(bytes, copies))
    }

    fn limits(&self) -> QueueLimits {
        either!(self, queue => queue.limits())
    }

    fn set_limits(&mut self, limits: QueueLimits) {
        either!(self, queue => queue.set_limits(limits));
    }

    fn on_sender_stopped(&mut self) {
        either!(self, queue => queue.on_sender_stopped());
    }

    fn accepted_up_to(&self) -> Position {
        either!(self, queue => queue.accepted_up_to())
    }

    fn settled_up_to(&mut self) -> Position {
        either!(self, queue => queue.settled_up_to())
    }

    fn promise(&mut self, of: Position) -> Promise {
        either!(self, queue => queue.promise(of))
    }

    fn lost_before_start(&self) -> u64 {
        either!(self, queue => queue.lost_before_start())
    }
}
