//! Fuzzes time expressions: no panic, and positions within the text.

#![no_main]

use graphite::query::TimeZone;
use graphite::query::time::{Clock, parse_offset, parse_time};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
    for zone in [&TimeZone::UTC, &berlin] {
        if let Err(mistake) = parse_time(text, &Clock { now: 1_710_344_550, zone }) {
            assert!(mistake.at <= text.len());
        }
    }
    let _ = parse_offset(text);
});
