//! Any packet of Graphite lines is read alike by the reader and by the naive reference, with the manners of every
//! compatibility, and at a bounded cost for each byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cost::{Parser, check};
use wire::graphite::input::{Compatibility, reference};

fuzz_target!(|packet: &[u8]| {
    for options in reference::settings() {
        reference::compare(options, packet);
    }
    for compatibility in Compatibility::ALL {
        check(Parser::Graphite(compatibility), packet, allocated);
    }
});

/// Bytes that `run` asks for.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
