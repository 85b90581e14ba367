//! A client that keeps each record until it is acknowledged, and sends it again on the next connection (docs/acks.md).

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::oracle::records;

/// Pause before it connects again.
const PAUSE: Duration = Duration::from_millis(5);

/// Records that are written at once.
const CHUNK: u64 = 100;

/// How long it waits for an ack while it may not send: it then looks whether it should end.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What others may know of it while it runs.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Its records that were acknowledged; it never sends those again.
    pub(crate) acked: AtomicU64,
    /// Records sent once more, each time counted.
    pub(crate) again: AtomicU64,
    /// `err` lines that it got.
    pub(crate) errors: Mutex<Vec<String>>,
}

/// A client on its own thread, with ids of its own.
#[derive(Debug)]
pub(crate) struct AckedClient {
    /// Its first id.
    pub(crate) first: u64,
    pub(crate) progress: Arc<Progress>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl AckedClient {
    /// Sends to `at` with at most `window` records unacknowledged.
    pub(crate) fn start(at: SocketAddr, first: u64, window: u64) -> AckedClient {
        let progress = Arc::new(Progress::default());
        let over = Arc::new(AtomicBool::new(false));
        let (seen, stop) = (Arc::clone(&progress), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            let mut sent = 0;
            while !(stop.load(SeqCst) && seen.acked.load(SeqCst) == sent) {
                // The daemon is dead, or dies while we talk: that is what this is about.
                let _broken = connection(at, first, window, &mut sent, &seen, &stop);
                std::thread::sleep(PAUSE);
            }
            sent
        });
        AckedClient { first, progress, over, thread }
    }

    /// No new records from now on; ends when all are acknowledged. Gives the ids that were.
    pub(crate) fn finish(self) -> Range<u64> {
        self.over.store(true, SeqCst);
        let sent = self.thread.join().expect("a client only sends");
        self.first..self.first + sent
    }
}

/// One connection, until it breaks or all is done. `sent` counts records that were sent at least once.
fn connection(
    at: SocketAddr,
    first: u64,
    window: u64,
    sent: &mut u64,
    seen: &Progress,
    over: &AtomicBool,
) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(at)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    let mut replies = BufReader::new(stream.try_clone()?);
    let mut reply = String::new();
    // Acks count from the connection's first line.
    let base = seen.acked.load(SeqCst);
    let mut next = base;
    loop {
        let acked = seen.acked.load(SeqCst);
        let end = if over.load(SeqCst) { *sent } else { u64::MAX };
        if acked == end {
            return Ok(());
        }
        let to = end.min(acked + window).min(next + CHUNK);
        if to > next {
            stream.write_all(&records(first + next..first + to))?;
            seen.again.fetch_add((*sent).min(to).saturating_sub(next), SeqCst);
            *sent = to.max(*sent);
            next = to;
        }
        // With room in the window it only looks; without, it waits.
        stream.set_nonblocking(next < end.min(acked + window))?;
        match replies.read_line(&mut reply) {
            Ok(0) => return Ok(()),
            Ok(_) => {
                let mut words = reply.split_whitespace();
                let (verb, number) = (words.next(), words.next().and_then(|word| word.parse::<u64>().ok()));
                let number = number.ok_or(std::io::ErrorKind::InvalidData)?;
                seen.acked.fetch_max(base + number, SeqCst);
                if verb == Some("err") {
                    seen.errors.lock().expect("nobody panics with it").push(reply.trim().to_owned());
                    return Ok(());
                }
                reply.clear();
            }
            // A part of a line stays in `reply`.
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(broken) => return Err(broken),
        }
        stream.set_nonblocking(false)?;
    }
}
