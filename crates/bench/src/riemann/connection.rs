//! A client of Riemann's protocol that keeps a number of messages in flight.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::events::{self, add_known};
use model::EventsBuilder;

/// Longest wait for a reply.
const REPLY_WAIT: Duration = Duration::from_secs(120);

/// Messages that are sent in a cycle, at most.
const MESSAGES_MAX: u64 = 10_000;

/// Bytes of the reply to a message without a query, with its length.
const OK_BYTES: usize = 4 + wire::riemann::OK_REPLY.len();

/// A query that finds nothing: its reply comes after everything before it has been processed.
const NOTHING: &str = "host = \"no such host\"";

/// Messages that are sent in a cycle.
#[derive(Debug)]
pub(super) struct Messages {
    bytes: Vec<u8>,
    /// Where each message ends.
    ends: Vec<usize>,
}

impl Messages {
    /// Messages of `pack` events each.
    pub(super) fn new(pack: u64) -> Messages {
        let (mut bytes, mut ends, mut batch) = (Vec::new(), Vec::new(), EventsBuilder::default());
        for message in 0..(events::KEYS / pack).clamp(1, MESSAGES_MAX) {
            batch.clear();
            (0..pack).for_each(|at| add_known(message * pack + at, &mut batch));
            events::framed(&batch, &mut bytes);
            ends.push(bytes.len());
        }
        Messages { bytes, ends }
    }

    fn begin(&self, at: usize) -> usize {
        if at == 0 { 0 } else { self.ends[at - 1] }
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn open(to: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_WAIT))?;
        Ok(Connection { stream })
    }

    /// Sends so many messages, at most `in_flight` of them without their reply. Returns how many were replied to with `ok`.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn send(&mut self, messages: &Messages, count: u64, in_flight: u64) -> io::Result<u64> {
        let (mut sent, mut replied, mut good) = (0_u64, 0_u64, 0_u64);
        let (mut buffer, mut have) = (vec![0; OK_BYTES * in_flight as usize], 0);
        while replied < count {
            while sent < count && sent - replied < in_flight {
                // Up to the end of the ring in one write.
                let at = (sent % messages.ends.len() as u64) as usize;
                let room = (in_flight - (sent - replied)).min(count - sent) as usize;
                let end = (at + room).min(messages.ends.len());
                self.stream.write_all(&messages.bytes[messages.begin(at)..messages.ends[end - 1]])?;
                sent += (end - at) as u64;
            }
            match self.stream.read(&mut buffer[have..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => have += got,
            }
            let whole = have / OK_BYTES * OK_BYTES;
            for reply in buffer[..whole].chunks_exact(OK_BYTES) {
                replied += 1;
                good += u64::from(reply[4..] == *wire::riemann::OK_REPLY);
            }
            buffer.copy_within(whole..have, 0);
            have -= whole;
        }
        Ok(good)
    }

    /// Waits until everything before has been processed.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        self.ask(&events::query(NOTHING), &mut Vec::new())
    }

    /// Sends a message and reads the message that replies to it.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn ask(&mut self, message: &[u8], reply: &mut Vec<u8>) -> io::Result<()> {
        self.stream.write_all(message)?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        reply.resize(u32::from_be_bytes(length) as usize, 0);
        self.stream.read_exact(reply)
    }

    /// Sends bytes of messages whose replies are read elsewhere or not at all.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads the replies to so many messages of events.
    ///
    /// # Errors
    /// Those of the connection.
    pub(super) fn read_replies(&mut self, count: usize) -> io::Result<()> {
        let mut replies = vec![0; OK_BYTES * count];
        self.stream.read_exact(&mut replies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::riemann::bare::BareLoop;

    #[test]
    fn all_messages_are_sent_and_replied_to_whatever_the_number_in_flight() {
        for (pack, count, in_flight) in [(100, 250, 16), (1, 25_000, 64), (7, 3, 1)] {
            let bare = BareLoop::start(None).unwrap();
            let mut connection = Connection::open(bare.address()).unwrap();
            let messages = Messages::new(pack);
            assert_eq!(connection.send(&messages, count, in_flight).unwrap(), count);
            connection.settle().unwrap();
            assert!(bare.cpu_ns().unwrap() > 0);
            drop(connection);
            bare.join();
        }
    }
}
