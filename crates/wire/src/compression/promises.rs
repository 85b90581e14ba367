//! What holds of any packed stream and of anything that is packed, checked for one input: by seeded tests and by the fuzz
//! target `compression`. Never part of a packet's path.

use super::{BLOCK_BYTES_MAX, Broken, Compression, Compressor, Decompressor, Kind, UNPACKED_BYTES_MAX};

/// All ways but plain.
pub(super) const PACKED: [Compression; 3] = [Compression::Gzip, Compression::Lz4, Compression::Snappy];

/// More is not asked for of one input: the ratio of a bomb has no bound, and what it takes is bounded by the call.
const ASKED_BYTES_MAX: usize = 16 << 20;

/// A block packed, which may be a little longer than unpacked, and one unpacked.
const HELD_BYTES_MAX: usize = 2 * BLOCK_BYTES_MAX + BLOCK_BYTES_MAX / 4;

/// Takes `data` for a packed stream, or packs it, in reads of a length of its own; the first byte says which and how. Panics
/// where a promise does not hold.
pub fn check_one(data: &[u8]) {
    let [choice, step, cut, data @ ..] = data else { return };
    let compression = PACKED[usize::from(choice >> 1) % PACKED.len()];
    let (step, cut) = (usize::from(*step) + 1, usize::from(*cut) * 64 + 1);
    if choice & 1 == 0 {
        // However it is cut, it says the same.
        assert_eq!(unpacked(compression, data, step), unpacked(compression, data, data.len().max(1)));
        return;
    }
    let plain = data.repeat(1 + data.len() % 40);
    let wire = packed(compression, &plain, std::iter::repeat(cut));
    assert_eq!(unpacked(compression, &wire, step), (plain, Ok(())), "what was packed comes back");
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

/// Everything that comes of `packed` in reads of `step` bytes, and how it ended.
pub(super) fn unpacked(
    compression: Compression,
    packed: &[u8],
    step: usize,
) -> (Vec<u8>, Result<(), Broken>) {
    let mut decompressor = Decompressor::new(compression).expect("it is packed");
    let mut out = Vec::new();
    for read in packed.chunks(step) {
        decompressor.push(read);
        assert!(decompressor.held.len() <= step, "it holds one read only");
        while decompressor.has_more() {
            let before = out.len();
            let result = decompressor.unpack(&mut out);
            assert!(out.len() - before <= UNPACKED_BYTES_MAX);
            assert!(
                decompressor.kind.bytes() <= HELD_BYTES_MAX,
                "it holds {} bytes",
                decompressor.kind.bytes()
            );
            if result.is_err() || out.len() > ASKED_BYTES_MAX {
                return (out, result);
            }
        }
    }
    (out, decompressor.end())
}

/// Packed with a flush behind each of `cuts` bytes, and at the end.
pub(super) fn packed(
    compression: Compression,
    plain: &[u8],
    mut cuts: impl Iterator<Item = usize>,
) -> Vec<u8> {
    let mut compressor = Compressor::new(compression).expect("it is packed");
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
