//! One client whose names take a relay long searches: others are served meanwhile, and a stop keeps what is theirs.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::support::{Builder, Daemon, FakeGraphite, udp, wait_for};

/// Expressions that nothing can leave out before it has searched.
const RULES: usize = 150;

/// Longest of the hostile names: about a dozen are a read.
const NAME_BYTES: usize = 4_000;

fn start(graphite: &FakeGraphite) -> Daemon {
    let mut toml = "stop_timeout = \"3s\"\n\
         [sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\", \"udp://127.0.0.1:0\"]\n\
         [sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\", \"udp://127.0.0.1:0\"]\n\
         ack_when = \"accepted\"\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"1h\"\n"
        .to_owned();
    writeln!(
        toml,
        "[outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{}\"]\n\
         [outputs.points]\ntype = \"graphite_file\"\nfrom = [\"relay\"]\nmax_files = 1\n\
         [transforms.relay]\ntype = \"relay\"\nfrom = [\"lines\"]\n\
         [transforms.relay.clusters]\nstorage = {{ type = \"forward\", to = [\"points\"] }}",
        graphite.to()
    )
    .expect("memory takes it");
    for rule in 0..RULES {
        let expression = format!(r"[a-z]{{1,{}}}[0-9]{{2}}[a-y]\.[0-9]", rule % 40 + 1);
        writeln!(toml, "[[transforms.relay.rules]]\nmatch = ['{expression}']\nto = \"blackhole\"")
            .expect("memory takes it");
    }
    toml.push_str("[[transforms.relay.rules]]\nto = [\"storage\"]\n");
    Builder::native(&toml).start()
}

/// Lines whose names are all new.
fn hostile(count: usize) -> String {
    let long = "abcdefgh1.".repeat(NAME_BYTES / 10);
    (0..count).map(|n| format!("{long}{n} 1 1700000000\n")).collect()
}

/// A client of another source is acknowledged while the relay still searches, and a stop loses nothing of it.
fn others_are_served_until_the_end(mut daemon: Daemon, graphite: &FakeGraphite) {
    wait_for("lines to be routed", || (Daemon::number(&daemon.source("lines"), "routed") > 0).then_some(()));
    let mut client = TcpStream::connect(daemon.at("app", "tcp")).expect("it listens");
    client.write_all(b"hits:5|c\n").expect("it reads");
    let mut answer = String::new();
    BufReader::new(&client).read_line(&mut answer).expect("it answers");
    assert_eq!(answer, "ack 1\n");
    udp(daemon.at("app", "udp")).send(b"hits:50|c").expect("it is there");
    daemon.wait_source("app", "aggregated", 2);
    let lines = daemon.source("lines");
    assert!(Daemon::number(&lines, "in_flight") > 0, "the relay has nothing to do any more: {lines}");
    daemon.assert_sums_hold();
    daemon.stop();
    let logged = daemon.stderr();
    assert!(logged.contains("source `lines`") && logged.contains("too late for the last flush"), "{logged}");
    assert!(!logged.contains("ERROR") && !logged.contains("source `app`"), "{logged}");
    assert_eq!(graphite.total("stats_counts.hits"), 55.0, "{logged}");
}

#[test]
fn lines_of_one_client_with_long_searches_stop_nobody_else() {
    let graphite = FakeGraphite::new();
    let daemon = start(&graphite);
    let mut client = TcpStream::connect(daemon.at("lines", "tcp")).expect("it listens");
    let sender = std::thread::spawn(move || {
        // It waits for room, and is closed by the stop.
        let _closed = client.write_all(hostile(4_000).as_bytes());
    });
    others_are_served_until_the_end(daemon, &graphite);
    sender.join().expect("the sender only stops");
}

#[test]
fn datagrams_of_one_client_with_long_searches_stop_nobody_else() {
    let graphite = FakeGraphite::new();
    let daemon = start(&graphite);
    let socket = udp(daemon.at("lines", "udp"));
    let lines = hostile(3_000);
    let lines: Vec<&str> = lines.split_inclusive('\n').collect();
    for packet in lines.chunks(15) {
        socket.send(packet.concat().as_bytes()).expect("the buffer has room");
    }
    others_are_served_until_the_end(daemon, &graphite);
}
