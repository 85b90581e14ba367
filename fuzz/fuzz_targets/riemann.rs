//! Fuzzes Riemann's messages and JSON events: the decoder and the one that `prost` derives agree on any message, and both readers have
//! a bounded cost per byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cost::{Parser, check};
use wire::riemann::reference;

fuzz_target!(|bytes: &[u8]| {
    reference::compare(bytes);
    check(Parser::Riemann, bytes, allocated);
    check(Parser::EventJson, bytes, allocated);
});

/// Bytes that `run` allocates.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
