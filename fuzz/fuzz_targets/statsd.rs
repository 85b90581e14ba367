//! Fuzzes StatsD packets: the parser and the naive reference agree in every dialect, at a bounded cost per byte.

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

/// Bytes that `run` allocates.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
