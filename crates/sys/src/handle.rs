//! Sockets and error numbers under their unix names, on all systems, and the error of a system call.
//!
//! On Windows these names are defined here with Windows' types and numbers, so that calling code is the same on both.

use std::io;

#[cfg(unix)]
pub use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

#[cfg(windows)]
pub use std::os::windows::io::{AsSocket, BorrowedSocket as BorrowedFd, OwnedSocket as OwnedFd};

/// A type with a socket that can be borrowed.
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

/// True when the system has temporarily run out of a resource: descriptors, memory. An interrupted call counts as well,
/// because it did nothing.
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

/// Converts the -1 of a system call to the error in `errno`.
#[cfg(unix)]
pub(super) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Error numbers of [`std::io::Error::raw_os_error`].
#[cfg(unix)]
pub mod errno {
    pub use libc::{
        EACCES, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EBADF, ECONNREFUSED, ECONNRESET, EFAULT, EHOSTUNREACH,
        EINVAL, EMFILE, EMSGSIZE, ENETDOWN, ENETUNREACH, ENFILE, ENOBUFS, ENOMEM, ENOTCONN, ENOTSOCK,
        EOPNOTSUPP, EPERM, EPIPE, EPROTOTYPE,
    };
}

/// Error numbers of Winsock, which differ from those of the C library.
#[cfg(windows)]
#[allow(missing_docs, reason = "unix's names with Winsock's numbers")]
pub mod errno {
    /// Not enough memory, by the Windows number.
    pub const ENOMEM: i32 = 8;
    /// Winsock has no such number.
    pub const EPERM: i32 = 1;
    pub const EACCES: i32 = 10_013;
    pub const EPROTOTYPE: i32 = 10_041;
    pub const EBADF: i32 = 10_009;
    pub const EFAULT: i32 = 10_014;
    pub const EINVAL: i32 = 10_022;
    pub const EMFILE: i32 = 10_024;
    /// Winsock has no such number: there is no system-wide table that could be full.
    pub const ENFILE: i32 = EMFILE;
    pub const EAGAIN: i32 = 10_035;
    pub const ENOTSOCK: i32 = 10_038;
    pub const EOPNOTSUPP: i32 = 10_045;
    pub const EMSGSIZE: i32 = 10_040;
    pub const EAFNOSUPPORT: i32 = 10_047;
    pub const EADDRNOTAVAIL: i32 = 10_049;
    pub const ENETDOWN: i32 = 10_050;
    pub const ENETUNREACH: i32 = 10_051;
    /// The peer is closed, or (UDP) an earlier packet was sent to a closed port: ECONNREFUSED on unix.
    pub const ECONNRESET: i32 = 10_054;
    pub const ENOBUFS: i32 = 10_055;
    pub const ENOTCONN: i32 = 10_057;
    pub const EPIPE: i32 = 10_058;
    pub const ECONNREFUSED: i32 = 10_061;
    pub const EHOSTUNREACH: i32 = 10_065;
}

/// True when the process has no descriptor left, or the system no memory: a retry may succeed.
pub fn is_out_of_resources(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(errno::EMFILE | errno::ENFILE | errno::ENOMEM | errno::ENOBUFS))
}

/// True when reading this socket can never succeed again: it is not a socket, or cannot be read. All other errors are
/// temporary: a signal, a lack of memory, a network error about an earlier packet.
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
    fn temporary_and_final_errors_are_distinguished() {
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
