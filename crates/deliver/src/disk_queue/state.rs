//! The parts of a queue on disk that more than one of its files change: segments, records that came back, blocks that wait for
//! the disk, what could not be read.
//!
//! Path of a packet: none. Not here: the queue itself (`disk_queue`), and what is done with these parts (`holding`, `expiry`,
//! `missing`, `stalled`, `reading`, `writing`).
//! Invariant: nothing here knows the queue, so that its other files can name both.

use std::collections::{BTreeMap, VecDeque};

use model::{DiskError, Now};

use super::format::{Place, Totals};
use super::settle::Progress;
use crate::block::Block;
use crate::pause::MS_NS;
use crate::queue::entry::Entry;

/// Most bytes of held blocks, counted as on disk.
pub const HELD_BYTES_MAX: u64 = if cfg!(test) { 400 } else { 8 << 20 };

/// How long a disk may fail before held blocks are dropped, in milliseconds.
pub const FAILING_MS_MAX: u64 = 10_000;

/// Pause between two attempts, in milliseconds.
pub const READ_AGAIN_MS: u64 = 250;

/// Errors of the disk since the queue was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskQueueCounts {
    /// Failed writes, a full disk included.
    pub write_errors: u64,
    /// Failed syncs.
    pub sync_errors: u64,
    /// Failed reads that are retried.
    pub read_errors: u64,
    /// Failures to remove or rename a file.
    pub remove_errors: u64,
    /// Records whose sync failed.
    pub in_doubt_records: u64,
    /// Damaged ranges of segments.
    pub damaged_ranges: u64,
    /// Records in them, as far as the headers around them show.
    pub damaged_records: u64,
    /// Bytes copied to the quarantine.
    pub quarantined_bytes: u64,
    /// Ranges not copied because the quarantine was full.
    pub quarantine_full: u64,
}

/// A segment on disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) sequence: u64,
    /// Totals before it.
    pub(super) before: Totals,
    /// Where its records begin: after the header, or at 0 when that is damaged.
    pub(super) start: u64,
    /// Offset of the first readable record, which `before` belongs to: after `start` when its first bytes are damaged.
    pub(super) counted_from: u64,
    /// Where its records end.
    pub(super) size: u64,
    /// The disk could not read all of it: it is quarantined, not removed.
    pub(super) unreadable: bool,
    /// A damaged range of it could not be copied: it is quarantined, too.
    pub(super) kept_whole: bool,
    /// Its file is not in the directory: another program deleted it.
    pub(super) missing: bool,
}

impl Segment {
    pub(super) fn place(&self) -> Place {
        Place { sequence: self.sequence, offset: self.start }
    }
}

/// A record that was popped and put back.
#[derive(Debug)]
pub(super) enum Returned {
    Entry(Entry),
    /// Its entry was dropped: the block has to be read again.
    Progress(Progress),
}

/// Progress of the expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Expiry {
    /// Nothing was too old at the last check.
    #[default]
    Done,
    /// More records are too old.
    HasMore,
    /// More records are too old, and the sender was woken for the next slice.
    Woken,
}

impl Expiry {
    pub(super) fn has_more(self) -> bool {
        self != Expiry::Done
    }
}

/// Blocks held in memory.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) blocks: VecDeque<Block>,
    pub(super) copies: u64,
    pub(super) disk_bytes: u64,
    /// Since when every write has failed, for another reason than a full disk.
    pub(super) failing_since_ns: Option<u64>,
    /// Time of the last attempt to write.
    pub(super) tried: Now,
}

impl Held {
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Notes the result of a write.
    pub(super) fn note(&mut self, result: Result<(), DiskError>, now: Now) {
        self.tried = now;
        match result {
            Ok(()) => self.failing_since_ns = None,
            // Out of space or descriptors, or the directory is unavailable: the disk itself does not fail.
            Err(error) if error.passes() => self.failing_since_ns = None,
            Err(_) => drop(self.failing_since_ns.get_or_insert(now.mono_ns)),
        }
    }

    /// The disk has failed for too long: held blocks are dropped.
    pub(super) fn failed_for_too_long(&self, now: Now) -> bool {
        let most_ns = FAILING_MS_MAX * MS_NS;
        self.failing_since_ns.is_some_and(|since_ns| now.mono_ns.saturating_sub(since_ns) >= most_ns)
    }

    pub(super) fn pop(&mut self, disk_bytes: u64) -> Option<Block> {
        let block = self.blocks.pop_front()?;
        self.copies -= u64::from(block.copies);
        self.disk_bytes -= disk_bytes;
        Some(block)
    }
}

/// Most files kept open because their name is gone: each takes a descriptor.
const KEPT_OPEN_MAX: usize = 16;

/// Open files of segments that cannot be opened by name, by sequence number.
#[derive(Debug)]
pub(super) struct KeptOpen<F>(pub(super) BTreeMap<u64, F>);

impl<F> Default for KeptOpen<F> {
    fn default() -> Self {
        KeptOpen(BTreeMap::new())
    }
}

impl<F: Clone> KeptOpen<F> {
    pub(super) fn file(&self, sequence: u64) -> Option<F> {
        self.0.get(&sequence).cloned()
    }

    pub(super) fn forget(&mut self, sequence: u64) {
        self.0.remove(&sequence);
    }

    /// At the limit, newer files are not kept: the oldest ones are read first.
    pub(super) fn keep(&mut self, sequence: u64, file: F) {
        if self.0.len() < KEPT_OPEN_MAX {
            self.0.insert(sequence, file);
        }
    }
}

/// Why nothing can be read, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stalled {
    pub(super) error: DiskError,
    /// When the disk began to fail. It restarts with each error that says nothing about the disk.
    pub(super) since_ns: u64,
    pub(super) tries: u32,
    pub(super) again_ns: u64,
    /// The sender was woken to try again.
    pub(super) woken: bool,
}
