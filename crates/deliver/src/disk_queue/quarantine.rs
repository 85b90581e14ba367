//! The quarantine: damaged ranges and segments that cannot be used, kept with the reason for the operator.
//!
//! Copies of ranges with a bad checksum (`SEGMENT-OFFSET.quarantine`) are removed first when space is needed, here or
//! for queued records. Whole segments (`SEGMENT-whole.quarantine`, and `SEGMENT-misplaced.quarantine` for segments of
//! the queue in the wrong place) may have readable records: only the operator removes them. All count against the
//! limit of the queue.

use model::{Disk, DiskError};

use super::format::{
    QuarantineContent, is_quarantine, quarantine_name, quarantine_name_again, quarantine_place, segment_name,
};
use super::scan::{Damage, SegmentReader};
use super::state::DiskQueueCounts;

const PIECE_BYTES: u64 = 64 * 1024;

/// Names to try for a whole segment: an earlier one of its number may be there.
const NAMES_MAX: u32 = 1000;

/// Why the queue does not read a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuarantineReason {
    /// The disk cannot read all of it.
    Unreadable,
    /// It has no record of this queue.
    Foreign,
    /// Its header has this number instead: another program copied or renamed it.
    Misnamed(u64),
    /// Another segment is in its place.
    Displaced,
}

impl QuarantineReason {
    /// The word for programs.
    pub fn word(self) -> &'static str {
        match self {
            QuarantineReason::Unreadable => "unreadable",
            QuarantineReason::Foreign => "foreign",
            QuarantineReason::Misnamed(_) => "misnamed",
            QuarantineReason::Displaced => "displaced",
        }
    }

    /// The text after its name.
    pub fn text(self) -> String {
        match self {
            QuarantineReason::Unreadable => "cannot be read".to_owned(),
            QuarantineReason::Foreign => "not of this queue".to_owned(),
            QuarantineReason::Misnamed(header) => format!("its header is that of {}", segment_name(header)),
            QuarantineReason::Displaced => "another segment is where its records belong".to_owned(),
        }
    }

    fn kept(self) -> QuarantineContent {
        match self {
            QuarantineReason::Unreadable | QuarantineReason::Foreign => QuarantineContent::Whole,
            QuarantineReason::Misnamed(_) | QuarantineReason::Displaced => QuarantineContent::Misplaced,
        }
    }
}

/// A segment that goes to the quarantine when the queue is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuarantinedSegment {
    /// The number in its name.
    pub sequence: u64,
    /// Its size.
    pub bytes: u64,
    /// Why.
    pub why: QuarantineReason,
}

impl QuarantinedSegment {
    /// The name of its file, and why it is not read.
    pub fn text(&self) -> String {
        format!("{}: {}", segment_name(self.sequence), self.why.text())
    }
}

/// The files in the quarantine of one queue.
#[derive(Debug)]
pub(super) struct Quarantine {
    /// Bytes of copied ranges.
    ranges_bytes: u64,
    /// Bytes of everything else.
    whole_bytes: u64,
    bytes_max: u64,
}

fn is_range(name: &str) -> bool {
    matches!(quarantine_place(name), Some((_, QuarantineContent::Range(_))))
}

impl Quarantine {
    /// Counts the files of earlier runs.
    pub(super) fn new<D: Disk>(disk: &D, names: &[String], bytes_max: u64) -> Result<Quarantine, DiskError> {
        let mut quarantine = Quarantine { ranges_bytes: 0, whole_bytes: 0, bytes_max };
        for name in names.iter().filter(|name| is_quarantine(name)) {
            match disk.size_of(name) {
                Ok(size) => *quarantine.bytes_of(name) += size,
                Err(error) if error.passes() => return Err(error),
                Err(_gone) => {}
            }
        }
        Ok(quarantine)
    }

    fn bytes_of(&mut self, name: &str) -> &mut u64 {
        if is_range(name) { &mut self.ranges_bytes } else { &mut self.whole_bytes }
    }

    fn bytes(&self) -> u64 {
        self.ranges_bytes + self.whole_bytes
    }

    /// Bytes that count against the limit of the queue and are not removed for records.
    pub(super) fn whole_bytes(&self) -> u64 {
        self.whole_bytes
    }

    /// Removes copies of damaged ranges, the oldest first, until the quarantine and `bytes` of the queue are within
    /// `max_bytes`, or none is left.
    pub(super) fn make_room_for<D: Disk>(
        &mut self,
        disk: &D,
        (bytes, bytes_max): (u64, u64),
        counts: &mut DiskQueueCounts,
    ) {
        let fits = |quarantine: &Quarantine| bytes.saturating_add(quarantine.bytes()) <= bytes_max;
        if self.ranges_bytes == 0 || fits(self) {
            return;
        }
        let mut names = disk.list().unwrap_or_default();
        names.retain(|name| is_range(name));
        names.sort_unstable();
        for name in names {
            if fits(self) {
                return;
            }
            // A file whose size is not known stays.
            let removed = disk.open(&name).and_then(|file| disk.size(&file)).and_then(|size| {
                disk.remove(&name)?;
                Ok(size)
            });
            match removed {
                Ok(size) => {
                    self.ranges_bytes = self.ranges_bytes.saturating_sub(size);
                    counts.quarantine_full += 1;
                }
                Err(_) => counts.remove_errors += 1,
            }
        }
    }

    /// Removes a file; returns its bytes.
    pub(super) fn remove<D: Disk>(&mut self, disk: &D, name: &str) -> Result<u64, DiskError> {
        let size = disk.open(name).and_then(|file| disk.size(&file)).unwrap_or(0);
        disk.remove(name)?;
        let left = self.bytes_of(name);
        *left = left.saturating_sub(size);
        Ok(size)
    }

    /// Copies a damaged range to a file of its own: one line with the reason, then the readable bytes. Fails when
    /// copying it later may succeed, so that its segment has to be kept.
    pub(super) fn keep_range<D: Disk>(
        &mut self,
        disk: &D,
        sequence: u64,
        damage: Damage,
        counts: &mut DiskQueueCounts,
    ) -> Result<(), DiskError> {
        let Damage { from, to, kind } = damage;
        counts.damaged_ranges += 1;
        let name = segment_name(sequence);
        let reason = format!("{name}, bytes {from} to {to}: {}\n", kind.why());
        let room = self.bytes_max.saturating_sub(self.bytes());
        if reason.len() as u64 + (to - from) > room {
            counts.quarantine_full += 1;
            return Ok(());
        }
        let later = |error: DiskError| error.passes() && error != DiskError::Full;
        // An earlier run may have copied the same range.
        let create = || disk.create(&quarantine_name(sequence, QuarantineContent::Range(from)));
        let (source, target) = match disk.open(&name).and_then(|source| Ok((source, create()?))) {
            Ok(files) => files,
            Err(error) => return if later(error) { Err(error) } else { Ok(()) },
        };
        let mut written = 0;
        let mut put = |bytes: &[u8]| -> Result<(), DiskError> {
            disk.write_at(&target, written, &[bytes])?;
            written += bytes.len() as u64;
            Ok(())
        };
        let mut result = put(reason.as_bytes());
        let mut at = from;
        while at < to && result.is_ok() {
            let mut piece = vec![0; PIECE_BYTES.min(to - at) as usize];
            if disk.read_at(&source, at, &mut piece).is_ok() {
                result = put(&piece);
            }
            at += piece.len() as u64;
        }
        self.ranges_bytes += written;
        counts.quarantined_bytes += written;
        counts.write_errors += u64::from(result.is_err());
        result.or_else(|error| if later(error) { Err(error) } else { Ok(()) })
    }

    /// Moves a whole segment to the quarantine. If there is no room for it, a segment without a record of any queue
    /// is removed; any other is kept all the same. After an error it stays where it is.
    pub(super) fn keep_segment<D: Disk>(
        &mut self,
        disk: &D,
        quarantined: QuarantinedSegment,
        counts: &mut DiskQueueCounts,
    ) -> Result<(), DiskError> {
        let QuarantinedSegment { sequence, bytes: size, why } = quarantined;
        let name = segment_name(sequence);
        if size > self.bytes_max.saturating_sub(self.bytes()) {
            counts.quarantine_full += 1;
            if why == QuarantineReason::Foreign && !has_records(disk, sequence, size)? {
                counts.damaged_ranges += 1;
                return disk.remove(&name);
            }
        }
        let names = (2..NAMES_MAX).map(|again| quarantine_name_again(sequence, why.kept(), again));
        let names = [quarantine_name(sequence, why.kept())].into_iter().chain(names);
        let mut renamed = Err(DiskError::Exists);
        for to in names {
            renamed = disk.rename(&name, &to);
            if renamed != Err(DiskError::Exists) {
                break;
            }
        }
        renamed?;
        counts.damaged_ranges += u64::from(why != QuarantineReason::Unreadable);
        self.whole_bytes += size;
        counts.quarantined_bytes += size;
        Ok(())
    }
}

/// Whether a segment has, or may have, a record of any queue.
fn has_records<D: Disk>(disk: &D, sequence: u64, size: u64) -> Result<bool, DiskError> {
    let file = disk.open(&segment_name(sequence))?;
    // Unreadable bytes may be one.
    Ok(SegmentReader::new(sequence, file).queue_id(disk, size).map_or(true, |id| id.is_some()))
}
