//! Endpoints that make a record look delivered: nothing is called so that nobody can have (docs/delivery.md).

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::net::{UnixListener, UnixStream};

use crate::acks::Client;
use crate::support::{Builder, Daemon, PATIENCE, wait_for};

const LINES: u64 = 1000;

/// A relay of packets to a unix stream, whose clients get acknowledgements of delivery.
fn start() -> (Daemon, UnixListener) {
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"delivered\"\n\
                [outputs.store]\ntype = \"unix\"\nfrom = [\"app\"]\nto = [\"unix://peer.sock\"]\n\
                min_retry_delay = \"20ms\"\nmax_retry_delay = \"100ms\"\n";
    let builder = Builder::native(toml);
    let listener = UnixListener::bind(builder.folder().join("peer.sock")).expect("the folder is ours");
    listener.set_nonblocking(true).expect("it can");
    (builder.start(), listener)
}

fn accept(listener: &UnixListener) -> UnixStream {
    let stream = wait_for("the daemon to connect", || listener.accept().ok()).0;
    stream.set_nonblocking(false).expect("it can");
    stream.set_read_timeout(Some(PATIENCE)).expect("it can");
    stream
}

fn send(at: SocketAddr) -> Client {
    let mut client = Client::connect(at);
    let lines: String = (0..LINES).map(|n| format!("n{n}:1|c\n")).collect();
    client.send(&lines);
    client
}

/// Reads what comes until all lines are there, each of them once.
fn assert_all_lines(stream: &mut UnixStream) {
    let mut lines = BufReader::new(stream).lines();
    for n in 0..LINES {
        let line = lines.next().expect("there is more").expect("it is open");
        assert_eq!(line, format!("n{n}:1|c"));
    }
}

fn in_flight(daemon: &Daemon, stream: &UnixStream) {
    stream.set_nonblocking(true).expect("it can");
    wait_for("bytes to be on the way", || {
        let waiting = Daemon::number(&daemon.output("store"), "queued");
        let mut peeked = [std::mem::MaybeUninit::uninit(); 1];
        let there = socket2::SockRef::from(stream).peek(&mut peeked).is_ok();
        (waiting == LINES && there).then_some(())
    });
    stream.set_nonblocking(false).expect("it can");
}

#[test]
fn lines_that_a_unix_peer_never_read_are_sent_again_and_not_acknowledged_before() {
    let (mut daemon, listener) = start();
    let hangs = accept(&listener);
    let mut client = send(daemon.at("app", "tcp"));
    in_flight(&daemon, &hangs);
    drop(hangs);
    let mut reads = accept(&listener);
    let store = daemon.output("store");
    assert_eq!(Daemon::number(&store, "delivered"), 0, "nobody has read anything: {store}");
    assert_eq!(Daemon::number(&store, "in_doubt"), LINES, "{store}");
    assert_all_lines(&mut reads);
    client.wait_reply(&format!("ack {LINES}"));
    daemon.wait_output("store", "delivered", LINES);
    assert_eq!(Daemon::number(&daemon.output("store"), "resent"), LINES);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn a_unix_peer_that_read_half_gets_no_more_than_what_it_left() {
    let (mut daemon, listener) = start();
    let mut half = accept(&listener);
    let mut client = send(daemon.at("app", "tcp"));
    in_flight(&daemon, &half);
    half.read_exact(&mut [0; 4000]).expect("there is so much");
    drop(half);
    let mut reads = accept(&listener);
    let store = daemon.output("store");
    let (delivered, doubt) = (Daemon::number(&store, "delivered"), Daemon::number(&store, "in_doubt"));
    assert_eq!(delivered + doubt, LINES, "{store}");
    assert!(delivered <= 4000 / 7, "it read no more than that: {store}");
    let mut first = BufReader::new(&mut reads);
    for n in delivered..LINES {
        let mut line = String::new();
        first.read_line(&mut line).expect("it is open");
        assert_eq!(line, format!("n{n}:1|c\n"));
    }
    client.wait_reply(&format!("ack {LINES}"));
    daemon.wait_output("store", "delivered", LINES);
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn a_unix_peer_that_read_everything_before_it_closed_gets_nothing_twice() {
    let (mut daemon, listener) = start();
    let mut reads = accept(&listener);
    let mut client = send(daemon.at("app", "tcp"));
    assert_all_lines(&mut reads);
    drop(reads);
    client.wait_reply(&format!("ack {LINES}"));
    let store = daemon.output("store");
    assert_eq!(
        (Daemon::number(&store, "delivered"), Daemon::number(&store, "in_doubt")),
        (LINES, 0),
        "{store}"
    );
    daemon.stop();
}

#[test]
fn what_is_written_to_a_file_that_was_deleted_is_written_again() {
    let toml = "[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\nack_when = \"delivered\"\n\
                [outputs.events]\ntype = \"event_file\"\nfrom = [\"app\"]\npath = \"events\"\n";
    let mut daemon = Builder::native(toml).start();
    let path = daemon.folder.path().join("events");
    let mut client = Client::connect(daemon.at("app", "tcp"));
    let bytes = || std::fs::read(&path).unwrap_or_default();
    client.send("_e{5,1}:first|x\n");
    client.wait_reply("ack 1");
    assert!(!bytes().is_empty());
    std::fs::remove_file(&path).expect("it is there");
    client.send("_e{6,1}:second|x\n");
    client.wait_reply("ack 2");
    assert!(!bytes().is_empty(), "it was written where nobody can read it");
    // Another file takes its name.
    let other = path.with_extension("other");
    std::fs::write(&other, "other\n").expect("the folder is ours");
    std::fs::rename(&other, &path).expect("the folder is ours");
    client.send("_e{5,1}:third|x\n");
    client.wait_reply("ack 3");
    assert!(bytes().starts_with(b"other\n") && bytes().len() > b"other\n".len());
    daemon.wait_output("events", "delivered", 3);
    daemon.assert_sums_hold();
    daemon.stop();
}
