//! F9: a reload every second, every other one with a file that is broken, under load.
//!
//! Good files add and take away sources and outputs, dead ones among them, and change windows, queues and limits; the
//! three paths that carry the load are in all of them. Broken files are empty, cut off, noise, gone, wrong in a word,
//! or ask for a port that is taken.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::endpoint::Endpoint;
use crate::finding::{Bench, End, Finding};
use crate::load::Client;
use crate::oracle::{Form, Oracle, write_record};
use crate::support::{Builder, Daemon, Random, udp, wait_for};

/// A sender's lead over the endpoint.
const AHEAD_MAX: u64 = 20_000;

/// Records between two pauses.
const CHUNK: u64 = 500;
const PAUSE: Duration = Duration::from_millis(2);

/// Longest wait for what was sent to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

/// The endpoints of the three paths.
pub(super) struct Ends {
    lines: Endpoint,
    packets: Endpoint,
    carbon: Endpoint,
    /// Held, so that a listener cannot have its port.
    taken: TcpListener,
}

impl Ends {
    pub(super) fn new() -> Ends {
        Ends {
            lines: Endpoint::new(Form::Line),
            packets: Endpoint::new(Form::Line),
            carbon: Endpoint::new(Form::Point),
            taken: TcpListener::bind("127.0.0.1:0").expect("a free port"),
        }
    }
}

/// The part that is in every good file.
pub(super) fn base(ends: &Ends, window: &str, bytes_max: &str) -> String {
    let Ends { lines, packets, carbon, .. } = ends;
    let (lines, packets, carbon) = (lines.to(), packets.to(), carbon.to());
    format!(
        "stop_timeout = \"1s\"\n\
         [sources.lines]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [sources.packets]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [sources.numbers]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"numbers\"]\nwindow = \"{window}\"\nself_counters = \"none\"\n\
         [outputs.copy_lines]\ntype = \"tcp\"\nfrom = [\"lines\"]\nto = [\"{lines}\"]\nqueue = {{ max_bytes = \"{bytes_max}\" }}\n\
         [outputs.copy_packets]\ntype = \"tcp\"\nfrom = [\"packets\"]\nto = [\"{packets}\"]\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{carbon}\"]\n"
    )
}

/// Good files, one after the other.
fn good(ends: &Ends, round: usize) -> String {
    let plain = || base(ends, "1s", "64MiB");
    let dead = ends.taken.local_addr().expect("it is bound");
    match round % 5 {
        0 => base(ends, "500ms", "64MiB"),
        1 => {
            plain()
                + "[sources.more]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\", \"unixgram://more\"]\n"
        }
        2 => base(ends, "1s", "128MiB"),
        3 => {
            plain()
                + &format!("[outputs.dead]\ntype = \"tcp\"\nfrom = [\"lines\"]\nto = [\"tcp://{dead}\"]\n")
        }
        _ => plain() + "[outputs.file]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\n",
    }
}

/// Breaks the file.
fn break_it(file: &Path, ends: &Ends, round: usize, random: &mut Random) {
    let whole = good(ends, round);
    let taken = ends.taken.local_addr().expect("it is bound");
    let bytes = match round % 7 {
        0 => Vec::new(),
        // In the middle of a text, where no file can end.
        1 => {
            let quotes: Vec<usize> = whole.match_indices('"').map(|(at, _)| at).step_by(2).collect();
            whole.as_bytes()[..=quotes[random.below(quotes.len())]].to_vec()
        }
        2 => (0..1000).map(|_| random.next() as u8).chain([0xff, b'\n']).collect(),
        3 => (whole + "[outputs.copy]\ntype = \"tpc\"\nfrom = [\"lines\"]\n").into_bytes(),
        4 => (whole + "[outputs.copy]\ntype = \"tcp\"\nfrom = [\"nobody\"]\nto = [\"tcp://127.0.0.1:9\"]\n")
            .into_bytes(),
        5 => (whole + &format!("[sources.more]\ntype = \"statsd\"\nlisten = [\"tcp://{taken}\"]\n"))
            .into_bytes(),
        _ => return std::fs::remove_file(file).expect("it was there"),
    };
    std::fs::write(file, bytes).expect("the folder is ours");
}

fn reloads(daemon: &Daemon, result: &str) -> u64 {
    let sample = format!("staunch_reloads_total{{result=\"{result}\"}} ");
    let text = daemon.get("/metrics").body;
    let value = text.lines().find_map(|line| line.strip_prefix(&sample)).expect("reloads are counted");
    value.parse().expect("a count")
}

/// The load: three threads until `over`.
pub(super) struct Load {
    over: Arc<AtomicBool>,
    lines: JoinHandle<u64>,
    packets: JoinHandle<u64>,
    numbers: JoinHandle<u64>,
    /// Lines.
    pub(super) sent: Arc<AtomicU64>,
}

impl Load {
    pub(super) fn start(daemon: &Daemon, ends: &Ends) -> Load {
        let over = Arc::new(AtomicBool::new(false));
        let sent = Arc::new(AtomicU64::new(0));
        let (stop, counter, oracle) = (Arc::clone(&over), Arc::clone(&sent), Arc::clone(&ends.lines.oracle));
        let mut client = Client::new(daemon.at("lines", "tcp"), 0);
        let lines = std::thread::spawn(move || {
            while !stop.load(SeqCst) {
                client.send(CHUNK, AHEAD_MAX, || oracle.arrived());
                counter.store(client.next, SeqCst);
                std::thread::sleep(PAUSE);
            }
            client.next
        });
        let (stop, oracle) = (Arc::clone(&over), Arc::clone(&ends.packets.oracle));
        let socket = udp(daemon.at("packets", "udp"));
        let packets = std::thread::spawn(move || send_packets(&socket, &oracle, &stop));
        let stop = Arc::clone(&over);
        let mut client = Client::new(daemon.at("numbers", "tcp"), 0);
        let numbers = std::thread::spawn(move || {
            let mut hits = 0;
            while !stop.load(SeqCst) {
                client.write(b"hits:1|c\nhits:1|c\n");
                hits += 2;
                std::thread::sleep(PAUSE);
            }
            hits
        });
        Load { over, lines, packets, numbers, sent }
    }

    /// Ends it: lines, packets and hits that were sent.
    pub(super) fn stop(self) -> [u64; 3] {
        self.over.store(true, SeqCst);
        [self.lines, self.packets, self.numbers].map(|sender| sender.join().expect("no sender panics"))
    }
}

fn send_packets(socket: &std::net::UdpSocket, oracle: &Oracle, over: &AtomicBool) -> u64 {
    let (mut id, mut packet) = (0, Vec::new());
    while !over.load(SeqCst) {
        for _ in 0..CHUNK {
            packet.clear();
            write_record(&mut packet, id);
            socket.send(&packet).expect("the socket stays open over all reloads");
            id += 1;
        }
        std::thread::sleep(PAUSE);
        let since = Instant::now();
        // What the kernel dropped never arrives: it is not waited for.
        while id - oracle.arrived() > AHEAD_MAX && since.elapsed() < Duration::from_millis(100) {
            std::thread::sleep(PAUSE);
        }
    }
    id
}

pub(crate) fn run(bench: &Bench) -> End {
    let (rounds, every) = bench.pick((20, Duration::ZERO), (120, Duration::from_secs(1)));
    let ends = Ends::new();
    let mut daemon = Builder::native(&base(&ends, "1s", "64MiB")).start();
    let file = daemon.file.clone().expect("it has one");
    let load = Load::start(&daemon, &ends);
    let mut random = bench.random();
    let (mut done, mut refused) = (0, 0);
    for round in 0..rounds {
        let since = Instant::now();
        if round % 2 == 0 {
            daemon.rewrite(&good(&ends, round / 2));
            done += 1;
        } else {
            break_it(&file, &ends, round / 2, &mut random);
            refused += 1;
        }
        daemon.signal("HUP");
        let counted = || (reloads(&daemon, "done"), reloads(&daemon, "refused"));
        wait_for("the reload", || (counted() == (done, refused)).then_some(()));
        std::thread::sleep(every.saturating_sub(since.elapsed()));
        bench.say(|| format!("{round} of {rounds} reloads, {} lines", load.sent.load(SeqCst)));
    }
    let sent = load.stop();
    let mut finding = account(bench, &daemon, &ends, sent);
    finding.done = format!("{done} reloads, {refused} broken");
    finding.figure(format!(
        "{} reloads done, {} refused",
        reloads(&daemon, "done"),
        reloads(&daemon, "refused")
    ));
    daemon.stop();
    End::Ran(finding)
}

/// What became of it.
pub(super) fn account(
    bench: &Bench,
    daemon: &Daemon,
    ends: &Ends,
    [lines, packets, hits]: [u64; 3],
) -> Finding {
    let mut finding = Finding { sent: lines + packets, ..Finding::default() };
    let all_here = || {
        let dropped = Daemon::number(&daemon.source("packets"), "kernel_dropped");
        let packets_here = ends.packets.oracle.arrived() + dropped >= packets;
        let numbers_here = ends.carbon.oracle.total("hits") >= hits as f64;
        (ends.lines.oracle.arrived() >= lines && packets_here && numbers_here).then_some(())
    };
    let _all = bench.wait("the endpoints", PATIENCE, all_here);
    finding.named = Daemon::number(&daemon.source("packets"), "kernel_dropped");
    for endpoint in [&ends.lines, &ends.packets] {
        let count = endpoint.oracle.count();
        finding.add(&count);
        finding
            .promise(count.out_of_order == 0, || format!("{} records came out of order", count.out_of_order));
    }
    let total = ends.carbon.oracle.total("hits");
    finding.figure(format!("a counter's sum over all windows: {total} of {hits}"));
    finding.promise(total == hits as f64, || format!("{hits} samples were counted as {total}"));
    daemon.assert_sums_hold();
    finding.promise_exact();
    finding
}
