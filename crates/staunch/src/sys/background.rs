//! Into the background: the process that goes on is another one, in a session of its own and without a terminal.
//!
//! Invariant: the process has one thread when it divides, or nothing is done.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Goes on in a new process. The one that was started waits until something is written to the stream given here, and
/// ends with 0; when the stream is closed before that, with 2.
///
/// # Errors
/// When there are other threads, which would be missing in the new process, or the system refuses.
pub fn into_background() -> io::Result<UnixStream> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("there are other threads already"));
    }
    let (mut told, tell) = UnixStream::pair()?;
    let nowhere = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    // SAFETY: this is the only thread, as counted above, so no lock is held by one that the new process does not have.
    let process = super::checked(unsafe { libc::fork() })?;
    if process != 0 {
        drop(tell);
        let up = told.read_exact(&mut [0]).is_ok();
        std::process::exit(if up { 0 } else { 2 });
    }
    // SAFETY: a call without arguments.
    super::checked(unsafe { libc::setsid() })?;
    for stream in 0..3 {
        // SAFETY: `nowhere` is open; the other number is one of the three standard streams.
        super::checked(unsafe { libc::dup2(nowhere.as_raw_fd(), stream) })?;
    }
    Ok(tell)
}
