//! What the formats' decompressors share: steps with bounded output, and blocks returned piece by piece.

use super::format::CompressionError;
use crate::steps::touch;

/// Most bytes that one call of [`Decompressor::decompress`](super::Decompressor::decompress) returns.
pub const DECOMPRESSED_BYTES_MAX: usize = 64 * 1024;

/// Longest block of LZ4 and snappy, decompressed: the maximum of LZ4.
pub const BLOCK_BYTES_MAX: usize = 4 << 20;

/// Memory that is kept for the next piece of a header; memory of blocks and reads is freed with them.
pub(super) const KEPT_BYTES_MAX: usize = 64;

/// A decompressed block, returned piece by piece.
#[derive(Default)]
pub(super) struct Ready {
    pub(super) bytes: Vec<u8>,
    given: usize,
}

impl Ready {
    pub(super) fn is_empty(&self) -> bool {
        self.given == self.bytes.len()
    }

    pub(super) fn give(&mut self, out: &mut Vec<u8>, max: usize) {
        let len = (self.bytes.len() - self.given).min(max.saturating_sub(out.len()));
        out.extend_from_slice(&self.bytes[self.given..self.given + len]);
        self.given += len;
        if self.is_empty() {
            self.room(0);
        }
    }

    /// A buffer for a block of `len` bytes, replacing the last one.
    pub(super) fn room(&mut self, len: usize) -> &mut [u8] {
        self.given = 0;
        touch(len);
        self.bytes = vec![0; len];
        &mut self.bytes
    }
}

/// Result of a step: how much of its input is consumed; `None` when it needs more input.
pub(super) type Step = Result<Option<usize>, CompressionError>;

/// Moves bytes from `input` until `held` has `want`. Returns how many.
pub(super) fn gather(held: &mut Vec<u8>, input: &[u8], want: usize) -> usize {
    let len = want.saturating_sub(held.len()).min(input.len());
    if held.len() + len > held.capacity() {
        // Doubled, up to the wanted size.
        let room = (2 * held.capacity()).min(want).max(held.len() + len);
        held.reserve_exact(room - held.len());
    }
    held.extend_from_slice(&input[..len]);
    len
}

/// A little-endian integer from the first four bytes.
pub(super) fn le32(bytes: &[u8]) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[..4]);
    u32::from_le_bytes(number)
}
