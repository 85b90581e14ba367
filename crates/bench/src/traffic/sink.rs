//! A replacement for Graphite: reads lines over TCP and counts the samples in them.
//!
//! The sum of the `stats_counts.` lines for the generator's own names is the number of samples that arrived at the
//! endpoint: the strictest count of all.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Beginning of the lines that are added up.
const COUNTED: &[u8] = b"stats_counts.bench.";

/// Longest line that is parsed; the rest of a longer one is ignored.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Most connections in the life of a sink.
const CONNECTIONS_MAX: usize = 64;

/// The interval between two checks whether all connections have ended, and the most checks.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const QUIET_LOOKS_MAX: u32 = 200;

/// A sink on threads of its own. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Sink {
    address: SocketAddr,
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    lines: AtomicU64,
    counted: AtomicU64,
    open: AtomicU64,
    stop: AtomicBool,
}

impl Sink {
    /// Starts a sink on a free port.
    ///
    /// # Errors
    /// When the system gives no socket or thread.
    pub(crate) fn start() -> io::Result<Sink> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let thread = thread::Builder::new().name("sink".into()).spawn(move || serve(&listener, &shared))?;
        Ok(Sink { address, seen, thread: Some(thread) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lines so far.
    pub(crate) fn lines(&self) -> u64 {
        self.seen.lines.load(Relaxed)
    }

    /// Samples in the lines so far.
    pub(crate) fn counted(&self) -> u64 {
        self.seen.counted.load(Relaxed)
    }

    /// Waits until every connection has ended and all received lines are counted. Call it after the daemon's end.
    ///
    /// # Errors
    /// When a connection is still open after [`QUIET_LOOKS_MAX`] looks.
    pub(crate) fn wait_until_quiet(&self) -> io::Result<()> {
        for _ in 0..QUIET_LOOKS_MAX {
            // It sleeps first, because a new connection may not have been accepted yet.
            thread::sleep(LOOK_EVERY);
            if self.seen.open.load(Relaxed) == 0 {
                return Ok(());
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.seen.stop.store(true, Relaxed);
        // Wakes the listener. If it cannot be reached it has ended.
        let _gone = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the thread itself.
            let _panicked = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, seen: &Seen) {
    thread::scope(|threads| {
        for connection in listener.incoming().take(CONNECTIONS_MAX) {
            if seen.stop.load(Relaxed) {
                return;
            }
            let Ok(mut connection) = connection else { continue };
            seen.open.fetch_add(1, Relaxed);
            threads.spawn(move || {
                read_lines(&mut connection, seen);
                seen.open.fetch_sub(1, Relaxed);
            });
        }
    });
}

fn read_lines(connection: &mut TcpStream, seen: &Seen) {
    let mut buffer = vec![0; 4 * LINE_BYTES_MAX];
    let mut held = 0;
    while let Ok(got @ 1..) = connection.read(&mut buffer[held..]) {
        let filled = held + got;
        let (lines, counted, rest) = tally(&buffer[..filled]);
        seen.lines.fetch_add(lines, Relaxed);
        seen.counted.fetch_add(counted, Relaxed);
        buffer.copy_within(rest..filled, 0);
        held = filled - rest;
        if held > LINE_BYTES_MAX {
            held = 0;
        }
    }
}

/// Number of lines, sum of their counts, and start of the unfinished last one.
fn tally(bytes: &[u8]) -> (u64, u64, usize) {
    let (mut lines, mut counted, mut at) = (0, 0, 0);
    while let Some(len) = memchr::memchr(b'\n', &bytes[at..]) {
        lines += 1;
        counted += count_of(&bytes[at..at + len]).unwrap_or(0);
        at += len + 1;
    }
    (lines, counted, at)
}

/// The value of a line that is counted.
fn count_of(line: &[u8]) -> Option<u64> {
    let line = line.strip_prefix(COUNTED)?;
    let value = line.split(|byte| *byte == b' ').nth(1)?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_the_counts_of_the_generators_names_are_added_up() {
        let text = b"stats.bench.a 0.1 1700000000\nstats_counts.bench.a 12 1700000000\n\
            stats_counts.statsd.packets_received 99 1700000000\nstats_counts.bench.b 3 1700000000\nstats_counts.bench.c";
        let whole = text.len() - b"stats_counts.bench.c".len();
        assert_eq!(tally(text), (4, 15, whole));
    }

    #[test]
    fn lines_split_between_reads_are_counted_whole() {
        let sink = Sink::start().unwrap();
        let mut client = TcpStream::connect(sink.address()).unwrap();
        for part in ["stats_counts.be", "nch.a 7 17", "00000000\nstats_counts.bench.b 5 1", "700000000\n"] {
            client.write_all(part.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(2));
        }
        drop(client);
        sink.wait_until_quiet().unwrap();
        assert_eq!((sink.lines(), sink.counted()), (2, 12));
    }
}
