//! The conversation's socket: whole messages, descriptors with them, and a deadline for each.
//!
//! Blocking, with time-outs: one process is starting and has nothing else to do, the other does it on a thread of its
//! own. Not here: what is said (`message`), by whom (`old`, `new`).

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::message::{Bad, HEADER_BYTES, Message, PART_BYTES};
use sys::clock::Clock;
use sys::pass::{self, Peer};
use sys::{BorrowedFd, OwnedFd};

/// Most bytes that a state or a block may have: more than any machine's memory would hold twice.
const PARTS_BYTES_MAX: u64 = 1 << 36;

/// Pause between two looks at whether the other end is still there, or has taken descriptors.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Why the conversation did not go on.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The other end is gone, or has stopped listening.
    #[error("the other process closed the connection")]
    Closed,
    /// The other end said nothing for too long.
    #[error("the other process did not answer in time (`hot_restart_timeout`)")]
    Late,
    /// The other end does not want to, or not any more: it goes on as if nothing had been.
    #[error("{why}")]
    Refused {
        /// Its word.
        why: String,
    },
    /// What it said is none of ours.
    #[error("the other process sent an unexpected message: {0}")]
    Bad(#[from] Bad),
    /// It said something else than what was due.
    #[error("the other process sent a message out of order")]
    OutOfTurn,
    /// The system's.
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

/// One end of the conversation.
#[derive(Debug)]
pub struct Link {
    stream: UnixStream,
    peer: Peer,
    /// Descriptors that came and have not been asked for.
    passed: VecDeque<OwnedFd>,
}

impl Link {
    /// Connects to the process that listens at `path`.
    ///
    /// # Errors
    /// When nobody does.
    pub fn connect(path: &Path) -> io::Result<Link> {
        Link::new(UnixStream::connect(path)?)
    }

    /// One end of a connection that exists.
    ///
    /// # Errors
    /// When it has no other end.
    pub fn new(stream: UnixStream) -> io::Result<Link> {
        stream.set_nonblocking(false)?;
        Ok(Link { peer: pass::peer(&stream)?, stream, passed: VecDeque::new() })
    }

    /// Who is at the other end.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Says `message`, before `deadline_ns` (monotonic).
    ///
    /// # Errors
    /// When the other end does not take it.
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
                    // The other end takes them one message after the other.
                    std::thread::sleep(LOOK_EVERY.min(left(deadline_ns)?));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        };
        self.write(&frame[sent..], deadline_ns)
    }

    /// Says bytes of any length, behind the message that has announced them.
    ///
    /// # Errors
    /// When the other end does not take them.
    pub fn send_parts(&mut self, bytes: &[u8], deadline_ns: u64) -> Result<(), LinkError> {
        bytes.chunks(PART_BYTES).try_for_each(|part| {
            // As they are: states are long, and nobody reads meanwhile.
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

    /// Hears the next message, before `deadline_ns` (monotonic).
    ///
    /// # Errors
    /// When none comes, or what comes is none.
    pub fn receive(&mut self, deadline_ns: u64) -> Result<Message, LinkError> {
        let mut header = [0; HEADER_BYTES];
        self.fill(&mut header, deadline_ns)?;
        let mut body = vec![0; Message::body_len(header)?];
        self.fill(&mut body, deadline_ns)?;
        Ok(Message::decode(header[0], &body)?)
    }

    /// Hears `len` bytes that were announced.
    ///
    /// # Errors
    /// As [`Self::receive`]; `OutOfTurn` when others come, or too many.
    pub fn receive_parts(&mut self, len: u64, deadline_ns: u64) -> Result<Vec<u8>, LinkError> {
        if len > PARTS_BYTES_MAX {
            return Err(Bad::TooLong.into());
        }
        // Grows with what really comes.
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

    /// The next descriptor that came with a message.
    pub fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.passed.pop_front()
    }

    /// From now on nothing that the other end says can reach us: its next word fails. What it said before can still be
    /// heard.
    pub fn stop_listening(&self) {
        // It fails only where there is nobody any more.
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

    /// Waits until the other end has closed the connection: its process has ended, or wants nothing more. False when it
    /// has not before `deadline_ns`.
    pub fn closed_before(&self, deadline_ns: u64) -> bool {
        while !pass::hung_up(&self.stream) {
            let Ok(left) = left(deadline_ns) else { return false };
            std::thread::sleep(left.min(LOOK_EVERY));
        }
        true
    }
}

/// Time until the deadline; an error past it.
fn left(deadline_ns: u64) -> Result<Duration, LinkError> {
    match deadline_ns.saturating_sub(Clock::mono_ns()) {
        0 => Err(LinkError::Late),
        ns => Ok(Duration::from_nanos(ns)),
    }
}
