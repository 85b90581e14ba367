//! Fuzzes decompression and round trips: memory is bounded, and the result does not depend on the reads.
//!
//! The first byte selects the format, and compress or decompress; the next bytes the cuts of the stream.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cost::{Parser, check};
use wire::compression::{Compression, properties};

fuzz_target!(|data: &[u8]| {
    properties::check_one(data);
    let [choice, step, stream @ ..] = data else { return };
    let packings = [Compression::Gzip, Compression::Lz4, Compression::Snappy];
    let compression = packings[usize::from(*choice) % packings.len()];
    check(Parser::Compressed(compression, usize::from(*step) * 16 + 1), stream, allocated);
});

/// Bytes that `run` allocates.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
