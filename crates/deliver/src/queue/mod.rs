//! The queue in memory between the pipeline and an output's sender, with limits for bytes, copies and age.
//!
//! Path of a packet: pipeline -> **`append`** -> `pop` -> a sender -> settled.
//! Not here: data in flight (`stream`, `datagram`, `file`), the queue on disk (`disk_queue`).
//! Invariant: every appended block is counted as routed, and each of its copies is settled once: by the sender, or here
//! when it is dropped. Blocks that a sender holds still count against the limit.

mod admission;
pub(crate) mod entry;
mod handover;
pub(crate) mod interface;
mod kinds;
#[cfg(test)]
mod room_test;
#[cfg(test)]
mod tests;
pub(crate) mod wait;
mod watermark;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Dropped, Now, OutputAccount};

pub use crate::block::{BLOCK_BYTES_MAX, Block, BlockEncoding};
use crate::disk_queue::commit::Promise;
use crate::disk_queue::settle::{Position, Progress};
use crate::plan::QueueLimits;
pub use admission::Admission;
use entry::Origin;
pub use entry::{Appended, Entry, StoredBlock};
pub use handover::{QueuedBlock, check_handover};
pub use interface::Queue;
pub use kinds::{OutputQueue, Room};
use wait::WaitBudget;
pub use wait::{WAIT_WINDOW_MS, WaitReport};
use watermark::SettledWatermark;

/// Blocks in order of arrival, with limits for bytes of memory in use, copies and age.
#[derive(Debug)]
pub struct MemoryQueue {
    limits: QueueLimits,
    account: Arc<OutputAccount>,
    entries: VecDeque<Entry>,
    bytes: u64,
    copies: u64,
    /// Number of blocks appended since the queue was created.
    appended: u64,
    watermark: Arc<SettledWatermark>,
    /// Queued blocks are not dropped when the sender ends: another sender or process takes them.
    kept: bool,
    wait: Box<WaitBudget>,
}

impl MemoryQueue {
    /// An empty queue of the output that owns `account`.
    pub fn new(limits: QueueLimits, account: Arc<OutputAccount>) -> MemoryQueue {
        MemoryQueue {
            limits,
            account,
            entries: VecDeque::new(),
            bytes: 0,
            copies: 0,
            appended: 0,
            watermark: Arc::default(),
            kept: false,
            wait: Box::default(),
        }
    }

    /// An empty queue that replaces one in which everything before `place` is settled.
    pub fn after(place: Position, limits: QueueLimits, account: Arc<OutputAccount>) -> MemoryQueue {
        let watermark = Arc::new(SettledWatermark::at(place.0));
        MemoryQueue { appended: place.0, watermark, ..MemoryQueue::new(limits, account) }
    }

    /// Whether queued blocks stay when the sender ends, for the next sender or process (see [`MemoryQueue::queued_blocks`]).
    pub fn keep(&mut self, kept: bool) {
        self.kept = kept;
    }

    /// Drops all queued blocks for this reason.
    pub fn drop_all(&mut self, reason: Dropped) {
        while self.drop_front(reason) {}
    }

    /// Blocks in the queue.
    pub fn blocks(&self) -> usize {
        self.entries.len()
    }

    /// The account of the output.
    pub fn account(&self) -> &Arc<OutputAccount> {
        &self.account
    }

    pub(crate) fn wait(&self) -> &WaitBudget {
        &self.wait
    }

    pub(crate) fn wait_mut(&mut self) -> &mut WaitBudget {
        &mut self.wait
    }

    fn push_back(&mut self, block: Block, progress: Progress) {
        let entry = Entry::in_memory(block, progress, &self.account, self.appended, &self.watermark);
        self.appended += 1;
        self.bytes += entry.memory_bytes;
        self.copies += entry.copies();
        self.entries.push_back(entry);
    }

    fn pop_front(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.memory_bytes;
        self.copies -= entry.copies();
        Some(entry)
    }
}

impl Queue for MemoryQueue {
    /// Appends a block, within the limits. See [`Appended`].
    ///
    /// A block larger than the limit is dropped (`queue_full`) whatever `when_full` says: it would never fit. So is a
    /// block for which dropping all queued blocks makes no room, because the rest is in flight.
    fn append(&mut self, block: Block, now: Now) -> Appended {
        if block.copies == 0 && block.bytes.is_empty() {
            return Appended::Kept;
        }
        self.expire(now);
        let memory_bytes = block.memory_bytes();
        if memory_bytes > self.limits.bytes_max {
            self.drop_block(block, Dropped::QueueFull);
            return Appended::Dropped;
        }
        let block = match self.fit(block, memory_bytes) {
            Ok(block) => block,
            Err(appended) => return appended,
        };
        let progress = Progress::start(block.copies, block.copy_bytes());
        self.push_back(block, progress);
        Appended::Kept
    }

    /// Counts a block as routed and dropped without storing it.
    fn drop_block(&self, block: Block, reason: Dropped) {
        self.account.pass(CopyOutcome::Dropped(reason), u64::from(block.copies), block.copy_bytes());
    }

    /// Takes the oldest block. Its memory counts against the limit until it is settled.
    fn pop(&mut self, now: Now) -> Option<Entry> {
        self.expire(now);
        self.pop_front()
    }

    fn put_back(&mut self, entry: Entry) {
        let own =
            matches!(&entry.origin, Origin::Memory(_, watermark) if Arc::ptr_eq(watermark, &self.watermark));
        debug_assert!(own, "an entry is put back into its own queue");
        self.bytes += entry.memory_bytes;
        self.copies += entry.copies();
        let at = self.entries.partition_point(|other| other.number() < entry.number());
        self.entries.insert(at, entry);
    }

    /// Drops blocks older than `age_max_ms` (`too_old`).
    fn expire(&mut self, now: Now) {
        while self.expires_ns().is_some_and(|at_ns| at_ns <= now.mono_ns) {
            self.drop_front(Dropped::TooOld);
        }
    }

    fn drop_front(&mut self, reason: Dropped) -> bool {
        let Some(entry) = self.pop_front() else { return false };
        entry.settle(CopyOutcome::Dropped(reason));
        true
    }

    fn oldest_age_ns(&mut self, now: Now) -> Option<u64> {
        self.oldest_ns().map(|made_ns| now.mono_ns.saturating_sub(made_ns))
    }

    /// When the oldest block becomes too old, monotonic nanoseconds. None without an age limit.
    fn expires_ns(&mut self) -> Option<u64> {
        self.oldest_ns().and_then(|at_ns| self.limits.expires_ns(at_ns))
    }

    /// When the oldest block in the queue was created.
    fn oldest_ns(&mut self) -> Option<u64> {
        self.entries.front().map(|entry| entry.block.at_ns)
    }

    /// Memory of the oldest block.
    fn front_bytes(&mut self) -> Option<u64> {
        self.entries.front().map(|entry| entry.memory_bytes)
    }

    /// True when no block is queued.
    fn is_empty(&mut self) -> bool {
        self.entries.is_empty()
    }

    /// Copies in the queue, without those that its sender holds.
    fn copies(&self) -> u64 {
        self.copies
    }

    /// Bytes of memory in the queue, without what its sender holds.
    fn bytes(&mut self) -> u64 {
        self.bytes
    }

    /// True when a block of `copies` copies and `memory_bytes` bytes fits now.
    fn has_room(&self, memory_bytes: u64, copies: u64) -> bool {
        let held = self.account.queued_bytes.load(Relaxed);
        let fits = held.saturating_add(memory_bytes) <= self.limits.bytes_max;
        let waiting = self.account.copies_queued();
        let most = self.limits.records_max;
        // Blocks move as a whole: an empty queue takes one that is larger than the limit.
        fits && (most == 0 || waiting == 0 || waiting.saturating_add(copies) <= most)
    }

    /// The limits.
    fn limits(&self) -> QueueLimits {
        self.limits
    }

    /// Sets other limits, from the next call on. A smaller `max_bytes` drops nothing by itself.
    fn set_limits(&mut self, limits: QueueLimits) {
        self.limits = limits;
    }

    fn on_sender_stopped(&mut self) {
        if !self.kept {
            self.drop_all(Dropped::Stopped);
        }
    }

    fn accepted_up_to(&self) -> Position {
        Position(self.appended)
    }

    fn settled_up_to(&mut self) -> Position {
        Position(self.watermark.settled())
    }

    fn promise(&mut self, of: Position) -> Promise {
        if of < self.settled_up_to() { Promise::Safe } else { Promise::Accepted }
    }
}
