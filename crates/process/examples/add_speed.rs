//! Measures the time of a counter sample in `Aggregator::add`, and the memory of a series.
//!
//! `cargo run --release -p process --example add_speed`; pin it with `taskset -c 1`.
//! Samples come in batches of 32, as packets do, with names in random order. Parsing and hashing are not included.
#![allow(clippy::print_stdout, reason = "an example prints to its user")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod measured;

use std::time::Instant;

use measured::{as_it_is, cpu_ns, hash};
use model::{GaugeOp, Kind, Now, Sample, SampleView, Span, Value};
use process::aggregate::{AggregatePlan, Aggregator, Tick};

const BATCH: usize = 32;

struct Packets {
    bytes: Vec<u8>,
    samples: Vec<Sample>,
}

/// `count` samples with random names out of `names`, each name `len` bytes long.
fn packets(names: u64, len: usize, count: usize, in_order: bool) -> Packets {
    let (mut bytes, mut samples) = (Vec::new(), Vec::new());
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for at in 0..count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let name = if in_order { at as u64 } else { random % names };
        let start = bytes.len();
        let text = format!("service.host{:05}.requests.{:09}", name % 97, name);
        bytes.extend(text.bytes().chain(std::iter::repeat(b'x')).take(len.max(text.len())));
        let name = Span::new(start, bytes.len() - start);
        bytes.extend(b":1|c\n");
        samples.push(Sample {
            hash: hash(Kind::Counter, name.of(&bytes)),
            value: Value::Number(1.0),
            weight: 1.0,
            name,
            tags: Span::default(),
            kind: Kind::Counter,
            gauge_op: GaugeOp::Assign,
            extra: 0,
        });
    }
    Packets { bytes, samples }
}

/// Adds all packets; returns nanoseconds per sample and the longest batch in microseconds.
fn add(aggregator: &mut Aggregator, packets: &Packets, watch: bool) -> (f64, f64) {
    let (start, mut longest) = (cpu_ns(), 0f64);
    for samples in packets.samples.chunks(BATCH) {
        let batch = watch.then(Instant::now);
        let view = SampleView { bytes: &packets.bytes, samples, extras: &[] };
        let added = aggregator.add(view, Now::default(), as_it_is, |_, _| {});
        assert_eq!(added.aggregated, samples.len() as u64);
        longest = batch.map_or(0.0, |batch| longest.max(batch.elapsed().as_secs_f64() * 1e6));
    }
    ((cpu_ns() - start) / packets.samples.len() as f64, longest)
}

fn main() {
    for (names, len) in [(1_000u64, 30), (1_000_000, 40)] {
        let mut aggregator = Aggregator::new(AggregatePlan::default(), Now::default());
        let before = aggregator.figures().memory_bytes;
        let all = packets(names, len, names as usize, true);
        let (created, stall) = add(&mut aggregator, &all, true);
        let bytes = (aggregator.figures().memory_bytes - before) as f64 / names as f64;
        println!("{names} names: {bytes:.1} bytes/series");
        // A few names: samples that fit into the cache, as those of a batch that was just read do.
        let many = names > 10_000;
        let (samples, times) = if many { (4_000_000, 1) } else { (8192, 500) };
        let random = packets(names, len, samples, false);
        let mut run =
            || (0..times).map(|_| add(&mut aggregator, &random, false).0).sum::<f64>() / f64::from(times);
        let mut runs: Vec<f64> = (0..7).map(|_| run()).collect();
        runs.sort_by(f64::total_cmp);
        println!("  add: min {:.1} median {:.1} max {:.1} ns/sample", runs[0], runs[3], runs[6]);
        if !many {
            // Too short for the system's clock of processor time.
            continue;
        }
        println!("  create: {created:.1} ns/series, longest batch {stall:.0} us");
        let now = Now { mono_ns: 20_000_000_000, wall_ns: 20_000_000_000 };
        let (start, mut emitted) = (cpu_ns(), 0u64);
        while !matches!(aggregator.tick(now, 4096, |_, _| emitted += 1), Tick::Ended(_)) {}
        let ns = (cpu_ns() - start) / names as f64;
        println!("  sweep: {ns:.1} ns/series, {emitted} emitted");
        let (touched, _) = add(&mut aggregator, &all, false);
        println!("  first touch in a window: {touched:.1} ns/sample");
    }
}
