//! The attack bench: what one hostile or unlucky peer can do to a real daemon, beside an innocent one.
//!
//! Path of a finding: [`CASES`] -> a case (`references::run`) sets a [`scene::Scene`], whose attackers are processes of their own
//! (this program with `--child`) that share half a core -> the scene judges memory, `/healthz`, what the innocent sender
//! lost and the accounts -> `support::cases` prints the row. docs/reliability.md has the promises and the figures.
//! Not here: faults of machines and endpoints (`--test faults`).
//! Invariant: everything stays on loopback, on ports that the system chose; processes are ended by their ids, and none
//! outlives its parent.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the bench waits on the machine's own clock, and its table is its purpose"
)]

mod asker;
mod attacker;
mod cage;
mod children;
mod clock_jumps;
mod clocks;
mod closed_unread;
mod configs;
mod connections;
mod descriptors;
mod exhausted;
mod explain;
mod files;
mod finding;
mod floods;
mod http;
mod idle_buffers;
mod innocent;
mod matrix;
mod name_search;
mod payloads;
mod queries;
mod references;
mod scene;
mod streams;
#[path = "../binary/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the tests of the binary, which need more of it")]
mod support;
mod unfolding;
mod web_page;

use std::process::ExitCode;

use finding::End;
use support::bench::Bench;
use support::cases::Cases;

/// A case: its name and what it does.
type Case = (&'static str, fn(&Bench) -> End);

const CASES: &[Case] = &[
    ("A1", references::run),
    ("A2", unfolding::run),
    ("A3", idle_buffers::run),
    ("A4", descriptors::run),
    ("A5", name_search::run),
    ("A6", http::run),
    ("A7", closed_unread::run),
    ("A8", clock_jumps::run),
    ("A9", web_page::run),
    ("A10", connections::run),
    ("A11", configs::run),
    ("A12", floods::run),
    ("A13", explain::run),
    ("A14", queries::run),
    ("A15", streams::run),
    ("C1", clocks::run),
    ("E1", exhausted::inodes),
    ("E2", exhausted::threads),
    ("X1", files::run),
];

/// For `--help`.
const HELP: &str = "\
Attacks the daemon over loopback, and measures what an innocent peer notices (docs/reliability.md).

usage: cargo test -p staunch --test attacks -- [CASE…] [options]

  CASE          A1 to A15, C1, E1, E2, X1, M1 to M19; all without one
  --full        the numbers of docs/reliability.md, not those of a test
  --seed N      everything random comes from N
  --staunch PATH
                this binary, not the one of this build
  --json        one JSON document
  --markdown    the table for docs/reliability.md
exit: 0 all promises kept, 1 one was broken, 2 the command line is wrong";

fn main() -> ExitCode {
    if let Some((role, words)) = children::role() {
        match role.as_str() {
            "attacker" => attacker::main(&words),
            "innocent" => innocent::send(&words),
            "bare" => innocent::receive(&words),
            other => panic!("no child is called `{other}`"),
        }
        return ExitCode::SUCCESS;
    }
    let cases = Cases {
        name: "attacks",
        names: CASES.iter().map(|(name, _)| *name).chain(matrix::names()).collect(),
        run: &|bench, case| match CASES.iter().find(|(name, _)| *name == case) {
            Some((_, run)) => run(bench),
            None => matrix::run(bench, case),
        },
        help: HELP,
        around: format!(": {}", cage::Cage::new().words()),
    };
    cases.main()
}
