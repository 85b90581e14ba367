//! Sends a ring of packets at full speed or at a given rate.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use model::SECOND_NS;

use crate::traffic::packets::Ring;
use sys::clock::Clock;
use sys::{PacketWriter, Wait};

/// Packets of one system call at full speed.
const BATCH: usize = 64;

/// At a given rate, batches are small enough for this many in a second.
const BATCHES_PER_SECOND_MIN: u64 = 5_000;

/// The packets sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Packets.
    pub packets: u64,
    /// Samples in them.
    pub samples: u64,
    /// Time from the first to the last, in nanoseconds.
    pub ns: u64,
    /// Number of errors for an earlier, rejected packet. The current packet was sent again.
    pub refused: u64,
}

impl Sent {
    /// Packets per second.
    pub(crate) fn packets_per_second(&self) -> f64 {
        self.packets as f64 / (self.ns.max(1) as f64 / SECOND_NS as f64)
    }
}

/// Sends to one address.
#[derive(Debug)]
pub(crate) struct Generator {
    socket: UdpSocket,
    writer: PacketWriter,
}

impl Generator {
    /// A generator for one address on loopback.
    ///
    /// # Errors
    /// When the system gives no socket.
    pub(crate) fn new(to: SocketAddr) -> io::Result<Generator> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(to)?;
        Ok(Generator { socket, writer: PacketWriter::new(BATCH) })
    }

    /// Sends `packets` packets of the ring from its beginning, in a cycle; `rate` is packets per second, 0 for full
    /// speed.
    ///
    /// # Errors
    /// When the system does not send. A missing listener is no error.
    pub(crate) fn send(&mut self, ring: &Ring, packets: u64, rate: u64) -> io::Result<Sent> {
        let spans = &ring.packets.packets;
        let batch = match rate {
            0 => BATCH,
            rate => (rate / BATCHES_PER_SECOND_MIN).clamp(1, BATCH as u64) as usize,
        };
        let mut sent = Sent::default();
        let start_ns = Clock::mono_ns();
        let mut at = 0;
        while sent.packets < packets {
            let left = usize::try_from(packets - sent.packets).unwrap_or(usize::MAX);
            let end = (at + batch.min(left)).min(spans.len());
            match self.writer.send(self.socket.as_fd(), &ring.packets.bytes, &spans[at..end], Wait::Yes) {
                Ok(count) => {
                    sent.packets += count as u64;
                    at = (at + count) % spans.len();
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => sent.refused += 1,
                Err(error) => return Err(error),
            }
            keep_pace(start_ns, sent.packets, rate);
        }
        sent.ns = Clock::mono_ns() - start_ns;
        sent.samples = sent.packets * ring.pack;
        Ok(sent)
    }
}

/// Sleeps when the packets sent so far exceed `rate`.
fn keep_pace(start_ns: u64, sent: u64, rate: u64) {
    if rate == 0 {
        return;
    }
    let due_ns = u128::from(sent) * u128::from(SECOND_NS) / u128::from(rate);
    let passed_ns = u128::from(Clock::mono_ns() - start_ns);
    if due_ns > passed_ns {
        thread::sleep(Duration::from_nanos(u64::try_from(due_ns - passed_ns).unwrap_or(SECOND_NS)));
    }
}
