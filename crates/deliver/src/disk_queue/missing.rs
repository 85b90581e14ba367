//! Files that are not in the folder any more: somebody deleted them, or the whole folder, under a running daemon.
//!
//! The system keeps a deleted file as long as it is open, and syncs it with success; with the process it is gone. Two
//! things find out: a sync says [`DiskError::Deleted`], which is final like any failed sync, and a look at the folder's
//! names ([`DiskQueue::begin_look`]), which the caller takes now and then and before the end.
//! Path of a packet: none.
//! Not here: what a disk calls deleted and what away (`model::Disk`), reading (`reading`).
//! Invariant: what is missing stays in the queue and is delivered as far as its file is open. It gets its outcome, `deleted`,
//! when reading comes to what is not open, or at the end.

use std::collections::{BTreeMap, BTreeSet};

use model::{CopyOutcome, Disk, DiskError, Dropped};

use super::commit::{NotSynced, SyncDone};
use super::format::{Totals, segment_name};
use super::{DiskQueue, Returned};

/// Most files that are kept open because they have no name: each takes a descriptor.
const KEPT_OPEN_MAX: usize = 16;

/// Files of segments that cannot be opened by their names, by sequence number.
#[derive(Debug)]
pub(super) struct KeptOpen<F>(BTreeMap<u64, F>);

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

    /// The oldest come first when they are read, so that a newer one is not kept where there are too many.
    fn keep(&mut self, sequence: u64, file: F) {
        if self.0.len() < KEPT_OPEN_MAX {
            self.0.insert(sequence, file);
        }
    }
}

/// A look at the names in the folder that is to be taken; needs no lock on the queue.
#[must_use = "the queue learns nothing otherwise"]
#[derive(Debug)]
pub struct Look {
    /// Segments from here on are younger than the look.
    upto: u64,
}

/// What a [`Look`] has found.
#[must_use = "the queue learns nothing otherwise"]
#[derive(Debug)]
pub struct Looked {
    upto: u64,
    names: Result<Vec<String>, DiskError>,
}

impl Look {
    /// Takes it.
    pub fn perform<D: Disk>(self, disk: &D) -> Looked {
        Looked { upto: self.upto, names: disk.list() }
    }
}

/// What is not where the next process would look for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// [`DiskError::Away`]: the folder, which may come back. [`DiskError::Deleted`]: files.
    pub error: DiskError,
    /// Segments with records that wait.
    pub segments: u64,
    /// Copies that wait in them, what a sender holds included.
    pub copies: u64,
}

impl<D: Disk> DiskQueue<D> {
    /// A look at the folder. None when nothing is there that somebody could miss.
    pub fn begin_look(&self) -> Option<Look> {
        (!self.segments.is_empty()).then_some(Look { upto: self.next_sequence })
    }

    /// Takes what a look has found. Segments that are missing are written no more, and kept open where they are.
    pub fn on_looked(&mut self, looked: Looked) {
        self.take_notes();
        let names: BTreeSet<String> = match looked.names {
            Ok(names) => names.into_iter().collect(),
            Err(DiskError::Deleted) => BTreeSet::new(),
            Err(error) => {
                self.is_away |= error == DiskError::Away;
                return;
            }
        };
        self.is_away = false;
        self.cursor.look_for_file(|name| names.contains(name));
        let mut missing = Vec::new();
        for segment in self.segments.iter_mut().filter(|segment| segment.sequence < looked.upto) {
            segment.missing = !names.contains(&segment_name(segment.sequence));
            if segment.missing {
                missing.push(segment.sequence);
            } else {
                self.kept_open.forget(segment.sequence);
            }
        }
        for sequence in missing {
            self.close(sequence, None);
        }
    }

    /// What is missing, as far as the last look and the last sync tell.
    pub fn missing(&self) -> Option<Missing> {
        if self.is_away {
            let waiting = self.end.since(self.settlement.settled()).copies;
            return Some(Missing {
                error: DiskError::Away,
                segments: self.segments.len() as u64,
                copies: waiting,
            });
        }
        let (mut segments, mut copies) = (0, 0);
        let missing = self.segments.iter().zip(self.ends()).filter(|(segment, _)| segment.missing);
        for (segment, upto) in missing {
            let unread = upto.since(segment.before.at_least(self.read)).copies;
            let open = self.settlement.records().filter(|(_, place)| place.sequence == segment.sequence);
            let open = open.map(|(header, _)| match self.returned.get(&header.before.records) {
                Some(Returned::Part(part)) => u64::from(part.copies_left),
                Some(Returned::Entry(entry)) => entry.copies(),
                None => u64::from(header.copies),
            });
            let waiting = unread + open.sum::<u64>();
            segments += u64::from(waiting > 0);
            copies += waiting;
        }
        (copies > 0).then_some(Missing { error: DiskError::Deleted, segments, copies })
    }

    /// At the end, when all entries came back: drops (`deleted`) what is missing and comes before everything that is there,
    /// so that the cursor can go past it. What is missing behind something that waits is found by the next process, and
    /// counted there.
    pub fn drop_missing(&mut self) {
        self.take_notes();
        let settled = self.settlement.settled();
        let ends: Vec<Totals> = self.ends().collect();
        let waiting = self.segments.iter().zip(ends).filter(|(_, upto)| upto.records > settled.records);
        let first_there = waiting.map(|(segment, _)| *segment).find(|segment| !segment.missing);
        if !self.segments.iter().any(|segment| segment.missing) {
            return;
        }
        let (upto, place) = first_there.map_or((self.end, self.place), |first| (first.before, first.place()));
        while self.returned.first_key_value().is_some_and(|(number, _)| *number < upto.records) {
            match self.returned.pop_first() {
                Some((_, Returned::Entry(entry))) => {
                    self.count_returned(entry.copies(), entry.memory_bytes(), false);
                    entry.settle(CopyOutcome::Dropped(Dropped::Deleted));
                    self.take_notes();
                }
                Some((number, Returned::Part(part))) => self.settle_part(number, part, Dropped::Deleted),
                None => {}
            }
        }
        if self.read.records < upto.records && upto.covers(self.read) {
            self.front = None;
            self.place = place;
            self.unstall();
            self.pass(upto, place, Dropped::Deleted);
        }
    }

    pub(super) fn is_missing(&self, sequence: u64) -> bool {
        self.segments.iter().any(|segment| segment.sequence == sequence && segment.missing)
    }

    /// A segment that is written no more. Where it cannot be opened by its name, what has it open keeps it.
    pub(super) fn close(&mut self, sequence: u64, synced: Option<D::File>) {
        let writer = match self.segments.back() {
            Some(last) if last.sequence == sequence => self.writer.take(),
            _ => None,
        };
        let reader = self.reader.as_ref().filter(|reader| reader.sequence == sequence);
        let file = writer.or(synced).or_else(|| reader.map(|reader| reader.file().clone()));
        if let Some(file) = file
            && (self.is_away || self.is_missing(sequence))
            && self.kept_open.file(sequence).is_none()
        {
            self.kept_open.keep(sequence, file);
        }
    }

    /// A file that we removed ourselves before or while it was to be synced is no loss: all in it has its outcome. One that
    /// somebody else removed is missing.
    pub(super) fn allow_removed(&mut self, done: &mut SyncDone) {
        for (sequence, result) in &mut done.segments {
            let gone = [DiskError::Deleted, DiskError::NotFound].map(|error| Err(NotSynced::Failed(error)));
            if !gone.contains(result) {
                continue;
            }
            match self.segments.iter_mut().find(|segment| segment.sequence == *sequence) {
                Some(segment) => segment.missing = true,
                None => *result = Ok(()),
            }
        }
    }

    /// All that was appended up to the end of each segment.
    fn ends(&self) -> impl Iterator<Item = Totals> {
        self.segments.iter().skip(1).map(|next| next.before).chain([self.end])
    }
}
