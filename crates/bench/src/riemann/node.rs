//! A daemon with a riemann.config as a child process: Staunch or Riemann.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::connection::Connection;
use crate::contestant::api_client::{self, Counts};
use crate::contestant::process::Process;
use crate::contestant::server::{Stand, free_tcp_port};
use crate::{BenchError, failed};
use sys::Memory;
use sys::clock::Clock;

/// The config file of the repository, published with the numbers. Its ports are replaced before use.
pub(super) const CONFIG: &str = include_str!("../../../../bench/riemann.config");
const PORT: &str = "25555";

/// A message without content, with its length: it is replied to like any other.
const EMPTY_MESSAGE: [u8; 4] = [0; 4];

/// How often a start is looked at that is measured, and the longest that is waited for.
const LOOK_EVERY: Duration = Duration::from_micros(200);
const START_WAIT_NS: u64 = 60_000_000_000;

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// The binary under test.
    Staunch,
    /// The original.
    Riemann,
}

impl Program {
    /// Its name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Program::Staunch => "staunch",
            Program::Riemann => "riemann",
        }
    }

    fn command(self, stand: &Stand, config: &Path, http: SocketAddr) -> Command {
        let mut command = match self {
            Program::Staunch => {
                let mut command = Command::new(&stand.binary);
                command.args(["riemann", "--http", &http.to_string(), "start"]);
                command
            }
            Program::Riemann => {
                let mut command = Command::new("java");
                command.arg("-jar").arg(stand.rival.clone().unwrap_or_else(|| PathBuf::from("riemann.jar")));
                command.arg("start");
                command
            }
        };
        command.arg(config).current_dir(&stand.dir);
        command
    }
}

/// One daemon. Killed when dropped.
#[derive(Debug)]
pub(super) struct Node {
    process: Process,
    http: SocketAddr,
    /// Where it takes messages, over TCP and UDP.
    pub(super) address: SocketAddr,
}

impl Node {
    /// Starts one with the text of a config that has the ports of [`CONFIG`].
    ///
    /// # Errors
    /// When it does not start.
    pub(super) fn start(stand: &Stand, program: Program, config: &str) -> Result<Node, BenchError> {
        let (command, address, http, log) = Node::prepare(stand, program, config)?;
        let process = Process::start(program.name(), command, stand.core, log, || replies(address))?;
        Ok(Node { process, http, address })
    }

    /// The same, and the nanoseconds from the start of the program to its first reply.
    ///
    /// # Errors
    /// When it does not start.
    pub(super) fn start_timed(
        stand: &Stand,
        program: Program,
        config: &str,
    ) -> Result<(Node, u64), BenchError> {
        let (command, address, http, log) = Node::prepare(stand, program, config)?;
        let begin_ns = Clock::mono_ns();
        let process = Process::spawn(program.name(), command, stand.core, log)?;
        while let Err(error) = replies(address) {
            if Clock::mono_ns() - begin_ns > START_WAIT_NS {
                return Err(process.not_ready(error.to_string()));
            }
            thread::sleep(LOOK_EVERY);
        }
        let took_ns = Clock::mono_ns() - begin_ns;
        Ok((Node { process, http, address }, took_ns))
    }

    fn prepare(
        stand: &Stand,
        program: Program,
        config: &str,
    ) -> Result<(Command, SocketAddr, SocketAddr, PathBuf), BenchError> {
        let free = || free_tcp_port().map_err(failed("find a free port"));
        let (address, http) = (free()?, free()?);
        let port = address.port().to_string();
        let path = stand.dir.join(format!("{port}.config"));
        fs::write(&path, config.replace(PORT, &port)).map_err(failed("write a config file"))?;
        let log = stand.dir.join(format!("{}-{port}.log", program.name()));
        Ok((program.command(stand, &path, http), address, http, log))
    }

    /// CPU time so far, in nanoseconds.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn cpu_ns(&self) -> Result<u64, BenchError> {
        self.process.cpu_ns()
    }

    /// Its memory.
    ///
    /// # Errors
    /// When it has ended.
    pub(super) fn memory(&self) -> Result<Memory, BenchError> {
        self.process.memory()
    }

    /// What its sources have counted; only Staunch says so.
    ///
    /// # Errors
    /// When it does not reply with counts.
    pub(super) fn counts(&self) -> Result<Counts, BenchError> {
        api_client::staunch_counts(self.http)
            .map_err(|error| BenchError::Counts { server: Program::Staunch.name(), why: error.to_string() })
    }

    /// Asks it to end.
    ///
    /// # Errors
    /// When it does not end.
    pub(super) fn stop(self) -> Result<(), BenchError> {
        self.process.stop().map(|_status| ())
    }
}

/// Whether a daemon replies.
fn replies(address: SocketAddr) -> io::Result<()> {
    Connection::open(address)?.ask(&EMPTY_MESSAGE, &mut Vec::new())
}

#[test]
fn the_published_config_has_its_port_in_both_servers() {
    assert_eq!(CONFIG.matches(PORT).count(), 2);
}
