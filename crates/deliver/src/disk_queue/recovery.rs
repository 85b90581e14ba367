//! Opening whatever is in the directory.
//!
//! Headers of all segments and the records' headers of the last one are read, nothing else: each header says what came
//! before it, so that the counts of everything between are known. 10 GB are 160 segments. Damage inside a segment is
//! found by whoever reads there. A new run always begins a new segment, so no tail has to be trusted or cut.

use std::collections::VecDeque;

use model::{Disk, DiskError};

use super::cursor::{Cursor, is_cursor, read_slots};
use super::format::{
    Place, SEGMENT_HEADER_BYTES, SegmentHeader, Slot, Totals, segment_name, segment_sequence,
};
use super::quarantine::Quarantine;
use super::scan::{DamageKind, SegmentReader};
use super::{DiskQueueCounts, Recovery, Segment};

/// Sequence numbers from here on are none of ours: counting up from them would overflow.
const SEQUENCE_MAX: u64 = 1 << 62;

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

/// A file that has the name of a segment.
struct Candidate<F> {
    sequence: u64,
    size: u64,
    file: F,
    header: Option<SegmentHeader>,
}

/// Fails only when the directory cannot be listed.
pub(super) fn recover<D: Disk>(
    disk: &D,
    quarantine_bytes_max: u64,
    fresh_id: u64,
) -> Result<Found<D::File>, DiskError> {
    let names = disk.list()?;
    let mut quarantine = Quarantine::new(disk, &names, quarantine_bytes_max);
    let mut counts = DiskQueueCounts::default();
    let mut report = Recovery::default();
    let candidates = candidates(disk, &names, &mut report);
    let sequences = names.iter().filter_map(|name| segment_sequence(name));
    let highest = sequences.filter(|sequence| *sequence < SEQUENCE_MAX).max().unwrap_or(0);

    let slots = read_slots(disk);
    let queue_id = queue_id(disk, &candidates, &slots).unwrap_or(fresh_id);
    let mut segments = VecDeque::new();
    for candidate in candidates {
        let before = segments.back().map_or(Totals::default(), |last: &Segment| last.before);
        match adopt(disk, &candidate, queue_id, before) {
            Some(segment) => segments.push_back(segment),
            None if candidate.size <= SEGMENT_HEADER_BYTES as u64 => {
                // Begun, and nothing written: a crash at the start of a segment.
                let _left = disk.remove(&segment_name(candidate.sequence));
            }
            None => {
                report.segments_damaged += 1;
                let Candidate { sequence, size, .. } = candidate;
                let _left = quarantine.keep_segment(disk, sequence, size, DamageKind::Foreign, &mut counts);
            }
        }
    }
    report.segments = segments.len() as u64;
    report.segments_damaged += segments.iter().filter(|segment| segment.start == 0).count() as u64;
    let mut end = end_of_last(disk, queue_id, &segments, &mut quarantine, &mut counts);

    let chosen = slots.iter().filter(|(slot, ..)| slot.queue_id == queue_id);
    let chosen = chosen.max_by_key(|(slot, ..)| slot.write).copied();
    let first = segments.front().map_or(end, |segment| segment.before);
    // Where nothing was settled yet there never was one.
    let was_there = first.records > 0 || names.iter().any(|name| is_cursor(name));
    report.cursor_lost = chosen.is_none() && !segments.is_empty() && was_there;
    let settled = chosen.map_or(first, |(slot, ..)| slot.settled);
    // After a loss of power the cursor may be ahead of the segments, and one that was removed may be back with records
    // that were lost and whose numbers were given again: what the cursor says holds, and counts never go back.
    end = if settled.records >= end.records { settled } else { end.at_least(settled) };
    let passed = chosen.map_or(0, |(slot, ..)| slot.place.sequence.min(SEQUENCE_MAX));
    let mut found = Found {
        queue_id,
        segments,
        end,
        settled,
        place: Place::default(),
        next_sequence: highest.max(passed) + 1,
        cursor: Cursor::new(disk, queue_id, chosen),
        quarantine,
        counts,
        report,
    };
    remove_settled(disk, &mut found);
    found.place = place(&found.segments, chosen.map(|(slot, ..)| slot.place));
    Ok(found)
}

/// Where reading begins: where the cursor says, if that is still there.
fn place(segments: &VecDeque<Segment>, cursor: Option<Place>) -> Place {
    let first = segments.front();
    let there = |place: &Place| {
        first.is_some_and(|segment| {
            segment.sequence == place.sequence && (segment.start..=segment.size).contains(&place.offset)
        })
    };
    let start = first.map_or(Place::default(), |segment| segment.place());
    cursor.filter(there).unwrap_or(start)
}

fn candidates<D: Disk>(disk: &D, names: &[String], report: &mut Recovery) -> Vec<Candidate<D::File>> {
    let mut sequences: Vec<u64> = names
        .iter()
        .filter_map(|name| segment_sequence(name))
        .filter(|sequence| *sequence < SEQUENCE_MAX)
        .collect();
    sequences.sort_unstable();
    let mut candidates = Vec::new();
    for sequence in sequences {
        let opened = disk.open(&segment_name(sequence)).and_then(|file| Ok((disk.size(&file)?, file)));
        let Ok((size, file)) = opened else {
            report.segments_unreadable += 1;
            continue;
        };
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let read = disk.read_at(&file, 0, &mut bytes).or_else(|_| disk.read_at(&file, 0, &mut bytes));
        let header = read.ok().and_then(|()| SegmentHeader::decode(&bytes));
        let header = header.filter(|header| header.sequence == sequence);
        candidates.push(Candidate { sequence, size, file, header });
    }
    candidates
}

/// The id that most headers and the cursor agree on; without any, that of the first record.
fn queue_id<D: Disk>(
    disk: &D,
    candidates: &[Candidate<D::File>],
    slots: &[(Slot, usize, usize)],
) -> Option<u64> {
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
    let by_record = || {
        candidates.iter().find_map(|candidate| {
            SegmentReader::new(candidate.sequence, candidate.file.clone()).queue_id(disk, candidate.size)
        })
    };
    elected.or_else(by_record)
}

/// The segment, if it is one of the queue and can follow what came before.
fn adopt<D: Disk>(
    disk: &D,
    candidate: &Candidate<D::File>,
    queue_id: u64,
    previous: Totals,
) -> Option<Segment> {
    let Candidate { sequence, size, .. } = *candidate;
    let segment = |before, start| Segment { sequence, before, start, size, unreadable: false };
    let segment = match candidate.header {
        Some(header) if header.queue_id == queue_id => segment(header.before, SEGMENT_HEADER_BYTES as u64),
        Some(_) => return None,
        None => {
            let mut reader = SegmentReader::new(sequence, candidate.file.clone());
            let fits = |header: &super::format::RecordHeader| header.before.covers(previous);
            let (header, _) = reader.next(disk, queue_id, (0, size), fits, &mut Vec::new())?;
            segment(header.before, 0)
        }
    };
    segment.before.covers(previous).then_some(segment)
}

/// Everything that the last segment speaks of, cut off or not.
fn end_of_last<D: Disk>(
    disk: &D,
    queue_id: u64,
    segments: &VecDeque<Segment>,
    quarantine: &mut Quarantine,
    counts: &mut DiskQueueCounts,
) -> Totals {
    let Some(last) = segments.back() else { return Totals::default() };
    let Ok(file) = disk.open(&segment_name(last.sequence)) else { return last.before };
    let mut reader = SegmentReader::of_headers(last.sequence, file);
    let (mut end, mut at) = (last.before, last.start);
    loop {
        let mut damage = Vec::new();
        let mut seen = None;
        let fits = |header: &super::format::RecordHeader| {
            let fits = header.before.covers(end) && header.after().covers(header.before);
            if fits {
                seen = Some(*header);
            }
            fits
        };
        let next = reader.next(disk, queue_id, (at, last.size), fits, &mut damage);
        // A record that was cut off is counted as well: its header says what was in it.
        end = seen.map_or(end, |header| header.after());
        match next {
            Some((header, offset)) => at = offset + header.disk_bytes(),
            None => {
                damage
                    .into_iter()
                    .for_each(|damage| quarantine.keep_range(disk, last.sequence, damage, counts));
                return end;
            }
        }
    }
}

fn remove_settled<D: Disk>(disk: &D, found: &mut Found<D::File>) {
    loop {
        let Some(first) = found.segments.front() else { return };
        let upto = found.segments.get(1).map_or(found.end, |next| next.before);
        if upto.records > found.settled.records {
            return;
        }
        // What cannot be removed is tried again by the next run.
        let _left = disk.remove(&segment_name(first.sequence));
        found.segments.pop_front();
        found.report.segments_removed += 1;
    }
}
