//! Fuzzes requests of CarbonLink: no panic, and a bounded number of names.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::carbonlink::{NAMES_BYTES_MAX, NAMES_MAX, Request, request};

fuzz_target!(|message: &[u8]| {
    if let Ok(Request::PointsOfMany(names)) = request(message) {
        assert!(names.len() <= NAMES_MAX && names.iter().map(Vec::len).sum::<usize>() <= NAMES_BYTES_MAX);
    }
});
