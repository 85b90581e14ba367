//! Deleted files: another program deleted segments, or the whole directory, while the queue is open.
//!
//! The kernel keeps a deleted file while it is open, and syncs it without an error; when the process ends, the file
//! is lost. There are two ways to detect it: a sync returns [`DiskError::Deleted`], which is final like any failed
//! sync, and a check of the names in the directory ([`DiskQueue::begin_directory_check`]), which the caller does periodically
//! and before the end.
//! Path of a packet: none.
//! Not here: which errors mean deleted and which mean unavailable (`model::Disk`), reading (`reading`).
//! Invariant: records of missing files stay queued and are delivered while their file is open. They are dropped
//! (`deleted`) when reading comes to a file that is not open, or at the end.

use std::collections::BTreeSet;

use model::{CopyOutcome, Disk, DiskError, Dropped};

use super::DiskQueue;
use super::commit::{NotSynced, SyncDone};
use super::format::{Totals, segment_name};
use super::state::Returned;

/// A check of the names in the directory, to be performed; needs no lock on the queue.
#[must_use = "the result must be reported to the queue"]
#[derive(Debug)]
pub struct DirectoryCheck {
    /// Segments from this number on are younger than the check.
    upto: u64,
}

/// Result of a [`DirectoryCheck`].
#[must_use = "the result must be reported to the queue"]
#[derive(Debug)]
pub struct DirectoryListing {
    upto: u64,
    names: Result<Vec<String>, DiskError>,
}

impl DirectoryCheck {
    /// Lists the directory.
    pub fn perform<D: Disk>(self, disk: &D) -> DirectoryListing {
        DirectoryListing { upto: self.upto, names: disk.list() }
    }
}

/// Files that the next process will not find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// [`DiskError::Away`]: the directory is unavailable and may come back. [`DiskError::Deleted`]: files are deleted.
    pub error: DiskError,
    /// Missing segments with queued records.
    pub segments: u64,
    /// Queued copies in them, those that a sender holds included.
    pub copies: u64,
}

impl<D: Disk> DiskQueue<D> {
    /// A check of the directory. None when there are no segments.
    pub fn begin_directory_check(&self) -> Option<DirectoryCheck> {
        (!self.segments.is_empty()).then_some(DirectoryCheck { upto: self.next_sequence })
    }

    /// Takes the result of a check. Missing segments are not written any more, and stay open if they are.
    pub fn on_directory_checked(&mut self, listing: DirectoryListing) {
        self.take_notes();
        let names: BTreeSet<String> = match listing.names {
            Ok(names) => names.into_iter().collect(),
            Err(DiskError::Deleted) => BTreeSet::new(),
            Err(error) => {
                self.is_away |= error == DiskError::Away;
                return;
            }
        };
        self.is_away = false;
        self.cursor.check_file(|name| names.contains(name));
        let mut missing = Vec::new();
        for segment in self.segments.iter_mut().filter(|segment| segment.sequence < listing.upto) {
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

    /// Missing files, by the last check and the last sync.
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
                Some(Returned::Progress(progress)) => u64::from(progress.copies_left),
                Some(Returned::Entry(entry)) => entry.copies(),
                None => u64::from(header.copies),
            });
            let waiting = unread + open.sum::<u64>();
            segments += u64::from(waiting > 0);
            copies += waiting;
        }
        (copies > 0).then_some(Missing { error: DiskError::Deleted, segments, copies })
    }

    /// At the end, when no sender holds an entry: drops (`deleted`) the missing records before the first one that is
    /// there, so that the cursor can move past them. Missing records after a queued one are found and counted by the
    /// next process.
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
                Some((number, Returned::Progress(progress))) => {
                    self.settle_returned(number, progress, Dropped::Deleted)
                }
                None => {}
            }
        }
        if self.read.records < upto.records && upto.covers(self.read) {
            self.front = None;
            self.place = place;
            self.unstall();
            self.drop_range(upto, place, Dropped::Deleted);
        }
    }

    pub(super) fn is_missing(&self, sequence: u64) -> bool {
        self.segments.iter().any(|segment| segment.sequence == sequence && segment.missing)
    }

    /// Stops writing to a segment. If its name is gone, an open file of it is kept.
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

    /// A file that we removed ourselves before or during the sync is no loss: all its records are settled. A file
    /// that another program removed is missing.
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

    /// Totals up to the end of each segment.
    fn ends(&self) -> impl Iterator<Item = Totals> {
        self.segments.iter().skip(1).map(|next| next.before).chain([self.end])
    }
}
