//! The fault bench: kills, starves and floods real daemons over loopback, and counts by ids what was lost.
//!
//! Path of a finding: [`CASES`] -> a case (`f5::run`) starts daemons, endpoints and senders -> the oracle counts ids
//! -> [`finding::Finding`] holds the counts against what is promised -> `report` prints it. docs/reliability.md has
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
mod report;
#[path = "../binary/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the tests of the binary, which need more of it")]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use finding::{Bench, End, Finding};
use report::Row;
use support::arguments::{Arguments, Form};

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
];

/// For `--help`.
const HELP: &str = "\
Kills, starves and floods the daemon, and counts what was lost (docs/reliability.md).

usage: cargo test -p staunch --test faults -- [CASE…] [options]

  CASE          F1 to F15; all without one
  --full        the numbers of docs/reliability.md (an hour), not those of a test
  --seed N      everything random comes from N
  --staunch PATH
                this binary, not the one of this build
  --json        one JSON document
  --markdown    the table for docs/reliability.md
exit: 0 all promises kept, 1 one was broken, 2 the command line is wrong";

fn main() -> ExitCode {
    let names: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
    let words = std::env::args().skip(1);
    if std::env::args().any(|word| word == "--help" || word == "-h") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let arguments = match Arguments::parse(words, &names) {
        Ok(arguments) => arguments,
        Err(mistake) => {
            eprintln!("faults: {mistake}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    if let Some(binary) = &arguments.staunch {
        support::daemon::test_instead(binary.clone());
    }
    oracle::self_test();
    let rows = run(&arguments);
    if rows.iter().any(Row::is_broken) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn run(arguments: &Arguments) -> Vec<Row> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("this is after 1970");
    let seed = arguments.seed.unwrap_or(since_1970.as_nanos() as u64 % 1_000_000_000);
    let text = arguments.form == Form::Text;
    // On stderr where stdout is a document.
    let size = if arguments.full { " --full" } else { "" };
    let told = format!("faults{size} --seed {seed}");
    if text {
        println!("{told}\n{}", report::heading())
    } else {
        eprintln!("{told}")
    }
    let mut rows = Vec::new();
    for (case, run) in CASES {
        if !arguments.cases.is_empty() && !arguments.cases.iter().any(|asked| asked == case) {
            continue;
        }
        let bench = Bench::new(case, arguments.full, seed);
        let end = catch_unwind(AssertUnwindSafe(|| run(&bench))).unwrap_or_else(|panic| broken(&*panic));
        let row = Row { case, end };
        if text {
            println!("{}", report::text(&row));
        }
        rows.push(row);
    }
    match arguments.form {
        Form::Text => {
            // For the summary of `make test`.
            for row in &rows {
                if let End::Skipped(why) = &row.end {
                    println!("SKIPPED {}: {why}", row.case);
                }
            }
            println!("{} passed, {} failed", count(&rows, false), count(&rows, true));
        }
        Form::Markdown => print!("{}", report::markdown(&rows, "make faults")),
        Form::Json => println!("{:#}", report::json(&rows, seed, arguments.full)),
    }
    rows
}

fn count(rows: &[Row], broken: bool) -> usize {
    let ran = rows.iter().filter(|row| matches!(row.end, End::Ran(_)));
    ran.filter(|row| row.is_broken() == broken).count()
}

/// A case that could not go on has found something, too.
fn broken(panic: &(dyn std::any::Any + Send)) -> End {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it says nothing");
    End::Ran(Finding { broken: vec![format!("the case panicked: {text}")], ..Finding::default() })
}
