//! What was read and has no outcome yet, and how far everything is settled.
//!
//! Entries are settled by whoever holds them, in any order and on any thread; they leave a note in a [`SettleLog`]. The
//! queue reads the notes at its next call and moves on over the settled front.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::format::{Place, RecordHeader, Totals};

/// How far an entry got that was dropped before all its copies had an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) settled: usize,
    pub(crate) written_before: usize,
    pub(crate) packets_done: usize,
    pub(crate) copies_left: u32,
    pub(crate) bytes_left: u64,
}

impl Part {
    /// Nothing is settled.
    pub(crate) fn whole(copies: u32, copy_bytes: u64) -> Part {
        Part { settled: 0, written_before: 0, packets_done: 0, copies_left: copies, bytes_left: copy_bytes }
    }
}

/// Notes of entries that were settled or dropped: (number, what is left).
#[derive(Debug, Default)]
pub(crate) struct SettleLog(Mutex<Vec<(u64, Option<Part>)>>);

impl SettleLog {
    /// A panic elsewhere leaves whole notes behind: there is no step between two of them.
    fn notes(&self) -> MutexGuard<'_, Vec<(u64, Option<Part>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> Vec<(u64, Option<Part>)> {
        std::mem::take(&mut *self.notes())
    }

    /// Copies that entries left unsettled and the queue has not heard of.
    pub(super) fn copies_left(&self) -> u64 {
        self.notes().iter().filter_map(|note| note.1).map(|part| u64::from(part.copies_left)).sum()
    }
}

/// What ties an entry to its record on disk.
#[derive(Debug)]
pub(crate) struct Ticket {
    number: u64,
    log: Arc<SettleLog>,
}

impl Ticket {
    pub(super) fn new(number: u64, log: &Arc<SettleLog>) -> Ticket {
        Ticket { number, log: Arc::clone(log) }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// True for an entry of the queue that owns `log`.
    pub(crate) fn is_of(&self, log: &Arc<SettleLog>) -> bool {
        Arc::ptr_eq(&self.log, log)
    }

    /// The entry is gone: settled whole, or with a part that still waits.
    pub(crate) fn hand_in(&self, left: Option<Part>) {
        self.log.notes().push((self.number, left));
    }
}

/// A record that was read, or a run of records that have their outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// Number of the first record.
    number: u64,
    /// The record and where it is; none for a run that is done.
    pub(super) record: Option<(RecordHeader, Place)>,
    after: Totals,
    end: Place,
}

/// Everything between what is settled and what is read, in order.
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

    /// Everything before it has its outcome.
    pub(super) fn settled(&self) -> Totals {
        self.settled
    }

    /// Where the first record begins that has none.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Steps that it takes to remember what was settled out of order.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// A record was handed out.
    pub(super) fn hand_out(&mut self, header: RecordHeader, start: Place, end: Place) {
        let record = Some((header, start));
        self.open.push_back(Open { number: header.before.records, record, after: header.after(), end });
    }

    /// All records from number `first` up to `after` got their outcome without being handed out.
    pub(super) fn pass(&mut self, first: u64, after: Totals, end: Place) {
        match self.open.back_mut() {
            Some(last) if last.record.is_none() => (last.after, last.end) = (after, end),
            _ => self.open.push_back(Open { number: first, record: None, after, end }),
        }
        self.advance();
    }

    /// The record that was handed out under this number.
    pub(super) fn find(&self, number: u64) -> Option<(RecordHeader, Place)> {
        let at = self.open.binary_search_by_key(&number, |open| open.number).ok()?;
        self.open[at].record
    }

    /// All records that were handed out and have no outcome, with their places.
    pub(super) fn records(&self) -> impl Iterator<Item = (RecordHeader, Place)> {
        self.open.iter().filter_map(|open| open.record)
    }

    /// A record that was handed out has its outcome.
    pub(super) fn done(&mut self, number: u64) {
        let found = self.open.binary_search_by_key(&number, |open| open.number);
        debug_assert!(found.is_ok(), "record {number} was not handed out");
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
