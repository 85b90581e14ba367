//! What several readers are good for: `readers [SECONDS]` feeds lines from memory to one or two reader threads, which
//! decompress and parse and send batches through the exchange to the shard's thread. No sockets, and no generator that takes
//! a core from them. Prints records a second, CPU time per record, and how many cores the process used.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example measures and prints")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use model::{Now, PeerKey, SourceId};
use pipeline::{Accounts, Exchange, IntakeMaker, Routed, Scratch, Shard};
use wire::compression::{Compression, Compressor, Decompressor};

const NAMES: usize = 1000;
const READ_BYTES: usize = 64 * 1024;
const EXCHANGE_BYTES_MAX: usize = 4 << 20;
const ROUNDS: usize = 3;
const PAUSE: Duration = Duration::from_micros(50);
const NOW: Now = Now { mono_ns: 1, wall_ns: 1_000_000_000_000_000_000 };

/// What a run gave.
#[derive(Clone, Copy, Debug)]
struct Figures {
    records_a_second: f64,
    cpu_ns_a_record: f64,
    /// Of the shard's thread.
    shard_ns_a_record: f64,
    cores: f64,
}

fn main() {
    let seconds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2);
    for compression in [Compression::Plain, Compression::Gzip] {
        let mut one = 0.0;
        for readers in [1, 2] {
            let mut runs: Vec<Figures> =
                (0..ROUNDS).map(|_| run(readers, compression, Duration::from_secs(seconds))).collect();
            runs.sort_by(|a, b| a.records_a_second.total_cmp(&b.records_a_second));
            let Figures { records_a_second, cpu_ns_a_record, shard_ns_a_record, cores } = runs[ROUNDS / 2];
            if readers == 1 {
                one = records_a_second;
            }
            println!(
                "{:>5} lines, {readers} readers: {:.2} million records/s ({:.2} of one reader), {cpu_ns_a_record:.1} ns CPU a \
                 record ({shard_ns_a_record:.1} of the shard), {cores:.2} cores used",
                compression.word(),
                records_a_second / 1e6,
                records_a_second / one
            );
        }
    }
}

fn run(readers: usize, compression: Compression, time: Duration) -> Figures {
    let plan = config::defaults(std::path::Path::new("."));
    let accounts = Accounts::default().carried_to(&plan);
    let mut shard = Shard::new(&plan, &accounts, 7, NOW);
    let maker = shard.intakes(&plan, SourceId(0), &accounts);
    let exchange = Arc::new(Exchange::new(EXCHANGE_BYTES_MAX, 1));
    let ends = Arc::new(AtomicBool::new(false));
    let (begun, cpu_before, shard_before) = (Instant::now(), cpu_ns(), thread_cpu_ns());
    let threads: Vec<_> = (0..readers)
        .map(|at| {
            let (maker, exchange, ends) = (maker.clone(), Arc::clone(&exchange), Arc::clone(&ends));
            std::thread::spawn(move || read(at, &maker, compression, &exchange, &ends))
        })
        .collect();
    let (mut routed, mut taken, mut records) = (Routed::default(), Vec::new(), 0);
    while begun.elapsed() < time {
        exchange.take_all(&mut taken);
        if taken.is_empty() {
            std::thread::sleep(PAUSE);
        }
        for batch in taken.drain(..) {
            records += batch.records();
            shard.push(batch, NOW, &mut routed);
        }
    }
    let (took, cpu) = (begun.elapsed(), cpu_ns() - cpu_before);
    let shard_cpu = thread_cpu_ns() - shard_before;
    ends.store(true, Relaxed);
    exchange.close();
    threads.into_iter().for_each(|thread| thread.join().expect("a reader ends"));
    exchange.take_all(&mut taken);
    taken.drain(..).for_each(|batch| shard.push(batch, NOW, &mut routed));
    Figures {
        records_a_second: records as f64 / took.as_secs_f64(),
        cpu_ns_a_record: cpu / records as f64,
        shard_ns_a_record: shard_cpu / records as f64,
        cores: cpu / took.as_nanos() as f64,
    }
}

/// One reader with one connection, whose bytes come again and again.
fn read(at: usize, maker: &IntakeMaker, compression: Compression, exchange: &Exchange, ends: &AtomicBool) {
    let peer = PeerKey::V4(at as u32);
    let (mut intake, mut scratch) = (maker.make(), Scratch::default());
    let plain = lines(at);
    let packed = Compressor::new(compression).map(|mut compressor| {
        let (mut packed, mut rest) = (Vec::new(), &plain[..]);
        while !rest.is_empty() {
            rest = &rest[compressor.push(rest, &mut packed)..];
            compressor.flush(&mut packed);
        }
        compressor.finish(&mut packed);
        packed
    });
    let mut unpacked = Vec::new();
    while !ends.load(Relaxed) {
        if !exchange.has_room(SourceId(0)) {
            std::thread::sleep(PAUSE);
            continue;
        }
        let bytes = match (&packed, Decompressor::new(compression)) {
            (Some(packed), Some(mut decompressor)) => {
                unpacked.clear();
                decompressor.push(packed);
                while decompressor.has_more() && unpacked.len() < plain.len() {
                    decompressor.decompress(&mut unpacked).expect("it was compressed here");
                }
                &unpacked[..]
            }
            (_, _) => &plain[..],
        };
        let batch = intake.stream(bytes, NOW, &mut scratch).into_owned();
        if let Err(closed) = exchange.send_into_found_room(peer, batch) {
            closed.settle(model::Outcome::Dropped(model::Dropped::Stopped));
        }
    }
}

fn lines(first: usize) -> Vec<u8> {
    let mut lines = Vec::new();
    for at in first.. {
        let name = at * 2_654_435_761 % NAMES;
        let line = format!("app.web{}.requests.endpoint{name}:{}|c\n", name % 97, at % 1000);
        if lines.len() + line.len() > READ_BYTES {
            break;
        }
        lines.extend_from_slice(line.as_bytes());
    }
    lines
}

/// CPU time of all threads of this process, ended ones included as far as `/proc` knows them: none ends during a run.
fn cpu_ns() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("this is Linux");
    tasks.filter_map(|task| schedstat(&task.ok()?.path())).sum()
}

/// CPU time of this thread.
fn thread_cpu_ns() -> f64 {
    schedstat(std::path::Path::new("/proc/thread-self")).expect("this is Linux")
}

fn schedstat(task: &std::path::Path) -> Option<f64> {
    let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
    text.split(' ').next()?.parse().ok()
}
