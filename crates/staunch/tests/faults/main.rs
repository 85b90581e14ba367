//! The fault bench: kills, starves and floods real daemons over loopback, and counts by ids what was lost.
//!
//! Path of a finding: [`CASES`] -> a case (`f5::run`) starts daemons, endpoints and senders -> the oracle counts ids
//! -> [`finding::Finding`] holds the counts against what is promised -> `support::cases` prints it. docs/reliability.md has
//! the promises and the figures of a full run. Each case is a file; each has a small form, for `make test`.
//! Not here: power loss, which needs a disk that forgets (`cargo xtask sim`).
//! Invariant: everything stays on loopback, on ports that the system chose, and processes are ended by their ids.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the bench waits on the machine's own clock, and its table is its purpose"
)]

mod acked;
mod endpoint;
mod f1;
mod f10;
mod f11;
mod f12;
mod f13;
mod f14;
mod f15;
mod f16;
mod f17;
mod f18;
mod f19;
mod f2;
mod f3;
mod f4;
mod f5;
mod f6;
mod f7;
mod f8;
mod f9;
mod finding;
mod load;
mod oracle;
mod relay;
mod small_disk;
#[path = "../binary/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the tests of the binary, which need more of it")]
mod support;

use std::process::ExitCode;

use finding::{Bench, End};
use support::cases::Cases;

/// A case: its name and what it does.
type Case = (&'static str, fn(&Bench) -> End);

const CASES: &[Case] = &[
    ("F1", f1::run),
    ("F2", f2::run),
    ("F3", f3::run),
    ("F4", f4::run),
    ("F5", f5::run),
    ("F6", f6::run),
    ("F7", f7::run),
    ("F8", f8::run),
    ("F9", f9::run),
    ("F10", f10::run),
    ("F11", f11::run),
    ("F12", f12::run),
    ("F13", f13::run),
    ("F14", f14::run),
    ("F15", f15::run),
    ("F16", f16::run),
    ("F17", f17::run),
    ("F18", f18::run),
    ("F19", f19::run),
];

/// For `--help`.
const HELP: &str = "\
Kills, starves and floods the daemon, and counts what was lost (docs/reliability.md).

usage: cargo test -p staunch --test faults -- [CASE…] [options]

  CASE          F1 to F19; all without one
  --full        the numbers of docs/reliability.md (an hour), not those of a test
  --seed N      everything random comes from N
  --staunch PATH
                this binary, not the one of this build
  --json        one JSON document
  --markdown    the table for docs/reliability.md
exit: 0 all promises kept, 1 one was broken, 2 the command line is wrong";

fn main() -> ExitCode {
    oracle::self_test();
    let run = |bench: &Bench, case: &str| {
        let (_, run) = CASES.iter().find(|(name, _)| *name == case).expect("it is one of them");
        run(bench)
    };
    let names = CASES.iter().map(|(name, _)| *name).collect();
    Cases { name: "faults", names, run: &run, help: HELP, around: String::new() }.main()
}
