//! Fuzzes decoding of an aggregation's checkpoint: no panic, and a valid series among random bytes is restored.

#![no_main]

use libfuzzer_sys::fuzz_target;
use process::aggregate::checkpoint::promises;

fuzz_target!(|garbage: &[u8]| promises::check_one(garbage));
