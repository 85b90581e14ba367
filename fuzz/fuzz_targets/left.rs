//! Fuzzes decoding of queue blocks from another process: they can be sent, or are rejected.

#![no_main]

use deliver::queue::check_handover;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check_handover(bytes));
