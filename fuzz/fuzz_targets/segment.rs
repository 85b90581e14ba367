//! Any bytes in the directory of a queue on disk open, and the records between them come back.

#![no_main]

use deliver::disk_queue::promises;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|garbage: &[u8]| promises::check_one(garbage));
