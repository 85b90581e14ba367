//! `staunch bench`: measures the daemon from outside, with a generator and a bare loop of our own.
//!
//! Path of a packet: `packets` makes a ring of them -> `generator` sends it -> a contestant receives: the bare loop
//! (`bare`), Staunch or node statsd as child processes (`server`) -> what they deliver ends in `sink`, what they copy
//! in `endpoints`. `scenario` (for `statsd`) and `copies` (for `fanout`) decide who gets what, `rounds` who runs when,
//! `contestant` reads memory and counts and `usage` CPU time, `report` says it. `relay` has a generator, contestants and
//! endpoints of its own. `queue` has no sockets: it appends to queues on disk as the shard does; `start` starts a daemon on
//! what waits there.
//! Not here: numbers without a comparison in the same run. Everything stays on loopback.
//! Invariant: whatever ends a run, the children end with it.

mod api_client;
mod bare;
mod contestant;
mod copies;
mod endpoints;
pub mod fanout;
mod generator;
pub mod ground;
mod machine;
mod packets;
mod process;
pub mod queue;
pub mod relay;
mod report;
pub mod rival;
mod rounds;
mod scenario;
mod server;
mod sink;
mod start;
pub mod statsd;
mod usage;

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
        /// What it was doing.
        what: &'static str,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A daemon under test did not start.
    #[error("cannot start {server} ({command})")]
    Start {
        /// Who.
        server: &'static str,
        /// Program and arguments.
        command: String,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A daemon under test ended or never answered.
    #[error("{server} was started but does not answer: {why}; its words are in {log}")]
    NotReady {
        /// Who.
        server: &'static str,
        /// What was tried last.
        why: String,
        /// What it printed.
        log: PathBuf,
    },
    /// A daemon under test does not say what it counted.
    #[error("{server} does not tell its counts: {why}")]
    Counts {
        /// Who.
        server: &'static str,
        /// What is wrong with the answer.
        why: String,
    },
    /// An argument that makes no sense.
    #[error("{0}")]
    Argument(String),
}

/// Names an I/O error's occasion.
fn failed(what: &'static str) -> impl FnOnce(io::Error) -> BenchError {
    move |cause| BenchError::Io { what, cause }
}

/// The arguments of a bench from words, as its command line reads them.
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
