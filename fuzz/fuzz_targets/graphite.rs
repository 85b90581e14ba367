//! Fuzzes Graphite lines: the reader and the naive reference agree in every compatibility mode, at a bounded cost per
//! byte.

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

/// Bytes that `run` allocates.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
