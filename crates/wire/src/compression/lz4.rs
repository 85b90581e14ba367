//! LZ4: concatenated frames, decompressed as the bytes arrive (LZ4 frame format 1.6).
//!
//! Not here: decoding a block (`lz4_flex`). That library's own frame reader blocks on input, and allocates the
//! longest block at the first byte of a frame.
//! Invariant: memory is allocated only for blocks that have arrived completely, and only for their decompressed size.

use std::hash::Hasher;

use twox_hash::XxHash32;

use crate::steps::touch;

use super::format::{Compression, CompressionError};
use super::step::{BLOCK_BYTES_MAX, KEPT_BYTES_MAX, Ready, Step, gather, le32};

const MAGIC: u32 = 0x184d_2204;

/// Magic number of a skippable frame; the last four bits are free.
const SKIPPABLE: u32 = 0x184d_2a50;

/// How far back a block may refer to earlier blocks.
const WINDOW_BYTES: usize = 64 * 1024;

/// Most bytes kept before the window: the window moves when these are full, and not for each block, however small.
const SLIDE_BYTES: usize = 16 * 1024;

/// Flag in a block's size: the block is not compressed.
const STORED: u32 = 1 << 31;

/// The part of a frame that is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Magic,
    SkipLength,
    /// A skippable frame: this many bytes are left.
    Skip(usize),
    /// The two bytes of flags, which say what the header contains.
    Flags,
    /// The rest of the header after the magic number.
    Header,
    BlockSize,
    Block(u32),
    Checksum,
}

#[derive(Default)]
pub(super) struct Frames {
    part: Part,
    /// A part that arrived in pieces.
    held: Vec<u8>,
    frame: Frame,
    /// The last output of the frame, for linked blocks.
    window: Vec<u8>,
    ready: Ready,
}

/// The header of a frame.
#[derive(Default)]
struct Frame {
    linked: bool,
    block_checksums: bool,
    /// Checksum of the frame's content.
    checksum: Option<XxHash32>,
    block_bytes_max: usize,
    header_bytes: usize,
}

impl Frames {
    pub(super) fn memory_bytes(&self) -> usize {
        self.held.capacity() + self.window.capacity() + self.ready.bytes.capacity()
    }

    /// Bytes buffered, for the property checks.
    #[cfg(any(test, feature = "reference"))]
    pub(super) fn bytes(&self) -> usize {
        self.held.len() + self.window.len() + self.ready.bytes.len()
    }

    /// Processes more of `input`, filling `out` up to `max`.
    pub(super) fn step(&mut self, input: &[u8], out: &mut Vec<u8>, max: usize) -> Step {
        if !self.ready.is_empty() {
            self.ready.give(out, max);
            return Ok(Some(0));
        }
        if let Part::Skip(left) = self.part {
            let used = left.min(input.len());
            self.part = if used == left { Part::Magic } else { Part::Skip(left - used) };
            return Ok((left == 0 || used > 0).then_some(used));
        }
        let want = self.wanted();
        if self.held.len() < want && input.is_empty() {
            return Ok(None);
        }
        let used = gather(&mut self.held, input, want);
        if self.part == Part::Magic && !self.may_begin() {
            return Err(CompressionError::WrongFormat(Compression::Lz4));
        }
        if self.held.len() == want {
            self.part = self.whole()?;
            if self.part != Part::Header {
                self.held.clear();
                self.held.shrink_to(KEPT_BYTES_MAX);
            }
        }
        Ok(Some(used))
    }

    /// True when the stream must not end here: a part is incomplete.
    pub(super) fn is_incomplete(&self) -> bool {
        matches!(self.part, Part::Block(_)) || !self.held.is_empty()
    }

    /// Bytes of the next part.
    fn wanted(&self) -> usize {
        match self.part {
            Part::Flags => 2,
            Part::Header => self.frame.header_bytes,
            Part::Block(size) => (size & !STORED) as usize + if self.frame.block_checksums { 4 } else { 0 },
            _ => 4,
        }
    }

    /// Checked at the first byte: a client that sends plain lines by mistake may send only a few.
    fn may_begin(&self) -> bool {
        let skippable = (0..16).any(|n| (SKIPPABLE + n).to_le_bytes().starts_with(&self.held));
        skippable || MAGIC.to_le_bytes().starts_with(&self.held)
    }

    /// Processes a complete part. Returns the next one.
    fn whole(&mut self) -> Result<Part, CompressionError> {
        Ok(match self.part {
            Part::Magic if le32(&self.held) == MAGIC => Part::Flags,
            Part::Magic => Part::SkipLength,
            Part::SkipLength => Part::Skip(le32(&self.held) as usize),
            Part::Skip(_) => Part::Magic,
            Part::Flags => {
                self.frame = Frame::begin(self.held[0], self.held[1])?;
                Part::Header
            }
            Part::Header => {
                let (described, check) = self.held.split_at(self.held.len() - 1);
                if (xxh32(described) >> 8) as u8 != check[0] {
                    return Err(CompressionError::Checksum);
                }
                self.window = Vec::new();
                Part::BlockSize
            }
            Part::BlockSize => match le32(&self.held) {
                0 if self.frame.checksum.is_some() => Part::Checksum,
                0 => Part::Magic,
                size if (size & !STORED) as usize > self.frame.block_bytes_max => {
                    return Err(CompressionError::BlockTooLong);
                }
                size => Part::Block(size),
            },
            Part::Block(size) => {
                self.block(size)?;
                Part::BlockSize
            }
            Part::Checksum => {
                let checksum = self.frame.checksum.take().map_or(0, |hash| hash.finish() as u32);
                if le32(&self.held) != checksum {
                    return Err(CompressionError::Checksum);
                }
                Part::Magic
            }
        })
    }

    fn block(&mut self, size: u32) -> Result<(), CompressionError> {
        let Frames { held, frame, window, ready, .. } = self;
        let (compressed, check) = held.split_at((size & !STORED) as usize);
        if frame.block_checksums && xxh32(compressed) != le32(check) {
            return Err(CompressionError::Checksum);
        }
        if size & STORED != 0 {
            ready.room(compressed.len()).copy_from_slice(compressed);
        } else {
            let len = decompressed_bytes(compressed, frame.block_bytes_max)?;
            let room = ready.room(len);
            let given = lz4_flex::block::decompress_into_with_dict(compressed, room, window);
            if !given.is_ok_and(|given| given == len) {
                ready.room(0);
                return Err(CompressionError::Corrupt);
            }
        }
        if let Some(checksum) = &mut frame.checksum {
            checksum.write(&ready.bytes);
        }
        if frame.linked {
            let last = &ready.bytes[ready.bytes.len().saturating_sub(WINDOW_BYTES)..];
            slide(window, last);
        }
        Ok(())
    }
}

impl Frame {
    fn begin(flags: u8, block: u8) -> Result<Frame, CompressionError> {
        let has = |bit: u8| flags & 1 << bit != 0;
        // Version 1, no reserved bits, and no dictionary: there is no way to say which one.
        let known = flags >> 6 == 1 && !has(1) && !has(0) && block & 0x8f == 0;
        let block_bytes_max = match block >> 4 {
            4 => 64 << 10,
            5 => 256 << 10,
            6 => 1 << 20,
            7 => BLOCK_BYTES_MAX,
            _ => return Err(CompressionError::Unsupported),
        };
        if !known {
            return Err(CompressionError::Unsupported);
        }
        Ok(Frame {
            linked: !has(5),
            block_checksums: has(4),
            checksum: has(2).then(|| XxHash32::with_seed(0)),
            block_bytes_max,
            // Flags, the content's size, and a checksum.
            header_bytes: if has(3) { 11 } else { 3 },
        })
    }
}

/// Appends `last` to the window, which keeps [`WINDOW_BYTES`] of both.
fn slide(window: &mut Vec<u8>, last: &[u8]) {
    let len = window.len() + last.len();
    if len > WINDOW_BYTES + SLIDE_BYTES {
        touch(window.len());
        window.drain(..len - WINDOW_BYTES);
    } else if len > window.capacity() {
        let room = (2 * window.capacity()).max(len).min(WINDOW_BYTES + SLIDE_BYTES);
        window.reserve_exact(room - window.len());
    }
    touch(last.len());
    window.extend_from_slice(last);
}

fn xxh32(bytes: &[u8]) -> u32 {
    XxHash32::oneshot(0, bytes)
}

/// The decompressed size of a block: the sum over its sequences of literals and matches.
fn decompressed_bytes(compressed: &[u8], max: usize) -> Result<usize, CompressionError> {
    let mut at = 0;
    let mut len = 0;
    let length = |nibble: u8, at: &mut usize| -> Option<usize> {
        let mut length = usize::from(nibble);
        // The largest nibble, and each byte of 255, mean that another byte is added.
        let mut goes_on = nibble == 15;
        while goes_on {
            let more = *compressed.get(*at)?;
            *at += 1;
            length += usize::from(more);
            goes_on = more == 255;
        }
        Some(length)
    };
    while let Some(token) = compressed.get(at) {
        at += 1;
        let literals = length(token >> 4, &mut at).ok_or(CompressionError::Corrupt)?;
        at += literals;
        len += literals;
        if at < compressed.len() {
            // After the offset. The shortest match has 4 bytes.
            at += 2;
            len += 4 + length(token & 15, &mut at).ok_or(CompressionError::Corrupt)?;
        }
        if len > max {
            return Err(CompressionError::BlockTooLong);
        }
    }
    Ok(len)
}
