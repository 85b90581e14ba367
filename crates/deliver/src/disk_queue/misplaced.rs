//! Segments in the wrong place: another program copied, renamed, swapped or restored files of the queue.
//!
//! Path of a packet: none; used by opening (`recovery`) and inspection (`inspect`).
//! Not here: which queue a segment belongs to (`recovery`), the quarantine.
//! Invariant: a queued record that can be read is in a segment that is read or quarantined, never in one that is
//! removed.

use std::collections::VecDeque;

use model::{Disk, DiskError};

use super::format::{Place, RECORD_HEADER_BYTES, Totals};
use super::quarantine::{QuarantineReason, QuarantinedSegment};
use super::recovery::{Unreadable, end_of};
use super::state::Segment;

/// The highest totals at the end of these segments: the queue took their records, wherever the files are now.
pub(super) fn end_of_all<D: Disk>(
    disk: &D,
    unreadable: Unreadable,
    queue_id: u64,
    segments: &[Segment],
) -> Result<Totals, DiskError> {
    let mut furthest = Totals::default();
    for segment in segments {
        let (end, _damage) = end_of(disk, unreadable, queue_id, segment)?;
        if end.records > furthest.records {
            furthest = end;
        }
    }
    Ok(furthest)
}

/// Number of records up to the end of each segment, by its own headers; the last segment, which none follows, is not
/// counted. A segment with a higher number than the next one's beginning has records that are not read: it is kept
/// whole.
pub(super) fn own_ends<D: Disk>(
    disk: &D,
    unreadable: Unreadable,
    queue_id: u64,
    segments: &mut VecDeque<Segment>,
) -> Result<Vec<u64>, DiskError> {
    let mut ends = Vec::with_capacity(segments.len());
    for at in 1..segments.len() {
        if ends_where_next_begins(&segments[at - 1], segments[at].before) {
            ends.push(segments[at].before.records);
            continue;
        }
        let (end, _damage) = end_of(disk, unreadable, queue_id, &segments[at - 1])?;
        segments[at - 1].kept_whole |= end.records > segments[at].before.records;
        ends.push(end.records);
    }
    Ok(ends)
}

/// Whether a segment has exactly the bytes that the next one's header says: then it need not be read.
fn ends_where_next_begins(segment: &Segment, next: Totals) -> bool {
    let bytes = segment.size.saturating_sub(segment.counted_from);
    let records = next.disk_bytes.checked_sub(segment.before.disk_bytes);
    next.covers(segment.before)
        && records.is_some_and(|records| bytes == records || bytes == records + RECORD_HEADER_BYTES as u64)
}

/// Whether the first record after all `settled` ones begins at this place of the segment.
pub(super) fn begins_at<D: Disk>(
    disk: &D,
    unreadable: Unreadable,
    queue_id: u64,
    (segment, place): (&Segment, Option<Place>),
    settled: Totals,
) -> Result<bool, DiskError> {
    let Some(place) = place.filter(|place| place.sequence == segment.sequence) else { return Ok(false) };
    let Some(mut reader) = unreadable.open(disk, segment.sequence)? else { return Ok(false) };
    let found = reader.header_at(disk, queue_id, place.offset, segment.size)?;
    Ok(found.is_some_and(|header| header.before == settled))
}

/// Removes segments from the list that are settled by the next one's beginning, and that have unsettled records.
pub(super) fn remove_displaced(
    segments: &mut VecDeque<Segment>,
    ends: &[u64],
    settled_segments: &mut usize,
    settled: Totals,
) -> Vec<QuarantinedSegment> {
    let mut displaced = Vec::new();
    for at in (0..*settled_segments).rev() {
        if ends.get(at).is_some_and(|end| *end > settled.records)
            && let Some(Segment { sequence, size: bytes, .. }) = segments.remove(at)
        {
            displaced.push(QuarantinedSegment { sequence, bytes, why: QuarantineReason::Displaced });
            *settled_segments -= 1;
        }
    }
    displaced.reverse();
    displaced
}
