//! snappy: bare blocks behind each other, or its framing format, which says so in its first ten bytes.
//!
//! A bare block says how long it is unpacked and not how long it is itself. Where it ends is where its elements have given
//! that many bytes, which adding them up finds out.
//! Invariant: memory is taken for blocks that have come whole, and for no more than they unpack to.

use snap::raw::{Decoder, max_compress_len};

use super::{BLOCK_BYTES_MAX, Broken, Compression, KEPT_BYTES_MAX, Ready, Step, gather, le32};

const IDENTIFIER: &[u8; 10] = b"\xff\x06\x00\x00sNaPpY";

/// Longest chunk of the framing format, unpacked.
const CHUNK_BYTES_MAX: usize = 64 * 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// It is not known yet which of the two it is.
    #[default]
    Begin,
    /// Kind and length of a chunk.
    ChunkHeader,
    Chunk(u8, usize),
    /// Of a chunk that means nothing to us, so many bytes are left.
    Skip(usize),
    /// A bare block.
    Block,
}

#[derive(Default)]
pub(super) struct Blocks {
    part: Part,
    /// A part that came in pieces.
    held: Vec<u8>,
    walk: Walk,
    decoder: Decoder,
    ready: Ready,
}

/// Where the search for the end of a bare block has got.
#[derive(Clone, Copy, Debug, Default)]
struct Walk {
    /// Up to here.
    at: usize,
    /// Bytes that the elements before it give.
    given: usize,
    /// Bytes that all of them give, once that is known.
    len: Option<usize>,
}

impl Blocks {
    pub(super) fn memory_bytes(&self) -> usize {
        self.held.capacity() + self.ready.bytes.capacity()
    }

    /// What it holds, for the promises.
    #[cfg(any(test, feature = "reference"))]
    pub(super) fn bytes(&self) -> usize {
        self.held.len() + self.ready.bytes.len()
    }

    /// Goes on with `input`, filling `out` up to `max`.
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
                    self.unpack_chunk(kind)?;
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

    /// True in the middle of what cannot be unpacked without its rest.
    pub(super) fn is_within(&self) -> bool {
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

    fn unpack_chunk(&mut self, kind: u8) -> Result<(), Broken> {
        if kind == 0xff {
            return if self.held == IDENTIFIER[4..] {
                Ok(())
            } else {
                Err(Broken::NotIt(Compression::Snappy))
            };
        }
        let (check, data) = self.held.split_at(4);
        if kind == 1 {
            self.ready.room(data.len()).copy_from_slice(data);
        } else {
            let len = snap::raw::decompress_len(data).map_err(|_damaged| Broken::Damaged)?;
            if len > CHUNK_BYTES_MAX {
                return Err(Broken::TooLong);
            }
            unpack(&mut self.decoder, data, self.ready.room(len))?;
        }
        if masked(crc32c(&self.ready.bytes)) != le32(check) {
            self.ready.room(0);
            return Err(Broken::Checksum);
        }
        Ok(())
    }

    fn block(&mut self, input: &[u8]) -> Step {
        if self.held.is_empty() {
            // Most blocks come whole.
            if let Some(end) = self.walk.go_on(input)? {
                self.unpack_block(input, end)?;
                return Ok(Some(end));
            }
        }
        // What the beginning looked at may hold more than this block.
        let before = self.held.len();
        self.held.extend_from_slice(input);
        let Some(end) = self.walk.go_on(&self.held)? else {
            let most = self.walk.len.map_or(usize::MAX, max_compress_len);
            let stuck = input.is_empty();
            let ours = if stuck { None } else { Some(input.len()) };
            return if self.held.len() > most { Err(Broken::Damaged) } else { Ok(ours) };
        };
        let mut held = std::mem::take(&mut self.held);
        self.unpack_block(&held, end)?;
        held.truncate(before);
        held.drain(..end.min(before));
        held.shrink_to(KEPT_BYTES_MAX);
        self.held = held;
        Ok(Some(end.saturating_sub(before)))
    }

    fn unpack_block(&mut self, held: &[u8], end: usize) -> Result<(), Broken> {
        let walk = std::mem::take(&mut self.walk);
        let unpacked = unpack(&mut self.decoder, &held[..end], self.ready.room(walk.given));
        if unpacked.is_err() {
            self.ready.room(0);
        }
        unpacked
    }
}

impl Walk {
    /// The end of the block that `held` begins with, if it is there.
    fn go_on(&mut self, held: &[u8]) -> Result<Option<usize>, Broken> {
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
            true => Err(Broken::Damaged),
            // The literals of the last element may be still to come.
            false => Ok((self.at <= held.len()).then_some(self.at)),
        }
    }
}

/// Length of the block, and where its elements begin.
fn varint(held: &[u8]) -> Result<Option<(usize, usize)>, Broken> {
    let mut len = 0_u64;
    for (at, byte) in held.iter().take(5).enumerate() {
        len |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return match usize::try_from(len) {
                Ok(len) if len <= BLOCK_BYTES_MAX => Ok(Some((len, at + 1))),
                _ => Err(Broken::TooLong),
            };
        }
    }
    if held.len() < 5 { Ok(None) } else { Err(Broken::NotIt(Compression::Snappy)) }
}

/// Bytes of the next element, and how many it gives.
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

fn chunk(kind: u8, size: usize) -> Result<Part, Broken> {
    let most = match kind {
        0 => 4 + max_compress_len(CHUNK_BYTES_MAX),
        1 => 4 + CHUNK_BYTES_MAX,
        0xff => IDENTIFIER.len() - 4,
        0x80..=0xfe => return Ok(if size == 0 { Part::ChunkHeader } else { Part::Skip(size) }),
        _ => return Err(Broken::Unknown),
    };
    match size {
        _ if size > most => Err(Broken::TooLong),
        _ if size < 4 => Err(Broken::Damaged),
        _ => Ok(Part::Chunk(kind, size)),
    }
}

fn unpack(decoder: &mut Decoder, packed: &[u8], room: &mut [u8]) -> Result<(), Broken> {
    match decoder.decompress(packed, room) {
        Ok(len) if len == room.len() => Ok(()),
        _ => Err(Broken::Damaged),
    }
}

/// As the framing format stores it.
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
