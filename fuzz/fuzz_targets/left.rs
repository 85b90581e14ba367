//! Fuzzes decoding of queue blocks from another process: they can be sent, or are rejected.

#![no_main]

use deliver::queue::left_promises;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| left_promises(bytes));
