//! Encoding of segments, records and cursor slots; the layout is in the module's header. Pure: any bytes decode to a
//! value or to none.

use std::sync::Arc;

use model::Span;
use twox_hash::XxHash3_64;

use crate::block::{Block, BlockEncoding, PARTITIONS};

pub(super) const SEGMENT_HEADER_BYTES: usize = 80;
pub(super) const RECORD_HEADER_BYTES: usize = 96;
pub(super) const SLOT_BYTES: usize = 120;
/// Bytes of a slot of version 1, which had no totals of written records.
pub(super) const SLOT_BYTES_MIN: usize = 88;
/// One page per slot: a cut write never damages another slot.
pub(super) const SLOT_OFFSETS: [u64; 3] = [0, 4096, 8192];
/// Bytes of a cursor file.
pub(super) const CURSOR_BYTES: usize = 8192 + SLOT_BYTES;
/// Most bytes of one record. A header with more is damaged, even if its checksum matches.
pub(super) const RECORD_BYTES_MAX: u64 = 1 << 30;
/// Where a record begins, and what salvage searches for. The first byte never occurs in UTF-8 text.
pub(super) const MARKER: [u8; 4] = [0xf1, b'S', b'q', 0x1a];

const SEGMENT_MAGIC: [u8; 8] = *b"STNSEG\r\n";
const SLOT_MAGIC: [u8; 8] = *b"STNCUR\r\n";
const SEGMENT_VERSION: u32 = 1;
const SLOT_VERSION: u32 = 2;
/// The encoding field of an end mark, the header after the last record of a segment.
const MARK_ENCODING: u8 = 3;
const SEGMENT_SUFFIX: &str = ".segment";
const QUARANTINE_SUFFIX: &str = ".quarantine";
const WHOLE: &str = "whole";
const MISPLACED: &str = "misplaced";

/// Sums over all records of a queue from its creation up to a place in it. The difference of two totals is what lies
/// between the places, even if nothing of that can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records; also the number of the record that begins here.
    pub records: u64,
    /// Copies in them.
    pub copies: u64,
    /// Bytes of the copies.
    pub copy_bytes: u64,
    /// Bytes of the records on disk, headers included.
    pub disk_bytes: u64,
}

impl Totals {
    /// The difference to `before`.
    pub(super) fn since(self, before: Totals) -> Totals {
        Totals {
            records: self.records.saturating_sub(before.records),
            copies: self.copies.saturating_sub(before.copies),
            copy_bytes: self.copy_bytes.saturating_sub(before.copy_bytes),
            disk_bytes: self.disk_bytes.saturating_sub(before.disk_bytes),
        }
    }

    /// True when no count of `earlier` is larger: `earlier` can be a place before this one.
    pub(super) fn covers(self, earlier: Totals) -> bool {
        self.records >= earlier.records
            && self.copies >= earlier.copies
            && self.copy_bytes >= earlier.copy_bytes
            && self.disk_bytes >= earlier.disk_bytes
    }

    /// The larger value of each count.
    pub(super) fn at_least(self, other: Totals) -> Totals {
        Totals {
            records: self.records.max(other.records),
            copies: self.copies.max(other.copies),
            copy_bytes: self.copy_bytes.max(other.copy_bytes),
            disk_bytes: self.disk_bytes.max(other.disk_bytes),
        }
    }

    pub(super) fn plus(self, more: Totals) -> Totals {
        Totals {
            records: self.records.saturating_add(more.records),
            copies: self.copies.saturating_add(more.copies),
            copy_bytes: self.copy_bytes.saturating_add(more.copy_bytes),
            disk_bytes: self.disk_bytes.saturating_add(more.disk_bytes),
        }
    }

    pub(super) fn put(self, out: &mut Writer<'_>) {
        for value in [self.records, self.copies, self.copy_bytes, self.disk_bytes] {
            out.u64(value);
        }
    }

    pub(super) fn take(reader: &mut Reader<'_>) -> Totals {
        Totals {
            records: reader.u64(),
            copies: reader.u64(),
            copy_bytes: reader.u64(),
            disk_bytes: reader.u64(),
        }
    }
}

/// The first bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) queue_id: u64,
    pub(super) sequence: u64,
    /// Totals before this segment.
    pub(super) before: Totals,
    pub(super) made_wall_ns: u64,
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let mut out = Writer(&mut bytes);
        out.bytes(&SEGMENT_MAGIC);
        out.u32(SEGMENT_VERSION);
        out.u32(SEGMENT_HEADER_BYTES as u32);
        out.u64(self.queue_id);
        out.u64(self.sequence);
        self.before.put(&mut out);
        out.u64(self.made_wall_ns);
        seal(&mut bytes, 0);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Option<SegmentHeader> {
        let mut reader = Reader(bytes);
        let known = reader.bytes() == SEGMENT_MAGIC
            && reader.u32() == SEGMENT_VERSION
            && reader.u32() == SEGMENT_HEADER_BYTES as u32;
        if !known || !sealed(bytes, 0) {
            return None;
        }
        Some(SegmentHeader {
            queue_id: reader.u64(),
            sequence: reader.u64(),
            before: Totals::take(&mut reader),
            made_wall_ns: reader.u64(),
        })
    }
}

/// The first bytes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    /// Totals before this record.
    pub(super) before: Totals,
    pub(super) made_wall_ns: u64,
    pub(super) copy_bytes: u64,
    pub(super) copies: u32,
    pub(super) encoding: u8,
    pub(super) partition: Option<u8>,
    pub(super) borders_len: u32,
    pub(super) block_len: u32,
    pub(super) body_checksum: u64,
}

impl RecordHeader {
    /// The header of `block`, whose boundaries are `boundaries`. None when the block is too large for a record.
    pub(super) fn of(
        block: &Block,
        boundaries: &[u8],
        before: Totals,
        made_wall_ns: u64,
        queue_id: u64,
    ) -> Option<RecordHeader> {
        let header = RecordHeader {
            before,
            made_wall_ns,
            copy_bytes: block.copy_bytes(),
            copies: block.copies,
            encoding: encoding_code(&block.encoding),
            partition: block.partition,
            borders_len: u32::try_from(boundaries.len()).ok()?,
            block_len: u32::try_from(block.bytes.len()).ok()?,
            body_checksum: body_checksum(queue_id, boundaries, &block.bytes),
        };
        (header.disk_bytes() <= RECORD_BYTES_MAX).then_some(header)
    }

    /// The end mark after the last record of a segment; the next record overwrites it. It has the totals before it,
    /// so that a last record with a damaged header is detected although no record follows.
    pub(super) fn mark(before: Totals) -> RecordHeader {
        RecordHeader {
            before,
            made_wall_ns: 0,
            copy_bytes: 0,
            copies: 0,
            encoding: MARK_ENCODING,
            partition: None,
            borders_len: 0,
            block_len: 0,
            body_checksum: 0,
        }
    }

    /// It is an end mark, not a record.
    pub(super) fn is_mark(&self) -> bool {
        self.encoding == MARK_ENCODING
    }

    /// Bytes of the whole record.
    pub(super) fn disk_bytes(&self) -> u64 {
        RECORD_HEADER_BYTES as u64 + u64::from(self.borders_len) + u64::from(self.block_len)
    }

    /// Its block is lines.
    pub(super) fn is_lines(&self) -> bool {
        self.encoding == 0
    }

    /// Totals up to this record, itself included.
    pub(super) fn after(&self) -> Totals {
        if self.is_mark() {
            return self.before;
        }
        self.before.plus(Totals {
            records: 1,
            copies: u64::from(self.copies),
            copy_bytes: self.copy_bytes,
            disk_bytes: self.disk_bytes(),
        })
    }

    pub(super) fn encode(&self, queue_id: u64) -> [u8; RECORD_HEADER_BYTES] {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        let mut out = Writer(&mut bytes);
        out.bytes(&MARKER);
        out.u32(u32::from(self.encoding));
        out.u64(queue_id);
        self.before.put(&mut out);
        out.u64(self.made_wall_ns);
        out.u64(self.copy_bytes);
        out.u32(self.copies);
        out.u32(self.borders_len);
        out.u32(self.block_len);
        out.u32(self.partition.map_or(0, |partition| u32::from(partition) + 1));
        out.u64(self.body_checksum);
        seal(&mut bytes, queue_id);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; RECORD_HEADER_BYTES], queue_id: u64) -> Option<RecordHeader> {
        let mut reader = Reader(bytes);
        let marker: [u8; 4] = reader.bytes();
        let encoding = u8::try_from(reader.u32()).ok()?;
        if marker != MARKER || reader.u64() != queue_id || !sealed(bytes, queue_id) {
            return None;
        }
        let header = RecordHeader {
            encoding,
            before: Totals::take(&mut reader),
            made_wall_ns: reader.u64(),
            copy_bytes: reader.u64(),
            copies: reader.u32(),
            borders_len: reader.u32(),
            block_len: reader.u32(),
            partition: match u8::try_from(reader.u32()).ok()? {
                0 => None,
                partition => Some((partition - 1) % PARTITIONS),
            },
            body_checksum: reader.u64(),
        };
        let is_whole = !header.is_mark() || header == RecordHeader::mark(header.before);
        (is_whole && header.disk_bytes() <= RECORD_BYTES_MAX).then_some(header)
    }

    /// The queue id in the header.
    pub(super) fn queue_id(bytes: &[u8; RECORD_HEADER_BYTES]) -> Option<u64> {
        let mut reader = Reader(&bytes[8..]);
        let queue_id = reader.u64();
        RecordHeader::decode(bytes, queue_id).map(|_| queue_id)
    }

    /// The lines of a record with a damaged header, given all bytes of the record. Valid when the body's checksum,
    /// which is in the header, still matches.
    pub(super) fn lines_behind(record: &[u8], queue_id: u64) -> Option<Vec<u8>> {
        let (header, body) = record.split_first_chunk::<RECORD_HEADER_BYTES>()?;
        let [checksum, _] = header.last_chunk::<16>()?.as_chunks::<8>().0 else { return None };
        (!body.is_empty() && body_checksum(queue_id, &[], body) == u64::from_le_bytes(*checksum))
            .then(|| body.to_vec())
    }

    /// The block in a record's body. None when the body is damaged.
    pub(super) fn block(&self, queue_id: u64, body: &[u8], at_ns: u64) -> Option<Block> {
        let (boundaries, bytes) = body.split_at_checked(self.borders_len as usize)?;
        if bytes.len() != self.block_len as usize
            || body_checksum(queue_id, boundaries, bytes) != self.body_checksum
        {
            return None;
        }
        let encoding = decode_boundaries(self.encoding, boundaries, self.block_len)?;
        let (copies, partition) = (self.copies, self.partition);
        Some(Block { bytes: Arc::new(bytes.to_vec()), copies, encoding, at_ns, partition })
    }
}

pub(crate) fn encoding_code(encoding: &BlockEncoding) -> u8 {
    match encoding {
        BlockEncoding::Lines => 0,
        BlockEncoding::Frames(_) => 1,
        BlockEncoding::Packets(_) => 2,
    }
}

/// Appends the block's boundaries: 8 bytes for each frame or packet, nothing for lines.
pub(crate) fn encode_boundaries(encoding: &BlockEncoding, out: &mut Vec<u8>) {
    let mut pair = |first: u32, second: u32| {
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&second.to_le_bytes());
    };
    match encoding {
        BlockEncoding::Lines => {}
        BlockEncoding::Frames(frames) => frames.iter().for_each(|(end, copies)| pair(*end, *copies)),
        BlockEncoding::Packets(packets) => packets.iter().for_each(|packet| pair(packet.at, packet.len)),
    }
}

/// Offsets past the block's end are moved to it, so that no sender cuts outside. None when frames have more copies
/// than a block can have.
pub(crate) fn decode_boundaries(encoding: u8, boundaries: &[u8], block_len: u32) -> Option<BlockEncoding> {
    let (pairs, rest) = boundaries.as_chunks::<8>();
    if !rest.is_empty() {
        return None;
    }
    let pairs = pairs.iter().map(|pair| {
        let mut reader = Reader(pair);
        (reader.u32(), reader.u32())
    });
    match encoding {
        0 => pairs.len().eq(&0).then_some(BlockEncoding::Lines),
        1 => {
            let copies: u64 = pairs.clone().map(|(_, copies)| u64::from(copies)).sum();
            let frames = pairs.map(|(end, copies)| (end.min(block_len), copies)).collect();
            u32::try_from(copies).is_ok().then_some(BlockEncoding::Frames(frames))
        }
        2 => {
            let span = |(at, len): (u32, u32)| {
                let at = at.min(block_len);
                Span { at, len: len.min(block_len - at) }
            };
            Some(BlockEncoding::Packets(Arc::new(pairs.map(span).collect())))
        }
        _ => None,
    }
}

/// Content of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CursorState {
    /// Every record before it has its outcome.
    pub(super) settled: Totals,
    /// Place of the first record without an outcome.
    pub(super) place: Place,
    /// Every record before it was written to a segment: those that the next run does not find are lost.
    pub(super) written: Totals,
}

/// One of the three slots of a cursor file: everything before `settled` has its outcome, and everything before `written`
/// was written to the segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) queue_id: u64,
    /// Counts the writes: the slot with the highest number is valid.
    pub(super) write: u64,
    pub(super) place: Place,
    pub(super) settled: Totals,
    /// In version 1, the same as `settled`.
    pub(super) written: Totals,
}

/// A byte offset in a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) sequence: u64,
    pub(super) offset: u64,
}

impl Place {
    pub(super) fn put(self, out: &mut Writer<'_>) {
        out.u64(self.sequence);
        out.u64(self.offset);
    }

    pub(super) fn take(reader: &mut Reader<'_>) -> Place {
        Place { sequence: reader.u64(), offset: reader.u64() }
    }
}

impl Slot {
    pub(super) fn noted(&self) -> CursorState {
        CursorState { settled: self.settled, place: self.place, written: self.written }
    }

    pub(super) fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        let mut out = Writer(&mut bytes);
        out.bytes(&SLOT_MAGIC);
        out.u32(SLOT_VERSION);
        out.u32(SLOT_BYTES as u32);
        out.u64(self.queue_id);
        out.u64(self.write);
        self.place.put(&mut out);
        self.settled.put(&mut out);
        self.written.put(&mut out);
        seal(&mut bytes, 0);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; SLOT_BYTES]) -> Option<Slot> {
        let mut reader = Reader(bytes);
        if reader.bytes() != SLOT_MAGIC {
            return None;
        }
        let (version, size) = (reader.u32(), reader.u32() as usize);
        let known = matches!((version, size), (1, SLOT_BYTES_MIN) | (SLOT_VERSION, SLOT_BYTES));
        if !known || !sealed(&bytes[..size], 0) {
            return None;
        }
        let (queue_id, write) = (reader.u64(), reader.u64());
        let place = Place::take(&mut reader);
        let settled = Totals::take(&mut reader);
        let written = if version == 1 { settled } else { Totals::take(&mut reader) };
        Some(Slot { queue_id, write, place, settled, written })
    }
}

pub(super) fn segment_name(sequence: u64) -> String {
    format!("{sequence:016x}{SEGMENT_SUFFIX}")
}

/// The sequence number in the name of a segment.
pub(super) fn segment_sequence(name: &str) -> Option<u64> {
    hexadecimal(name.strip_suffix(SEGMENT_SUFFIX)?)
}

/// Content of a file in quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuarantineContent {
    /// A copy of a range that begins at this byte.
    Range(u64),
    /// A whole segment that was unreadable in part, or belongs to another queue.
    Whole,
    /// A segment of this queue that is in the wrong place.
    Misplaced,
}

/// The sequence number is that of the segment's name.
pub(super) fn quarantine_name(sequence: u64, kept: QuarantineContent) -> String {
    let place = match kept {
        QuarantineContent::Range(from) => format!("{from:016x}"),
        QuarantineContent::Whole => WHOLE.to_owned(),
        QuarantineContent::Misplaced => MISPLACED.to_owned(),
    };
    format!("{sequence:016x}-{place}{QUARANTINE_SUFFIX}")
}

/// A name for a segment whose usual name in the quarantine is taken: `again` makes it unique.
pub(super) fn quarantine_name_again(sequence: u64, kept: QuarantineContent, again: u32) -> String {
    let name = quarantine_name(sequence, kept);
    let stem = name.strip_suffix(QUARANTINE_SUFFIX).unwrap_or(&name);
    format!("{stem}-{again}{QUARANTINE_SUFFIX}")
}

pub(super) fn is_quarantine(name: &str) -> bool {
    name.ends_with(QUARANTINE_SUFFIX)
}

/// Sequence number and content, from a name by [`quarantine_name`] or [`quarantine_name_again`].
pub(super) fn quarantine_place(name: &str) -> Option<(u64, QuarantineContent)> {
    let (sequence, place) = name.strip_suffix(QUARANTINE_SUFFIX)?.split_once('-')?;
    let sequence = hexadecimal(sequence)?;
    let (word, again) = place.split_once('-').unwrap_or((place, "1"));
    let kept = match word {
        WHOLE => QuarantineContent::Whole,
        MISPLACED => QuarantineContent::Misplaced,
        _ => return Some((sequence, QuarantineContent::Range(hexadecimal(place)?))),
    };
    again.parse::<u32>().is_ok().then_some((sequence, kept))
}

/// Sixteen lower-case digits.
fn hexadecimal(digits: &str) -> Option<u64> {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (digits.len() == 16 && digits.bytes().all(lower)).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// The block's checksum, seeded by that of its boundaries, seeded by the queue's id. So a record of another queue, or a
/// record inside the bytes of a block, does not match.
fn body_checksum(queue_id: u64, boundaries: &[u8], block: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(XxHash3_64::oneshot_with_seed(queue_id, boundaries), block)
}

fn seal(bytes: &mut [u8], seed: u64) {
    let (body, checksum) = bytes.split_at_mut(bytes.len() - 8);
    checksum.copy_from_slice(&XxHash3_64::oneshot_with_seed(seed, body).to_le_bytes());
}

fn sealed(bytes: &[u8], seed: u64) -> bool {
    let (body, checksum) = bytes.split_at(bytes.len() - 8);
    checksum == XxHash3_64::oneshot_with_seed(seed, body).to_le_bytes()
}

/// Writes fixed layouts only, as [`Reader`] reads them.
pub(super) struct Writer<'a>(pub(super) &'a mut [u8]);

impl Writer<'_> {
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let (head, rest) = std::mem::take(&mut self.0).split_at_mut(bytes.len());
        head.copy_from_slice(bytes);
        self.0 = rest;
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }
}

/// Reads fixed layouts only: the callers' arrays are as long as their fields.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_first_chunk::<N>().expect("the layout's fields fit its size");
        self.0 = rest;
        *head
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const ID: u64 = 0x1234_5678_9abc_def0;

    fn totals(of: u64) -> Totals {
        Totals { records: of, copies: of + 1, copy_bytes: of + 2, disk_bytes: of + 3 }
    }

    #[test]
    fn encoded_headers_decode_and_any_flipped_bit_is_detected() {
        let segment = SegmentHeader { queue_id: ID, sequence: 7, before: totals(5), made_wall_ns: 9 };
        assert_eq!(SegmentHeader::decode(&segment.encode()), Some(segment));
        let block = Block::frames(b"abcdef".to_vec(), vec![(2, 1), (6, 4)], 0);
        let mut boundaries = Vec::new();
        encode_boundaries(&block.encoding, &mut boundaries);
        let record = RecordHeader::of(&block, &boundaries, totals(8), 11, ID).expect("a small block");
        assert_eq!(RecordHeader::decode(&record.encode(ID), ID), Some(record));
        assert_eq!(RecordHeader::decode(&record.encode(ID), ID + 1), None, "another queue's");
        let mark = RecordHeader::mark(totals(8));
        assert_eq!(RecordHeader::decode(&mark.encode(ID), ID), Some(mark));
        let slot = slot();
        assert_eq!(Slot::decode(&slot.encode()), Some(slot));
        for bit in 0..SEGMENT_HEADER_BYTES * 8 {
            let mut bytes = segment.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&bytes), None, "bit {bit}");
        }
        for bit in 0..RECORD_HEADER_BYTES * 8 {
            let mut bytes = record.encode(ID);
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(RecordHeader::decode(&bytes, ID), None, "bit {bit}");
        }
        for bit in 0..SLOT_BYTES * 8 {
            let mut bytes = slot.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Slot::decode(&bytes), None, "bit {bit}");
        }
    }

    fn slot() -> Slot {
        let place = Place { sequence: 1, offset: 2 };
        Slot { queue_id: ID, write: 3, place, settled: totals(4), written: totals(9) }
    }

    /// Turns a slot into one of version 1; zeros stay zeros.
    pub(in super::super) fn to_version_1(slot: &mut [u8]) {
        if slot[..8] != SLOT_MAGIC {
            return;
        }
        slot[8..16].copy_from_slice(&[1, 0, 0, 0, 88, 0, 0, 0]);
        seal(&mut slot[..SLOT_BYTES_MIN], 0);
        let end = slot.len().min(SLOT_BYTES);
        slot[SLOT_BYTES_MIN..end].fill(0);
    }

    #[test]
    fn a_slot_of_version_1_has_no_written_totals() {
        let mut bytes = slot().encode();
        to_version_1(&mut bytes);
        assert_eq!(Slot::decode(&bytes), Some(Slot { written: totals(4), ..slot() }));
        bytes[SLOT_BYTES_MIN - 1] ^= 1;
        assert_eq!(Slot::decode(&bytes), None);
    }

    #[test]
    fn an_end_mark_with_extra_fields_is_invalid() {
        let mark = RecordHeader::mark(totals(8));
        for header in [
            RecordHeader { copies: 1, ..mark },
            RecordHeader { block_len: 1, ..mark },
            RecordHeader { borders_len: 8, ..mark },
        ] {
            assert_eq!(RecordHeader::decode(&header.encode(ID), ID), None, "{header:?}");
        }
    }

    #[test]
    fn blocks_of_each_encoding_decode_and_damaged_ones_do_not() {
        let spans = [(0, 1), (2, 2), (5, 3)].map(|(at, len)| Span::new(at, len)).to_vec();
        let bytes = b"a\nbb\nccc\n".to_vec();
        let blocks = [
            Block::lines(bytes.clone(), 3, 5),
            Block::lines(Vec::new(), 1, 5),
            Block::frames(bytes.clone(), vec![(2, 1), (5, 1), (9, 7)], 5),
            Block::packets(model::PacketBatch { bytes, packets: spans }, 5),
        ];
        for block in blocks {
            let mut body = Vec::new();
            encode_boundaries(&block.encoding, &mut body);
            let header = RecordHeader::of(&block, &body, Totals::default(), 0, ID).expect("a small block");
            body.extend_from_slice(&block.bytes);
            assert_eq!(header.block(ID, &body, 5), Some(block));
            assert_eq!(header.after().disk_bytes, (RECORD_HEADER_BYTES + body.len()) as u64);
            for bit in 0..body.len() * 8 {
                let mut damaged = body.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(header.block(ID, &damaged, 5), None, "bit {bit}");
            }
            body.push(0);
            assert_eq!(header.block(ID, &body, 5), None, "longer than its header says");
        }
    }

    #[test]
    fn a_record_header_past_the_size_limit_is_invalid() {
        let lens = RECORD_BYTES_MAX as u32 - RECORD_HEADER_BYTES as u32;
        for (borders_len, block_len, whole) in
            [(0, lens, true), (8, lens - 8, true), (0, lens + 1, false), (u32::MAX, u32::MAX, false)]
        {
            let header = RecordHeader {
                before: totals(u64::MAX - 3),
                made_wall_ns: u64::MAX,
                copy_bytes: u64::MAX,
                copies: u32::MAX,
                encoding: 0,
                partition: Some(PARTITIONS - 1),
                borders_len,
                block_len,
                body_checksum: 0,
            };
            assert_eq!(RecordHeader::decode(&header.encode(ID), ID).is_some(), whole, "{block_len}");
            assert!(header.after().covers(header.before), "totals never overflow");
        }
    }

    #[test]
    fn boundaries_never_exceed_the_block() {
        let pairs: Vec<u8> = [9_u32, 1, 4, 9, 4, 0].iter().flat_map(|value| value.to_le_bytes()).collect();
        let frames = decode_boundaries(1, &pairs, 4);
        assert_eq!(frames, Some(BlockEncoding::Frames(vec![(4, 1), (4, 9), (4, 0)])));
        let spans = [(4, 0), (4, 0), (4, 0)].map(|(at, len)| Span::new(at, len)).to_vec();
        assert_eq!(decode_boundaries(2, &pairs, 4), Some(BlockEncoding::Packets(Arc::new(spans))));
        let most: Vec<u8> = [1, u32::MAX, 2, 1].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert!(decode_boundaries(1, &most[..8], 4).is_some());
        for (encoding, boundaries) in [(0, &pairs[..]), (1, &pairs[..7]), (1, &most[..]), (3, &pairs[..])] {
            assert_eq!(decode_boundaries(encoding, boundaries, 4), None, "encoding {encoding}");
        }
    }

    #[test]
    fn quarantine_names_round_trip() {
        assert_eq!(segment_name(0xab), "00000000000000ab.segment");
        let table = [
            ("00000000000000ab.segment", Some(0xab)),
            ("ffffffffffffffff.segment", Some(u64::MAX)),
            ("00000000000000AB.segment", None),
            ("ab.segment", None),
            ("+0000000000000ab.segment", None),
            ("00000000000000ab.segment.bak", None),
            ("cursor-0", None),
        ];
        for (name, want) in table {
            assert_eq!(segment_sequence(name), want, "{name}");
        }
        for (sequence, kept) in [
            (1, QuarantineContent::Whole),
            (1, QuarantineContent::Misplaced),
            (1, QuarantineContent::Range(2)),
            (u64::MAX, QuarantineContent::Range(u64::MAX)),
        ] {
            let names = [quarantine_name(sequence, kept), quarantine_name_again(sequence, kept, 12)];
            // A range is copied once.
            for name in &names[..if matches!(kept, QuarantineContent::Range(_)) { 1 } else { 2 }] {
                assert!(is_quarantine(name));
                assert_eq!(quarantine_place(name), Some((sequence, kept)), "{name}");
            }
        }
        for name in [
            "x.quarantine",
            "0000000000000001-half.quarantine",
            "0000000000000001-whole-x.quarantine",
            "0000000000000001-0000000000000050-2.quarantine",
            "0000000000000001.segment",
        ] {
            assert_eq!(quarantine_place(name), None, "{name}");
        }
    }
}
