//! Any bytes are read as an aggregation's saved state without harm, and a whole series between them comes back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use process::aggregate::checkpoint::promises;

fuzz_target!(|garbage: &[u8]| promises::check_one(garbage));
