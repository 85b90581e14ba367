//! Reading: from the cursor over all segments, past all damage.
//!
//! Damage is not counted when it is found but when it is passed: the header of the next readable record says how much
//! lies before it. Where none follows, the end of the queue says so. A read error is no damage: reading waits
//! (`stalled`).

use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Disk, DiskError, Dropped, Now};

use super::DiskQueue;
use super::format::{Place, RecordHeader, Totals, segment_name};
use super::scan::{Damage, DamageKind, SegmentReader};
use super::settle::{Progress, RecordHandle};
use super::state::{Returned, Segment};
use crate::block::Block;
use crate::queue::entry::Entry;

impl<D: Disk> DiskQueue<D> {
    /// The oldest record that no sender holds.
    pub(super) fn oldest(&mut self) -> Option<RecordHeader> {
        let returned = self.returned.first_key_value().map(|(number, _)| *number);
        match returned {
            Some(number) => self.settlement.find(number).map(|(header, _)| header),
            None => self.front().map(|(header, _)| header),
        }
    }

    /// Age of the oldest block that was read and has no outcome yet, in nanoseconds: a sender holds it, or has returned it. Needs no
    /// read. None when there is none; then the next block to read is the oldest one.
    pub fn oldest_open_age_ns(&mut self, now: Now) -> Option<u64> {
        self.take_notes();
        let (header, _) = self.settlement.records().next()?;
        Some(self.stamps.wall_ns_of(now.mono_ns).saturating_sub(self.stamps.made_wall_ns(&header)))
    }

    /// True when [`crate::queue::Queue::oldest_age_ns`] needs no read.
    pub fn knows_oldest(&mut self) -> bool {
        self.take_notes();
        let has_read = self.front.is_some() || self.read.records >= self.end.records;
        !self.returned.is_empty() || has_read || self.pauses().is_some()
    }

    /// The next record to read: its header and place. None also while reading waits.
    fn front(&mut self) -> Option<(RecordHeader, Place)> {
        while self.front.is_none() && self.read.records < self.end.records {
            if self.pauses().is_some() {
                return None;
            }
            match self.look_up() {
                Err(error) => {
                    self.stall(error);
                    return None;
                }
                Ok(Some((header, place))) => {
                    self.unstall();
                    if header.before.records > self.read.records {
                        self.lose(header.before, place);
                    }
                    self.settle_missing_copies(header.before);
                    self.place = place;
                    self.front = Some((header, place));
                }
                Ok(None) => {
                    self.unstall();
                    self.lose(self.end, self.place);
                }
            }
        }
        if self.front.is_none() {
            self.unstall();
            self.settle_missing_copies(self.end);
        }
        self.front
    }

    /// Settles copies that no record accounts for: a loss of power may restore a record whose number was used again
    /// for one with more copies.
    fn settle_missing_copies(&mut self, to: Totals) {
        if to != self.read {
            self.settle_up_to(to, Dropped::Damaged);
        }
    }

    /// Advances to the first record from `place` on with a valid header.
    fn look_up(&mut self) -> Result<Option<(RecordHeader, Place)>, DiskError> {
        loop {
            let at = self.segments.partition_point(|segment| segment.sequence < self.place.sequence);
            let Some(segment) = self.segments.get(at).copied() else { return Ok(None) };
            if segment.sequence != self.place.sequence {
                self.place = segment.place();
            }
            if let Some((header, offset)) = self.next_in(segment)? {
                return Ok(Some((header, Place { sequence: segment.sequence, offset })));
            }
            match self.segments.get(at + 1) {
                Some(next) => self.place = next.place(),
                None => {
                    self.place.offset = segment.size;
                    return Ok(None);
                }
            }
        }
    }

    /// The next record in the segment of `place`.
    fn next_in(&mut self, segment: Segment) -> Result<Option<(RecordHeader, u64)>, DiskError> {
        // No record of the next segment can be in this one: it was written there again after an error.
        let at = self.segments.partition_point(|other| other.sequence <= segment.sequence);
        let (read, end) = (self.read, self.segments.get(at).map_or(self.end, |next| next.before));
        let range = (self.place.offset, segment.size);
        let mut damage = Vec::new();
        let next = match self.reader_of(segment.sequence) {
            Ok(mut reader) => {
                let fits = |header: &RecordHeader| header.before.covers(read) && end.covers(header.after());
                let next = reader.next(&self.disk, self.queue_id, range, fits, &mut damage);
                self.reader = Some(reader);
                next
            }
            Err(error) => Err(error),
        };
        let next = match next {
            Err(error) if self.is_damage(error, segment.sequence) => {
                let (from, to) = range;
                damage = vec![Damage { from, to, kind: DamageKind::Unreadable }];
                None
            }
            next => next?,
        };
        for damage in damage {
            self.quarantine_range(segment.sequence, damage);
        }
        Ok(next)
    }

    /// The reader for that segment. The caller puts it back.
    fn reader_of(&mut self, sequence: u64) -> Result<SegmentReader<D::File>, DiskError> {
        let mut reader = match self.reader.take() {
            Some(reader) if reader.sequence == sequence => reader,
            _ => SegmentReader::new(
                sequence,
                match self.kept_open.file(sequence) {
                    Some(file) => file,
                    None => self.disk.open(&segment_name(sequence))?,
                },
            ),
        };
        reader.skips_unreadable(self.skips_unreadable(sequence));
        Ok(reader)
    }

    fn quarantine_range(&mut self, sequence: u64, damage: Damage) {
        if self.segments.iter().any(|segment| segment.sequence == sequence && segment.missing) {
            // There is nothing to copy.
            return;
        }
        let kept = self.quarantine.keep_range(&self.disk, sequence, damage, &mut self.counts);
        if let Some(segment) = self.segments.iter_mut().find(|segment| segment.sequence == sequence) {
            segment.unreadable |= damage.kind == DamageKind::Unreadable;
            segment.kept_whole |= kept.is_err();
        }
    }

    /// Reads the next record with a valid body. None also while reading waits.
    pub(super) fn read_next(&mut self) -> Option<Entry> {
        loop {
            let (header, start) = self.front()?;
            let end = Place { offset: start.offset + header.disk_bytes(), ..start };
            let block = self.read_block(&header, start).ok()?;
            self.front = None;
            self.place = end;
            match block {
                Some(block) => {
                    self.read = header.after();
                    self.settlement.add_popped(header, start, end);
                    return Some(self.entry(block, None, &header));
                }
                None => self.lose(header.after(), end),
            }
        }
    }

    fn entry(&self, block: Block, progress: Option<Progress>, header: &RecordHeader) -> Entry {
        let record = RecordHandle::new(header, &self.log);
        Entry::from_disk(block, progress, header.disk_bytes(), &self.account, record)
    }

    /// The block of a record. None when it is damaged; an error while reading waits.
    fn read_block(&mut self, header: &RecordHeader, start: Place) -> Result<Option<Block>, DiskError> {
        if let Some(error) = self.pauses() {
            return Err(error);
        }
        let at_ns = self.stamps.mono_ns_of(self.stamps.made_wall_ns(header));
        let segment = self.segments.iter().find(|segment| segment.sequence == start.sequence);
        let Some(size) = segment.map(|segment| segment.size) else { return Ok(None) };
        let read = match self.reader_of(start.sequence) {
            Ok(mut reader) => {
                let body = reader.body(&self.disk, header, start.offset, size);
                let block = body.map(|body| header.block(self.queue_id, body, at_ns));
                self.reader = Some(reader);
                block
            }
            Err(error) => Err(error),
        };
        let (block, kind) = match read {
            Ok(block) => (block, DamageKind::Body),
            Err(error) if self.is_damage(error, start.sequence) => (None, DamageKind::Unreadable),
            Err(error) => {
                self.stall(error);
                return Err(error);
            }
        };
        self.unstall();
        if block.is_none() {
            let (from, to) = (start.offset, start.offset + header.disk_bytes());
            self.quarantine_range(start.sequence, Damage { from, to, kind });
        }
        Ok(block)
    }

    /// Reads a record again whose entry was dropped. None when it is damaged by now, or while reading waits: it is
    /// then the next one again.
    pub(super) fn read_returned(&mut self, number: u64, progress: Progress) -> Option<Entry> {
        let (header, start) = self.settlement.find(number)?;
        match self.read_block(&header, start) {
            Ok(Some(block)) => {
                self.count_returned(u64::from(progress.copies_left), header.disk_bytes(), false);
                Some(self.entry(block, Some(progress), &header))
            }
            Ok(None) => {
                let missing = self.is_missing(start.sequence);
                self.counts.damaged_records += u64::from(!missing);
                self.settle_returned(
                    number,
                    progress,
                    if missing { Dropped::Deleted } else { Dropped::Damaged },
                );
                None
            }
            Err(_) => {
                self.returned.insert(number, Returned::Progress(progress));
                None
            }
        }
    }

    /// Drops the rest of a record that was put back, and whose block is not in memory.
    pub(super) fn settle_returned(&mut self, number: u64, progress: Progress, reason: Dropped) {
        let bytes = self.settlement.find(number).map_or(0, |(header, _)| header.disk_bytes());
        self.count_returned(u64::from(progress.copies_left), bytes, false);
        self.account.settle(
            CopyOutcome::Dropped(reason),
            u64::from(progress.copies_left),
            progress.bytes_left,
        );
        self.account.queued_bytes.fetch_sub(bytes, Relaxed);
        self.settlement.mark_settled(number);
    }

    /// Drops the next record unread. True also when only damage was found there.
    pub(super) fn drop_unread(&mut self, reason: Dropped) -> bool {
        let before = self.read;
        let front = self.front();
        if self.read != before {
            return true;
        }
        let Some((header, start)) = front else { return false };
        self.front = None;
        self.place = Place { offset: start.offset + header.disk_bytes(), ..start };
        self.drop_range(header.after(), self.place, reason);
        true
    }

    /// Drops the unread rest of a segment without reading it: the header of the next one shows how much that is. False when
    /// it has more bytes on disk and more copies than `most`, when it is the last one, or when its file is missing.
    pub(super) fn drop_segment(&mut self, reason: Dropped, (bytes, copies): (u64, u64)) -> bool {
        let at = self.segments.partition_point(|segment| segment.before.records <= self.read.records);
        let segment = at.checked_sub(1).and_then(|at| self.segments.get(at));
        let (Some(segment), Some(next)) = (segment, self.segments.get(at)) else { return false };
        let (before, place) = (next.before, next.place());
        let rest = before.since(self.read);
        if segment.missing || !before.covers(self.read) || (rest.disk_bytes > bytes && rest.copies > copies) {
            return false;
        }
        self.front = None;
        self.place = place;
        self.drop_range(before, place, reason);
        true
    }

    /// Everything up to `after` that was not read is lost: deleted with its segment, or damaged.
    fn lose(&mut self, after: Totals, end: Place) {
        let first = self.read.records;
        let ends = self.segments.iter().skip(1).map(|next| next.before);
        let missing = self.segments.iter().zip(ends.chain([self.end]));
        let missing =
            missing.filter(|(segment, _)| segment.missing).map(|(segment, upto)| (segment.before, upto));
        for (before, upto) in missing.collect::<Vec<_>>() {
            let from = before.at_least(self.read);
            let upto = if after.covers(upto) { upto } else { after };
            if after.covers(from) && upto.covers(from) && upto.records > from.records {
                self.counts.damaged_records += from.since(self.read).records;
                self.settle_up_to(from, Dropped::Damaged);
                self.settle_up_to(upto, Dropped::Deleted);
            }
        }
        self.counts.damaged_records += after.since(self.read).records;
        self.settle_up_to(after, Dropped::Damaged);
        self.settlement.settle_range(first, after, end);
    }

    pub(super) fn drop_range(&mut self, after: Totals, end: Place, reason: Dropped) {
        let first = self.read.records;
        self.settle_up_to(after, reason);
        self.settlement.settle_range(first, after, end);
    }

    fn settle_up_to(&mut self, after: Totals, reason: Dropped) {
        let gone = after.since(self.read);
        if after.records <= self.opened_end {
            self.lost_before_start += gone.copies;
        }
        self.account.settle(CopyOutcome::Dropped(reason), gone.copies, gone.copy_bytes);
        self.account.queued_bytes.fetch_sub(gone.disk_bytes, Relaxed);
        self.read = after;
    }
}
