//! Reads the quarantine: its files with their reasons, and the records in them that can still be read.
//!
//! Path of a packet: none. For `staunch queue export` and `replay`, which use these records only when asked to.
//! Not here: queued records (`inspect`), moving files to the quarantine (`quarantine`).
//! Invariant: nothing is written, and a block is reported as whole only when its checksum matches.

use std::ops::Range;

use model::Disk;

use super::format::{
    QuarantineContent, RECORD_BYTES_MAX, RECORD_HEADER_BYTES, RecordHeader, SEGMENT_HEADER_BYTES,
    SegmentHeader, is_quarantine, quarantine_place,
};
use super::inspect::Inspection;
use super::scan::{DamageKind, SegmentReader};
use crate::block::Block;

/// Longest first line of a file that is searched for its reason.
const REASON_BYTES_MAX: u64 = 512;

/// A file in the quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Its name.
    pub name: String,
    /// Bytes in it.
    pub bytes: u64,
    /// One sentence, printable.
    pub reason: String,
    /// Bytes before the copied range.
    start: u64,
}

/// A block from the quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvaged {
    /// Its file.
    pub file: String,
    /// Number of its record, and its time in Unix nanoseconds. None when its header is damaged.
    pub record: Option<(u64, u64)>,
    /// Its block, with time 0.
    pub block: Block,
    /// Its checksum matches. Otherwise these are the lines found, and any byte of them may be wrong.
    pub whole: bool,
}

/// All files of the quarantine, by name.
pub fn quarantined<D: Disk>(inspection: &Inspection, disk: &D) -> Vec<Quarantined> {
    let names = inspection.names().iter().filter(|name| is_quarantine(name));
    let mut files: Vec<Quarantined> = names.filter_map(|name| read_about(disk, name)).collect();
    files.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    files
}

fn read_about<D: Disk>(disk: &D, name: &str) -> Option<Quarantined> {
    let file = disk.open(name).ok()?;
    let bytes = disk.size(&file).ok()?;
    let about =
        |reason: &str, start| Quarantined { name: name.to_owned(), bytes, reason: reason.to_owned(), start };
    match quarantine_place(name) {
        Some((_, QuarantineContent::Range(_))) => {}
        Some((_, QuarantineContent::Misplaced)) => {
            return Some(about("a whole segment: it was not where its records belong", 0));
        }
        Some((_, QuarantineContent::Whole)) | None => {
            return Some(about("a whole segment: not this queue's, or one that the disk could not read", 0));
        }
    }
    let mut head = vec![0; REASON_BYTES_MAX.min(bytes) as usize];
    let read = disk.read_at(&file, 0, &mut head);
    let line = read.ok().and_then(|()| head.split(|byte| *byte == b'\n').next());
    let line = line.filter(|line| line.len() < head.len());
    let text = line.and_then(|line| std::str::from_utf8(line).ok());
    let text = text.filter(|text| text.chars().all(|letter| !letter.is_control()));
    Some(match text {
        Some(reason) => about(reason, reason.len() as u64 + 1),
        None => about("no reason is noted in it", 0),
    })
}

/// Visits every block that can be found in these files. Of a segment that was quarantined after it had been read,
/// only its damaged ranges: the rest was delivered.
pub fn salvage<D: Disk, E>(
    inspection: &Inspection,
    disk: &D,
    files: &[Quarantined],
    visit: &mut dyn FnMut(Salvaged) -> Result<(), E>,
) -> Result<(), E> {
    for file in files {
        let place = quarantine_place(&file.name);
        let whole_too = |sequence| {
            files
                .iter()
                .any(|other| quarantine_place(&other.name) == Some((sequence, QuarantineContent::Whole)))
        };
        let wanted = match place {
            // The whole segment has these bytes as well, and the disk may be able to read more of them now.
            Some((sequence, QuarantineContent::Range(_))) if whole_too(sequence) => continue,
            Some((sequence, QuarantineContent::Whole)) => ranges_of(files, sequence),
            Some((_, QuarantineContent::Range(_) | QuarantineContent::Misplaced)) | None => Vec::new(),
        };
        in_file(inspection, disk, (file, &wanted), visit)?;
    }
    Ok(())
}

/// The ranges of a segment that were copied as well; at least as long as they were.
fn ranges_of(files: &[Quarantined], sequence: u64) -> Vec<Range<u64>> {
    let range = |file: &Quarantined| match quarantine_place(&file.name) {
        Some((of, QuarantineContent::Range(from))) if of == sequence => {
            Some(from..end_in(&file.reason).unwrap_or(u64::MAX))
        }
        _ => None,
    };
    files.iter().filter_map(range).collect()
}

/// `NAME, bytes FROM to TO: …`
fn end_in(reason: &str) -> Option<u64> {
    let (_, rest) = reason.split_once(" to ")?;
    rest.split_once(':')?.0.parse().ok()
}

fn in_file<D: Disk, E>(
    inspection: &Inspection,
    disk: &D,
    (about, wanted): (&Quarantined, &[Range<u64>]),
    visit: &mut dyn FnMut(Salvaged) -> Result<(), E>,
) -> Result<(), E> {
    let Ok(file) = disk.open(&about.name) else { return Ok(()) };
    let size = about.bytes;
    let mut reader = SegmentReader::new(0, file.clone());
    reader.skips_unreadable(true);
    let mut head = [0; SEGMENT_HEADER_BYTES];
    let header = disk.read_at(&file, 0, &mut head).ok().and_then(|()| SegmentHeader::decode(&head));
    let id = header.map(|header| header.queue_id).or(inspection.queue_id());
    let Some(id) = id.or_else(|| reader.queue_id(disk, size).ok()?) else { return Ok(()) };
    let mut at = about.start;
    while at < size {
        let mut cut_off = None;
        let seen = |header: &RecordHeader| {
            cut_off = (!header.is_mark()).then_some(*header);
            true
        };
        let mut damage = Vec::new();
        // A file that cannot be read now may be readable later: nothing is removed here.
        let Ok(next) = reader.next(disk, id, (at, size), seen, &mut damage) else { return Ok(()) };
        // The damage gives the place of a record that is cut off.
        let cut_at = damage.last().map_or(size, |damage| damage.from);
        let found = next.or(cut_off.map(|header| (header, cut_at)));
        // Not a record, up to the next one or to the end mark.
        let no_record = damage.first().filter(|first| first.from == at && first.kind != DamageKind::CutOff);
        let passed = no_record.map_or(at, |first| first.to);
        if at < passed
            && let Some(block) = block_behind(&mut reader, disk, id, (at, passed, size))
        {
            visit(Salvaged { file: about.name.clone(), record: None, block, whole: true })?;
        }
        let Some((header, offset)) = found else { return Ok(()) };
        let end = offset.saturating_add(header.disk_bytes());
        let inside = wanted.is_empty() || wanted.iter().any(|range| range.start < end && offset < range.end);
        if inside && let Some((block, whole)) = block_at(&mut reader, disk, (id, &header), (offset, size)) {
            let record = Some((header.before.records, header.made_wall_ns));
            visit(Salvaged { file: about.name.clone(), record, block, whole })?;
        }
        // After a cut-off record others may be whole: unreadable bytes are not in the file.
        at = if end <= size { end } else { offset + RECORD_HEADER_BYTES as u64 };
    }
    Ok(())
}

/// The block of a record from `from` to `to` with a damaged header.
fn block_behind<D: Disk>(
    reader: &mut SegmentReader<D::File>,
    disk: &D,
    id: u64,
    (from, to, size): (u64, u64, u64),
) -> Option<Block> {
    if to - from > RECORD_BYTES_MAX {
        return None;
    }
    let lines = RecordHeader::lines_behind(reader.range(disk, from, to, size).ok()?, id)?;
    let copies = memchr::memchr_iter(b'\n', &lines).count() as u32;
    Some(Block::lines(lines, copies, 0))
}

/// The block, or as many of its lines as there are.
fn block_at<D: Disk>(
    reader: &mut SegmentReader<D::File>,
    disk: &D,
    (id, header): (u64, &RecordHeader),
    (offset, size): (u64, u64),
) -> Option<(Block, bool)> {
    let end = offset.saturating_add(header.disk_bytes());
    let body = reader.range(disk, offset + RECORD_HEADER_BYTES as u64, end.min(size), size).ok()?;
    if let Some(block) = header.block(id, body, 0) {
        return Some((block, true));
    }
    // The boundaries of frames and packets are as doubtful as their bytes.
    let lines = header.is_lines().then(|| memchr::memrchr(b'\n', body))?;
    let text = body[..=lines?].to_vec();
    let copies = memchr::memchr_iter(b'\n', &text).count() as u32;
    Some((Block::lines(text, copies, 0), false))
}
