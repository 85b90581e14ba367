//! `cargo xtask sim`: runs simulator storms (whole pipelines with injected faults) from seeds, until one fails.
//!
//! A storm uses one thread and one seed; many seeds run on all processors. Not here: the steps and checks of a storm
//! (`sim::storm`), the known bugs that test these checks (`sim::Canary`, `crates/sim/examples/canary.rs`).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use sim::{
    Calm, ChainCalm, ClockCalm, Found, RelayCalm, StoreCalm, Story, StreamCalm, chain_storm, clock_storm,
    relay_storm, store_storm, storm, storm_with_story, stream_storm,
};

/// Time between two progress lines.
const PROGRESS: Duration = Duration::from_secs(2);

/// What to run.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    One(u64),
    Many { seeds: u64, first: Option<u64> },
    Relay { seeds: u64, first: Option<u64> },
    Clock { seeds: u64, first: Option<u64> },
    Store { seeds: u64, first: Option<u64> },
    Streams { seeds: u64, first: Option<u64> },
    Canary,
}

/// `cargo xtask sim …`. True when no storm failed, or when the known bugs were found.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<bool> {
    match parse(words)? {
        Task::One(seed) => Ok(one(seed)),
        Task::Many { seeds, first } => many(first.unwrap_or_else(fresh_seed), seeds),
        Task::Relay { seeds, first } => Ok(relay(first.unwrap_or_else(fresh_seed), seeds)),
        Task::Clock { seeds, first } => Ok(clocks(first.unwrap_or_else(fresh_seed), seeds)),
        Task::Store { seeds, first } => Ok(stores(first.unwrap_or_else(fresh_seed), seeds)),
        Task::Streams { seeds, first } => Ok(streams(first.unwrap_or_else(fresh_seed), seeds)),
        Task::Canary => canary(root),
    }
}

fn parse(words: &[&str]) -> anyhow::Result<Task> {
    let number = |word: &str| -> anyhow::Result<u64> {
        word.parse().with_context(|| format!("`{word}` is not a number from 0 to {}", u64::MAX))
    };
    Ok(match words {
        ["--seed", seed] => Task::One(number(seed)?),
        ["--seeds", seeds] => Task::Many { seeds: number(seeds)?, first: None },
        ["--seeds", seeds, "--first", first] | ["--first", first, "--seeds", seeds] => {
            Task::Many { seeds: number(seeds)?, first: Some(number(first)?) }
        }
        ["--relay", "--seeds", seeds] => Task::Relay { seeds: number(seeds)?, first: None },
        ["--relay", "--seeds", seeds, "--first", first] => {
            Task::Relay { seeds: number(seeds)?, first: Some(number(first)?) }
        }
        ["--clock", "--seeds", seeds] => Task::Clock { seeds: number(seeds)?, first: None },
        ["--clock", "--seeds", seeds, "--first", first] => {
            Task::Clock { seeds: number(seeds)?, first: Some(number(first)?) }
        }
        ["--store", "--seeds", seeds] => Task::Store { seeds: number(seeds)?, first: None },
        ["--store", "--seeds", seeds, "--first", first] => {
            Task::Store { seeds: number(seeds)?, first: Some(number(first)?) }
        }
        ["--streams", "--seeds", seeds] => Task::Streams { seeds: number(seeds)?, first: None },
        ["--streams", "--seeds", seeds, "--first", first] => {
            Task::Streams { seeds: number(seeds)?, first: Some(number(first)?) }
        }
        ["--canary"] => Task::Canary,
        _ => bail!(
            "usage: sim --seed N | [--relay | --clock | --store | --streams] --seeds K [--first N] | --canary"
        ),
    })
}

/// A seed from the system's randomness (the keys of a hash map). Short enough to be read aloud.
fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
}

/// Runs one storm. Prints its last steps when it failed.
fn one(seed: u64) -> bool {
    let mut story = Story::default();
    match storm_with_story(seed, None, &mut story) {
        Ok(calm) => {
            println!("seed {seed}, digest {:016x}\n{calm}", calm.digest);
            true
        }
        Err(found) => {
            for line in story.lines() {
                println!("{line}");
            }
            println!("\n{found}");
            false
        }
    }
}

/// Runs storms of relays and of random graphs of relays from `first` on, one after the other, until one fails.
fn relay(first: u64, seeds: u64) -> bool {
    let (mut all, mut chains) = (RelayCalm::default(), ChainCalm::default());
    for seed in first..first.saturating_add(seeds) {
        let storms = relay_storm(seed).map(|calm| all.add(&calm));
        let storms = storms.and_then(|()| chain_storm(seed).map(|calm| chains.add(&calm)));
        if let Err(found) = storms {
            println!("{found}\nto repeat it: cargo xtask sim --relay --seeds 1 --first {seed}");
            return false;
        }
    }
    let ChainCalm { sent, copies, points, visits, delivered, dropped, kills, digest: _ } = chains;
    println!(
        "relays that feed relays: {sent} lines sent, {copies} copies explained; {points} points of aggregations; {visits} visits to \
         further relays; copies: {delivered} delivered, {dropped} dropped; {kills} kills"
    );
    let RelayCalm { sent, delivered, moved, dropped, twice, doubled, kills, digest: _ } = all;
    println!(
        "relays: {sent} lines sent; copies: {delivered} delivered, {moved} moved, {dropped} dropped, {twice} twice, \
         {doubled} of them in place of another"
    );
    println!("{seeds} seeds from {first} on, {kills} kills: all losses were counted");
    true
}

/// Runs storms of the wall clock from `first` on, likewise.
fn clocks(first: u64, seeds: u64) -> bool {
    let mut all = ClockCalm::default();
    for seed in first..first.saturating_add(seeds) {
        match clock_storm(seed) {
            Ok(calm) => all.add(&calm),
            Err(found) => {
                println!("{found}\nto repeat it: cargo xtask sim --clock --seeds 1 --first {seed}");
                return false;
            }
        }
    }
    let ClockCalm { sent, windows, steps, restarts, mislabelled, dropped } = all;
    println!(
        "clocks: {steps} steps, {restarts} restarts; {sent} samples in {windows} windows, {mislabelled} of them counted as \
         mislabelled; {dropped} labels of processes before dropped"
    );
    println!("{seeds} seeds from {first} on: two windows after each step the labels matched the clock");
    true
}

/// Runs storms of a store from `first` on, likewise.
fn stores(first: u64, seeds: u64) -> bool {
    let mut all = StoreCalm::default();
    for seed in first..first.saturating_add(seeds) {
        match store_storm(seed) {
            Ok(calm) => all.add(&calm),
            Err(found) => {
                println!("{found}\nto repeat it: cargo xtask sim --store --seeds 1 --first {seed}");
                return false;
            }
        }
    }
    let StoreCalm { given, updates, errors, compared, kills, power_losses } = all;
    println!(
        "stores: {given} points in {updates} updates of files; {kills} kills, {power_losses} power losses, {errors} errors of the disk; \
         {compared} values compared"
    );
    println!("{seeds} seeds from {first} on: no point that was safe was lost");
    true
}

/// Runs storms of a Riemann config from `first` on, likewise.
fn streams(first: u64, seeds: u64) -> bool {
    let mut all = StreamCalm::default();
    for seed in first..first.saturating_add(seeds) {
        match stream_storm(seed) {
            Ok(calm) => all.add(&calm),
            Err(found) => {
                println!("{found}\nto repeat it: cargo xtask sim --streams --seeds 1 --first {seed}");
                return false;
            }
        }
    }
    let StreamCalm { sent, compared, checkpoints, kills, restarts, reloads, lost } = all;
    println!(
        "streams: {sent} events, {checkpoints} checkpoints; {kills} kills lost {lost} events after the last one; {restarts} restarts, \
         {reloads} reloads; the index was compared {compared} times"
    );
    println!("{seeds} seeds from {first} on: nothing that a checkpoint had was lost or doubled");
    true
}

/// Runs storms from `first` on. Reports the lowest seed that failed, so that the result is always the same.
fn many(first: u64, seeds: u64) -> anyhow::Result<bool> {
    let Some(end) = first.checked_add(seeds) else { bail!("there are no {seeds} seeds from {first} on") };
    let (next, done, wrong) = (AtomicU64::new(first), AtomicU64::new(0), AtomicBool::new(false));
    let outcome: Mutex<(Calm, Vec<Found>)> = Mutex::default();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (ended, all_ended) = mpsc::sync_channel::<()>(0);
    thread::scope(|scope| {
        let work = || {
            while !wrong.load(Relaxed) {
                let seed = next.fetch_add(1, Relaxed);
                if seed >= end {
                    return;
                }
                let result = guarded(seed);
                done.fetch_add(1, Relaxed);
                let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
                match result {
                    Ok(calm) => outcome.0.add(&calm),
                    Err(found) => {
                        wrong.store(true, Relaxed);
                        outcome.1.push(found);
                    }
                }
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let done = &done;
        scope.spawn(move || {
            while let Err(mpsc::RecvTimeoutError::Timeout) = all_ended.recv_timeout(PROGRESS) {
                eprintln!("{} of {seeds} seeds", done.load(Relaxed));
            }
        });
        workers.into_iter().for_each(|worker| drop(worker.join()));
        drop(ended);
    });
    let (calm, mut found) = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|found| found.seed);
    match found.first() {
        None => println!("seeds {first} to {}\n{calm}", end.saturating_sub(1)),
        Some(found) => println!("{found}\nto see its last steps: cargo xtask sim --seed {}", found.seed),
    }
    Ok(found.is_empty())
}

/// Runs one storm; a panic is a failure as well.
fn guarded(seed: u64) -> Result<Calm, Found> {
    std::panic::catch_unwind(|| storm(seed))
        .unwrap_or_else(|_panic| Err(Found { seed, step: 0, message: "panicked, see above".to_owned() }))
}

/// Builds the storms with the known bugs of the disk queue, and checks that each bug is found.
fn canary(root: &Path) -> anyhow::Result<bool> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "run",
            "--quiet",
            "--locked",
            "--package",
            "sim",
            "--features",
            "canary",
            "--example",
            "canary",
        ])
        .current_dir(root)
        .status()
        .context("cannot start cargo")?;
    Ok(status.success())
}

#[test]
fn seeds_are_read_from_the_command_line() {
    let table: &[(&[&str], Option<Task>)] = &[
        (&["--seed", "7"], Some(Task::One(7))),
        (&["--seeds", "7"], Some(Task::Many { seeds: 7, first: None })),
        (&["--seeds", "7", "--first", "3"], Some(Task::Many { seeds: 7, first: Some(3) })),
        (&["--first", "3", "--seeds", "7"], Some(Task::Many { seeds: 7, first: Some(3) })),
        (&["--canary"], Some(Task::Canary)),
        (&["--clock", "--seeds", "7"], Some(Task::Clock { seeds: 7, first: None })),
        (&["--clock", "--seeds", "7", "--first", "3"], Some(Task::Clock { seeds: 7, first: Some(3) })),
        (&["--store", "--seeds", "7"], Some(Task::Store { seeds: 7, first: None })),
        (&["--streams", "--seeds", "7"], Some(Task::Streams { seeds: 7, first: None })),
        (&["--seed", "x"], None),
        (&["--seed", "-1"], None),
        (&["--first", "3"], None),
        (&[], None),
    ];
    for (words, want) in table {
        assert_eq!(parse(words).ok(), *want, "{words:?}");
    }
}
