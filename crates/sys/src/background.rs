//! Daemonises: forks into a new session without a terminal.
//!
//! Invariant: the process has a single thread when it forks; otherwise nothing is done.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Connection to the parent process, which waits for an exit code and exits with it; with 2 if none arrives.
#[derive(Debug)]
pub struct Background {
    parent: UnixStream,
}

/// Continues in a child process, which keeps the terminal until [`Background::up`], so that errors are visible.
///
/// # Errors
/// When there are other threads, which would be missing in the child process, or the system call fails.
pub fn into_background() -> io::Result<Background> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("there are other threads already"));
    }
    let (mut from_child, parent) = UnixStream::pair()?;
    // SAFETY: this is the only thread, as counted above, so no lock is held by one that the new process does not have.
    let process = super::handle::checked(unsafe { libc::fork() })?;
    if process != 0 {
        drop(parent);
        let mut code = [2];
        // If the child ends without sending a code, the start has failed.
        let _ended = from_child.read_exact(&mut code);
        std::process::exit(i32::from(code[0]));
    }
    // SAFETY: a call without arguments.
    super::handle::checked(unsafe { libc::setsid() })?;
    Ok(Background { parent })
}

impl Background {
    /// Called when the daemon is ready: detaches from the terminal, and the parent process exits with 0.
    ///
    /// # Errors
    /// When a standard stream cannot be redirected; the parent process exits all the same.
    pub fn up(&self) -> io::Result<()> {
        let detached = detach();
        self.exit_parent(0);
        detached
    }

    /// Makes the parent process exit with this code.
    pub fn exit_parent(&self, code: u8) {
        // The parent may have ended.
        let _gone = (&self.parent).write_all(&[code]);
    }
}

fn detach() -> io::Result<()> {
    let nowhere = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    for stream in 0..3 {
        // SAFETY: `nowhere` is open; the other number is one of the three standard streams.
        super::handle::checked(unsafe { libc::dup2(nowhere.as_raw_fd(), stream) })?;
    }
    Ok(())
}
