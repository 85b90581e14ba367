//! Portable packet reader and writer with one system call per packet, for systems without recvmmsg.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};

use model::Span;
use model::limits::DATAGRAM_BYTES_MAX;

use super::{BorrowedFd, PACKETS_MAX, Packets, Senders, Wait};

/// Receives datagrams in batches into an arena of its own. For UDP and unix datagram sockets.
#[derive(Debug)]
pub struct PacketReader {
    arena: Vec<u8>,
    slots: usize,
    /// How many of them a call uses.
    used: usize,
    spans: Vec<Span>,
    truncated: Vec<u16>,
    senders: Vec<Option<SocketAddr>>,
    peers: Vec<Option<IpAddr>>,
}

impl PacketReader {
    /// A reader of at most `slots` packets per call (clamped to `1 ..= PACKETS_MAX`).
    ///
    /// # Errors
    /// None; the Linux reader may have one.
    pub fn new(slots: usize) -> io::Result<PacketReader> {
        let slots = slots.clamp(1, PACKETS_MAX);
        // One byte more than the longest datagram detects a truncated one: not every system reports MSG_TRUNC.
        let arena = vec![0; slots * DATAGRAM_BYTES_MAX + 1];
        Ok(PacketReader {
            arena,
            slots,
            used: slots,
            spans: Vec::new(),
            truncated: Vec::new(),
            senders: Vec::new(),
            peers: Vec::new(),
        })
    }

    /// Limits the packets of later calls (clamped to `1 ..=` the number of slots).
    pub fn take_at_most(&mut self, packets: usize) {
        self.used = packets.clamp(1, self.slots);
    }

    /// Receives the packets queued at `socket`, at most one per slot; blocks for the first one only.
    ///
    /// # Errors
    /// Errors of recv, except that nothing is queued.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, wait: Wait) -> io::Result<Packets<'_>> {
        self.receive_into_arena(socket, wait, false)
    }

    /// The same, and each packet's sender is stored.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn receive_named(&mut self, socket: BorrowedFd<'_>, wait: Wait) -> io::Result<Packets<'_>> {
        self.receive_into_arena(socket, wait, true)
    }

    /// The same, with the address of each packet's sender.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn receive_with_peers(&mut self, socket: BorrowedFd<'_>, wait: Wait) -> io::Result<Packets<'_>> {
        let more = self.receive_into_arena(socket, wait, true)?.more;
        self.peers.extend(self.senders.iter().map(|sender| sender.map(|from| from.ip())));
        Ok(self.received(more))
    }

    fn receive_into_arena(
        &mut self,
        socket: BorrowedFd<'_>,
        wait: Wait,
        named: bool,
    ) -> io::Result<Packets<'_>> {
        self.spans.clear();
        self.truncated.clear();
        self.senders.clear();
        self.peers.clear();
        let mut at = 0;
        for slot in 0..self.used {
            let wait = if slot == 0 { wait } else { Wait::No };
            let room = &mut self.arena[at..][..DATAGRAM_BYTES_MAX + 1];
            let got = if named {
                receive_one_from(socket, room, wait)
            } else {
                receive_one(socket, room, wait).map(|got| (got, None))
            };
            let (got, sender) = match got {
                Ok(got) => got,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => break,
                    // Windows reports to a UDP receiver that its own answer was sent to a closed port.
                    io::ErrorKind::ConnectionReset => break,
                    _ if slot > 0 => break,
                    _ => return Err(error),
                },
            };
            if got > DATAGRAM_BYTES_MAX {
                self.truncated.push(slot as u16);
            }
            let len = got.min(DATAGRAM_BYTES_MAX);
            self.spans.push(Span::new(at, len));
            if named {
                self.senders.push(sender);
            }
            at += len;
        }
        Ok(self.received(self.spans.len() == self.used))
    }

    /// The result of the last call.
    fn received(&self, more: bool) -> Packets<'_> {
        Packets {
            bytes: &self.arena,
            spans: &self.spans,
            truncated: &self.truncated,
            peers: &self.peers,
            senders: Senders::Addresses(&self.senders),
            more,
        }
    }
}

/// Sends datagrams on connected sockets, UDP or unix.
#[derive(Debug)]
pub struct PacketWriter {
    slots: usize,
}

impl PacketWriter {
    /// A writer of at most `slots` packets per call (clamped to `1 ..= PACKETS_MAX`).
    pub fn new(slots: usize) -> PacketWriter {
        PacketWriter { slots: slots.clamp(1, PACKETS_MAX) }
    }

    /// Selects the socket of the next calls; needed by the Linux writer only.
    pub fn begin(&mut self, _socket: BorrowedFd<'_>) {}

    /// True while packets may be sent as segments of longer messages: never here.
    pub fn segments(&self) -> bool {
        false
    }

    /// Sends the first of `packets` (spans of `bytes`), as many as there are slots and as the socket accepts now.
    /// Returns how many.
    ///
    /// # Errors
    /// The error of the first packet.
    pub fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        bytes: &[u8],
        packets: &[Span],
        wait: Wait,
    ) -> io::Result<usize> {
        for (sent, span) in packets.iter().take(self.slots).enumerate() {
            if let Err(error) = send_one(socket, span.of(bytes), wait) {
                return if sent > 0 { Ok(sent) } else { Err(error) };
            }
        }
        Ok(packets.len().min(self.slots))
    }
}

#[cfg(unix)]
fn receive_one(socket: BorrowedFd<'_>, room: &mut [u8], wait: Wait) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    let flags = if wait == Wait::Yes { 0 } else { libc::MSG_DONTWAIT };
    // SAFETY: the buffer is borrowed mutably for the call and its length is passed.
    let got = unsafe { libc::recv(socket.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), flags) };
    usize::try_from(got).map_err(|_negative| io::Error::last_os_error())
}

/// The same, with its sender; `None` on unix sockets.
fn receive_one_from(
    socket: BorrowedFd<'_>,
    room: &mut [u8],
    wait: Wait,
) -> io::Result<(usize, Option<SocketAddr>)> {
    #[cfg(unix)]
    let flags = if wait == Wait::Yes { 0 } else { libc::MSG_DONTWAIT };
    #[cfg(windows)]
    let flags = 0;
    // SAFETY: initialised bytes are valid as bytes that may not be, and the call only writes initialised ones.
    let room = unsafe { &mut *(std::ptr::from_mut(room) as *mut [MaybeUninit<u8>]) };
    let (got, name) = socket2::SockRef::from(&socket).recv_from_with_flags(room, flags)?;
    let from = name.as_socket().map(|from| SocketAddr::new(from.ip().to_canonical(), from.port()));
    Ok((got, from))
}

#[cfg(unix)]
fn send_one(socket: BorrowedFd<'_>, packet: &[u8], wait: Wait) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let flags = if wait == Wait::Yes { 0 } else { libc::MSG_DONTWAIT };
    // SAFETY: the bytes are borrowed for the call and their length is passed.
    let sent = unsafe { libc::send(socket.as_raw_fd(), packet.as_ptr().cast(), packet.len(), flags) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Windows has no flag for a single non-blocking call: the daemon's sockets are in non-blocking mode, so that no call
/// blocks, whatever `wait` is.
#[cfg(windows)]
fn receive_one(socket: BorrowedFd<'_>, room: &mut [u8], _wait: Wait) -> io::Result<usize> {
    use std::io::Read;
    (&mut &*socket2::SockRef::from(&socket)).read(room)
}

#[cfg(windows)]
fn send_one(socket: BorrowedFd<'_>, packet: &[u8], _wait: Wait) -> io::Result<()> {
    socket2::SockRef::from(&socket).send(packet).map(|_all| ())
}

/// Opens a file. Nothing can block here.
///
/// # Errors
/// When it cannot be opened.
#[cfg(not(unix))]
pub fn open_at_once(
    options: &mut std::fs::OpenOptions,
    path: &std::path::Path,
) -> std::io::Result<std::fs::File> {
    options.open(path)
}

/// Not checked here: the operation itself reports missing permissions.
///
/// # Errors
/// None; systems with permissions may have one.
#[cfg(not(unix))]
pub fn may_change(_path: &std::path::Path) -> io::Result<()> {
    Ok(())
}

/// Pipes have no file names on this system.
#[cfg(not(unix))]
pub fn is_pipe(_about: &std::fs::Metadata) -> bool {
    false
}
