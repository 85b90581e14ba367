//! Reads a queue's directory without changing it: segments, records and damaged ranges.
//!
//! Path of a packet: none. For `staunch queue`, on the directory of a stopped or a running daemon.
//! Not here: the quarantine (`salvage`), taking records out (`DiskQueue`, which counts them).
//! Invariant: the queued and lost records that a walk finds are those that [`super::DiskQueue`] would deliver and
//! count as damaged. It never writes.

use model::{Disk, DiskError};

use super::format::{Place, RecordHeader, Totals, segment_name};
use super::quarantine::QuarantinedSegment;
use super::recovery::{Recovery, Survey, Unreadable, survey};
use super::scan::{Damage, DamageKind, SegmentReader};
use super::state::Segment;
use crate::block::Block;

/// Content of the directory of one queue.
#[derive(Debug)]
pub struct Inspection {
    survey: Survey,
    live: bool,
}

/// Which records a walk visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// All records in the segments, settled ones included.
    First,
    /// Queued records only.
    Cursor,
}

/// Up to where records are settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorPlace {
    /// Segment of the first queued record.
    pub segment: u64,
    /// Its offset there.
    pub offset: u64,
    /// Totals of the settled records.
    pub settled: Totals,
}

/// A record that is not damaged.
#[derive(Debug)]
pub struct FoundRecord<'a> {
    /// Its segment.
    pub segment: u64,
    /// Its offset there.
    pub offset: u64,
    /// Number of the record since the queue was created.
    pub number: u64,
    /// When it was created, Unix nanoseconds.
    pub made_wall_ns: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Queued, not settled yet.
    pub waits: bool,
    /// Its block, with time 0.
    pub block: &'a Block,
}

/// A damaged range of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedRange {
    /// The segment.
    pub segment: u64,
    /// Its first byte.
    pub from: u64,
    /// The byte after its last one.
    pub to: u64,
    /// Kind of the damage.
    pub kind: DamageKind,
}

/// Damage between two readable records. Without ranges: segments are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// The damaged ranges, in order.
    pub ranges: Vec<DamagedRange>,
    /// Queued records lost in it: the next run will count them as dropped (`damaged`).
    pub lost: Totals,
}

/// What a walk visits.
#[derive(Debug)]
pub enum Step<'a> {
    /// A record.
    Record(FoundRecord<'a>),
    /// Damage.
    Damage(&'a Stretch),
    /// The rest of the last segment, from this byte on, is being written by another process.
    BeingWritten(u64),
    /// The rest of a segment cannot be read now, for a reason that may pass: its records are neither found nor damaged.
    NotRead {
        /// The segment.
        segment: u64,
        /// The error.
        error: DiskError,
    },
}

/// Called for each step; its error ends the walk.
type Visit<'a, E> = dyn FnMut(Step<'_>) -> Result<(), E> + 'a;

impl Inspection {
    /// Reads the directory: headers of all segments, and of the records in the last one. `live`: a process may be
    /// writing there. Fails when the directory cannot be listed, or something in it cannot be read now for a reason
    /// that may pass.
    pub fn of<D: Disk>(disk: &D, live: bool) -> Result<Inspection, DiskError> {
        let mut found = survey(disk, Unreadable::Skip, live)?;
        if live && found.report.cursor_lost {
            // Its first write may have come between the two reads.
            found = survey(disk, Unreadable::Skip, live)?;
        }
        Ok(Inspection { survey: found, live })
    }

    /// Id of the queue; none when the directory has no queue.
    pub(super) fn queue_id(&self) -> Option<u64> {
        self.survey.queue_id
    }

    /// Names of all files.
    pub(super) fn names(&self) -> &[String] {
        &self.survey.names
    }

    /// What opening the queue would find.
    pub fn recovery(&self) -> Recovery {
        let waiting = self.waiting();
        let (copies_queued, queued_bytes) = (waiting.copies, waiting.disk_bytes);
        Recovery { copies_queued, queued_bytes, ..self.survey.report.clone() }
    }

    /// (sequence number, bytes) of the queue's segments, in order.
    pub fn segments(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.survey.segments.iter().map(|segment| (segment.sequence, segment.size))
    }

    /// Segments that are not read, and that go to the quarantine when the queue is opened.
    pub fn unusable_segments(&self) -> &[QuarantinedSegment] {
        &self.survey.unusable
    }

    /// Totals of the queued records, damaged or not.
    pub fn waiting(&self) -> Totals {
        self.survey.end.since(self.survey.settled)
    }

    /// Up to where records are settled. None when no cursor can be read.
    pub fn cursor(&self) -> Option<CursorPlace> {
        let (slot, ..) = self.survey.cursor?;
        Some(CursorPlace { segment: slot.place.sequence, offset: slot.place.offset, settled: slot.settled })
    }

    /// When the oldest queued record was created, Unix nanoseconds. None when none can be read.
    pub fn oldest_wall_ns<D: Disk>(&self, disk: &D) -> Option<u64> {
        let read = self.survey.settled;
        for (segment, from, end) in self.waiting_segments() {
            let file = match disk.open(&segment_name(segment.sequence)) {
                Ok(file) => file,
                Err(error) if error.passes() => return None,
                Err(_) => continue,
            };
            let mut reader = SegmentReader::of_headers(segment.sequence, file);
            let fits = |header: &RecordHeader| header.before.covers(read) && end.covers(header.after());
            reader.skips_unreadable(true);
            let next = reader.next(disk, self.id(), (from, segment.size), fits, &mut Vec::new());
            if let Some((header, _)) = next.ok()? {
                return Some(header.made_wall_ns);
            }
        }
        None
    }

    /// Reads the queue from the beginning, or from the cursor, to its end.
    pub fn walk<D: Disk, E>(&self, disk: &D, begin: Begin, visit: &mut Visit<'_, E>) -> Result<(), E> {
        if begin == Begin::First {
            self.walk_settled(disk, visit)?;
        }
        let mut walk =
            Walk { inspection: self, disk, waits: true, read: self.survey.settled, open: Stretch::default() };
        for (segment, from, end) in self.waiting_segments() {
            walk.segment(segment, (from, segment.size), end, visit)?;
        }
        walk.finish(self.survey.end, visit)
    }

    /// Settled records that were not removed yet. Damage among them costs nothing.
    fn walk_settled<D: Disk, E>(&self, disk: &D, visit: &mut Visit<'_, E>) -> Result<(), E> {
        let Survey { segments, place, settled_segments, .. } = &self.survey;
        for (at, segment) in segments.iter().enumerate().take(settled_segments + 1) {
            let to = match at < *settled_segments {
                true => segment.size,
                false if segment.sequence == place.sequence => place.offset,
                false => return Ok(()),
            };
            let end = segments.get(at + 1).map_or(self.survey.end, |next| next.before);
            let open = Stretch::default();
            let mut walk = Walk { inspection: self, disk, waits: false, read: segment.before, open };
            walk.segment(segment, (segment.start, to), end, visit)?;
            walk.finish(walk.read, visit)?;
        }
        Ok(())
    }

    /// Segments with queued records, where these begin, and the totals up to the segment's end.
    fn waiting_segments(&self) -> impl Iterator<Item = (&Segment, u64, Totals)> + '_ {
        let Survey { segments, place, end, settled_segments, .. } = &self.survey;
        segments.iter().enumerate().skip(*settled_segments).map(move |(at, segment)| {
            let from = if segment.sequence == place.sequence { place.offset } else { segment.start };
            (segment, from, segments.get(at + 1).map_or(*end, |next| next.before))
        })
    }

    /// Without an id there are no segments to read.
    fn id(&self) -> u64 {
        self.survey.queue_id.unwrap_or_default()
    }

    /// True where another process may be writing.
    fn is_written(&self, sequence: u64) -> bool {
        self.live && self.survey.segments.back().is_some_and(|last| last.sequence == sequence)
    }
}

/// A walk in progress. It counts as [`super::DiskQueue`] does when it reads: the totals in the header of the next
/// readable record say how much lies before it.
struct Walk<'a, D> {
    inspection: &'a Inspection,
    disk: &'a D,
    waits: bool,
    /// Totals of everything visited.
    read: Totals,
    /// Damage whose losses are not known yet.
    open: Stretch,
}

impl<D: Disk> Walk<'_, D> {
    fn segment<E>(
        &mut self,
        segment: &Segment,
        (mut at, to): (u64, u64),
        end: Totals,
        visit: &mut Visit<'_, E>,
    ) -> Result<(), E> {
        let file = match self.disk.open(&segment_name(segment.sequence)) {
            Ok(file) => file,
            Err(DiskError::NotFound) if self.inspection.live => {
                // Settled and removed since: none of its records are queued.
                if end.records > self.read.records {
                    self.read = end;
                }
                return Ok(());
            }
            Err(error) if error.passes() => return self.not_read(segment, (error, end), visit),
            Err(_) => {
                self.note(segment, &[Damage { from: at, to, kind: DamageKind::Unreadable }]);
                return Ok(());
            }
        };
        let mut reader = SegmentReader::new(segment.sequence, file);
        reader.skips_unreadable(true);
        loop {
            let mut damage = Vec::new();
            let read = self.read;
            let fits = |header: &RecordHeader| header.before.covers(read) && end.covers(header.after());
            let next = reader.next(self.disk, self.inspection.id(), (at, to), fits, &mut damage);
            let next = match next {
                Ok(next) => next,
                Err(error) => return self.not_read(segment, (error, end), visit),
            };
            self.note(segment, &damage);
            let Some((header, offset)) = next else { return Ok(()) };
            at = offset + header.disk_bytes();
            let body = reader.body(self.disk, &header, offset, to);
            let place = Place { sequence: segment.sequence, offset };
            match body.map(|body| header.block(self.inspection.id(), body, 0)) {
                Ok(Some(block)) => self.record(place, &header, &block, visit)?,
                Ok(None) => self.bad_body(segment, (&header, offset), DamageKind::Body, visit)?,
                Err(error) if error.passes() => return self.not_read(segment, (error, end), visit),
                Err(_) => self.bad_body(segment, (&header, offset), DamageKind::Unreadable, visit)?,
            }
        }
    }

    /// The rest of the segment is unknown; damage before it is not counted, either.
    fn not_read<E>(
        &mut self,
        segment: &Segment,
        (error, end): (DiskError, Totals),
        visit: &mut Visit<'_, E>,
    ) -> Result<(), E> {
        self.open = Stretch::default();
        if end.records > self.read.records {
            self.read = end;
        }
        visit(Step::NotRead { segment: segment.sequence, error })
    }

    fn record<E>(
        &mut self,
        place: Place,
        header: &RecordHeader,
        block: &Block,
        visit: &mut Visit<'_, E>,
    ) -> Result<(), E> {
        self.close(header.before, visit)?;
        self.read = header.after();
        visit(Step::Record(FoundRecord {
            segment: place.sequence,
            offset: place.offset,
            number: header.before.records,
            made_wall_ns: header.made_wall_ns,
            disk_bytes: header.disk_bytes(),
            waits: self.waits,
            block,
        }))
    }

    /// A valid header with a damaged body.
    fn bad_body<E>(
        &mut self,
        segment: &Segment,
        (header, from): (&RecordHeader, u64),
        kind: DamageKind,
        visit: &mut Visit<'_, E>,
    ) -> Result<(), E> {
        let damage = Damage { from, to: from + header.disk_bytes(), kind };
        if self.inspection.is_written(segment.sequence) {
            // It is not known yet whether a record follows.
            self.note(segment, &[damage]);
            return Ok(());
        }
        self.close(header.before, visit)?;
        self.note(segment, &[damage]);
        self.close(header.after(), visit)
    }

    /// Notes damage. Neighbours of one kind are merged; an unreadable range makes the bytes around it unreadable.
    fn note(&mut self, segment: &Segment, damage: &[Damage]) {
        let unreadable = damage.iter().any(|damage| damage.kind == DamageKind::Unreadable);
        for Damage { from, to, kind } in damage {
            let kind = match kind {
                DamageKind::NotARecord if unreadable => DamageKind::Unreadable,
                kind => *kind,
            };
            let range = DamagedRange { segment: segment.sequence, from: *from, to: *to, kind };
            match self.open.ranges.last_mut() {
                Some(last) if last.segment == range.segment && last.kind == kind && last.to >= range.from => {
                    (last.from, last.to) = (last.from.min(range.from), last.to.max(range.to));
                }
                _ => self.open.ranges.push(range),
            }
        }
    }

    /// Everything up to `upto` was visited: the damage before it, if any, is complete.
    fn close<E>(&mut self, upto: Totals, visit: &mut Visit<'_, E>) -> Result<(), E> {
        let lost = upto.since(self.read);
        self.read = upto;
        if self.waits {
            self.open.lost = lost;
        }
        let stretch = std::mem::take(&mut self.open);
        if stretch == Stretch::default() {
            return Ok(());
        }
        visit(Step::Damage(&stretch))
    }

    fn finish<E>(&mut self, mut end: Totals, visit: &mut Visit<'_, E>) -> Result<(), E> {
        let last =
            self.inspection.survey.segments.back().filter(|last| self.inspection.is_written(last.sequence));
        let from = last.and_then(|last| {
            let first = self.open.ranges.iter().position(|range| range.segment == last.sequence)?;
            Some(self.open.ranges.drain(first..).map(|range| range.from).min().unwrap_or(last.size))
        });
        if let Some(last) = last {
            // The record of its last header is still being written.
            end = if last.before.records > self.read.records { last.before } else { self.read };
        }
        self.close(end, visit)?;
        from.map_or(Ok(()), |from| visit(Step::BeingWritten(from)))
    }
}
