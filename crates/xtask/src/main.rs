//! Developer commands: what CI runs beside cargo's own, and what a developer runs by hand.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool: printing is its output")]

mod fuzz;
mod instructions;
mod readme;
mod sim;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy                 the rules of the house that neither rustc nor clippy knows; every breach as path:line: rule: reason
  fuzz [--seconds N]   each fuzz target under fuzz/ for N seconds (default 10), when nightly and cargo-fuzz are there
  instructions         instructions per sample under callgrind, held to bench/instructions.toml at +3 %
               [--update]  keeps the counts of now
  sim --seed N         one storm of the simulator; tells what happened when it finds something
  sim --seeds K [--first N]
                       K storms from fresh seeds, or from N on; the failing seed, and how to see it again
  sim --canary         lets known bugs into storms, each of which has to be found within a minute
  readme [FILE]        runs the blocks of README.md that are marked for it, as written
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// True when the command found nothing wrong; an error when it could not find out.
fn run(words: &[&str]) -> anyhow::Result<bool> {
    let root = root()?;
    match words {
        ["tidy"] => tidy::run(&root),
        ["fuzz"] => fuzz::run(&root, 10),
        ["fuzz", "--seconds", seconds] => {
            fuzz::run(&root, seconds.parse().with_context(|| format!("`{seconds}` is no number of seconds"))?)
        }
        ["instructions"] => instructions::run(&root, false),
        ["instructions", "--update"] => instructions::run(&root, true),
        ["sim", rest @ ..] => sim::run(&root, rest),
        ["readme"] => readme::run(&root, &root.join("README.md")),
        ["readme", file] => readme::run(&root, Path::new(file)),
        ["help" | "-h" | "--help"] => {
            print!("{USAGE}");
            Ok(true)
        }
        _ => bail!("no such command\n\n{USAGE}"),
    }
}

/// The repository's root: two levels above this crate.
fn root() -> anyhow::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(Path::to_path_buf).context("crates/xtask has left the repository")
}
