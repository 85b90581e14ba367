//! F7: ten thousand slow clients, beside healthy ones on the same threads.
//!
//! A third of them sends a record byte by byte with long pauses, a third sends nothing, a third has sent all but the
//! end of the longest line that is allowed. Memory stays under a bound per connection, and a healthy client's round
//! trip (a line in, the same line at the endpoint) keeps its p99. In the end the slow ones finish their lines, and
//! each must arrive.
//!
//! Before them come as many that have sent 64 KiB at once, of each kind of line, and are idle since: what a read was taken
//! apart into must not stay with them.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::endpoint::Endpoint;
use crate::finding::{Bench, End, Finding, median, percentile};
use crate::oracle::{Form, write_record};
use crate::support::{Builder, Daemon, PATIENCE};

/// `max_line_bytes` of the source.
const LINE_BYTES: u64 = 4 << 10;

/// What a connection costs at most besides its unfinished line: its task, its intake, its socket's object.
const CONNECTION_BYTES: u64 = 8 << 10;

/// What idle connections sent at once.
const WRITE_BYTES: usize = 64 << 10;

/// Idle connections of each kind that have come before memory is looked at: what is there once stays out of the account.
const FIRST_EACH: u64 = 5;

/// Memory that may differ whatever is connected: batches on their way, blocks in queues.
const SHARED_BYTES: u64 = 12 << 20;

/// Descriptors of the bench, and of the daemon, that are no slow client.
const OTHER_FILES: u64 = 200;

/// Longest pause between two bytes of a client that sends byte by byte.
const TURN: Duration = Duration::from_secs(5);

/// Round trips of which one percentile is taken.
const BLOCK: usize = 300;

/// Round trips of healthy clients may take so many times what they take without slow ones.
const P99_RATIO_MAX: f64 = 2.0;

/// Raises the number of descriptors for this process and those it starts, as far as the system lets it.
fn files_max() -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap_or_default();
    let mut words = line.split_whitespace().filter_map(|word| word.parse::<u64>().ok());
    let (soft, hard) = (words.next().unwrap_or(1024), words.next().unwrap_or(1024));
    let raised = Command::new("prlimit")
        .args(["--pid", &std::process::id().to_string(), &format!("--nofile={hard}:{hard}")])
        .status();
    if raised.is_ok_and(|status| status.success()) { hard } else { soft }
}

/// Connections that have sent much at once and nothing since.
struct Idle {
    /// Where each kind goes, what it is, and how many lines that are.
    kinds: [(&'static str, Vec<u8>, u64); 4],
    streams: Vec<TcpStream>,
}

impl Idle {
    fn new() -> Idle {
        let lines = |line: &[u8]| {
            let count = WRITE_BYTES / line.len();
            (line.repeat(count), count as u64)
        };
        let (ordinary, ordinary_lines) = lines(b"api.requests.web01:12|c\n");
        let (short, short_lines) = lines(b"a:1|c\n");
        let (carbon, carbon_lines) = lines(b"servers.web01.cpu.user 12.5 1700000000\n");
        let packed = format!("a:{}1|c\n", "1:".repeat(31_999)).into_bytes();
        let kinds = [
            ("busy", ordinary, ordinary_lines),
            ("busy", short, short_lines),
            ("busy", packed, 1),
            ("carbon", carbon, carbon_lines),
        ];
        Idle { kinds, streams: Vec::new() }
    }

    /// Connects `each` more of each kind, and waits until everything that they sent has been read.
    fn connect(&mut self, bench: &Bench, daemon: &Daemon, each: u64) {
        for client in 0..each {
            for (source, bytes, _) in &self.kinds {
                let mut stream = TcpStream::connect(daemon.at(source, "tcp")).expect("it accepts");
                stream.write_all(bytes).expect("it reads");
                self.streams.push(stream);
            }
            bench.say(|| format!("{client} idle clients of each kind"));
        }
        let each = self.streams.len() as u64 / self.kinds.len() as u64;
        for source in ["busy", "carbon"] {
            let lines = self.kinds.iter().filter(|kind| kind.0 == source).map(|kind| kind.2 * each).sum();
            daemon.wait_source(source, "lines", lines);
            daemon.wait_source(source, "in_flight", 0);
        }
    }
}

/// Takes connections and throws away what comes on them.
fn drain() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || std::io::copy(&mut &stream, &mut std::io::sink()));
        }
    });
    at
}

/// Memory beside as many idle clients as there will be slow ones.
fn idle_clients(bench: &Bench, daemon: &Daemon, clients: u64, finding: &mut Finding) {
    let resident = || sys::memory_of(daemon.pid()).expect("it runs").resident;
    let mut idle = Idle::new();
    idle.connect(bench, daemon, FIRST_EACH);
    let before = resident();
    let each = clients / idle.kinds.len() as u64 - FIRST_EACH;
    idle.connect(bench, daemon, each);
    let (after, added) = (resident(), each * idle.kinds.len() as u64);
    let bound = before + added * CONNECTION_BYTES + SHARED_BYTES;
    let mega = |bytes: u64| bytes as f64 / 1e6;
    finding.figure(format!(
        "{added} clients that sent 64 KiB each and are idle: {:.0} MB resident before, {:.0} MB with; bound {:.0} MB",
        mega(before),
        mega(after),
        mega(bound)
    ));
    finding
        .promise(after <= bound, || format!("{:.0} MB beside idle clients are over the bound", mega(after)));
    drop(idle);
    for source in ["busy", "carbon"] {
        daemon.wait_source(source, "connections_open", 0);
    }
}

/// Connections that are slow in one of three ways.
struct Slow {
    streams: Vec<TcpStream>,
    /// Bytes of its record that each client has sent.
    sent: Vec<usize>,
}

fn record(id: usize) -> Vec<u8> {
    let mut line = Vec::new();
    write_record(&mut line, id as u64);
    line
}

impl Slow {
    fn connect(bench: &Bench, at: SocketAddr, clients: u64) -> Slow {
        let mut streams = Vec::new();
        for client in 0..clients {
            let stream = TcpStream::connect(at).expect("it accepts");
            stream.set_nodelay(true).expect("a socket can be asked not to wait");
            if client % 3 == 2 {
                // Longer than this and it would be rejected; it is never finished.
                let unfinished = vec![b'x'; LINE_BYTES as usize - 1];
                (&stream).write_all(&unfinished).expect("it reads");
            }
            streams.push(stream);
            bench.say(|| format!("{client} of {clients} slow clients"));
        }
        let sent = vec![0; streams.len()];
        Slow { streams, sent }
    }

    /// Sends bytes here and there until `over`.
    fn go_on(&mut self, over: &AtomicBool) {
        let pause = TURN / self.streams.len() as u32;
        while !over.load(SeqCst) {
            for client in (0..self.streams.len()).step_by(3) {
                let line = record(client);
                // All but the line feed.
                if self.sent[client] + 1 < line.len() {
                    let byte = &line[self.sent[client]..=self.sent[client]];
                    self.streams[client].write_all(byte).expect("it reads");
                    self.sent[client] += 1;
                }
                std::thread::sleep(pause);
                if over.load(SeqCst) {
                    return;
                }
            }
        }
    }

    /// The first two kinds send (the rest of) their record; says how many that are.
    fn finish(&mut self) -> u64 {
        let mut finished = 0;
        for (client, stream) in self.streams.iter_mut().enumerate().filter(|(client, _)| client % 3 < 2) {
            stream.write_all(&record(client)[self.sent[client]..]).expect("it reads");
            finished += 1;
        }
        finished
    }
}

/// A healthy client, with the other end of its line.
struct Healthy {
    to: TcpStream,
    from: BufReader<TcpStream>,
    next: u64,
}

impl Healthy {
    /// The 99th percentile of a block of round trips, in microseconds: the median of so many blocks, so that one hiccup
    /// of the machine is not the result.
    fn p99(&mut self, blocks: usize) -> f64 {
        median((0..blocks).map(|_| percentile(self.round_trips(), 99.0)).collect())
    }

    /// A block of round trips, one after the other.
    fn round_trips(&mut self) -> Vec<f64> {
        let mut times = Vec::new();
        let mut got = String::new();
        for _ in 0..BLOCK {
            let line = format!("ping.{}:1|c\n", self.next);
            let since = Instant::now();
            self.to.write_all(line.as_bytes()).expect("it reads");
            got.clear();
            self.from.read_line(&mut got).expect("the line comes");
            times.push(since.elapsed().as_secs_f64() * 1e6);
            assert_eq!(got, line, "the answer is the line that was sent");
            self.next += 1;
        }
        times
    }
}

fn start(endpoint: &Endpoint) -> (Daemon, Healthy) {
    let pings = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let pings_at = pings.local_addr().expect("it is bound");
    let toml = format!(
        "stop_timeout = \"20s\"\n\
         [sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nmax_connections = 100000\n\
         max_line_bytes = \"{LINE_BYTES}B\"\ntail_counts = false\n\
         [sources.healthy]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [sources.busy]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [sources.carbon]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [transforms.sums]\ntype = \"aggregate\"\nfrom = [\"busy\"]\n\
         [outputs.drained]\ntype = \"graphite\"\nfrom = [\"sums\", \"carbon\"]\nto = [\"tcp://{}\"]\n\
         [outputs.pings]\ntype = \"tcp\"\nfrom = [\"healthy\"]\nto = [\"tcp://{pings_at}\"]\n\
         [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\n",
        drain(),
        endpoint.to()
    );
    let daemon = Builder::native(&toml).start();
    let (from, _) = pings.accept().expect("the output connects");
    from.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
    let to = TcpStream::connect(daemon.at("healthy", "tcp")).expect("it listens");
    to.set_nodelay(true).expect("a socket can be asked not to wait");
    (daemon, Healthy { to, from: BufReader::new(from), next: 0 })
}

pub(crate) fn run(bench: &Bench) -> End {
    let (wanted, blocks) = bench.pick((300, 5), (10_000, 50));
    let files = files_max();
    let clients = wanted.min(files.saturating_sub(OTHER_FILES));
    if clients < wanted / 10 {
        return End::Skipped(format!("only {files} files may be open here (`ulimit -Hn`)"));
    }
    let endpoint = Endpoint::new(Form::Line);
    let (mut daemon, mut healthy) = start(&endpoint);
    let resident = |daemon: &Daemon| sys::memory_of(daemon.pid()).expect("it runs").resident;
    let mut finding = Finding::default();
    idle_clients(bench, &daemon, clients, &mut finding);
    healthy.p99(1);
    let alone = healthy.p99(blocks);
    let before = resident(&daemon);

    let mut slow = Slow::connect(bench, daemon.at("app", "tcp"), clients);
    daemon.wait_source("app", "connections_open", clients);
    let over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&over);
    let going_on = std::thread::spawn(move || {
        slow.go_on(&stop);
        slow
    });
    let high = AtomicU64::new(0);
    let mut beside = Vec::new();
    for block in 0..blocks {
        beside.push(healthy.p99(1));
        high.fetch_max(resident(&daemon), SeqCst);
        bench.say(|| format!("{} round trips beside {clients} slow clients", block * BLOCK));
    }
    let beside = median(beside);
    over.store(true, SeqCst);
    let mut slow = going_on.join().expect("slow clients only write");
    finding.sent = slow.finish();
    let arrived = || (endpoint.oracle.arrived() >= finding.sent).then_some(());
    let _all = bench.wait("the slow clients' lines", PATIENCE, arrived);
    drop(slow);
    daemon.wait_source("app", "connections_open", 0);
    let again = healthy.p99(blocks);
    finding.add(&endpoint.oracle.count());
    daemon.assert_sums_hold();
    daemon.stop();

    let bound = before + clients * (LINE_BYTES + CONNECTION_BYTES) + SHARED_BYTES;
    let (mega, milli) = (|bytes: u64| bytes as f64 / 1e6, |micros: f64| micros / 1e3);
    let high = high.into_inner();
    finding.done = format!("{clients} slow clients");
    finding.figure(format!(
        "{:.0} MB resident without them, {:.0} MB with; bound {:.0} MB",
        mega(before),
        mega(high),
        mega(bound)
    ));
    finding.promise(high <= bound, || format!("{:.0} MB resident are over the bound", mega(high)));
    finding.figure(format!(
        "p99 of a healthy client's round trip: {:.2} ms before, {:.2} ms beside, {:.2} ms after",
        milli(alone),
        milli(beside),
        milli(again)
    ));
    if bench.full {
        let without = f64::midpoint(alone, again);
        finding.promise(beside < P99_RATIO_MAX * without, || {
            format!("p99 is {:.1} times what it is without slow clients", beside / without)
        });
    }
    finding.promise_exact();
    End::Ran(finding)
}
