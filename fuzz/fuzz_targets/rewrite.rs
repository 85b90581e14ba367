//! Any packet's lines have parts if anybody can read them, come out as they went in, mean the same in every form, and
//! are neither lost nor split between packets, at a bounded cost for each byte, in every form of output.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cost::{Parser, Writer, check};
use wire::statsd::rewrite::promises;

fuzz_target!(|packet: &[u8]| {
    promises::check(packet);
    check(Parser::Parts, packet, allocated);
    for writer in Writer::all() {
        check(Parser::Written(writer), packet, allocated);
    }
});

/// Bytes that `run` asks for.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
