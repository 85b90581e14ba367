//! Datagrams with more than one reader: each packet that the kernel gave us is counted once, senders keep their order, and reload, stop
//! and hot restart lose nothing.

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::sections::{output, source};
use crate::support::{Builder, Daemon, FakeGraphite, udp, wait_for};

const SENDERS: usize = 24;

/// Pause between two packets of a sender: what comes in a third of a second fits the smallest receive buffer of a machine.
const PAUSE: Duration = Duration::from_millis(25);

fn config(readers: usize, to: &FakeGraphite) -> String {
    let app = source("app", "").replace("tcp://127.0.0.1:0", "udp://127.0.0.1:0");
    format!("readers = {readers}\n{app}{}", output("carbon", "app", &to.to(), ""))
}

/// Packets of two numbered lines, sent until it is stopped.
struct Traffic {
    stop: Arc<AtomicBool>,
    senders: Vec<JoinHandle<usize>>,
}

impl Traffic {
    fn begin(to: SocketAddr) -> Traffic {
        let stop = Arc::new(AtomicBool::new(false));
        let sender = |sender| {
            let (socket, until) = (udp(to), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut packets = 0;
                while !until.load(SeqCst) {
                    send(&socket, sender, packets);
                    packets += 1;
                    std::thread::sleep(PAUSE);
                }
                packets
            })
        };
        let senders = (0..SENDERS).map(sender).collect();
        Traffic { stop, senders }
    }

    /// Packets of each sender.
    fn end(self) -> Vec<usize> {
        self.stop.store(true, SeqCst);
        self.senders.into_iter().map(|sends| sends.join().expect("somebody has the port")).collect()
    }
}

fn send(socket: &UdpSocket, sender: usize, packet: usize) {
    let line = |number: usize| format!("sender.{sender} {number} 1700000000\n");
    let text = line(2 * packet) + &line(2 * packet + 1);
    socket.send(text.as_bytes()).expect("somebody has the port");
}

/// Each sender's lines have arrived once and in their order, as many as it has sent.
fn assert_in_order(carbon: &FakeGraphite, packets: &[usize]) {
    let text = String::from_utf8(carbon.bytes()).expect("names are text");
    let mut next = vec![0; packets.len()];
    for line in text.lines() {
        let (sender, rest) =
            line.strip_prefix("sender.").and_then(|line| line.split_once(' ')).expect("a line");
        let number = rest.split(' ').next().and_then(|number| number.parse::<usize>().ok());
        let next = &mut next[sender.parse::<usize>().expect("a sender")];
        assert_eq!(number, Some(*next), "sender {sender}");
        *next += 1;
    }
    let sent: Vec<usize> = packets.iter().map(|packets| 2 * packets).collect();
    assert_eq!(next, sent);
}

/// The threads that read datagrams.
fn threads(daemon: &Daemon) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).expect("it runs");
    let is_reader = |task: std::io::Result<std::fs::DirEntry>| {
        let name = task.and_then(|task| std::fs::read_to_string(task.path().join("comm")));
        name.is_ok_and(|name| name.starts_with("packets-"))
    };
    tasks.map(is_reader).filter(|is_reader| *is_reader).count()
}

/// UDP sockets that are bound to a port of loopback.
fn sockets(at: SocketAddr) -> usize {
    let table = std::fs::read_to_string("/proc/net/udp").expect("this is Linux");
    let local = format!(" 0100007F:{:04X} 00000000:0000 ", at.port());
    table.lines().filter(|line| line.contains(&local)).count()
}

/// A thread names itself after it has begun, and the kernel's table may lack a row while others change it: looked at until it is so.
fn wait_for_readers(daemon: &Daemon, threads_then: usize, at: SocketAddr, sockets_then: usize) {
    let what = format!("{threads_then} threads to read {sockets_then} sockets");
    wait_for(&what, || ((threads(daemon), sockets(at)) == (threads_then, sockets_then)).then_some(()));
}

fn assert_nothing_dropped_by_the_kernel(daemon: &Daemon) {
    let row = daemon.source("app");
    assert_eq!(Daemon::number(&row, "kernel_dropped"), 0, "{row}");
}

#[test]
fn packets_of_many_senders_are_all_counted_and_keep_their_order_with_three_readers() {
    let carbon = FakeGraphite::new();
    let mut daemon = Builder::native(&config(3, &carbon)).start();
    let at = daemon.at("app", "udp");
    wait_for_readers(&daemon, 3, at, 3);
    let traffic = Traffic::begin(at);
    wait_for("packets to arrive", || (Daemon::number(&daemon.source("app"), "packets") > 500).then_some(()));
    let packets = traffic.end();
    let all: usize = packets.iter().sum();
    daemon.wait_source("app", "packets", all as u64);
    daemon.wait_output("carbon", "delivered", 2 * all as u64);
    assert_nothing_dropped_by_the_kernel(&daemon);
    // One row, and one series of each metric, for all sockets of an address.
    assert_eq!(daemon.source("app")["sockets"].as_array().map(Vec::len), Some(1));
    daemon.assert_sums_hold();
    let health = daemon.get("/healthz");
    assert_eq!((health.status, &*health.body), (200, "ok\n"));
    daemon.stop();
    assert_in_order(&carbon, &packets);
}

#[test]
fn aggregates_of_three_readers_are_exact() {
    const PACKETS: usize = 20;
    let carbon = FakeGraphite::new();
    let toml = format!(
        "readers = 3\n[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\", \"unixgram://app.sock\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{}\"]\n",
        carbon.to()
    );
    let mut daemon = Builder::native(&toml).start();
    let senders: Vec<UdpSocket> = (0..SENDERS).map(|_| udp(daemon.at("app", "udp"))).collect();
    let unix = UnixDatagram::unbound().expect("a socket");
    unix.connect(daemon.folder.path().join("app.sock")).expect("it listens");
    for number in 0..PACKETS {
        for sender in &senders {
            sender.send(b"hits:1|c\nhits:2|c\nlevel:+1|g").expect("somebody has the port");
        }
        // One thread reads it, in the order of its packets.
        unix.send(format!("last:{number}|g").as_bytes()).expect("it reads");
        std::thread::sleep(Duration::from_millis(5));
    }
    let packets = (SENDERS * PACKETS) as u64;
    daemon.wait_source("app", "aggregated", 3 * packets + PACKETS as u64);
    assert_nothing_dropped_by_the_kernel(&daemon);
    daemon.assert_sums_hold();
    daemon.stop();
    assert_eq!(carbon.total("stats_counts.hits"), 3.0 * packets as f64);
    assert_eq!(carbon.total("stats.gauges.level"), packets as f64);
    assert_eq!(carbon.total("stats.gauges.last"), (PACKETS - 1) as f64);
}

#[test]
fn reload_and_stop_lose_no_packet_of_three_readers() {
    let carbon = FakeGraphite::new();
    let mut daemon = Builder::native(&config(3, &carbon)).start();
    let at = daemon.at("app", "udp");
    let traffic = Traffic::begin(at);
    let more = source("more", "").replace("tcp://127.0.0.1:0", "udp://127.0.0.1:0");
    for _round in 0..2 {
        daemon.reload(&format!("{}{more}", config(3, &carbon)), "done");
        let more_at = daemon.at("more", "udp");
        wait_for_readers(&daemon, 3, at, 3);
        wait_for_readers(&daemon, 3, more_at, 3);
        daemon.reload(&config(3, &carbon), "done");
        wait_for("the sockets to be closed", || (sockets(more_at) == 0).then_some(()));
    }
    let mut packets = traffic.end();
    assert_nothing_dropped_by_the_kernel(&daemon);
    // It has come before the stop, so it counts.
    let senders: Vec<UdpSocket> = (0..SENDERS).map(|_| udp(at)).collect();
    for (sender, socket) in senders.iter().enumerate() {
        (0..3).for_each(|packet| send(socket, SENDERS + sender, packet));
    }
    packets.extend([3; SENDERS]);
    daemon.stop();
    assert_in_order(&carbon, &packets);
}

#[test]
fn hot_restarts_to_more_and_to_fewer_readers_lose_no_packet() {
    let carbon = FakeGraphite::new();
    let mut daemon = Builder::native(&config(1, &carbon)).start();
    let at = daemon.at("app", "udp");
    wait_for_readers(&daemon, 0, at, 1);
    let traffic = Traffic::begin(at);
    // All sockets of the predecessor are read: packets wait in each.
    for (readers, has, sockets_then) in [(3, 3, 3), (2, 2, 3), (1, 0, 3), (4, 4, 4)] {
        daemon.rewrite(&config(readers, &carbon));
        let mut successor = daemon.successor();
        successor.wait_ready();
        assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
        daemon = successor;
        assert_eq!(daemon.at("app", "udp"), at);
        wait_for_readers(&daemon, has, at, sockets_then);
    }
    let packets = traffic.end();
    let all: usize = packets.iter().sum();
    daemon.wait_source("app", "packets", all as u64);
    assert_nothing_dropped_by_the_kernel(&daemon);
    daemon.wait_output("carbon", "delivered", 2 * all as u64);
    daemon.assert_sums_hold();
    daemon.stop();
    let text = String::from_utf8(carbon.bytes()).expect("names are text");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 2 * all, "each line");
}

#[test]
fn second_daemon_with_readers_is_refused_the_port() {
    let carbon = FakeGraphite::new();
    let mut daemon = Builder::native(&config(3, &carbon)).start();
    let at = daemon.at("app", "udp");
    let other = config(3, &carbon).replace("udp://127.0.0.1:0", &format!("udp://{at}"));
    let (status, logged) = Builder::native(&other).run_to_end();
    assert_ne!(status, 0);
    assert!(logged.contains("cannot listen on udp://") && logged.contains("in use"), "{logged}");
    wait_for_readers(&daemon, 3, at, 3);
    daemon.stop();
}
