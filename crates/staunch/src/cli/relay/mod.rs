//! `staunch relay`: the command line of carbon-c-relay, and what is ours beside it.
//!
//! Path: the words -> `args` -> `config::import::relay::flags` (settings) and the file -> `daemon`.
//! Not here: what flags and statements mean (`config`).

mod addresses;
mod args;
mod daemon;

use std::process::ExitCode;

use config::import::relay::flags::{Machine, settings};
use config::import::relay::{Files, Reading, read};

pub(crate) use args::RelayArgs;

use super::MISTAKES;

/// `staunch relay`
pub(crate) fn relay(args: &RelayArgs) -> anyhow::Result<ExitCode> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let machine = Machine { hostname: super::load::hostname(), cores };
    let flags = args.flags();
    let (settings, mistakes) = settings(&flags, &machine);
    for mistake in &mistakes {
        crate::talk::say(&format!("-{}: {}\n  {}\n", mistake.flag, mistake.message, mistake.hint));
    }
    let Some(settings) = settings else { return Ok(ExitCode::from(MISTAKES)) };
    daemon::run(args, settings)
}

/// Reads the configuration with the files that it includes.
fn reading(config: &str) -> Reading {
    let read_file = |path: &str| std::fs::read(path).map_err(|error| error.to_string());
    read(config, &Files { read: &read_file, matching: &|_| Vec::new() })
}
