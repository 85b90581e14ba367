//! The endpoints behind a proxy under test: some count, one is closed, one is stopped.
//!
//! All run on the generator's core. They sleep as our own sources do, to use as little of it as possible. Packets that
//! the kernel drops at an endpoint are counted separately from packets that never arrived.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sys::clock::Clock;
use sys::{self, Gather, PACKETS_DEFAULT, PacketReader, Rest, Wait, Watch};

/// Receive buffer of a counting endpoint, in bytes: large, because its own losses say nothing about the proxy.
const RECEIVE_BUFFER_BYTES: u64 = 64 << 20;

/// A counting endpoint wakes up at least this often, to check whether it should end.
const WAKE_NS: u64 = 100_000_000;

/// Most checks whether a process has stopped, and the interval between two.
const STOP_LOOKS_MAX: u32 = 500;
const STOP_LOOK_EVERY: Duration = Duration::from_millis(10);

/// UDP endpoints that count their packets, all on one thread. They end when dropped.
#[derive(Debug)]
pub(crate) struct Counting {
    sockets: Vec<UdpSocket>,
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    each: Vec<Count>,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct Count {
    packets: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
}

/// The packets of one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Packets received.
    pub packets: u64,
    /// Packets that the kernel dropped because the endpoint was too slow.
    pub dropped: u64,
    /// Time between the first and the last packet since the previous call, in nanoseconds.
    pub ns: u64,
}

impl Counting {
    /// Starts `count` endpoints on free ports.
    ///
    /// # Errors
    /// When the system gives no socket or thread.
    pub(crate) fn start(count: usize) -> io::Result<Counting> {
        let sockets =
            (0..count).map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<io::Result<Vec<UdpSocket>>>()?;
        for socket in &sockets {
            sys::set_receive_buffer(socket.as_fd(), RECEIVE_BUFFER_BYTES)?;
        }
        let seen = Arc::new(Seen { each: (0..count).map(|_| Count::default()).collect(), ..Seen::default() });
        let receivers = sockets.iter().map(UdpSocket::try_clone).collect::<io::Result<Vec<UdpSocket>>>()?;
        let reader = PacketReader::new(PACKETS_DEFAULT)?;
        let shared = Arc::clone(&seen);
        let thread = thread::Builder::new().name("endpoints".into()).spawn(move || {
            // An error ends the thread. The counts then stop, and the report shows the missing packets.
            let _ended = count_packets(&receivers, reader, &shared);
        })?;
        Ok(Counting { sockets, seen, thread: Some(thread) })
    }

    /// Where they listen.
    ///
    /// # Errors
    /// When the system does not know a socket's address.
    pub(crate) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.sockets.iter().map(UdpSocket::local_addr).collect()
    }

    /// The packets of each endpoint so far.
    ///
    /// # Errors
    /// When the system does not report its drops.
    pub(crate) fn arrived(&self) -> io::Result<Vec<Arrived>> {
        let each = self.sockets.iter().zip(&self.seen.each);
        each.map(|(socket, count)| {
            let dropped = u64::from(sys::socket_memory(socket.as_fd())?.drops);
            let ns = count.last_ns.load(Relaxed).saturating_sub(count.first_ns.load(Relaxed));
            Ok(Arrived { packets: count.packets.load(Relaxed), dropped, ns })
        })
        .collect()
    }

    /// Makes the next packet the first one of a run.
    pub(crate) fn begin_run(&self) {
        for count in &self.seen.each {
            count.first_ns.store(0, Relaxed);
            count.last_ns.store(0, Relaxed);
        }
    }
}

impl Arrived {
    /// The difference to `before`; the time is that of `self`.
    pub(crate) fn since(self, before: Arrived) -> Arrived {
        Arrived {
            packets: self.packets - before.packets,
            dropped: self.dropped - before.dropped,
            ns: self.ns,
        }
    }

    /// All packets from the proxy, including those that the endpoint was too slow for.
    pub(crate) fn came(self) -> u64 {
        self.packets + self.dropped
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.seen.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the thread itself.
            let _panicked = thread.join();
        }
    }
}

fn count_packets(sockets: &[UdpSocket], mut reader: PacketReader, seen: &Seen) -> io::Result<()> {
    let gather = Gather::default();
    while !seen.stop.load(Relaxed) {
        let mut most = 0;
        for (socket, count) in sockets.iter().zip(&seen.each) {
            loop {
                let got = reader.receive(socket.as_fd(), Wait::No)?;
                most = most.max(got.spans.len());
                if !got.is_empty() {
                    note(count, got.spans.len());
                }
                if !got.more {
                    break;
                }
            }
        }
        match gather.after(most, false) {
            Rest::Never => {}
            Rest::Nap(nap) => thread::sleep(nap),
            Rest::UntilReadable => {
                let mut watches: Vec<Watch<'_>> = sockets.iter().map(Watch::new).collect();
                sys::wait_readable(&mut watches, Some(WAKE_NS))?;
            }
        }
    }
    Ok(())
}

fn note(count: &Count, packets: usize) {
    let now_ns = Clock::mono_ns();
    if count.first_ns.load(Relaxed) == 0 {
        count.first_ns.store(now_ns, Relaxed);
    }
    count.last_ns.store(now_ns, Relaxed);
    count.packets.fetch_add(packets as u64, Relaxed);
}

/// A UDP port without a listener that no other process can get: packets to it are rejected.
#[derive(Debug)]
pub(crate) struct Closed {
    socket: UdpSocket,
}

impl Closed {
    /// Closes a free port.
    ///
    /// # Errors
    /// When the system gives no socket.
    pub(crate) fn new() -> io::Result<Closed> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        // A connected socket receives from its peer only; for all other senders the port has no socket. The peer is the
        // socket itself, which sends nothing.
        socket.connect(socket.local_addr()?)?;
        Ok(Closed { socket })
    }

    /// The port.
    ///
    /// # Errors
    /// When the system does not know the socket's address.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// A stopped process (SIGSTOP) with an open socket that nobody reads. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// The process's socket: its buffer contains the packets that the process did not read.
    socket: OwnedFd,
    child: Child,
}

impl Stopped {
    /// A stopped UDP endpoint, with its address. `core` is for its process.
    ///
    /// # Errors
    /// When there is no socket or no process, or the process does not stop.
    pub(crate) fn udp(core: Option<usize>) -> io::Result<(Stopped, SocketAddr)> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let address = socket.local_addr()?;
        Ok((Stopped::with(socket.into(), core)?, address))
    }

    /// A stopped unix datagram endpoint at `path`.
    ///
    /// # Errors
    /// As [`Self::udp`].
    pub(crate) fn unix(path: &Path, core: Option<usize>) -> io::Result<Stopped> {
        Stopped::with(UnixDatagram::bind(path)?.into(), core)
    }

    fn with(socket: OwnedFd, core: Option<usize>) -> io::Result<Stopped> {
        let mut command = Command::new("cat");
        command.stdin(socket.try_clone()?).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(target_os = "linux")]
        if let Some(core) = core {
            sys::on_core(&mut command, core);
        }
        #[cfg(not(target_os = "linux"))]
        let _any = core;
        let child = command.spawn()?;
        let stopped = Stopped { socket, child };
        sys::suspend(stopped.child.id())?;
        for _ in 0..STOP_LOOKS_MAX {
            if sys::is_suspended(stopped.child.id())? {
                return Ok(stopped);
            }
            thread::sleep(STOP_LOOK_EVERY);
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "the process does not stop"))
    }

    /// Packets that the kernel accepted for the process: those in its buffer, which are read here, and those dropped
    /// because the buffer was full.
    ///
    /// # Errors
    /// When the socket cannot be read.
    pub(crate) fn taken(&self) -> io::Result<u64> {
        let mut reader = PacketReader::new(PACKETS_DEFAULT)?;
        let mut packets = u64::from(sys::socket_memory(self.socket.as_fd())?.drops);
        loop {
            let got = reader.receive(self.socket.as_fd(), Wait::No)?;
            packets += got.spans.len() as u64;
            if got.is_empty() {
                return Ok(packets);
            }
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // Both fail only for a child that has already ended and been waited for.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
        for _ in 0..3000 {
            if let Some(found) = look() {
                return found;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("it never came");
    }

    #[test]
    fn every_endpoint_counts_its_own_packets() {
        let counting = Counting::start(3).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let addresses = counting.addresses().unwrap();
        for (at, address) in addresses.iter().enumerate() {
            for _ in 0..=at {
                sender.send_to(b"a:1|c", address).unwrap();
            }
        }
        let packets = eventually(|| {
            let arrived = counting.arrived().unwrap();
            let packets: Vec<u64> = arrived.iter().map(|arrived| arrived.came()).collect();
            (packets.iter().sum::<u64>() >= 6).then_some(packets)
        });
        assert_eq!(packets, [1, 2, 3]);
        let before = counting.arrived().unwrap()[2];
        counting.begin_run();
        sender.send_to(b"a:1|c", addresses[2]).unwrap();
        let one = eventually(|| {
            let since = counting.arrived().unwrap()[2].since(before);
            (since.packets > 0).then_some(since)
        });
        assert_eq!(one, Arrived { packets: 1, dropped: 0, ns: 0 }, "one packet takes no time");
    }

    #[test]
    fn a_closed_port_rejects_packets_and_stays_reserved() {
        let closed = Closed::new().unwrap();
        let address = closed.address().unwrap();
        assert!(UdpSocket::bind(address).is_err());
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(address).unwrap();
        let refused = eventually(|| sender.send(b"x").err());
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn packets_sent_to_a_stopped_process_are_unread_and_counted() {
        let (stopped, address) = Stopped::udp(None).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(address).unwrap();
        // More than any default receive buffer.
        for _ in 0..20_000 {
            sender.send(b"a:1|c").unwrap();
        }
        assert!(sys::socket_memory(stopped.socket.as_fd()).unwrap().drops > 0);
        assert_eq!(stopped.taken().unwrap(), 20_000);
    }

    #[test]
    fn senders_to_a_stopped_unix_endpoint_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stopped.sock");
        let stopped = Stopped::unix(&path, None).unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        sender.connect(&path).unwrap();
        sender.set_nonblocking(true).unwrap();
        let mut sent = 0;
        let full = loop {
            match sender.send(b"a:1|c") {
                Ok(_) => sent += 1,
                Err(error) => break error,
            }
            assert!(sent < 1_000_000, "nothing fills it");
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(stopped.taken().unwrap(), sent);
    }
}
