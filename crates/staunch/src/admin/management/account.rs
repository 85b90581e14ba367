//! What became of the clients of the management ports.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::admission::Refusals;

/// How a client ended, or why it was not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEnd {
    /// It went, or said `quit`.
    Orderly,
    /// Reset.
    Broken,
    /// Turned away at `max_connections`.
    Refused,
    /// Turned away at `max_connections_per_peer`.
    RefusedPerPeer,
    /// It only waited, and its place was needed.
    Replaced,
    /// It sent nothing for too long.
    Silent,
    /// It read nothing of its answer for too long.
    Unread,
    /// It began with an HTTP request.
    HttpRequest,
    /// It began with a TLS handshake.
    TlsHandshake,
}

impl ClientEnd {
    /// All of them, in their order.
    pub const ALL: [ClientEnd; 9] = [
        ClientEnd::Orderly,
        ClientEnd::Broken,
        ClientEnd::Refused,
        ClientEnd::RefusedPerPeer,
        ClientEnd::Replaced,
        ClientEnd::Silent,
        ClientEnd::Unread,
        ClientEnd::HttpRequest,
        ClientEnd::TlsHandshake,
    ];

    /// Its word in self-metrics and the API.
    pub fn word(self) -> &'static str {
        match self {
            ClientEnd::Orderly => "orderly",
            ClientEnd::Broken => "broken",
            ClientEnd::Refused => "refused",
            ClientEnd::RefusedPerPeer => "refused_per_peer",
            ClientEnd::Replaced => "replaced",
            ClientEnd::Silent => "silent",
            ClientEnd::Unread => "unread",
            ClientEnd::HttpRequest => "http_request",
            ClientEnd::TlsHandshake => "tls_handshake",
        }
    }
}

/// Counts of all management ports together.
#[derive(Debug, Default)]
pub struct ManagementAccount {
    accepted: AtomicU64,
    open: AtomicU64,
    ended: [AtomicU64; ClientEnd::ALL.len()],
    /// Clients that were no clients, as far as they are told of.
    pub(super) foreign: Refusals,
}

impl ManagementAccount {
    pub(super) fn accept(&self) {
        self.accepted.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
    }

    pub(super) fn close(&self) {
        self.open.fetch_sub(1, Relaxed);
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

    /// Clients that ended so.
    pub fn ended(&self, end: ClientEnd) -> u64 {
        self.ended[end as usize].load(Relaxed)
    }
}

#[test]
fn each_end_has_its_own_place() {
    for (at, end) in ClientEnd::ALL.into_iter().enumerate() {
        assert_eq!(end as usize, at, "{}", end.word());
    }
}
