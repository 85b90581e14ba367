//! gzip: concatenated members (RFC 1952), decompressed as the bytes arrive.
//!
//! Invariant: memory of a member is only what deflate needs: a window of the last 32 KiB of output.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use crate::steps::touch;

use super::format::{Compression, CompressionError};
use super::step::{DECOMPRESSED_BYTES_MAX, Step, gather, le32};

/// Longest header of a member: its text fields have no limit of their own.
const HEADER_BYTES_MAX: usize = 128 * 1024;

/// Compressed bytes that one step takes at most: an empty block has ten bits, and costs as much as decompressing 500
/// bytes.
const INPUT_BYTES_MAX: usize = 512;

/// Output buffer of the first step of a member. The buffer has to be cleared, so a member of twenty bytes must not cost
/// 64 KiB. A step that fills its buffer doubles the next one; a step that does not shrinks it to the bytes used.
const ROOM_BYTES_MIN: usize = 2 * 1024;

const CHECKSUM: u8 = 2;
const EXTRA: u8 = 4;
const NAME: u8 = 8;
const COMMENT: u8 = 16;
const RESERVED: u8 = 0xe0;

/// The part of a member that is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Ten bytes.
    Fixed,
    ExtraLength,
    /// The extra field: this many bytes of it are left.
    Extra(usize),
    /// The name, up to a NUL.
    Name,
    Comment,
    HeaderChecksum,
    Body,
    Trailer,
}

pub(super) struct Inflater {
    part: Part,
    /// Which parts the header has.
    flags: u8,
    header_bytes: usize,
    /// A part of fixed length that arrived in pieces.
    held: Vec<u8>,
    inflate: Decompress,
    crc: Crc,
    /// Room of the next step.
    room_bytes: usize,
    /// Compressed bytes that the last step took.
    body_bytes: usize,
}

impl Default for Inflater {
    fn default() -> Inflater {
        Inflater {
            part: Part::Fixed,
            flags: 0,
            header_bytes: 0,
            held: Vec::with_capacity(10),
            inflate: Decompress::new(false),
            crc: Crc::new(),
            room_bytes: ROOM_BYTES_MIN,
            body_bytes: 0,
        }
    }
}

impl Inflater {
    /// Bytes buffered, for the property checks.
    #[cfg(any(test, feature = "reference"))]
    pub(super) fn bytes(&self) -> usize {
        self.held.len()
    }

    /// True right after the end of a member.
    pub(super) fn has_ended_member(&self) -> bool {
        self.part == Part::Fixed && self.header_bytes == 1 && self.held.is_empty()
    }

    /// Compressed bytes that the last step took, which may be empty blocks.
    pub(super) fn body_bytes(&self) -> usize {
        self.body_bytes
    }

    /// Processes more of `input`, filling `out` up to `max`.
    pub(super) fn step(&mut self, input: &[u8], out: &mut Vec<u8>, max: usize) -> Step {
        self.body_bytes = 0;
        if self.part == Part::Body {
            return self.body(input, out, max);
        }
        if input.is_empty() {
            return Ok(None);
        }
        if self.part == Part::Trailer {
            return self.trailer(input).map(Some);
        }
        let used = self.header(input)?;
        self.header_bytes += used;
        if self.header_bytes > HEADER_BYTES_MAX {
            Err(CompressionError::BlockTooLong)
        } else {
            Ok(Some(used))
        }
    }

    fn header(&mut self, input: &[u8]) -> Result<usize, CompressionError> {
        match self.part {
            Part::Fixed => self.fixed(input),
            Part::ExtraLength => {
                let used = gather(&mut self.held, input, 2);
                if self.held.len() == 2 {
                    let len = usize::from(self.held[0]) | usize::from(self.held[1]) << 8;
                    self.held.clear();
                    self.part = Part::Extra(len);
                    if len == 0 {
                        self.part = self.behind(EXTRA);
                    }
                }
                Ok(used)
            }
            Part::Extra(left) => {
                let used = left.min(input.len());
                self.part = if used == left { self.behind(EXTRA) } else { Part::Extra(left - used) };
                Ok(used)
            }
            Part::Name => Ok(self.text(input, NAME)),
            Part::Comment => Ok(self.text(input, COMMENT)),
            Part::HeaderChecksum => {
                let used = gather(&mut self.held, input, 2);
                if self.held.len() == 2 {
                    self.held.clear();
                    self.part = Part::Body;
                }
                Ok(used)
            }
            Part::Body | Part::Trailer => Ok(0),
        }
    }

    fn fixed(&mut self, input: &[u8]) -> Result<usize, CompressionError> {
        // Some files are padded with NULs.
        if self.held.is_empty() && self.header_bytes > 0 && input.first() == Some(&0) {
            return Ok(1);
        }
        let used = gather(&mut self.held, input, 10);
        // Checked at the first byte: a client that sends plain lines by mistake may send only a few.
        if !b"\x1f\x8b\x08".starts_with(&self.held[..self.held.len().min(3)]) {
            return Err(CompressionError::WrongFormat(Compression::Gzip));
        }
        if self.held.len() == 10 {
            self.flags = self.held[3];
            self.held.clear();
            if self.flags & RESERVED != 0 {
                return Err(CompressionError::Unsupported);
            }
            self.part = self.behind(0);
        }
        Ok(used)
    }

    /// The part that follows the part with this flag; 0 means the fixed part.
    fn behind(&self, flag: u8) -> Part {
        let parts = [
            (EXTRA, Part::ExtraLength),
            (NAME, Part::Name),
            (COMMENT, Part::Comment),
            (CHECKSUM, Part::HeaderChecksum),
        ];
        // The order of this list is the order of the parts, whatever the flags.
        let at = parts.iter().position(|(known, _)| *known == flag).map_or(0, |at| at + 1);
        let next = parts[at..].iter().find(|(known, _)| self.flags & known != 0);
        next.map_or(Part::Body, |(_, part)| *part)
    }

    fn text(&mut self, input: &[u8], flag: u8) -> usize {
        match memchr::memchr(0, input) {
            Some(at) => {
                self.part = self.behind(flag);
                at + 1
            }
            None => input.len(),
        }
    }

    fn body(&mut self, input: &[u8], out: &mut Vec<u8>, max: usize) -> Step {
        let start = out.len();
        let before = (self.inflate.total_in(), self.inflate.total_out());
        let room = self.room_bytes.min(max - start);
        let input = &input[..input.len().min(INPUT_BYTES_MAX)];
        touch(room);
        out.resize(start + room, 0);
        let status = self.inflate.decompress(input, &mut out[start..], FlushDecompress::None);
        let used = (self.inflate.total_in() - before.0) as usize;
        out.truncate(start + (self.inflate.total_out() - before.1) as usize);
        self.crc.update(&out[start..]);
        let given = out.len() - start;
        self.room_bytes = if given == room { 2 * room } else { given.next_power_of_two() };
        self.room_bytes = self.room_bytes.clamp(ROOM_BYTES_MIN, DECOMPRESSED_BYTES_MAX);
        self.body_bytes = used;
        match status {
            Ok(Status::StreamEnd) => self.part = Part::Trailer,
            Ok(_) if used == 0 && out.len() == start => return Ok(None),
            Ok(_) => {}
            Err(_damaged) => return Err(CompressionError::Corrupt),
        }
        Ok(Some(used))
    }

    fn trailer(&mut self, input: &[u8]) -> Result<usize, CompressionError> {
        let used = gather(&mut self.held, input, 8);
        if self.held.len() == 8 {
            let length = self.inflate.total_out() as u32;
            if le32(&self.held) != self.crc.sum() || le32(&self.held[4..]) != length {
                return Err(CompressionError::Checksum);
            }
            self.held.clear();
            self.inflate.reset(false);
            self.crc.reset();
            self.room_bytes = ROOM_BYTES_MIN;
            // Not 0: NULs are allowed before the next member.
            (self.part, self.header_bytes) = (Part::Fixed, 1);
        }
        Ok(used)
    }
}
