//! Any bytes are unpacked in bounded memory and alike wherever they are cut, and what is packed comes back.
//!
//! The first byte says how they are packed, and which of the two; the next ones where the stream is cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::packing::promises;

fuzz_target!(|data: &[u8]| promises::check_one(data));
