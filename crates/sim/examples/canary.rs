//! Runs storms with each known bug until one storm finds it, for at most a minute each.
//!
//! `cargo xtask sim --canary` runs it with the feature that contains the bugs of the queue on disk. It fails when a bug
//! is not found, or is found by another check than its own.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a command: it prints, and times itself")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use sim::{
    Canary, Found, chain_storm_with, clock_storm_with, store_storm_with, storm_with, stream_storm_with,
};

const LIMIT: Duration = Duration::from_secs(60);

/// The kind of storm that must find the bug.
fn weather(seed: u64, canary: Canary) -> Result<(), Found> {
    match canary {
        Canary::ClockStepIgnored => clock_storm_with(seed, Some(canary)).map(drop),
        Canary::RuleForgotten => chain_storm_with(seed, Some(canary)).map(drop),
        Canary::TreeNotSynced => store_storm_with(seed, Some(canary)).map(drop),
        Canary::StreamsForgotten => stream_storm_with(seed, Some(canary)).map(drop),
        _ => storm_with(seed, Some(canary)).map(drop),
    }
}

fn main() -> ExitCode {
    let mut missed = 0;
    for canary in Canary::ALL.iter().copied() {
        let begin = Instant::now();
        let found = (0..u64::MAX)
            .take_while(|_| begin.elapsed() < LIMIT)
            .find_map(|seed| weather(seed, canary).err());
        let ms = begin.elapsed().as_millis();
        match found {
            Some(found) if found.message.contains(canary.finding()) => {
                println!("{canary:?}: found after {ms} ms by {found}");
            }
            Some(found) => {
                missed += 1;
                println!("{canary:?}: found by the wrong check after {ms} ms: {found}");
            }
            None => {
                missed += 1;
                println!("{canary:?}: NOT FOUND after {ms} ms");
            }
        }
    }
    println!("canaries: {} passed, {missed} failed", Canary::ALL.len() - missed);
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
