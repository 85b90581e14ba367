//! What became of the clients of the daemon's own ports: management and HTTP, each of all its ports together.
//!
//! Not here: who gets a place (`admission`), and which requests are refused (`guard`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use wire::first_line::Foreign;

use crate::admission::{Full, Leave, Refusals};

/// How a client ended, or why it was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEnd {
    /// It went, or said `quit`.
    Orderly,
    /// Reset, or what it sent could not be followed.
    Broken,
    /// Turned away at `max_connections`, or at the share of descriptors.
    Refused,
    /// Turned away at `max_connections_per_peer`.
    RefusedPerPeer,
    /// It only waited, and its place was needed.
    Replaced,
    /// It was at work, its peer had the most connections, and a peer with fewer needed its place.
    Preempted,
    /// It sent nothing for too long.
    Silent,
    /// It read nothing of its answer for too long.
    Unread,
    /// It read its answer, but not within the time for all of it.
    Slow,
    /// It began with an HTTP request.
    HttpRequest,
    /// It began with a TLS handshake.
    TlsHandshake,
    /// Its TLS handshake failed, or took too long.
    HandshakeFailed,
}

impl ClientEnd {
    /// All of them, in their order.
    const ALL: [ClientEnd; 12] = [
        ClientEnd::Orderly,
        ClientEnd::Broken,
        ClientEnd::Refused,
        ClientEnd::RefusedPerPeer,
        ClientEnd::Replaced,
        ClientEnd::Preempted,
        ClientEnd::Silent,
        ClientEnd::Unread,
        ClientEnd::Slow,
        ClientEnd::HttpRequest,
        ClientEnd::TlsHandshake,
        ClientEnd::HandshakeFailed,
    ];

    /// Its word in self-metrics and the API.
    pub fn word(self) -> &'static str {
        match self {
            ClientEnd::Orderly => "orderly",
            ClientEnd::Broken => "broken",
            ClientEnd::Refused => "refused",
            ClientEnd::RefusedPerPeer => "refused_per_peer",
            ClientEnd::Replaced => "replaced",
            ClientEnd::Preempted => "preempted",
            ClientEnd::Silent => "silent",
            ClientEnd::Unread => "unread",
            ClientEnd::Slow => "slow",
            ClientEnd::HttpRequest => "http_request",
            ClientEnd::TlsHandshake => "tls_handshake",
            ClientEnd::HandshakeFailed => "handshake_failed",
        }
    }

    fn is_of_management(self) -> bool {
        !matches!(self, ClientEnd::HandshakeFailed)
    }

    fn is_of_http(self) -> bool {
        !matches!(self, ClientEnd::HttpRequest | ClientEnd::TlsHandshake)
    }
}

impl From<Full> for ClientEnd {
    fn from(full: Full) -> ClientEnd {
        match full {
            Full::All => ClientEnd::Refused,
            Full::PerPeer => ClientEnd::RefusedPerPeer,
        }
    }
}

impl From<Leave> for ClientEnd {
    fn from(leave: Leave) -> ClientEnd {
        match leave {
            Leave::Replaced => ClientEnd::Replaced,
            Leave::Preempted => ClientEnd::Preempted,
        }
    }
}

impl From<Foreign> for ClientEnd {
    fn from(foreign: Foreign) -> ClientEnd {
        match foreign {
            Foreign::Http => ClientEnd::HttpRequest,
            Foreign::Tls => ClientEnd::TlsHandshake,
        }
    }
}

/// Counts of clients.
#[derive(Debug, Default)]
pub struct ClientAccount {
    accepted: AtomicU64,
    open: AtomicU64,
    ended: [AtomicU64; ClientEnd::ALL.len()],
}

impl ClientAccount {
    /// Counts a client that is served from now on.
    pub(super) fn accept(self: &Arc<ClientAccount>) -> Counted {
        self.accepted.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
        Counted { account: Arc::clone(self), end: ClientEnd::Broken }
    }

    pub(super) fn end(&self, end: ClientEnd) {
        self.ended[end as usize].fetch_add(1, Relaxed);
    }

    /// Clients that were accepted.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Clients that are there now.
    pub fn open(&self) -> u64 {
        self.open.load(Relaxed)
    }

    fn ended(&self, is_possible: fn(ClientEnd) -> bool) -> impl Iterator<Item = (&'static str, u64)> {
        let ends = ClientEnd::ALL.into_iter().filter(move |end| is_possible(*end));
        ends.map(|end| (end.word(), self.ended[end as usize].load(Relaxed)))
    }
}

/// A client that is counted as there. When it is dropped its end is counted: as [`ClientEnd::Broken`] unless somebody says
/// otherwise, which nobody does when serving it has panicked.
#[derive(Debug)]
#[must_use = "a client that is not held is counted as gone"]
pub(super) struct Counted {
    account: Arc<ClientAccount>,
    end: ClientEnd,
}

impl Counted {
    /// It ended so.
    pub(super) fn end(mut self, end: ClientEnd) {
        self.end = end;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.account.end(self.end);
        self.account.open.fetch_sub(1, Relaxed);
    }
}

/// Counts of all management ports together.
#[derive(Debug, Default)]
pub struct ManagementAccount {
    /// Its clients.
    pub clients: Arc<ClientAccount>,
    /// Connections of other protocols: when to log them.
    pub(super) foreign: Refusals,
}

impl ManagementAccount {
    /// How many of its clients ended in which way, and why others were turned away.
    pub fn ended(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.clients.ended(ClientEnd::is_of_management)
    }
}

/// Why a request was refused by its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRefusal {
    /// 421: its Host is none of ours.
    Host,
    /// 401: it has not the token.
    Token,
    /// 403: it changes something, and may not.
    Change,
}

impl RequestRefusal {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// All of them, in their order.
    const ALL: [RequestRefusal; 3] = [RequestRefusal::Host, RequestRefusal::Token, RequestRefusal::Change];

    /// Its word in self-metrics and the API.
    pub fn word(self) -> &'static str {
        match self {
            RequestRefusal::Host => "host",
            RequestRefusal::Token => "token",
            RequestRefusal::Change => "change",
        }
    }
}

/// Counts of the HTTP server.
#[derive(Debug, Default)]
pub struct HttpAccount {
    /// Its clients.
    pub clients: Arc<ClientAccount>,
    requests_refused: [AtomicU64; RequestRefusal::ALL.len()],
}

impl HttpAccount {
    pub(super) fn refuse(&self, why: RequestRefusal) {
        self.requests_refused[why as usize].fetch_add(1, Relaxed);
    }

    /// How many of its connections ended in which way, and why others were turned away.
    pub fn ended(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.clients.ended(ClientEnd::is_of_http)
    }

    /// How many requests were refused, by reason.
    pub fn requests_refused(&self) -> impl Iterator<Item = (&'static str, u64)> {
        RequestRefusal::ALL
            .into_iter()
            .map(|why| (why.word(), self.requests_refused[why as usize].load(Relaxed)))
    }
}

#[test]
fn each_end_has_its_own_place() {
    for (at, end) in ClientEnd::ALL.into_iter().enumerate() {
        assert_eq!(end as usize, at, "{}", end.word());
    }
    for (at, why) in RequestRefusal::ALL.into_iter().enumerate() {
        assert_eq!(why as usize, at, "{}", why.word());
    }
}

#[tokio::test]
async fn a_client_is_counted_as_gone_even_when_serving_it_panics() {
    let account = Arc::<ClientAccount>::default();
    let counted = account.accept();
    assert_eq!((account.accepted(), account.open()), (1, 1));
    counted.end(ClientEnd::Orderly);
    let counted = account.accept();
    let serve = async { panic!("on purpose") };
    let served = tokio::spawn(async move { counted.end(serve.await) });
    assert!(served.await.is_err_and(|error| error.is_panic()));
    assert_eq!((account.accepted(), account.open()), (2, 0));
    let ended: Vec<_> = account.ended(ClientEnd::is_of_http).filter(|(_, count)| *count > 0).collect();
    assert_eq!(ended, [("orderly", 1), ("broken", 1)]);
}
