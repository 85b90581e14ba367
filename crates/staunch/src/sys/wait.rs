//! Sleeping until a few sockets can be read, and being woken from another thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// One socket that [`wait_readable`] looks at.
#[derive(Clone, Copy, Debug)]
pub struct Watch<'a> {
    /// The socket, pipe or waker.
    pub on: BorrowedFd<'a>,
    /// Set by the call: there is something to read, or an error or an end of stream that reading will report.
    pub readable: bool,
}

impl<'a> Watch<'a> {
    /// Watches `on`.
    pub fn new(on: &'a impl AsFd) -> Watch<'a> {
        Watch { on: on.as_fd(), readable: false }
    }
}

/// Sleeps until one of `watches` can be read, or for `timeout_ns` (rounded up to milliseconds; `None` for ever).
/// Says how many can be read: 0 after the time-out or a signal.
///
/// # Errors
/// When the kernel is out of memory.
pub fn wait_readable(watches: &mut [Watch<'_>], timeout_ns: Option<u64>) -> io::Result<usize> {
    let poll =
        |watch: &Watch<'_>| libc::pollfd { fd: watch.on.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut polls: Vec<libc::pollfd> = watches.iter().map(poll).collect();
    let timeout_ms = match timeout_ns {
        None => -1,
        Some(ns) => libc::c_int::try_from(ns.div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX),
    };
    // SAFETY: the array is borrowed mutably for the call and has as many entries as the call is told.
    let ready =
        super::checked(unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, timeout_ms) });
    let ready = match ready {
        Ok(ready) => ready as usize,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
        Err(error) => return Err(error),
    };
    for (watch, poll) in watches.iter_mut().zip(&polls) {
        watch.readable = ready > 0 && poll.revents != 0;
    }
    Ok(ready)
}

/// Wakes a thread that sleeps in [`wait_readable`]. Shared by reference between the two.
#[derive(Debug)]
pub struct Waker {
    #[cfg(target_os = "linux")]
    event: std::os::fd::OwnedFd,
    #[cfg(not(target_os = "linux"))]
    pair: (std::os::unix::net::UnixDatagram, std::os::unix::net::UnixDatagram),
}

#[cfg(target_os = "linux")]
impl Waker {
    /// A waker that nobody has called yet.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Waker> {
        use std::os::fd::FromRawFd;
        // SAFETY: no pointer is passed.
        let event = super::checked(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })?;
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Waker { event: unsafe { std::os::fd::OwnedFd::from_raw_fd(event) } })
    }

    /// Makes the sleeper wake up, now or when it next sleeps. Calls before it drains count as one.
    pub fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight readable bytes, as an eventfd wants them. It can only fail when the count is full, and then
        // the sleeper is awake already.
        unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Forgets the calls so far; the sleeper does so after it woke, before it looks for its reason.
    pub fn drain(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight writable bytes, as an eventfd wants them. It can only fail when nobody has called.
        unsafe { libc::read(self.event.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

#[cfg(not(target_os = "linux"))]
impl Waker {
    /// A waker that nobody has called yet.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Waker> {
        let pair = std::os::unix::net::UnixDatagram::pair()?;
        pair.0.set_nonblocking(true)?;
        pair.1.set_nonblocking(true)?;
        Ok(Waker { pair })
    }

    /// Makes the sleeper wake up, now or when it next sleeps. Calls before it drains count as one.
    pub fn wake(&self) {
        // A full socket means that the sleeper is awake already.
        let _full = self.pair.1.send(&[1]);
    }

    /// Forgets the calls so far.
    pub fn drain(&self) {
        let mut byte = [0; 1];
        while self.pair.0.recv(&mut byte).is_ok() {}
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        #[cfg(target_os = "linux")]
        return self.event.as_fd();
        #[cfg(not(target_os = "linux"))]
        return self.pair.0.as_fd();
    }
}
