//! Senders: datagrams with a pause where the kernel would drop, and seeded noise.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Datagrams between two pauses: together they stay far below the smallest receive buffer of a machine.
const BURST: usize = 50;

/// A socket connected to `to`.
pub(crate) fn udp(to: SocketAddr) -> UdpSocket {
    let any = if to.is_ipv6() { "[::1]:0" } else { "127.0.0.1:0" };
    let socket = UdpSocket::bind(any).expect("a free port");
    socket.connect(to).expect("a loopback address");
    socket
}

/// Sends each packet, with pauses, so that none is dropped on the way.
pub(crate) fn send_all(socket: &UdpSocket, packets: impl IntoIterator<Item = impl AsRef<[u8]>>) -> u64 {
    let mut sent = 0;
    for packet in packets {
        socket.send(packet.as_ref()).expect("loopback takes it");
        sent += 1;
        if sent % BURST as u64 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    sent
}

/// A generator that gives the same bytes for the same seed on every machine (xorshift64*).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A generator for `seed`, which is not 0.
    pub(crate) fn new(seed: u64) -> Random {
        assert_ne!(seed, 0, "this generator never leaves 0");
        Random(seed)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Up to `len_max` bytes: noise, or noise made of the bytes that StatsD lines are made of.
    pub(crate) fn bytes(&mut self, len_max: usize) -> Vec<u8> {
        const ALPHABET: &[u8] = b"abc.:|@#,;=+-0123456789cgmsh\n\r _e{}TNaNInf\0\xff";
        let len = self.below(len_max + 1);
        let noise = self.next().is_multiple_of(4);
        (0..len)
            .map(|_| if noise { self.next() as u8 } else { ALPHABET[self.below(ALPHABET.len())] })
            .collect()
    }
}
