//! Any bytes are blocks of a queue that another process left, which can be sent, or nothing.

#![no_main]

use deliver::queue::left_promises;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| left_promises(bytes));
