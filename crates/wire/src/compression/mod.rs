//! Streams of lines made smaller on the wire, and back (spec graphite §2.8, §2.9).
//!
//! Path of a packed byte: a connection of `staunch` -> [`Decompressor::push`] -> **[`Decompressor::unpack`]** -> what was packed,
//! at most [`UNPACKED_BYTES_MAX`] at once, and with a bounded number of steps. And out: [`Compressor::push`] -> [`Compressor::flush`] -> the connection.
//! Not here: lines (`frame`), sockets, TLS.
//! Invariants: no bytes make it panic; whatever the ratio, an decompressor holds no more than what it was given last, one
//! block of [`BLOCK_BYTES_MAX`] packed and one unpacked; once all of it has been unpacked, it holds what the stream cannot go
//! on without: of gzip deflate's tables and window, of LZ4 a window of 64 KiB where blocks are linked, and
//! the block or chunk that has not come whole.

mod compress;
mod gzip;
mod lz4;
#[cfg(any(test, feature = "reference"))]
pub mod promises;
mod snappy;
#[cfg(test)]
mod tests;

pub use compress::{Compressor, FLUSH_BYTES};

use crate::cost::touch;

/// Most bytes that one call of [`Decompressor::unpack`] gives.
pub const UNPACKED_BYTES_MAX: usize = 64 * 1024;

/// Most work that one call of [`Decompressor::unpack`] does beside the bytes that it gives, as if it gave so many: members, frames
/// and blocks that hold nothing are not free.
const WORK_MAX: usize = UNPACKED_BYTES_MAX;

/// Work of a step towards unpacking.
const STEP_WORK: usize = 64;

/// The same of a step that ends a member of gzip: deflate's tables and its window are cleared for the next one, which takes as long
/// as unpacking so many bytes.
const MEMBER_WORK: usize = 2 * 1024;

/// Work of a packed byte of gzip. Deflate's blocks may hold nothing, and each has its tables made: 64 KiB of them take 90 ms. With
/// this a call goes over 2 KiB.
const BODY_WORK: usize = 32;

/// Longest block of LZ4 and snappy, unpacked: the longest that LZ4 knows.
pub const BLOCK_BYTES_MAX: usize = 4 << 20;

/// Memory that is kept for the next piece of a header: what blocks and reads take goes with them.
const KEPT_BYTES_MAX: usize = 64;

/// How the bytes of a stream are packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    Plain,
    /// gzip members behind each other.
    Gzip,
    /// LZ4 frames behind each other.
    Lz4,
    /// Blocks of snappy behind each other, or its frames.
    Snappy,
}

impl Compression {
    /// All of them.
    pub const ALL: [Compression; 4] =
        [Compression::Plain, Compression::Gzip, Compression::Lz4, Compression::Snappy];

    /// Its word in configs.
    pub fn word(self) -> &'static str {
        match self {
            Compression::Plain => "plain",
            Compression::Gzip => "gzip",
            Compression::Lz4 => "lz4",
            Compression::Snappy => "snappy",
        }
    }
}

/// Why a stream cannot be followed any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// These bytes do not begin what they should.
    NotIt(Compression),
    /// What was packed cannot be unpacked.
    Damaged,
    /// A checksum is another one.
    Checksum,
    /// A block is longer than it may be.
    TooLong,
    /// It uses what nobody here knows: a dictionary, or a version to come.
    Unknown,
    /// It ended within a block.
    Cut,
}

impl Broken {
    /// In words.
    pub fn why(self) -> &'static str {
        match self {
            Broken::NotIt(Compression::Gzip) => "this is not gzip",
            Broken::NotIt(Compression::Lz4) => "this is not an LZ4 frame",
            Broken::NotIt(_) => "this is not snappy",
            Broken::Damaged => "what was packed is damaged",
            Broken::Checksum => "a checksum does not fit",
            Broken::TooLong => "a block is longer than 4 MiB",
            Broken::Unknown => "it is packed in a way that is not known here",
            Broken::Cut => "it ended within a block",
        }
    }
}

/// Takes a packed stream apart.
pub struct Decompressor {
    /// What was pushed last, and how much of it is used.
    held: Vec<u8>,
    used: usize,
    kind: Kind,
    /// The last call filled its room, or did its share of work: there may be more without another byte.
    filled: bool,
    broken: Option<Broken>,
}

enum Kind {
    Gzip(Box<gzip::Inflater>),
    Lz4(Box<lz4::Frames>),
    Snappy(Box<snappy::Blocks>),
}

impl std::fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decompressor").field("held", &(self.held.len() - self.used)).finish_non_exhaustive()
    }
}

impl Decompressor {
    /// For a stream from its beginning; none for one that is not packed.
    pub fn new(compression: Compression) -> Option<Decompressor> {
        let kind = match compression {
            Compression::Plain => return None,
            Compression::Gzip => Kind::Gzip(Box::default()),
            Compression::Lz4 => Kind::Lz4(Box::default()),
            Compression::Snappy => Kind::Snappy(Box::default()),
        };
        Some(Decompressor { held: Vec::new(), used: 0, kind, filled: false, broken: None })
    }

    /// Takes what a connection gave. Everything before it should have been unpacked ([`Self::has_more`]), so that it holds
    /// one read only.
    pub fn push(&mut self, bytes: &[u8]) {
        touch(self.held.len() - self.used + bytes.len());
        self.held.drain(..self.used);
        self.used = 0;
        self.held.reserve_exact(bytes.len());
        self.held.extend_from_slice(bytes);
    }

    /// True while [`Self::unpack`] may give something without another push.
    pub fn has_more(&self) -> bool {
        self.broken.is_none() && (self.used < self.held.len() || self.filled)
    }

    /// Appends what can be unpacked to `out`, at most [`UNPACKED_BYTES_MAX`]; less where that took many steps
    /// ([`Self::has_more`] says whether to call again).
    ///
    /// # Errors
    /// When the stream is broken, for good. What came before the break is in `out`, or was.
    pub fn unpack(&mut self, out: &mut Vec<u8>) -> Result<(), Broken> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        let max = out.len() + UNPACKED_BYTES_MAX;
        let mut result = Ok(());
        let mut work = 0;
        self.filled = true;
        while out.len() < max && work < WORK_MAX {
            let input = &self.held[self.used..];
            let step = match &mut self.kind {
                Kind::Gzip(inflater) => inflater.step(input, out, max),
                Kind::Lz4(frames) => frames.step(input, out, max),
                Kind::Snappy(blocks) => blocks.step(input, out, max),
            };
            match step {
                Ok(Some(used)) => self.used += used,
                Ok(None) => {
                    self.filled = false;
                    break;
                }
                Err(broken) => {
                    result = Err(broken);
                    self.filled = false;
                    break;
                }
            }
            work += STEP_WORK + self.kind.more_work();
        }
        if self.used == self.held.len() {
            (self.held, self.used) = (Vec::new(), 0);
        }
        self.broken = result.err();
        result
    }

    /// Memory that it holds, but for what never grows.
    pub fn memory_bytes(&self) -> usize {
        let kind = match &self.kind {
            Kind::Gzip(_) => 0,
            Kind::Lz4(frames) => frames.memory_bytes(),
            Kind::Snappy(blocks) => blocks.memory_bytes(),
        };
        self.held.capacity() + kind
    }

    /// Memory of blocks that have not come whole, or have not been given away whole.
    pub fn block_bytes(&self) -> usize {
        self.memory_bytes() - self.held.capacity()
    }

    /// Throws away what it holds. Nothing is unpacked any more.
    pub fn give_up(&mut self) {
        (self.held, self.used, self.filled) = (Vec::new(), 0, false);
        self.kind = Kind::Snappy(Box::default());
        self.broken = Some(Broken::Cut);
    }

    /// Whether the stream may end here. One of gzip may end anywhere: all that came of it has been unpacked.
    ///
    /// # Errors
    /// [`Broken::Cut`] when bytes were read that cannot be unpacked without the rest of their block.
    pub fn end(&self) -> Result<(), Broken> {
        let cut = match &self.kind {
            Kind::Gzip(_) => false,
            Kind::Lz4(frames) => frames.is_within(),
            Kind::Snappy(blocks) => blocks.is_within(),
        };
        if cut && self.broken.is_none() { Err(Broken::Cut) } else { Ok(()) }
    }
}

impl Kind {
    /// Work of the last step that its bytes do not show.
    fn more_work(&self) -> usize {
        match self {
            Kind::Gzip(inflater) => {
                inflater.body_bytes() * BODY_WORK + if inflater.has_ended_member() { MEMBER_WORK } else { 0 }
            }
            Kind::Lz4(_) | Kind::Snappy(_) => 0,
        }
    }
}

/// A block that has been unpacked, given away piece by piece.
#[derive(Default)]
struct Ready {
    bytes: Vec<u8>,
    given: usize,
}

impl Ready {
    fn is_empty(&self) -> bool {
        self.given == self.bytes.len()
    }

    fn give(&mut self, out: &mut Vec<u8>, max: usize) {
        let len = (self.bytes.len() - self.given).min(max.saturating_sub(out.len()));
        out.extend_from_slice(&self.bytes[self.given..self.given + len]);
        self.given += len;
        if self.is_empty() {
            self.room(0);
        }
    }

    /// Room for a block of `len` bytes in place of the last one.
    fn room(&mut self, len: usize) -> &mut [u8] {
        self.given = 0;
        touch(len);
        self.bytes = vec![0; len];
        &mut self.bytes
    }
}

/// What a step towards unpacking did: how much of its input is used, or nothing that could be done without more of it.
type Step = Result<Option<usize>, Broken>;

/// Moves bytes from `input` until `held` has `want`. Gives how many.
fn gather(held: &mut Vec<u8>, input: &[u8], want: usize) -> usize {
    let len = want.saturating_sub(held.len()).min(input.len());
    if held.len() + len > held.capacity() {
        // Doubled, but never to more than is wanted.
        let room = (2 * held.capacity()).min(want).max(held.len() + len);
        held.reserve_exact(room - held.len());
    }
    held.extend_from_slice(&input[..len]);
    len
}

/// A little-endian number from the first four bytes.
fn le32(bytes: &[u8]) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[..4]);
    u32::from_le_bytes(number)
}
