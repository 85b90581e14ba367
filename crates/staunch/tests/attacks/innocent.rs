//! The innocent sender, which nothing may happen to, and the bare receiver that it is compared with: a loop that reads
//! packets and throws them away, and listeners that accept, read and throw away.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::time::{Duration, Instant};

use model::Span;
use serde_json::json;
use sys::{AsFd, PacketReader, PacketWriter, Wait, set_receive_buffer};

use crate::children::{Over, Words};

/// Pause between two bursts.
const TICK: Duration = Duration::from_millis(2);

/// A sender that was kept off its core does not make up for more than this.
const BEHIND_MAX: Duration = Duration::from_millis(20);

/// Series that it counts.
const SERIES: u64 = 100;

/// Packets of one call.
const SLOTS: usize = 64;

/// Receive buffer of the innocent's listener, on either side.
pub(crate) const BUFFER_BYTES: u64 = 4 << 20;

/// The innocent sender: `rate` packets a second to `udp`, each one sample.
pub(crate) fn send(words: &Words) {
    let at: SocketAddr = words.get("udp").and_then(|at| at.parse().ok()).expect("where to");
    let rate: u64 = words.get("rate").and_then(|rate| rate.parse().ok()).expect("a rate");
    let over = Over::of_parent();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.connect(at).expect("a loopback address");
    let mut writer = PacketWriter::new(SLOTS);
    let (mut sent, mut failed, mut skipped) = (0_u64, 0_u64, Duration::ZERO);
    let begin = Instant::now();
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    while !over.is_so() {
        std::thread::sleep(TICK);
        let due = |skipped: Duration| {
            ((begin.elapsed().saturating_sub(skipped)).as_secs_f64() * rate as f64) as u64
        };
        let behind = Duration::from_secs_f64(due(skipped).saturating_sub(sent) as f64 / rate as f64);
        skipped += behind.saturating_sub(BEHIND_MAX);
        let mut left = due(skipped).saturating_sub(sent);
        while left > 0 {
            let count = left.min(SLOTS as u64);
            bytes.clear();
            spans.clear();
            for packet in 0..count {
                let from = bytes.len();
                bytes.extend_from_slice(format!("innocent.{}:1|c", (sent + packet) % SERIES).as_bytes());
                spans.push(Span::new(from, bytes.len() - from));
            }
            match writer.send(socket.as_fd(), &bytes, &spans, Wait::Yes) {
                Ok(taken) => sent += taken as u64,
                Err(_nobody_listens) => failed += 1,
            }
            left -= count;
        }
    }
    println!("{}", json!({ "sent": sent, "failed": failed, "seconds": begin.elapsed().as_secs_f64() }));
}

/// The bare receiver. Says where it listens; at the end, how many packets came for the innocent.
pub(crate) fn receive(words: &Words) {
    let folder = std::path::Path::new(words.get("folder").expect("a folder"));
    let innocent = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    // Less where the system grants less, as it would to the daemon.
    let granted = set_receive_buffer(innocent.as_fd(), BUFFER_BYTES).unwrap_or(0);
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let unix = UnixListener::bind(folder.join("stream")).expect("a new folder");
    let unixgram = UnixDatagram::bind(folder.join("packets")).expect("a new folder");
    println!(
        "{}",
        json!({
            "innocent": innocent.local_addr().expect("it is bound").to_string(),
            "tcp": tcp.local_addr().expect("it is bound").to_string(),
            "udp": udp.local_addr().expect("it is bound").to_string(),
        })
    );
    let over = Over::of_parent();
    tcp.set_nonblocking(true).expect("a socket can be asked not to block");
    unix.set_nonblocking(true).expect("a socket can be asked not to block");
    std::thread::spawn(move || discard_packets(|buffer| udp.recv(buffer)));
    std::thread::spawn(move || discard_packets(|buffer| unixgram.recv(buffer)));
    std::thread::spawn(move || {
        discard(|| tcp.accept().map(|(stream, _)| (stream.set_nonblocking(true), stream).1))
    });
    std::thread::spawn(move || {
        discard(|| unix.accept().map(|(stream, _)| (stream.set_nonblocking(true), stream).1))
    });
    let mut reader = PacketReader::new(SLOTS).expect("memory for packets");
    innocent.set_read_timeout(Some(Duration::from_millis(20))).expect("a time-out can be set");
    let mut received = 0;
    loop {
        let packets = reader.receive(innocent.as_fd(), Wait::Yes).expect("it reads").iter().count();
        received += packets as u64;
        if packets == 0 && over.is_so() {
            break;
        }
    }
    println!("{}", json!({ "received": received, "granted": granted }));
}

fn discard_packets(mut receive: impl FnMut(&mut [u8]) -> std::io::Result<usize>) {
    let mut buffer = vec![0; 64 * 1024];
    while receive(&mut buffer).is_ok() {}
}

/// Accepts, reads, throws away: in one thread.
fn discard<S: Read>(mut accept: impl FnMut() -> std::io::Result<S>) {
    let mut open: Vec<S> = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let mut moved = false;
        while let Ok(stream) = accept() {
            open.push(stream);
            moved = true;
        }
        open.retain_mut(|stream| match stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(_) => {
                moved = true;
                true
            }
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        });
        if !moved {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
