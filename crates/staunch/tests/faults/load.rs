//! Senders of records with ids.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::oracle::records;

/// Records that are written at once.
const CHUNK: u64 = 1_000;

/// Pause while a sender is as far ahead as it may be.
const AHEAD_PAUSE: Duration = Duration::from_micros(200);

/// A client of a stream source.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    /// The next id to be sent.
    pub(crate) next: u64,
}

impl Client {
    /// Connects; its first record will have this id.
    pub(crate) fn new(at: SocketAddr, first: u64) -> Client {
        let stream = TcpStream::connect(at).expect("it listens");
        stream.set_nodelay(true).expect("a socket can be asked not to wait");
        Client { stream, next: first }
    }

    /// Sends so many records, never more than `ahead_max` in front of what `arrived` says.
    pub(crate) fn send(&mut self, count: u64, ahead_max: u64, arrived: impl Fn() -> u64) {
        let end = self.next + count;
        while self.next < end {
            while self.next - arrived().min(self.next) >= ahead_max {
                std::thread::sleep(AHEAD_PAUSE);
            }
            let to = end.min(self.next + CHUNK);
            self.stream.write_all(&records(self.next..to)).expect("the daemon reads");
            self.next = to;
        }
    }

    /// Sends so many records, as fast as they are taken.
    pub(crate) fn send_at_once(&mut self, count: u64) {
        self.send(count, u64::MAX, || 0);
    }

    /// Sends lines that have no id.
    pub(crate) fn write(&mut self, lines: &[u8]) {
        self.stream.write_all(lines).expect("the daemon reads");
    }
}
