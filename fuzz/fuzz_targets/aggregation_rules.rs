//! Any bytes are read as what aggregation rules of another process held without harm, and what is taken goes on.

#![no_main]

use libfuzzer_sys::fuzz_target;
use process::aggregation_rules::promises;

fuzz_target!(|garbage: &[u8]| promises::check_one(garbage));
