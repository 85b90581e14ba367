//! Any packet of Graphite lines is read alike by the reader and by the naive reference, with the manners of every
//! personality.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::graphite::input::reference;

fuzz_target!(|packet: &[u8]| {
    for options in reference::settings() {
        reference::compare(options, packet);
    }
});
