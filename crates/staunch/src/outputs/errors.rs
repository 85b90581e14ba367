//! Errors of one output by the system's name, or by ours if it is not a system error: a table of fixed size.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use deliver::Failure;

#[cfg(windows)]
use sys::errno;

/// Errors of sockets and files, with their names in manuals.
#[cfg(unix)]
const WORDS: &[(i32, &str)] = &[
    (libc::EACCES, "EACCES"),
    (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
    (libc::ECONNABORTED, "ECONNABORTED"),
    (libc::ECONNREFUSED, "ECONNREFUSED"),
    (libc::ECONNRESET, "ECONNRESET"),
    (libc::EDQUOT, "EDQUOT"),
    (libc::EFBIG, "EFBIG"),
    (libc::EHOSTDOWN, "EHOSTDOWN"),
    (libc::EHOSTUNREACH, "EHOSTUNREACH"),
    (libc::EINVAL, "EINVAL"),
    (libc::EIO, "EIO"),
    (libc::EISDIR, "EISDIR"),
    (libc::EMFILE, "EMFILE"),
    (libc::EMSGSIZE, "EMSGSIZE"),
    (libc::ENETDOWN, "ENETDOWN"),
    (libc::ENETUNREACH, "ENETUNREACH"),
    (libc::ENFILE, "ENFILE"),
    (libc::ENOBUFS, "ENOBUFS"),
    (libc::ENOENT, "ENOENT"),
    (libc::ENOMEM, "ENOMEM"),
    (libc::ENOSPC, "ENOSPC"),
    (libc::ENOTCONN, "ENOTCONN"),
    (libc::ENOTDIR, "ENOTDIR"),
    (libc::ENOTSOCK, "ENOTSOCK"),
    (libc::EPERM, "EPERM"),
    (libc::EPIPE, "EPIPE"),
    (libc::EPROTOTYPE, "EPROTOTYPE"),
    (libc::EROFS, "EROFS"),
    (libc::ETIMEDOUT, "ETIMEDOUT"),
];

/// Errors of sockets, with their unix names.
#[cfg(windows)]
const WORDS: &[(i32, &str)] = &[
    (errno::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
    (errno::ECONNREFUSED, "ECONNREFUSED"),
    (errno::ECONNRESET, "ECONNRESET"),
    (errno::EMSGSIZE, "EMSGSIZE"),
    (errno::ENOBUFS, "ENOBUFS"),
    (errno::ENOTCONN, "ENOTCONN"),
    (errno::EPIPE, "EPIPE"),
    (10_060, "ETIMEDOUT"),
];

/// Failures without a system error: a connection succeeded but cannot be used.
const OWN: [Failure; 3] = [Failure::TlsFailed, Failure::TlsWanted, Failure::ClosesAtOnce];

/// All errors without their own name.
const OTHER: &str = "other";

/// Counts by name.
#[derive(Debug)]
pub struct ErrorCounts {
    system: [AtomicU64; WORDS.len() + 1],
    own: [AtomicU64; OWN.len()],
}

impl Default for ErrorCounts {
    fn default() -> ErrorCounts {
        ErrorCounts {
            system: std::array::from_fn(|_| AtomicU64::new(0)),
            own: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl ErrorCounts {
    /// Counts one error.
    pub fn count(&self, error: &io::Error) {
        let known = WORDS.iter().position(|(number, _)| error.raw_os_error() == Some(*number));
        // Our own timeout, without a system error.
        let ours = || match error.kind() {
            io::ErrorKind::TimedOut => WORDS.iter().position(|(_, word)| *word == "ETIMEDOUT"),
            _ => None,
        };
        self.system[known.or_else(ours).unwrap_or(WORDS.len())].fetch_add(1, Relaxed);
    }

    /// Counts a failure that has no system error.
    pub fn count_failure(&self, failure: Failure) {
        if let Some(at) = OWN.iter().position(|own| *own == failure) {
            self.own[at].fetch_add(1, Relaxed);
        }
    }

    /// Counts above 0.
    pub fn table(&self) -> BTreeMap<&'static str, u64> {
        let words = WORDS.iter().map(|(_, word)| *word).chain([OTHER]).chain(OWN.map(Failure::word));
        let counts = self.system.iter().chain(&self.own).map(|count| count.load(Relaxed));
        words.zip(counts).filter(|(_, count)| *count > 0).collect()
    }
}

/// The system's words in [`ErrorCounts::table`].
pub fn words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|(_, word)| *word)
}

#[test]
fn errors_are_counted_by_name_and_the_table_does_not_grow() {
    let counts = ErrorCounts::default();
    for number in 0..5000 {
        counts.count(&io::Error::from_raw_os_error(number));
    }
    counts.count(&io::Error::other("no number"));
    counts.count(&io::ErrorKind::TimedOut.into());
    for failure in [Failure::ClosesAtOnce, Failure::ClosesAtOnce, Failure::TlsFailed, Failure::ConnectFailed]
    {
        counts.count_failure(failure);
    }
    let mut table = counts.table();
    let own = [table.remove("closes_at_once"), table.remove("tls_failed"), table.remove("connect_failed")];
    assert_eq!(own, [Some(2), Some(1), None], "what the system counts is not counted twice");
    assert_eq!((table["ECONNREFUSED"], table["ETIMEDOUT"], table.len()), (1, 2, WORDS.len() + 1));
    assert_eq!(table.values().sum::<u64>(), 5002);
    assert_eq!(ErrorCounts::default().table(), BTreeMap::new());
}
