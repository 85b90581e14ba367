//! Any bytes are read as a pickle or protobuf message without harm, at a bounded cost for each of them, and end as points whose lines are
//! read back as they are, or as counted rejects.
//!
//! The first byte says which compatibility, and which form.

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

/// Bytes that `run` asks for.
fn allocated(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_total
}
