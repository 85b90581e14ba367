//! Every socket that records come in by, and what Graphite then gets.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::support::{Builder, Daemon, FakeGraphite, udp};

/// One aggregation, one Graphite, and the given sources. The window is long: the end of the test flushes it.
pub(crate) fn config(listen: &[&str], graphite: &FakeGraphite) -> String {
    format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = {listen:?}\n\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\n\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{}\"]\n\
         min_retry_delay = \"50ms\"\nmax_retry_delay = \"200ms\"\n",
        graphite.to()
    )
}

fn last(graphite: &FakeGraphite, name: &str) -> Option<f64> {
    graphite.of(name).last().map(|point| point.value)
}

#[test]
fn samples_by_udp_come_out_as_the_spec_says() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&["udp://127.0.0.1:0"], &graphite)).start();
    let socket = udp(daemon.at("app", "udp"));
    for packet in [
        "hits:1|c\nhits:2|c|@0.5\n",
        "load:333|g\nload:-10|g\nload:+4|g",
        "users:765|s\nusers:765|s\nusers:9|s",
        "time:450|ms\ntime:120|ms\ntime:553|ms\ntime:994|ms\ntime:334|ms\ntime:844|ms\ntime:675|ms\ntime:496|ms",
        "junk",
        "",
    ] {
        socket.send(packet.as_bytes()).expect("it is there");
    }
    daemon.wait_source("app", "packets", 6);
    daemon.wait_source("app", "packets_empty", 1);
    daemon.wait_source("app", "losses/rejected/no_type", 1);
    daemon.wait_source("app", "aggregated", 16);
    daemon.assert_sums_hold();
    daemon.stop();
    for (name, want) in [
        ("stats_counts.hits", 5.0),
        ("stats.gauges.load", 327.0),
        ("stats.sets.users.count", 2.0),
        ("stats.timers.time.count", 8.0),
        ("stats.timers.time.lower", 120.0),
        ("stats.timers.time.upper", 994.0),
        ("stats.timers.time.upper_90", 844.0),
        ("stats.timers.time.sum", 4466.0),
        ("stats.timers.time.mean", 558.25),
        ("stats.timers.time.median", 524.5),
    ] {
        assert_eq!(last(&graphite, name), Some(want), "{name}");
    }
}

#[test]
fn lines_by_tcp_are_whole_whatever_the_segments() {
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&["tcp://127.0.0.1:0"], &graphite)).start();
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    stream.set_nodelay(true).expect("a TCP socket");
    for byte in b"a.b:12|c\na.b:30|c\r\nca" {
        stream.write_all(&[*byte]).expect("it reads");
    }
    daemon.wait_source("app", "received", 2);
    stream.write_all("fé:1|c\ntail:7|c".as_bytes()).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("a TCP socket");
    daemon.wait_source("app", "received", 4);
    daemon.wait_source("app", "connections_open", 0);
    assert_eq!(Daemon::number(&daemon.source("app"), "connections_broken"), 0);
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.a.b"), 42.0);
    assert_eq!(graphite.total("stats_counts.caf"), 1.0);
    assert_eq!(graphite.total("stats_counts.tail"), 7.0, "the last line counts without its end");
}

#[test]
fn all_unix_sockets_and_several_listeners_feed_one_source() {
    let graphite = FakeGraphite::new();
    let listen = [
        "udp://127.0.0.1:0",
        "udp://127.0.0.2:0",
        "tcp://127.0.0.1:0",
        "unix://lines.sock?mode=600",
        "unixgram://packets.sock",
        "unix-frames://frames.sock",
    ];
    let mut daemon = Builder::native(&config(&listen, &graphite)).start();
    let path = |name: &str| daemon.folder.path().join(name);
    for place in daemon.places("app").iter().filter_map(|place| place.strip_prefix("udp://")) {
        udp(place.parse().expect("an address")).send(b"n:1|c").expect("it is there");
    }
    let mut tcp = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    tcp.write_all(b"n:10|c\n").expect("it reads");
    let mut lines = UnixStream::connect(path("lines.sock")).expect("it listens");
    lines.write_all(b"n:100|c\nn:100|c\n").expect("it reads");
    let packets = UnixDatagram::unbound().expect("a socket");
    packets.send_to(b"n:1000|c\nn:1000|c", path("packets.sock")).expect("it reads");
    let mut frames = UnixStream::connect(path("frames.sock")).expect("it listens");
    for text in ["n:10000|c", "n:10000|c\nn:10000|c"] {
        frames.write_all(&(text.len() as u32).to_le_bytes()).expect("it reads");
        frames.write_all(text.as_bytes()).expect("it reads");
    }
    daemon.wait_source("app", "aggregated", 10);
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path("lines.sock")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    daemon.assert_sums_hold();
    let paths = ["lines.sock", "packets.sock", "frames.sock"].map(path);
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.n"), 32_212.0);
    for path in paths {
        assert!(!path.exists(), "{} is removed at the end", path.display());
    }
}

#[test]
fn a_socket_file_left_behind_is_replaced_and_one_in_use_is_not() {
    let graphite = FakeGraphite::new();
    let toml = config(&["unix://lines.sock", "unixgram://packets.sock"], &graphite);
    let builder = Builder::native(&toml);
    drop(std::os::unix::net::UnixListener::bind(builder.folder().join("lines.sock")).expect("a new file"));
    drop(UnixDatagram::bind(builder.folder().join("packets.sock")).expect("a new file"));
    let mut daemon = builder.start();
    UnixStream::connect(daemon.folder.path().join("lines.sock")).expect("it listens");
    daemon.stop();

    let builder = Builder::native(&toml);
    let used =
        std::os::unix::net::UnixListener::bind(builder.folder().join("lines.sock")).expect("a new file");
    std::fs::write(builder.folder().join("packets.sock"), "a file of mine").expect("a new file");
    let (code, logged) = builder.run_to_end();
    assert_ne!(code, 0);
    assert!(logged.contains("lines.sock") && logged.contains("packets.sock"), "{logged}");
    drop(used);
}

#[test]
fn ipv6_listens_where_the_machine_has_it() {
    if let Err(error) = UdpSocket::bind("[::1]:0") {
        return crate::support::skip("sources", &format!("this machine has no IPv6 loopback: {error}"));
    }
    let graphite = FakeGraphite::new();
    let mut daemon = Builder::native(&config(&["udp://[::1]:0", "tcp://[::]:0"], &graphite)).start();
    udp(daemon.at("app", "udp")).send(b"n:1|c").expect("it is there");
    let port = daemon.at("app", "tcp").port();
    for host in ["127.0.0.1", "::1"] {
        let mut stream = TcpStream::connect((host, port)).expect("`::` takes both families");
        stream.write_all(b"n:10|c\n").expect("it reads");
    }
    daemon.wait_source("app", "aggregated", 3);
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.n"), 21.0);
}

#[test]
fn more_datagram_listeners_than_one_poll_takes() {
    let graphite = FakeGraphite::new();
    let listen: Vec<String> = (1..=40).map(|host| format!("udp://127.0.0.{host}:0")).collect();
    let listen: Vec<&str> = listen.iter().map(String::as_str).collect();
    let mut daemon = Builder::native(&config(&listen, &graphite)).start();
    let places = daemon.places("app");
    assert_eq!(places.len(), 40);
    for place in places {
        let to = place.strip_prefix("udp://").expect("all are UDP");
        udp(to.parse().expect("an address")).send(b"n:1|c").expect("it is there");
    }
    daemon.wait_source("app", "aggregated", 40);
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.n"), 40.0);
}

#[test]
fn a_connection_that_always_has_more_leaves_the_others_their_turns() {
    const ANSWERS: usize = 20;
    // A few answers' worth on the slowest machine; without turns it is everything that comes in seconds.
    const BETWEEN_BYTES_MAX: u64 = 64 << 20;
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
        [outputs.copy]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"tcp://127.0.0.1:9\"]\nqueue = { max_bytes = \"1MiB\" }\n";
    let mut daemon = Builder::native(&format!("stop_timeout = \"1s\"\n{toml}")).start();
    let mut busy = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    let written = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&written);
    let flood = std::thread::spawn(move || {
        let lines = b"hits:1|c\n".repeat(1000);
        // Ends with the daemon.
        while busy.write_all(&lines).is_ok() {
            counter.fetch_add(lines.len() as u64, Relaxed);
        }
    });
    for _ in 0..ANSWERS {
        let before = written.load(Relaxed);
        assert_eq!(daemon.get("/api/v1/accounts").status, 200);
        let between = written.load(Relaxed) - before;
        assert!(between < BETWEEN_BYTES_MAX, "{between} bytes of one connection before an answer");
    }
    daemon.stop();
    flood.join().expect("it only writes");
}

#[test]
#[cfg(target_os = "linux")]
fn lines_that_are_no_records_take_no_memory_behind_a_queue_that_blocks() {
    // An endpoint that never reads.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let to = format!("tcp://{}", silent.local_addr().expect("it is bound"));
    let config = crate::support::sections::source("in", "")
        + &crate::support::sections::output(
            "out",
            "in",
            &to,
            "queue = { kind = \"memory\", max_bytes = \"1MiB\", when_full = \"block\" }",
        );
    let mut daemon = Builder::native(&("stop_timeout = \"1s\"\n".to_owned() + &config)).start();
    let at = daemon.at("in", "tcp");
    let mut good = TcpStream::connect(at).expect("it listens");
    let lines = format!("{} 1 1700000000\n", "a".repeat(200)).repeat(300);
    // Until one batch waits, and not until there is no room for another.
    let mut looks = 0;
    while looks < 20 {
        let waits = Daemon::number(&daemon.source("in"), "in_flight") > 0;
        looks = if waits { looks + 1 } else { 0 };
        if !waits {
            good.write_all(lines.as_bytes()).expect("it reads");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let resident = |daemon: &Daemon| sys::memory_of(daemon.pid()).expect("it lives").resident;
    let mut streams: Vec<TcpStream> = (0..30).map(|_| TcpStream::connect(at).expect("it listens")).collect();
    streams.iter().for_each(|stream| stream.set_nodelay(true).expect("it is a socket"));
    let before = resident(&daemon);
    for _ in 0..2_000 {
        for stream in &mut streams {
            stream.write_all(b"x\n").expect("the buffer has room");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let grown = resident(&daemon).saturating_sub(before);
    println!("it grew by {} KiB", grown / 1024);
    assert!(grown < 6 << 20, "60000 lines without a point took {} KiB", grown / 1024);
    daemon.signal("KILL");
    daemon.wait_exit();
}

#[test]
fn many_connections_of_one_peer_wait_for_each_other_and_not_another_source_for_them() {
    let config = crate::support::sections::source("in", "")
        + "[sources.honest]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"accepted\"\n\
           [transforms.counts]\ntype = \"aggregate\"\nfrom = [\"honest\"]\nwindow = \"1h\"\n\
           [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"counts\", \"in\"]\n";
    let mut daemon = Builder::native(&config).start();
    let at = daemon.at("in", "tcp");
    let mut honest = TcpStream::connect(daemon.at("honest", "tcp")).expect("it listens");
    let mut asked = 0;
    let mut ask = |honest: &mut TcpStream| {
        asked += 1;
        honest.write_all(b"a:1|c\n").expect("it reads");
        let want = format!("ack {asked}\n");
        let mut reply = vec![0; want.len()];
        honest.read_exact(&mut reply).expect("it answers");
        assert_eq!(reply, want.as_bytes());
    };
    ask(&mut honest);
    // What the kernel takes for each of them, which the daemon reads for a long time.
    let bad = b"x\n".repeat(500_000);
    let streams: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = TcpStream::connect(at).expect("it listens");
            stream.set_nonblocking(true).expect("it is a socket");
            let _full = stream.write(&bad);
            stream
        })
        .collect();
    let lines = |daemon: &Daemon| Daemon::number(&daemon.source("in"), "lines");
    let (before, since) = (lines(&daemon), Instant::now());
    for _ in 0..20 {
        ask(&mut honest);
    }
    let took = since.elapsed();
    // By then only so many of the others have been read: one of them beside each of the honest ones, and a few for the way.
    let read = lines(&daemon) - before;
    println!("20 acknowledgements took {took:?}, beside {read} lines of others");
    assert!(
        read < 200 * 32 * 1024,
        "{read} lines, {took:?}: each connection had a turn before the honest ones"
    );
    drop(streams);
    daemon.signal("KILL");
    daemon.wait_exit();
}
