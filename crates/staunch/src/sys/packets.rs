//! Many datagrams per system call: recvmmsg into one arena, sendmmsg out of one.
//!
//! The headers are prepared once. The kernel changes only what it reports (`msg_len`, `msg_flags`, and
//! `msg_controllen`, which stays 0 because no control data is asked for; `msg_namelen` is untouched because there
//! is no name), so a call needs no re-arming at all. Lengths are read for the slots that this call filled and
//! for no other, so an old length can never be mistaken for a new one.
//!
//! Not here: sleeping (see `wait`), options of sockets (see `socket`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use model::Span;
use model::limits::DATAGRAM_BYTES_MAX;

use super::{PACKETS_MAX, Packets, Wait};

/// Distance between the starts of two slots of a reader's arena, in bytes.
///
/// Room for the longest datagram, plus 1,089 bytes so that the starts do not alias: 66,624 is 1,041 cache lines,
/// and 1,041 is odd and 17 more than a multiple of 64. The starts of 64 slots therefore fall into 64 different
/// sets of a first-level cache (64 sets of 64 bytes, by far the commonest shape), where a power of two would
/// put all of them into one set of 8 or 12 ways; in a second-level cache of 1,024 sets they lie 17 sets apart
/// and packets of a kilobyte do not meet either.
const SLOT_STRIDE: usize = 66_624;
const _: () = assert!(SLOT_STRIDE >= DATAGRAM_BYTES_MAX && SLOT_STRIDE.is_multiple_of(64));
const _: () = assert!((SLOT_STRIDE / 64) % 2 == 1, "an odd number of lines visits every set");
const _: () = assert!(PACKETS_MAX * SLOT_STRIDE <= u32::MAX as usize, "spans are 32 bits wide");
const _: () = assert!(PACKETS_MAX <= u16::MAX as usize, "places in `truncated` are 16 bits wide");

/// Receives datagrams in batches into an arena of its own. For UDP and unix datagram sockets.
#[derive(Debug)]
pub struct PacketReader {
    arena: Arena,
    headers: Box<[libc::mmsghdr]>,
    /// Where `headers` point; kept for as long as they do.
    _vectors: Box<[libc::iovec]>,
    spans: Vec<Span>,
    truncated: Vec<u16>,
}

// SAFETY: the pointers in the headers lead to memory that the reader owns and that does not move with it.
unsafe impl Send for PacketReader {}

impl PacketReader {
    /// A reader of at most `slots` packets per call (clamped to `1 ..= PACKETS_MAX`). The arena takes
    /// `slots` × 66,624 bytes of address space; of memory only what packets have touched.
    ///
    /// # Errors
    /// When the system has no memory for the arena.
    pub fn new(slots: usize) -> io::Result<PacketReader> {
        let slots = slots.clamp(1, PACKETS_MAX);
        let mut arena = Arena::new(slots * SLOT_STRIDE)?;
        let mut vectors: Box<[libc::iovec]> = arena
            .bytes_mut()
            .chunks_exact_mut(SLOT_STRIDE)
            .map(|slot| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: DATAGRAM_BYTES_MAX })
            .collect();
        let headers = vectors.iter_mut().map(header).collect();
        Ok(PacketReader {
            arena,
            headers,
            _vectors: vectors,
            spans: Vec::with_capacity(slots),
            truncated: Vec::with_capacity(slots),
        })
    }

    /// Takes the packets that wait at `socket`, at most one per slot. No packet (would block, time-out, or a
    /// signal while waiting) is an empty result, not an error.
    ///
    /// # Errors
    /// What recvmmsg says otherwise; the packets before the error have been returned by an earlier call.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, wait: Wait) -> io::Result<Packets<'_>> {
        self.spans.clear();
        self.truncated.clear();
        let flags = match wait {
            Wait::No => libc::MSG_DONTWAIT,
            Wait::Yes => libc::MSG_WAITFORONE,
        };
        // SAFETY: the headers and what they point to are owned by `self`, borrowed mutably for the whole call, and
        // as many as the call is told. No time-out is passed.
        let got = super::checked(unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                flags as _,
                ptr::null_mut(),
            )
        });
        let got = match got {
            Ok(got) => got as usize,
            Err(error) if is_pause(&error) => 0,
            Err(error) => return Err(error),
        };
        for (at, header) in self.headers[..got].iter().enumerate() {
            let len = header.msg_len as usize;
            debug_assert!(len <= DATAGRAM_BYTES_MAX, "the kernel fills no more than it was given");
            self.spans.push(Span::new(at * SLOT_STRIDE, len));
            if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                self.truncated.push(at as u16);
            }
        }
        Ok(Packets {
            bytes: self.arena.bytes(),
            spans: &self.spans,
            truncated: &self.truncated,
            more: got == self.headers.len(),
        })
    }
}

/// Sends datagrams in batches on connected sockets, UDP or unix.
#[derive(Debug)]
pub struct PacketWriter {
    headers: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
}

// SAFETY: the headers point to the vectors, which the writer owns and which do not move with it; where the
// vectors point is set anew in every call, before the kernel sees them.
unsafe impl Send for PacketWriter {}

impl PacketWriter {
    /// A writer of at most `slots` packets per call (clamped to `1 ..= PACKETS_MAX`).
    pub fn new(slots: usize) -> PacketWriter {
        let empty = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        let mut vectors = vec![empty; slots.clamp(1, PACKETS_MAX)].into_boxed_slice();
        let headers = vectors.iter_mut().map(header).collect();
        PacketWriter { headers, vectors }
    }

    /// Sends the first of `packets` (spans of `bytes`), as many as there are slots and as the socket takes now;
    /// says how many, at least one. The caller goes on with the rest. No packets: 0.
    ///
    /// # Errors
    /// The error of the first packet (an error of a later one comes with the next call): would block; refused
    /// (an earlier packet met a closed port: this one was **not** sent); too long for the socket; …
    pub fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        bytes: &[u8],
        packets: &[Span],
        wait: Wait,
    ) -> io::Result<usize> {
        let count = packets.len().min(self.vectors.len());
        if count == 0 {
            return Ok(0);
        }
        for (vector, span) in self.vectors.iter_mut().zip(packets) {
            let packet = span.of(bytes);
            *vector = libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() };
        }
        let flags = match wait {
            Wait::No => libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            Wait::Yes => libc::MSG_NOSIGNAL,
        };
        loop {
            // SAFETY: the first `count` headers point to the first `count` vectors, set above to bytes that are
            // borrowed for the whole call; sendmmsg only reads them, so the lost `const` does no harm.
            let sent = super::checked(unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    self.headers.as_mut_ptr(),
                    count as libc::c_uint,
                    flags as _,
                )
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                sent => return sent.map(|sent| sent as usize),
            }
        }
    }
}

/// A header without name and control data, for the one vector that it points to.
fn header(vector: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: the structure is integers and pointers (and padding on some platforms): all zeros is a valid value.
    let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_iov = ptr::from_mut(vector);
    header.msg_hdr.msg_iovlen = 1;
    header
}

/// Nothing to read now, which is no error.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Zeroed memory of the system's own, which becomes real where it is written to.
#[derive(Debug)]
struct Arena {
    start: ptr::NonNull<u8>,
    len: usize,
}

impl Arena {
    fn new(len: usize) -> io::Result<Arena> {
        assert!(len > 0, "mmap refuses to map nothing");
        // SAFETY: a new private mapping at an address of the system's choice; it overlaps nothing of ours.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = ptr::NonNull::new(start.cast()).expect("a mapping without MAP_FIXED is never at 0");
        Ok(Arena { start, len })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for as long as `self` lives, zeroed by the system, written only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` makes it the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, whole; no reference outlives `self`. It can only fail for arguments
        // that are not a mapping.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
