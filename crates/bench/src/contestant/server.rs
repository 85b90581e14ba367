//! A StatsD daemon under test: started with its config file, queried for its counts, stopped.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::contestant::api_client::{self, Counts};
use crate::contestant::process::Process;
use crate::{BenchError, failed};
use sys::Memory;

/// Config files of the repository, published with the numbers. Their ports are replaced before use.
const STAUNCH_CONFIG: &str = include_str!("../../../../bench/staunch.toml");
const NODE_CONFIG: &str = include_str!("../../../../bench/statsd.js");
const STATSD_PORT: &str = "28125";
const MANAGEMENT_PORT: &str = "28126";
const HTTP_PORT: &str = "28680";
const GRAPHITE_PORT: &str = "22003";

/// Which daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Daemon {
    /// The binary under test.
    Staunch,
    /// The original, from the npm registry.
    Node,
}

impl Daemon {
    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Daemon::Staunch => "staunch",
            Daemon::Node => "node statsd",
        }
    }
}

/// Where a daemon under test listens on loopback.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    /// UDP, for samples.
    pub statsd: u16,
    /// TCP: HTTP server or management port.
    pub control: u16,
}

/// The settings with which all daemons under test are started.
#[derive(Debug)]
pub(crate) struct Stand {
    /// The binary under test.
    pub binary: PathBuf,
    /// The original: `stats.js` of node statsd, or the program of carbon-c-relay.
    pub rival: Option<PathBuf>,
    /// Where configs and logs go.
    pub dir: PathBuf,
    /// The core that they run on; None for any.
    pub core: Option<usize>,
}

/// A daemon that runs. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    process: Process,
    control: Control,
    statsd: SocketAddr,
}

/// The address and the protocol for queries.
#[derive(Clone, Copy, Debug)]
struct Control {
    daemon: Daemon,
    /// HTTP server or management port.
    at: SocketAddr,
    /// The address for samples.
    statsd: u16,
}

impl Server {
    /// Starts a daemon with the text of its config file, and waits until it answers.
    ///
    /// # Errors
    /// When it cannot be started, ends at once, or does not answer in time.
    pub(crate) fn start(
        stand: &Stand,
        daemon: Daemon,
        config: &dyn Fn(Ports) -> String,
    ) -> Result<Server, BenchError> {
        let statsd = free_udp_port().map_err(failed("find a free port"))?;
        let control = free_tcp_port().map_err(failed("find a free port"))?;
        let log = stand.dir.join(format!("{}-{}.log", daemon.name().replace(' ', "-"), statsd.port()));
        let ports = Ports { statsd: statsd.port(), control: control.port() };
        let command =
            command(stand, daemon, &config(ports), statsd.port()).map_err(failed("write a config file"))?;
        let control = Control { daemon, at: control, statsd: statsd.port() };
        let process = Process::start(daemon.name(), command, stand.core, log, || control.ask())?;
        Ok(Server { process, control, statsd })
    }

    /// The address for samples.
    pub(crate) fn address(&self) -> SocketAddr {
        self.statsd
    }

    /// CPU time of all its threads so far, in nanoseconds.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn cpu_ns(&self) -> Result<u64, BenchError> {
        self.process.cpu_ns()
    }

    /// Its memory.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn memory(&self) -> Result<Memory, BenchError> {
        self.process.memory()
    }

    /// Its counts so far. The kernel's drops come from the daemon if it counts them, otherwise from the system.
    ///
    /// # Errors
    /// When it does not reply with counts.
    pub(crate) fn counts(&self) -> Result<Counts, BenchError> {
        self.control.ask().map_err(|error| self.no_counts(error.to_string()))
    }

    /// Its accounts, a JSON document; only Staunch has them.
    ///
    /// # Errors
    /// When it does not reply with accounts.
    pub(crate) fn accounts(&self) -> Result<serde_json::Value, BenchError> {
        api_client::staunch_accounts(self.control.at).map_err(|error| self.no_counts(error.to_string()))
    }

    /// The error for an answer that cannot be used.
    pub(crate) fn no_counts(&self, why: String) -> BenchError {
        BenchError::Counts { server: self.control.daemon.name(), why }
    }

    /// Sends SIGTERM and waits for the end. A good daemon delivers its queued data first.
    ///
    /// # Errors
    /// When it does not end in time; it is then killed.
    pub(crate) fn stop(self) -> Result<ExitStatus, BenchError> {
        self.process.stop()
    }
}

impl Control {
    fn ask(&self) -> io::Result<Counts> {
        match self.daemon {
            Daemon::Staunch => api_client::staunch_counts(self.at),
            Daemon::Node => {
                let counts = api_client::node_counts(self.at)?;
                Ok(Counts {
                    dropped: dropped_at(&fs::read_to_string("/proc/net/udp")?, self.statsd),
                    ..counts
                })
            }
        }
    }
}

/// The config of the `statsd` benchmark, as published, with these ports.
pub(crate) fn statsd_config(daemon: Daemon, graphite: SocketAddr, ports: Ports) -> String {
    let text = match daemon {
        Daemon::Staunch => STAUNCH_CONFIG,
        Daemon::Node => NODE_CONFIG,
    };
    with_ports(daemon, text, ports).replace(GRAPHITE_PORT, &graphite.port().to_string())
}

/// A published config with these ports in place of its own.
pub(crate) fn with_ports(daemon: Daemon, text: &str, ports: Ports) -> String {
    let control = match daemon {
        Daemon::Staunch => HTTP_PORT,
        Daemon::Node => MANAGEMENT_PORT,
    };
    text.replace(STATSD_PORT, &ports.statsd.to_string()).replace(control, &ports.control.to_string())
}

/// The command line of a daemon, its config file written under a name made of `number`.
fn command(stand: &Stand, daemon: Daemon, text: &str, number: u16) -> io::Result<Command> {
    let ending = match daemon {
        Daemon::Staunch => "toml",
        Daemon::Node => "js",
    };
    let config = stand.dir.join(format!("{number}.{ending}"));
    fs::write(&config, text)?;
    let mut command = match daemon {
        Daemon::Staunch => {
            let mut command = Command::new(&stand.binary);
            command.arg("run").arg(&config);
            command
        }
        Daemon::Node => {
            let script = stand.rival.as_deref().unwrap_or(Path::new("stats.js"));
            let mut command = Command::new("node");
            command.arg(script).arg(&config);
            command
        }
    };
    command.current_dir(&stand.dir);
    Ok(command)
}

/// A UDP port that was free a moment ago.
fn free_udp_port() -> io::Result<SocketAddr> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// A TCP port that was free a moment ago.
pub(crate) fn free_tcp_port() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Drops of the socket on `port`, from the system's table of UDP sockets.
fn dropped_at(table: &str, port: u16) -> u64 {
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let (_, local) = fields.nth(1)?.rsplit_once(':')?;
            (u16::from_str_radix(local, 16) == Ok(port)).then(|| fields.next_back()?.parse::<u64>().ok())?
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_those_of_the_port() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
            100: 0100007F:1FBD 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1234 2 0000000000000000 17\n\
            101: 0100007F:1FBE 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1235 2 0000000000000000 4\n";
        assert_eq!(dropped_at(table, 8125), 17);
        assert_eq!(dropped_at(table, 8126), 4);
        assert_eq!(dropped_at(table, 1), 0);
    }

    #[test]
    fn configs_name_every_port_that_is_replaced() {
        for port in [STATSD_PORT, HTTP_PORT, GRAPHITE_PORT] {
            assert_eq!(STAUNCH_CONFIG.matches(port).count(), 1, "{port}");
        }
        for port in [STATSD_PORT, MANAGEMENT_PORT, GRAPHITE_PORT] {
            assert_eq!(NODE_CONFIG.matches(port).count(), 1, "{port}");
        }
    }
}
