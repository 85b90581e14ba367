//! Riemann's protocol: messages in pieces and datagrams to a file of events, replies, clients that do not read them, and connections
//! that another process continues.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use model::{EventTime, EventsBuilder, NumberRef, TextField};
use wire::riemann;

use crate::support::{Builder, Daemon, PATIENCE, udp, wait_for};

const CONFIG: &str = "[sources.in]\ntype = \"riemann\"\nlisten = [\"tcp://127.0.0.1:0\", \"udp://127.0.0.1:0\"]\n\
     [outputs.events]\ntype = \"event_file\"\nfrom = [\"in\"]\npath = \"events\"\n";

/// More than the kernel holds between a client and a daemon that no longer reads.
const MUCH_BYTES: usize = 64 << 20;

/// A message with an event, whose metric is `metric`.
fn event(service: &str, metric: i64) -> Vec<u8> {
    let mut events = EventsBuilder::default();
    let mut event = events.event();
    event.plain_text(TextField::Service, service);
    event.metric(NumberRef::I64(metric));
    event.time(EventTime::Seconds(1_700_000_000));
    event.finish();
    let mut out = Vec::new();
    riemann::request(None, events.view().iter(), &mut out);
    out
}

fn query() -> Vec<u8> {
    let mut out = Vec::new();
    riemann::request(Some("true"), std::iter::empty(), &mut out);
    out
}

pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(riemann::framed(&mut out, |out| out.extend_from_slice(message)));
    out
}

fn line(service: &str, metric: i64) -> String {
    format!("{{\"service\":\"{service}\",\"time\":1700000000,\"metric\":{metric}}}\n")
}

pub(crate) fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("it is a socket");
    stream
}

/// The next reply, without its length.
pub(crate) fn reply(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("a reply");
    let mut reply = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut reply).expect("a whole reply");
    reply
}

pub(crate) fn no_index() -> Vec<u8> {
    let mut out = Vec::new();
    riemann::error_reply("no index", &mut out);
    out
}

fn wait_written(daemon: &Daemon, want: &str) {
    let path = daemon.folder.path().join("events");
    wait_for("the events in the file", || {
        (std::fs::read_to_string(&path).is_ok_and(|text| text == want)).then_some(())
    });
}

#[test]
fn each_message_is_answered_in_order_and_its_events_are_written() {
    let mut daemon = Builder::native(CONFIG).start();
    let mut client = connect(daemon.at("in", "tcp"));
    let sent = framed(&event("in pieces", 1));
    for piece in sent.chunks(5) {
        client.write_all(piece).expect("it reads");
    }
    assert_eq!(reply(&mut client), riemann::OK_REPLY);
    client
        .write_all(&[framed(&event("together", 2)), framed(&query()), framed(b"")].concat())
        .expect("it reads");
    let replies: Vec<Vec<u8>> = (0..3).map(|_| reply(&mut client)).collect();
    assert_eq!(replies, [riemann::OK_REPLY.to_vec(), no_index(), riemann::OK_REPLY.to_vec()]);
    let mut want = line("in pieces", 1) + &line("together", 2);
    wait_written(&daemon, &want);
    let socket = udp(daemon.at("in", "udp"));
    socket.send(&event("a datagram", 3)).expect("it listens");
    daemon.wait_source("in", "routed", 3);
    socket.send(b"\x32\x05x").expect("it listens");
    daemon.wait_source("in", "losses/rejected/bad_message", 1);
    want += &line("a datagram", 3);
    wait_written(&daemon, &want);
    daemon.assert_sums_hold();
    daemon.stop();
    assert!(daemon.stderr().contains("bad_message"), "{}", daemon.stderr());
}

#[test]
fn replies_come_before_the_end_of_a_connection_that_cannot_be_decoded() {
    let mut daemon = Builder::native(CONFIG).start();
    let mut client = connect(daemon.at("in", "tcp"));
    // Closing with unread data would reset the connection, and with it the replies on their way.
    let behind = framed(&vec![0; 400 << 10]);
    let sent = [framed(&event("before", 1)), framed(&query()), framed(b"\x32\x05x"), behind].concat();
    client.write_all(&sent).expect("it reads for a while");
    assert_eq!((reply(&mut client), reply(&mut client)), (riemann::OK_REPLY.to_vec(), no_index()));
    assert_eq!(client.read(&mut [0]).expect("an orderly end"), 0);
    daemon.wait_source("in", "losses/rejected/bad_message", 1);
    wait_written(&daemon, &line("before", 1));
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn a_client_that_reads_no_replies_is_read_no_further() {
    let mut daemon = Builder::native(CONFIG).start();
    let mut client = connect(daemon.at("in", "tcp"));
    client.set_write_timeout(Some(Duration::from_secs(1))).expect("it is a socket");
    // Replies are longer than these messages: the daemon would collect them if it went on reading.
    let messages = framed(b"").repeat(16 << 10);
    let mut sent = 0;
    let blocked = loop {
        match client.write(&messages[sent % 4..]) {
            Ok(len) => sent += len,
            Err(error) => break error.kind(),
        }
        assert!(sent < MUCH_BYTES, "it reads on");
    };
    assert!(matches!(blocked, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{blocked}");
    // The rest of the last message, when there is room again.
    let mut second = client.try_clone().expect("a socket");
    second.set_write_timeout(None).expect("it is a socket");
    let last = [&messages[..(4 - sent % 4) % 4], &framed(&event("last", 1))].concat();
    let writer = std::thread::spawn(move || second.write_all(&last));
    for _ in 0..sent.div_ceil(4) + 1 {
        assert_eq!(reply(&mut client), riemann::OK_REPLY);
    }
    writer.join().expect("it ends").expect("it is read again");
    wait_written(&daemon, &line("last", 1));
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
#[cfg(target_os = "linux")]
fn another_process_continues_a_connection_within_a_message() {
    let mut daemon = Builder::native(CONFIG).start();
    let mut client = connect(daemon.at("in", "tcp"));
    let second = framed(&event("over a restart", 2));
    let (begin, end) = second.split_at(9);
    client.write_all(&[&framed(&event("before", 1)), begin].concat()).expect("it reads");
    assert_eq!(reply(&mut client), riemann::OK_REPLY);
    let mut next = daemon.successor();
    next.wait_ready();
    assert!(daemon.wait_exit().success(), "{}", daemon.stderr());
    client.write_all(&[end, &framed(&query())].concat()).expect("the next process reads");
    assert_eq!((reply(&mut client), reply(&mut client)), (riemann::OK_REPLY.to_vec(), no_index()));
    wait_written(&next, &(line("before", 1) + &line("over a restart", 2)));
    next.assert_sums_hold();
    next.stop();
}
