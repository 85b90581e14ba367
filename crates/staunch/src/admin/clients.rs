//! How clients of the daemon's own ports ended: management, CarbonLink and HTTP, each over all of its ports.
//!
//! Not here: admission (`admission`), rejection of requests (`guard`).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use wire::carbonlink::Request;
use wire::first_line::Foreign;

use crate::admission::{Full, Leave, Refusals};

/// How a client ended, or why it was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEnd {
    /// It closed the connection, or sent `quit`.
    Orderly,
    /// Reset, or its input was invalid.
    Broken,
    /// Rejected at `max_connections`, or at the share of descriptors.
    Refused,
    /// Rejected at `max_connections_per_peer`.
    RefusedPerPeer,
    /// It was idle, and its slot was needed.
    Replaced,
    /// It was active, its peer had the most connections, and a peer with fewer needed a slot.
    Preempted,
    /// It sent nothing until the timeout.
    Silent,
    /// It read nothing of its response until the timeout.
    Unread,
    /// It read its response too slowly.
    Slow,
    /// It began with an HTTP request.
    HttpRequest,
    /// It began with a TLS handshake.
    TlsHandshake,
    /// Its TLS handshake failed, or took too long.
    HandshakeFailed,
}

impl ClientEnd {
    /// All variants in order.
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

    /// The name in self-metrics and the API.
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

    /// Accepted clients.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Open clients.
    pub fn open(&self) -> u64 {
        self.open.load(Relaxed)
    }

    fn ended(&self, is_possible: fn(ClientEnd) -> bool) -> impl Iterator<Item = (&'static str, u64)> {
        let ends = ClientEnd::ALL.into_iter().filter(move |end| is_possible(*end));
        ends.map(|end| (end.word(), self.ended[end as usize].load(Relaxed)))
    }
}

/// A client that counts as open. When it is dropped, its end is counted: as [`ClientEnd::Broken`] by default, for
/// example when serving it panics.
#[derive(Debug)]
#[must_use = "a client that is not held is counted as gone"]
pub(super) struct Counted {
    account: Arc<ClientAccount>,
    end: ClientEnd,
}

impl Counted {
    /// Ends it for this reason.
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

/// Counts over all management ports.
#[derive(Debug, Default)]
pub struct ManagementAccount {
    /// Its clients.
    pub clients: Arc<ClientAccount>,
    /// Limits the log lines about connections of other protocols.
    pub(super) foreign: Refusals,
}

impl ManagementAccount {
    /// The number of clients by their end, or by the reason of their rejection.
    pub fn ended(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.clients.ended(ClientEnd::is_of_management)
    }
}

/// Address and counts of CarbonLink.
#[derive(Debug, Default)]
pub struct CarbonLinkAccount {
    /// Its address, if it is open.
    pub at: Option<SocketAddr>,
    /// Its clients.
    pub clients: Arc<ClientAccount>,
    /// Requests for one series, for several, for metadata, and what was no request.
    requests: [AtomicU64; 4],
    /// Series that requests for several asked for.
    bulk_series: AtomicU64,
}

impl CarbonLinkAccount {
    /// For a port at this address.
    pub fn of_port(at: Option<SocketAddr>) -> CarbonLinkAccount {
        CarbonLinkAccount { at, ..CarbonLinkAccount::default() }
    }

    pub(super) fn count(&self, request: &Request) {
        let at = match request {
            Request::Points(_) => 0,
            Request::PointsOfMany(names) => {
                self.bulk_series.fetch_add(names.len() as u64, Relaxed);
                1
            }
            Request::GetMetadata { .. } | Request::SetMetadata { .. } => 2,
        };
        self.requests[at].fetch_add(1, Relaxed);
    }

    pub(super) fn count_bad(&self) {
        self.requests[3].fetch_add(1, Relaxed);
    }

    /// The number of requests by kind.
    pub fn requests(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kinds = ["cache_query", "cache_query_bulk", "metadata", "bad"];
        kinds.into_iter().zip(&self.requests).map(|(kind, count)| (kind, count.load(Relaxed)))
    }

    /// Series that requests for several asked for.
    pub fn bulk_series(&self) -> u64 {
        self.bulk_series.load(Relaxed)
    }

    /// The number of clients by their end, or by the reason of their rejection.
    pub fn ended(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.clients.ended(ClientEnd::is_of_http)
    }
}

/// Why a request was rejected because of its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRefusal {
    /// 421: its Host is not allowed.
    Host,
    /// 401: its token is missing or wrong.
    Token,
    /// 403: it would change something and is not allowed to.
    Change,
}

impl RequestRefusal {
    /// Number of variants.
    pub const COUNT: usize = Self::ALL.len();

    /// All variants in order.
    const ALL: [RequestRefusal; 3] = [RequestRefusal::Host, RequestRefusal::Token, RequestRefusal::Change];

    /// The name in self-metrics and the API.
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

    /// The number of connections by their end, or by the reason of their rejection.
    pub fn ended(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.clients.ended(ClientEnd::is_of_http)
    }

    /// The number of rejected requests by reason.
    pub fn requests_refused(&self) -> impl Iterator<Item = (&'static str, u64)> {
        RequestRefusal::ALL
            .into_iter()
            .map(|why| (why.word(), self.requests_refused[why as usize].load(Relaxed)))
    }
}

#[test]
fn each_end_has_its_own_counter() {
    for (at, end) in ClientEnd::ALL.into_iter().enumerate() {
        assert_eq!(end as usize, at, "{}", end.word());
    }
    for (at, why) in RequestRefusal::ALL.into_iter().enumerate() {
        assert_eq!(why as usize, at, "{}", why.word());
    }
}

#[tokio::test]
async fn a_client_is_counted_as_ended_even_when_serving_it_panics() {
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
