//! What stands behind a proxy under test: endpoints that count, one that is closed, one that is stopped.
//!
//! All of them are on the generator's core. They nap as our own sources do, so that they take as little of it as
//! possible. What the kernel drops at one of them is told apart from what never came.

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

/// Receive buffer of a counting endpoint, in bytes: what it loses says nothing about the proxy.
const RECEIVE_BUFFER_BYTES: u64 = 64 << 20;

/// A counting endpoint wakes up at least so often, to see whether it should end.
const WAKE_NS: u64 = 100_000_000;

/// Most looks at whether a process has stopped, and the time between two.
const STOP_LOOKS_MAX: u32 = 500;
const STOP_LOOK_EVERY: Duration = Duration::from_millis(10);

/// UDP endpoints that count what they get, all on one thread. Ends when dropped.
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

/// What one endpoint has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Packets received.
    pub packets: u64,
    /// Packets that came and were dropped by the kernel because the endpoint was too slow.
    pub dropped: u64,
    /// Time between the first and the last of this look and the one before, in nanoseconds.
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
            // An error ends the thread; the counts then stand still and the report says what is missing.
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

    /// What each has got so far.
    ///
    /// # Errors
    /// When the system cannot tell what it dropped.
    pub(crate) fn arrived(&self) -> io::Result<Vec<Arrived>> {
        let each = self.sockets.iter().zip(&self.seen.each);
        each.map(|(socket, count)| {
            let dropped = u64::from(sys::socket_memory(socket.as_fd())?.drops);
            let ns = count.last_ns.load(Relaxed).saturating_sub(count.first_ns.load(Relaxed));
            Ok(Arrived { packets: count.packets.load(Relaxed), dropped, ns })
        })
        .collect()
    }

    /// Lets the next packet be the first of a run.
    pub(crate) fn begin_run(&self) {
        for count in &self.seen.each {
            count.first_ns.store(0, Relaxed);
            count.last_ns.store(0, Relaxed);
        }
    }
}

impl Arrived {
    /// What was added since `before`; the time is this one's.
    pub(crate) fn since(self, before: Arrived) -> Arrived {
        Arrived {
            packets: self.packets - before.packets,
            dropped: self.dropped - before.dropped,
            ns: self.ns,
        }
    }

    /// All that the proxy got here, whether the endpoint was fast enough or not.
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

/// A UDP port where nobody listens, and that nobody else gets: whoever sends there is refused.
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
        // A connected socket takes from its peer alone; for all others the port has no socket. The peer is the
        // socket itself, and it sends nothing.
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

/// A process that has an open socket and is stopped (SIGSTOP), so that nobody reads it. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// The process's own socket: what it holds is what the process did not get to read.
    socket: OwnedFd,
    child: Child,
}

impl Stopped {
    /// A stopped UDP endpoint, with its address. `core` is where its process would run.
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

    /// Packets that the kernel took for the process: those in its buffer, which are read out, and those dropped
    /// because it was full.
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
        // Both fail only for a child that has ended and been waited for.
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
    fn every_endpoint_counts_its_own() {
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
    fn a_closed_port_refuses_and_stays_taken() {
        let closed = Closed::new().unwrap();
        let address = closed.address().unwrap();
        assert!(UdpSocket::bind(address).is_err());
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(address).unwrap();
        let refused = eventually(|| sender.send(b"x").err());
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_stopped_process_reads_nothing_and_what_it_was_sent_is_known() {
        let (stopped, address) = Stopped::udp(None).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(address).unwrap();
        // More than any receive buffer of a system's default holds.
        for _ in 0..20_000 {
            sender.send(b"a:1|c").unwrap();
        }
        assert!(sys::socket_memory(stopped.socket.as_fd()).unwrap().drops > 0);
        assert_eq!(stopped.taken().unwrap(), 20_000);
    }

    #[test]
    fn a_stopped_unix_endpoint_lets_its_senders_wait() {
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
