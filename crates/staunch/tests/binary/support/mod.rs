//! What the tests share: a daemon as a process, HTTP, a Graphite that misbehaves, and traffic.

#[allow(dead_code, reason = "only benches have a command line")]
pub(crate) mod arguments;
#[allow(dead_code, reason = "a test has no cases")]
pub(crate) mod bench;
#[allow(
    dead_code,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test has no cases; tables are for people"
)]
pub(crate) mod cases;
pub(crate) mod daemon;
#[allow(dead_code, reason = "only benches set clocks")]
pub(crate) mod fake_clock;
pub(crate) mod graphite;
pub(crate) mod http;
pub(crate) mod pty;
pub(crate) mod sections;
pub(crate) mod traffic;

use std::fmt::Debug;
use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

pub(crate) use daemon::{Builder, Daemon};
pub(crate) use graphite::{FakeGraphite, Manner, Point};
pub(crate) use traffic::{Random, udp};

/// Longest wait for anything. Nobody waits so long unless something is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks until `see` gives something.
///
/// # Panics
/// When it never does; `what` says what was waited for.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut see: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = see() {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A port at which nobody listens as long as the tests run, and which nobody else gets. A test may listen there itself.
pub(crate) fn nobody() -> SocketAddr {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.set_reuse_address(true).expect("it is new");
    socket.bind(&any.into()).expect("a port is free");
    let at = socket.local_addr().expect("it is bound").as_socket().expect("an address");
    // Open to the end.
    std::mem::forget(socket);
    at
}

/// Looks until `see` gives `want`; shows the last value when it never does.
#[track_caller]
pub(crate) fn wait_until_equal<T: PartialEq + Debug>(what: &str, want: &T, mut see: impl FnMut() -> T) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = see();
        if seen == *want {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {seen:?} instead of {want:?}");
        std::thread::sleep(LOOK_EVERY);
    }
}

/// For the summary of `make test`: this part was not run. Past the test runner, which keeps what tests print that pass.
pub(crate) fn skip(part: &str, why: &str) {
    // Nobody may be listening.
    let _unheard = writeln!(std::io::stderr(), "SKIPPED {part}: {why}");
}
