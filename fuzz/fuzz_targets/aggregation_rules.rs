//! Fuzzes decoding of aggregation rules from another process: no panic, and accepted state can be used.

#![no_main]

use libfuzzer_sys::fuzz_target;
use process::aggregation_rules::promises;

fuzz_target!(|garbage: &[u8]| promises::check_one(garbage));
