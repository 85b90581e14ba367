//! Options and kernel statistics of one socket: buffer sizes, drops, unacknowledged bytes, shutting it for packets.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;

use socket2::SockRef;

use super::BorrowedFd;

/// Memory and drops of a socket, from one system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketMemory {
    /// Bytes of received packets in the buffer, including the kernel's overhead (a small packet counts 768 bytes or
    /// more).
    pub receive_bytes: u32,
    /// Limit of `receive_bytes`, above which packets are dropped: twice the result of [`set_receive_buffer`].
    pub receive_bytes_max: u32,
    /// Packets dropped since the socket was created, because the buffer was full (or a checksum was wrong). Wraps
    /// around: see [`new_drops`].
    pub drops: u32,
}

/// Packets dropped between two readings of [`SocketMemory::drops`], across a wrap of the kernel's 32 bits.
pub fn new_drops(before: u32, after: u32) -> u64 {
    u64::from(after.wrapping_sub(before))
}

/// Requests a receive buffer of `bytes` and returns the granted size in the same unit.
///
/// First tries to exceed the system's limit (needs `CAP_NET_ADMIN`), then stays within it (`net.core.rmem_max`). The
/// kernel doubles the size for its overhead and reports the doubled size; the result here is halved again, so that it
/// can be compared with `bytes`: a smaller result means that the user should raise the sysctl.
///
/// # Errors
/// When the socket has no such option. A smaller size than requested is not an error.
pub fn set_receive_buffer(socket: BorrowedFd<'_>, bytes: u64) -> io::Result<u64> {
    let wanted = i32::try_from(bytes.min(RECEIVE_BUFFER_BYTES_MAX)).expect("clamped to half of it");
    #[cfg(target_os = "linux")]
    let forced = set_option(socket, libc::SO_RCVBUFFORCE, wanted).is_ok();
    #[cfg(not(target_os = "linux"))]
    let forced = false;
    let plain = SockRef::from(&socket);
    if !forced {
        plain.set_recv_buffer_size(usize::try_from(wanted).expect("made of an unsigned number"))?;
    }
    let doubled = if cfg!(target_os = "linux") { 2 } else { 1 };
    Ok(plain.recv_buffer_size()? as u64 / doubled)
}

/// Largest receive buffer that can be requested: the kernel doubles it within a signed 32-bit number.
pub const RECEIVE_BUFFER_BYTES_MAX: u64 = i32::MAX as u64 / 2;

/// Memory and drops of `socket`.
///
/// # Errors
/// On kernels before 4.12 and on systems other than Linux, which do not report it.
#[cfg(target_os = "linux")]
pub fn socket_memory(socket: BorrowedFd<'_>) -> io::Result<SocketMemory> {
    /// Number of values in the kernel's answer, and the indexes of those used (`SK_MEMINFO_…`).
    const NUMBERS: usize = 9;
    const RECEIVED: usize = 0;
    const RECEIVE_MAX: usize = 1;
    const DROPS: usize = 8;
    let mut numbers = [0; NUMBERS];
    let got = option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut numbers)?;
    if got <= DROPS {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(SocketMemory {
        receive_bytes: numbers[RECEIVED],
        receive_bytes_max: numbers[RECEIVE_MAX],
        drops: numbers[DROPS],
    })
}

/// Memory and drops of `socket`: not reported on this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn socket_memory(_socket: BorrowedFd<'_>) -> io::Result<SocketMemory> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes a datagram socket permanently reject new packets. Packets in its buffer can still be read, and senders get
/// an error (connection refused over UDP, a broken pipe on a unix socket), instead of losing their packets until the
/// socket is closed.
///
/// This affects every process that shares the socket.
///
/// # Errors
/// When a system call fails; the socket is unchanged then.
pub fn refuse_more(socket: BorrowedFd<'_>) -> io::Result<()> {
    let socket = SockRef::from(&socket);
    let Some(mut own) = socket.local_addr()?.as_socket() else {
        return socket.shutdown(Shutdown::Read);
    };
    if own.ip().is_unspecified() {
        own.set_ip(if own.is_ipv6() { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() });
    }
    // A UDP socket with a peer receives from that peer only, and this peer is the socket itself.
    socket.connect(&own.into())
}

/// Bytes written to a connected stream socket that the peer's system has not acknowledged, sent or not.
///
/// # Errors
/// When the socket is not a stream, or the system does not report it.
#[cfg(target_os = "linux")]
pub fn unacked(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request (SIOCOUTQ, the same number as TIOCOUTQ) writes one c_int to the place given.
    super::handle::checked(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) })?;
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// Bytes that the peer's system has not acknowledged: not reported on this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn unacked(_socket: BorrowedFd<'_>) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Bytes written to a connected unix stream socket that the process at the other end has not read. `None` when that
/// is unknown until the peer's own data has been read.
///
/// The kernel's count alone is not enough: it falls to 0 when a peer closes, whether it has read the bytes or not.
/// But the kernel marks a peer as closed before it discards unread bytes. So a count is valid if the peer was still
/// open after it. If it was closed, reading shows whether it had read everything: end of stream if so, otherwise
/// `ConnectionReset`. The kernel reports that once, here or to a read or write, so do not call this again afterwards.
///
/// # Errors
/// `ConnectionReset` when the peer has closed without reading all bytes: how many is unknown.
#[cfg(target_os = "linux")]
pub fn unread(socket: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    let count = unacked(socket)?;
    if !has_hung_up(socket)? {
        return Ok(Some(count));
    }
    // The peer's own data must be read before the result.
    let sent = SockRef::from(&socket).peek(&mut [std::mem::MaybeUninit::uninit()])?;
    Ok((sent == 0).then_some(0))
}

/// Bytes that the process at the other end has not read: not reported on this system.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn unread(_socket: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// True when the peer has closed both directions of a connected socket.
#[cfg(target_os = "linux")]
fn has_hung_up(socket: BorrowedFd<'_>) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one entry, borrowed mutably for the call, and the count is 1. It does not block.
    super::handle::checked(unsafe { libc::poll(&mut poll, 1, 0) })?;
    Ok(poll.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0)
}

#[cfg(target_os = "linux")]
fn set_option(socket: BorrowedFd<'_>, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the value is a c_int, borrowed for the call, and its size is passed.
    super::handle::checked(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

/// Longest packet that may be a segment of a longer message (UDP_SEGMENT): the path's MTU, so that a packet is
/// fragmented no more than if it were sent alone.
///
/// # Errors
/// When `socket` is not a connected UDP socket, or the system does not support UDP_SEGMENT. This check is necessary:
/// kernels before 4.18 ignore the option and would send the message as one datagram.
#[cfg(target_os = "linux")]
pub(super) fn segment_bytes_max(socket: BorrowedFd<'_>) -> io::Result<usize> {
    const UDP_HEADER_BYTES: usize = 8;
    let mut number = [0; 1];
    option(socket, libc::SOL_SOCKET, libc::SO_DOMAIN, &mut number)?;
    let (level, name, ip_header_bytes) = match number[0] as libc::c_int {
        libc::AF_INET => (libc::IPPROTO_IP, libc::IP_MTU, 20),
        libc::AF_INET6 => (libc::IPPROTO_IPV6, libc::IPV6_MTU, 40),
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, &mut number)?;
    option(socket, level, name, &mut number)?;
    Ok((number[0] as usize).saturating_sub(ip_header_bytes + UDP_HEADER_BYTES).min(usize::from(u16::MAX)))
}

/// Reads an option of 32-bit numbers; returns how many the kernel wrote.
#[cfg(target_os = "linux")]
fn option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    into: &mut [u32],
) -> io::Result<usize> {
    let mut len = size_of_val(into) as libc::socklen_t;
    // SAFETY: the buffer is borrowed mutably for the call, which writes no more than `len`.
    super::handle::checked(unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, into.as_mut_ptr().cast(), &mut len)
    })?;
    Ok(len as usize / size_of::<u32>())
}
