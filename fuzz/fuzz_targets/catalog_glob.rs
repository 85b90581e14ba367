//! Fuzzes names, globs and tag expressions: a search in slices has the same result as one without.

#![no_main]

use graphite::catalog::saved::promises;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| promises::check_glob(bytes));
