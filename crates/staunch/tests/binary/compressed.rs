//! Streams that are packed: between two daemons, with python's gzip at either end, broken in the middle, and at a hot
//! restart. What is sent again after a break: `outputs::wrapping`, without sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use wire::compression::{Compression, Compressor};

use crate::support::sections::{output, source};
use crate::support::{Builder, FakeGraphite, wait_for};

const PACKED: [Compression; 3] = [Compression::Gzip, Compression::Lz4, Compression::Snappy];

fn lines(number: usize) -> String {
    (0..number).map(|n| format!("servers.web{}.requests {n} 1700000000\n", n % 97)).collect()
}

fn transport(compression: Compression) -> String {
    format!("transport = \"{}\"", compression.word())
}

/// Sends lines to a plain source.
fn send(to: SocketAddr, text: &str) {
    TcpStream::connect(to).and_then(|mut stream| stream.write_all(text.as_bytes())).expect("it reads");
}

/// All of `text` in one stream that ends.
fn packed(compression: Compression, mut text: &[u8]) -> Vec<u8> {
    let mut compressor = Compressor::new(compression).expect("it is packed");
    let mut wire = Vec::new();
    while !text.is_empty() {
        text = &text[compressor.push(text, &mut wire)..];
        compressor.flush(&mut wire);
    }
    compressor.finish(&mut wire);
    wire
}

/// Runs python, if there is one, with arguments; none when there is not.
fn python(program: &str, args: &[&str]) -> Option<std::process::Child> {
    let started = Command::new("python3").arg("-c").arg(program).args(args).stdout(Stdio::piped()).spawn();
    if started.is_err() {
        crate::support::skip("packed", "there is no python3 to be the other end");
    }
    started.ok()
}

#[test]
fn every_compression_carries_the_same_lines_between_two_daemons() {
    let ends = PACKED.map(|_| FakeGraphite::new());
    let far: String = PACKED.iter().zip(&ends).fold(String::new(), |text, (compression, end)| {
        let word = compression.word();
        text + &source(word, &transport(*compression)) + &output(&format!("to-{word}"), word, &end.to(), "")
    });
    let mut far = Builder::native(&far).start();
    let near = PACKED.iter().fold(source("in", ""), |text, compression| {
        let to = format!("tcp://{}", far.at(compression.word(), "tcp"));
        text + &output(compression.word(), "in", &to, &transport(*compression))
    });
    let mut near = Builder::native(&near).start();
    let text = lines(20_000);
    // A few alone first: they are flushed because nothing follows.
    send(near.at("in", "tcp"), "alone 1 1700000000\n");
    for compression in PACKED {
        near.wait_output(compression.word(), "delivered", 1);
        far.wait_source(compression.word(), "routed", 1);
    }
    send(near.at("in", "tcp"), &text);
    for (compression, end) in PACKED.iter().zip(&ends) {
        near.wait_output(compression.word(), "delivered", 20_001);
        far.wait_output(&format!("to-{}", compression.word()), "delivered", 20_001);
        let want = format!("alone 1 1700000000\n{text}");
        assert!(end.bytes() == want.as_bytes(), "{compression:?}");
    }
    near.assert_sums_hold();
    // The streams end in order: nothing is broken by it.
    near.stop();
    for compression in PACKED {
        far.wait_source(compression.word(), "connections_open", 0);
        assert_eq!(crate::support::Daemon::number(&far.source(compression.word()), "connections_broken"), 0);
    }
    far.assert_sums_hold();
    far.stop();
}

#[test]
fn what_comes_before_a_break_counts_and_the_break_is_counted() {
    let end = FakeGraphite::new();
    let from: Vec<String> = PACKED.iter().map(|compression| compression.word().to_owned()).collect();
    let config = PACKED.iter().fold(String::new(), |text, compression| {
        text + &source(compression.word(), &transport(*compression))
    }) + &format!(
        "[outputs.o]\ntype = \"graphite\"\nfrom = {from:?}\nto = [\"{}\"]\nmin_retry_delay = \"20ms\"\n",
        end.to()
    );
    let mut daemon = Builder::native(&config).start();
    for compression in PACKED {
        let word = compression.word();
        let mut wire = packed(compression, b"good.one 1 1700000000\ngood.two 2 1700000000\nhalf.of.a.li");
        wire.extend_from_slice(b"never.packed 1 1700000000\n\xff\xff\xff\xff\xff\xff\xff\xff\xff");
        let mut stream = TcpStream::connect(daemon.at(word, "tcp")).expect("it listens");
        stream.write_all(&wire).expect("it reads");
        daemon.wait_source(word, "routed", 2);
        daemon.wait_source(word, "losses/rejected/bad_compression", 1);
        daemon.wait_source(word, "losses/rejected/tail_lost", 1);
        daemon.wait_source(word, "connections_broken", 1);
        // It is closed for the client to see.
        let mut closed = Vec::new();
        let _reset = stream.read_to_end(&mut closed);
        // A line that is cut by an orderly end counts as on plain connections.
        let mut stream = TcpStream::connect(daemon.at(word, "tcp")).expect("it listens");
        stream.write_all(&packed(compression, b"good.three 3 1700000000\nhalf.of")).expect("it reads");
        drop(stream);
        daemon.wait_source(word, "routed", 3);
        daemon.wait_source(word, "losses/rejected/tail_lost", 2);
    }
    wait_for("the word of the break", || daemon.stderr().contains("this is not gzip").then_some(()));
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn a_bomb_is_read_bit_by_bit_and_holds_up_nobody() {
    let end = FakeGraphite::new();
    let config =
        source("in", "transport = \"gzip\"\nmax_line_bytes = \"1KiB\"") + &output("o", "in", &end.to(), "");
    let mut daemon = Builder::native(&config).start();
    let mut compressor = Compressor::new(Compression::Gzip).expect("it is packed");
    let (mut bomb, piece) = (Vec::new(), vec![b'x'; 32 * 1024]);
    for _ in 0..4_096 {
        compressor.push(&piece, &mut bomb);
        compressor.flush(&mut bomb);
    }
    compressor.push(b"\nbehind.it 1 1700000000\n", &mut bomb);
    compressor.finish(&mut bomb);
    assert!(bomb.len() < 1 << 20, "128 MiB in {} bytes", bomb.len());
    let mut stream = TcpStream::connect(daemon.at("in", "tcp")).expect("it listens");
    stream.write_all(&bomb).expect("it reads");
    daemon.wait_source("in", "routed", 1);
    daemon.wait_source("in", "losses/rejected/line_too_long", 1);
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().split(' ').next()?.parse().ok());
    assert!(peak.is_none_or(|kib: u64| kib < 100 * 1024), "{peak:?} KiB at the most");
    daemon.assert_sums_hold();
    daemon.stop();
}

#[test]
fn pythons_gzip_is_understood_and_understands() {
    let end = FakeGraphite::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("it is bound");
    drop(listener);
    let config = source("in", "transport = \"gzip\"")
        + &output("plain", "in", &end.to(), "")
        + &output("gzip", "in", &format!("tcp://{at}"), "transport = \"gzip\"");
    let mut daemon = Builder::native(&config).start();
    // Reads what comes, as it comes, and prints it until it has the last line.
    let server = "import socket, sys, zlib; socket.setdefaulttimeout(60)\n\
        s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); c = s.accept()[0]\n\
        d = zlib.decompressobj(31); t = b''\n\
        while not t.endswith(b'last 1 1700000000\\n') and (b := c.recv(999)): t += d.decompress(b)\n\
        sys.stdout.buffer.write(t)";
    let Some(mut server) = python(server, &[&at.port().to_string()]) else { return };
    let client = "import gzip, socket, sys\n\
        s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); f = s.makefile('wb')\n\
        for part in (b'a 1 1700000000\\nb', b' 2 1700000000\\n'): f.write(gzip.compress(part))\n\
        g = gzip.GzipFile(fileobj=f, mode='wb'); g.write(b'c 3 1700000000\\n'); g.flush(); f.flush()\n\
        g.write(b'last 1 1700000000\\n'); g.close(); f.close(); s.close()";
    let mut client = python(client, &[&daemon.at("in", "tcp").port().to_string()]).expect("it was there");
    assert!(client.wait().expect("it ends").success());
    let want = "a 1 1700000000\nb 2 1700000000\nc 3 1700000000\nlast 1 1700000000\n";
    let mut printed = String::new();
    server.stdout.take().expect("a pipe").read_to_string(&mut printed).expect("text");
    assert!(server.wait().expect("it ends").success());
    assert_eq!(printed, want);
    daemon.wait_output("plain", "delivered", 4);
    assert_eq!(String::from_utf8_lossy(&end.bytes()), want);
    daemon.assert_sums_hold();
    daemon.stop();
}

/// A packed connection cannot be gone on with in another process: it ends behind what it has brought.
#[test]
#[cfg(target_os = "linux")]
fn a_hot_restart_ends_packed_connections_and_loses_nothing_that_was_read() {
    let end = FakeGraphite::new();
    let config = source("in", "transport = \"gzip\"") + &output("o", "in", &end.to(), "");
    let mut old = Builder::native(&config).start();
    let at = old.at("in", "tcp");
    let mut stream = TcpStream::connect(at).expect("it listens");
    let mut compressor = Compressor::new(Compression::Gzip).expect("it is packed");
    let mut wire = Vec::new();
    compressor.push(b"one 1 1700000000\ntwo 2 17000", &mut wire);
    compressor.flush(&mut wire);
    stream.write_all(&wire).expect("it reads");
    old.wait_source("in", "routed", 1);
    let mut new = old.successor();
    new.wait_ready();
    assert!(old.wait_exit().success());
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("it was closed in order");
    new.wait_source("in", "losses/rejected/tail_lost", 1);
    // The same place takes the next one.
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.write_all(&packed(Compression::Gzip, b"two 2 1700000000\n")).expect("it reads");
    new.wait_source("in", "routed", 2);
    new.wait_output("o", "delivered", 2);
    assert_eq!(String::from_utf8_lossy(&end.bytes()), "one 1 1700000000\ntwo 2 1700000000\n");
    new.assert_sums_hold();
    new.stop();
}

/// A whole member of gzip without a byte in it.
fn empty_member() -> Vec<u8> {
    let member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    member.finish().expect("memory takes it")
}

/// What holds nothing: (how it is packed, the smallest whole thing).
fn nothings() -> [(Compression, Vec<u8>); 3] {
    let member = empty_member();
    [
        (Compression::Gzip, member),
        (Compression::Lz4, b"\x50\x2a\x4d\x18\0\0\0\0".to_vec()),
        (Compression::Snappy, vec![0]),
    ]
}

#[test]
fn floods_of_what_holds_nothing_leave_others_their_turns_and_the_stop_its_time() {
    for (compression, nothing) in nothings() {
        let config = format!(
            "stop_timeout = \"3s\"\n{}[sources.honest]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
             ack_when = \"accepted\"\n[transforms.counts]\ntype = \"aggregate\"\nfrom = [\"honest\"]\nwindow = \"1h\"\n\
             [outputs.file]\ntype = \"graphite_file\"\nfrom = [\"counts\", \"in\"]\n",
            source("in", &transport(compression))
        );
        let mut daemon = Builder::native(&config).start();
        let flood = nothing.repeat(60_000 / nothing.len());
        let streams: Vec<TcpStream> = (0..40)
            .map(|_| {
                let stream = TcpStream::connect(daemon.at("in", "tcp")).expect("it listens");
                stream.set_nonblocking(true).expect("it is a socket");
                stream
            })
            .collect();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut sent = vec![0; streams.len()];
                while !over.load(SeqCst) {
                    for (mut stream, sent) in streams.iter().zip(&mut sent) {
                        // As much as its buffer takes.
                        *sent = (*sent + stream.write(&flood[*sent..]).unwrap_or(0)) % flood.len();
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let mut honest = TcpStream::connect(daemon.at("honest", "tcp")).expect("it listens");
            honest.set_read_timeout(Some(Duration::from_secs(20))).expect("it is a socket");
            let mut answered = true;
            for number in 1..=5 {
                honest.write_all(b"a:1|c\n").expect("it reads");
                let want = format!("ack {number}\n");
                let mut ack = vec![0; want.len()];
                answered &= honest.read_exact(&mut ack).is_ok() && ack == want.as_bytes();
            }
            daemon.signal("TERM");
            let ended = daemon.wait_exit();
            over.store(true, SeqCst);
            assert!(answered, "{compression:?}: no acknowledgement while the others flood");
            assert!(ended.success(), "{compression:?}: the stop did not end by itself: {}", daemon.stderr());
        });
    }
}
