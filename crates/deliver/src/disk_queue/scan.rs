//! Reads one segment: finds the next record from an offset on, past all damage.
//!
//! A record in its place costs one checksum. Otherwise the bytes are searched for the marker of the next record with
//! a valid header, and the skipped bytes are reported as damage. A valid header is trusted: its record is skipped by
//! its length, so that bytes inside a block are never read as a record.
//!
//! A read error is no damage: it is returned, and the caller waits and tries again. Only a reader that
//! [`SegmentReader::skips_unreadable`] unreadable bytes reports those as damage, too.

use memchr::memmem;
use model::{Disk, DiskError};

use super::format::{MARKER, RECORD_HEADER_BYTES, RecordHeader};

/// Bytes per read.
const CHUNK_BYTES: u64 = 256 * 1024;
/// Bytes per read where only headers are needed: most blocks are skipped unread.
const HEADERS_CHUNK_BYTES: u64 = 16 * 1024;
/// Bytes to skip where the disk cannot read.
const PAGE_BYTES: u64 = 4096;

/// Kind of damage in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DamageKind {
    /// Bytes that are no record.
    NotARecord,
    /// The header is valid and the body is not.
    Body,
    /// The file ends within a record.
    CutOff,
    /// The disk could not read it.
    Unreadable,
}

impl DamageKind {
    /// The word for programs.
    pub fn word(self) -> &'static str {
        match self {
            DamageKind::NotARecord => "not_a_record",
            DamageKind::Body => "body",
            DamageKind::CutOff => "cut_off",
            DamageKind::Unreadable => "unreadable",
        }
    }

    /// One sentence for the operator.
    pub fn why(self) -> &'static str {
        match self {
            DamageKind::NotARecord => "these bytes are no record: a header was damaged or never written",
            DamageKind::Body => "the record's header is whole, but its block does not match its checksum",
            DamageKind::CutOff => "the file ends within a record: it was never written whole",
            DamageKind::Unreadable => "the disk could not read here",
        }
    }
}

/// A damaged range of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) kind: DamageKind,
}

/// An open segment and its last read bytes.
#[derive(Debug)]
pub(super) struct SegmentReader<F> {
    pub(super) sequence: u64,
    file: F,
    chunk: Vec<u8>,
    chunk_at: u64,
    ahead_bytes: u64,
    skips_unreadable: bool,
}

impl<F: Clone> SegmentReader<F> {
    pub(super) fn new(sequence: u64, file: F) -> SegmentReader<F> {
        SegmentReader {
            sequence,
            file,
            chunk: Vec::new(),
            chunk_at: 0,
            ahead_bytes: CHUNK_BYTES,
            skips_unreadable: false,
        }
    }

    /// The open file.
    pub(super) fn file(&self) -> &F {
        &self.file
    }

    /// Whether unreadable bytes are skipped as damage. Otherwise they are an error.
    pub(super) fn skips_unreadable(&mut self, skips_unreadable: bool) {
        self.skips_unreadable = skips_unreadable;
    }

    /// The bytes, or none where they are skipped: the file ends before them, or the disk fails to read them.
    fn unless_skipped<T>(&self, read: Result<T, DiskError>) -> Result<Option<T>, DiskError> {
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(DiskError::Short) => Ok(None),
            Err(error) if self.skips_unreadable && !error.passes() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A reader for headers only.
    pub(super) fn of_headers(sequence: u64, file: F) -> SegmentReader<F> {
        SegmentReader { ahead_bytes: HEADERS_CHUNK_BYTES, ..SegmentReader::new(sequence, file) }
    }

    /// The first record at or after `from` that `fits`, with its offset; none up to `size`. `fits` is called for end
    /// marks as well, which are skipped. After an error `damage` has no meaning.
    pub(super) fn next<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        queue_id: u64,
        (from, size): (u64, u64),
        mut fits: impl FnMut(&RecordHeader) -> bool,
        damage: &mut Vec<Damage>,
    ) -> Result<Option<(RecordHeader, u64)>, DiskError> {
        let (mut from, mut at) = (from, from);
        while at < size {
            let header = self.header_at(disk, queue_id, at, size)?;
            if let Some(header) = header.filter(&mut fits) {
                if header.is_mark() {
                    note(damage, from, at, DamageKind::NotARecord);
                    at += header.disk_bytes();
                    from = at;
                    continue;
                }
                if header.disk_bytes() <= size - at {
                    note(damage, from, at, DamageKind::NotARecord);
                    return Ok(Some((header, at)));
                }
                note(damage, from, at, DamageKind::NotARecord);
                note(damage, at, size, DamageKind::CutOff);
                return Ok(None);
            }
            at = self.next_marker(disk, at + 1, size, damage)?;
        }
        let kind = if size.saturating_sub(from) < RECORD_HEADER_BYTES as u64 {
            DamageKind::CutOff
        } else {
            DamageKind::NotARecord
        };
        note(damage, from, size, kind);
        Ok(None)
    }

    /// The id in the first record of any queue.
    pub(super) fn queue_id<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        size: u64,
    ) -> Result<Option<u64>, DiskError> {
        let mut at = self.next_marker(disk, 0, size, &mut Vec::new())?;
        while size.saturating_sub(at) >= RECORD_HEADER_BYTES as u64 {
            let bytes = self.head_at(disk, at, size)?;
            let found = bytes.and_then(|bytes| RecordHeader::queue_id(&bytes));
            if found.is_some() {
                return Ok(found);
            }
            at = self.next_marker(disk, at + 1, size, &mut Vec::new())?;
        }
        Ok(None)
    }

    /// A record's boundaries and block.
    pub(super) fn body<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        header: &RecordHeader,
        at: u64,
        size: u64,
    ) -> Result<&[u8], DiskError> {
        let len = header.disk_bytes() - RECORD_HEADER_BYTES as u64;
        self.bytes(disk, at + RECORD_HEADER_BYTES as u64, len, size)
    }

    /// The bytes from `from` up to `to`.
    pub(super) fn range<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        from: u64,
        to: u64,
        size: u64,
    ) -> Result<&[u8], DiskError> {
        self.bytes(disk, from, to.saturating_sub(from), size)
    }

    /// The end mark of a segment of `size` bytes, and its offset. None when the segment ends otherwise.
    pub(super) fn last_mark<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        queue_id: u64,
        size: u64,
    ) -> Result<Option<(RecordHeader, u64)>, DiskError> {
        let Some(at) = size.checked_sub(RECORD_HEADER_BYTES as u64) else { return Ok(None) };
        let mark = self.header_at(disk, queue_id, at, size)?.filter(RecordHeader::is_mark);
        Ok(mark.map(|mark| (mark, at)))
    }

    /// The header of the record, or the end mark, at this offset.
    pub(super) fn header_at<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        queue_id: u64,
        at: u64,
        size: u64,
    ) -> Result<Option<RecordHeader>, DiskError> {
        if size.saturating_sub(at) < RECORD_HEADER_BYTES as u64 {
            return Ok(None);
        }
        let bytes = self.head_at(disk, at, size)?;
        Ok(bytes.and_then(|bytes| RecordHeader::decode(&bytes, queue_id)))
    }

    /// The bytes of a record's header; none where they are skipped.
    fn head_at<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        at: u64,
        size: u64,
    ) -> Result<Option<[u8; RECORD_HEADER_BYTES]>, DiskError> {
        let read = self.bytes(disk, at, RECORD_HEADER_BYTES as u64, size);
        let head = read.map(|bytes| *bytes.first_chunk().expect("so many were asked for"));
        self.unless_skipped(head)
    }

    /// The offset of the first marker at or after `at`, or `size`.
    fn next_marker<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        mut at: u64,
        size: u64,
        damage: &mut Vec<Damage>,
    ) -> Result<u64, DiskError> {
        while size.saturating_sub(at) >= RECORD_HEADER_BYTES as u64 {
            let held = self.held(at);
            let wanted = if held < MARKER.len() as u64 { self.ahead_bytes.min(size - at) } else { held };
            let page = (PAGE_BYTES - at % PAGE_BYTES).max(MARKER.len() as u64).min(size - at);
            let window = if self.bytes(disk, at, wanted, size).is_ok() { wanted } else { page };
            let searched = self.bytes(disk, at, window, size).map(|bytes| memmem::find(bytes, &MARKER));
            match self.unless_skipped(searched)? {
                None => {
                    note(damage, at, at + window, DamageKind::Unreadable);
                    at += window;
                }
                Some(Some(found)) => return Ok(at + found as u64),
                Some(None) => at += window - (MARKER.len() as u64 - 1),
            }
        }
        Ok(size)
    }

    /// Bytes from `at` on that need no reading.
    fn held(&self, at: u64) -> u64 {
        if at < self.chunk_at {
            return 0;
        }
        (self.chunk_at + self.chunk.len() as u64).saturating_sub(at)
    }

    /// `len` bytes from `at` on, which must end before `size`. Reads ahead, but no further than `size`.
    fn bytes<D: Disk<File = F>>(
        &mut self,
        disk: &D,
        at: u64,
        len: u64,
        size: u64,
    ) -> Result<&[u8], DiskError> {
        debug_assert!(at + len <= size, "{at} + {len} of {size}");
        if self.held(at) < len {
            let ahead = self.ahead_bytes.min(size - at).max(len);
            // The bytes ahead may be the unreadable ones; and some errors are temporary.
            self.fill(disk, at, ahead).or_else(|_| self.fill(disk, at, len))?;
        }
        let from = (at - self.chunk_at) as usize;
        Ok(&self.chunk[from..from + len as usize])
    }

    fn fill<D: Disk<File = F>>(&mut self, disk: &D, at: u64, len: u64) -> Result<(), DiskError> {
        if self.chunk.capacity() as u64 > 4 * CHUNK_BYTES {
            self.chunk = Vec::new();
        }
        self.chunk.resize(len as usize, 0);
        self.chunk_at = at;
        let read = disk.read_at(&self.file, at, &mut self.chunk);
        if read.is_err() {
            self.chunk.clear();
        }
        read
    }
}

fn note(damage: &mut Vec<Damage>, from: u64, to: u64, kind: DamageKind) {
    if from < to {
        damage.push(Damage { from, to, kind });
    }
}
