//! Passes file descriptors between processes over a unix socket, and identifies the peer process. Linux only.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::time::Duration;

/// Most descriptors of one message: the kernel accepts 253.
pub const DESCRIPTORS_MAX: usize = 250;

/// Error number: this user has too many descriptors in flight, so no more can be sent now.
pub const TOO_MANY_IN_FLIGHT: i32 = libc::ETOOMANYREFS;

/// Room for the control data of this many descriptors, in words that align it.
const CONTROL_WORDS: usize = 160;
// SAFETY: the macro only computes.
const _: () = assert!(
    unsafe { libc::CMSG_SPACE(((DESCRIPTORS_MAX + 3) * size_of::<libc::c_int>()) as libc::c_uint) } as usize
        <= CONTROL_WORDS * size_of::<u64>()
);

/// The process at the other end of a unix socket, when the connection was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its process id.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
}

/// Identifies the process at the other end.
///
/// # Errors
/// When the socket is not connected to a process.
pub fn peer(socket: &UnixStream) -> io::Result<Peer> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of_val(&found) as libc::socklen_t;
    // SAFETY: the structure is borrowed mutably for the call, which writes no more than `len`.
    super::handle::checked(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            ptr::from_mut(&mut found).cast(),
            &mut len,
        )
    })?;
    let pid = u32::try_from(found.pid).map_err(|_none| io::Error::from(io::ErrorKind::NotConnected))?;
    Ok(Peer { pid, uid: found.uid })
}

/// True once the other end has closed the connection, even when data is left to be read.
pub fn hung_up(socket: &UnixStream) -> bool {
    let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one entry, borrowed mutably for the call, which does not wait.
    let ready = unsafe { libc::poll(&mut poll, 1, 0) };
    ready > 0 && poll.revents & (libc::POLLHUP | libc::POLLERR) != 0
}

/// The effective user of this process.
pub fn own_uid() -> u32 {
    // SAFETY: no argument; it cannot fail.
    unsafe { libc::geteuid() }
}

/// Kills a process (SIGKILL). That it has ended already is not an error.
///
/// # Errors
/// When the process may not be killed.
pub fn kill(pid: u32) -> io::Result<()> {
    match super::process::signal(pid, libc::SIGKILL) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other,
    }
}

/// A handle of a process (pidfd), to wait for its end: it stays valid when another process gets the same id later.
///
/// # Errors
/// When there is no such process, or the system cannot do this (Linux before 5.3).
pub fn process(pid: u32) -> io::Result<OwnedFd> {
    let pid = libc::pid_t::try_from(pid).map_err(|_error| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: plain integers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0 as libc::c_uint) };
    let fd = libc::c_int::try_from(fd).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits for the end of a process. False when it still runs after `at_most`.
pub fn ended_within(process: &OwnedFd, at_most: Duration) -> bool {
    let mut poll = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let wait_ms = libc::c_int::try_from(at_most.as_millis()).unwrap_or(libc::c_int::MAX);
    // SAFETY: one entry, borrowed mutably for the call.
    let ready = unsafe { libc::poll(&mut poll, 1, wait_ms) };
    ready > 0
}

/// Sends bytes, and with the first of them the descriptors `passed` (at most [`DESCRIPTORS_MAX`]), which stay open
/// here as well. Returns how many bytes were accepted.
///
/// # Errors
/// Errors of sendmsg; `InvalidInput` for too many descriptors, or for descriptors without bytes.
pub fn send_with(socket: &UnixStream, bytes: &[u8], passed: &[BorrowedFd<'_>]) -> io::Result<usize> {
    if passed.len() > DESCRIPTORS_MAX || bytes.is_empty() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut control = [0u64; CONTROL_WORDS];
    let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut message = header(&mut vector);
    if !passed.is_empty() {
        let numbers: Vec<libc::c_int> = passed.iter().map(AsRawFd::as_raw_fd).collect();
        let len = size_of_val(numbers.as_slice()) as libc::c_uint;
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: the macros only compute; the space is within `control`, as asserted above.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(len) } as _;
        // SAFETY: control data is set and has room for one header with `len` bytes behind it, so the first header and
        // its data are inside `control`, which is zeroed and aligned for it.
        unsafe {
            let first = libc::CMSG_FIRSTHDR(&message);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(len) as _;
            ptr::copy_nonoverlapping(
                numbers.as_ptr().cast::<u8>(),
                libc::CMSG_DATA(first),
                size_of_val(numbers.as_slice()),
            );
        }
    }
    // SAFETY: the header points to a vector over borrowed bytes, which sendmsg only reads, and to control data that
    // lives until the call is over.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_negative| io::Error::last_os_error())
}

/// Receives bytes, and appends the descriptors that came with them to `passed`, with close-on-exec set. Returns how
/// many bytes arrived; 0 at the end of the stream.
///
/// # Errors
/// Errors of recvmsg; `Other` when this process had no room for all descriptors that arrived.
pub fn receive_with(socket: &UnixStream, into: &mut [u8], passed: &mut Vec<OwnedFd>) -> io::Result<usize> {
    let mut control = [0u64; CONTROL_WORDS];
    let mut vector = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut message = header(&mut vector);
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the header points to a vector over bytes that are borrowed mutably and to control data of ours, both
    // valid for the whole call and of the lengths given.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) };
    let got = usize::try_from(got).map_err(|_negative| io::Error::last_os_error())?;
    // SAFETY: the kernel has laid out whole headers within the length that it left in `message`; the macros walk them.
    // Each number of an SCM_RIGHTS header is a new descriptor that nobody else owns.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(&message);
        while !next.is_null() {
            if (*next).cmsg_level == libc::SOL_SOCKET && (*next).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*next).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let data = libc::CMSG_DATA(next).cast::<libc::c_int>();
                for at in 0..bytes / size_of::<libc::c_int>() {
                    passed.push(OwnedFd::from_raw_fd(data.add(at).read_unaligned()));
                }
            }
            next = libc::CMSG_NXTHDR(&message, next);
        }
    }
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::other(
            "this process has no room for the descriptors that it is given (`ulimit -n`)",
        ));
    }
    Ok(got)
}

/// A header without name and control data, for the one vector that it points to.
fn header(vector: &mut libc::iovec) -> libc::msghdr {
    // SAFETY: the structure is integers and pointers (and padding on some platforms): all zeros is a valid value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    header
}

#[test]
fn descriptors_arrive_with_their_bytes_and_in_order() {
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    let (here, there) = UnixStream::pair().expect("a pair of our own");
    assert_eq!(peer(&here).expect("it is connected"), Peer { pid: std::process::id(), uid: own_uid() });
    let files: Vec<std::fs::File> = (0..DESCRIPTORS_MAX)
        .map(|at| {
            let mut file = tempfile::tempfile().expect("a file of our own");
            write!(file, "file {at}").expect("it can be written");
            file.rewind().expect("it can be read again");
            file
        })
        .collect();
    let passed: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
    assert_eq!(send_with(&here, b"with all", &passed).expect("they leave"), 8);
    assert_eq!(send_with(&here, b"none", &[]).expect("it leaves"), 4);
    let (mut bytes, mut got) = ([0; 64], Vec::new());
    assert_eq!(
        receive_with(&there, &mut bytes, &mut got).expect("descriptors arrive"),
        8,
        "a border between bytes, too"
    );
    assert_eq!(got.len(), DESCRIPTORS_MAX);
    for (at, fd) in got.drain(..).enumerate() {
        let mut text = String::new();
        std::fs::File::from(fd).read_to_string(&mut text).expect("it is open");
        assert_eq!(text, format!("file {at}"));
    }
    assert_eq!(receive_with(&there, &mut bytes, &mut got).expect("bytes arrive"), 4);
    let too_many = vec![here.as_fd(); DESCRIPTORS_MAX + 1];
    assert!(send_with(&here, b"x", &too_many).is_err() && send_with(&here, b"", &[]).is_err());
    there.shutdown(std::net::Shutdown::Read).expect("it is connected");
    assert!(!hung_up(&there), "the other end is open");
    drop(here);
    assert_eq!(receive_with(&there, &mut bytes, &mut got).expect("an end"), 0);
    assert!(got.is_empty());
    // A process that another test has just forked has every descriptor until it executes another program.
    let hangs_up = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        hung_up(&there)
    });
    assert!(hangs_up, "the other end is closed");
}

#[test]
fn the_end_of_a_process_is_detected() {
    let mut child = std::process::Command::new("cat");
    let mut child = child.stdin(std::process::Stdio::piped()).spawn().expect("there is a cat");
    let seen = process(child.id()).expect("it runs");
    assert!(!ended_within(&seen, Duration::ZERO), "it waits for its input");
    drop(child.stdin.take());
    assert!(ended_within(&seen, Duration::from_secs(60)), "it has ended and was not waited for");
    assert!(child.wait().expect("it is our child").success() && ended_within(&seen, Duration::ZERO));
    assert!(process(u32::MAX).is_err());
}
