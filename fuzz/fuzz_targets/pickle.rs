//! Fuzzes pickle and protobuf messages: no panic, a bounded cost per byte, and each element ends as a counted reject
//! or as a point whose line parses back unchanged.
//!
//! The first byte selects the compatibility mode and the encoding.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::cost::{Parser, check};
use wire::graphite::input::{MessageEncoding, Options, Compatibility, reference};

fuzz_target!(|data: &[u8]| {
    let [choice, message @ ..] = data else { return };
    let compatibility = Compatibility::ALL[usize::from(choice >> 1) % Compatibility::ALL.len()];
    let form = if choice & 1 == 0 { MessageEncoding::Pickle } else { MessageEncoding::Protobuf };
    reference::compare_message(Options::of(compatibility), form, message);
    check(Parser::Message(form), message, allocated);
});

/// Bytes that `run` allocates.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
