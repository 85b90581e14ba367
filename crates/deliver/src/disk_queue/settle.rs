//! Records that were read and have no outcome yet, and the watermark of settled records.
//!
//! Senders settle entries in any order and on any thread; each entry leaves a note in a [`SettleLog`]. The queue
//! reads the notes at its next call and advances the watermark.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::format::{Place, RecordHeader, Totals};

/// Most records that may be read and unsettled at one time, or settled after one that is not. Past it,
/// [`Queue::pop`](crate::queue::Queue::pop) returns none.
pub const OPEN_RECORDS_MAX: usize = if cfg!(test) { 128 } else { 65_536 };

/// Number of a record, counted since the queue was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// Delivery progress of an entry that was dropped before all its copies had an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) settled: usize,
    pub(crate) written_before: usize,
    pub(crate) packets_done: usize,
    pub(crate) copies_left: u32,
    pub(crate) bytes_left: u64,
}

impl Progress {
    /// Nothing is settled.
    pub(crate) fn start(copies: u32, copy_bytes: u64) -> Progress {
        Progress {
            settled: 0,
            written_before: 0,
            packets_done: 0,
            copies_left: copies,
            bytes_left: copy_bytes,
        }
    }
}

/// Notes of entries that were settled or dropped: (number, unsettled rest).
#[derive(Debug, Default)]
pub(crate) struct SettleLog(Mutex<Vec<(u64, Option<Progress>)>>);

impl SettleLog {
    /// A panic elsewhere leaves whole notes: there is no step between two of them.
    fn notes(&self) -> MutexGuard<'_, Vec<(u64, Option<Progress>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> Vec<(u64, Option<Progress>)> {
        std::mem::take(&mut *self.notes())
    }

    /// Copies in unsettled entries whose notes the queue has not read.
    pub(super) fn copies_left(&self) -> u64 {
        self.notes().iter().filter_map(|note| note.1).map(|progress| u64::from(progress.copies_left)).sum()
    }
}

/// Links an entry to its record on disk.
#[derive(Debug)]
pub(crate) struct RecordHandle {
    number: u64,
    made_wall_ns: u64,
    log: Arc<SettleLog>,
}

impl RecordHandle {
    pub(super) fn new(header: &RecordHeader, log: &Arc<SettleLog>) -> RecordHandle {
        let (number, made_wall_ns) = (header.before.records, header.made_wall_ns);
        RecordHandle { number, made_wall_ns, log: Arc::clone(log) }
    }

    /// What the wall clock said when the record was appended, Unix nanoseconds.
    pub(crate) fn made_wall_ns(&self) -> u64 {
        self.made_wall_ns
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// True for an entry of the queue that owns `log`.
    pub(crate) fn is_of(&self, log: &Arc<SettleLog>) -> bool {
        Arc::ptr_eq(&self.log, log)
    }

    /// The entry ended: settled, or with an unsettled rest.
    pub(crate) fn report_end(&self, left: Option<Progress>) {
        self.log.notes().push((self.number, left));
    }
}

/// A record that was read, or a run of settled records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// Number of the first record.
    number: u64,
    /// The record and its place; none for a settled run.
    pub(super) record: Option<(RecordHeader, Place)>,
    after: Totals,
    end: Place,
}

/// Everything between the settled records and the read ones, in order.
#[derive(Debug)]
pub(super) struct Settlement {
    open: VecDeque<Open>,
    settled: Totals,
    place: Place,
}

impl Settlement {
    pub(super) fn new(settled: Totals, place: Place) -> Settlement {
        Settlement { open: VecDeque::new(), settled, place }
    }

    /// Every record before it has its outcome.
    pub(super) fn settled(&self) -> Totals {
        self.settled
    }

    /// Place of the first record without an outcome.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Number of records and runs to remember.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// A record was popped.
    pub(super) fn add_popped(&mut self, header: RecordHeader, start: Place, end: Place) {
        let record = Some((header, start));
        self.open.push_back(Open { number: header.before.records, record, after: header.after(), end });
    }

    /// All records from number `first` up to `after` were settled without being popped.
    pub(super) fn settle_range(&mut self, first: u64, after: Totals, end: Place) {
        match self.open.back_mut() {
            Some(last) if last.record.is_none() => (last.after, last.end) = (after, end),
            _ => self.open.push_back(Open { number: first, record: None, after, end }),
        }
        self.advance();
    }

    /// The popped record of this number.
    pub(super) fn find(&self, number: u64) -> Option<(RecordHeader, Place)> {
        let at = self.open.binary_search_by_key(&number, |open| open.number).ok()?;
        self.open[at].record
    }

    /// All popped records without an outcome, with their places.
    pub(super) fn records(&self) -> impl Iterator<Item = (RecordHeader, Place)> {
        self.open.iter().filter_map(|open| open.record)
    }

    /// A popped record has its outcome.
    pub(super) fn mark_settled(&mut self, number: u64) {
        let found = self.open.binary_search_by_key(&number, |open| open.number);
        debug_assert!(found.is_ok(), "record {number} was not popped");
        if let Ok(at) = found {
            self.open[at].record = None;
            self.advance();
        }
    }

    fn advance(&mut self) {
        while let Some(first) = self.open.pop_front_if(|open| open.record.is_none()) {
            self.settled = first.after;
            self.place = first.end;
        }
    }
}
