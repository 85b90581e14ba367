//! Sleeps until one of a few sockets can be read, and wakes such a thread from another one.

use std::io;
#[cfg(unix)]
use std::os::fd::AsRawFd;

use super::{AsFd, BorrowedFd};

/// One socket that [`wait_readable`] watches.
#[derive(Clone, Copy, Debug)]
pub struct Watch<'a> {
    /// The socket, pipe or waker.
    pub on: BorrowedFd<'a>,
    /// Set by the call: reading will return data, an error or the end of the stream.
    pub readable: bool,
}

impl<'a> Watch<'a> {
    /// Watches `on`.
    pub fn new(on: &'a impl AsFd) -> Watch<'a> {
        Watch { on: on.as_fd(), readable: false }
    }
}

/// Sleeps until one of `watches` can be read, or for `timeout_ns` (rounded up to milliseconds; `None` for no timeout).
/// Returns how many can be read: 0 after the timeout or a signal.
///
/// # Errors
/// When the kernel is out of memory.
#[cfg(unix)]
pub fn wait_readable(watches: &mut [Watch<'_>], timeout_ns: Option<u64>) -> io::Result<usize> {
    let poll =
        |watch: &Watch<'_>| libc::pollfd { fd: watch.on.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut polls: Vec<libc::pollfd> = watches.iter().map(poll).collect();
    let timeout_ms = match timeout_ns {
        None => -1,
        Some(ns) => libc::c_int::try_from(ns.div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX),
    };
    // SAFETY: the array is borrowed mutably for the call and has as many entries as are passed.
    let ready = super::handle::checked(unsafe {
        libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, timeout_ms)
    });
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

/// Types that [`wait_writable`] accepts.
#[cfg(unix)]
pub use std::os::fd::AsFd as Writable;

/// Types that [`wait_writable`] accepts: it does not poll on this system.
#[cfg(windows)]
pub trait Writable {}

#[cfg(windows)]
impl<T> Writable for T {}

/// Sleeps until `to` can be written without blocking, for at most `timeout_ns` (rounded up to milliseconds). False
/// after the timeout. A pipe accepts PIPE_BUF bytes then. A write that would fail at once counts as possible.
#[cfg(unix)]
pub fn wait_writable(to: &impl Writable, timeout_ns: u64) -> bool {
    let mut poll = libc::pollfd { fd: to.as_fd().as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    let timeout_ms = libc::c_int::try_from(timeout_ns.div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX);
    // SAFETY: one entry, borrowed mutably for the call.
    let mut look = |timeout_ms| unsafe { libc::poll(&mut poll, 1, timeout_ms) };
    match look(timeout_ms) {
        // Interrupted by a signal: check once more.
        ready if ready < 0 => look(0) > 0,
        ready => ready > 0,
    }
}

/// Windows has no poll that std or socket2 support: a write may block there.
#[cfg(windows)]
pub fn wait_writable(_to: &impl Writable, _timeout_ns: u64) -> bool {
    true
}

/// The same without poll: checks each of `watches`, which must be in non-blocking mode, every millisecond. Windows has
/// no poll that std or socket2 support; an idle daemon wakes up a thousand times a second there.
///
/// # Errors
/// None; the version with poll may have one.
#[cfg(windows)]
pub fn wait_readable(watches: &mut [Watch<'_>], timeout_ns: Option<u64>) -> io::Result<usize> {
    Ok(peek_until_readable(watches, timeout_ns))
}

#[cfg(any(test, windows))]
fn peek_until_readable(watches: &mut [Watch<'_>], timeout_ns: Option<u64>) -> usize {
    const PEEK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(1);
    let now_ns = crate::clock::Clock::mono_ns;
    let until_ns = timeout_ns.map_or(u64::MAX, |timeout_ns| now_ns().saturating_add(timeout_ns));
    loop {
        let mut ready = 0;
        for watch in &mut *watches {
            let looked = socket2::SockRef::from(&watch.on).peek(&mut [std::mem::MaybeUninit::uninit()]);
            // A packet that is longer than the buffer is an error on Windows, and can be read all the same.
            watch.readable = !matches!(looked, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
            ready += usize::from(watch.readable);
        }
        if ready > 0 || now_ns() >= until_ns {
            return ready;
        }
        std::thread::sleep(PEEK_INTERVAL);
    }
}

/// Wakes a thread that sleeps in [`wait_readable`]. Shared by reference between the two.
#[derive(Debug)]
pub struct Waker {
    #[cfg(target_os = "linux")]
    event: std::os::fd::OwnedFd,
    #[cfg(not(target_os = "linux"))]
    pair: (std::net::UdpSocket, std::net::UdpSocket),
}

#[cfg(target_os = "linux")]
impl Waker {
    /// A new waker without a pending wake-up.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Waker> {
        use std::os::fd::FromRawFd;
        // SAFETY: no pointer is passed.
        let event =
            super::handle::checked(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })?;
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Waker { event: unsafe { std::os::fd::OwnedFd::from_raw_fd(event) } })
    }

    /// Wakes the sleeping thread, now or when it next sleeps. Several calls before [`Waker::drain`] count as one.
    pub fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight readable bytes, as an eventfd requires. It can only fail when the counter is full, and then
        // the sleeper is awake already.
        unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Clears the wake-ups so far. The sleeper calls it after waking up, before it looks for the reason.
    pub fn drain(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight writable bytes, as an eventfd requires. It can only fail when there was no wake-up.
        unsafe { libc::read(self.event.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

#[cfg(not(target_os = "linux"))]
impl Waker {
    /// A new waker without a pending wake-up.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    pub fn new() -> io::Result<Waker> {
        let pair = udp_pair()?;
        pair.0.set_nonblocking(true)?;
        pair.1.set_nonblocking(true)?;
        Ok(Waker { pair })
    }

    /// Wakes the sleeping thread, now or when it next sleeps. Several calls before [`Waker::drain`] count as one.
    pub fn wake(&self) {
        // A full socket means that the sleeper is awake already.
        let _full = self.pair.1.send(&[1]);
    }

    /// Clears the wake-ups so far.
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

/// Two sockets on loopback that receive from each other only.
#[cfg(any(test, not(target_os = "linux")))]
fn udp_pair() -> io::Result<(std::net::UdpSocket, std::net::UdpSocket)> {
    let one = std::net::UdpSocket::bind("127.0.0.1:0")?;
    let other = std::net::UdpSocket::bind("127.0.0.1:0")?;
    one.connect(other.local_addr()?)?;
    other.connect(one.local_addr()?)?;
    Ok((one, other))
}

#[test]
fn polling_by_peek_finds_readable_sockets() {
    let (one, other) = udp_pair().expect("loopback is there");
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
    one.set_nonblocking(true).expect("it can");
    other.set_nonblocking(true).expect("it can");
    let look = |timeout_ns| {
        let mut watches = [Watch::new(&one), Watch::new(&other)];
        let ready = peek_until_readable(&mut watches, timeout_ns);
        (ready, watches.map(|watch| watch.readable))
    };
    assert_eq!(look(Some(0)), (0, [false, false]));
    let to = one.local_addr().expect("it is bound");
    stranger.send_to(b"x", to).expect("it leaves");
    assert_eq!(look(Some(2_000_000)), (0, [false, false]), "packets of other senders do not wake it");
    one.send(b"longer than the look").expect("it leaves");
    assert_eq!(look(None), (1, [false, true]));
    other.send(b"x").expect("it leaves");
    assert_eq!(look(None), (2, [true, true]));
}
