//! What several readers are good for: `readers [SECONDS [INPUT]]` feeds one or two reader threads from memory. They decrypt, decompress and
//! parse, and send batches through the exchange to the shard's thread. No sockets, and no generator that takes a core from them.
//!
//! Inputs: plain lines and lines of a gzip stream in TLS, read as connections are; packets of one StatsD sample, read as datagrams
//! are, 64 a call on the thread of the shard, 256 on one of its own. With one reader of packets, its thread runs the shard, as in the daemon.
//! What the machine allows is measured beside it: one and two threads that read and aggregate by themselves and share nothing. Where two
//! cores are two hardware threads of one, both become slower when both are busy, and no exchange is to blame for it.
//! Rounds take turns, and medians are printed: CPU time per record, records a second, cores used, and ratios.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example measures and prints")]

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use model::{Batches, Dropped, Now, Outcome, PeerKey, SourceId, Span};
use pipeline::{Accounts, Exchange, Intake, IntakeMaker, Routed, Scratch, Shard};
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use wire::compression::{Compression, Compressor, Decompressor};

/// The daemon's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NAMES: usize = 1000;
const READ_BYTES: usize = 64 * 1024;
/// Packets of a call of the shard's thread, as in the daemon.
const CALL_PACKETS: usize = 64;
/// Packets of a call of a reader's thread, as in the daemon.
const READER_PACKETS: usize = 256;
const EXCHANGE_BYTES_MAX: usize = 4 << 20;
const ROUNDS: usize = 5;
const PAUSE: Duration = Duration::from_micros(200);
const NOW: Now = Now { mono_ns: 1, wall_ns: 1_000_000_000_000_000_000 };
const SOURCE: SourceId = SourceId(0);

/// Encrypted bytes of one reader: a stream cannot be read twice.
const ENCRYPTED_BYTES: usize = 48 << 20;

#[derive(Clone, Copy, Debug)]
enum Input {
    Lines,
    TlsGzip,
    Packets,
}

/// The figures of a run.
#[derive(Clone, Copy, Debug)]
struct Figures {
    records_a_second: f64,
    cpu_ns_a_record: f64,
    /// Of the shard's thread; 0 where it is the reader's.
    shard_ns_a_record: f64,
    cores: f64,
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let time = Duration::from_secs_f64(seconds);
    let only = std::env::args().nth(2);
    for (input, what) in
        [(Input::Lines, "plain lines"), (Input::TlsGzip, "TLS+gzip lines"), (Input::Packets, "packets")]
    {
        if only.as_ref().is_none_or(|only| only == what) {
            compare(input, what, time);
        }
    }
}

fn compare(input: Input, what: &str, time: Duration) {
    let mut runs: [Vec<Figures>; 4] = Default::default();
    for _round in 0..ROUNDS {
        for number in [1, 2] {
            runs[number - 1].push(run(number, input, time));
            runs[number + 1].push(side_by_side(number, input, time));
        }
    }
    let rows @ [one, two, alone, both] = runs.map(medians);
    let names = ["1 reader", "2 readers", "1 thread alone", "2 threads alone"];
    for (name, figures) in names.into_iter().zip(rows) {
        let Figures { records_a_second, cpu_ns_a_record, shard_ns_a_record, cores } = figures;
        println!(
            "{what:>14}, {name:<15}: {cpu_ns_a_record:6.1} ns CPU a record ({shard_ns_a_record:4.1} of the shard), \
             {:5.2} million records/s, {cores:.2} cores used",
            records_a_second / 1e6
        );
    }
    for (name, two, one) in [("2 readers to 1", two, one), ("2 alone to 1", both, alone)] {
        println!(
            "{what:>14}, {name:<15}: {:.2} of the CPU time, {:.2} of the throughput",
            two.cpu_ns_a_record / one.cpu_ns_a_record,
            two.records_a_second / one.records_a_second
        );
    }
}

fn medians(runs: Vec<Figures>) -> Figures {
    let median = |of: fn(&Figures) -> f64| {
        let mut all: Vec<f64> = runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Figures {
        records_a_second: median(|run| run.records_a_second),
        cpu_ns_a_record: median(|run| run.cpu_ns_a_record),
        shard_ns_a_record: median(|run| run.shard_ns_a_record),
        cores: median(|run| run.cores),
    }
}

fn run(readers: usize, input: Input, time: Duration) -> Figures {
    let plan = config::defaults(std::path::Path::new("."));
    let accounts = Accounts::default().carried_to(&plan);
    let mut shard = Shard::new(&plan, &accounts, 7, NOW);
    let maker = shard.intakes(&plan, SOURCE, &accounts);
    let feeds: Vec<Feed> = (0..readers).map(|at| Feed::new(at, input, READER_PACKETS, &maker)).collect();
    if matches!(input, Input::Packets) && readers == 1 {
        return side_by_side(1, input, time);
    }
    let exchange = Exchange::new(EXCHANGE_BYTES_MAX, 1).with_packet_lanes(readers, EXCHANGE_BYTES_MAX);
    let (ends, running) = (AtomicBool::new(false), AtomicUsize::new(readers));
    let mut routed = Routed::default();
    std::thread::scope(|scope| {
        let begun = Instant::now();
        let (cpu_before, shard_before) = (cpu_ns(), thread_cpu_ns());
        for (at, mut feed) in feeds.into_iter().enumerate() {
            let (exchange, ends, running) = (&exchange, &ends, &running);
            scope.spawn(move || {
                while !ends.load(Relaxed) && feed.read(at, exchange) {}
                running.fetch_sub(1, Relaxed);
                // Its CPU time counts as long as it is there.
                while !ends.load(Relaxed) {
                    std::thread::sleep(PAUSE);
                }
            });
        }
        let mut records = 0;
        while begun.elapsed() < time && running.load(Relaxed) == readers {
            let taken = take(readers, &exchange, &mut shard, &mut routed);
            records += taken;
            if taken == 0 {
                std::thread::sleep(PAUSE);
            }
        }
        let (took, cpu) = (begun.elapsed(), cpu_ns() - cpu_before);
        let shard_cpu = thread_cpu_ns() - shard_before;
        ends.store(true, Relaxed);
        exchange.close();
        take(readers, &exchange, &mut shard, &mut routed);
        figures(records, took, cpu, shard_cpu)
    })
}

fn figures(records: u64, took: Duration, cpu: f64, shard_cpu: f64) -> Figures {
    Figures {
        records_a_second: records as f64 / took.as_secs_f64(),
        cpu_ns_a_record: cpu / records as f64,
        shard_ns_a_record: shard_cpu / records as f64,
        cores: cpu / took.as_nanos() as f64,
    }
}

/// The shard takes all that is there.
fn take(readers: usize, exchange: &Exchange, shard: &mut Shard, routed: &mut Routed) -> u64 {
    let mut records = 0;
    let mut push = |batch: Batches<'static>| {
        records += batch.records();
        shard.push(batch, NOW, routed);
    };
    while let Some((_, batch)) = exchange.take_oldest() {
        push(batch);
    }
    for lane in 0..readers {
        while let Some(batch) = exchange.take_packets(lane) {
            push(batch);
        }
    }
    records
}

/// Threads that read and aggregate by themselves.
fn side_by_side(threads: usize, input: Input, time: Duration) -> Figures {
    let alone = |at: usize| {
        let plan = config::defaults(std::path::Path::new("."));
        let accounts = Accounts::default().carried_to(&plan);
        let mut shard = Shard::new(&plan, &accounts, 7, NOW);
        let mut feed = Feed::new(at, input, CALL_PACKETS, &shard.intakes(&plan, SOURCE, &accounts));
        let mut routed = Routed::default();
        let (begun, cpu_before) = (Instant::now(), thread_cpu_ns());
        let mut records = 0;
        while begun.elapsed() < time {
            let Some(batch) = feed.batch() else { break };
            records += batch.records();
            shard.push(batch, NOW, &mut routed);
        }
        figures(records, begun.elapsed(), thread_cpu_ns() - cpu_before, 0.0)
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|at| scope.spawn(move || alone(at))).collect();
        let all: Vec<Figures> = running.into_iter().map(|thread| thread.join().expect("it ends")).collect();
        let sum = |of: fn(&Figures) -> f64| all.iter().map(of).sum::<f64>();
        let records_a_second = sum(|one| one.records_a_second);
        let cores = sum(|one| one.cores);
        Figures {
            records_a_second,
            cpu_ns_a_record: cores * 1e9 / records_a_second,
            shard_ns_a_record: 0.0,
            cores,
        }
    })
}

/// What one reader has to read.
struct Feed {
    intake: Intake,
    scratch: Scratch,
    lines: Vec<u8>,
    /// Packets by call; none where lines are read.
    calls: Vec<Vec<Vec<u8>>>,
    /// The next call.
    next: usize,
    /// Packets of a call without the room between them, as a reader thread copies them.
    dense: (Vec<u8>, Vec<Span>),
    encrypted: Option<Encrypted>,
}

impl Feed {
    fn new(at: usize, input: Input, call_packets: usize, maker: &IntakeMaker) -> Feed {
        let lines = lines(at);
        let (mut calls, mut encrypted) = (Vec::new(), None);
        match input {
            Input::Lines => {}
            Input::TlsGzip => encrypted = Some(Encrypted::of(&lines)),
            Input::Packets => {
                let packets: Vec<Vec<u8>> = lines
                    .split(|byte| *byte == b'\n')
                    .filter(|line| !line.is_empty())
                    .map(<[u8]>::to_vec)
                    .collect();
                calls = packets.chunks_exact(call_packets).map(<[Vec<u8>]>::to_vec).collect();
            }
        }
        let (intake, scratch, dense) = (maker.make(), Scratch::default(), Default::default());
        Feed { intake, scratch, lines, calls, next: at, dense, encrypted }
    }

    fn packets(&mut self) -> Batches<'_> {
        self.next = (self.next + 1) % self.calls.len();
        let (bytes, packets) = &mut self.dense;
        bytes.clear();
        packets.clear();
        for packet in &self.calls[self.next] {
            packets.push(Span::new(bytes.len(), packet.len()));
            bytes.extend_from_slice(packet);
        }
        self.intake.datagrams(bytes, packets, NOW, &mut self.scratch)
    }

    /// One read.
    fn batch(&mut self) -> Option<Batches<'_>> {
        if !self.calls.is_empty() {
            return Some(self.packets());
        }
        let Feed { intake, scratch, lines, encrypted, .. } = self;
        let bytes = match encrypted {
            Some(encrypted) => encrypted.read()?,
            None => &lines[..],
        };
        Some(intake.stream(bytes, NOW, scratch))
    }

    /// One read, handed on. False when there is nothing more.
    fn read(&mut self, at: usize, exchange: &Exchange) -> bool {
        let is_packets = !self.calls.is_empty();
        let has_room =
            if is_packets { exchange.has_packet_room(at, SOURCE) } else { exchange.has_room(SOURCE) };
        if !has_room {
            std::thread::sleep(PAUSE);
            return true;
        }
        let Some(batch) = self.batch().map(Batches::into_owned) else { return false };
        let sent = if is_packets {
            exchange.send_packets(at, batch)
        } else {
            exchange.send_into_found_room(PeerKey::V4(at as u32), batch)
        };
        if let Err(closed) = sent {
            closed.settle(Outcome::Dropped(Dropped::Stopped));
        }
        true
    }
}

/// A gzip stream inside TLS, and the end that reads it.
struct Encrypted {
    bytes: Vec<u8>,
    next: usize,
    server: ServerConnection,
    decompressor: Decompressor,
    chunk: Vec<u8>,
    plain: Vec<u8>,
}

impl Encrypted {
    fn of(lines: &[u8]) -> Encrypted {
        let (mut client, mut server) = connected();
        let mut compressor = Compressor::new(Compression::Gzip).expect("gzip compresses");
        let (mut packed, mut bytes) = (Vec::new(), Vec::with_capacity(ENCRYPTED_BYTES));
        client.set_buffer_limit(None);
        while bytes.len() < ENCRYPTED_BYTES {
            packed.clear();
            let mut rest = lines;
            while !rest.is_empty() {
                rest = &rest[compressor.push(rest, &mut packed)..];
                compressor.flush(&mut packed);
            }
            std::io::Write::write_all(&mut client.writer(), &packed).expect("memory has room");
            while client.wants_write() {
                client.write_tls(&mut bytes).expect("memory has room");
            }
        }
        server.set_buffer_limit(None);
        let decompressor = Decompressor::new(Compression::Gzip).expect("gzip is compressed");
        Encrypted { bytes, next: 0, server, decompressor, chunk: vec![0; READ_BYTES], plain: Vec::new() }
    }

    /// Lines of about one read.
    fn read(&mut self) -> Option<&[u8]> {
        let Encrypted { bytes, next, server, decompressor, chunk, plain } = self;
        plain.clear();
        while plain.len() < READ_BYTES {
            if decompressor.has_more() {
                decompressor.decompress(plain).expect("it was compressed here");
                continue;
            }
            match server.reader().read(chunk) {
                Ok(len) if len > 0 => decompressor.push(&chunk[..len]),
                _nothing => {
                    let mut rest = bytes.get(*next..).filter(|rest| !rest.is_empty())?;
                    *next += server.read_tls(&mut rest).expect("memory can be read");
                    server.process_new_packets().expect("it was encrypted here");
                }
            }
        }
        Some(plain)
    }
}

/// Two ends that have shaken hands.
fn connected() -> (ClientConnection, ServerConnection) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let certificate = certified.cert.der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let server = server.with_safe_default_protocol_versions().expect("they are known").with_no_client_auth();
    let server = server.with_single_cert(vec![certificate], key.into()).expect("a key of the certificate");
    let client = ClientConfig::builder_with_provider(provider);
    let client = client.with_safe_default_protocol_versions().expect("they are known");
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let mut client = ClientConnection::new(Arc::new(client), name).expect("a name of the certificate");
    let mut server = ServerConnection::new(Arc::new(server)).expect("a config");
    while client.is_handshaking() || server.is_handshaking() || server.wants_write() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).expect("memory has room");
        }
        server.read_tls(&mut &bytes[..]).expect("memory can be read");
        server.process_new_packets().expect("the client is ours");
        bytes.clear();
        while server.wants_write() {
            server.write_tls(&mut bytes).expect("memory has room");
        }
        client.read_tls(&mut &bytes[..]).expect("memory can be read");
        client.process_new_packets().expect("the server is ours");
    }
    (client, server)
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

/// CPU time of all threads of this process: none ends during a run.
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
