//! The bare receive loop. It drops the packets, which is the least that a UDP server can do, or sends each of them to a
//! few endpoints, which is the least that a proxy can do.
//!
//! There are two of each. The plain one sleeps in `poll` and reads what has arrived: the baseline. The gathering one
//! sleeps as our own sources do (`sys::Gather`): the lower limit of Staunch's own figure.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use sys::{self, CpuClock, Gather, PACKETS_DEFAULT, PacketReader, PacketWriter, Rest, Wait, Watch};

/// Receive buffer that the loop asks for, in bytes: the same as Staunch's default.
const RECEIVE_BUFFER_BYTES: u64 = 64 << 20;

/// The loop wakes up at least so often, to see whether it should end.
const WAKE_NS: u64 = 100_000_000;

/// A bare loop on a thread of its own. Ends when dropped.
#[derive(Debug)]
pub(crate) struct BareLoop {
    socket: UdpSocket,
    seen: Arc<Seen>,
    clock: CpuClock,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    packets: AtomicU64,
    stop: AtomicBool,
}

impl BareLoop {
    /// Starts a loop on `core`, or anywhere without one, that sends every packet on to each of `to`.
    ///
    /// # Errors
    /// When the system gives no socket or thread, there is no such core, or the CPU time of a thread cannot be read.
    pub(crate) fn start(
        core: Option<usize>,
        gather: Option<Gather>,
        to: &[SocketAddr],
    ) -> io::Result<BareLoop> {
        let to = to.iter().map(connected).collect::<io::Result<Vec<UdpSocket>>>()?;
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        sys::set_receive_buffer(socket.as_fd(), RECEIVE_BUFFER_BYTES)?;
        let receiver = socket.try_clone()?;
        let reader = PacketReader::new(PACKETS_DEFAULT)?;
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let (started, wait_for_start) = sync_channel(1);
        let thread = thread::Builder::new().name("bare-loop".into()).spawn(move || {
            let ready = core.map_or(Ok(()), sys::pin_to_core).and_then(|()| CpuClock::of_this_thread());
            let runs = ready.is_ok();
            // The receiver is gone only when `start` has already failed.
            let _gone = started.send(ready);
            if runs {
                // An error ends the loop. Its counts then stop, and the scenario reports the missing packets.
                let _ended = relay(&receiver, reader, gather, &to, &shared);
            }
        })?;
        let clock =
            wait_for_start.recv().map_err(|_| io::Error::other("the bare loop's thread has ended"))??;
        Ok(BareLoop { socket, seen, clock, thread: Some(thread) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not know the socket's address.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Packets received so far.
    pub(crate) fn packets(&self) -> u64 {
        self.seen.packets.load(Relaxed)
    }

    /// Packets that the kernel dropped so far.
    ///
    /// # Errors
    /// When the system does not know the number.
    pub(crate) fn drops(&self) -> io::Result<u64> {
        Ok(u64::from(sys::socket_memory(self.socket.as_fd())?.drops))
    }

    /// CPU time of the loop so far, in nanoseconds.
    ///
    /// # Errors
    /// When the loop has ended.
    pub(crate) fn cpu_ns(&self) -> io::Result<u64> {
        self.clock.read_ns()
    }
}

impl Drop for BareLoop {
    fn drop(&mut self) {
        self.seen.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic in the loop has been printed by the thread itself.
            let _panicked = thread.join();
        }
    }
}

fn connected(to: &SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(to)?;
    Ok(socket)
}

fn relay(
    socket: &UdpSocket,
    mut reader: PacketReader,
    gather: Option<Gather>,
    to: &[UdpSocket],
    seen: &Seen,
) -> io::Result<()> {
    let mut writer = PacketWriter::new(PACKETS_DEFAULT);
    let mut packets = 0;
    while !seen.stop.load(Relaxed) {
        let got = reader.receive(socket.as_fd(), Wait::No)?;
        for endpoint in to {
            let mut sent = 0;
            while sent < got.spans.len() {
                sent += writer.send(endpoint.as_fd(), got.bytes, &got.spans[sent..], Wait::Yes)?;
            }
        }
        if !got.is_empty() {
            packets += got.spans.len() as u64;
            seen.packets.store(packets, Relaxed);
        }
        let rest = gather.map_or(Rest::UntilReadable, |gather| gather.after(got.spans.len(), got.more));
        match rest {
            Rest::Never => {}
            Rest::Nap(nap) => thread::sleep(nap),
            Rest::UntilReadable => {
                sys::wait_readable(&mut [Watch::new(socket)], Some(WAKE_NS))?;
            }
        }
    }
    Ok(())
}
