//! Writing: records to segments, sync jobs, and removal of settled segments.

use model::{Disk, DiskError, Dropped, Now, Reserved};

#[cfg(any(test, feature = "canary"))]
use super::Canary;
use super::DiskQueue;
#[cfg(doc)]
use super::FAILING_MS_MAX;
use super::commit::SyncJob;
use super::format::{
    CursorState, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader, Totals,
    encode_boundaries, segment_name,
};
use super::quarantine::{QuarantineReason, QuarantinedSegment};
use super::state::Segment;
use crate::block::Block;
use crate::plan::WhenFull;
use crate::queue::entry::Appended;
use crate::queue::interface::Queue;

/// Names to try for a new segment: other programs may have put files there.
const NAMES_MAX: usize = 1000;

/// Bytes to reserve at once, within the segment.
const RESERVE_BYTES: u64 = 4 << 20;

/// Cleans up after a failed write: overwrites the partial record and its end mark, so that the next run neither
/// delivers nor misses what this one counts as dropped. If this fails as well, the next run may do so.
fn wipe<D: Disk>(disk: &D, file: &D::File, offset: u64, header: &RecordHeader, queue_id: u64) {
    let size = disk.size(file).unwrap_or(u64::MAX);
    let mark_at = offset + header.disk_bytes();
    if size > mark_at {
        let _left = disk.write_at(file, mark_at, &[&[0; 4]]);
    }
    // The end mark that was there before.
    let mark = RecordHeader::mark(header.before).encode(queue_id);
    if size > offset && disk.write_at(file, offset, &[&mark]).is_err() {
        let _left = disk.write_at(file, offset, &[&[0; 4]]);
    }
}

impl<D: Disk> DiskQueue<D> {
    /// None when the block is too large for a record.
    pub(super) fn header_of(&mut self, block: &Block, now: Now) -> Option<RecordHeader> {
        self.boundaries.clear();
        encode_boundaries(&block.encoding, &mut self.boundaries);
        let settled = self.settlement.settled().records;
        let made_wall_ns = self.stamps.stamp(self.end.records, settled, block.at_ns, now);
        RecordHeader::of(block, &self.boundaries, self.end, made_wall_ns, self.queue_id)
    }

    /// Writes the record whose boundaries [`Self::header_of`] left. After a full disk or a shortage, the segment
    /// stays open and the next attempt overwrites the partial record. After any other error the segment is closed,
    /// and one more attempt is made in a new one.
    pub(super) fn write(&mut self, header: &RecordHeader, block: &Block, now: Now) -> Result<(), DiskError> {
        let written = self.write_with_retry(header, block, now);
        self.write_error = written.err();
        self.held.note(written, now);
        self.free_settled_segment();
        written
    }

    /// On a full disk the open segment is closed once all its records are settled, so that its space can be freed.
    fn free_settled_segment(&mut self) {
        let is_empty = self.segments.back().is_none_or(|last| last.size == last.start);
        if self.write_error != Some(DiskError::Full) || is_empty || self.writer.is_none() {
            return;
        }
        self.take_notes();
        if self.settlement.settled().records < self.end.records {
            return;
        }
        self.writer = None;
        // Otherwise it is removed when the cursor is synced.
        if let Some(settled) = self.cursor.safe() {
            self.remove_settled(settled);
        }
    }

    /// True when the disk has room for blocks of `bytes` that are appended next. With [`WhenFull::Block`] a source
    /// calls this before it takes data that it could lose. It reserves some more, so that not every call asks the
    /// disk. Sources also wait for a disk that fails, until it has failed for [`FAILING_MS_MAX`]: other outputs wait
    /// behind this one.
    pub fn reserve(&mut self, bytes: u64, now: Now) -> bool {
        self.retry_held(now);
        if self.held.len() > 0 {
            return false;
        }
        let Err(error) = self.try_to_reserve(bytes, now) else { return true };
        // However often it is called: it counts as one failure until a write succeeds.
        self.counts.write_errors += u64::from(self.write_error.is_none());
        self.write_error = Some(error);
        self.held.note(Err(error), now);
        self.free_settled_segment();
        error != DiskError::Full && self.held.failed_for_too_long(now)
    }

    /// Why another process could not continue with all queued records: the disk accepts no writes (tried where a
    /// write has failed before), a file is not in the directory, or reading is stalled.
    pub fn handover_error(&mut self, now: Now) -> Option<DiskError> {
        self.retry_held(now);
        let failed = self.write_error;
        let fails = failed.filter(|_| self.held.len() > 0);
        let fails = fails.or_else(|| failed.and_then(|_| self.try_to_reserve(1, now).err()));
        fails.or_else(|| self.missing().map(|missing| missing.error)).or_else(|| self.read_error())
    }

    fn try_to_reserve(&mut self, bytes: u64, now: Now) -> Result<(), DiskError> {
        let next = self.segments.back().map(|last| (last.start, last.size));
        let fits = next.is_some_and(|(start, size)| size == start || size + bytes <= self.plan.segment_bytes);
        let file = match self.writer.clone().filter(|_| fits) {
            Some(file) => file,
            // Better a short segment than one whose successor the disk has no room for.
            None => self.begin_segment(now)?,
        };
        let size = self.segments.back().map_or(0, |last| last.size);
        let bytes = bytes + RECORD_HEADER_BYTES as u64; // The mark behind it.
        if size + bytes > self.reserved {
            let ahead = bytes.max(RESERVE_BYTES.min(self.plan.segment_bytes.saturating_sub(size)));
            let (reserved, bytes) = match self.disk.reserve(&file, size, ahead) {
                Ok(reserved) => (reserved, ahead),
                Err(_) => (self.disk.reserve(&file, size, bytes)?, bytes),
            };
            // Space that was only checked, not reserved, is checked again the next time.
            self.reserved = if reserved == Reserved::Allocated { size + bytes } else { 0 };
        }
        Ok(())
    }

    fn write_with_retry(&mut self, header: &RecordHeader, block: &Block, now: Now) -> Result<(), DiskError> {
        if self.segments.back().is_some_and(|last| {
            last.size > last.start && last.size.saturating_add(header.disk_bytes()) > self.plan.segment_bytes
        }) {
            self.writer = None;
        }
        let first_try = self.write_once(header, block, now);
        let Err(error) = first_try else { return Ok(()) };
        self.counts.write_errors += 1;
        if error.passes() {
            return Err(error);
        }
        self.writer = None;
        let second_try = self.write_once(header, block, now);
        if second_try.is_err() {
            self.counts.write_errors += 1;
            if second_try.is_err_and(|error| !error.passes()) {
                self.writer = None;
            }
        }
        second_try
    }

    fn write_once(&mut self, header: &RecordHeader, block: &Block, now: Now) -> Result<(), DiskError> {
        let file = match &self.writer {
            Some(file) => file.clone(),
            None => self.begin_segment(now)?,
        };
        let last = self.segments.back_mut().expect("the open segment is the last one");
        // The end mark is in the same write, so it costs no call; the next record overwrites it.
        let mark = RecordHeader::mark(header.after()).encode(self.queue_id);
        let parts = [&header.encode(self.queue_id)[..], &self.boundaries, &block.bytes, &mark];
        if let Err(error) = self.disk.write_at(&file, last.size, &parts) {
            wipe(&self.disk, &file, last.size, header, self.queue_id);
            return Err(error);
        }
        last.size += header.disk_bytes();
        self.end = header.after();
        self.commit.appended(last.sequence, &file, now.mono_ns);
        Ok(())
    }

    fn begin_segment(&mut self, now: Now) -> Result<D::File, DiskError> {
        let (sequence, file) = self.create_segment()?;
        let made_wall_ns = now.wall_ns;
        let header = SegmentHeader { queue_id: self.queue_id, sequence, before: self.end, made_wall_ns };
        if let Err(error) = self.disk.write_at(&file, 0, &[&header.encode()]) {
            self.counts.remove_errors += u64::from(self.disk.remove(&segment_name(sequence)).is_err());
            return Err(error);
        }
        let start = SEGMENT_HEADER_BYTES as u64;
        self.segments.push_back(Segment {
            sequence,
            before: self.end,
            start,
            counted_from: start,
            size: start,
            unreadable: false,
            kept_whole: false,
            missing: false,
        });
        self.commit.begun(sequence, &file);
        self.reserved = 0;
        self.writer = Some(file.clone());
        Ok(file)
    }

    fn create_segment(&mut self) -> Result<(u64, D::File), DiskError> {
        let mut created = Err(DiskError::Exists);
        for _ in 0..NAMES_MAX {
            let sequence = self.next_sequence;
            created = self.disk.create(&segment_name(sequence)).map(|file| (sequence, file));
            if !matches!(created, Ok(_) | Err(DiskError::Exists)) {
                break;
            }
            self.next_sequence += 1;
            if created.is_ok() {
                break;
            }
        }
        created
    }

    /// Handles a block that the disk did not accept: `when_full` applies to a full disk only.
    pub(super) fn not_written(&mut self, block: Block, error: DiskError, now: Now) -> Appended {
        let when_full = if error == DiskError::Full { self.plan.limits.when_full } else { WhenFull::Block };
        match when_full {
            WhenFull::Block => return Appended::Full(block),
            WhenFull::DropOldest | WhenFull::BlockWhileUp | WhenFull::Wait => self.make_room(now),
            WhenFull::DropNewest => {}
        }
        self.drop_block(block, Dropped::QueueFull);
        Appended::Dropped
    }

    /// Drops the oldest segment, once until the cursor that frees its file is synced.
    fn make_room(&mut self, now: Now) {
        if self.making_room {
            return;
        }
        let upto = self.segments.get(1).map_or(self.end, |next| next.before);
        while self.settlement.settled().records < upto.records
            && self.oldest().is_some_and(|header| header.before.records < upto.records)
        {
            self.drop_front(Dropped::QueueFull);
        }
        if self.segments.len() == 1 {
            // The open segment cannot be removed.
            self.writer = None;
        }
        self.making_room = self.cursor_is_behind();
        self.cursor.since_ns = Some(now.mono_ns);
    }

    /// The cursor to write.
    pub(super) fn noted(&self) -> CursorState {
        let written = self.end;
        #[cfg(any(test, feature = "canary"))]
        if self.canary == Some(Canary::CursorPastUnsettled) {
            return CursorState { settled: self.read, place: self.place, written };
        }
        CursorState { settled: self.settlement.settled(), place: self.settlement.place(), written }
    }

    pub(super) fn cursor_is_behind(&self) -> bool {
        // A queue that never had a record needs no cursor.
        self.end.records > 0 && self.cursor.is_behind(self.noted())
    }

    pub(super) fn begin(&mut self, with_cursor: bool) -> Option<SyncJob<D::File>> {
        self.take_notes();
        if self.commit.is_running() {
            return None;
        }
        let mut cursor = None;
        if self.cursor_is_behind() {
            // Even without a sync it survives this process, which is worth the write.
            match self.cursor.write(&self.disk, self.noted()) {
                Ok(()) if with_cursor => cursor = self.cursor.begin(),
                Ok(()) => {}
                Err(_) => {
                    self.counts.write_errors += 1;
                    self.cursor.since_ns = None;
                }
            }
        } else {
            self.cursor.since_ns = None;
        }
        let (segments, new_segment) = self.commit.begin();
        let new_cursor = cursor.as_ref().is_some_and(|(_, new)| *new);
        let job =
            SyncJob { segments, directory: new_segment || new_cursor, cursor: cursor.map(|(file, _)| file) };
        if job.segments.is_empty() && job.cursor.is_none() {
            self.commit.cancel();
            return None;
        }
        Some(job)
    }

    /// Removes the segments before the synced cursor. A segment that the disk could not read is quarantined.
    pub(super) fn remove_settled(&mut self, settled: Totals) {
        #[cfg(any(test, feature = "canary"))]
        let settled = if self.canary == Some(Canary::SegmentRemovedTooEarly) { self.read } else { settled };
        while let Some(first) = self.segments.front().copied() {
            let upto = self.segments.get(1).map_or(self.end, |next| next.before);
            let written = self.segments.len() == 1 && self.writer.is_some();
            if written || upto.records > settled.records {
                return;
            }
            // An open file keeps its space on the disk.
            self.reader.take_if(|reader| reader.sequence == first.sequence);
            let removed = if first.unreadable || first.kept_whole {
                let Segment { sequence, size: bytes, .. } = first;
                let quarantined = QuarantinedSegment { sequence, bytes, why: QuarantineReason::Unreadable };
                self.quarantine.keep_segment(&self.disk, quarantined, &mut self.counts)
            } else {
                self.disk.remove(&segment_name(first.sequence))
            };
            if removed.is_err_and(|error| error != DiskError::NotFound && !first.missing) {
                // Retried when the next cursor is synced.
                self.counts.remove_errors += 1;
                return;
            }
            self.kept_open.forget(first.sequence);
            self.segments.pop_front();
        }
    }
}
