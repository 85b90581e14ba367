//! Sockets and error numbers by the names that unix has for them.
//!
//! Windows has the same things by other names, and these stand in for them, so that the code above reads the same on
//! both.

#[cfg(unix)]
pub use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

#[cfg(windows)]
pub use std::os::windows::io::{AsSocket, BorrowedSocket as BorrowedFd, OwnedSocket as OwnedFd};

/// What has a socket that can be borrowed.
#[cfg(windows)]
pub trait AsFd {
    /// Borrows it.
    fn as_fd(&self) -> BorrowedFd<'_>;
}

#[cfg(windows)]
impl<T: AsSocket> AsFd for T {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.as_socket()
    }
}

/// True when the system was short of something that it may have again soon: descriptors, memory. An interrupted call
/// counts as well: it did nothing.
pub fn is_scarce(error: &std::io::Error) -> bool {
    use std::io::ErrorKind as Kind;
    if matches!(error.kind(), Kind::OutOfMemory | Kind::WouldBlock | Kind::Interrupted) {
        return true;
    }
    #[cfg(unix)]
    let codes = [libc::EMFILE, libc::ENFILE, libc::ENOMEM];
    // ERROR_TOO_MANY_OPEN_FILES, ERROR_NOT_ENOUGH_MEMORY, ERROR_SHARING_VIOLATION.
    #[cfg(not(unix))]
    let codes = [4, 8, 32];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Numbers of errors, as [`std::io::Error::raw_os_error`] gives them.
#[cfg(unix)]
pub mod errno {
    pub use libc::{
        EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, ECONNREFUSED, ECONNRESET, EHOSTUNREACH, EMSGSIZE, ENETDOWN,
        ENETUNREACH, ENOBUFS, ENOTCONN, EPIPE,
    };
}

/// Numbers of errors: Winsock's, which are not those of the C library.
#[cfg(windows)]
#[allow(missing_docs, reason = "unix's names with Winsock's numbers")]
pub mod errno {
    pub const EAGAIN: i32 = 10_035;
    pub const EMSGSIZE: i32 = 10_040;
    pub const EAFNOSUPPORT: i32 = 10_047;
    pub const EADDRNOTAVAIL: i32 = 10_049;
    pub const ENETDOWN: i32 = 10_050;
    pub const ENETUNREACH: i32 = 10_051;
    /// The peer's end is closed, or (UDP) an earlier packet met a closed port: what unix calls ECONNREFUSED.
    pub const ECONNRESET: i32 = 10_054;
    pub const ENOBUFS: i32 = 10_055;
    pub const ENOTCONN: i32 = 10_057;
    pub const EPIPE: i32 = 10_058;
    pub const ECONNREFUSED: i32 = 10_061;
    pub const EHOSTUNREACH: i32 = 10_065;
}
