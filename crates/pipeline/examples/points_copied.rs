//! Measured by `cargo xtask instructions`: Graphite lines of a connection to two carbons, from reads of 64 KiB to the
//! blocks appended to their queues.
//!
//! `points_copied COMPATIBILITY LINES`: LINES lines of about 48 bytes, of 10,000 names, read with that `compatibility`.
//! No clock and no socket: the same arguments cost the same instructions.
#![allow(clippy::print_stderr, reason = "an example says how to call it")]

use std::process::ExitCode;

use config::diagnostic::Source;
use model::{Now, SourceId};
use pipeline::{Accounts, Routed, Scratch, Shard};

const NAMES: usize = 10_000;

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [compatibility, lines] = args.as_slice() else {
        eprintln!("usage: points_copied COMPATIBILITY LINES");
        return ExitCode::FAILURE;
    };
    let Ok(lines) = lines.parse::<u64>() else {
        eprintln!("LINES is a number");
        return ExitCode::FAILURE;
    };
    let text = format!(
        "[sources.in]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\ncompatibility = \"{compatibility}\"\n\
         [outputs.o]\ntype = \"graphite\"\nfrom = [\"in\"]\nto = [\"tcp://127.0.0.1:1\", \"tcp://127.0.0.1:2\"]\n"
    );
    let (plan, mistakes) = config::check(Source { name: "example", text: &text }, config::Format::Toml);
    let Some(plan) = plan else {
        eprintln!("{mistakes:?}");
        return ExitCode::FAILURE;
    };
    let now = Now { mono_ns: 1, wall_ns: 1_000_000_000_000_000_000 };
    let accounts = Accounts::default().carried_to(&plan);
    let mut shard = Shard::new(&plan, &accounts, 7, now);
    let mut intake = shard.intakes(&plan, SourceId(0), &accounts).make();
    let mut scratch = Scratch::default();
    let mut routed = Routed::default();
    let stream: String = (0..NAMES).map(line).collect();
    let account = accounts.source(SourceId(0));
    while account.sum(0).routed < lines {
        for read in stream.as_bytes().chunks(READ_BYTES) {
            // As a connection's task sends it to the shard's thread.
            let batch = intake.stream(read, now, &mut scratch).into_owned();
            shard.push(batch, now, &mut routed);
            shard.close_blocks(now, &mut routed);
            routed.blocks.clear();
        }
    }
    assert!(account.sum(0).holds(), "every line has its outcome");
    ExitCode::SUCCESS
}

fn line(number: usize) -> String {
    let name = number * 2_654_435_761 % NAMES;
    format!("servers.web{:02}.endpoint{name:05}.count {}.5 1700000000\n", name % 97, number % 1000)
}
