//! Measures what it costs to send samples to another thread's shard instead of aggregating them where they were read
//! (see ARCHITECTURE.md). `exchange_cost [SAMPLES]` prints nanoseconds per sample for both ways.
//!
//! Both ways run on one thread, so the figures are CPU time without waiting: the exchange's copies, lock and second
//! pass.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example measures and prints")]

use std::time::Instant;

use model::{Now, SourceId, Span};
use pipeline::{Accounts, Exchange, Routed, Scratch, Shard};

const NAMES: usize = 1000;
const BATCH_PACKETS: usize = 64;
const ROUNDS: usize = 9;

fn main() {
    let samples: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(4_000_000);
    for pack in [1, 30] {
        let direct = median(|| run(pack, samples, false));
        let exchanged = median(|| run(pack, samples, true));
        println!(
            "{pack:>2} samples a packet: {direct:.1} ns a sample here, {exchanged:.1} ns through the exchange"
        );
    }
}

fn median(mut run: impl FnMut() -> f64) -> f64 {
    let mut runs: Vec<f64> = (0..ROUNDS).map(|_| run()).collect();
    runs.sort_by(f64::total_cmp);
    runs[ROUNDS / 2]
}

fn run(pack: usize, samples: usize, through_exchange: bool) -> f64 {
    let batches: Vec<(Vec<u8>, Vec<Span>)> =
        (0..8).map(|at| batch(at * BATCH_PACKETS * pack, pack)).collect();
    let now = Now { mono_ns: 1, wall_ns: 1_000_000_000_000_000_000 };
    let plan = config::defaults(std::path::Path::new("."));
    let accounts = Accounts::default().carried_to(&plan);
    let mut shard = Shard::new(&plan, &accounts, 7, now);
    let mut intake = shard.intakes(&plan, SourceId(0), &accounts).make();
    let mut scratch = Scratch::default();
    let exchange = Exchange::new(16 << 20, 1);
    let (mut routed, mut taken) = (Routed::default(), Vec::new());
    let start = Instant::now();
    for (bytes, packets) in batches.iter().cycle().take(samples / (BATCH_PACKETS * pack)) {
        let batch = intake.datagrams(bytes, packets, now, &mut scratch);
        if through_exchange {
            assert!(
                exchange.try_send(model::PeerKey::Local, batch.into_owned()).is_ok(),
                "it is emptied at once"
            );
            exchange.take_all(&mut taken);
            taken.drain(..).for_each(|batch| shard.push(batch, now, &mut routed));
        } else {
            shard.push(batch, now, &mut routed);
        }
    }
    start.elapsed().as_nanos() as f64 / samples as f64
}

fn batch(first: usize, pack: usize) -> (Vec<u8>, Vec<Span>) {
    let (mut bytes, mut packets) = (Vec::new(), Vec::new());
    for packet in 0..BATCH_PACKETS {
        let lines: Vec<String> = (0..pack)
            .map(|at| (first + packet * pack + at) * 2_654_435_761 % NAMES)
            .map(|name| format!("app.web{}.requests.endpoint{name}:1|c", name % 97))
            .collect();
        let text = lines.join("\n");
        packets.push(Span::new(bytes.len(), text.len()));
        bytes.extend_from_slice(text.as_bytes());
    }
    (bytes, packets)
}
