//! Reads a snapshot and its journals into a catalog, whatever the bytes are.
//!
//! Path of the bytes: `Reader::begin` for each file -> `Reader::push` in any portions -> complete pieces -> their records
//! -> the catalog -> `Reader::end` with a report -> `Reader::finish`.
//! Bytes that are no piece are skipped up to the next marker with a correct header. Work is bounded: bodies of damaged
//! pieces are searched for other pieces, but no byte is hashed more than [`HASHED_MAX`] times on average.
//! Memory is bounded: one unfinished piece, and the limits of the catalog.

use super::journal::{GONE, PUT};
use super::piece::{HEADER_BYTES, Header, Kind, MARKER, PIECE_BYTES_MAX, SAVED_VERSION};
use crate::catalog::{Catalog, CatalogLimits, NAME_BYTES_MAX, SeriesId};
use crate::codec::Rest;

/// Most places of damage that a report lists; it counts all.
pub const DAMAGE_LIST_MAX: usize = 16;
/// How often a byte is hashed on average.
const HASHED_MAX: u64 = 4;

pub(super) const SNAPSHOT: u8 = 1;
pub(super) const JOURNAL: u8 = 2;

/// What a file is, by its first piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedKind {
    /// All names.
    Snapshot,
    /// Changes.
    Journal,
}

/// What is wrong with some bytes of a saved catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damaged {
    /// Bytes between pieces that are no piece.
    NotAPiece,
    /// The body's checksum is wrong.
    Checksum,
    /// The file ends within a piece.
    CutShort,
    /// Pieces are missing before this one.
    Missing,
    /// A piece of a version or kind that this program does not know.
    Unknown,
    /// The checksum is correct, but the records are not.
    Records,
}

impl Damaged {
    /// The reason as text for logs.
    pub fn why(self) -> &'static str {
        match self {
            Damaged::NotAPiece => "bytes that are no piece of a catalog",
            Damaged::Checksum => "a piece whose checksum is wrong",
            Damaged::CutShort => "a piece that is cut short",
            Damaged::Missing => "pieces are missing",
            Damaged::Unknown => "a piece in a format that this version does not know",
            Damaged::Records => "a piece with invalid records",
        }
    }
}

/// One damaged place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// First byte in the file.
    pub offset: u64,
    /// Number of bytes that were not used.
    pub bytes: u64,
    /// The reason.
    pub why: Damaged,
}

/// What was read from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedReport {
    /// By its first piece; None when that is damaged.
    pub kind: Option<SavedKind>,
    /// By its first piece.
    pub generation: Option<u64>,
    /// A snapshot that was written to its end.
    pub ended: bool,
    /// Pieces that were read.
    pub pieces: u64,
    /// Names that came.
    pub came: u64,
    /// Series that went.
    pub went: u64,
    /// Names that the catalog refused: a limit, or no name.
    pub refused: u64,
    /// Damaged places.
    pub damages: u64,
    /// The first ones, at most [`DAMAGE_LIST_MAX`].
    pub damage: Vec<Damage>,
}

impl SavedReport {
    fn add(&mut self, offset: u64, bytes: u64, why: Damaged) {
        // Neighbouring bytes that are no piece are one place.
        if let Some(last) = self.damage.last_mut().filter(|_| self.damages <= DAMAGE_LIST_MAX as u64)
            && (last.offset + last.bytes, why) == (offset, Damaged::NotAPiece)
            && last.why != Damaged::Missing
        {
            last.bytes += bytes;
            return;
        }
        self.damages += 1;
        if self.damage.len() < DAMAGE_LIST_MAX {
            self.damage.push(Damage { offset, bytes, why });
        }
    }
}

/// Reads files of a saved catalog, oldest first.
#[derive(Debug)]
pub struct Reader {
    catalog: Catalog,
    /// Bytes that may become a piece.
    bytes: Vec<u8>,
    /// Offset of the first of `bytes` in the file.
    offset: u64,
    /// The number of the next piece.
    expected: u32,
    hashed: u64,
    report: SavedReport,
    name: Vec<u8>,
}

impl Reader {
    /// A reader into an empty catalog, whose hashes have this seed.
    pub fn new(limits: CatalogLimits, seed: u64) -> Reader {
        Reader {
            catalog: Catalog::new(limits, seed),
            bytes: Vec::new(),
            offset: 0,
            expected: 0,
            hashed: 0,
            report: SavedReport::default(),
            name: Vec::new(),
        }
    }

    /// Begins a file.
    pub fn begin(&mut self) {
        self.bytes.clear();
        (self.offset, self.expected, self.hashed) = (0, 0, 0);
        self.report = SavedReport::default();
    }

    /// Reads the next bytes of the file.
    pub fn push(&mut self, mut bytes: &[u8]) {
        const PORTION: usize = PIECE_BYTES_MAX + HEADER_BYTES;
        while !bytes.is_empty() {
            let (portion, rest) = bytes.split_at(bytes.len().min(PORTION));
            self.bytes.extend_from_slice(portion);
            self.read(false);
            bytes = rest;
        }
    }

    /// Ends the file.
    pub fn end(&mut self) -> SavedReport {
        self.read(true);
        std::mem::take(&mut self.report)
    }

    /// The catalog, after the last file.
    pub fn finish(mut self) -> Catalog {
        self.catalog.link_vacant();
        self.catalog
    }

    /// Bytes that the reader keeps beside the catalog.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.name.capacity()
    }

    /// Bytes that were hashed, for tests.
    #[cfg(test)]
    pub(super) fn hashed_bytes(&self) -> u64 {
        self.hashed
    }

    /// Reads all complete pieces. `at_end`: what is left is damage.
    fn read(&mut self, at_end: bool) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let offset = self.offset + at as u64;
            let (used, damage) = match self.piece(rest, offset) {
                Read::Piece(len) => (len, None),
                Read::Skip(len, why) => (len, Some(why)),
                Read::Short if at_end => (MARKER.len().min(rest.len()), Some(Damaged::CutShort)),
                Read::Short => break,
            };
            if let Some(why) = damage {
                self.report.add(offset, used as u64, why);
            }
            at += used;
        }
        self.offset += at as u64;
        self.bytes = bytes;
        self.bytes.drain(..at);
    }

    /// Reads a piece at the start of the bytes.
    fn piece(&mut self, bytes: &[u8], offset: u64) -> Read {
        let next = |from: usize| find_marker(&bytes[from..]).map_or(bytes.len(), |at| from + at);
        if find_marker(&bytes[..bytes.len().min(MARKER.len())]) != Some(0) {
            return Read::Skip(next(1), Damaged::NotAPiece);
        }
        let Some((header, after)) = bytes.split_first_chunk() else { return Read::Short };
        let Some(header) = Header::read(header) else { return Read::Skip(next(1), Damaged::NotAPiece) };
        let Some(body) = after.get(..header.len) else { return Read::Short };
        let whole = HEADER_BYTES + header.len;
        self.hashed += whole as u64;
        if !header.fits(body) {
            // Pieces may begin within a body of which a part is missing.
            let may_search = self.hashed <= (offset + whole as u64) * HASHED_MAX;
            return Read::Skip(if may_search { next(1).min(whole) } else { whole }, Damaged::Checksum);
        }
        if self.expected < header.number {
            self.report.add(offset, 0, Damaged::Missing);
        }
        self.expected = header.number.saturating_add(1);
        if header.version != SAVED_VERSION {
            return Read::Skip(whole, Damaged::Unknown);
        }
        self.report.pieces += 1;
        let read = match header.kind {
            kind if kind == Kind::Begin as u8 => self.begin_piece(Rest(body)),
            kind if kind == Kind::Names as u8 => self.names(Rest(body)),
            kind if kind == Kind::Changes as u8 => self.changes(Rest(body)),
            kind if kind == Kind::End as u8 => {
                self.report.ended = true;
                Some(())
            }
            _ => return Read::Skip(whole, Damaged::Unknown),
        };
        if read.is_some() { Read::Piece(whole) } else { Read::Skip(whole, Damaged::Records) }
    }

    fn begin_piece(&mut self, mut body: Rest<'_>) -> Option<()> {
        let kind = match body.byte()? {
            SNAPSHOT => SavedKind::Snapshot,
            JOURNAL => SavedKind::Journal,
            _ => return None,
        };
        let generation = body.u64_le()?;
        (self.report.kind, self.report.generation) = (Some(kind), Some(generation));
        // Older snapshots do not have the sizes, and journals have none.
        let sizes = [body.varint(), body.varint(), body.varint(), body.varint()];
        self.catalog.reserve(sizes.map(Option::unwrap_or_default));
        Some(())
    }

    fn names(&mut self, mut body: Rest<'_>) -> Option<()> {
        let mut id = 0u32;
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        while !body.is_empty() {
            id = id.checked_add(body.varint()?)?;
            let shared = usize::from(body.byte()?);
            let len = body.varint()? as usize;
            let rest = body.take(len)?;
            if shared > name.len() || shared + len > NAME_BYTES_MAX {
                return None;
            }
            name.truncate(shared);
            name.extend_from_slice(rest);
            self.put(id, &name);
        }
        self.name = name;
        Some(())
    }

    fn changes(&mut self, mut body: Rest<'_>) -> Option<()> {
        while !body.is_empty() {
            match body.byte()? {
                PUT => {
                    let id = body.varint()?;
                    let len = body.varint()? as usize;
                    self.put(id, body.take(len)?);
                }
                GONE => {
                    let id = body.varint()?;
                    self.report.went += u64::from(self.catalog.remove_id(SeriesId(id)));
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn put(&mut self, id: u32, name: &[u8]) {
        match self.catalog.put(SeriesId(id), name) {
            Ok(()) => self.report.came += 1,
            Err(_) => self.report.refused += 1,
        }
    }
}

/// What is at the start of some bytes.
enum Read {
    /// A piece of this length.
    Piece(usize),
    /// Bytes that cannot be used.
    Skip(usize, Damaged),
    /// The start of a piece.
    Short,
}

/// Where a marker begins, or the first part of one at the end.
fn find_marker(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == MARKER[0]) {
        let rest = &bytes[from + at..];
        let len = rest.len().min(MARKER.len());
        if rest[..len] == MARKER[..len] {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}
