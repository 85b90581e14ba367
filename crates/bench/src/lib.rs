//! The benchmarks of `staunch bench`: the daemon measured from outside, beside bare loops and the originals.
//!
//! Path of a packet: `traffic::packets` makes a ring of packets, `traffic::generator` sends it, a contestant receives it
//! (`contestant`: a bare loop, Staunch or node's statsd as a child process), and `traffic::sink` or `traffic::endpoints` receives
//! the result. `statsd::scenario` and `fanout::copies` define the runs, `rounds` their order, `report` the table. `relay` has a
//! generator, contestants and endpoints of its own. `queue` uses no sockets: it appends to queues on disk as the daemon does;
//! `queue::start` starts daemons on queues that already hold records. `store` starts daemons with a store, and asks them as Grafana
//! does. `riemann` has a client of Riemann's protocol, and also runs single streams within this process.
//! The daemon's queue comes from the binary through [`queue::DaemonQueue`]; of the daemon's crates, only Riemann's streams and wire
//! format are needed here besides.
//! Not here: the verb and its output (`staunch::cli::bench`), numbers without a comparison in the same run. All traffic stays on
//! loopback.
//! Invariant: all child processes end with the run, however it ends.

#![cfg(unix)]

mod contestant;
pub mod fanout;
pub mod ground;
mod machine;
pub mod queue;
pub mod relay;
mod report;
pub mod riemann;
pub mod rival;
mod rounds;
pub mod statsd;
pub mod store;
mod traffic;

pub use report::{Check, Report, Row, ScenarioReport};

use std::io;
use std::path::PathBuf;

/// Why a benchmark could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A thread or socket of the benchmark's own failed.
    #[error("the benchmark cannot {what}")]
    Io {
        /// The failed action.
        what: &'static str,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// A daemon under test did not start.
    #[error("cannot start {server} ({command})")]
    Start {
        /// The program.
        server: &'static str,
        /// Program and arguments.
        command: String,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// A daemon under test ended or never answered.
    #[error("{server} was started but does not answer: {why}; its words are in {log}")]
    NotReady {
        /// The program.
        server: &'static str,
        /// The last attempt.
        why: String,
        /// The log with its output.
        log: PathBuf,
    },
    /// A daemon under test does not report its counts.
    #[error("{server} does not report its counts: {why}")]
    Counts {
        /// The program.
        server: &'static str,
        /// What is wrong with the answer.
        why: String,
    },
    /// An argument without meaning.
    #[error("{0}")]
    Argument(String),
}

/// Adds the failed action to an I/O error.
fn failed(what: &'static str) -> impl FnOnce(io::Error) -> BenchError {
    move |cause| BenchError::Io { what, cause }
}

/// The arguments of a benchmark, parsed as on the command line.
#[cfg(test)]
fn parse<A: clap::Args>(words: &str) -> Result<A, clap::Error> {
    use clap::Parser;

    #[derive(Parser)]
    struct Cli<A: clap::Args> {
        #[command(flatten)]
        args: A,
    }
    Cli::try_parse_from(std::iter::once("bench").chain(words.split_whitespace())).map(|cli| cli.args)
}
