//! Storms from seeds: whole pipelines in bad weather, on one thread, until one of them finds something.
//!
//! Not here: what a storm does and checks (`sim::storm`), the bugs that prove that it finds bugs (`sim::Canary`).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;

use anyhow::{Context, bail};
use sim::{Calm, Found, Story, storm_told};

/// What to run.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    One(u64),
    Many { seeds: u64, first: Option<u64> },
}

/// `cargo xtask sim …`. True when no storm found anything.
pub(crate) fn run(_root: &Path, words: &[&str]) -> anyhow::Result<bool> {
    match parse(words)? {
        Task::One(seed) => Ok(one(seed)),
        Task::Many { seeds, first } => Ok(many(first.unwrap_or_else(fresh_seed), seeds)),
    }
}

fn parse(words: &[&str]) -> anyhow::Result<Task> {
    let number = |word: &str| -> anyhow::Result<u64> {
        word.parse().with_context(|| format!("`{word}` is no number from 0 to {}", u64::MAX))
    };
    Ok(match words {
        ["--seed", seed] => Task::One(number(seed)?),
        ["--seeds", seeds] => Task::Many { seeds: number(seeds)?, first: None },
        ["--seeds", seeds, "--first", first] | ["--first", first, "--seeds", seeds] => {
            Task::Many { seeds: number(seeds)?, first: Some(number(first)?) }
        }
        _ => bail!("sim needs --seed N, --seeds K [--first N], or --canary"),
    })
}

/// From the system's randomness, which keys the hash of every map.
fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 16
}

/// One storm. What happened is told when it went wrong.
fn one(seed: u64) -> bool {
    let mut story = Story::default();
    let found = storm_told(seed, None, &mut story);
    match found {
        Ok(calm) => {
            println!("seed {seed}: {}", summary(&calm));
            true
        }
        Err(found) => {
            for line in story.lines() {
                println!("{line}");
            }
            tell(&found);
            false
        }
    }
}

fn many(first: u64, seeds: u64) -> bool {
    let mut all = Calm::default();
    for (done, seed) in (first..first.saturating_add(seeds)).enumerate() {
        match sim::storm(seed) {
            Ok(calm) => all.add(&calm),
            Err(found) => {
                tell(&found);
                return false;
            }
        }
        if done > 0 && done % 50 == 0 {
            eprintln!("{done} of {seeds} seeds");
        }
    }
    println!("seeds {first} to {}: {}", first.saturating_add(seeds.saturating_sub(1)), summary(&all));
    true
}

fn tell(found: &Found) {
    println!("{found}\nto see it again: cargo xtask sim --seed {}", found.seed);
}

fn summary(calm: &Calm) -> String {
    format!("{calm:?}")
}
