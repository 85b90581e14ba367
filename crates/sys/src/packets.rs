//! Many datagrams per system call: recvmmsg into one arena, sendmmsg out of one.
//!
//! The headers are prepared once. The kernel changes only its results (`msg_len`, `msg_flags`, and `msg_controllen`,
//! which stays 0 because no control data is requested; `msg_namelen` is unchanged because there is no name), so no
//! header needs to be reset between calls. Lengths are read only for the slots that the call filled, so an old length
//! is never used.
//!
//! Not here: sleeping (see `wait`), socket options (see `socket`).

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use model::Span;
use model::limits::DATAGRAM_BYTES_MAX;

use super::{PACKETS_MAX, Packets, Senders, Wait};

/// Bytes between the starts of two slots of a reader's arena.
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

/// A sender's address as the kernel writes it.
pub(super) type Name = libc::sockaddr_storage;

/// Receives datagrams in batches into an arena of its own. For UDP and unix datagram sockets.
#[derive(Debug)]
pub struct PacketReader {
    arena: Arena,
    headers: Box<[libc::mmsghdr]>,
    /// How many of them a call uses.
    used: usize,
    /// The vectors that `headers` point to; they must live as long.
    _vectors: Box<[libc::iovec]>,
    /// Buffers for the senders' addresses, allocated at the first request.
    names: Box<[Name]>,
    /// This call requests the senders.
    named: bool,
    spans: Vec<Span>,
    truncated: Vec<u16>,
    peers: Vec<Option<IpAddr>>,
}

// SAFETY: the pointers in the headers lead to memory that the reader owns and that does not move with it.
unsafe impl Send for PacketReader {}

impl PacketReader {
    /// A reader of at most `slots` packets per call (clamped to `1 ..= PACKETS_MAX`). The arena uses `slots` × 66,624
    /// bytes of address space, but memory only for pages that packets have touched.
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
        // SAFETY: the structure is integers: all zeros is a valid value, an address of no family.
        let nobody: Name = unsafe { std::mem::zeroed() };
        Ok(PacketReader {
            arena,
            headers,
            used: slots,
            _vectors: vectors,
            names: vec![nobody; slots].into_boxed_slice(),
            named: false,
            spans: Vec::with_capacity(slots),
            truncated: Vec::with_capacity(slots),
            peers: Vec::new(),
        })
    }

    /// Limits the packets of later calls (clamped to `1 ..=` the number of slots).
    pub fn take_at_most(&mut self, packets: usize) {
        self.used = packets.clamp(1, self.headers.len());
    }

    /// Receives the packets queued at `socket`, at most one per slot. No packet (would block, timeout, or a
    /// signal while waiting) is an empty result, not an error.
    ///
    /// # Errors
    /// Other errors of recvmmsg; the packets before the error were returned by an earlier call.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, wait: Wait) -> io::Result<Packets<'_>> {
        for header in &mut self.headers[..self.used] {
            header.msg_hdr.msg_name = ptr::null_mut();
            header.msg_hdr.msg_namelen = 0;
        }
        self.named = false;
        self.receive_into_arena(socket, wait)
    }

    /// The same, and the kernel stores each packet's sender; [`Packets::sender`] decodes it on demand.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn receive_named(&mut self, socket: BorrowedFd<'_>, wait: Wait) -> io::Result<Packets<'_>> {
        for (header, name) in self.headers[..self.used].iter_mut().zip(&mut self.names) {
            header.msg_hdr.msg_name = ptr::from_mut(name).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            name.ss_family = libc::AF_UNSPEC as libc::sa_family_t;
        }
        self.named = true;
        self.receive_into_arena(socket, wait)
    }

    /// The same, with the address of each packet's sender.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn receive_with_peers(&mut self, socket: BorrowedFd<'_>, wait: Wait) -> io::Result<Packets<'_>> {
        let got = self.receive_named(socket, wait)?.spans.len();
        self.peers.extend(self.names[..got].iter().map(|name| sender(name).map(|from| from.ip())));
        Ok(self.received(got))
    }

    /// Receives, with the senders if the headers have buffers for them.
    fn receive_into_arena(&mut self, socket: BorrowedFd<'_>, wait: Wait) -> io::Result<Packets<'_>> {
        self.spans.clear();
        self.truncated.clear();
        self.peers.clear();
        let flags = match wait {
            Wait::No => libc::MSG_DONTWAIT,
            Wait::Yes => libc::MSG_WAITFORONE,
        };
        // SAFETY: the headers and what they point to, vectors and names, are owned by `self`, borrowed mutably for
        // the whole call, and at least as many as the count passed. No timeout is passed.
        let got = super::handle::checked(unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.used as libc::c_uint,
                flags as _,
                ptr::null_mut(),
            )
        });
        let got = match got {
            Ok(got) => got as usize,
            Err(error) if is_nothing_to_read(&error) => 0,
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
        Ok(self.received(got))
    }

    /// The result of the last call.
    fn received(&self, got: usize) -> Packets<'_> {
        Packets {
            bytes: self.arena.bytes(),
            spans: &self.spans,
            truncated: &self.truncated,
            peers: &self.peers,
            senders: if self.named { Senders::Names(&self.names[..got]) } else { Senders::NotNoted },
            more: got == self.used,
        }
    }
}

/// The address that the kernel wrote; `None` for a unix socket, or when nothing was written.
pub(super) fn sender(name: &Name) -> Option<SocketAddr> {
    match libc::c_int::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the kernel wrote an address of this family, and the storage is as large as any and as aligned.
            let name = unsafe { &*ptr::from_ref(name).cast::<libc::sockaddr_in>() };
            let port = u16::from_be(name.sin_port);
            Some(SocketAddrV4::new(u32::from_be(name.sin_addr.s_addr).into(), port).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let name = unsafe { &*ptr::from_ref(name).cast::<libc::sockaddr_in6>() };
            let port = u16::from_be(name.sin6_port);
            let from = SocketAddrV6::new(name.sin6_addr.s6_addr.into(), port, 0, name.sin6_scope_id);
            let is_v4 = from.ip().to_ipv4_mapped();
            Some(is_v4.map_or(from.into(), |ip| SocketAddrV4::new(ip, port).into()))
        }
        _ => None,
    }
}

/// Most packets in one message that the kernel segments; older kernels accept no more.
const SEGMENTS_MAX: usize = 64;

/// Most bytes of such a message: the longest datagram.
const SEGMENTED_BYTES_MAX: usize = 65_507;

/// Fewer packets than this are sent one by one: segmenting a message costs as much as it saves.
const SEGMENTS_MIN: usize = 3;

/// Sends datagrams in batches on connected sockets, UDP or unix.
///
/// On a UDP socket passed to [`Self::begin`], consecutive packets of one size are sent as one message that the kernel
/// segments (UDP_SEGMENT), which saves each of them a pass through the network stack. If the system rejects such a
/// message, it is not tried again for that socket: its packets are sent one by one, at once.
#[derive(Debug)]
pub struct PacketWriter {
    headers: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
    controls: Box<[SegmentControl]>,
    /// Number of packets in each message of the current call.
    counts: Box<[usize]>,
    /// Longest packet that may be part of a longer message; 0 for none.
    segment_bytes_max: usize,
}

// SAFETY: the headers point to vectors and control data that the writer owns and that do not move with it; where the
// vectors point is set anew in every call, before the kernel sees them.
unsafe impl Send for PacketWriter {}

impl PacketWriter {
    /// A writer of at most `slots` packets per call (clamped to `1 ..= PACKETS_MAX`).
    pub fn new(slots: usize) -> PacketWriter {
        let slots = slots.clamp(1, PACKETS_MAX);
        let empty = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        let mut vectors = vec![empty; slots].into_boxed_slice();
        PacketWriter {
            headers: vectors.iter_mut().map(header).collect(),
            vectors,
            controls: (0..slots).map(|_| SegmentControl::new()).collect(),
            counts: vec![0; slots].into_boxed_slice(),
            segment_bytes_max: 0,
        }
    }

    /// Selects the connected socket of the next calls, and asks the system whether, and up to which length, packets
    /// may be segments of longer messages. Without this call they are sent one by one.
    pub fn begin(&mut self, socket: BorrowedFd<'_>) {
        self.segment_bytes_max = super::socket::segment_bytes_max(socket).unwrap_or(0);
    }

    /// True while packets may be sent as segments of longer messages.
    pub fn segments(&self) -> bool {
        self.segment_bytes_max > 0
    }

    /// Sends the first of `packets` (spans of `bytes`), as many as there are slots and as the socket accepts now.
    /// Returns how many, at least one; the caller sends the rest with another call. Returns 0 for no packets.
    ///
    /// # Errors
    /// The error of the first packet: would block; refused (an earlier packet was sent to a closed port: this one was
    /// **not** sent); too long for the socket; … An error of a later packet only shortens the count: the system does
    /// not keep errors within a sendmmsg.
    pub fn send(
        &mut self,
        socket: BorrowedFd<'_>,
        bytes: &[u8],
        packets: &[Span],
        wait: Wait,
    ) -> io::Result<usize> {
        if packets.is_empty() {
            return Ok(0);
        }
        let flags = match wait {
            Wait::No => libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            Wait::Yes => libc::MSG_NOSIGNAL,
        };
        loop {
            let messages = self.prepare(bytes, packets);
            // SAFETY: `prepare` has set the first `messages` headers to vectors of bytes that are borrowed for the
            // whole call, and to control data of ours; sendmmsg only reads them, so the lost `const` does no harm.
            let sent = super::handle::checked(unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    self.headers.as_mut_ptr(),
                    messages as libc::c_uint,
                    flags as _,
                )
            });
            match sent {
                Ok(sent) => return Ok(self.counts[..sent as usize].iter().sum()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.counts[0] > 1 && is_segmentation_unsupported(&error) => {
                    self.segment_bytes_max = 0
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Lays out as many packets as there are slots. Returns the number of messages.
    fn prepare(&mut self, bytes: &[u8], packets: &[Span]) -> usize {
        let packets = &packets[..packets.len().min(self.vectors.len())];
        let (mut done, mut messages) = (0, 0);
        while done < packets.len() {
            let run = run_len(&packets[done..], self.segment_bytes_max);
            let vectors = fill(&mut self.vectors[done..], bytes, &packets[done..done + run]);
            let header = &mut self.headers[messages].msg_hdr;
            header.msg_iov = self.vectors[done..].as_mut_ptr();
            header.msg_iovlen = vectors as _;
            if run > 1 {
                let control = &mut self.controls[messages];
                control.segment_bytes = packets[done].len as u16;
                header.msg_control = ptr::from_mut(control).cast();
                header.msg_controllen = size_of::<SegmentControl>() as _;
            } else {
                header.msg_control = ptr::null_mut();
                header.msg_controllen = 0;
            }
            self.counts[messages] = run;
            done += run;
            messages += 1;
        }
        messages
    }
}

/// How many of `packets`, from the front, form one message: a run of one size, of which the last may be shorter but not
/// empty. At least one.
fn run_len(packets: &[Span], segment_bytes_max: usize) -> usize {
    let segment_bytes = packets[0].len as usize;
    if segment_bytes == 0 || segment_bytes > segment_bytes_max {
        return 1;
    }
    let packets_max = packets.len().min(SEGMENTS_MAX).min(SEGMENTED_BYTES_MAX / segment_bytes);
    let packets = &packets[..packets_max.max(1)];
    let same = packets.iter().take_while(|packet| packet.len as usize == segment_bytes).count();
    let run = match packets.get(same) {
        Some(last) if last.len > 0 && (last.len as usize) < segment_bytes => same + 1,
        _ => same,
    };
    if run < SEGMENTS_MIN { 1 } else { run }
}

/// Points `vectors` to the packets, one vector for adjacent ones. Returns how many vectors were used.
fn fill(vectors: &mut [libc::iovec], bytes: &[u8], packets: &[Span]) -> usize {
    let mut used: usize = 0;
    let mut end = None;
    for span in packets {
        let packet = span.of(bytes);
        match used.checked_sub(1) {
            Some(last) if end == Some(span.at) => vectors[last].iov_len += packet.len(),
            _ => {
                vectors[used] =
                    libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() };
                used += 1;
            }
        }
        end = Some(span.at + span.len);
    }
    used
}

/// Whether the error means that segmentation is impossible on this socket or path: the option is
/// unknown, the device cannot (EIO), checksums are off, or the path's MTU has shrunk below the packets' size.
fn is_segmentation_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO | libc::ENOPROTOOPT | libc::EMSGSIZE))
}

/// Control data with the segment size, in the kernel's layout (cmsg(3)).
#[derive(Debug)]
#[repr(C)]
struct SegmentControl {
    header: libc::cmsghdr,
    segment_bytes: u16,
}

// SAFETY: the macros only compute.
const _: () = unsafe {
    assert!(std::mem::offset_of!(SegmentControl, segment_bytes) == libc::CMSG_LEN(0) as usize);
    assert!(size_of::<SegmentControl>() == libc::CMSG_SPACE(2) as usize);
};

impl SegmentControl {
    fn new() -> SegmentControl {
        // SAFETY: the structure is integers (and padding on some platforms): all zeros is a valid value.
        let mut control: SegmentControl = unsafe { std::mem::zeroed() };
        // SAFETY: the macro only computes.
        control.header.cmsg_len = unsafe { libc::CMSG_LEN(2) } as _;
        control.header.cmsg_level = libc::SOL_UDP;
        control.header.cmsg_type = libc::UDP_SEGMENT;
        control
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

/// Nothing to read now: not an error.
fn is_nothing_to_read(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Zeroed memory from mmap; pages are allocated when they are written to.
#[derive(Debug)]
struct Arena {
    start: ptr::NonNull<u8>,
    len: usize,
}

impl Arena {
    fn new(len: usize) -> io::Result<Arena> {
        assert!(len > 0, "mmap rejects a length of 0");
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
