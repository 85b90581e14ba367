//! Recovery: opens a directory whatever its content.
//!
//! It reads the headers and end marks of all segments. If an end mark is missing, because a write was cut short, it
//! reads the end of that segment; only if that has no record, either, the headers of all its records. Each header has
//! the totals before it, so the counts of everything between are known, and the cursor has the totals of all written
//! records. 10 GB are 160 segments. Damage inside a segment is found when it is read. A new run always creates a new
//! segment, so no tail has to be trusted or cut.
//!
//! Names may be wrong, since files can be copied and renamed: a segment with a valid header of another number is not
//! read. The end of each segment is compared with the beginning of the next one, so that no segment is removed that
//! has more records (`misplaced`).
//!
//! A read that fails for lack of descriptors, memory or permission, or because the directory is unavailable, is an
//! error, and nothing was changed: the caller waits and opens again. So is an I/O error of the disk, unless
//! [`Unreadable::Skip`] says otherwise.

use std::collections::VecDeque;

use model::{Disk, DiskError};

use super::cursor::{Cursor, read_slots};
use super::format::{
    Place, RECORD_BYTES_MAX, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader, Slot, Totals, segment_name,
    segment_sequence,
};
use super::misplaced;
use super::quarantine::{Quarantine, QuarantineReason, QuarantinedSegment};
use super::scan::{Damage, SegmentReader};
use super::state::{DiskQueueCounts, Segment};

/// Sequence numbers from here on are not ours: counting up from them would overflow.
const SEQUENCE_MAX: u64 = 1 << 62;

/// The same limit for the totals, in each count.
const TOTAL_MAX: u64 = 1 << 62;

/// Bytes at the end of the last segment in which its last records are searched, before all of it is read.
const TAIL_BYTES: u64 = if cfg!(test) { 1000 } else { 1 << 20 };

/// Most bytes of a file that are read as a segment: more than one of a single record has. A file may be larger, or claim to be,
/// since anybody may set the length of a file: what lies behind is not read, and the file is quarantined when its records are
/// settled.
pub(super) const SEGMENT_BYTES_MAX: u64 = if cfg!(test) { 4 << 20 } else { RECORD_BYTES_MAX + (64 << 20) };

/// What opening found, for the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Segments of the queue.
    pub segments: u64,
    /// Segments, of this queue or not, with a damaged header, and segments of other queues.
    pub segments_damaged: u64,
    /// Segments that the disk fails to open. They go to the quarantine.
    pub segments_unreadable: u64,
    /// Files with the name of a segment that are larger than any segment. Their first bytes are read, and then they go to the
    /// quarantine.
    pub segments_oversized: u64,
    /// Segments of the queue that another program copied, renamed or restored, and that are in the wrong place. They
    /// go to the quarantine.
    pub misplaced: Vec<QuarantinedSegment>,
    /// Segments that were completely settled and could be removed.
    pub segments_removed: u64,
    /// There are segments but no cursor for them: all their records will be delivered, perhaps again.
    pub cursor_lost: bool,
    /// The position from the predecessor process does not fit the directory: records that it sent since the cursor
    /// will be sent again.
    pub unsettled_lost: bool,
    /// Queued copies, damaged ones included.
    pub copies_queued: u64,
    /// Their bytes on disk.
    pub queued_bytes: u64,
    /// Queued copies that were written after everything in the directory: the last segment was cut short, removed or
    /// moved.
    pub copies_gone: u64,
}

/// (start, counted from) of a segment with a valid header.
const BEHIND_HEADER: (u64, u64) = (SEGMENT_HEADER_BYTES as u64, SEGMENT_HEADER_BYTES as u64);

/// A structure with larger totals is not ours, even if its checksum matches.
fn can_be(totals: Totals) -> bool {
    let Totals { records, copies, copy_bytes, disk_bytes } = totals;
    records.max(copies).max(copy_bytes).max(disk_bytes) <= TOTAL_MAX
}

/// What opening found.
#[derive(Debug)]
pub(super) struct Found<F> {
    pub(super) queue_id: u64,
    pub(super) segments: VecDeque<Segment>,
    pub(super) end: Totals,
    pub(super) settled: Totals,
    pub(super) place: Place,
    pub(super) next_sequence: u64,
    pub(super) cursor: Cursor<F>,
    pub(super) quarantine: Quarantine,
    pub(super) counts: DiskQueueCounts,
    pub(super) report: Recovery,
}

/// The content of a directory, and what recovery would do with it. Nothing was changed.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) names: Vec<String>,
    /// None when there is no queue.
    pub(super) queue_id: Option<u64>,
    /// Segments of the queue, settled ones included.
    pub(super) segments: VecDeque<Segment>,
    /// Segments without a record.
    begun: Vec<u64>,
    /// Segments that are not read.
    pub(super) unusable: Vec<QuarantinedSegment>,
    /// Segments that the disk fails to open, with their sizes where the directory lists them.
    unreadable: Vec<(u64, Option<u64>)>,
    /// How many of the first segments are completely settled.
    pub(super) settled_segments: usize,
    pub(super) end: Totals,
    pub(super) settled: Totals,
    /// Where reading begins.
    pub(super) place: Place,
    next_sequence: u64,
    /// The valid slot, the cursor file that it is in, and its index there.
    pub(super) cursor: Option<(Slot, usize, usize)>,
    /// Damage in the last segment.
    tail: Vec<Damage>,
    pub(super) report: Recovery,
}

/// A file with the name of a segment. Not kept open: there may be more of them than a process may open files.
struct Candidate {
    sequence: u64,
    /// At most [`SEGMENT_BYTES_MAX`].
    size: u64,
    /// The file is larger.
    is_oversized: bool,
    /// May have the number of another segment.
    header: Option<SegmentHeader>,
}

impl Candidate {
    /// The header, when its number is that of the file name.
    fn own_header(&self) -> Option<&SegmentHeader> {
        self.header.as_ref().filter(|header| header.sequence == self.sequence)
    }

    fn segment(&self, before: Totals, (start, counted_from): (u64, u64)) -> Segment {
        Segment {
            sequence: self.sequence,
            before,
            start,
            counted_from,
            size: self.size,
            unreadable: false,
            kept_whole: self.is_oversized,
            missing: false,
        }
    }

    /// This file as a segment of the queue, if its name is wrong.
    fn misnamed(&self, queue_id: u64) -> Option<Segment> {
        let header = self.header.filter(|header| header.queue_id == queue_id)?;
        let is_misnamed = header.sequence != self.sequence;
        is_misnamed.then(|| self.segment(header.before, BEHIND_HEADER))
    }
}

/// What to do about bytes that the disk fails to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// Return an error: they may be readable later.
    Fail,
    /// Treat them as damaged. Their segments are kept in quarantine.
    Skip,
}

impl Unreadable {
    /// The result of a read, or none when the error is skipped.
    fn unless_skipped<T>(self, read: Result<T, DiskError>) -> Result<Option<T>, DiskError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(DiskError::Short) => Ok(None),
            Err(error) if self == Unreadable::Skip && !error.passes() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a segment, to read its headers; none when it does not exist, or is skipped.
    pub(super) fn open<D: Disk>(
        self,
        disk: &D,
        sequence: u64,
    ) -> Result<Option<SegmentReader<D::File>>, DiskError> {
        let file = match disk.open(&segment_name(sequence)) {
            // Removed since the directory was listed, by the process that owns the queue.
            Err(DiskError::NotFound) => return Ok(None),
            file => self.unless_skipped(file)?,
        };
        Ok(file.map(|file| self.reader(SegmentReader::of_headers(sequence, file))))
    }

    fn reader<F: Clone>(self, mut reader: SegmentReader<F>) -> SegmentReader<F> {
        reader.skips_unreadable(self == Unreadable::Skip);
        reader
    }
}

/// Cleans up the directory: removes settled segments, quarantines unusable ones. Fails when an unreadable segment
/// cannot be quarantined.
pub(super) fn recover<D: Disk>(
    disk: &D,
    (mut survey, mut quarantine): (Survey, Quarantine),
    segment_bytes: u64,
    fresh_id: u64,
) -> Result<Found<D::File>, DiskError> {
    let mut counts = DiskQueueCounts::default();
    for (sequence, size) in &survey.unreadable {
        // The next run must not treat it as settled.
        let bytes = size.unwrap_or(segment_bytes);
        let unusable = QuarantinedSegment { sequence: *sequence, bytes, why: QuarantineReason::Unreadable };
        quarantine.keep_segment(disk, unusable, &mut counts)?;
    }
    for sequence in &survey.begun {
        // A crash while the segment was created.
        let _left = disk.remove(&segment_name(*sequence));
    }
    for unusable in &survey.unusable {
        // One that cannot be renamed keeps its name; no segment of ours gets that name.
        let _left = quarantine.keep_segment(disk, *unusable, &mut counts);
    }
    if !survey.unusable.is_empty() {
        // It can only be reached by name. If renaming fails, the next run may find it as this one did.
        let _named = disk.sync_directory();
    }
    if let Some(last) = survey.segments.back_mut() {
        for damage in &survey.tail {
            let kept = quarantine.keep_range(disk, last.sequence, *damage, &mut counts);
            last.kept_whole |= kept.is_err();
        }
    }
    let queue_id = survey.queue_id.unwrap_or(fresh_id);
    let cursor = Cursor::new(disk, queue_id, survey.cursor);
    for settled in survey.segments.drain(..survey.settled_segments) {
        // A file that cannot be removed is retried by the next run.
        let _left = disk.remove(&segment_name(settled.sequence));
    }
    Ok(Found {
        queue_id,
        segments: survey.segments,
        end: survey.end,
        settled: survey.settled,
        place: survey.place,
        next_sequence: survey.next_sequence,
        cursor,
        quarantine,
        counts,
        report: survey.report,
    })
}

/// Reads what opening needs to know. Fails when the directory cannot be listed, or something in it cannot be read now.
///
/// The names come first and the cursor last: a segment removed meanwhile is settled, and the cursor says so. `live`: a
/// process may be writing, so segments end where they end, whatever the cursor says was written since.
pub(super) fn survey<D: Disk>(disk: &D, unreadable: Unreadable, live: bool) -> Result<Survey, DiskError> {
    let names = disk.list()?;
    let (candidates, not_opened) = candidates(disk, unreadable, &names)?;
    let mut report = report_of(&candidates, &not_opened);
    let sequences = names.iter().filter_map(|name| segment_sequence(name));
    let highest = sequences.filter(|sequence| *sequence < SEQUENCE_MAX).max().unwrap_or(0);

    let (mut slots, was_written) = read_slots(disk, |read| unreadable.unless_skipped(read))?;
    slots.retain(|(slot, ..)| can_be(slot.settled) && can_be(slot.written));
    let elected = queue_id(disk, unreadable, &candidates, &slots)?;
    let Sorted { mut segments, begun, mut unusable } = sorted(disk, unreadable, &candidates, elected)?;
    let headless = segments.iter().filter(|segment| segment.start == 0).count();
    let foreign = unusable.iter().filter(|unusable| unusable.why == QuarantineReason::Foreign).count();
    report.segments_damaged = (headless + foreign) as u64;
    let id = elected.unwrap_or_default();
    let last = segments.back().map(|last| end_of(disk, unreadable, id, last));
    let (mut end, mut tail) = last.transpose()?.unwrap_or_default();

    let of_queue = || slots.iter().filter(|(slot, ..)| Some(slot.queue_id) == elected);
    let cursor = of_queue().max_by_key(|(slot, ..)| slot.write).copied();
    let first = segments.front().map_or(end, |segment| segment.before);
    // Before the first settled record there was no cursor.
    let was_there = first.records > 0 || was_written;
    report.cursor_lost = cursor.is_none() && !segments.is_empty() && was_there;
    let settled = cursor.map_or(first, |(slot, ..)| slot.settled);
    // After a loss of power the cursor may be ahead of the segments, and a removed segment may be back with records
    // that were lost and whose numbers were used again: the cursor is valid, and totals never decrease.
    end = if settled.records >= end.records { settled } else { end.at_least(settled) };
    let written = cursor.map(|(slot, ..)| slot.written);
    if let Some(written) = written.filter(|written| !live && counts_more(*written, end)) {
        report.copies_gone = written.since(end).copies;
        if written.records > end.records {
            // Its damage is found when it is read.
            tail.clear();
        }
        end = end.at_least(written);
    }
    let misnamed: Vec<Segment> = candidates.iter().filter_map(|candidate| candidate.misnamed(id)).collect();
    let elsewhere = misplaced::end_of_all(disk, unreadable, id, &misnamed)?;
    if !live && elsewhere.records > end.records {
        report.copies_gone += elsewhere.since(end).copies;
        end = end.at_least(elsewhere);
        tail.clear();
    }
    let mut settled_segments = settled_segments(&segments, end, settled);
    let ends = misplaced::own_ends(disk, unreadable, id, &mut segments)?;
    unusable.extend(misplaced::remove_displaced(&mut segments, &ends, &mut settled_segments, settled));
    report.segments = segments.len() as u64;
    report.segments_removed = settled_segments as u64;
    let is_misplaced = |unusable: &&QuarantinedSegment| unusable.why != QuarantineReason::Foreign;
    report.misplaced = unusable.iter().filter(is_misplaced).copied().collect();
    let (first, noted) = (segments.get(settled_segments), cursor.map(|(slot, ..)| slot.place));
    // Of a segment with a damaged header, only the name says that the cursor refers to it.
    let is_meant = match first {
        Some(first) if first.start == 0 => {
            misplaced::begins_at(disk, unreadable, id, (first, noted), settled)?
        }
        Some(_) | None => true,
    };
    let place = place(first, noted.filter(|_| is_meant));
    // If a number were used twice, an older slot of the cursor could refer to another segment's bytes when a newer
    // slot is damaged.
    let passed = of_queue().map(|(slot, ..)| slot.place.sequence.min(SEQUENCE_MAX)).max().unwrap_or(0);
    Ok(Survey {
        names,
        queue_id: elected,
        place,
        segments,
        begun,
        unusable,
        unreadable: not_opened,
        settled_segments,
        end,
        settled,
        next_sequence: highest.max(passed) + 1,
        cursor,
        tail,
        report,
    })
}

/// What the files themselves show.
fn report_of(candidates: &[Candidate], not_opened: &[NotOpened]) -> Recovery {
    Recovery {
        segments_unreadable: not_opened.len() as u64,
        segments_oversized: candidates.iter().filter(|candidate| candidate.is_oversized).count() as u64,
        ..Recovery::default()
    }
}

/// Files with the name of a segment, by kind.
#[derive(Default)]
struct Sorted {
    segments: VecDeque<Segment>,
    begun: Vec<u64>,
    unusable: Vec<QuarantinedSegment>,
}

fn sorted<D: Disk>(
    disk: &D,
    unreadable: Unreadable,
    candidates: &[Candidate],
    elected: Option<u64>,
) -> Result<Sorted, DiskError> {
    let mut sorted = Sorted::default();
    for (at, candidate) in candidates.iter().enumerate() {
        let before = sorted.segments.back().map_or(Totals::default(), |last: &Segment| last.before);
        let adopt = |queue_id| adopt(disk, unreadable, (candidate, &candidates[at + 1..]), queue_id, before);
        match elected.map_or(Ok(Err(QuarantineReason::Foreign)), adopt)? {
            Ok(segment) => sorted.segments.push_back(segment),
            Err(QuarantineReason::Foreign) if candidate.size <= SEGMENT_HEADER_BYTES as u64 => {
                sorted.begun.push(candidate.sequence);
            }
            Err(why) => {
                sorted.unusable.push(QuarantinedSegment {
                    sequence: candidate.sequence,
                    bytes: candidate.size,
                    why,
                });
            }
        }
    }
    Ok(sorted)
}

/// Where reading begins: at the cursor, if its segment exists. Without segments, the cursor keeps its value: from it
/// the next runs know which sequence numbers were used.
fn place(first: Option<&Segment>, cursor: Option<Place>) -> Place {
    let Some(first) = first else {
        return cursor.filter(|place| place.sequence <= SEQUENCE_MAX).unwrap_or_default();
    };
    let there = |place: &Place| {
        first.sequence == place.sequence && (first.start..=first.size).contains(&place.offset)
    };
    cursor.filter(there).unwrap_or(first.place())
}

/// (Sequence number, size) of a file that the disk fails to open; none when its size is not known either.
type NotOpened = (u64, Option<u64>);

/// Files with the name of a segment, and those that the disk fails to open.
fn candidates<D: Disk>(
    disk: &D,
    unreadable: Unreadable,
    names: &[String],
) -> Result<(Vec<Candidate>, Vec<NotOpened>), DiskError> {
    let mut sequences: Vec<u64> = names
        .iter()
        .filter_map(|name| segment_sequence(name))
        .filter(|sequence| *sequence < SEQUENCE_MAX)
        .collect();
    sequences.sort_unstable();
    let (mut candidates, mut not_opened) = (Vec::new(), Vec::new());
    for sequence in sequences {
        let opened = disk.open(&segment_name(sequence)).and_then(|file| Ok((disk.size(&file)?, file)));
        // Removed since the directory was listed, by the process that owns the queue.
        if matches!(opened, Err(DiskError::NotFound)) {
            continue;
        }
        let Some((size, file)) = unreadable.unless_skipped(opened)? else {
            not_opened.push((sequence, disk.size_of(&segment_name(sequence)).ok()));
            continue;
        };
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let read = disk.read_at(&file, 0, &mut bytes).or_else(|_| disk.read_at(&file, 0, &mut bytes));
        let header = unreadable.unless_skipped(read)?.and_then(|()| SegmentHeader::decode(&bytes));
        let header = header.filter(|header| header.sequence < SEQUENCE_MAX && can_be(header.before));
        let is_oversized = size > SEGMENT_BYTES_MAX;
        candidates.push(Candidate { sequence, size: size.min(SEGMENT_BYTES_MAX), is_oversized, header });
    }
    Ok((candidates, not_opened))
}

/// The id that most headers and the cursor agree on; without any, that of the first record.
fn queue_id<D: Disk>(
    disk: &D,
    unreadable: Unreadable,
    candidates: &[Candidate],
    slots: &[(Slot, usize, usize)],
) -> Result<Option<u64>, DiskError> {
    let last_slot = slots.iter().max_by_key(|(slot, ..)| slot.write).map(|(slot, ..)| slot.queue_id);
    let own = candidates.iter().filter_map(|candidate| candidate.own_header().map(|header| header.queue_id));
    let mut ids: Vec<u64> = last_slot.into_iter().chain(own).collect();
    if ids.is_empty() {
        // Headers with another number than their name count less.
        ids.extend(candidates.iter().filter_map(|candidate| Some(candidate.header?.queue_id)));
    }
    let mut votes: Vec<(u64, usize)> = Vec::new();
    for id in ids {
        match votes.iter_mut().find(|vote| vote.0 == id) {
            Some(vote) => vote.1 += 1,
            None => votes.push((id, 1)),
        }
    }
    // Of equals the first one: the cursor's, then the oldest.
    let most = votes.iter().map(|vote| vote.1).max();
    let elected = votes.iter().find(|vote| Some(vote.1) == most).map(|vote| vote.0);
    if elected.is_some() {
        return Ok(elected);
    }
    for candidate in candidates {
        let file = disk.open(&segment_name(candidate.sequence));
        let Some(file) = unreadable.unless_skipped(file)? else { continue };
        let mut reader = unreadable.reader(SegmentReader::new(candidate.sequence, file));
        let found = reader.queue_id(disk, candidate.size)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The segment, if it belongs to the queue and fits between the segments before and `behind`; otherwise the reason.
fn adopt<D: Disk>(
    disk: &D,
    unreadable: Unreadable,
    (candidate, behind): (&Candidate, &[Candidate]),
    queue_id: u64,
    previous: Totals,
) -> Result<Result<Segment, QuarantineReason>, DiskError> {
    let Candidate { sequence, size, .. } = *candidate;
    let segment = match candidate.header {
        Some(header) if header.queue_id != queue_id => return Ok(Err(QuarantineReason::Foreign)),
        Some(header) if header.sequence != sequence => {
            return Ok(Err(QuarantineReason::Misnamed(header.sequence)));
        }
        Some(header) => candidate.segment(header.before, BEHIND_HEADER),
        None => {
            let file = disk.open(&segment_name(sequence));
            let Some(file) = unreadable.unless_skipped(file)? else {
                return Ok(Err(QuarantineReason::Foreign));
            };
            let mut reader = unreadable.reader(SegmentReader::new(sequence, file));
            let fits = |header: &RecordHeader| header.before.covers(previous) && can_be(header.after());
            let next = reader.next(disk, queue_id, (0, size), fits, &mut Vec::new())?;
            let Some((header, offset)) = next else { return Ok(Err(QuarantineReason::Foreign)) };
            candidate.segment(header.before, (0, offset))
        }
    };
    // With a damaged header only the name says where the segment belongs: a segment with a valid header comes first.
    let own = behind.iter().filter_map(Candidate::own_header).filter(|header| header.queue_id == queue_id);
    let next = own.map(|header| header.before).find(|before| before.covers(previous));
    let follows = segment.before.covers(previous);
    let precedes = candidate.header.is_some() || next.is_none_or(|next| next.covers(segment.before));
    Ok(if follows && precedes { Ok(segment) } else { Err(QuarantineReason::Displaced) })
}

/// The totals at the end of a segment, cut-off records included, and its damage.
pub(super) fn end_of<D: Disk>(
    disk: &D,
    unreadable: Unreadable,
    queue_id: u64,
    last: &Segment,
) -> Result<(Totals, Vec<Damage>), DiskError> {
    let mut damage = Vec::new();
    let Some(mut reader) = unreadable.open(disk, last.sequence)? else { return Ok((last.before, damage)) };
    let belongs = |(header, at): &(RecordHeader, u64)| {
        let before = header.before;
        before.covers(last.before)
            && can_be(before)
            && before.since(last.before).disk_bytes == at.saturating_sub(last.counted_from)
    };
    if let Some((mark, _)) = reader.last_mark(disk, queue_id, last.size)?.filter(belongs) {
        // No process was killed during a write: the end mark has all that the headers would say.
        return Ok((mark.before, damage));
    }
    // The last records are enough, if they are in their place with nothing but records before them.
    let from = last.start.max(last.size.saturating_sub(TAIL_BYTES));
    let near_end = reader.next(disk, queue_id, (from, last.size), |_| true, &mut damage)?.filter(belongs);
    let (mut end, mut at) = near_end.map_or((last.before, last.start), |(header, at)| (header.before, at));
    loop {
        let passed = end;
        let fits = |header: &RecordHeader| {
            let after = header.after();
            let fits = header.before.covers(end) && after.covers(header.before) && can_be(after);
            if fits {
                // A record that was cut off counts as well: its header has its copies.
                end = after;
            }
            fits
        };
        damage.clear();
        let next = reader.next(disk, queue_id, (at, last.size), fits, &mut damage)?;
        match next {
            Some((header, offset)) => at = offset + header.disk_bytes(),
            None => {
                // Damage that cost a record is found again when it is read.
                damage.retain(|_| end == passed);
                return Ok((end, damage));
            }
        }
    }
}

/// Whether the cursor counts more than the segments have. With as many records it may count more copies: an earlier
/// attempt at the last number was restored, and the segment of its record is gone.
fn counts_more(written: Totals, end: Totals) -> bool {
    written.records >= end.records && !end.covers(written)
}

/// How many of the first segments have no queued records.
fn settled_segments(segments: &VecDeque<Segment>, end: Totals, settled: Totals) -> usize {
    let ends = segments.iter().skip(1).map(|next| next.before).chain([end]);
    ends.take_while(|upto| upto.records <= settled.records).count().min(segments.len())
}
