//! Fuzzes rewriting of StatsD lines: valid lines have parts, a plan without changes keeps their bytes, conversions keep
//! their meaning, and repacking neither loses nor splits a line, at a bounded cost per byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cost::{Parser, Writer, check};
use wire::statsd::rewrite::properties;

fuzz_target!(|packet: &[u8]| {
    properties::check(packet);
    check(Parser::Parts, packet, allocated);
    for writer in Writer::all() {
        check(Parser::Written(writer), packet, allocated);
    }
});

/// Bytes that `run` allocates.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
