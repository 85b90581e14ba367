//! Fuzzes targets: no panic, positions within the text, and evaluation within its limits.

#![no_main]

use graphite::query::{
    Ask, Compat, Fetch, FetchError, Fetched, Limits, Range, Request, Room, Stop, TimeZone, limit_points, render,
};
use libfuzzer_sys::fuzz_target;

/// Two short series for every path.
struct Small;

impl Fetch for Small {
    fn keep_going(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    fn fetch(&mut self, asks: &[Ask], _: Room) -> Result<Vec<Vec<Fetched>>, FetchError> {
        let one = |ask: &Ask, name: &str, step: i64| {
            let start = ask.range.from - ask.range.from.rem_euclid(step);
            let values = vec![1.0, f64::NAN, 3.5, -2.0, 0.0];
            Fetched { name: format!("{}.{name}", ask.selector), start, end: start + 5 * step, step, values }
        };
        Ok(asks.iter().map(|ask| vec![one(ask, "a", 60), one(ask, "b", 90)]).collect())
    }
}

fuzz_target!(|text: &str| {
    for graphite_web_prefix_parse in [false, true] {
        let request = Request {
            range: Range { from: 1_710_001_800, until: 1_710_002_400 },
            now: 1_710_003_600,
            zone: &TimeZone::UTC,
            x_files_factor: None,
            template: &[],
            compat: Compat { graphite_web_prefix_parse, ..Compat::default() },
            limits: Limits { series_max: 1_000, points_max: 100_000, steps_max: 1_000_000 },
            seed: 1,
        };
        match render(&[text], &request, &mut Small) {
            Ok(mut series) => limit_points(&mut series, 3),
            Err(mistake) => assert!(mistake.at.is_none_or(|at| at <= text.len())),
        }
    }
});
