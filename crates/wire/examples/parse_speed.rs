//! Benchmark of the StatsD parser: `cargo run --release -p wire --example parse_speed` prints nanoseconds per line,
//! including the hash.
//!
//! Each row is 1,000 names in packets of 30 lines, parsed in a loop that reuses its memory. The number is the fastest
//! of several rounds, the one least disturbed by other work on the machine.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![allow(clippy::print_stdout, reason = "its numbers are its output")]

use std::hint::black_box;
use std::time::Instant;

use model::Span;
use wire::statsd::{Dialect, Options, Parsed, Parser};

const NAMES: usize = 1000;
const LINES_PER_PACKET: usize = 30;
const ROUNDS: usize = 40;
const PASSES_PER_ROUND: usize = 50;

/// A workload: its title, and the line of each number.
type Workload = (&'static str, fn(usize) -> String);

const WORKLOADS: [Workload; 7] = [
    ("counter, 34 bytes", |n| format!("app.web12.requests.endpoint{:03}:1|c", n)),
    ("names of 20 to 50 bytes", |n| {
        format!("app.web{n}.requests.{}:{}|c", "endpoint".repeat(1 + n * 7 % 4), n * 37 % 100_000)
    }),
    ("c, g, ms, decimals", |n| {
        let kinds = ["c", "ms", "g"];
        format!(
            "app.web12.requests.endpoint{n:03}:{}.{}|{}",
            n * 7 % 1000,
            n * 13 % 1000,
            kinds[n * 11 % 7 % 3]
        )
    }),
    ("counter with rate", |n| format!("app.web12.requests.endpoint{n:03}:1|c|@0.1")),
    ("counter with 3 tags", |n| format!("requests.count:1|c|#env:prod,host:web{n:03},region:eu-west-1")),
    ("timer, rate, tags, container", |n| {
        format!("requests.time:12.5|ms|@0.5|#env:prod,host:web{n:03}|c:ci-83c0a99c0a54c0c187f461c7980e9b57")
    }),
    ("set", |n| format!("app.web12.users.endpoint{n:03}:user-{n}|s")),
];

fn main() {
    let only = std::env::args().nth(1);
    println!(
        "{:<30} {:>8} {:>8} {:>10} {:>8}   ns per line, best of {ROUNDS}",
        "", "etsy", "perl", "dogstatsd", "union"
    );
    for (title, line) in WORKLOADS {
        if only.as_ref().is_some_and(|only| !title.contains(only.as_str())) {
            continue;
        }
        let (arena, packets) = packets_of(line);
        let dialects = [Dialect::Etsy, Dialect::Perl, Dialect::Dogstatsd, Dialect::Union];
        let [etsy, perl, dogstatsd, union] = dialects.map(|dialect| best_ns(dialect, &arena, &packets));
        println!("{title:<30} {etsy:>8.1} {perl:>8.1} {dogstatsd:>10.1} {union:>8.1}");
    }
}

fn packets_of(line: fn(usize) -> String) -> (Vec<u8>, Vec<Span>) {
    let mut arena = Vec::new();
    let mut packets = Vec::new();
    let lines: Vec<String> = (0..NAMES).map(line).collect();
    for packet in lines.chunks(LINES_PER_PACKET) {
        let text = packet.join("\n");
        packets.push(Span::new(arena.len(), text.len()));
        arena.extend_from_slice(text.as_bytes());
    }
    (arena, packets)
}

fn best_ns(dialect: Dialect, arena: &[u8], packets: &[Span]) -> f64 {
    let parser = Parser::new(Options::of(dialect), 0x5eed);
    let mut parsed = Parsed::default();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..PASSES_PER_ROUND {
            for &packet in packets {
                parsed.clear();
                parser.packet(black_box(arena), packet, 0, &mut parsed);
                black_box(&parsed);
            }
        }
        best = best.min(start.elapsed().as_nanos() as f64 / (PASSES_PER_ROUND * NAMES) as f64);
    }
    best
}
