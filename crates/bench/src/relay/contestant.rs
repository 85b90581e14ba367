//! The relays under test: the bare loop, Staunch or the original; started, loaded, measured, stopped.
//!
//! Not here: order and number of the runs (`scenarios`).

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::bare::BareRelay;
use super::lines::{ENDPOINTS, Lines, Tally};
use super::sinks::Sinks;
use crate::contestant::process::Process;
use crate::contestant::server::{Stand, free_tcp_port};
use crate::contestant::usage::{self, Patience, Progress, Usage};
use crate::rounds::warm_up;
use crate::{BenchError, failed};

/// The config file of the repository, published with the numbers. Its ports are replaced before use.
const CONFIG: &str = include_str!("../../../../bench/relay.conf");
const LISTEN_PORT: &str = "28003";
const ENDPOINT_PORTS: [&str; ENDPOINTS] = ["22003", "22004", "22005"];

/// A relay may delay lines for a while.
const PATIENCE: Patience = Patience { look_every: Duration::from_millis(20), looks_unchanged_max: 100 };

/// The relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// Does not parse.
    Bare,
    /// The binary under test.
    Staunch,
    /// carbon-c-relay.
    Original,
}

/// Its settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings<'a> {
    /// Rules before the one that matches.
    pub rules: usize,
    /// The folder of its queues on disk; without one they are in memory. Only Staunch has queues on disk.
    pub queues: Option<&'a Path>,
    /// Most lines in each of the original's queues.
    pub lines_max: u64,
}

/// One run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    /// Lines sent.
    pub lines: u64,
    /// The lines that arrived at each endpoint.
    pub arrived: [Tally; ENDPOINTS],
    /// CPU time without idle use, in nanoseconds.
    pub cpu_ns: f64,
    /// From the first byte sent to the last one arrived, in nanoseconds.
    pub ns: u64,
    /// Peak memory so far, in bytes; 0 for the bare loop.
    pub memory_bytes: u64,
    /// Share of the server's core that other processes took meanwhile.
    pub others_share: f64,
}

enum Contestant {
    Bare(BareRelay),
    Process(Process, SocketAddr),
}

impl Who {
    /// Its name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Who::Bare => "bare loop",
            Who::Staunch => "staunch",
            Who::Original => "c-relay",
        }
    }

    /// One run with its own contestant: warmed up, measured, stopped.
    ///
    /// # Errors
    /// When it does not start or end, or takes no lines.
    pub(super) fn run(
        self,
        stand: &Stand,
        settings: Settings<'_>,
        sinks: &Sinks,
        lines: &Lines,
        count: u64,
    ) -> Result<Run, BenchError> {
        let before = sum(&sinks.arrived());
        let contestant = Contestant::start(self, stand, settings, sinks)?;
        let mut connection =
            TcpStream::connect(contestant.address()).map_err(failed("connect to a relay"))?;
        let ahead = warm_up(count);
        lines.send(ahead, &mut connection).map_err(failed("send lines to a relay"))?;
        let progress = &mut || Ok(progress(sinks));
        usage::settled(&|| contestant.cpu_ns(), before + ahead, PATIENCE, progress)?;
        let run = contestant.measure(stand.core, sinks, lines, count, &mut connection)?;
        drop(connection);
        match contestant {
            Contestant::Bare(bare) => bare.join(),
            Contestant::Process(process, _) => drop(process.stop()?),
        }
        Ok(run)
    }
}

impl Contestant {
    fn start(
        who: Who,
        stand: &Stand,
        settings: Settings<'_>,
        sinks: &Sinks,
    ) -> Result<Contestant, BenchError> {
        if who == Who::Bare {
            let bare = BareRelay::start(stand.core, sinks.addresses());
            return bare.map(Contestant::Bare).map_err(failed("start the bare loop"));
        }
        let address = free_tcp_port().map_err(failed("find a free port"))?;
        let number = address.port();
        let config = stand.dir.join(format!("{number}.conf"));
        let ports = sinks.addresses().map(|address| address.port());
        fs::write(&config, config_text(settings.rules, number, ports))
            .map_err(failed("write a config file"))?;
        let command = command(who, stand, settings, &config);
        let log = stand.dir.join(format!("{}-{number}.log", who.name()));
        let process = Process::start(who.name(), command, stand.core, log, || TcpStream::connect(address))?;
        Ok(Contestant::Process(process, address))
    }

    fn address(&self) -> SocketAddr {
        match self {
            Contestant::Bare(bare) => bare.address(),
            Contestant::Process(_, address) => *address,
        }
    }

    fn cpu_ns(&self) -> Result<u64, BenchError> {
        match self {
            Contestant::Bare(bare) => bare.cpu_ns().map_err(failed("read the CPU time of the bare loop")),
            Contestant::Process(process, _) => process.cpu_ns(),
        }
    }

    /// Sends, and waits until all lines have arrived or nothing changes any more. `core` is the contestant's.
    fn measure(
        &self,
        core: Option<usize>,
        sinks: &Sinks,
        lines: &Lines,
        count: u64,
        connection: &mut TcpStream,
    ) -> Result<Run, BenchError> {
        let before = sinks.arrived();
        let read_cpu = || self.cpu_ns();
        let usage = Usage::begin(core, &read_cpu)?;
        let start_ns = usage.start_ns;
        lines.send(count, connection).map_err(failed("send lines to a relay"))?;
        let used = usage.until_settled(sum(&before) + count, PATIENCE, &mut || Ok(progress(sinks)))?;
        let now = sinks.arrived();
        let memory_bytes = match self {
            Contestant::Bare(_) => 0,
            Contestant::Process(process, _) => process.memory()?.resident_high,
        };
        Ok(Run {
            lines: count,
            arrived: std::array::from_fn(|at| now[at].since(before[at])),
            cpu_ns: used.cpu_ns,
            ns: sinks.last_ns().saturating_sub(start_ns),
            memory_bytes,
            others_share: used.others_share,
        })
    }
}

/// The progress over all lines that ever arrived.
fn progress(sinks: &Sinks) -> Progress {
    let arrived = sum(&sinks.arrived());
    Progress { done: arrived, moved: arrived }
}

/// Lines at all endpoints.
fn sum(arrived: &[Tally; ENDPOINTS]) -> u64 {
    arrived.iter().map(|tally| tally.lines).sum()
}

/// The published config with other ports, and with `rules` rules that match no line before the one that does.
fn config_text(rules: usize, listen: u16, endpoints: [u16; ENDPOINTS]) -> String {
    let mut text = CONFIG.replace(LISTEN_PORT, &listen.to_string());
    for (published, port) in ENDPOINT_PORTS.iter().zip(endpoints) {
        text = text.replace(published, &port.to_string());
    }
    let rule = |at: usize| {
        format!("match ^stats\\.team{at}\\.[a-z]+[0-9]*\\.(timers|gauges)\\. send to ring stop;\n")
    };
    let rules: String = (0..rules).map(rule).collect();
    text.replace("match *\n", &format!("{rules}match *\n"))
}

fn command(who: Who, stand: &Stand, settings: Settings<'_>, config: &Path) -> Command {
    let mut command = match who {
        Who::Original => {
            let mut command =
                Command::new(stand.rival.clone().unwrap_or_else(|| PathBuf::from("carbon-c-relay")));
            // Queues that never drop, and one worker, because it has one core.
            command.args(["-w", "1", "-q", &settings.lines_max.to_string()]);
            command
        }
        Who::Bare | Who::Staunch => {
            let mut command = Command::new(&stand.binary);
            command.args(["relay", "--http", "off"]);
            if let Some(queues) = settings.queues {
                command.arg("--queue-dir").arg(queues);
            }
            command
        }
    };
    command.arg("-f").arg(config).current_dir(&stand.dir);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::lines::astray;

    #[test]
    fn the_measured_config_is_the_published_one_with_other_ports_and_rules() {
        assert_eq!(config_text(0, 28003, [22003, 22004, 22005]), CONFIG);
        let text = config_text(200, 5, [1, 2, 3]);
        assert!(["28003", "2200"].iter().all(|port| !text.contains(port)), "{text}");
        let reading = import::relay::read_text("relay.conf", &text);
        assert!(reading.mistakes.is_empty(), "{:?}", reading.mistakes);
        assert_eq!(text.matches("\nmatch ").count(), 201);
    }

    #[test]
    fn the_bare_loop_relays_every_line_without_regard_to_names() {
        let dir = tempfile::tempdir().unwrap();
        let stand = Stand { binary: PathBuf::new(), rival: None, dir: dir.path().into(), core: None };
        let settings = Settings { rules: 0, queues: None, lines_max: 0 };
        let (sinks, lines) = (Sinks::start().unwrap(), Lines::new(1000));
        let run = Who::Bare.run(&stand, settings, &sinks, &lines, 60_000).unwrap();
        let shares = lines.shares(60_000);
        let bytes = |tallies: &[Tally]| tallies.iter().map(|tally| tally.bytes).sum::<u64>();
        assert_eq!((sum(&run.arrived), bytes(&run.arrived)), (60_000, bytes(&shares)));
        assert!(run.cpu_ns > 0.0 && run.ns > 0, "{run:?}");
        assert!(astray(&shares, &run.arrived) > 0, "it ignores names");
    }
}
