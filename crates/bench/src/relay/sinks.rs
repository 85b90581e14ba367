//! The endpoints behind a relay: each reads lines over TCP and counts them on its own thread.
//!
//! All run on the generator's core, and only count line feeds and bytes.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use super::lines::{ENDPOINTS, Tally};
use sys::clock::Clock;

/// Bytes of one read.
const READ_BYTES: usize = 256 * 1024;

/// Endpoints that count. They end when dropped.
#[derive(Debug)]
pub(super) struct Sinks {
    addresses: [SocketAddr; ENDPOINTS],
    seen: Arc<Seen>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    each: [Count; ENDPOINTS],
    last_ns: AtomicU64,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct Count {
    lines: AtomicU64,
    bytes: AtomicU64,
}

impl Sinks {
    /// Starts them on free ports.
    ///
    /// # Errors
    /// When the system gives no socket or thread.
    pub(super) fn start() -> io::Result<Sinks> {
        let mut sinks = Sinks {
            addresses: [SocketAddr::from(([0, 0, 0, 0], 0)); ENDPOINTS],
            seen: Arc::default(),
            threads: Vec::new(),
        };
        for at in 0..ENDPOINTS {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            sinks.addresses[at] = listener.local_addr()?;
            let seen = Arc::clone(&sinks.seen);
            let name = format!("sink-{at}");
            sinks.threads.push(thread::Builder::new().name(name).spawn(move || serve(&listener, &seen, at))?);
        }
        Ok(sinks)
    }

    /// Where they listen.
    pub(super) fn addresses(&self) -> &[SocketAddr; ENDPOINTS] {
        &self.addresses
    }

    /// The lines that each has received so far.
    pub(super) fn arrived(&self) -> [Tally; ENDPOINTS] {
        self.seen
            .each
            .each_ref()
            .map(|count| Tally { lines: count.lines.load(Relaxed), bytes: count.bytes.load(Relaxed) })
    }

    /// When the last bytes came, on the monotonic clock.
    pub(super) fn last_ns(&self) -> u64 {
        self.seen.last_ns.load(Relaxed)
    }
}

impl Drop for Sinks {
    fn drop(&mut self) {
        self.seen.stop.store(true, Relaxed);
        for (address, thread) in self.addresses.iter().zip(self.threads.drain(..)) {
            // Wakes the listener. If it cannot be reached it has ended.
            let _gone = TcpStream::connect(address);
            // A panic has been printed by the thread itself.
            let _panicked = thread.join();
        }
    }
}

/// Accepts connections until it is stopped, then waits for their ends, and so for the relay's.
fn serve(listener: &TcpListener, seen: &Seen, at: usize) {
    thread::scope(|threads| {
        for connection in listener.incoming() {
            if seen.stop.load(Relaxed) {
                return;
            }
            let Ok(connection) = connection else { continue };
            threads.spawn(move || count(connection, seen, at));
        }
    });
}

fn count(mut connection: TcpStream, seen: &Seen, at: usize) {
    let mut buffer = vec![0; READ_BYTES];
    let count = &seen.each[at];
    while let Ok(got @ 1..) = connection.read(&mut buffer) {
        let lines = memchr::memchr_iter(b'\n', &buffer[..got]).count();
        count.bytes.fetch_add(got as u64, Relaxed);
        count.lines.fetch_add(lines as u64, Relaxed);
        seen.last_ns.store(Clock::mono_ns(), Relaxed);
    }
}
