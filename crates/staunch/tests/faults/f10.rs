//! F10: SIGTERM at full load, over TCP, UDP and unix datagrams at once.
//!
//! What the kernel had taken for us when the signal came is read, everything read is delivered or named in the last
//! words or left on disk for the next instance, and the process ends within `stop_timeout`. A sender of datagrams knows what it has sent: each must have
//! arrived or be counted. A sender over TCP does not know what was read (that takes `ack_when`): here what arrived of
//! its connection must be its beginning, without a hole.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use std::io::Write;

use crate::endpoint::Endpoint;
use crate::finding::{Bench, End, Finding, median};
use crate::oracle::{Form, records, write_record};
use crate::support::{Builder, Daemon, udp};

/// Default of `stop_timeout`, and what the issue promises.
const STOP_MAX: Duration = Duration::from_secs(5);

/// One source, one output and one endpoint for each.
const NAMES: [&str; 3] = ["lines", "packets", "unix"];

const PATIENCE: Duration = Duration::from_secs(120);

/// Sends until nobody takes any more: how many were taken.
fn until_refused(mut send: impl FnMut(&[u8]) -> std::io::Result<usize>) -> u64 {
    let mut packet = Vec::new();
    let mut id = 0;
    loop {
        packet.clear();
        write_record(&mut packet, id);
        if send(&packet).is_err() {
            return id;
        }
        id += 1;
    }
}

fn packets(to: SocketAddr) -> JoinHandle<u64> {
    let socket = udp(to);
    // The first refusal is about the packet before it, which found nobody and was not taken by anyone.
    std::thread::spawn(move || until_refused(|packet| socket.send(packet)).saturating_sub(1))
}

fn unix_packets(to: &Path) -> JoinHandle<u64> {
    let socket = UnixDatagram::unbound().expect("a socket");
    socket.connect(to).expect("it is there");
    std::thread::spawn(move || until_refused(|packet| socket.send(packet)))
}

fn lines(to: SocketAddr) -> JoinHandle<u64> {
    let mut stream = TcpStream::connect(to).expect("it listens");
    std::thread::spawn(move || {
        let mut next = 0;
        while stream.write_all(&records(next..next + 1_000)).is_ok() {
            next += 1_000;
        }
        next
    })
}

struct Round {
    took: Duration,
    finding: Finding,
}

/// Lost records that the last words name: those that end in `about`.
fn logged(stderr: &str, begin: &str, about: &str) -> u64 {
    let lines = stderr.lines().filter(|line| line.contains(about));
    let numbers = lines.filter_map(|line| line.split(begin).nth(1)?.split(' ').next()?.parse::<u64>().ok());
    numbers.sum()
}

/// One stop. With queues on disk the endpoints are away, and a second instance delivers what the first has left.
fn round(bench: &Bench, load_for: Duration, on_disk: bool) -> Round {
    let mut ends = [Endpoint::new(Form::Line), Endpoint::new(Form::Line), Endpoint::new(Form::Line)];
    let listens = ["tcp://127.0.0.1:0", "udp://127.0.0.1:0", "unixgram://in"];
    let kind = if on_disk { "disk" } else { "memory" };
    let mut toml = String::from("stop_timeout = \"5s\"\n");
    for ((name, listen), end) in NAMES.iter().zip(listens).zip(&ends) {
        toml += &format!(
            "[sources.{name}]\ntype = \"statsd\"\nlisten = [\"{listen}\"]\n\
             [outputs.copy_{name}]\ntype = \"tcp\"\nfrom = [\"{name}\"]\nto = [\"{}\"]\n\
             queue = {{ kind = \"{kind}\", when_full = \"block\" }}\n",
            end.to()
        );
    }
    if on_disk {
        ends.iter_mut().for_each(Endpoint::go_away);
    }
    let mut daemon = Builder::native(&toml).start();
    let folder = daemon.folder.path().to_owned();
    let senders = [
        lines(daemon.at("lines", "tcp")),
        packets(daemon.at("packets", "udp")),
        unix_packets(&folder.join("in")),
    ];
    let copies = |name: &&str| Daemon::number(&daemon.output(&format!("copy_{name}")), "copies");
    let flows = || NAMES.iter().all(|name| copies(name) > 10_000).then_some(());
    let _flowing = bench.wait("the load", PATIENCE, flows);
    std::thread::sleep(load_for);
    let since = Instant::now();
    daemon.signal("TERM");
    let status = daemon.wait_exit();
    let took = since.elapsed();
    let sent = senders.map(|sender| sender.join().expect("no sender panics"));
    let words = daemon.stderr();
    let mut finding = Finding::default();
    finding.promise(status.success(), || format!("it ended with {status}"));
    if on_disk {
        ends.iter_mut().for_each(Endpoint::come_back);
        daemon.start_again();
        let waiting = |name: &&str| Daemon::number(&daemon.output(&format!("copy_{name}")), "queued");
        let drained = || NAMES.iter().all(|name| waiting(name) == 0).then_some(());
        let drained = bench.wait("the next instance to deliver", PATIENCE, drained);
        finding.promise(drained.is_some(), || "the next instance did not deliver what waited on disk".into());
        daemon.stop();
    }
    ends.iter().for_each(|end| end.read_to_the_end(bench));
    account(&mut finding, &words, &ends, sent);
    Round { took, finding }
}

fn account(finding: &mut Finding, words: &str, ends: &[Endpoint; 3], sent: [u64; 3]) {
    for ((name, end), sent) in NAMES.iter().zip(ends).zip(sent) {
        let count = end.oracle.count();
        finding.add(&count);
        let late = logged(words, &format!("source `{name}`: "), "too late for the last flush");
        let left = logged(words, &format!("output `copy_{name}`: "), "not delivered before the stop");
        let unread = logged(words, &format!("source `{name}`: "), "`kernel_dropped` since the start");
        let dropped = logged(words, &format!("output `copy_{name}`: "), "`queue_full` since the start");
        let left = left + dropped;
        finding.named += late + left + unread;
        let hole = end.oracle.missing(0..count.arrived).len();
        if *name == "lines" {
            finding.sent += count.arrived + late + left;
            finding.promise(hole == 0 || left > 0, || format!("{hole} lines are missing in mid-connection"));
        } else {
            finding.sent += sent;
            finding.promise(sent == count.arrived + late + left + unread, || {
                format!(
                    "{name}: {sent} sent, {} arrived, {late} late, {left} left or dropped, {unread} dropped by the kernel",
                    count.arrived
                )
            });
        }
    }
}

pub(crate) fn run(bench: &Bench) -> End {
    let (rounds, load_for) = bench.pick((2, Duration::from_millis(100)), (20, Duration::from_secs(3)));
    let mut all = Finding::default();
    let mut times = Vec::new();
    for at in 0..rounds {
        let Round { took, finding } = round(bench, load_for, at % 2 == 1);
        all.sent += finding.sent;
        all.arrived += finding.arrived;
        all.named += finding.named;
        all.twice += finding.twice;
        all.broken.extend(finding.broken);
        times.push(took.as_secs_f64());
        bench.say(|| format!("{at} of {rounds} stops"));
    }
    let longest = times.iter().copied().fold(0.0, f64::max);
    all.done = format!("{rounds} times SIGTERM at full load");
    all.figure(
        "half of them with queues on disk and endpoints that are away, delivered by the next instance",
    );
    all.figure(format!("from signal to end {:.2} s (median), {longest:.2} s at most", median(times)));
    if bench.full {
        all.promise(longest <= STOP_MAX.as_secs_f64(), || {
            format!("{longest:.2} s from the signal to the end")
        });
    }
    all.promise_exact();
    End::Ran(all)
}
