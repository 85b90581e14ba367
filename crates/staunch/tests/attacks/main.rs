//! The attack bench: what one hostile or unlucky peer can do to a real daemon, beside an innocent one.
//!
//! Path of a finding: [`CASES`] -> a case (`a1::run`) sets a [`scene::Scene`], whose attackers are processes of their own
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

mod a1;
mod a10;
mod a11;
mod a12;
mod a13;
mod a2;
mod a3;
mod a4;
mod a5;
mod a6;
mod a7;
mod a8;
mod a9;
mod asker;
mod attacker;
mod cage;
mod children;
mod clocks;
mod exhausted;
mod files;
mod finding;
mod innocent;
mod matrix;
mod payloads;
mod scene;
#[path = "../binary/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the tests of the binary, which need more of it")]
mod support;

use std::process::ExitCode;

use finding::End;
use support::bench::Bench;
use support::cases::Cases;

/// A case: its name and what it does.
type Case = (&'static str, fn(&Bench) -> End);

const CASES: &[Case] = &[
    ("A1", a1::run),
    ("A2", a2::run),
    ("A3", a3::run),
    ("A4", a4::run),
    ("A5", a5::run),
    ("A6", a6::run),
    ("A7", a7::run),
    ("A8", a8::run),
    ("A9", a9::run),
    ("A10", a10::run),
    ("A11", a11::run),
    ("A12", a12::run),
    ("A13", a13::run),
    ("C1", clocks::run),
    ("E1", exhausted::inodes),
    ("E2", exhausted::threads),
    ("X1", files::run),
];

/// For `--help`.
const HELP: &str = "\
Attacks the daemon over loopback, and measures what an innocent peer notices (docs/reliability.md).

usage: cargo test -p staunch --test attacks -- [CASE…] [options]

  CASE          A1 to A13, C1, E1, E2, X1, M1 to M16; all without one
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
