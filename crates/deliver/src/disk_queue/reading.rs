//! The reading half: from the place of the cursor over all segments, past whatever is damaged.
//!
//! Damage is not counted when it is met but when it is passed: the next record that can be read says how much lies
//! before it. Where none follows, the end of the queue says so.

use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Disk, Shed};

use super::format::{Place, RecordHeader, Totals, segment_name};
use super::scan::{Damage, DamageKind, SegmentReader};
use super::settle::{Part, Ticket};
use super::{DiskQueue, Segment};
use crate::block::Block;
use crate::queue::Entry;

impl<D: Disk> DiskQueue<D> {
    /// The oldest record that nobody holds.
    pub(super) fn oldest(&mut self) -> Option<RecordHeader> {
        let returned = self.returned.first_key_value().map(|(number, _)| *number);
        match returned {
            Some(number) => self.settlement.find(number).map(|(header, _)| header),
            None => self.front().map(|(header, _)| header),
        }
    }

    /// The next record to be read: its header and place.
    fn front(&mut self) -> Option<(RecordHeader, Place)> {
        while self.front.is_none() && self.read.records < self.end.records {
            match self.look_up() {
                Some((header, place)) => {
                    if header.before.records > self.read.records {
                        self.lose(header.before, place);
                    }
                    self.catch_up(header.before);
                    self.place = place;
                    self.front = Some((header, place));
                }
                None => self.lose(self.end, self.place),
            }
        }
        if self.front.is_none() {
            self.catch_up(self.end);
        }
        self.front
    }

    /// Settles copies that no record accounts for: after a loss of power a record may be back whose number was given
    /// again to one with more copies.
    fn catch_up(&mut self, to: Totals) {
        if to != self.read {
            self.settle_up_to(to, Shed::Damaged);
        }
    }

    /// Goes on to the first record from `place` on that is whole as far as its header tells.
    fn look_up(&mut self) -> Option<(RecordHeader, Place)> {
        loop {
            let at = self.segments.partition_point(|segment| segment.sequence < self.place.sequence);
            let segment = *self.segments.get(at)?;
            if segment.sequence != self.place.sequence {
                self.place = segment.place();
            }
            if let Some((header, offset)) = self.next_in(segment) {
                return Some((header, Place { sequence: segment.sequence, offset }));
            }
            match self.segments.get(at + 1) {
                Some(next) => self.place = next.place(),
                None => {
                    self.place.offset = segment.size;
                    return None;
                }
            }
        }
    }

    /// The next record in the segment that `place` is in.
    fn next_in(&mut self, segment: Segment) -> Option<(RecordHeader, u64)> {
        // Nothing of the next segment can be in this one: a record past it was written again there, after an error.
        let at = self.segments.partition_point(|other| other.sequence <= segment.sequence);
        let (read, end) = (self.read, self.segments.get(at).map_or(self.end, |next| next.before));
        let mut damage = Vec::new();
        let mut reader = self.reader_of(segment.sequence);
        let next = match &mut reader {
            Some(reader) => {
                let range = (self.place.offset, segment.size);
                let fits = |header: &RecordHeader| header.before.covers(read) && end.covers(header.after());
                reader.next(&self.disk, self.queue_id, range, fits, &mut damage)
            }
            None => {
                let (from, to) = (self.place.offset, segment.size);
                damage.push(Damage { from, to, kind: DamageKind::Unreadable });
                None
            }
        };
        self.reader = reader;
        for damage in damage {
            self.set_aside(segment.sequence, damage);
        }
        next
    }

    /// The reader, on that segment. None when it cannot be opened.
    fn reader_of(&mut self, sequence: u64) -> Option<SegmentReader<D::File>> {
        match self.reader.take() {
            Some(reader) if reader.sequence == sequence => Some(reader),
            _ => {
                let file = self.disk.open(&segment_name(sequence)).ok()?;
                Some(SegmentReader::new(sequence, file))
            }
        }
    }

    fn set_aside(&mut self, sequence: u64, damage: Damage) {
        if damage.kind == DamageKind::Unreadable
            && let Some(segment) = self.segments.iter_mut().find(|segment| segment.sequence == sequence)
        {
            segment.unreadable = true;
        }
        self.quarantine.keep_range(&self.disk, sequence, damage, &mut self.counts);
    }

    /// Reads the next record whose body is whole.
    pub(super) fn read_next(&mut self) -> Option<Entry> {
        loop {
            let (header, start) = self.front()?;
            let end = Place { offset: start.offset + header.disk_bytes(), ..start };
            self.front = None;
            self.place = end;
            match self.read_block(&header, start) {
                Some(block) => {
                    self.read = header.after();
                    self.settlement.hand_out(header, start, end);
                    return Some(self.entry(block, None, &header));
                }
                None => self.lose(header.after(), end),
            }
        }
    }

    fn entry(&self, block: Block, part: Option<Part>, header: &RecordHeader) -> Entry {
        let ticket = Ticket::new(header.before.records, &self.log);
        Entry::from_disk(block, part, header.disk_bytes(), &self.account, ticket)
    }

    fn read_block(&mut self, header: &RecordHeader, start: Place) -> Option<Block> {
        let at_ns = self.mono_ns_of(self.made_wall_ns(header));
        let size = self.segments.iter().find(|segment| segment.sequence == start.sequence)?.size;
        let mut reader = self.reader_of(start.sequence);
        let body = reader.as_mut().map(|reader| reader.body(&self.disk, header, start.offset, size));
        let (block, kind) = match body {
            Some(Ok(body)) => (header.block(self.queue_id, body, at_ns), DamageKind::Body),
            Some(Err(_)) | None => (None, DamageKind::Unreadable),
        };
        self.reader = reader;
        if block.is_none() {
            let (from, to) = (start.offset, start.offset + header.disk_bytes());
            self.set_aside(start.sequence, Damage { from, to, kind });
        }
        block
    }

    /// Reads a record again whose entry was dropped. None when it is damaged by now.
    pub(super) fn read_again(&mut self, number: u64, part: Part) -> Option<Entry> {
        let (header, start) = self.settlement.find(number)?;
        match self.read_block(&header, start) {
            Some(block) => {
                self.count_returned(u64::from(part.copies_left), header.disk_bytes(), false);
                Some(self.entry(block, Some(part), &header))
            }
            None => {
                self.counts.damaged_records += 1;
                self.settle_part(number, part, Shed::Damaged);
                None
            }
        }
    }

    /// Sheds what is left of a record that came back, and whose block is not in memory.
    pub(super) fn settle_part(&mut self, number: u64, part: Part, reason: Shed) {
        let bytes = self.settlement.find(number).map_or(0, |(header, _)| header.disk_bytes());
        self.count_returned(u64::from(part.copies_left), bytes, false);
        self.account.settle(CopyOutcome::Shed(reason), u64::from(part.copies_left), part.bytes_left);
        self.account.bytes_waiting.fetch_sub(bytes, Relaxed);
        self.settlement.done(number);
    }

    /// Sheds the next record unread. True also when all that was found there was damage.
    pub(super) fn shed_unread(&mut self, reason: Shed) -> bool {
        let before = self.read;
        let front = self.front();
        if self.read != before {
            return true;
        }
        let Some((header, start)) = front else { return false };
        self.front = None;
        self.place = Place { offset: start.offset + header.disk_bytes(), ..start };
        self.pass(header.after(), self.place, reason);
        true
    }

    /// Everything up to `after` that was not read cannot be.
    fn lose(&mut self, after: Totals, end: Place) {
        self.counts.damaged_records += after.since(self.read).records;
        self.pass(after, end, Shed::Damaged);
    }

    fn pass(&mut self, after: Totals, end: Place, reason: Shed) {
        let first = self.read.records;
        self.settle_up_to(after, reason);
        self.settlement.pass(first, after, end);
    }

    fn settle_up_to(&mut self, after: Totals, reason: Shed) {
        let gone = after.since(self.read);
        if after.records <= self.opened_end {
            self.lost_of_before += gone.copies;
        }
        self.account.settle(CopyOutcome::Shed(reason), gone.copies, gone.copy_bytes);
        self.account.bytes_waiting.fetch_sub(gone.disk_bytes, Relaxed);
        self.read = after;
    }
}
