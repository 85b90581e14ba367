//! Any packet is read alike by the parser and by the naive reference, in every dialect, and at a
//! bounded cost for each byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cost::{Parser, check};
use wire::statsd::{Dialect, reference};

fuzz_target!(|packet: &[u8]| {
    for options in reference::settings() {
        reference::compare(options, packet);
    }
    for dialect in [Dialect::Etsy, Dialect::Perl, Dialect::Dogstatsd, Dialect::Union] {
        check(Parser::Statsd(dialect), packet, allocated);
    }
});

/// Bytes that `run` asks for.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
