//! Property checks for decompression of any input, and for round trips: used by seeded tests and by the fuzz target
//! `compression`. Not part of the daemon.

use super::{
    BLOCK_BYTES_MAX, Compression, CompressionError, Compressor, DECOMPRESSED_BYTES_MAX, Decompressor, Kind,
};

/// All formats except plain.
pub(super) const COMPRESSED: [Compression; 3] = [Compression::Gzip, Compression::Lz4, Compression::Snappy];

/// Stop after this much output of one input: a decompression bomb has no bound, and each call is bounded anyway.
const OUTPUT_BYTES_MAX: usize = 16 << 20;

/// A compressed block, which may be a little longer than plain, and a decompressed one.
const HELD_BYTES_MAX: usize = 2 * BLOCK_BYTES_MAX + BLOCK_BYTES_MAX / 4;

/// Takes `data` as a compressed stream, or compresses it, in reads of some length; the first byte selects format and
/// length. Panics where a property fails.
pub fn check_one(data: &[u8]) {
    let [choice, step, cut, data @ ..] = data else { return };
    let compression = COMPRESSED[usize::from(choice >> 1) % COMPRESSED.len()];
    let (step, cut) = (usize::from(*step) + 1, usize::from(*cut) * 64 + 1);
    if choice & 1 == 0 {
        // The result does not depend on the reads.
        assert_eq!(decompressed(compression, data, step), decompressed(compression, data, data.len().max(1)));
        return;
    }
    let plain = data.repeat(1 + data.len() % 40);
    let wire = compressed(compression, &plain, std::iter::repeat(cut));
    assert_eq!(decompressed(compression, &wire, step), (plain, Ok(())), "compression round trip");
}

impl Kind {
    fn bytes(&self) -> usize {
        match self {
            Kind::Gzip(inflater) => inflater.bytes(),
            Kind::Lz4(frames) => frames.bytes(),
            Kind::Snappy(blocks) => blocks.bytes(),
        }
    }
}

/// All output of `compressed` in reads of `step` bytes, and how the stream ended.
pub(super) fn decompressed(
    compression: Compression,
    compressed: &[u8],
    step: usize,
) -> (Vec<u8>, Result<(), CompressionError>) {
    let mut decompressor = Decompressor::new(compression).expect("the format compresses");
    let mut out = Vec::new();
    for read in compressed.chunks(step) {
        decompressor.push(read);
        assert!(decompressor.held.len() <= step, "it holds one read only");
        while decompressor.has_more() {
            let before = out.len();
            let result = decompressor.decompress(&mut out);
            assert!(out.len() - before <= DECOMPRESSED_BYTES_MAX);
            assert!(
                decompressor.kind.bytes() <= HELD_BYTES_MAX,
                "it holds {} bytes",
                decompressor.kind.bytes()
            );
            if result.is_err() || out.len() > OUTPUT_BYTES_MAX {
                return (out, result);
            }
        }
    }
    (out, decompressor.end())
}

/// The stream compressed, with a flush after each of `cuts` bytes, and at the end.
pub(super) fn compressed(
    compression: Compression,
    plain: &[u8],
    mut cuts: impl Iterator<Item = usize>,
) -> Vec<u8> {
    let mut compressor = Compressor::new(compression).expect("the format compresses");
    let (mut out, mut rest) = (Vec::new(), plain);
    while !rest.is_empty() {
        let mut piece = &rest[..cuts.next().unwrap_or(usize::MAX).min(rest.len())];
        rest = &rest[piece.len()..];
        while !piece.is_empty() {
            piece = &piece[compressor.push(piece, &mut out)..];
            if compressor.room() == 0 {
                compressor.flush(&mut out);
            }
        }
        compressor.flush(&mut out);
    }
    compressor.finish(&mut out);
    out
}
