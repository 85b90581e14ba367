//! An attacker: a process that holds connections and behaves on them as its command line says, in one thread.
//!
//! Path of a byte: the payload's file -> [`Peer::write`] -> a socket that never blocks. It goes on for `seconds`, says
//! `attacked`, keeps its connections until its stdin ends, and then says what it counted. Bounded in connections, in
//! time, and by the stdin that its parent holds.

use std::io::{ErrorKind, Read};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde_json::json;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::children::{Over, Words};

/// A connection attempt that takes longer has failed.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Longer than any listener may leave a request unfinished.
pub(crate) const LASTING: Duration = Duration::from_secs(15);

/// Failures behind each other after which no more connections are made.
const FAILURES_MAX: u32 = 20;

/// Most bytes that a connection takes before the next one's turn.
const TURN_BYTES_MAX: usize = 256 * 1024;

/// Pause after a round in which nothing could be done.
const PAUSE: Duration = Duration::from_millis(1);

/// Time that a question has before its client hangs up.
const HANG_UP_AFTER: Duration = Duration::from_millis(2);

/// Pause between two bytes that are sent, or read, one by one.
const DRIP_EVERY: Duration = Duration::from_secs(1);
const SIP_EVERY: Duration = Duration::from_millis(100);

/// What it does on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Sends nothing.
    Silent,
    /// The payload so many times, then nothing; reads.
    Hold(u64),
    /// One byte of the payload a second.
    Drip,
    /// The payload again and again; reads what comes.
    Flood,
    /// The payload again and again; never reads.
    Unread,
    /// The payload once, then the end of its half; reads, and begins again when the other half ends.
    HalfClose,
    /// A part of the payload, another one each time, then a reset; and again.
    Reset,
    /// Connects and closes, again and again.
    Churn,
    /// The payload once, the answer to its end, and again on a new connection.
    Ask,
    /// The payload once, the end of the connection some milliseconds later, and again on a new one; never reads.
    HangUp,
    /// The payload once; reads a byte now and then.
    Sip,
}

impl Manner {
    const ALL: [(&'static str, Manner); 11] = [
        ("silent", Manner::Silent),
        ("hold", Manner::Hold(1)),
        ("drip", Manner::Drip),
        ("flood", Manner::Flood),
        ("unread", Manner::Unread),
        ("half-close", Manner::HalfClose),
        ("reset", Manner::Reset),
        ("churn", Manner::Churn),
        ("ask", Manner::Ask),
        ("hang-up", Manner::HangUp),
        ("sip", Manner::Sip),
    ];

    /// `hold:8`, `flood`.
    pub(crate) fn word(self) -> String {
        match self {
            Manner::Hold(times) => format!("hold:{times}"),
            other => {
                let (word, _) =
                    Manner::ALL.iter().find(|(_, manner)| *manner == other).expect("all are listed");
                (*word).to_owned()
            }
        }
    }

    fn begins_again(self) -> bool {
        matches!(
            self,
            Manner::Flood | Manner::HalfClose | Manner::Reset | Manner::Churn | Manner::Ask | Manner::HangUp
        )
    }
}

impl FromStr for Manner {
    type Err = ();

    fn from_str(text: &str) -> Result<Manner, ()> {
        if let Some(times) = text.strip_prefix("hold:") {
            return times.parse().map(Manner::Hold).map_err(|_| ());
        }
        Manner::ALL.iter().find(|(word, _)| *word == text).map(|(_, manner)| *manner).ok_or(())
    }
}

/// Where a listener is.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    Tcp(SocketAddr),
    Udp(SocketAddr),
    Unix(PathBuf),
    Unixgram(PathBuf),
}

impl Target {
    /// `tcp=127.0.0.1:1`.
    pub(crate) fn words(&self) -> String {
        match self {
            Target::Tcp(at) => format!("tcp={at}"),
            Target::Udp(at) => format!("udp={at}"),
            Target::Unix(path) => format!("unix={}", path.display()),
            Target::Unixgram(path) => format!("unixgram={}", path.display()),
        }
    }

    /// True when a send is a packet.
    pub(crate) fn is_datagram(&self) -> bool {
        matches!(self, Target::Udp(_) | Target::Unixgram(_))
    }

    fn of(words: &Words) -> Target {
        let at = |name: &str| words.get(name).map(|at| at.parse().expect("an address"));
        if let Some(at) = at("tcp") {
            Target::Tcp(at)
        } else if let Some(at) = at("udp") {
            Target::Udp(at)
        } else if let Some(path) = words.get("unix") {
            Target::Unix(path.into())
        } else {
            Target::Unixgram(words.get("unixgram").expect("a target").into())
        }
    }

    /// Connects, from the peer's own address where there are addresses.
    fn connect(&self, from: Ipv4Addr) -> std::io::Result<Socket> {
        let inet = |kind, at: &SocketAddr| {
            let socket = Socket::new(Domain::IPV4, kind, None)?;
            socket.bind(&SocketAddr::from((from, 0)).into())?;
            socket.connect_timeout(&(*at).into(), CONNECT_TIMEOUT)?;
            Ok(socket)
        };
        let unix = |kind, path: &PathBuf| {
            let socket = Socket::new(Domain::UNIX, kind, None)?;
            socket.connect(&SockAddr::unix(path)?)?;
            Ok(socket)
        };
        let socket: std::io::Result<Socket> = match self {
            Target::Tcp(at) => inet(Type::STREAM, at),
            Target::Udp(at) => inet(Type::DGRAM, at),
            Target::Unix(path) => unix(Type::STREAM, path),
            Target::Unixgram(path) => unix(Type::DGRAM, path),
        };
        let socket = socket?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }
}

#[derive(Debug, Default)]
struct Counts {
    connected: u64,
    failed: u64,
    /// Connections that the other end closed.
    closed: u64,
    /// Connections that are open at the end and were opened longer than [`LASTING`] ago.
    lasting: u64,
    /// Payloads sent whole.
    whole: u64,
    /// Payloads that were begun, the whole ones among them.
    begun: u64,
    bytes_sent: u64,
    bytes_got: u64,
}

#[derive(Debug)]
struct Peer {
    from: Ipv4Addr,
    socket: Option<Socket>,
    /// When that was connected.
    since: Instant,
    /// Sent bytes of the payload.
    at: usize,
    /// Payloads that this connection has sent.
    sent: u64,
    next_drip: Instant,
    is_half: bool,
}

struct Attack {
    target: Target,
    manner: Manner,
    payload: Vec<u8>,
    counts: Counts,
    failures: u32,
    noise: u64,
    got: Box<[MaybeUninit<u8>]>,
}

/// The process.
pub(crate) fn main(words: &Words) {
    let number = |name: &str| words.get(name).map_or(0, |text| text.parse().expect("a number"));
    let mut payload = Vec::new();
    if let Some(path) = words.get("payload") {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut payload)).expect("a payload");
    }
    let mut attack = Attack {
        target: Target::of(words),
        manner: words.get("manner").and_then(|word| word.parse().ok()).expect("a manner"),
        payload,
        counts: Counts::default(),
        failures: 0,
        noise: 1,
        got: vec![MaybeUninit::uninit(); 64 * 1024].into(),
    };
    let over = Over::of_parent();
    let (connections, sources) = (number("connections").max(1), number("sources").max(1));
    let seconds = Duration::from_millis(number("milliseconds"));
    let pauses = words.get("pauses").is_some();
    let mut peers: Vec<Peer> = (0..connections)
        .map(|peer| Peer {
            from: Ipv4Addr::new(127, 0, 0, 2 + (peer % sources) as u8),
            socket: None,
            since: Instant::now(),
            at: 0,
            sent: 0,
            next_drip: Instant::now(),
            is_half: false,
        })
        .collect();
    let begin = Instant::now();
    let is_over = || over.is_so() || begin.elapsed() > seconds;
    for peer in &mut peers {
        attack.open(peer);
        if is_over() || attack.failures > FAILURES_MAX {
            break;
        }
    }
    while !is_over() {
        let since = Instant::now();
        let mut moved = false;
        for peer in &mut peers {
            moved |= attack.turn(peer);
            if is_over() {
                break;
            }
        }
        if !moved {
            std::thread::sleep(PAUSE);
        } else if pauses {
            std::thread::sleep(since.elapsed());
        }
    }
    let lasts = |peer: &&Peer| peer.socket.is_some() && peer.since.elapsed() > LASTING;
    attack.counts.lasting = peers.iter().filter(lasts).count() as u64;
    println!("attacked");
    while !over.is_so() {
        for peer in &mut peers {
            attack.look(peer);
        }
        std::thread::sleep(20 * PAUSE);
    }
    let Counts { connected, failed, closed, lasting, whole, begun, bytes_sent, bytes_got } = attack.counts;
    println!(
        "{}",
        json!({ "connected": connected, "failed": failed, "closed": closed, "lasting": lasting, "whole": whole, "begun": begun,
            "bytes_sent": bytes_sent, "bytes_got": bytes_got })
    );
}

impl Attack {
    fn open(&mut self, peer: &mut Peer) -> bool {
        if self.failures > FAILURES_MAX {
            return false;
        }
        match self.target.connect(peer.from) {
            Ok(socket) => {
                *peer = Peer {
                    socket: Some(socket),
                    since: Instant::now(),
                    at: 0,
                    sent: 0,
                    is_half: false,
                    ..*peer
                };
                self.counts.connected += 1;
                self.failures = 0;
                true
            }
            Err(_) => {
                self.counts.failed += 1;
                self.failures += 1;
                false
            }
        }
    }

    /// What the manner asks for now; true when something moved.
    fn turn(&mut self, peer: &mut Peer) -> bool {
        if peer.socket.is_none() {
            return self.manner.begins_again() && self.open(peer);
        }
        match self.manner {
            Manner::Silent => self.look(peer),
            Manner::Hold(times) => {
                let wrote = peer.sent < times && self.write(peer, TURN_BYTES_MAX);
                self.look(peer) || wrote
            }
            Manner::Drip => {
                let due = Instant::now() >= peer.next_drip;
                if due {
                    peer.next_drip += DRIP_EVERY;
                    self.write(peer, 1);
                }
                self.look(peer)
            }
            Manner::Flood => {
                let wrote = self.write(peer, TURN_BYTES_MAX);
                self.look(peer) || wrote
            }
            Manner::Unread => self.write(peer, TURN_BYTES_MAX),
            Manner::HalfClose => self.half_close(peer),
            Manner::Reset => {
                let part = 1 + self.random() as usize % self.payload.len().max(1);
                self.write(peer, part);
                if let Some(socket) = peer.socket.take() {
                    let _reset = socket.set_linger(Some(Duration::ZERO));
                }
                true
            }
            Manner::Churn => {
                peer.socket = None;
                true
            }
            Manner::Ask => {
                let wrote = peer.sent < 1 && self.write(peer, TURN_BYTES_MAX);
                self.look(peer) || wrote
            }
            Manner::HangUp => self.hang_up(peer),
            Manner::Sip => self.sip(peer),
        }
    }

    fn half_close(&mut self, peer: &mut Peer) -> bool {
        if peer.sent < 1 {
            return self.write(peer, TURN_BYTES_MAX);
        }
        if !peer.is_half {
            peer.is_half = true;
            if let Some(socket) = &peer.socket {
                let _ended = socket.shutdown(Shutdown::Write);
            }
        }
        self.look(peer)
    }

    fn hang_up(&mut self, peer: &mut Peer) -> bool {
        if peer.sent < 1 {
            peer.next_drip = Instant::now() + HANG_UP_AFTER;
            return self.write(peer, TURN_BYTES_MAX);
        }
        let is_time = Instant::now() >= peer.next_drip;
        if is_time {
            peer.socket = None;
        }
        is_time
    }

    fn sip(&mut self, peer: &mut Peer) -> bool {
        if peer.sent < 1 {
            return self.write(peer, TURN_BYTES_MAX);
        }
        if Instant::now() < peer.next_drip {
            return false;
        }
        peer.next_drip = Instant::now() + SIP_EVERY;
        self.read(peer, 1)
    }

    /// Reads what is there; true when something was.
    fn look(&mut self, peer: &mut Peer) -> bool {
        // One that does not read does not look either: the next write finds out.
        if self.manner == Manner::Unread { false } else { self.read(peer, usize::MAX) }
    }

    fn read(&mut self, peer: &mut Peer, bytes_max: usize) -> bool {
        let Some(socket) = &peer.socket else { return false };
        if self.target.is_datagram() {
            return false;
        }
        let most = self.got.len().min(bytes_max);
        match socket.recv(&mut self.got[..most]) {
            Ok(0) => self.close(peer),
            Ok(len) => {
                self.counts.bytes_got += len as u64;
                return true;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_reset) => self.close(peer),
        }
        false
    }

    fn close(&mut self, peer: &mut Peer) {
        peer.socket = None;
        self.counts.closed += 1;
    }

    /// Writes up to so many bytes of the payload, from the beginning again at its end; true when some went.
    fn write(&mut self, peer: &mut Peer, bytes_max: usize) -> bool {
        let Some(socket) = &peer.socket else { return false };
        if self.payload.is_empty() {
            peer.sent += 1;
            return false;
        }
        let mut left = bytes_max;
        while left > 0 {
            let end = self.payload.len().min(peer.at.saturating_add(left));
            match socket.send(&self.payload[peer.at..end]) {
                Ok(len) => {
                    // Each packet is one, whatever part of the payload it has.
                    self.counts.begun += u64::from(peer.at == 0 || self.target.is_datagram());
                    self.counts.bytes_sent += len as u64;
                    peer.at += len;
                    left = left.saturating_sub(len);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // A packet that nobody takes.
                Err(_) if self.target.is_datagram() => break,
                Err(_closed) => {
                    self.close(peer);
                    return false;
                }
            }
            if peer.at == self.payload.len() {
                peer.at = 0;
                peer.sent += 1;
                self.counts.whole += 1;
                let once =
                    matches!(self.manner, Manner::HalfClose | Manner::Ask | Manner::HangUp | Manner::Sip);
                let held = matches!(self.manner, Manner::Hold(times) if peer.sent >= times);
                if once || held {
                    break;
                }
            }
        }
        left < bytes_max
    }

    fn random(&mut self) -> u64 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        self.noise
    }
}
