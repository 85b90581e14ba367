//! Developer commands: checks that CI runs in addition to cargo's own, and tools to run by hand.
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

  tidy                 the project's own rules, which rustc and clippy do not check; prints path:line: rule: reason
  fuzz [--seconds N]   each fuzz target under fuzz/ for N seconds (default 10), if nightly and cargo-fuzz are installed
  instructions         instructions per sample under callgrind, compared with bench/instructions.toml (at most +3 %)
               [--update]  stores the current counts
  sim --seed N         one storm of the simulator; prints its last steps when it fails
  sim --seeds K [--first N]
                       K storms from fresh seeds, or from N on; prints the failing seed and how to repeat it
  sim --canary         enables known bugs in storms; each must be found within a minute
  readme [FILE]        runs the marked blocks of README.md as written
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

/// True when the command found no problem; an error when it could not run.
fn run(words: &[&str]) -> anyhow::Result<bool> {
    let root = root()?;
    match words {
        ["tidy"] => tidy::run(&root),
        ["fuzz"] => fuzz::run(&root, 10),
        ["fuzz", "--seconds", seconds] => fuzz::run(
            &root,
            seconds.parse().with_context(|| format!("`{seconds}` is not a number of seconds"))?,
        ),
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
