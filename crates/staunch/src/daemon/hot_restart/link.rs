//! The socket of a hot restart: whole messages, descriptors with them, and a deadline for each.
//!
//! Blocking, with timeouts: the new process is starting and has nothing else to do, the old one uses a separate thread.
//! Not here: the messages (`message`), their order (`old`, `new`).

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::message::{Bad, HEADER_BYTES, Message, PART_BYTES};
use sys::clock::Clock;
use sys::pass::{self, Peer};
use sys::{BorrowedFd, OwnedFd};

/// The control socket's name in the data directory.
pub const CONTROL_FILE: &str = "control.sock";

/// Most bytes of a state or a block: more than twice the memory of any machine.
const PARTS_BYTES_MAX: u64 = 1 << 36;

/// Interval between two checks whether the other end still exists, or has received descriptors.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Why the protocol ended.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The other end has closed the connection.
    #[error("the other process closed the connection")]
    Closed,
    /// The other end sent nothing until the deadline.
    #[error("the other process did not answer in time (`hot_restart_timeout`)")]
    Late,
    /// The other end rejects the hot restart, and continues unchanged.
    #[error("{why}")]
    Refused {
        /// Its message.
        why: String,
    },
    /// It sent an invalid message.
    #[error("the other process sent an unexpected message: {0}")]
    Bad(#[from] Bad),
    /// It sent a message out of order.
    #[error("the other process sent a message out of order")]
    OutOfTurn,
    /// A system error.
    #[error("cannot communicate with the other process")]
    Io(#[source] io::Error),
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> LinkError {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
                LinkError::Closed
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => LinkError::Late,
            _ => LinkError::Io(error),
        }
    }
}

/// One end of the connection.
#[derive(Debug)]
pub struct Link {
    stream: UnixStream,
    peer: Peer,
    /// Received descriptors that were not requested yet.
    passed: VecDeque<OwnedFd>,
}

impl Link {
    /// Connects to the process that listens at `path`.
    ///
    /// # Errors
    /// When no process listens.
    pub fn connect(path: &Path) -> io::Result<Link> {
        Link::new(UnixStream::connect(path)?)
    }

    /// One end of an existing connection.
    ///
    /// # Errors
    /// When it has no other end.
    pub fn new(stream: UnixStream) -> io::Result<Link> {
        stream.set_nonblocking(false)?;
        Ok(Link { peer: pass::peer(&stream)?, stream, passed: VecDeque::new() })
    }

    /// The process at the other end.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Sends `message`, before `deadline_ns` (monotonic).
    ///
    /// # Errors
    /// When the other end does not receive it.
    pub fn send(&mut self, message: &Message, deadline_ns: u64) -> Result<(), LinkError> {
        self.send_with(message, &[], deadline_ns)
    }

    /// The same, with descriptors.
    ///
    /// # Errors
    /// The same.
    pub fn send_with(
        &mut self,
        message: &Message,
        passed: &[BorrowedFd<'_>],
        deadline_ns: u64,
    ) -> Result<(), LinkError> {
        let frame = message.encode()?;
        let sent = loop {
            self.stream.set_write_timeout(Some(left(deadline_ns)?))?;
            match pass::send_with(&self.stream, &frame, passed) {
                Ok(sent) => break sent,
                Err(error) if error.raw_os_error() == Some(pass::TOO_MANY_IN_FLIGHT) => {
                    // The other end receives them one message after the other.
                    std::thread::sleep(LOOK_EVERY.min(left(deadline_ns)?));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        };
        self.write(&frame[sent..], deadline_ns)
    }

    /// Sends bytes of any length, after the message that announced them.
    ///
    /// # Errors
    /// When the other end does not receive them.
    pub fn send_parts(&mut self, bytes: &[u8], deadline_ns: u64) -> Result<(), LinkError> {
        bytes.chunks(PART_BYTES).try_for_each(|part| {
            // Without a copy, because states are long and nothing is read meanwhile.
            self.write(&Message::part_header(part.len())?, deadline_ns)?;
            self.write(part, deadline_ns)
        })
    }

    fn write(&mut self, bytes: &[u8], deadline_ns: u64) -> Result<(), LinkError> {
        let mut sent = 0;
        while sent < bytes.len() {
            self.stream.set_write_timeout(Some(left(deadline_ns)?))?;
            match pass::send_with(&self.stream, &bytes[sent..], &[]) {
                Ok(more) => sent += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Receives the next message, before `deadline_ns` (monotonic).
    ///
    /// # Errors
    /// When none arrives, or it is invalid.
    pub fn receive(&mut self, deadline_ns: u64) -> Result<Message, LinkError> {
        let mut header = [0; HEADER_BYTES];
        self.fill(&mut header, deadline_ns)?;
        let mut body = vec![0; Message::body_len(header)?];
        self.fill(&mut body, deadline_ns)?;
        Ok(Message::decode(header[0], &body)?)
    }

    /// Receives `len` announced bytes.
    ///
    /// # Errors
    /// As [`Self::receive`]; `OutOfTurn` for other messages, or too many bytes.
    pub fn receive_parts(&mut self, len: u64, deadline_ns: u64) -> Result<Vec<u8>, LinkError> {
        if len > PARTS_BYTES_MAX {
            return Err(Bad::TooLong.into());
        }
        // Grows with the bytes received.
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < len {
            let mut header = [0; HEADER_BYTES];
            self.fill(&mut header, deadline_ns)?;
            let part = Message::part_len(header)?.ok_or(LinkError::OutOfTurn)?;
            let at = bytes.len();
            if part == 0 || (at + part) as u64 > len {
                return Err(LinkError::OutOfTurn);
            }
            bytes.resize(at + part, 0);
            self.fill(&mut bytes[at..], deadline_ns)?;
        }
        Ok(bytes)
    }

    /// The next descriptor that arrived with a message.
    pub fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.passed.pop_front()
    }

    /// Closes the receiving direction: the next message of the other end fails. Earlier ones can still be received.
    pub fn stop_listening(&self) {
        // It fails only when the other end is gone.
        let _gone = self.stream.shutdown(std::net::Shutdown::Read);
    }

    fn fill(&mut self, into: &mut [u8], deadline_ns: u64) -> Result<(), LinkError> {
        let mut filled = 0;
        while filled < into.len() {
            self.stream.set_read_timeout(Some(left(deadline_ns)?))?;
            let mut passed = Vec::new();
            let got = pass::receive_with(&self.stream, &mut into[filled..], &mut passed);
            self.passed.extend(passed);
            match got {
                Ok(0) => return Err(LinkError::Closed),
                Ok(got) => filled += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until the other end has closed the connection: its process has ended, or is done. False at the deadline.
    pub fn closed_before(&self, deadline_ns: u64) -> bool {
        while !pass::hung_up(&self.stream) {
            let Ok(left) = left(deadline_ns) else { return false };
            std::thread::sleep(left.min(LOOK_EVERY));
        }
        true
    }
}

/// Time until the deadline; an error after it.
fn left(deadline_ns: u64) -> Result<Duration, LinkError> {
    match deadline_ns.saturating_sub(Clock::mono_ns()) {
        0 => Err(LinkError::Late),
        ns => Ok(Duration::from_nanos(ns)),
    }
}
