//! Opening whatever is in the directory.
//!
//! Headers of all segments and the mark that ends the last one are read; where there is none, because a write was cut
//! short, the end of that segment; only where that has no record, either, the headers of all its records. Each header says what came before it, so that the counts of
//! everything between are known, and the cursor says what was there in all. 10 GB are 160 segments. Damage inside a
//! segment is found by whoever reads there. A new run always begins a new segment, so no tail has to be trusted or cut.
//!
//! What cannot be read for want of descriptors, memory, permission or the folder is an error, and nothing was changed: the
//! caller waits and opens again. So is what the disk fails to read, unless [`Unreadable::PassedOver`] says otherwise.

use std::collections::VecDeque;

use model::{Disk, DiskError};

use super::cursor::{Cursor, read_slots};
use super::format::{
    Place, RecordHeader, SEGMENT_HEADER_BYTES, SegmentHeader, Slot, Totals, segment_name, segment_sequence,
};
use super::quarantine::Quarantine;
use super::scan::{Damage, DamageKind, SegmentReader};
use super::{DiskQueueCounts, Recovery, Segment};

/// Sequence numbers from here on are none of ours: counting up from them would overflow.
const SEQUENCE_MAX: u64 = 1 << 62;

/// The same for all that a queue has held, in each count.
const TOTAL_MAX: u64 = 1 << 62;

/// Bytes at the end of the last segment in which its last records are looked for, before all of it is read.
const TAIL_BYTES: u64 = if cfg!(test) { 1000 } else { 1 << 20 };

/// Whatever its checksum says, a structure with more is none of ours.
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

/// What is in a directory, and what recovery would make of it. Nothing was changed to learn it.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) names: Vec<String>,
    /// None when there is nothing of any queue.
    pub(super) queue_id: Option<u64>,
    /// Those of the queue, settled ones included.
    pub(super) segments: VecDeque<Segment>,
    /// Segments that were begun and have no record.
    begun: Vec<u64>,
    /// (sequence number, size) of segments that are not the queue's.
    pub(super) foreign: Vec<(u64, u64)>,
    /// Segments that the disk does not open, with their sizes where the folder lists them.
    unreadable: Vec<(u64, Option<u64>)>,
    /// How many of the first segments are settled whole.
    pub(super) settled_segments: usize,
    pub(super) end: Totals,
    pub(super) settled: Totals,
    /// Where reading begins.
    pub(super) place: Place,
    next_sequence: u64,
    /// The slot that holds, the cursor file that it is in, and its place there.
    pub(super) cursor: Option<(Slot, usize, usize)>,
    /// Damage in the last segment.
    tail: Vec<Damage>,
    pub(super) report: Recovery,
}

/// A file that has the name of a segment. Not kept open: there may be more of them than a process may open files.
struct Candidate {
    sequence: u64,
    size: u64,
    header: Option<SegmentHeader>,
}

/// What is to be done about bytes that the disk fails to read, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is an error: they may be readable in a moment.
    Fails,
    /// They are damaged. Segments that they are in are kept in quarantine.
    PassedOver,
}

impl Unreadable {
    /// What was read, or none when it is passed over.
    fn unless_passed<T>(self, read: Result<T, DiskError>) -> Result<Option<T>, DiskError> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(DiskError::Short) => Ok(None),
            Err(error) if self == Unreadable::PassedOver && !error.passes() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn reader<F: Clone>(self, mut reader: SegmentReader<F>) -> SegmentReader<F> {
        reader.passes_over(self == Unreadable::PassedOver);
        reader
    }
}

/// Puts in order what was found: removes what is settled, keeps aside what cannot be used. Fails when something that the
/// disk fails to read cannot be kept aside.
pub(super) fn recover<D: Disk>(
    disk: &D,
    (mut survey, mut quarantine): (Survey, Quarantine),
    segment_bytes: u64,
    fresh_id: u64,
) -> Result<Found<D::File>, DiskError> {
    let mut counts = DiskQueueCounts::default();
    for (sequence, size) in &survey.unreadable {
        // The next run must not take it for settled.
        let size = size.unwrap_or(segment_bytes);
        quarantine.keep_segment(disk, *sequence, size, DamageKind::Unreadable, &mut counts)?;
    }
    for sequence in &survey.begun {
        // A crash at the start of a segment.
        let _left = disk.remove(&segment_name(*sequence));
    }
    for (sequence, size) in &survey.foreign {
        let _left = quarantine.keep_segment(disk, *sequence, *size, DamageKind::Foreign, &mut counts);
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
        // What cannot be removed is tried again by the next run.
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
/// The names come first and the cursor last: what a process removes meanwhile is settled, and the cursor says so.
/// With `live` a process may be writing: segments then end where they do, whatever the cursor says was written since.
pub(super) fn survey<D: Disk>(disk: &D, unreadable: Unreadable, live: bool) -> Result<Survey, DiskError> {
    let names = disk.list()?;
    let mut report = Recovery::default();
    let (candidates, not_opened) = candidates(disk, unreadable, &names)?;
    report.segments_unreadable = not_opened.len() as u64;
    let sequences = names.iter().filter_map(|name| segment_sequence(name));
    let highest = sequences.filter(|sequence| *sequence < SEQUENCE_MAX).max().unwrap_or(0);

    let (mut slots, was_written) = read_slots(disk, |read| unreadable.unless_passed(read))?;
    slots.retain(|(slot, ..)| can_be(slot.settled) && can_be(slot.written));
    let elected = queue_id(disk, unreadable, &candidates, &slots)?;
    let (mut segments, mut begun, mut foreign) = (VecDeque::new(), Vec::new(), Vec::new());
    for candidate in candidates {
        let before = segments.back().map_or(Totals::default(), |last: &Segment| last.before);
        let adopt = |queue_id| adopt(disk, unreadable, &candidate, queue_id, before);
        let adopted = elected.map_or(Ok(None), adopt)?;
        match adopted {
            Some(segment) => segments.push_back(segment),
            None if candidate.size <= SEGMENT_HEADER_BYTES as u64 => begun.push(candidate.sequence),
            None => foreign.push((candidate.sequence, candidate.size)),
        }
    }
    report.segments = segments.len() as u64;
    let headless = segments.iter().filter(|segment| segment.start == 0).count();
    report.segments_damaged = (headless + foreign.len()) as u64;
    let (mut end, mut tail) = end_of_last(disk, unreadable, elected.unwrap_or_default(), &segments)?;

    let of_queue = || slots.iter().filter(|(slot, ..)| Some(slot.queue_id) == elected);
    let cursor = of_queue().max_by_key(|(slot, ..)| slot.write).copied();
    let first = segments.front().map_or(end, |segment| segment.before);
    // Where nothing was settled yet there never was one.
    let was_there = first.records > 0 || was_written;
    report.cursor_lost = cursor.is_none() && !segments.is_empty() && was_there;
    let settled = cursor.map_or(first, |(slot, ..)| slot.settled);
    // After a loss of power the cursor may be ahead of the segments, and one that was removed may be back with records
    // that were lost and whose numbers were given again: what the cursor says holds, and counts never go back.
    end = if settled.records >= end.records { settled } else { end.at_least(settled) };
    let written =
        cursor.map(|(slot, ..)| slot.written).filter(|written| !live && written.records > end.records);
    if let Some(written) = written {
        report.copies_gone = written.since(end).copies;
        end = end.at_least(written);
        // What is left of it is found by whoever looks for it.
        tail.clear();
    }
    let settled_segments = settled_segments(&segments, end, settled);
    report.segments_removed = settled_segments as u64;
    // A number that is given twice would have an older slot of the cursor speak of another segment's bytes, should a
    // newer one be damaged.
    let passed = of_queue().map(|(slot, ..)| slot.place.sequence.min(SEQUENCE_MAX)).max().unwrap_or(0);
    Ok(Survey {
        names,
        queue_id: elected,
        place: place(segments.get(settled_segments), cursor.map(|(slot, ..)| slot.place)),
        segments,
        begun,
        foreign,
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

/// Where reading begins: where the cursor says, if that is still there. Where no segment is, the cursor goes on saying
/// what it said: from that the next runs know which sequence numbers were given.
fn place(first: Option<&Segment>, cursor: Option<Place>) -> Place {
    let Some(first) = first else {
        return cursor.filter(|place| place.sequence <= SEQUENCE_MAX).unwrap_or_default();
    };
    let there = |place: &Place| {
        first.sequence == place.sequence && (first.start..=first.size).contains(&place.offset)
    };
    cursor.filter(there).unwrap_or(first.place())
}

/// (Sequence number, size) of a file that the disk does not open; none where it does not tell the size either.
type NotOpened = (u64, Option<u64>);

/// Files that have the name of a segment, and those that the disk does not open.
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
        // Removed since its name was read, by the process that owns the queue.
        if matches!(opened, Err(DiskError::NotFound)) {
            continue;
        }
        let Some((size, file)) = unreadable.unless_passed(opened)? else {
            not_opened.push((sequence, disk.size_of(&segment_name(sequence)).ok()));
            continue;
        };
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let read = disk.read_at(&file, 0, &mut bytes).or_else(|_| disk.read_at(&file, 0, &mut bytes));
        let header = unreadable.unless_passed(read)?.and_then(|()| SegmentHeader::decode(&bytes));
        let header = header.filter(|header| header.sequence == sequence && can_be(header.before));
        candidates.push(Candidate { sequence, size, header });
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
    let headers = candidates.iter().filter_map(|candidate| candidate.header.map(|header| header.queue_id));
    let mut votes: Vec<(u64, usize)> = Vec::new();
    for id in last_slot.into_iter().chain(headers) {
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
        let Some(file) = unreadable.unless_passed(file)? else { continue };
        let mut reader = unreadable.reader(SegmentReader::new(candidate.sequence, file));
        let found = reader.queue_id(disk, candidate.size)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The segment, if it is one of the queue and can follow what came before.
fn adopt<D: Disk>(
    disk: &D,
    unreadable: Unreadable,
    candidate: &Candidate,
    queue_id: u64,
    previous: Totals,
) -> Result<Option<Segment>, DiskError> {
    let Candidate { sequence, size, .. } = *candidate;
    let segment = |before, start| Segment {
        sequence,
        before,
        start,
        size,
        unreadable: false,
        kept_whole: false,
        missing: false,
    };
    let segment = match candidate.header {
        Some(header) if header.queue_id == queue_id => segment(header.before, SEGMENT_HEADER_BYTES as u64),
        Some(_) => return Ok(None),
        None => {
            let file = disk.open(&segment_name(sequence));
            let Some(file) = unreadable.unless_passed(file)? else { return Ok(None) };
            let mut reader = unreadable.reader(SegmentReader::new(sequence, file));
            let fits = |header: &RecordHeader| header.before.covers(previous) && can_be(header.after());
            let next = reader.next(disk, queue_id, (0, size), fits, &mut Vec::new())?;
            let Some((header, _)) = next else { return Ok(None) };
            segment(header.before, 0)
        }
    };
    Ok(Some(segment).filter(|segment| segment.before.covers(previous)))
}

/// Everything that the last segment speaks of, cut off or not, and its damage.
fn end_of_last<D: Disk>(
    disk: &D,
    unreadable: Unreadable,
    queue_id: u64,
    segments: &VecDeque<Segment>,
) -> Result<(Totals, Vec<Damage>), DiskError> {
    let mut damage = Vec::new();
    let Some(last) = segments.back() else { return Ok((Totals::default(), damage)) };
    let file = disk.open(&segment_name(last.sequence));
    let Some(file) = unreadable.unless_passed(file)? else { return Ok((last.before, damage)) };
    let mut reader = unreadable.reader(SegmentReader::of_headers(last.sequence, file));
    let belongs = |(header, at): &(RecordHeader, u64)| {
        let before = header.before;
        before.covers(last.before)
            && can_be(before)
            && before.since(last.before).disk_bytes == at.saturating_sub(last.start)
    };
    if let Some((mark, _)) = reader.last_mark(disk, queue_id, last.size)?.filter(belongs) {
        // Nobody was killed in the middle of a write: it says all that the headers would.
        return Ok((mark.before, damage));
    }
    // The last records are enough, if they are where they should be with nothing but records before them.
    let from = last.start.max(last.size.saturating_sub(TAIL_BYTES));
    let near_end = reader.next(disk, queue_id, (from, last.size), |_| true, &mut damage)?.filter(belongs);
    let (mut end, mut at) = near_end.map_or((last.before, last.start), |(header, at)| (header.before, at));
    loop {
        let passed = end;
        let fits = |header: &RecordHeader| {
            let after = header.after();
            let fits = header.before.covers(end) && after.covers(header.before) && can_be(after);
            if fits {
                // A record that was cut off counts as well: its header says what was in it.
                end = after;
            }
            fits
        };
        damage.clear();
        let next = reader.next(disk, queue_id, (at, last.size), fits, &mut damage)?;
        match next {
            Some((header, offset)) => at = offset + header.disk_bytes(),
            None => {
                // Damage that cost a record is found again by whoever reads there.
                damage.retain(|_| end == passed);
                return Ok((end, damage));
            }
        }
    }
}

/// How many of the first segments hold nothing that waits.
fn settled_segments(segments: &VecDeque<Segment>, end: Totals, settled: Totals) -> usize {
    let ends = segments.iter().skip(1).map(|next| next.before).chain([end]);
    ends.take_while(|upto| upto.records <= settled.records).count().min(segments.len())
}
