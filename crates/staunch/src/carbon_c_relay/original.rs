//! carbon-c-relay's interface to the process that started it: its log lines, and its signals (spec graphite §2.12,
//! §2.13). Scripts search for these lines.
//!
//! Not here: the format of log lines, differences of configurations, running in the background (`carbon_c_relay`).

use config::plan::{Plan, RelayTransform};
use process::relay::Statement;

use super::closing;
use crate::admin::accounts::AccountsPage;
use crate::carbon_c_relay::log_targets::ORIGINAL;
use crate::daemon::original::Original;
use crate::daemon::pid_file::PidFile;
use crate::daemon::shared::Shared;

/// The daemon's behaviour in the compatibility mode.
pub(super) struct CarbonCRelay {
    /// Name and version.
    pub name: String,
    /// Whether to print the banner, too: if the log is a file, nobody would see it there.
    pub banner: bool,
    /// The file with the process id, written when everything is open and running.
    pub pid_file: Option<PidFile>,
    /// Called when everything is open and running.
    pub started: Box<dyn Fn()>,
    /// Reopens the log, which another program may have renamed (SIGHUP).
    pub reopen_log: fn(),
    /// Called when the reloaded configuration is current.
    pub reloaded: Box<dyn Fn()>,
    /// Toggles debug messages (SIGUSR1).
    pub toggle_debug: fn(),
}

impl Original for CarbonCRelay {
    fn has_banner(&self) -> bool {
        self.banner
    }

    fn has_own_signals(&self) -> bool {
        true
    }

    fn started(&mut self, shared: &Shared) {
        if let Some(Err(error)) = self.pid_file.as_mut().map(PidFile::write) {
            tracing::error!("{error:#}");
        }
        let wiring = shared.wiring.load();
        for place in wiring.listening.iter().flatten().flat_map(|place| listening_on(place)) {
            tracing::info!(target: ORIGINAL, "listening on {place}");
        }
        if let Some(http) = shared.http {
            tracing::info!("listening on http {} port {}", http.ip(), http.port());
        }
        for part in parts(&wiring.plan).start {
            tracing::info!(target: ORIGINAL, "starting {part}");
        }
        tracing::info!(target: ORIGINAL, "startup sequence complete");
        (self.started)();
    }

    fn reload_asked(&self) {
        tracing::info!(target: ORIGINAL, "caught SIGHUP");
        (self.reopen_log)();
    }

    fn reload_ended(&self, done: bool) {
        if done {
            (self.reloaded)();
            tracing::info!(target: ORIGINAL, "SIGHUP handler complete");
        }
    }

    fn succeeded(self: Box<Self>) {
        self.pid_file.into_iter().for_each(PidFile::leave);
    }

    fn debug_asked(&self) {
        tracing::info!(target: ORIGINAL, "caught SIGUSR1");
        (self.toggle_debug)();
    }

    fn stopping(&self, signal: &str) {
        tracing::info!(target: ORIGINAL, "caught {signal}");
        tracing::info!(target: ORIGINAL, "shutting down...");
    }

    fn listeners_closed(&self, shared: &Shared) {
        let wiring = shared.wiring.load();
        for place in wiring.listening.iter().flatten().filter_map(|place| closed(place)) {
            tracing::info!(target: ORIGINAL, "{place}");
        }
    }

    fn worker_stopped(&self, shared: &Shared) {
        for part in parts(&shared.wiring.load().plan).stop {
            tracing::info!(target: ORIGINAL, "stopped {part}");
        }
    }

    fn outputs_stopped(&self) {
        tracing::info!(target: ORIGINAL, "stopped servers");
    }

    fn accounts_closed(&self, page: &AccountsPage) {
        for line in closing::report(page) {
            tracing::info!("{line}");
        }
    }

    fn ended(&self) {
        tracing::info!(target: ORIGINAL, "stopped {}", self.name);
    }
}

/// The parts for which the original starts and stops threads. Here one thread runs all.
struct Parts {
    start: Vec<&'static str>,
    stop: Vec<&'static str>,
}

fn parts(plan: &Plan) -> Parts {
    let aggregates = |(_, _, relay): (_, _, &RelayTransform)| {
        relay.plan.statements.iter().any(|statement| matches!(statement, Statement::Aggregate(_)))
    };
    let aggregates = plan.relays().any(aggregates);
    let only = |word: &'static str, wanted: bool| Some(word).filter(|_| wanted);
    let reports = plan.sources.iter().any(|source| source.kind.as_relay_own().is_some());
    let start = [
        Some("1 workers"),
        only("aggregator", aggregates),
        only("statistics collector", reports),
        Some("servers"),
    ];
    let stop = [only("collector", reports), only("aggregator", aggregates), Some("worker 1")];
    Parts { start: start.into_iter().flatten().collect(), stop: stop.into_iter().flatten().collect() }
}

/// The original's log line for a closed listener.
fn closed(place: &str) -> Option<String> {
    let (way, address) = place.split_once("://")?;
    Some(match address.parse::<std::net::SocketAddr>() {
        Ok(at) if at.ip().is_unspecified() => format!("closed listener for {way} :{}", at.port()),
        Ok(_) => format!("closed listener for {way} {address}"),
        Err(_) => format!("removed listener for {address}"),
    })
}

/// An address in the original's format. The original has a socket for each address family, where ours has one for both.
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

/// An endpoint in the original's format: `tcp://10.0.0.1:2003` is `10.0.0.1:2003`.
pub fn endpoint(place: &str) -> &str {
    place.split_once("://").map_or(place, |(_, place)| place)
}

#[test]
fn addresses_are_printed_in_the_format_of_the_original() {
    let table: &[(&str, &[&str])] = &[
        ("tcp://[::]:2003", &["tcp4 0.0.0.0 port 2003", "tcp6 :: port 2003"]),
        ("udp://127.0.0.1:2003", &["udp4 127.0.0.1 port 2003"]),
        ("tcp://[::1]:1", &["tcp6 ::1 port 1"]),
        ("unix:///tmp/.s.carbon-c-relay.2003", &["UNIX socket /tmp/.s.carbon-c-relay.2003"]),
    ];
    for (place, want) in table {
        assert_eq!(listening_on(place), *want, "{place}");
    }
    assert_eq!(closed("udp://127.0.0.1:2").as_deref(), Some("closed listener for udp 127.0.0.1:2"));
    assert_eq!(closed("tcp://[::]:2").as_deref(), Some("closed listener for tcp :2"));
    assert_eq!(closed("unix:///tmp/s").as_deref(), Some("removed listener for /tmp/s"));
    assert_eq!((endpoint("tcp://h:1"), endpoint("/var/x")), ("h:1", "/var/x"));
}
