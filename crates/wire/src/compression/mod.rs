//! Streaming compression and decompression of connections: gzip, LZ4, snappy (spec graphite §2.8, §2.9).
//!
//! Path of a compressed byte: a connection of `staunch` -> [`Decompressor::push`] -> **[`Decompressor::decompress`]**
//! -> plain bytes, at most [`DECOMPRESSED_BYTES_MAX`] per call and with a bounded number of steps. Outgoing:
//! [`Compressor::push`] -> [`Compressor::flush`] -> the connection.
//! Not here: lines (`frame`), sockets, TLS.
//! Invariants: no input makes it panic. At any compression ratio a decompressor buffers no more than the last push,
//! one compressed block of [`BLOCK_BYTES_MAX`] and one decompressed block. Once all input is decompressed, it keeps
//! only what the stream needs to continue: for gzip deflate's tables and window, for LZ4 a window of 64 KiB where
//! blocks are linked, and the block or chunk that is incomplete.

mod compress;
mod format;
mod gzip;
mod lz4;
#[cfg(any(test, feature = "reference"))]
pub mod properties;
mod snappy;
mod step;
#[cfg(test)]
mod tests;

pub use compress::{Compressor, FLUSH_BYTES};
pub use format::{Compression, CompressionError};
pub use step::{BLOCK_BYTES_MAX, DECOMPRESSED_BYTES_MAX};

use crate::steps::touch;

/// Most work of one call of [`Decompressor::decompress`] in addition to its output, in bytes of output: empty members,
/// frames and blocks are not free.
const WORK_MAX: usize = DECOMPRESSED_BYTES_MAX;

/// Work of one decompression step.
const STEP_WORK: usize = 64;

/// Work of a step that ends a gzip member: deflate's tables and window are cleared for the next one, which takes as
/// long as decompressing this many bytes.
const MEMBER_WORK: usize = 2 * 1024;

/// Work of a compressed byte of gzip. Deflate blocks may be empty, and each needs its tables built: 64 KiB of them take
/// 90 ms. With this limit a call processes 2 KiB of them.
const BODY_WORK: usize = 32;

/// Decompresses one stream.
pub struct Decompressor {
    /// The last push, and how much of it is consumed.
    held: Vec<u8>,
    used: usize,
    kind: Kind,
    /// The last call reached its limit of output or work: there may be more output without further input.
    filled: bool,
    broken: Option<CompressionError>,
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
    /// A decompressor for the beginning of a stream; `None` when it is not compressed.
    pub fn new(compression: Compression) -> Option<Decompressor> {
        let kind = match compression {
            Compression::Plain => return None,
            Compression::Gzip => Kind::Gzip(Box::default()),
            Compression::Lz4 => Kind::Lz4(Box::default()),
            Compression::Snappy => Kind::Snappy(Box::default()),
        };
        Some(Decompressor { held: Vec::new(), used: 0, kind, filled: false, broken: None })
    }

    /// Adds received bytes. Decompress all earlier bytes first ([`Self::has_more`]), so that only one read is buffered.
    pub fn push(&mut self, bytes: &[u8]) {
        touch(self.held.len() - self.used + bytes.len());
        self.held.drain(..self.used);
        self.used = 0;
        self.held.reserve_exact(bytes.len());
        self.held.extend_from_slice(bytes);
    }

    /// True while [`Self::decompress`] may have output without another push.
    pub fn has_more(&self) -> bool {
        self.broken.is_none() && (self.used < self.held.len() || self.filled)
    }

    /// Appends decompressed bytes to `out`, at most [`DECOMPRESSED_BYTES_MAX`]; fewer when they took many steps. Call
    /// again while [`Self::has_more`] is true.
    ///
    /// # Errors
    /// When the stream is damaged; permanent. All output before the damage is in `out`, or was in an earlier call's.
    pub fn decompress(&mut self, out: &mut Vec<u8>) -> Result<(), CompressionError> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        let max = out.len() + DECOMPRESSED_BYTES_MAX;
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

    /// Memory in use, except for parts of constant size.
    pub fn memory_bytes(&self) -> usize {
        let kind = match &self.kind {
            Kind::Gzip(_) => 0,
            Kind::Lz4(frames) => frames.memory_bytes(),
            Kind::Snappy(blocks) => blocks.memory_bytes(),
        };
        self.held.capacity() + kind
    }

    /// Memory of blocks that are incomplete, or whose output has not been returned completely.
    pub fn block_bytes(&self) -> usize {
        self.memory_bytes() - self.held.capacity()
    }

    /// Discards all buffered bytes and stops decompression.
    pub fn discard(&mut self) {
        (self.held, self.used, self.filled) = (Vec::new(), 0, false);
        self.kind = Kind::Snappy(Box::default());
        self.broken = Some(CompressionError::Truncated);
    }

    /// Whether the stream may end here. A gzip stream may end anywhere: all bytes received are decompressed by then.
    ///
    /// # Errors
    /// [`CompressionError::Truncated`] when bytes were read that cannot be decompressed without the rest of their
    /// block.
    pub fn end(&self) -> Result<(), CompressionError> {
        let cut = match &self.kind {
            Kind::Gzip(_) => false,
            Kind::Lz4(frames) => frames.is_incomplete(),
            Kind::Snappy(blocks) => blocks.is_incomplete(),
        };
        if cut && self.broken.is_none() { Err(CompressionError::Truncated) } else { Ok(()) }
    }
}

impl Kind {
    /// Work of the last step that its output does not account for.
    fn more_work(&self) -> usize {
        match self {
            Kind::Gzip(inflater) => {
                inflater.body_bytes() * BODY_WORK + if inflater.has_ended_member() { MEMBER_WORK } else { 0 }
            }
            Kind::Lz4(_) | Kind::Snappy(_) => 0,
        }
    }
}
