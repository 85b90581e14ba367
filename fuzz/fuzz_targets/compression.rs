//! Any bytes are unpacked in bounded memory and alike wherever they are cut, and what is packed comes back.
//!
//! The first byte says how they are packed, and which of the two; the next ones where the stream is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cost::{Parser, check};
use wire::compression::{Compression, promises};

fuzz_target!(|data: &[u8]| {
    promises::check_one(data);
    let [choice, step, stream @ ..] = data else { return };
    let packings = [Compression::Gzip, Compression::Lz4, Compression::Snappy];
    let compression = packings[usize::from(*choice) % packings.len()];
    check(Parser::Packed(compression, usize::from(*step) * 16 + 1), stream, allocated);
});

/// Bytes that `run` asks for.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
