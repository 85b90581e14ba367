//! LZ4 frames behind each other, as they come, in the frame format 1.6 of its authors.
//!
//! Not here: what a block is made of (`lz4_flex`). Its own reader of frames wants to wait for bytes, and takes memory for
//! the longest block at the first byte of a frame.
//! Invariant: memory is taken for blocks that have come whole, and for no more than they unpack to.

use std::hash::Hasher;

use twox_hash::XxHash32;

use crate::cost::touch;

use super::{BLOCK_BYTES_MAX, Broken, Compression, KEPT_BYTES_MAX, Ready, Step, gather, le32};

const MAGIC: u32 = 0x184d_2204;

/// Of a frame that is to be passed over; the last four bits are free.
const SKIPPABLE: u32 = 0x184d_2a50;

/// How far back a block may reach into those before it.
const WINDOW_BYTES: usize = 64 * 1024;

/// What stands before the window, at most: it moves when that is full, and not for each block, however small they are.
const SLIDE_BYTES: usize = 16 * 1024;

/// Of a block's size: it is not packed.
const STORED: u32 = 1 << 31;

/// What of a frame is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Magic,
    SkipLength,
    /// So many bytes are left.
    Skip(usize),
    /// The two bytes that say what the frame's header has.
    Flags,
    /// All of the header behind the magic number.
    Header,
    BlockSize,
    Block(u32),
    Checksum,
}

#[derive(Default)]
pub(super) struct Frames {
    part: Part,
    /// A part that came in pieces.
    held: Vec<u8>,
    frame: Frame,
    /// What the blocks of the frame gave last, where they lean on each other.
    window: Vec<u8>,
    ready: Ready,
}

/// What the header of a frame says.
#[derive(Default)]
struct Frame {
    linked: bool,
    block_checksums: bool,
    /// Of all that it gives.
    checksum: Option<XxHash32>,
    block_bytes_max: usize,
    header_bytes: usize,
}

impl Frames {
    pub(super) fn memory_bytes(&self) -> usize {
        self.held.capacity() + self.window.capacity() + self.ready.bytes.capacity()
    }

    /// What it holds, for the promises.
    #[cfg(any(test, feature = "reference"))]
    pub(super) fn bytes(&self) -> usize {
        self.held.len() + self.window.len() + self.ready.bytes.len()
    }

    /// Goes on with `input`, filling `out` up to `max`.
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
            return Err(Broken::NotIt(Compression::Lz4));
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

    /// True in the middle of what cannot be unpacked without its rest.
    pub(super) fn is_within(&self) -> bool {
        matches!(self.part, Part::Block(_)) || !self.held.is_empty()
    }

    /// Bytes of the part that is next.
    fn wanted(&self) -> usize {
        match self.part {
            Part::Flags => 2,
            Part::Header => self.frame.header_bytes,
            Part::Block(size) => (size & !STORED) as usize + if self.frame.block_checksums { 4 } else { 0 },
            _ => 4,
        }
    }

    /// Told at the first byte: who sends lines where frames are expected may send a few only.
    fn may_begin(&self) -> bool {
        let skippable = (0..16).any(|n| (SKIPPABLE + n).to_le_bytes().starts_with(&self.held));
        skippable || MAGIC.to_le_bytes().starts_with(&self.held)
    }

    /// A part is there. Gives the next one.
    fn whole(&mut self) -> Result<Part, Broken> {
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
                    return Err(Broken::Checksum);
                }
                self.window = Vec::new();
                Part::BlockSize
            }
            Part::BlockSize => match le32(&self.held) {
                0 if self.frame.checksum.is_some() => Part::Checksum,
                0 => Part::Magic,
                size if (size & !STORED) as usize > self.frame.block_bytes_max => {
                    return Err(Broken::TooLong);
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
                    return Err(Broken::Checksum);
                }
                Part::Magic
            }
        })
    }

    fn block(&mut self, size: u32) -> Result<(), Broken> {
        let Frames { held, frame, window, ready, .. } = self;
        let (packed, check) = held.split_at((size & !STORED) as usize);
        if frame.block_checksums && xxh32(packed) != le32(check) {
            return Err(Broken::Checksum);
        }
        if size & STORED != 0 {
            ready.room(packed.len()).copy_from_slice(packed);
        } else {
            let len = unpacked_bytes(packed, frame.block_bytes_max)?;
            let room = ready.room(len);
            let given = lz4_flex::block::decompress_into_with_dict(packed, room, window);
            if !given.is_ok_and(|given| given == len) {
                ready.room(0);
                return Err(Broken::Damaged);
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
    fn begin(flags: u8, block: u8) -> Result<Frame, Broken> {
        let has = |bit: u8| flags & 1 << bit != 0;
        // Version 1, nothing of what is reserved, and no dictionary: nobody could say which.
        let known = flags >> 6 == 1 && !has(1) && !has(0) && block & 0x8f == 0;
        let block_bytes_max = match block >> 4 {
            4 => 64 << 10,
            5 => 256 << 10,
            6 => 1 << 20,
            7 => BLOCK_BYTES_MAX,
            _ => return Err(Broken::Unknown),
        };
        if !known {
            return Err(Broken::Unknown);
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

/// Puts `last` behind the window; of both together [`WINDOW_BYTES`] count.
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

/// What a block unpacks to, by adding up its sequences: a run of literals, and a match.
fn unpacked_bytes(packed: &[u8], max: usize) -> Result<usize, Broken> {
    let mut at = 0;
    let mut len = 0;
    let length = |nibble: u8, at: &mut usize| -> Option<usize> {
        let mut length = usize::from(nibble);
        // The largest nibble, and each byte of 255, mean that another one is added.
        let mut goes_on = nibble == 15;
        while goes_on {
            let more = *packed.get(*at)?;
            *at += 1;
            length += usize::from(more);
            goes_on = more == 255;
        }
        Some(length)
    };
    while let Some(token) = packed.get(at) {
        at += 1;
        let literals = length(token >> 4, &mut at).ok_or(Broken::Damaged)?;
        at += literals;
        len += literals;
        if at < packed.len() {
            // Behind the offset; the shortest match is of 4 bytes.
            at += 2;
            len += 4 + length(token & 15, &mut at).ok_or(Broken::Damaged)?;
        }
        if len > max {
            return Err(Broken::TooLong);
        }
    }
    Ok(len)
}
