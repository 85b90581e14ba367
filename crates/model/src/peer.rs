//! The sender of a record, as text for outputs, so that the steps between need no address types.

use std::fmt;

/// Longest text of an address: IPv6 with an IPv4 address at its end.
const TEXT_BYTES_MAX: usize = 45;

/// A peer for limits per peer (connections, memory). An IPv4 address is the same in both of its forms; an IPv6 client
/// is its /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PeerKey {
    /// The bits of an IPv4 address.
    V4(u32),
    /// The upper half of an IPv6 address.
    V6(u64),
    /// A client of a unix socket, or one that has closed already. Connections of unix sockets have only the limit for
    /// all: access is controlled by the permissions of the socket's file, and all clients of a machine are often one
    /// user.
    Local,
    /// A local process and its user: used for fair turns between clients of a unix socket.
    Process {
        /// The user.
        uid: u32,
        /// Its process id, 0 if the system does not report it.
        pid: u32,
    },
}

impl fmt::Display for PeerKey {
    /// The peer in log lines that lack its whole address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PeerKey::V4(bits) => {
                let [a, b, c, d] = bits.to_be_bytes();
                write!(f, "{a}.{b}.{c}.{d}")
            }
            PeerKey::V6(bits) => {
                let [a, b, c, d] = [48, 32, 16, 0].map(|shift| (bits >> shift) as u16);
                write!(f, "{a:x}:{b:x}:{c:x}:{d:x}::/64")
            }
            PeerKey::Local => f.write_str("an unknown client"),
            PeerKey::Process { uid, pid: 0 } => write!(f, "a process of user {uid}"),
            PeerKey::Process { uid, pid } => write!(f, "process {pid} of user {uid}"),
        }
    }
}

/// The client that a batch came from, without its port.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    text: [u8; TEXT_BYTES_MAX],
    len: u8,
}

impl Peer {
    /// The daemon itself, for results of aggregation rules and statistics.
    pub const OWN: Peer = Peer { text: [0; TEXT_BYTES_MAX], len: 0 };

    /// A client without an address, as on a unix socket.
    pub const UNKNOWN: Peer = Peer::cut(b"(unknown)");

    /// A client with this address text. Text longer than an address is truncated.
    pub const fn cut(address: &[u8]) -> Peer {
        let len = if address.len() < TEXT_BYTES_MAX { address.len() } else { TEXT_BYTES_MAX };
        let mut text = [0; TEXT_BYTES_MAX];
        let mut at = 0;
        while at < len {
            text[at] = address[at];
            at += 1;
        }
        Peer { text, len: len as u8 }
    }

    /// Its address; empty for the daemon itself.
    pub fn text(&self) -> &[u8] {
        &self.text[..usize::from(self.len)]
    }
}

impl Default for Peer {
    fn default() -> Peer {
        Peer::UNKNOWN
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peer({})", self.text().escape_ascii())
    }
}

#[test]
fn a_peer_keeps_the_text_of_its_address() {
    let longest = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255";
    assert_eq!(longest.len(), TEXT_BYTES_MAX);
    for text in ["", "127.0.0.1", "::1", longest] {
        assert_eq!(Peer::cut(text.as_bytes()).text(), text.as_bytes());
    }
    assert_eq!(Peer::cut(&[b'x'; 46]).text(), [b'x'; 45], "one past the bound");
    assert_eq!(Peer::OWN.text(), b"");
    assert_eq!(Peer::default().text(), b"(unknown)");
    assert_eq!(format!("{:?}", Peer::cut(b"a\n")), "Peer(a\\n)");
}

#[test]
fn peer_keys_are_displayed() {
    for (key, name) in [
        (PeerKey::V4(0x7f00_0001), "127.0.0.1"),
        (PeerKey::V6(0xfd00_0000_0000_0001), "fd00:0:0:1::/64"),
        (PeerKey::Local, "an unknown client"),
        (PeerKey::Process { uid: 1000, pid: 42 }, "process 42 of user 1000"),
        (PeerKey::Process { uid: 1000, pid: 0 }, "a process of user 1000"),
    ] {
        assert_eq!(key.to_string(), name);
    }
}
