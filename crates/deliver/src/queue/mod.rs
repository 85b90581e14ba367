//! The queue in memory between the pipeline and an output's sender, with limits for bytes, copies and age.
//!
//! Path of a packet: pipeline -> **`append`** -> `pop` -> a sender -> settled.
//! Not here: data in flight (`stream`, `datagram`, `file`), the queue on disk (`disk_queue`).
//! Invariant: every appended block is counted as routed, and each of its copies is settled once: by the sender, or here
//! when it is dropped. Blocks that a sender holds still count against the limit.

mod admission;
mod handover;
mod kinds;
#[cfg(test)]
mod room_test;
#[cfg(test)]
mod tests;
mod wait;
mod watermark;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Dropped, Now, OutputAccount};

pub use crate::block::{BLOCK_BYTES_MAX, Block, BlockEncoding};
use crate::disk_queue::{Position, Progress, Promise, RecordHandle, SettleLog};
use crate::plan::QueueLimits;
pub use admission::Admission;
pub use handover::{QueuedBlock, check_handover};
pub use kinds::{OutputQueue, Queue, Room};
pub(crate) use wait::WaitBudget;
pub use wait::{WAIT_WINDOW_MS, WaitReport};
use watermark::SettledWatermark;

/// Result of an append.
#[must_use = "a block that was not appended must be kept or dropped by the caller"]
#[derive(Debug, PartialEq, Eq)]
pub enum Appended {
    /// The block is queued.
    Kept,
    /// The block was dropped, and counted as dropped.
    Dropped,
    /// The queue is full and `when_full` is `block`. The block is returned and not counted. The caller waits and tries
    /// again, or drops it with [`Queue::drop_block`].
    Full(Block),
}

/// A block taken from a queue, with its delivery progress. It counts as queued until it is settled. When an entry is
/// dropped, its unsettled copies are settled as dropped (`stopped`), or stay queued if a disk keeps them.
#[must_use = "an entry must be settled or put back"]
#[derive(Debug)]
pub struct Entry {
    block: Block,
    /// Bytes from the front whose copies are settled. Always a boundary between copies.
    pub(crate) settled: usize,
    /// Bytes from the front that were written to an earlier connection: their copies are sent a second time.
    pub(crate) written_before: usize,
    /// Packets from the front that have their outcome; for datagram senders.
    pub(crate) packets_done: usize,
    copies_left: u32,
    /// Bytes of the unsettled copies.
    bytes_left: u64,
    memory_bytes: u64,
    account: Arc<OutputAccount>,
    origin: Origin,
}

/// The queue that an entry came from.
#[derive(Debug)]
enum Origin {
    /// In memory: the block's number, and the watermark to report to.
    Memory(u64, Arc<SettledWatermark>),
    /// On disk: copies that are not settled when the entry is dropped stay queued.
    Disk(RecordHandle),
}

impl Entry {
    /// A block read from disk, where it takes `disk_bytes`. Its copies were counted as routed when it was appended;
    /// `progress` is its delivery progress.
    pub(crate) fn from_disk(
        block: Block,
        progress: Option<Progress>,
        disk_bytes: u64,
        account: &Arc<OutputAccount>,
        record: RecordHandle,
    ) -> Entry {
        let progress = progress.unwrap_or_else(|| Progress::start(block.copies, block.copy_bytes()));
        Entry {
            settled: progress.settled,
            written_before: progress.written_before,
            packets_done: progress.packets_done,
            copies_left: progress.copies_left,
            bytes_left: progress.bytes_left,
            block,
            memory_bytes: disk_bytes,
            account: Arc::clone(account),
            origin: Origin::Disk(record),
        }
    }

    /// Number of the block, counted since the queue was created.
    pub(crate) fn number(&self) -> u64 {
        match &self.origin {
            Origin::Memory(number, _) => *number,
            Origin::Disk(record) => record.number(),
        }
    }

    /// True for an entry of the disk queue that owns `log`.
    pub(crate) fn is_of(&self, log: &Arc<SettleLog>) -> bool {
        matches!(&self.origin, Origin::Disk(record) if record.is_of(log))
    }

    /// A block in memory. Its unsettled copies, as `progress` says, are counted as routed.
    fn in_memory(
        block: Block,
        progress: Progress,
        account: &Arc<OutputAccount>,
        number: u64,
        watermark: &Arc<SettledWatermark>,
    ) -> Entry {
        let memory_bytes = block.memory_bytes();
        account.route(u64::from(progress.copies_left), progress.bytes_left);
        let waiting = account.queued_bytes.fetch_add(memory_bytes, Relaxed) + memory_bytes;
        account.queued_bytes_high.fetch_max(waiting, Relaxed);
        Entry {
            settled: progress.settled,
            written_before: progress.written_before,
            packets_done: progress.packets_done,
            copies_left: progress.copies_left,
            bytes_left: progress.bytes_left,
            block,
            memory_bytes,
            account: Arc::clone(account),
            origin: Origin::Memory(number, Arc::clone(watermark)),
        }
    }

    /// The block, settled parts included.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// Copies without an outcome.
    pub fn copies(&self) -> u64 {
        u64::from(self.copies_left)
    }

    /// The lines without an outcome. None when the block is not lines.
    pub fn lines_left(&self) -> Option<&[u8]> {
        matches!(self.block.encoding, BlockEncoding::Lines).then(|| &self.block.bytes[self.settled..])
    }

    /// Memory in use until it is settled.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Settles all remaining copies with this outcome.
    pub fn settle(mut self, outcome: CopyOutcome) {
        if outcome == CopyOutcome::Delivered {
            self.delivered_up_to(self.block.bytes.len());
        } else {
            self.settle_left(outcome);
        }
    }

    /// Settles whole copies up to `at` (bytes from the front) as delivered. Returns their number.
    pub(crate) fn delivered_up_to(&mut self, at: usize) -> u32 {
        let boundary = self.block.boundary_before(self.settled, at);
        // The end of the block settles all remaining copies, even if more were counted than have boundaries.
        let (copies, bytes) = if boundary == self.block.bytes.len() {
            (self.copies_left, self.bytes_left)
        } else {
            let (copies, bytes) = self.block.copies_between(self.settled, boundary);
            (copies.min(self.copies_left), bytes.min(self.bytes_left))
        };
        self.settle_part(CopyOutcome::Delivered, copies, bytes);
        self.settled = boundary;
        copies
    }

    /// Leaves the outcome of the next `copies` copies, of `bytes` bytes, to the caller.
    pub(crate) fn hand_over(&mut self, copies: u32, bytes: u64) {
        debug_assert!(copies <= self.copies_left, "{copies} of {} copies", self.copies_left);
        self.copies_left = self.copies_left.saturating_sub(copies);
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }

    /// Bytes of the copies without an outcome.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.bytes_left
    }

    /// Delivery progress.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            settled: self.settled,
            written_before: self.written_before,
            packets_done: self.packets_done,
            copies_left: self.copies_left,
            bytes_left: self.bytes_left,
        }
    }

    fn settle_left(&mut self, outcome: CopyOutcome) {
        self.settle_part(outcome, self.copies_left, self.bytes_left);
    }

    fn settle_part(&mut self, outcome: CopyOutcome, copies: u32, bytes: u64) {
        self.account.settle(outcome, u64::from(copies), bytes);
        self.copies_left -= copies;
        self.bytes_left -= bytes;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let progress = match &self.origin {
            Origin::Memory(..) => {
                self.settle_left(CopyOutcome::Dropped(Dropped::Stopped));
                None
            }
            Origin::Disk(_) => (self.copies_left > 0).then_some(self.progress()),
        };
        if progress.is_none() {
            self.account.queued_bytes.fetch_sub(self.memory_bytes, Relaxed);
        }
        match &self.origin {
            Origin::Memory(number, watermark) => watermark.settle(*number),
            Origin::Disk(record) => record.report_end(progress),
        }
    }
}

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
