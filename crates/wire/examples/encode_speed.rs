//! Benchmark of the Graphite encoder: a flush of a million counters, by kind of number and by encoding.
//!
//! `cargo run --release -p wire --example encode_speed`, on a machine that does nothing else. Each row is the
//! best of ten flushes; a counter is two points (rate and count).

// An example may print and read the clock: it is the outside of the crate.
#![allow(clippy::print_stdout, clippy::disallowed_methods)]

use std::time::Instant;

use model::{FlushInfo, Flushed, SeriesRef};
use wire::graphite::{Encoded, Encoder, Namespace};

const SERIES: usize = 1_000_000;
const RUNS: usize = 10;

/// One of the encoder's encodings.
type Write = fn(&mut Encoder, &FlushInfo, &Flushed<'_>, &mut Vec<u8>) -> Encoded;

/// The count of the n-th series.
type Value = fn(usize) -> f64;

fn main() {
    let names: Vec<String> =
        (0..SERIES).map(|n| format!("app.web{:03}.requests.r{:06}", n % 1000, n)).collect();
    let forms: [(&str, Write); 2] = [("lines", Encoder::lines), ("pickle", Encoder::pickle_points)];
    let values: [(&str, Value); 4] = [
        ("rate whole (count 70)", |_| 70.0),
        ("rate x.y (count 0..99999)", |n| (n * 7 % 100_000) as f64),
        ("both with three decimals", |n| (n * 7 % 100_000) as f64 / 100.0),
        ("both with all digits", |n| (n + 1) as f64 / 3.0),
    ];
    for (form, write) in forms {
        for (what, value) in values {
            for tags in ["", "env:prod,host:web01"] {
                let best =
                    (0..RUNS).map(|_| flush(&names, tags, value, write)).min().expect("RUNS is above 0");
                println!("{form:6} {what:27} tags {tags:20} {:4} ns per counter", best / SERIES as u128);
            }
        }
    }
}

/// Nanoseconds for one flush, written in blocks of 256 KiB as the pipeline does.
fn flush(names: &[String], tags: &str, value: Value, write: Write) -> u128 {
    const BLOCK_BYTES: usize = 256 * 1024;

    let info = FlushInfo { time_s: 1_700_000_000, window_s: 10.0, elapsed_s: 10.0 };
    let mut encoder = Encoder::new(Namespace::default());
    let mut out = Vec::with_capacity(2 * BLOCK_BYTES);
    let mut encoded = Encoded::default();
    let started = Instant::now();
    for (n, name) in names.iter().enumerate() {
        let count = value(n);
        let series = SeriesRef { name: name.as_bytes(), tags: tags.as_bytes(), clean: true };
        encoded +=
            write(&mut encoder, &info, &Flushed::Counter { series, count, rate: count / 10.0 }, &mut out);
        if out.len() > BLOCK_BYTES {
            std::hint::black_box(&out);
            out.clear();
        }
    }
    let took = started.elapsed().as_nanos();
    assert_eq!(encoded.points as usize, 2 * names.len());
    took
}
