//! The words of the command line (spec graphite §2.1).

use std::path::PathBuf;

use clap::ArgAction;
use config::import::relay::flags::Flags;

use super::super::args::{Port, TakeOver};

/// `staunch relay`
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RelayArgs {
    /// The configuration, or a pattern for several files.
    #[arg(short = 'f', value_name = "FILE")]
    config: Option<String>,
    /// Append the log to this file.
    #[arg(short = 'l', value_name = "FILE")]
    log: Option<String>,
    /// Port of the default listeners.
    #[arg(short = 'p', value_name = "PORT")]
    port: Option<String>,
    /// Worker threads.
    #[arg(hide_short_help = true, short = 'w', value_name = "N")]
    workers: Option<String>,
    /// Records that are sent at once.
    #[arg(hide_short_help = true, short = 'b', value_name = "N")]
    batch: Option<String>,
    /// Records that wait for an endpoint, at most.
    #[arg(short = 'q', value_name = "N")]
    queue: Option<String>,
    /// Stalls before records are shed.
    #[arg(hide_short_help = true, short = 'L', value_name = "N")]
    stalls: Option<String>,
    /// Authorities of certificates.
    #[arg(hide_short_help = true, short = 'C', value_name = "FILE")]
    ca: Option<String>,
    /// Time for connecting and writing.
    #[arg(hide_short_help = true, short = 'T', value_name = "MS")]
    timeout: Option<String>,
    /// Bytes that names keep beside letters, digits and dots.
    #[arg(hide_short_help = true, short = 'c', value_name = "CHARS")]
    allowed: Option<String>,
    /// Longest name.
    #[arg(hide_short_help = true, short = 'm', value_name = "N")]
    name_bytes_max: Option<String>,
    /// Longest line.
    #[arg(hide_short_help = true, short = 'M', value_name = "N")]
    line_bytes_max: Option<String>,
    /// Name of the host in statistics.
    #[arg(hide_short_help = true, short = 'H', value_name = "NAME")]
    hostname: Option<String>,
    /// Connections that wait to be accepted.
    #[arg(hide_short_help = true, short = 'B', value_name = "N")]
    backlog: Option<String>,
    /// Size of sockets' buffers.
    #[arg(hide_short_help = true, short = 'U', value_name = "BYTES")]
    buffer: Option<String>,
    /// File for the process id.
    #[arg(hide_short_help = true, short = 'P', value_name = "FILE")]
    pid_file: Option<String>,
    /// Least number of rules to group; ours keeps their order always.
    #[arg(hide_short_help = true, short = 'O', value_name = "N", allow_hyphen_values = true)]
    optimise: Option<String>,
    /// Never close idle connections.
    #[arg(hide_short_help = true, short = 'E')]
    keep_idle: bool,
    /// No statistics.
    #[arg(hide_short_help = true, short = 's')]
    submission: bool,
    /// A line a second in the place of statistics.
    #[arg(hide_short_help = true, short = 'S')]
    submission_report: bool,
    /// Into the background.
    #[arg(hide_short_help = true, short = 'D')]
    daemonise: bool,
    /// Say more.
    #[arg(short = 'd', action = ArgAction::Count)]
    debug: u8,
    /// Test.
    #[arg(short = 't', action = ArgAction::Count)]
    test: u8,
    /// Keep every endpoint's queue on disk, in this folder.
    #[arg(long, value_name = "DIR")]
    pub(super) queue_dir: Option<PathBuf>,
    /// HTTP API: ADDR, or `off`.
    #[arg(long, value_name = "ADDR")]
    pub(super) http: Option<Port>,
    /// Hot restart.
    #[command(flatten)]
    pub(super) restart: TakeOver,
}

impl RelayArgs {
    /// The flags of the original.
    pub(super) fn flags(&self) -> Flags {
        let args = self.clone();
        Flags {
            config: args.config,
            log: args.log,
            port: args.port,
            workers: args.workers,
            batch: args.batch,
            queue: args.queue,
            stalls: args.stalls,
            ca: args.ca,
            timeout: args.timeout,
            allowed: args.allowed,
            name_bytes_max: args.name_bytes_max,
            line_bytes_max: args.line_bytes_max,
            hostname: args.hostname,
            backlog: args.backlog,
            buffer: args.buffer,
            pid_file: args.pid_file,
            optimise: args.optimise,
            keep_idle: args.keep_idle,
            submission: args.submission,
            submission_report: args.submission_report,
            daemonise: args.daemonise,
            debug: args.debug,
            test: args.test,
        }
    }
}
