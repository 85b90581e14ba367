//! Any packet is read alike by the parser and by the naive reference, in every dialect.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::statsd::reference;

fuzz_target!(|packet: &[u8]| {
    for options in reference::settings() {
        reference::compare(options, packet);
    }
});
