//! Measured by `cargo xtask instructions`: StatsD packets through intake and shard, as the reader's thread runs them.
//!
//! `statsd_samples PACK TYPE SAMPLES`: SAMPLES samples of 1,000 names, PACK in a packet, of TYPE (c, g, ms, s or mix).
//! No clock and no socket: the same arguments cost the same instructions.
#![allow(clippy::print_stderr, reason = "an example says how to call it")]

use std::process::ExitCode;

use model::{Now, SourceId, Span};
use pipeline::{Accounts, Routed, Scratch, Shard};

const NAMES: usize = 1000;

/// Packets of one batch: the most that one system call returns.
const BATCH_PACKETS: usize = 64;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [pack, kind, samples] = args.as_slice() else {
        eprintln!("usage: statsd_samples PACK TYPE SAMPLES");
        return ExitCode::FAILURE;
    };
    let (Ok(pack), Ok(samples)) = (pack.parse::<usize>(), samples.parse::<usize>()) else {
        eprintln!("PACK and SAMPLES are numbers");
        return ExitCode::FAILURE;
    };
    let batches: Vec<(Vec<u8>, Vec<Span>)> = (0..NAMES.div_ceil(BATCH_PACKETS * pack).max(4))
        .map(|at| batch(at * BATCH_PACKETS * pack, pack, kind))
        .collect();
    let now = Now { mono_ns: 1, wall_ns: 1_000_000_000_000_000_000 };
    let plan = config::defaults(std::path::Path::new("."));
    let accounts = Accounts::default().carried_to(&plan);
    let mut shard = Shard::new(&plan, &accounts, 7, now);
    let mut intake = shard.intakes(&plan, SourceId(0), &accounts).make();
    let mut scratch = Scratch::default();
    let mut routed = Routed::default();
    for (bytes, packets) in batches.iter().cycle().take(samples.div_ceil(BATCH_PACKETS * pack)) {
        shard.push(intake.datagrams(bytes, packets, now, &mut scratch), now, &mut routed);
    }
    assert!(accounts.source(SourceId(0)).sum(0).holds(), "every sample has its outcome");
    ExitCode::SUCCESS
}

fn batch(first: usize, pack: usize, kind: &str) -> (Vec<u8>, Vec<Span>) {
    let mut bytes = Vec::new();
    let mut packets = Vec::new();
    for packet in 0..BATCH_PACKETS {
        let lines: Vec<String> = (0..pack).map(|at| line(first + packet * pack + at, kind)).collect();
        let text = lines.join("\n");
        packets.push(Span::new(bytes.len(), text.len()));
        bytes.extend_from_slice(text.as_bytes());
    }
    (bytes, packets)
}

fn line(number: usize, kind: &str) -> String {
    let name = number * 2_654_435_761 % NAMES;
    let kind = if kind == "mix" { ["c", "g", "ms", "s"][number & 3] } else { kind };
    let value = if kind == "c" { 1 } else { number % 1000 };
    format!("app.web{}.requests.endpoint{name}:{value}|{kind}", name % 97)
}
