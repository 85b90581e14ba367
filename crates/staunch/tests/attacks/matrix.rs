//! M1 to M19: every kind of listener, with every way of behaving badly on it, one after the other.
//!
//! Path of a case: [`KINDS`] -> a daemon with that listener and no other -> [`BEHAVIOURS`], each with the largest or the
//! smallest legal thing -> the scene's judgement, and that no more was counted than was sent.

use std::path::Path;

use crate::attacker::{Manner, Target};
use crate::finding::End;
use crate::payloads::{self, Small};
use crate::scene::{Attack, Scene};
use crate::support::bench::Bench;

/// What a daemon may grow by, whatever is done to one listener.
const GROWS_MAX: u64 = 256 << 20;

/// Where connections are made to.
#[derive(Clone, Copy, Debug)]
enum At {
    Tcp,
    Udp,
    /// A stream, or packets, at a path in the daemon's folder.
    Unix,
    Unixgram,
    Http,
    Management,
    /// Of hot restarts.
    Control,
}

/// A kind of listener.
struct Kind {
    word: &'static str,
    at: At,
    /// Options of the source; none for listeners that are no source.
    source: &'static str,
    /// The largest and the smallest legal thing, each with the records in it.
    things: fn() -> [(Vec<u8>, u64); 2],
}

fn statsd() -> [(Vec<u8>, u64); 2] {
    let mut line = b"attack".to_vec();
    let mut values = 0;
    while line.len() + 5 < 60_000 {
        line.extend_from_slice(b":1");
        values += 1;
    }
    line.extend_from_slice(b"|c\n");
    [(line, values), (b"a:1|c\n".to_vec(), 1)]
}

fn statsd_frames() -> [(Vec<u8>, u64); 2] {
    statsd().map(|(packet, records)| {
        let mut frame = (packet.len() as u32).to_le_bytes().to_vec();
        frame.extend_from_slice(&packet);
        (frame, records)
    })
}

fn points() -> [(Vec<u8>, u64); 2] {
    let mut line = vec![b'x'; 60_000];
    line.extend_from_slice(b" 1 1700000000\n");
    [(line, 1), (b"a 1 1\n".to_vec(), 1)]
}

fn pickle() -> [(Vec<u8>, u64); 2] {
    let bytes = 4 << 20;
    [(payloads::pickle_references(b"attack", bytes), bytes as u64), (payloads::pickle_point(), 1)]
}

fn protobuf() -> [(Vec<u8>, u64); 2] {
    let bytes = 4 << 20;
    [(payloads::protobuf_points(b"attack", bytes), bytes as u64), (payloads::protobuf_point(), 1)]
}

/// A message of many events, and one that has an event without a field.
fn events() -> [(Vec<u8>, u64); 2] {
    [payloads::riemann_events(256 << 10), (payloads::riemann_framed(b"\x32\x00"), 1)]
}

/// The same in a datagram.
fn event_packets() -> [(Vec<u8>, u64); 2] {
    let (message, events) = payloads::riemann_events(60_000);
    [(message[4..].to_vec(), events), (b"\x32\x00".to_vec(), 1)]
}

/// A body with many events, which never ends, and the smallest request of a subscriber.
fn subscribers() -> [(Vec<u8>, u64); 2] {
    let mut body = b"PUT /events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\n".to_vec();
    let line = b"{\"service\":\"attack\",\"time\":\"2026-11-20T20:12:33.000Z\"}\n";
    body.extend_from_slice(&line.repeat(20_000));
    let handshake = "GET /index?subscribe=true&query=true HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    [(body, 20_000), (handshake.as_bytes().to_vec(), 0)]
}

fn packed(small: Small) -> [(Vec<u8>, u64); 2] {
    let bytes = 1 << 20;
    [
        (small.frame(&payloads::short_points(bytes)), bytes as u64 / 15 + 1),
        (small.frame(&payloads::short_points(1)), 1),
    ]
}

/// What a client's greeting looks like from far away: the record's header is good.
fn greeting() -> [(Vec<u8>, u64); 2] {
    let mut largest = vec![0x16, 3, 1, 0x40, 0];
    largest.resize(5 + 0x4000, 1);
    [(largest, 0), (vec![0x16, 3, 1, 0, 1, 1], 0)]
}

fn requests() -> [(Vec<u8>, u64); 2] {
    let mut largest = b"GET /api/v1/accounts HTTP/1.1\r\nHost: 127.0.0.1\r\n".to_vec();
    for number in 0..60 {
        largest.extend_from_slice(format!("X-{number}: {}\r\n", "x".repeat(100)).as_bytes());
    }
    largest.extend_from_slice(b"\r\n");
    [(largest, 0), (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_vec(), 0)]
}

fn commands() -> [(Vec<u8>, u64); 2] {
    [(b"counters\ntimers\ngauges\nstats\n".repeat(10), 0), (b"\n".to_vec(), 0)]
}

const LINES: &str = "type = \"graphite\"\n";

const RIEMANN: &str = "type = \"riemann\"\n";

const KINDS: &[(&str, Kind)] = &[
    ("M1", Kind { word: "StatsD, TCP", at: At::Tcp, source: "type = \"statsd\"\n", things: statsd }),
    ("M2", Kind { word: "StatsD, UDP", at: At::Udp, source: "type = \"statsd\"\n", things: statsd }),
    ("M3", Kind { word: "StatsD, unix", at: At::Unix, source: "type = \"statsd\"\n", things: statsd }),
    (
        "M4",
        Kind { word: "StatsD, unixgram", at: At::Unixgram, source: "type = \"statsd\"\n", things: statsd },
    ),
    (
        "M5",
        Kind {
            word: "StatsD, unix-frames",
            at: At::Unix,
            source: "type = \"statsd\"\n",
            things: statsd_frames,
        },
    ),
    ("M6", Kind { word: "Graphite, TCP", at: At::Tcp, source: LINES, things: points }),
    ("M7", Kind { word: "Graphite, UDP", at: At::Udp, source: LINES, things: points }),
    (
        "M8",
        Kind {
            word: "pickle",
            at: At::Tcp,
            source: "type = \"graphite\"\nencoding = \"pickle\"\n",
            things: pickle,
        },
    ),
    (
        "M9",
        Kind {
            word: "protobuf",
            at: At::Tcp,
            source: "type = \"graphite\"\nencoding = \"protobuf\"\n",
            things: protobuf,
        },
    ),
    (
        "M10",
        Kind {
            word: "gzip",
            at: At::Tcp,
            source: "type = \"graphite\"\ntransport = \"gzip\"\n",
            things: || packed(Small::Gzip),
        },
    ),
    (
        "M11",
        Kind {
            word: "LZ4",
            at: At::Tcp,
            source: "type = \"graphite\"\ntransport = \"lz4\"\n",
            things: || packed(Small::Lz4),
        },
    ),
    (
        "M12",
        Kind {
            word: "snappy",
            at: At::Tcp,
            source: "type = \"graphite\"\ntransport = \"snappy\"\n",
            things: || packed(Small::Snappy),
        },
    ),
    (
        "M13",
        Kind {
            word: "TLS",
            at: At::Tcp,
            source: "type = \"graphite\"\ntls = { cert = \"both.pem\" }\n",
            things: greeting,
        },
    ),
    ("M14", Kind { word: "HTTP", at: At::Http, source: "", things: requests }),
    ("M15", Kind { word: "management", at: At::Management, source: "", things: commands }),
    ("M16", Kind { word: "control socket", at: At::Control, source: "", things: commands }),
    ("M17", Kind { word: "Riemann, TCP", at: At::Tcp, source: RIEMANN, things: events }),
    ("M18", Kind { word: "Riemann, UDP", at: At::Udp, source: RIEMANN, things: event_packets }),
    (
        "M19",
        Kind {
            word: "Riemann, HTTP",
            at: At::Tcp,
            source: "type = \"riemann\"\nencoding = \"http\"\n",
            things: subscribers,
        },
    ),
];

/// Names of the cases.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, _)| *name)
}

/// What is done: the manner, which of the two things is sent, and on how many connections in short and in full.
const BEHAVIOURS: [(Manner, usize, [u64; 2]); 9] = [
    (Manner::Silent, 1, [50, 5_000]),
    (Manner::Drip, 0, [50, 1_000]),
    (Manner::Unread, 0, [4, 50]),
    (Manner::HalfClose, 1, [10, 100]),
    (Manner::Hold(1), 0, [10, 30]),
    (Manner::Churn, 1, [10, 100]),
    (Manner::Reset, 0, [10, 50]),
    (Manner::Flood, 0, [2, 10]),
    (Manner::Flood, 1, [2, 10]),
];

/// One of the cases.
pub(crate) fn run(bench: &Bench, case: &str) -> End {
    let (_, kind) = KINDS.iter().find(|(name, _)| *name == case).expect("it is one of ours");
    let mut scene = start(bench, kind);
    let target = match kind.at {
        At::Tcp => scene.tcp("attacked"),
        At::Udp => Target::Udp(scene.daemon.at("attacked", "udp")),
        At::Unix => Target::Unix(scene.path("attacked")),
        At::Unixgram => Target::Unixgram(scene.path("attacked")),
        At::Http => Target::Tcp(scene.http),
        At::Management => Target::Tcp(scene.daemon.management()),
        At::Control => Target::Unix(scene.path("staunch-data/control.sock")),
    };
    let things = (kind.things)();
    let most = things.iter().map(|(_, records)| *records).max().unwrap_or(0);
    let mut records = 0;
    for (manner, thing, [few, many]) in BEHAVIOURS {
        let attack = Attack::new(target.clone(), manner, things[thing].0.clone()).on(bench.pick(few, many));
        let counted = scene.attack(vec![attack], bench.pick(0.1, 2.5)).end();
        records += counted.begun * most;
        if !scene.daemon.is_alive() || scene.accounts().is_none() {
            scene.finding.promise(false, || format!("nothing answers after `{}`", manner.word()));
            break;
        }
    }
    if !kind.source.is_empty() {
        scene.promise_at_most("attacked", records);
    }
    End::Ran(scene.end(format!("{}: {} behaviours", kind.word, BEHAVIOURS.len())))
}

fn start<'a>(bench: &'a Bench, kind: &Kind) -> Scene<'a> {
    let listen = match kind.at {
        At::Tcp => "tcp://127.0.0.1:0",
        At::Udp => "udp://127.0.0.1:0",
        At::Unix if kind.word.contains("frames") => "unix-frames://attacked",
        At::Unix => "unix://attacked",
        At::Unixgram => "unixgram://attacked",
        At::Http | At::Control => "",
        At::Management => return Scene::start(bench, "[management]\nlisten = \"127.0.0.1:0\"\n", GROWS_MAX),
    };
    if listen.is_empty() {
        return Scene::start(bench, "", GROWS_MAX);
    }
    let feeds = if kind.source.contains("statsd") {
        "[transforms.counts]\ntype = \"aggregate\"\nfrom = [\"attacked\"]\nwindow = \"1h\"\n\
         [outputs.counted]\ntype = \"graphite_file\"\nfrom = [\"counts\"]\nmax_files = 1\n"
    } else if kind.source.contains("riemann") {
        "[transforms.rules]\ntype = \"streams\"\nfrom = [\"attacked\"]\nfile = \"riemann.config\"\n"
    } else {
        "[transforms.hole]\ntype = \"relay\"\nfrom = [\"attacked\"]\nrules = [{ to = \"blackhole\" }]\n"
    };
    let toml =
        format!("[sources.attacked]\nlisten = [\"{listen}\"]\n{}{feeds}{}", kind.source, Scene::innocent());
    let builder = crate::support::Builder::native(&toml);
    if kind.source.contains("riemann") {
        let streams =
            "(instrumentation {:enabled? false})\n(streams (index) (by :host (counter (fn [e] nil))))\n";
        std::fs::write(builder.folder().join("riemann.config"), streams).expect("the folder is ours");
    }
    if kind.source.contains("tls") {
        certificate(&builder.folder().join("both.pem"));
    }
    Scene::of(bench, builder, GROWS_MAX)
}

/// One that signed itself, with its key.
fn certificate(file: &Path) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(file, made.signing_key.serialize_pem() + &made.cert.pem()).expect("the folder is ours");
}
