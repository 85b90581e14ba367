//! Any packet of Graphite lines is read alike by the reader and by the naive reference, with the manners of every
//! personality, and at a bounded cost for each byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cost::{Parser, check};
use wire::graphite::input::{Personality, reference};

fuzz_target!(|packet: &[u8]| {
    for options in reference::settings() {
        reference::compare(options, packet);
    }
    for personality in Personality::ALL {
        check(Parser::Graphite(personality), packet, allocated);
    }
});

/// Bytes that `run` asks for.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
