//! Into the background: the process that goes on is another one, in a session of its own and without a terminal.
//!
//! Invariant: the process has one thread when it divides, or nothing is done.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// To the process that was started, which waits for a word and ends as it says; without one, with 2.
#[derive(Debug)]
pub struct Background {
    tell: UnixStream,
}

/// Goes on in a new process, which has the terminal up to [`Background::up`], so that what goes wrong is seen.
///
/// # Errors
/// When there are other threads, which would be missing in the new process, or the system refuses.
pub fn into_background() -> io::Result<Background> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("there are other threads already"));
    }
    let (mut told, tell) = UnixStream::pair()?;
    // SAFETY: this is the only thread, as counted above, so no lock is held by one that the new process does not have.
    let process = super::checked(unsafe { libc::fork() })?;
    if process != 0 {
        drop(tell);
        let mut code = [2];
        // Its end without a word is a failure.
        let _ended = told.read_exact(&mut code);
        std::process::exit(i32::from(code[0]));
    }
    // SAFETY: a call without arguments.
    super::checked(unsafe { libc::setsid() })?;
    Ok(Background { tell })
}

impl Background {
    /// Everything runs: lets go of the terminal, and the process that was started ends with 0.
    ///
    /// # Errors
    /// When the system does not let go of a stream; the other process ends all the same.
    pub fn up(&self) -> io::Result<()> {
        let detached = detach();
        self.end_starter(0);
        detached
    }

    /// The process that was started ends with this code.
    pub fn end_starter(&self, code: u8) {
        // It may be gone.
        let _gone = (&self.tell).write_all(&[code]);
    }
}

fn detach() -> io::Result<()> {
    let nowhere = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    for stream in 0..3 {
        // SAFETY: `nowhere` is open; the other number is one of the three standard streams.
        super::checked(unsafe { libc::dup2(nowhere.as_raw_fd(), stream) })?;
    }
    Ok(())
}
