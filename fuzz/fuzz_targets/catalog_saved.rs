//! Fuzzes reading of a saved catalog: no panic, bounded memory, and pieces between any bytes are read.

#![no_main]

use graphite::catalog::saved::promises;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|garbage: &[u8]| promises::check_saved(garbage));
