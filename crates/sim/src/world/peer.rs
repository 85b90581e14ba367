//! Simulated endpoints: a peer with stream connections, one for datagrams, and a file on a disk.
//!
//! A stream peer simulates both kernels and the program at the other end. Its *buffer* contains the bytes that our
//! kernel has accepted and the program has not read. Read bytes are acknowledged at once, or a little later if
//! [`Weather`] says so. When a connection breaks, the buffer is lost; only the count of unacknowledged bytes shows how
//! much that was. Without [`Weather`], nothing is random: every peer is as fast and as reliable as its state.

use std::collections::{BTreeMap, VecDeque};

use deliver::datagram::SendError;
use deliver::file::{RotationStep, rotation};

use super::arrivals::{Arrived, Cutter, Reading};
use crate::random::Random;

/// Largest UDP packet over IPv4.
const UDP_BYTES_MAX: usize = 65_507;

/// The state of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Accepts everything.
    Up,
    /// Rejects connections and packets; a disk fails to write.
    Down,
    /// Accepts connections but reads nothing.
    Hang,
}

/// Random small faults: partial writes, slow reads and slow acknowledgements.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    pub(crate) random: Random,
    /// Bytes that the kernel accepts while the peer does not read.
    pub(crate) buffer_max: usize,
}

/// The result of a connection attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connecting {
    Made,
    Refused,
    /// No answer.
    Silent,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    Took(usize),
    /// No room now.
    Full,
    /// The connection has ended.
    Broken,
}

/// An endpoint of stream connections.
#[derive(Clone, Debug)]
pub(crate) struct StreamPeer {
    pub(crate) state: State,
    pub(crate) connected: bool,
    /// Rejected connections.
    pub(crate) attempts: u64,
    /// Break the connection after this many more bytes.
    pub(crate) cut_after: Option<u64>,
    pub(crate) weather: Option<Weather>,
    buffer: VecDeque<u8>,
    /// Read, but not acknowledged yet.
    unacked: u64,
    cutter: Cutter,
    pub(crate) arrived: VecDeque<Arrived>,
}

impl StreamPeer {
    pub(crate) fn new(reading: Reading) -> StreamPeer {
        StreamPeer {
            state: State::Up,
            connected: false,
            attempts: 0,
            cut_after: None,
            weather: None,
            buffer: VecDeque::new(),
            unacked: 0,
            cutter: Cutter::new(reading),
            arrived: VecDeque::new(),
        }
    }

    pub(crate) fn connect(&mut self) -> Connecting {
        if self.state == State::Down {
            self.attempts += 1;
            return Connecting::Refused;
        }
        if self.weather.as_mut().is_some_and(|weather| weather.random.chance(5)) {
            return Connecting::Silent;
        }
        self.connected = true;
        Connecting::Made
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Writing {
        if !self.connected {
            return Writing::Broken;
        }
        let room = match (&mut self.weather, self.state) {
            (None, State::Up) => bytes.len(),
            (None, _) => 0,
            (Some(weather), _) => {
                let room = weather.buffer_max.saturating_sub(self.buffer.len());
                let part = weather.random.between(1, bytes.len() as u64) as usize;
                if weather.random.chance(50) { part.min(room) } else { room }
            }
        };
        let taken = room.min(bytes.len());
        if taken == 0 {
            return Writing::Full;
        }
        self.buffer.extend(&bytes[..taken]);
        self.read();
        Writing::Took(taken)
    }

    /// The program at the other end reads its data, perhaps slowly.
    pub(crate) fn read(&mut self) {
        if self.state != State::Up || !self.connected {
            return;
        }
        let mut len = self.buffer.len();
        if let Some(weather) = &mut self.weather {
            self.unacked = 0;
            if weather.random.chance(30) {
                len = weather.random.below(len as u64 + 1) as usize;
            }
        }
        if let Some(left) = &mut self.cut_after {
            len = len.min(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= len as u64;
        }
        self.take(len);
        if let Some(weather) = &mut self.weather
            && weather.random.chance(30)
        {
            self.unacked = weather.random.below(len as u64 + 1);
        }
    }

    fn take(&mut self, len: usize) {
        let bytes: Vec<u8> = self.buffer.drain(..len).collect();
        if !bytes.is_empty() {
            self.cutter.push(&bytes, &mut self.arrived);
        }
    }

    /// True when the connection must break now.
    pub(crate) fn is_cut(&self) -> bool {
        self.connected && self.cut_after == Some(0)
    }

    /// Bytes of the connection that the peer has not acknowledged.
    pub(crate) fn unacked(&self) -> u64 {
        self.buffer.len() as u64 + self.unacked
    }

    /// The connection ends. Some of the buffered bytes may still arrive.
    pub(crate) fn end(&mut self) {
        self.connected = false;
        self.cut_after = None;
        if let Some(weather) = &mut self.weather {
            let len = weather.random.below(self.buffer.len() as u64 + 1) as usize;
            self.take(len);
        }
        self.buffer.clear();
        self.unacked = 0;
        self.cutter.end();
    }

    /// The connection ends in order: all bytes accepted by the kernel are read.
    pub(crate) fn end_read(&mut self) {
        if self.state == State::Up {
            let all = self.buffer.len();
            self.take(all);
        }
        self.end();
    }
}

/// An endpoint of datagrams.
#[derive(Clone, Debug)]
pub(crate) struct DatagramPeer {
    pub(crate) state: State,
    pub(crate) weather: Option<Weather>,
    /// An ICMP error has arrived.
    refusal: bool,
    cutter: Cutter,
    pub(crate) arrived: VecDeque<Arrived>,
    /// Packets sent to a closed port.
    pub(crate) lost: u64,
    /// The same over all processes.
    pub(crate) attempts: u64,
}

impl DatagramPeer {
    pub(crate) fn new() -> DatagramPeer {
        DatagramPeer {
            state: State::Up,
            weather: None,
            refusal: false,
            cutter: Cutter::new(Reading::Packets),
            arrived: VecDeque::new(),
            lost: 0,
            attempts: 0,
        }
    }

    /// Another process sends: errors for the predecessor's packets end with its socket.
    pub(crate) fn restart(&mut self) {
        (self.refusal, self.lost) = (false, 0);
    }

    /// The pending error of the socket, if any.
    pub(crate) fn take_refusal(&mut self) -> Option<SendError> {
        std::mem::take(&mut self.refusal).then_some(SendError::Refused)
    }

    /// Sends packets from the front. Returns how many were sent, and the error of the next one.
    pub(crate) fn send<'a>(&mut self, packets: impl Iterator<Item = &'a [u8]>) -> (usize, Option<SendError>) {
        let mut left = 0;
        for packet in packets {
            if let Some(refusal) = self.take_refusal() {
                return (left, Some(refusal));
            }
            if packet.len() > UDP_BYTES_MAX {
                return (left, Some(SendError::TooBig));
            }
            let blocked = self.weather.as_mut().is_some_and(|weather| weather.random.chance(10));
            match self.state {
                _ if blocked => return (left, Some(SendError::WouldBlock)),
                State::Hang => return (left, Some(SendError::WouldBlock)),
                State::Up => self.cutter.push(packet, &mut self.arrived),
                State::Down => {
                    self.lost += 1;
                    self.attempts += 1;
                    self.refusal = true;
                }
            }
            left += 1;
        }
        (left, None)
    }
}

/// A file with its rotated predecessors; of these only the sizes are kept.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) full: bool,
    /// Calls that failed because the file is full.
    pub(crate) attempts: u64,
    pub(crate) weather: Option<Weather>,
    /// The last line has no end, and its writer has ended.
    torn_tail: bool,
    sizes: BTreeMap<u32, u64>,
    cutter: Cutter,
    pub(crate) arrived: VecDeque<Arrived>,
}

impl Disk {
    pub(crate) fn new(reading: Reading) -> Disk {
        Disk {
            full: false,
            attempts: 0,
            weather: None,
            torn_tail: false,
            sizes: BTreeMap::new(),
            cutter: Cutter::new(reading),
            arrived: VecDeque::new(),
        }
    }

    /// The writer has ended, perhaps in the middle of a line.
    pub(crate) fn restart(&mut self) {
        self.torn_tail |= self.cutter.in_line();
    }

    /// The file's size and whether its last line is complete. A missing file is created. `None` when the disk fails.
    pub(crate) fn open(&mut self) -> Option<(u64, bool)> {
        self.attempts += u64::from(self.full);
        (!self.full).then(|| (*self.sizes.entry(0).or_default(), !self.cutter.in_line()))
    }

    /// Bytes written; none when the disk fails.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.full {
            self.attempts += 1;
            return None;
        }
        let len = match &mut self.weather {
            Some(weather) => {
                if weather.random.chance(3) {
                    return None;
                }
                weather.random.between(1, bytes.len() as u64) as usize
            }
            None => bytes.len(),
        };
        *self.sizes.entry(0).or_default() += len as u64;
        let mut line = &bytes[..len];
        if self.torn_tail
            && let Some(rest) = line.strip_prefix(b"\n")
        {
            // The unfinished line of a dead process counts as a line that was never expected.
            self.cutter.forget();
            line = rest;
        }
        self.torn_tail &= len == 0;
        self.cutter.push(line, &mut self.arrived);
        Some(len)
    }

    /// Renames the files of a rotation; false when the disk fails.
    pub(crate) fn rotate(&mut self, files_max: u32) -> bool {
        if self.full {
            self.attempts += 1;
            return false;
        }
        let steps: Vec<RotationStep> =
            rotation(files_max, |number| self.sizes.contains_key(&number)).collect();
        for step in steps {
            match step {
                RotationStep::Remove(number) => drop(self.sizes.remove(&number)),
                RotationStep::Rename(from, to) => {
                    let size = self.sizes.remove(&from).unwrap_or(0);
                    self.sizes.insert(to, size);
                }
            }
        }
        if std::mem::take(&mut self.torn_tail) {
            self.cutter.forget();
        }
        self.cutter.end();
        true
    }

    /// Lines that a rotation cut in two.
    pub(crate) fn torn(&self) -> u64 {
        self.cutter.torn
    }
}
