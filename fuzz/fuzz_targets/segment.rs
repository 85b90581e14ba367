//! Fuzzes the directory of a disk queue: it opens with any content, and valid records are recovered.

#![no_main]

use deliver::disk_queue::promises;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|garbage: &[u8]| promises::check_one(garbage));
