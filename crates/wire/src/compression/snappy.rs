//! snappy: concatenated raw blocks, or the framing format, which is detected by its first ten bytes.
//!
//! A raw block starts with its decompressed length and has no compressed length. It ends where its elements have
//! produced that many bytes, so the elements are added up to find the end.
//! Invariant: memory is allocated only for blocks that have arrived completely, and only for their decompressed size.

use snap::raw::{Decoder, max_compress_len};

use super::format::{Compression, CompressionError};
use super::step::{BLOCK_BYTES_MAX, KEPT_BYTES_MAX, Ready, Step, gather, le32};

const IDENTIFIER: &[u8; 10] = b"\xff\x06\x00\x00sNaPpY";

/// Longest chunk of the framing format, decompressed.
const CHUNK_BYTES_MAX: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// The format is not detected yet.
    #[default]
    Begin,
    /// Kind and length of a chunk.
    ChunkHeader,
    Chunk(u8, usize),
    /// A chunk to skip: this many bytes are left.
    Skip(usize),
    /// A raw block.
    Block,
}

#[derive(Default)]
pub(super) struct Blocks {
    part: Part,
    /// A part that arrived in pieces.
    held: Vec<u8>,
    walk: Walk,
    decoder: Decoder,
    ready: Ready,
}

/// Progress of the search for the end of a raw block.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    /// Offset of the next element.
    at: usize,
    /// Decompressed bytes of the elements before it.
    given: usize,
    /// Decompressed bytes of the whole block, once known.
    len: Option<usize>,
}

impl Blocks {
    pub(super) fn memory_bytes(&self) -> usize {
        self.held.capacity() + self.ready.bytes.capacity()
    }

    /// Bytes buffered, for the property checks.
    #[cfg(any(test, feature = "reference"))]
    pub(super) fn bytes(&self) -> usize {
        self.held.len() + self.ready.bytes.len()
    }

    /// Processes more of `input`, filling `out` up to `max`.
    pub(super) fn step(&mut self, input: &[u8], out: &mut Vec<u8>, max: usize) -> Step {
        if !self.ready.is_empty() {
            self.ready.give(out, max);
            return Ok(Some(0));
        }
        if self.part == Part::Block {
            return self.block(input);
        }
        if input.is_empty() {
            return Ok(None);
        }
        Ok(Some(match self.part {
            Part::Begin => self.begin(input),
            Part::Skip(left) => {
                let used = left.min(input.len());
                self.part = if used == left { Part::ChunkHeader } else { Part::Skip(left - used) };
                used
            }
            Part::Chunk(kind, size) => {
                let used = gather(&mut self.held, input, size);
                if self.held.len() == size {
                    self.decompress_chunk(kind)?;
                    self.held = Vec::new();
                    self.part = Part::ChunkHeader;
                }
                used
            }
            _ => {
                let used = gather(&mut self.held, input, 4);
                if self.held.len() == 4 {
                    self.part = chunk(self.held[0], (le32(&self.held) >> 8) as usize)?;
                    self.held.clear();
                }
                used
            }
        }))
    }

    /// True when the stream must not end here: a part is incomplete.
    pub(super) fn is_incomplete(&self) -> bool {
        matches!(self.part, Part::Chunk(..)) || !self.held.is_empty()
    }

    fn begin(&mut self, input: &[u8]) -> usize {
        let used = gather(&mut self.held, input, IDENTIFIER.len());
        if !IDENTIFIER.starts_with(&self.held) {
            self.part = Part::Block;
        } else if self.held.len() == IDENTIFIER.len() {
            self.held.clear();
            self.part = Part::ChunkHeader;
        }
        used
    }

    fn decompress_chunk(&mut self, kind: u8) -> Result<(), CompressionError> {
        if kind == 0xff {
            return if self.held == IDENTIFIER[4..] {
                Ok(())
            } else {
                Err(CompressionError::WrongFormat(Compression::Snappy))
            };
        }
        let (check, data) = self.held.split_at(4);
        if kind == 1 {
            self.ready.room(data.len()).copy_from_slice(data);
        } else {
            let len = snap::raw::decompress_len(data).map_err(|_damaged| CompressionError::Corrupt)?;
            if len > CHUNK_BYTES_MAX {
                return Err(CompressionError::BlockTooLong);
            }
            decompress(&mut self.decoder, data, self.ready.room(len))?;
        }
        if masked(crc32c(&self.ready.bytes)) != le32(check) {
            self.ready.room(0);
            return Err(CompressionError::Checksum);
        }
        Ok(())
    }

    fn block(&mut self, input: &[u8]) -> Step {
        if self.held.is_empty() {
            // Most blocks arrive completely.
            if let Some(end) = self.walk.go_on(input)? {
                self.decompress_block(input, end)?;
                return Ok(Some(end));
            }
        }
        // The bytes buffered for detection may contain more than this block.
        let before = self.held.len();
        self.held.extend_from_slice(input);
        let Some(end) = self.walk.go_on(&self.held)? else {
            let most = self.walk.len.map_or(usize::MAX, max_compress_len);
            let stuck = input.is_empty();
            let ours = if stuck { None } else { Some(input.len()) };
            return if self.held.len() > most { Err(CompressionError::Corrupt) } else { Ok(ours) };
        };
        let mut held = std::mem::take(&mut self.held);
        self.decompress_block(&held, end)?;
        held.truncate(before);
        held.drain(..end.min(before));
        held.shrink_to(KEPT_BYTES_MAX);
        self.held = held;
        Ok(Some(end.saturating_sub(before)))
    }

    fn decompress_block(&mut self, held: &[u8], end: usize) -> Result<(), CompressionError> {
        let walk = std::mem::take(&mut self.walk);
        let decompressed = decompress(&mut self.decoder, &held[..end], self.ready.room(walk.given));
        if decompressed.is_err() {
            self.ready.room(0);
        }
        decompressed
    }
}

impl Walk {
    /// The end of the block at the start of `held`, if it is there.
    fn go_on(&mut self, held: &[u8]) -> Result<Option<usize>, CompressionError> {
        let len = match self.len {
            Some(len) => len,
            None => {
                let Some((len, at)) = varint(held)? else { return Ok(None) };
                self.at = at;
                *self.len.insert(len)
            }
        };
        while self.given < len {
            let Some((bytes, gives)) = element(&held[self.at.min(held.len())..]) else { return Ok(None) };
            self.at += bytes;
            self.given += gives;
        }
        match self.given > len {
            true => Err(CompressionError::Corrupt),
            // The literals of the last element may be still to come.
            false => Ok((self.at <= held.len()).then_some(self.at)),
        }
    }
}

/// Length of the block, and the offset of its first element.
fn varint(held: &[u8]) -> Result<Option<(usize, usize)>, CompressionError> {
    let mut len = 0_u64;
    for (at, byte) in held.iter().take(5).enumerate() {
        len |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return match usize::try_from(len) {
                Ok(len) if len <= BLOCK_BYTES_MAX => Ok(Some((len, at + 1))),
                _ => Err(CompressionError::BlockTooLong),
            };
        }
    }
    if held.len() < 5 { Ok(None) } else { Err(CompressionError::WrongFormat(Compression::Snappy)) }
}

/// Compressed bytes of the next element, and its decompressed bytes.
fn element(held: &[u8]) -> Option<(usize, usize)> {
    let tag = *held.first()?;
    let upper = usize::from(tag >> 2);
    Some(match tag & 3 {
        0 if upper < 60 => (upper + 2, upper + 1),
        0 => {
            let more = upper - 59;
            let length = held.get(1..=more)?;
            let length = length.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte)) + 1;
            (1 + more + length, length)
        }
        1 => (2, 4 + (upper & 7)),
        2 => (3, upper + 1),
        _ => (5, upper + 1),
    })
}

fn chunk(kind: u8, size: usize) -> Result<Part, CompressionError> {
    let most = match kind {
        0 => 4 + max_compress_len(CHUNK_BYTES_MAX),
        1 => 4 + CHUNK_BYTES_MAX,
        0xff => IDENTIFIER.len() - 4,
        0x80..=0xfe => return Ok(if size == 0 { Part::ChunkHeader } else { Part::Skip(size) }),
        _ => return Err(CompressionError::Unsupported),
    };
    match size {
        _ if size > most => Err(CompressionError::BlockTooLong),
        _ if size < 4 => Err(CompressionError::Corrupt),
        _ => Ok(Part::Chunk(kind, size)),
    }
}

fn decompress(decoder: &mut Decoder, compressed: &[u8], room: &mut [u8]) -> Result<(), CompressionError> {
    match decoder.decompress(compressed, room) {
        Ok(len) if len == room.len() => Ok(()),
        _ => Err(CompressionError::Corrupt),
    }
}

/// The checksum as the framing format stores it.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32 with Castagnoli's polynomial.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |crc: u32, byte: &u8| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)];
    !bytes.iter().fold(!0, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = at as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
}
