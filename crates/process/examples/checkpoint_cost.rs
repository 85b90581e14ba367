//! Measures the time of a checkpoint in the aggregating thread, and of a start that reads one.
//!
//! `cargo run --release -p process --example checkpoint_cost`; pin it with `taskset -c 1`.
//! Of ten series seven are counters, two gauges, and one is a timer with eight values. Slices have 512 series, as
//! in the daemon; another thread writes them to disk, which is not included.
#![allow(clippy::print_stdout, reason = "an example prints to its user")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod measured;

use std::time::Instant;

use measured::{as_it_is, cpu_ns, hash};
use model::{GaugeOp, Kind, Now, Sample, SampleView, Span, Value};
use process::aggregate::checkpoint::{LastFlush, Slice};
use process::aggregate::{AggregatePlan, Aggregator};

const SLICE_SERIES: usize = 512;
const TIMER_VALUES: usize = 8;
const ROUNDS: usize = 7;

fn fill(aggregator: &mut Aggregator, series: usize) {
    for at in 0..series {
        let text = format!("service.host{:05}.requests.{:09}", at % 97, at);
        let kind =
            [Kind::Counter, Kind::Gauge, Kind::Timer][usize::from(at % 10 > 6) + usize::from(at % 10 > 8)];
        let sample = Sample {
            hash: hash(kind, text.as_bytes()),
            value: Value::Number(at as f64),
            weight: 1.0,
            name: Span::new(0, text.len()),
            tags: Span::default(),
            kind,
            gauge_op: GaugeOp::Assign,
            extra: 0,
        };
        let samples = vec![sample; if kind == Kind::Timer { TIMER_VALUES } else { 1 }];
        let view = SampleView { bytes: text.as_bytes(), samples: &samples, extras: &[] };
        aggregator.add(view, Now::default(), as_it_is, |_, _| {});
    }
}

/// Saves once; returns nanoseconds per series, and adds the time of each slice in microseconds.
fn save(aggregator: &mut Aggregator, bytes: &mut Vec<u8>, series: usize, slices: &mut Vec<f64>) -> f64 {
    bytes.clear();
    let start = cpu_ns();
    assert!(aggregator.save_begin(1, 1, Now::default(), bytes));
    loop {
        let slice = Instant::now();
        let done = aggregator.save_slice(SLICE_SERIES, bytes) != Slice::More;
        slices.push(slice.elapsed().as_secs_f64() * 1e6);
        if done {
            break;
        }
    }
    (cpu_ns() - start) / series as f64
}

fn main() {
    for series in [100_000, 1_000_000] {
        let mut aggregator = Aggregator::new(AggregatePlan::default(), Now::default());
        fill(&mut aggregator, series);
        let mut bytes = Vec::new();
        // The first one grows the buffers.
        save(&mut aggregator, &mut bytes, series, &mut Vec::new());
        let mut slices = Vec::new();
        let mut runs: Vec<f64> =
            (0..ROUNDS).map(|_| save(&mut aggregator, &mut bytes, series, &mut slices)).collect();
        runs.sort_by(f64::total_cmp);
        slices.sort_by(f64::total_cmp);
        let (least, median, most) = (runs[0], runs[ROUNDS / 2], runs[ROUNDS - 1]);
        println!("{series} series: {:.1} bytes/series", bytes.len() as f64 / series as f64);
        println!("  save: min {least:.1} median {median:.1} max {most:.1} ns/series");
        let at = |share: f64| slices[(slices.len() as f64 * share) as usize];
        println!("  slices of {SLICE_SERIES}: median {:.0} us, 99 of 100 within {:.0} us", at(0.5), at(0.99));
        println!("  every 5 s: {:.2} % of a core", median * series as f64 / 5e9 * 100.0);
        let mut other = Aggregator::new(AggregatePlan::default(), Now::default());
        let start = cpu_ns();
        let restored = other
            .restore(&bytes, LastFlush::default(), Now::default(), as_it_is)
            .expect("a valid saved state");
        assert_eq!(restored.series, series as u64);
        println!("  restore: {:.1} ns/series", (cpu_ns() - start) / series as f64);
    }
}
