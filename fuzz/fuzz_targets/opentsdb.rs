//! Fuzzes lines of OpenTSDB: each ends as one point or one reject, which the reader asserts, at a bounded cost per byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cost::{Parser, check};

fuzz_target!(|packet: &[u8]| check(Parser::OpenTsdb, packet, allocated));

/// Bytes that `run` allocates.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
