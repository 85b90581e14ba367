//! Lets each known bug into storms until one finds it, within a minute for each.
//!
//! `cargo xtask sim --canary` runs it, built with the feature that has the bugs of the queue on disk. Fails when a bug
//! is not found, or by another check than the one that is there for it.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a command: it prints, and times itself")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use sim::{Canary, Found, chain_storm_with, clock_storm_with, storm_with};

const LIMIT: Duration = Duration::from_secs(60);

/// The storm that has to find it.
fn weather(seed: u64, canary: Canary) -> Result<(), Found> {
    match canary {
        Canary::ClockStepIgnored => clock_storm_with(seed, Some(canary)).map(drop),
        Canary::RuleForgotten => chain_storm_with(seed, Some(canary)).map(drop),
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
