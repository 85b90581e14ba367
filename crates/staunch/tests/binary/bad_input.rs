//! Bytes that nobody should send: the daemon lives, accounts for every one, and says each thing once.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::sources::config;
use crate::support::traffic::send_all;
use crate::support::{Builder, Daemon, FakeGraphite, Random, udp, wait_for};

/// A source with everything on, and no output that could matter.
fn start(listen: &[&str], source: &str, transform: &str) -> Daemon {
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = {listen:?}\n{source}\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\n{transform}\n\
         [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"stats\"]\n"
    );
    Builder::native(&toml).start()
}

/// Times that the daemon complained of a reason.
fn complaints(daemon: &Daemon, reason: &str) -> usize {
    daemon.stderr().matches(&format!("rejected as `{reason}`")).count()
}

/// Waits for the word about a reason, which comes right behind the count, and for no second one.
#[track_caller]
fn assert_logged(daemon: &Daemon, reason: &str) {
    wait_for("a word about the line", || (complaints(daemon, reason) > 0).then_some(()));
    assert_eq!(complaints(daemon, reason), 1, "{reason}:\n{}", daemon.stderr());
}

/// No reason is logged twice. A reason is not logged when its lines come only behind other bad ones in a packet.
#[track_caller]
fn assert_logged_once(daemon: &Daemon) {
    let row = daemon.source("app");
    let reasons = row["losses"]["rejected"].as_object().expect("some were bad");
    let logged: Vec<usize> = reasons.keys().map(|reason| complaints(daemon, reason)).collect();
    assert!(logged.iter().all(|times| *times <= 1), "{reasons:?} {logged:?}\n{}", daemon.stderr());
}

/// Still serves: a good line by UDP is aggregated; both are balanced; a stop is clean.
/// Gives what it has logged, the stop included.
#[track_caller]
fn assert_well(mut daemon: Daemon) -> String {
    daemon.assert_sums_hold();
    let before = Daemon::number(&daemon.source("app"), "aggregated");
    udp(daemon.at("app", "udp")).send(b"well:1|c").expect("it is there");
    daemon.wait_source("app", "aggregated", before + 1);
    daemon.assert_sums_hold();
    let row = daemon.source("app");
    assert_eq!(Daemon::number(&row, "internal"), 0, "{row}");
    daemon.stop();
    daemon.stderr()
}

#[test]
fn noise_by_udp_is_accounted_for_to_the_packet() {
    for (dialect, seed) in [("union", 11), ("etsy", 12), ("perl", 13), ("dogstatsd", 14)] {
        let daemon = start(&["udp://127.0.0.1:0"], &format!("dialect = \"{dialect}\""), "");
        let mut random = Random::new(seed);
        let packets: Vec<Vec<u8>> = (0..500).map(|_| random.bytes(1400)).collect();
        let (count, bytes) = (packets.len(), packets.iter().map(Vec::len).sum::<usize>());
        let empty = packets.iter().filter(|packet| packet.is_empty()).count();
        send_all(&udp(daemon.at("app", "udp")), packets);
        daemon.wait_source("app", "packets", count as u64);
        daemon.wait_source("app", "bytes", bytes as u64);
        daemon.wait_source("app", "packets_empty", empty as u64);
        assert_logged_once(&daemon);
        assert_well(daemon);
    }
}

#[test]
fn noise_on_every_stream_harms_nobody() {
    let listen = [
        "udp://127.0.0.1:0",
        "tcp://127.0.0.1:0",
        "unix://lines.sock",
        "unixgram://packets.sock",
        "unix-frames://frames.sock",
    ];
    let daemon = start(&listen, "", "");
    let path = |name: &str| daemon.folder.path().join(name);
    let mut random = Random::new(21);
    for _ in 0..30 {
        let mut tcp = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
        tcp.write_all(&random.bytes(20_000)).expect("it reads");
        let mut lines = UnixStream::connect(path("lines.sock")).expect("it listens");
        lines.write_all(&random.bytes(20_000)).expect("it reads");
        // A frame of noise may be too long: then the connection is closed, perhaps while we write.
        let mut frames = UnixStream::connect(path("frames.sock")).expect("it listens");
        let _closed = frames.write_all(&random.bytes(20_000));
        let packets = UnixDatagram::unbound().expect("a socket");
        packets.send_to(&random.bytes(20_000), path("packets.sock")).expect("it reads");
    }
    daemon.wait_source("app", "connections_accepted", 90);
    daemon.wait_source("app", "connections_open", 0);
    assert_logged_once(&daemon);
    assert_well(daemon);
}

#[test]
fn the_longest_datagrams_are_read_whole() {
    let daemon = start(&["udp://127.0.0.1:0", "unixgram://packets.sock"], "", "max_series = 100");
    let line = b"n:1|c\n";
    let mut packet = line.repeat(65_507 / line.len() + 1);
    packet.truncate(65_507);
    let whole = packet.iter().filter(|byte| **byte == b'\n').count() as u64;
    let tail = 65_507 % line.len() as u64;
    assert_eq!(tail, 5, "the last line is whole but for its LF");
    udp(daemon.at("app", "udp")).send(&packet).expect("the longest that UDP carries");
    daemon.wait_source("app", "aggregated", whole + 1);
    daemon.wait_source("app", "packets_truncated", 0);
    udp(daemon.at("app", "udp")).send(&vec![b'x'; 65_507]).expect("the longest that UDP carries");
    daemon.wait_source("app", "losses/rejected/no_type", 1);

    // A unix socket carries more than we make room for: what was cut off is never taken for a value.
    let mut long = b"cut:1|c\n".repeat(8191);
    assert_eq!(long.len(), 65_528);
    long.extend_from_slice(b"cut:1|c|@0.125\n".repeat(100).as_slice());
    let socket = UnixDatagram::unbound().expect("a socket");
    socket
        .send_to(&long, daemon.folder.path().join("packets.sock"))
        .expect("it fits into the socket's buffer");
    daemon.wait_source("app", "packets_truncated", 1);
    daemon.wait_source("app", "losses/rejected/packet_truncated", 1);
    daemon.wait_source("app", "aggregated", whole + 1 + 8191);
    let series = daemon.json("/api/v1/series?name=cut");
    assert_eq!(series["series"][0]["value"], 8191.0, "{series}");
    assert_well(daemon);
}

#[test]
fn a_line_too_long_costs_itself_only() {
    let daemon = start(&["udp://127.0.0.1:0", "tcp://127.0.0.1:0"], "max_line_bytes = \"100B\"", "");
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    let exactly = format!("{}:1|c\n", "x".repeat(96));
    let past = format!("{}:1|c\n", "x".repeat(97));
    assert_eq!((exactly.len(), past.len()), (101, 102), "with the LF");
    for text in ["a:1|c\n", &exactly, &past, "b:1|c\n", &"y".repeat(100_000), "\nc:1|c\n"] {
        stream.write_all(text.as_bytes()).expect("it reads");
    }
    daemon.wait_source("app", "losses/rejected/line_too_long", 2);
    daemon.wait_source("app", "aggregated", 4);
    daemon.wait_source("app", "received", 6);
    assert_logged(&daemon, "line_too_long");
    assert_well(daemon);
}

#[test]
fn a_frame_too_long_ends_its_connection_only() {
    let source = "max_line_bytes = \"100B\"";
    let daemon = start(&["udp://127.0.0.1:0", "unix-frames://frames.sock"], source, "");
    let mut frames = UnixStream::connect(daemon.folder.path().join("frames.sock")).expect("it listens");
    let mut frame = |len: u32, text: &str| {
        frames
            .write_all(&len.to_le_bytes())
            .and_then(|()| frames.write_all(text.as_bytes()))
            .expect("it reads");
    };
    frame(5, "a:1|c");
    frame(100, &format!("{}:1|c", "x".repeat(96)));
    frame(101, "");
    daemon.wait_source("app", "losses/rejected/bad_frame", 1);
    daemon.wait_source("app", "connections_broken", 1);
    daemon.wait_source("app", "connections_open", 0);
    daemon.wait_source("app", "aggregated", 2);
    assert_logged(&daemon, "bad_frame");
    assert_well(daemon);
}

fn reset(stream: &TcpStream) {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)).expect("a socket can be made to reset");
}

#[test]
fn half_lines_half_closed_and_reset_connections() {
    let daemon = start(&["udp://127.0.0.1:0", "tcp://127.0.0.1:0"], "tail_counts = false", "");
    let at = daemon.at("app", "tcp");
    for _ in 0..10 {
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.write_all(b"whole:1|c\nhalf:1").expect("it reads");
    }
    daemon.wait_source("app", "losses/rejected/tail_lost", 10);
    daemon.wait_source("app", "connections_broken", 0);
    for _ in 0..10 {
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.write_all(b"whole:1|c\nhalf:1").expect("it reads");
        stream.shutdown(Shutdown::Write).expect("a TCP socket");
    }
    daemon.wait_source("app", "losses/rejected/tail_lost", 20);
    for round in 1..=10 {
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.write_all(b"whole:1|c\nhalf:1").expect("it reads");
        daemon.wait_source("app", "aggregated", 20 + round);
        reset(&stream);
    }
    daemon.wait_source("app", "losses/rejected/tail_lost", 30);
    daemon.wait_source("app", "connections_broken", 10);
    daemon.wait_source("app", "connections_open", 0);
    assert_logged(&daemon, "tail_lost");
    assert_well(daemon);
}

#[test]
fn slow_clients_do_not_slow_a_healthy_one() {
    let daemon = start(&["udp://127.0.0.1:0", "tcp://127.0.0.1:0"], "", "");
    let at = daemon.at("app", "tcp");
    let text = b"slow:1|c\n";
    let mut slow: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(at).expect("it listens")).collect();
    let mut healthy = TcpStream::connect(at).expect("it listens");
    let mut sent = 0;
    for byte in text {
        for stream in &mut slow {
            stream.write_all(&[*byte]).expect("it reads");
        }
        for _ in 0..100 {
            healthy.write_all(b"healthy:1|c\n").expect("it reads");
            sent += 1;
        }
        let slow_lines = if *byte == b'\n' { 100 } else { 0 };
        daemon.wait_source("app", "aggregated", sent + slow_lines);
        std::thread::sleep(Duration::from_millis(50));
    }
    daemon.wait_source("app", "connections_open", 101);
    drop(slow);
    assert_well(daemon);
}

#[test]
fn connections_past_the_limit_are_turned_away_and_counted() {
    let limits = "max_connections = 5\nmax_connections_per_peer = 5";
    let daemon = start(&["udp://127.0.0.1:0", "tcp://127.0.0.1:0"], limits, "");
    let at = daemon.at("app", "tcp");
    let mut kept: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(at).expect("it listens")).collect();
    daemon.wait_source("app", "connections_open", 5);
    for _ in 0..20 {
        drop(TcpStream::connect(at).expect("the kernel accepts"));
    }
    daemon.wait_source("app", "connections_refused", 20);
    for stream in &mut kept {
        stream.write_all(b"kept:1|c\n").expect("it reads");
    }
    daemon.wait_source("app", "aggregated", 5);
    let logged = || daemon.stderr().matches("raise `max_connections`").count();
    wait_for("a word about it", || (logged() > 0).then_some(()));
    assert_eq!(logged(), 1, "{}", daemon.stderr());
    drop(kept.pop());
    daemon.wait_source("app", "connections_open", 4);
    let mut next = TcpStream::connect(at).expect("it listens");
    next.write_all(b"kept:1|c\n").expect("it reads");
    daemon.wait_source("app", "aggregated", 6);
    // The first one was logged at once, the others at the latest at the stop.
    let log = assert_well(daemon);
    assert!(log.contains("source `app` refused 19 more connections since the last message"), "{log}");
    assert!(log.contains("127.0.0.1 has most, 5"), "{log}");
}

#[test]
fn two_silent_peers_that_have_all_connections_leave_room_for_a_third() {
    for acks in ["", "ack_when = \"accepted\""] {
        // Connections that are closed for `idle_timeout` meanwhile, on a busy machine, are made again.
        let limits = format!("max_connections = 4\nidle_timeout = \"2s\"\n{acks}");
        let daemon = start(&["udp://127.0.0.1:0", "tcp://0.0.0.0:0"], &limits, "");
        let at = SocketAddr::from(([127, 0, 0, 1], daemon.at("app", "tcp").port()));
        let count = |name| Daemon::number(&daemon.source("app"), name);
        let mut silent = Vec::new();
        wait_for("a silent connection that gives way", || {
            if count("connections_open") < 4 {
                silent.extend([1, 2].map(|last| from(last, at)));
                return None;
            }
            let mut third = from(3, at);
            let mut answer = Vec::new();
            // One that is refused is closed at once, or has been.
            let _refused = third.write_all(b"third:1|c\n").and_then(|()| third.shutdown(Shutdown::Write));
            let _reset = third.read_to_end(&mut answer);
            (count("connections_replaced") > 0 && count("aggregated") > 0).then_some(())
        });
        wait_for("a word about it", || daemon.stderr().contains("in favour of").then_some(()));
        if !acks.is_empty() {
            let has_reply = |mut stream: &TcpStream| {
                stream.set_nonblocking(true).expect("a socket can be asked not to block");
                let mut answer = [0; 64];
                stream.read(&mut answer).is_ok_and(|len| answer[..len] == *b"err 0 replaced\n")
            };
            wait_for("a word to the client", || silent.iter().any(has_reply).then_some(()));
        }
        drop(silent);
        assert_well(daemon);
    }
}

#[test]
fn no_peer_takes_more_than_half_of_the_connections_unless_configured() {
    let daemon = start(&["udp://127.0.0.1:0", "tcp://[::]:0"], "max_connections = 6", "");
    let port = daemon.at("app", "tcp").port();
    let kept: Vec<TcpStream> =
        (0..3).map(|_| TcpStream::connect(("127.0.0.1", port)).expect("it listens")).collect();
    daemon.wait_source("app", "connections_open", 3);
    for _ in 0..7 {
        drop(TcpStream::connect(("127.0.0.1", port)).expect("the kernel accepts"));
    }
    daemon.wait_source("app", "connections_refused_per_peer", 7);
    // Another address has places left.
    let mut others: Vec<TcpStream> = (0..3).map(|_| from(2, ([127, 0, 0, 1], port).into())).collect();
    others.iter_mut().for_each(|other| other.write_all(b"other:1|c\n").expect("it reads"));
    daemon.wait_source("app", "aggregated", 3);
    assert_eq!(Daemon::number(&daemon.source("app"), "connections_refused"), 0);
    let logged = || daemon.stderr().matches("raise `max_connections_per_peer`").count();
    wait_for("a word about it", || (logged() > 0).then_some(()));
    assert_eq!(logged(), 1, "{}", daemon.stderr());
    drop(kept);
    daemon.wait_source("app", "connections_open", 3);
    let mut next = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    next.write_all(b"kept:1|c\n").expect("it reads");
    daemon.wait_source("app", "aggregated", 4);
    assert_well(daemon);
}

#[test]
fn a_request_of_a_browser_is_closed_and_its_body_counts_for_nothing() {
    let daemon = start(&["udp://127.0.0.1:0", "tcp://127.0.0.1:0"], "", "");
    let at = daemon.at("app", "tcp");
    let post = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\nbody:1|c\nbody:2|c\n";
    let hello = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[0; 501]].concat();
    let sent: [(&str, &[u8]); 3] = [
        ("http_request", post.as_bytes()),
        ("http_request", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nbody:1|c\n"),
        ("tls_handshake", &hello),
    ];
    for (_, bytes) in sent {
        for pieces in [bytes.len(), 1] {
            let mut stream = TcpStream::connect(at).expect("it listens");
            stream.set_nodelay(true).expect("a TCP socket");
            stream.set_read_timeout(Some(crate::support::PATIENCE)).expect("a time-out can be set");
            for piece in bytes.chunks(pieces) {
                // It may be closed before all of it is sent.
                if stream.write_all(piece).is_err() {
                    break;
                }
            }
            let closed = stream.read(&mut [0]);
            assert!(
                matches!(&closed, Ok(0))
                    || closed.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
            );
        }
    }
    daemon.wait_source("app", "connections_open", 0);
    let row = daemon.source("app");
    assert_eq!(Daemon::number(&row, "aggregated"), 0, "{row}");
    let rejected = &row["losses"]["rejected"];
    assert_eq!((&rejected["http_request"], &rejected["tls_handshake"]), (&4.into(), &2.into()), "{row}");
    assert_eq!(Daemon::number(&row, "received"), 6, "{row}");
    assert_logged(&daemon, "http_request");
    // Lines that begin like a request are lines.
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.write_all(b"GET /x:1|c\nGET / HTTP/1.1\ngood:1|c\n").expect("it reads");
    daemon.wait_source("app", "aggregated", 2);
    assert_well(daemon);
}

#[test]
fn a_connection_that_says_nothing_is_closed_in_time() {
    let daemon = start(&["udp://127.0.0.1:0", "tcp://127.0.0.1:0"], "idle_timeout = \"200ms\"", "");
    let _silent = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    daemon.wait_source("app", "connections_accepted", 1);
    daemon.wait_source("app", "connections_open", 0);
    assert_well(daemon);
}

#[test]
fn a_flood_of_new_series_leaves_the_known_ones_alone() {
    let graphite = FakeGraphite::new();
    let toml = config(&["udp://127.0.0.1:0"], &graphite)
        .replace("window = \"1h\"", "window = \"1h\"\nmax_series = 100");
    let mut daemon = Builder::native(&toml).start();
    let socket = udp(daemon.at("app", "udp"));
    socket.send(b"known:1|c\nheld:5|g").expect("it is there");
    daemon.wait_source("app", "aggregated", 2);
    let flood = (0..1000).map(|at| (0..20).map(|n| format!("new.{}:1|c\n", at * 20 + n)).collect::<String>());
    send_all(&socket, flood);
    socket.send(b"known:10|c\nheld:6|g").expect("it is there");
    daemon.wait_source("app", "received", 20_004);
    let row = daemon.source("app");
    let dropped = Daemon::number(&row, "losses/dropped/series_max");
    assert!(dropped > 19_000, "{row}");
    assert_eq!(Daemon::number(&row, "aggregated"), 20_004 - dropped, "{row}");
    wait_for("a word about it", || {
        (daemon.stderr().matches("lost as `series_max`").count() == 1).then_some(())
    });
    let named = (0..20_000).any(|at| daemon.stderr().contains(&format!("first refused series: new.{at} ")));
    assert!(named, "{}", daemon.stderr());
    daemon.assert_sums_hold();
    daemon.stop();
    assert_eq!(graphite.total("stats_counts.known"), 11.0);
    assert_eq!(graphite.of("stats.gauges.held").last().map(|point| point.value), Some(6.0));
    let new =
        graphite.points().into_iter().filter(|point| point.name.starts_with("stats_counts.new.")).count();
    assert_eq!(new as u64, 20_004 - dropped - 4);
}

#[test]
fn a_complaint_names_who_sent_the_line_and_quotes_it() {
    let listen = [
        "udp://127.0.0.1:0",
        "tcp://127.0.0.1:0",
        "unix://lines.sock",
        "unixgram://packets.sock",
        "unix-frames://frames.sock",
    ];
    let daemon = start(&listen, "max_line_bytes = \"200B\"", "");
    let path = |name: &str| daemon.folder.path().join(name);
    let logged = |said: &str| daemon.wait_logged(said);
    // By UDP: the sender of the bad line, not of the good ones beside it. Nothing in it reaches a terminal.
    let (good, bad) = (udp(daemon.at("app", "udp")), udp(daemon.at("app", "udp")));
    good.send(b"good:1|c").expect("it is there");
    bad.send(b"good:1|c\n\x1b[31mred:1|\x07").expect("it is there");
    good.send(b"good:1|c").expect("it is there");
    let from = |socket: &std::net::UdpSocket| socket.local_addr().expect("it is bound").to_string();
    logged(&format!("a line from {} at udp://", from(&bad)));
    logged(r"It reads: \x1b[31mred:1|\x07 ");
    // A connection, as long as it is there and when it is gone.
    let mut tcp = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    tcp.write_all(format!("{}\n", "long ".repeat(50)).as_bytes()).expect("it reads");
    let from = tcp.local_addr().expect("it is bound");
    logged(&format!("a line from {from} at tcp://"));
    logged(&format!("It reads: {}... (more than `max_line_bytes` bytes)", "long ".repeat(20)));
    let before = Daemon::number(&daemon.source("app"), "bytes");
    tcp.write_all(b"half a li").expect("it reads");
    daemon.wait_source("app", "bytes", before + 9);
    reset(&tcp);
    drop(tcp);
    logged("It reads: half a li (it had no end when the connection closed)");
    let mut web = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    web.write_all(b"GET /metrics HTTP/1.1\r\nCookie: secret\r\n\r\n").expect("it reads");
    logged(&format!("a line from {} at tcp://", web.local_addr().expect("it is bound")));
    logged("It reads: GET /metrics HTTP/1.1 (an HTTP request)");
    // Unix sockets.
    let mut lines = UnixStream::connect(path("lines.sock")).expect("it listens");
    lines.write_all(b"x:y|c\n").expect("it reads");
    logged(&format!("a line from process {} of user ", std::process::id()));
    let packets = UnixDatagram::unbound().expect("a socket");
    packets.send_to(b"junk", path("packets.sock")).expect("it reads");
    logged("a line from a client of unixgram://");
    let mut frames = UnixStream::connect(path("frames.sock")).expect("it listens");
    frames.write_all(b"x:y|c\n").expect("it reads");
    logged("bytes that begins with x:y|");
    let log = assert_well(daemon);
    assert!(!log.contains("secret") && !log.contains('\x1b'), "{log}");
}

#[test]
fn a_complaint_names_who_sent_the_line_also_at_a_socket_that_is_flooded() {
    let daemon = start(&["udp://127.0.0.1:0"], "", "");
    let flood = udp(daemon.at("app", "udp"));
    let packets = (0..3000).map(|at| if at % 100 == 99 { "bad" } else { "good:1|c" });
    send_all(&flood, packets);
    daemon.wait_source("app", "losses/rejected/no_type", 30);
    assert_logged(&daemon, "no_type");
    let log = assert_well(daemon);
    let from = flood.local_addr().expect("it is bound").to_string();
    // With all of the flood in one call nobody may have been noted; the word comes all the same.
    assert!(log.contains(&format!("a line from {from} ")) || log.contains("an unknown sender at"), "{log}");
}

#[test]
fn the_lines_that_end_node_are_ordinary_here() {
    let graphite = FakeGraphite::new();
    let toml = config(&["udp://127.0.0.1:0", "tcp://127.0.0.1:0"], &graphite)
        .replace("type = \"statsd\"\n", "type = \"statsd\"\ndialect = \"etsy\"\n");
    let mut daemon = Builder::native(&toml).start();
    let socket = udp(daemon.at("app", "udp"));
    for line in ["x:1|c|@+0.5", "x:1|c|@Infinity", "x:1|c|@ 0.5"] {
        socket.send(line.as_bytes()).expect("it is there");
    }
    daemon.wait_source("app", "losses/rejected/bad_rate", 3);
    for name in ["constructor", "hasOwnProperty", "__proto__", "toString"] {
        for (value, kind) in [("1", "ms"), ("1", "c"), ("1", "g"), ("1", "s"), ("__proto__", "s")] {
            socket.send(format!("{name}:{value}|{kind}").as_bytes()).expect("it is there");
        }
    }
    daemon.wait_source("app", "aggregated", 20);
    let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    stream.write_all(b"tcp:1|c\n").expect("it reads");
    daemon.wait_source("app", "aggregated", 21);
    reset(&stream);
    drop(stream);
    daemon.wait_source("app", "connections_broken", 1);
    daemon.assert_sums_hold();
    daemon.stop();
    for name in ["constructor", "hasOwnProperty", "__proto__", "toString"] {
        assert_eq!(graphite.total(&format!("stats_counts.{name}")), 1.0, "{name}");
        assert_eq!(graphite.total(&format!("stats.sets.{name}.count")), 2.0, "{name}");
        assert_eq!(graphite.total(&format!("stats.timers.{name}.count")), 1.0, "{name}");
    }
}

#[test]
fn each_connection_that_misbehaves_is_not_a_message_of_its_own() {
    let daemon = start(&["udp://127.0.0.1:0", "tcp://127.0.0.1:0"], "", "");
    for line in [b"junk\n", b"x:y|c"].repeat(25) {
        let mut stream = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
        stream.write_all(line).expect("it reads");
    }
    daemon.wait_source("app", "rejected", 50);
    assert_logged(&daemon, "no_type");
    assert_logged(&daemon, "bad_value");
    assert_well(daemon);
}

/// A connection from another of this machine's addresses.
fn from(last: u8, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0)).into()).expect("it is this machine's");
    socket.connect(&to.into()).expect("it listens");
    socket.into()
}

#[test]
fn unfinished_messages_of_all_connections_have_one_bound() {
    const MIB: usize = 1 << 20;
    let toml = "max_unfinished_bytes = \"8MiB\"\n\
                [sources.app]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\nencoding = \"pickle\"\n\
                [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"app\"]\n";
    let mut daemon = Builder::native(toml).start();
    let at = daemon.at("app", "tcp");
    let resident = || sys::memory_of(daemon.pid()).expect("it runs").resident;
    let before = resident();
    // 2 MiB of a message of 3 MiB; the daemon may close it meanwhile.
    let begun = [&(3 * MIB as u32).to_be_bytes()[..], &vec![b'x'; 2 * MIB]].concat();
    let begin = |last: u8| {
        let mut stream = from(last, at);
        let _closed = stream.write_all(&begun);
        stream
    };
    let one_peer: Vec<TcpStream> = (0..5).map(|_| begin(2)).collect();
    let closed = || daemon.source("app")["losses"]["rejected"]["unfinished_full"].as_u64().unwrap_or(0);
    // How many fit depends on where the reads cut: memory is doubled. One that fits now may still grow past it.
    wait_for("one client to have its half", || (closed() >= 3).then_some(()));
    let others: Vec<TcpStream> = (0..40).map(|at| begin(3 + at % 10)).collect();
    let open = wait_for("each to be held or closed", || {
        let open = Daemon::number(&daemon.source("app"), "connections_open");
        (open <= 4 && closed() + open == 45).then_some(open)
    });
    assert!(open > 0, "some were held");
    // What closed connections had goes back to the system once a second, reader by reader.
    wait_for("no more than 40 MiB to be held of 90 MiB that were sent", || {
        (resident().saturating_sub(before) < 40 << 20).then_some(())
    });
    // Small messages pass, in pieces as well.
    let mut innocent = from(2, at);
    innocent.write_all(&[&(64 * 1024_u32).to_be_bytes()[..], &[b'x'; 60_000]].concat()).expect("it reads");
    std::thread::sleep(Duration::from_millis(50));
    innocent.write_all(&[b'x'; 64 * 1024 - 60_000]).expect("it reads");
    daemon.wait_source("app", "losses/rejected/bad_message", 1);
    daemon.wait_logged_times("incomplete messages of", 1);
    daemon.wait_logged("incomplete messages of 127.0.0.2 have");
    // The room is there again when they are gone.
    drop((one_peer, others));
    wait_for("each to have one end", || {
        let lost = Daemon::number(&daemon.source("app"), "losses/rejected/tail_lost");
        (closed() + lost == 45).then_some(())
    });
    daemon.wait_source("app", "connections_open", 1);
    innocent.write_all(&begun).expect("it reads");
    innocent.write_all(&vec![b'x'; MIB]).expect("there is room");
    daemon.wait_source("app", "losses/rejected/bad_message", 2);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn unfinished_messages_of_one_local_process_close_no_other_process() {
    const MIB: usize = 1 << 20;
    let toml = "max_unfinished_bytes = \"16MiB\"\n\
                [sources.app]\ntype = \"graphite\"\nlisten = [\"unix://app.sock\"]\nencoding = \"pickle\"\n\
                [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"app\"]\n";
    let mut daemon = Builder::native(toml).start();
    let path = daemon.folder.path().join("app.sock");
    let begun = [&(3 * MIB as u32).to_be_bytes()[..], &vec![b'x'; 2 * MIB]].concat();
    let ours: Vec<UnixStream> = (0..8)
        .map(|_| {
            let mut stream = UnixStream::connect(&path).expect("it listens");
            let _closed = stream.write_all(&begun);
            stream
        })
        .collect();
    let lost = |reason: &str| Daemon::number(&daemon.source("app"), &format!("losses/rejected/{reason}"));
    wait_for("this process to have its half", || (lost("unfinished_full") > 0).then_some(()));
    let script = "import socket, struct, sys, time\n\
                  s = socket.socket(socket.AF_UNIX)\n\
                  s.connect(sys.argv[1])\n\
                  s.sendall(struct.pack('>I', 2 << 20) + b'x' * (1 << 20))\n\
                  time.sleep(0.1)\n\
                  s.sendall(b'x' * (1 << 20))\n";
    match Command::new("python3").args(["-c", script]).arg(&path).status() {
        Ok(ended) => assert!(ended.success(), "the other process could send its message"),
        Err(error) => crate::support::skip("bad_input", &format!("there is no python3: {error}")),
    }
    // It came whole, and is no pickle.
    daemon.wait_source("app", "losses/rejected/bad_message", 1);
    drop(ours);
    daemon.stop();
}

#[test]
fn memory_that_was_freed_goes_back_to_the_system_without_traffic() {
    const BEGUN_BYTES: usize = 15 << 20;
    let toml = "[sources.app]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\nencoding = \"pickle\"\n\
                [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"app\"]\n";
    let mut daemon = Builder::native(toml).start();
    let at = daemon.at("app", "tcp");
    let resident = |daemon: &Daemon| sys::memory_of(daemon.pid()).expect("it runs").resident;
    let before = resident(&daemon);
    let begun = [&(16_u32 << 20).to_be_bytes()[..], &vec![b'x'; BEGUN_BYTES]].concat();
    let begin = |last: u8| {
        let mut stream = from(last, at);
        stream.write_all(&begun).expect("it reads");
        stream
    };
    let streams: Vec<TcpStream> = (2..6).map(begin).collect();
    let all = (streams.len() * BEGUN_BYTES) as u64;
    wait_for("all to be read", || (resident(&daemon) > before + all).then_some(()));
    drop(streams);
    // Nobody asks the daemon for anything meanwhile.
    wait_for("its memory to be given back", || (resident(&daemon) < before + all / 4).then_some(()));
    daemon.wait_source("app", "connections_open", 0);
    daemon.stop();
}
