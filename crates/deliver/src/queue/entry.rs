//! A block on its way through a queue: what an append did with it, and what of a block that a sender has taken is settled.
//!
//! Not here: the queues, in memory (`queue`) and on disk (`disk_queue`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Dropped, OutputAccount};

use super::watermark::SettledWatermark;
use crate::block::{Block, BlockEncoding, FIXED_BYTES};
use crate::disk_queue::settle::{Progress, RecordHandle, SettleLog};

/// Result of an append.
#[must_use = "a block that was not appended must be kept or dropped by the caller"]
#[derive(Debug, PartialEq, Eq)]
pub enum Appended {
    /// The block is queued.
    Kept,
    /// The block was dropped, and counted as dropped.
    Dropped,
    /// The queue is full and `when_full` is `block`. The block is returned and not counted. The caller waits and tries
    /// again, or drops it with [`Queue::drop_block`](super::Queue::drop_block).
    Full(Block),
}

/// A block taken from a queue, with its delivery progress. It counts as queued until it is settled. When an entry is
/// dropped, its unsettled copies are settled as dropped (`stopped`), or stay queued if a disk keeps them.
#[must_use = "an entry must be settled or put back"]
#[derive(Debug)]
pub struct Entry {
    pub(super) block: Block,
    /// Bytes from the front whose copies are settled. Always a boundary between copies.
    pub(crate) settled: usize,
    /// Bytes from the front that were written to an earlier connection: their copies are sent a second time.
    pub(crate) written_before: usize,
    /// Packets from the front that have their outcome; for datagram senders.
    pub(crate) packets_done: usize,
    copies_left: u32,
    /// Bytes of the unsettled copies.
    bytes_left: u64,
    pub(super) memory_bytes: u64,
    account: Arc<OutputAccount>,
    pub(super) origin: Origin,
}

const _: () = assert!(size_of::<Entry>() <= FIXED_BYTES, "the memory of a block includes its entry");

/// The queue that an entry came from.
#[derive(Debug)]
pub(super) enum Origin {
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

    /// What the wall clock said when the block was appended, Unix nanoseconds. None for a queue in memory.
    pub(crate) fn made_wall_ns(&self) -> Option<u64> {
        match &self.origin {
            Origin::Memory(..) => None,
            Origin::Disk(record) => Some(record.made_wall_ns()),
        }
    }

    /// True for an entry of the disk queue that owns `log`.
    pub(crate) fn is_of(&self, log: &Arc<SettleLog>) -> bool {
        matches!(&self.origin, Origin::Disk(record) if record.is_of(log))
    }

    /// A block in memory. Its unsettled copies, as `progress` says, are counted as routed.
    pub(super) fn in_memory(
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
        self.settle_up_to(CopyOutcome::Delivered, at)
    }

    /// The same with another outcome.
    pub(crate) fn settle_up_to(&mut self, outcome: CopyOutcome, at: usize) -> u32 {
        let boundary = self.block.boundary_before(self.settled, at);
        // The end of the block settles all remaining copies, even if more were counted than have boundaries.
        let (copies, bytes) = if boundary == self.block.bytes.len() {
            (self.copies_left, self.bytes_left)
        } else {
            let (copies, bytes) = self.block.copies_between(self.settled, boundary);
            (copies.min(self.copies_left), bytes.min(self.bytes_left))
        };
        self.settle_part(outcome, copies, bytes);
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

/// A block whose records are in a store, but not durable there yet. It has no bytes any more, and its copies count as queued until they
/// have their outcomes. When it is dropped before that, a queue on disk returns the block again.
#[must_use = "its copies must get their outcomes"]
#[derive(Debug)]
pub struct StoredBlock(Entry);

impl Entry {
    /// The block after its records were taken into a store: its memory is free.
    pub fn stored(mut self) -> StoredBlock {
        self.block.bytes = Arc::default();
        self.block.encoding = BlockEncoding::Lines;
        StoredBlock(self)
    }
}

impl StoredBlock {
    /// Number of the block, counted since the queue was created.
    pub fn number(&self) -> u64 {
        self.0.number()
    }

    /// Copies without an outcome.
    pub fn copies(&self) -> u64 {
        self.0.copies()
    }

    /// What it takes of the queue's limit until it is settled.
    pub fn memory_bytes(&self) -> u64 {
        self.0.memory_bytes()
    }

    /// Settles at most `copies` copies with this outcome. Returns their number.
    pub fn settle(&mut self, outcome: CopyOutcome, copies: u64) -> u64 {
        let left = self.0.copies_left;
        let some = u32::try_from(copies).unwrap_or(u32::MAX).min(left);
        let bytes = match left {
            0 => 0,
            // Which lines they were is unknown: each has its share.
            left => (u128::from(self.0.bytes_left) * u128::from(some) / u128::from(left)) as u64,
        };
        self.0.settle_part(outcome, some, bytes);
        u64::from(some)
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
