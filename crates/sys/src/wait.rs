//! Sleeping until a few sockets can be read, and being woken from another thread.

use std::io;
#[cfg(unix)]
use std::os::fd::AsRawFd;

use super::{AsFd, BorrowedFd};

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
#[cfg(unix)]
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

/// What [`wait_writable`] can look at.
#[cfg(unix)]
pub use std::os::fd::AsFd as Writable;

/// What [`wait_writable`] can look at: here it does not look.
#[cfg(windows)]
pub trait Writable {}

#[cfg(windows)]
impl<T> Writable for T {}

/// Sleeps until `to` takes bytes without a wait, for at most `timeout_ns` (rounded up to milliseconds). False after the
/// time-out. A pipe takes PIPE_BUF bytes then; what fails at once counts as taking them.
#[cfg(unix)]
pub fn wait_writable(to: &impl Writable, timeout_ns: u64) -> bool {
    let mut poll = libc::pollfd { fd: to.as_fd().as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    let timeout_ms = libc::c_int::try_from(timeout_ns.div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX);
    // SAFETY: one entry, borrowed mutably for the call.
    let mut look = |timeout_ms| unsafe { libc::poll(&mut poll, 1, timeout_ms) };
    match look(timeout_ms) {
        // A signal came in between: a last look.
        ready if ready < 0 => look(0) > 0,
        ready => ready > 0,
    }
}

/// Windows has no poll that std or socket2 would know: a write may wait there.
#[cfg(windows)]
pub fn wait_writable(_to: &impl Writable, _timeout_ns: u64) -> bool {
    true
}

/// The same without poll: looks at each of `watches`, which must be in non-blocking mode, every millisecond. Windows has
/// no poll that std or socket2 would know; a daemon that is idle there wakes up a thousand times a second.
///
/// # Errors
/// None; the one with poll may have one.
#[cfg(windows)]
pub fn wait_readable(watches: &mut [Watch<'_>], timeout_ns: Option<u64>) -> io::Result<usize> {
    Ok(look_until_readable(watches, timeout_ns))
}

#[cfg(any(test, windows))]
fn look_until_readable(watches: &mut [Watch<'_>], timeout_ns: Option<u64>) -> usize {
    const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(1);
    let now_ns = crate::clock::Clock::mono_ns;
    let until_ns = timeout_ns.map_or(u64::MAX, |timeout_ns| now_ns().saturating_add(timeout_ns));
    loop {
        let mut ready = 0;
        for watch in &mut *watches {
            let looked = socket2::SockRef::from(&watch.on).peek(&mut [std::mem::MaybeUninit::uninit()]);
            // A packet that is longer than the look is an error on Windows, and there to be read all the same.
            watch.readable = !matches!(looked, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
            ready += usize::from(watch.readable);
        }
        if ready > 0 || now_ns() >= until_ns {
            return ready;
        }
        std::thread::sleep(LOOK_EVERY);
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
        let pair = udp_pair()?;
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

/// Two sockets on loopback that take packets from each other only.
#[cfg(any(test, not(target_os = "linux")))]
fn udp_pair() -> io::Result<(std::net::UdpSocket, std::net::UdpSocket)> {
    let one = std::net::UdpSocket::bind("127.0.0.1:0")?;
    let other = std::net::UdpSocket::bind("127.0.0.1:0")?;
    one.connect(other.local_addr()?)?;
    other.connect(one.local_addr()?)?;
    Ok((one, other))
}

#[test]
fn looking_finds_what_can_be_read() {
    let (one, other) = udp_pair().expect("loopback is there");
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
    one.set_nonblocking(true).expect("it can");
    other.set_nonblocking(true).expect("it can");
    let look = |timeout_ns| {
        let mut watches = [Watch::new(&one), Watch::new(&other)];
        let ready = look_until_readable(&mut watches, timeout_ns);
        (ready, watches.map(|watch| watch.readable))
    };
    assert_eq!(look(Some(0)), (0, [false, false]));
    let to = one.local_addr().expect("it is bound");
    stranger.send_to(b"x", to).expect("it leaves");
    assert_eq!(look(Some(2_000_000)), (0, [false, false]), "a stranger wakes nobody");
    one.send(b"longer than the look").expect("it leaves");
    assert_eq!(look(None), (1, [false, true]));
    other.send(b"x").expect("it leaves");
    assert_eq!(look(None), (2, [true, true]));
}
