//! Sockets and error numbers by the names that unix has for them.
//!
//! Windows has the same things by other names, and these stand in for them, so that the code above reads the same on
//! both.

use std::io;

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
        EACCES, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EBADF, ECONNREFUSED, ECONNRESET, EFAULT, EHOSTUNREACH,
        EINVAL, EMFILE, EMSGSIZE, ENETDOWN, ENETUNREACH, ENFILE, ENOBUFS, ENOMEM, ENOTCONN, ENOTSOCK,
        EOPNOTSUPP, EPERM, EPIPE, EPROTOTYPE,
    };
}

/// Numbers of errors: Winsock's, which are not those of the C library.
#[cfg(windows)]
#[allow(missing_docs, reason = "unix's names with Winsock's numbers")]
pub mod errno {
    /// Not enough memory, by the system's own number.
    pub const ENOMEM: i32 = 8;
    /// There is no such number of sockets.
    pub const EPERM: i32 = 1;
    pub const EACCES: i32 = 10_013;
    pub const EPROTOTYPE: i32 = 10_041;
    pub const EBADF: i32 = 10_009;
    pub const EFAULT: i32 = 10_014;
    pub const EINVAL: i32 = 10_022;
    pub const EMFILE: i32 = 10_024;
    /// There is no such number: a table of all processes cannot be full.
    pub const ENFILE: i32 = EMFILE;
    pub const EAGAIN: i32 = 10_035;
    pub const ENOTSOCK: i32 = 10_038;
    pub const EOPNOTSUPP: i32 = 10_045;
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

/// True when the process has no descriptor left, or the system no memory: what was asked for may be done later.
pub fn is_out_of_resources(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(errno::EMFILE | errno::ENFILE | errno::ENOMEM | errno::ENOBUFS))
}

/// True when a socket will never be read again, whatever one waits for: it is none, or not one that can be read. All else
/// passes: a signal, memory that is short, an answer of the network to something that was sent.
pub fn is_final_for_reading(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            errno::EBADF
                | errno::ENOTSOCK
                | errno::EINVAL
                | errno::EFAULT
                | errno::EOPNOTSUPP
                | errno::ENOTCONN
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_pass_are_told_from_those_that_do_not() {
        // (number, out of resources, final for reading)
        let table = [
            (errno::EMFILE, true, false),
            (errno::ENFILE, true, false),
            (errno::ENOMEM, true, false),
            (errno::ENOBUFS, true, false),
            (errno::EAGAIN, false, false),
            (errno::ECONNREFUSED, false, false),
            (errno::ECONNRESET, false, false),
            (errno::ENETDOWN, false, false),
            (errno::EHOSTUNREACH, false, false),
            (errno::EBADF, false, true),
            (errno::ENOTSOCK, false, true),
            (errno::EINVAL, false, true),
            (errno::ENOTCONN, false, true),
        ];
        for (number, resources, is_final) in table {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(
                (is_out_of_resources(&error), is_final_for_reading(&error)),
                (resources, is_final),
                "{error}"
            );
        }
        assert!(
            !is_final_for_reading(&io::ErrorKind::Interrupted.into()),
            "an error without a number passes"
        );
    }
}
