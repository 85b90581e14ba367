//! Fuzzes whisper files: any bytes are named as damaged, or can be fetched, updated, merged and resized.

#![no_main]

use graphite::whisper::promises;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    promises::check_one(bytes);
});
