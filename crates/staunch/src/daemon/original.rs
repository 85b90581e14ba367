//! The manners of carbon-c-relay towards whoever started it: its words in the log, and its signals (spec graphite §2.12,
//! §2.13). Scripts look for these lines.
//!
//! Not here: how lines of the log look, the pid file, going into the background (`cli::relay`).

use crate::daemon::shared::Shared;
use crate::talk::ORIGINAL;

/// What a daemon does that stands in for the original.
pub struct Original {
    /// Name and version.
    pub name: String,
    /// Whether the banner is printed too: nobody sees it where the log is a file.
    pub banner: bool,
    /// Called once everything is open and runs.
    pub started: Box<dyn Fn()>,
    /// Opens the log anew, which somebody may have moved away (SIGHUP).
    pub reopen_log: fn(),
    /// Says more, or no more (SIGUSR1).
    pub toggle_debug: fn(),
}

impl Original {
    /// It is up.
    pub(super) fn tell_start(&self, shared: &Shared) {
        let wiring = shared.wiring.load();
        for place in wiring.listening.iter().flatten().flat_map(|place| listening_on(place)) {
            tracing::info!(target: ORIGINAL, "listening on {place}");
        }
        if let Some(http) = shared.http {
            tracing::info!("listening on http {} port {}", http.ip(), http.port());
        }
        tracing::info!(target: ORIGINAL, "startup sequence complete");
        (self.started)();
    }

    /// SIGHUP was taken.
    pub(super) fn tell_reload(&self) {
        tracing::info!(target: ORIGINAL, "caught SIGHUP");
        (self.reopen_log)();
    }

    /// SIGUSR1 was taken.
    pub(super) fn tell_debug(&self) {
        tracing::info!(target: ORIGINAL, "caught SIGUSR1");
        (self.toggle_debug)();
    }

    /// A signal to stop was taken.
    pub(super) fn tell_stopping(&self, signal: &str) {
        tracing::info!(target: ORIGINAL, "caught {signal}");
        tracing::info!(target: ORIGINAL, "shutting down...");
    }

    /// Everything has ended.
    pub(super) fn tell_end(&self) {
        tracing::info!(target: ORIGINAL, "stopped {}", self.name);
    }
}

/// A place as the original tells it. It has a socket for each family where one of ours takes both.
fn listening_on(place: &str) -> Vec<String> {
    let Some((way, address)) = place.split_once("://") else { return Vec::new() };
    let Ok(address) = address.parse::<std::net::SocketAddr>() else {
        return vec![format!("UNIX socket {address}")];
    };
    let port = address.port();
    match address.ip() {
        std::net::IpAddr::V4(ip) => vec![format!("{way}4 {ip} port {port}")],
        std::net::IpAddr::V6(ip) if ip.is_unspecified() => {
            vec![format!("{way}4 0.0.0.0 port {port}"), format!("{way}6 :: port {port}")]
        }
        std::net::IpAddr::V6(ip) => vec![format!("{way}6 {ip} port {port}")],
    }
}

/// An endpoint as the original tells it: `tcp://10.0.0.1:2003` is `10.0.0.1:2003`.
pub fn endpoint(place: &str) -> &str {
    place.split_once("://").map_or(place, |(_, place)| place)
}

#[test]
fn places_are_told_in_the_words_of_the_original() {
    let table: &[(&str, &[&str])] = &[
        ("tcp://[::]:2003", &["tcp4 0.0.0.0 port 2003", "tcp6 :: port 2003"]),
        ("udp://127.0.0.1:2003", &["udp4 127.0.0.1 port 2003"]),
        ("tcp://[::1]:1", &["tcp6 ::1 port 1"]),
        ("unix:///tmp/.s.carbon-c-relay.2003", &["UNIX socket /tmp/.s.carbon-c-relay.2003"]),
    ];
    for (place, want) in table {
        assert_eq!(listening_on(place), *want, "{place}");
    }
    assert_eq!((endpoint("tcp://h:1"), endpoint("/var/x")), ("h:1", "/var/x"));
}
