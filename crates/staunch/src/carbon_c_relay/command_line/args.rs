//! The flags of carbon-c-relay, parsed as by its getopt, and our own flags.
//!
//! A number stays a text here: `import::relay::flags` checks it, and reports all errors at once.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::ArgAction;
use import::relay::flags::Flags;

use crate::cli::args::{HotRestart, Port};

/// Where HTTP listens without `--http`.
pub(super) const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8680);

/// Below the long help.
const EXAMPLES: &str = "\
Defaults: a file without `listen` gets the listeners of carbon-c-relay, port 2003
for UDP and TCP on all addresses of the machine. Queues are in memory. A full one
makes clients wait while its server is up, and drops its oldest lines while it is
down.

Examples:
  staunch relay -f relay.conf -tt                  check the file
  staunch relay -f relay.conf                      run it
  staunch relay -f relay.conf -p 2103 --http 8681  beside another relay
  staunch relay -f relay.conf --queue-dir /var/lib/staunch/queues
                                                   keep queues on disk
  staunch relay -f relay.conf --explain web1.cpu.load
                                                   rules and endpoints of a name";

/// `staunch relay`
///
/// Route Graphite lines with a relay.conf of carbon-c-relay.
///
/// Accepts carbon-c-relay's configuration file and flags. Started under the name `carbon-c-relay` or `relay`, the program
/// is this command. Flags may be combined (-tt, -ddd, -p2003); of a repeated flag the last one applies.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(disable_help_flag = true, args_override_self = true)]
#[command(override_usage = "staunch relay -f FILE [-t] [FLAGS]")]
#[command(after_help = "Try:  staunch relay -f relay.conf --explain web1.cpu.load")]
#[command(after_long_help = EXAMPLES)]
#[command(after_long_help = LONGER)]
pub(crate) struct RelayArgs {
    /// Configuration; may be a pattern for several files.
    #[arg(short = 'f', value_name = "FILE", allow_hyphen_values = true)]
    pub(super) config: Option<String>,
    /// Show matching rules for stdin; -tt: check the file.
    ///
    /// The output has carbon-c-relay's format: settings, configuration, and the matching rules for each name.
    /// -tt prints only errors.
    #[arg(short = 't', action = ArgAction::Count)]
    pub(super) test: u8,
    /// Explain the route of lines with NAME; repeatable.
    ///
    /// NAME may be a full line: `validate` then checks the text after the name. Nothing is started, and all endpoints
    /// count as up.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(super) explain: Vec<String>,
    /// With --explain: print JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Keep queues on disk, in DIR.
    ///
    /// They survive an outage and a restart. Without this flag queues are in memory, with -q records each, as in the original.
    #[arg(long, value_name = "DIR")]
    pub(super) queue_dir: Option<PathBuf>,
    /// HTTP API, or `off` [default: 127.0.0.1:8680].
    #[arg(long, value_name = "ADDR")]
    pub(super) http: Option<Port>,
    /// Hot restart.
    #[command(flatten)]
    pub(super) restart: HotRestart,
    /// Append the log to FILE [default: stdout and stderr].
    #[arg(short = 'l', value_name = "FILE", allow_hyphen_values = true)]
    pub(super) log: Option<String>,
    /// Port of the default listeners [default: 2003].
    #[arg(short = 'p', value_name = "PORT", allow_hyphen_values = true)]
    pub(super) port: Option<String>,
    /// Worker threads [default: one per core].
    #[arg(hide_short_help = true, short = 'w', value_name = "N", allow_hyphen_values = true)]
    pub(super) workers: Option<String>,
    /// Records sent at once [default: 2500].
    #[arg(hide_short_help = true, short = 'b', value_name = "N", allow_hyphen_values = true)]
    pub(super) batch: Option<String>,
    /// Records queued per server [default: 25000].
    #[arg(short = 'q', value_name = "N", allow_hyphen_values = true)]
    pub(super) queue: Option<String>,
    /// Stalls of a client in a row before records are dropped [default: 4].
    #[arg(hide_short_help = true, short = 'L', value_name = "N", allow_hyphen_values = true)]
    pub(super) stalls: Option<String>,
    /// CAs for TLS: of servers, and of clients with mtls [default: the system's].
    #[arg(hide_short_help = true, short = 'C', value_name = "FILE", allow_hyphen_values = true)]
    pub(super) ca: Option<String>,
    /// Time for connecting and writing, in milliseconds [default: 600].
    #[arg(hide_short_help = true, short = 'T', value_name = "MS", allow_hyphen_values = true)]
    pub(super) timeout: Option<String>,
    /// Allowed bytes in names besides letters, digits and dots [default: -_:#].
    #[arg(hide_short_help = true, short = 'c', value_name = "CHARS", allow_hyphen_values = true)]
    pub(super) allowed: Option<String>,
    /// Longest name in bytes [default: 0, no limit but -M].
    #[arg(hide_short_help = true, short = 'm', value_name = "N", allow_hyphen_values = true)]
    pub(super) name_bytes_max: Option<String>,
    /// Longest line in bytes [default: 32768].
    #[arg(hide_short_help = true, short = 'M', value_name = "N", allow_hyphen_values = true)]
    pub(super) line_bytes_max: Option<String>,
    /// Name of this host in statistics [default: the host's].
    #[arg(hide_short_help = true, short = 'H', value_name = "NAME", allow_hyphen_values = true)]
    pub(super) hostname: Option<String>,
    /// Listen backlog in connections [default: 32].
    #[arg(hide_short_help = true, short = 'B', value_name = "N", allow_hyphen_values = true)]
    pub(super) backlog: Option<String>,
    /// Size of sockets' buffers in bytes [default: the system's].
    #[arg(hide_short_help = true, short = 'U', value_name = "N", allow_hyphen_values = true)]
    pub(super) buffer: Option<String>,
    /// Write the process id to FILE.
    #[arg(hide_short_help = true, short = 'P', value_name = "FILE", allow_hyphen_values = true)]
    pub(super) pid_file: Option<String>,
    /// Print rules in groups from N rules on, with -t [default: 50; negative: never].
    #[arg(hide_short_help = true, short = 'O', value_name = "N", allow_hyphen_values = true)]
    pub(super) optimise: Option<String>,
    /// Never close idle connections [default: after 10 minutes].
    #[arg(hide_short_help = true, short = 'E')]
    pub(super) keep_idle: bool,
    /// No statistics as records.
    #[arg(hide_short_help = true, short = 's')]
    pub(super) submission: bool,
    /// As -s, and a line of statistics each second.
    #[arg(hide_short_help = true, short = 'S')]
    pub(super) submission_report: bool,
    /// Statistics to the log; with -t rings.
    ///
    /// -dd: each step to the log; -ddd: both. With -t also the ring positions of names, and the original's hidden rules.
    #[arg(short = 'd', action = ArgAction::Count)]
    pub(super) debug: u8,
    /// Run in the background; needs -l.
    #[arg(hide_short_help = true, short = 'D')]
    pub(super) daemonise: bool,
    /// Version and features.
    #[arg(short = 'v')]
    pub(super) version: bool,
    /// Short help.
    #[arg(short = 'h', action = ArgAction::HelpShort)]
    help: Option<bool>,
    /// Long help.
    #[arg(long = "help", action = ArgAction::HelpLong)]
    long_help: Option<bool>,
    /// Arguments without a flag, which the original ignores.
    #[arg(hide = true)]
    pub(super) ignored: Vec<String>,
}

const LONGER: &str = "\
Examples:
  staunch relay -f relay.conf -tt            check the file: all errors at once
  staunch relay -f relay.conf --explain N    which rules match N, and its endpoints
  echo N | staunch relay -f relay.conf -t    the same in the original's format
  staunch relay -f relay.conf -t -d          with the points of hash rings

Exit codes: 0 success, 1 wrong flags or errors in the file, 2 other failures.

Differences from carbon-c-relay, and ignored flags: docs/relay.md.";

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

#[cfg(test)]
mod tests {
    use clap::Parser;
    use clap::error::ErrorKind;

    use super::*;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        relay: RelayArgs,
    }

    fn parsed(words: &str) -> Result<RelayArgs, ErrorKind> {
        let words = words.split_whitespace().map(|word| if word == "''" { "" } else { word });
        let parsed = Alone::try_parse_from(["relay"].into_iter().chain(words));
        parsed.map(|alone| alone.relay).map_err(|error| error.kind())
    }

    #[test]
    fn flags_are_parsed_as_getopt_parses_them() {
        let some = |text: &str| Some(text.to_owned());
        type Taken = fn(&RelayArgs) -> Option<String>;
        let table: [(&str, Taken, Option<String>); 12] = [
            ("-p2003", |args| args.port.clone(), some("2003")),
            ("-p 2003", |args| args.port.clone(), some("2003")),
            ("-p 1 -p 2", |args| args.port.clone(), some("2")),
            ("-f a.conf -t b", |args| args.config.clone(), some("a.conf")),
            ("-tf a.conf", |args| args.config.clone(), some("a.conf")),
            ("-tfa.conf", |args| args.config.clone(), some("a.conf")),
            ("-Htest.hostname", |args| args.hostname.clone(), some("test.hostname")),
            ("-O -1", |args| args.optimise.clone(), some("-1")),
            ("-c -_:#", |args| args.allowed.clone(), some("-_:#")),
            ("-c ''", |args| args.allowed.clone(), some("")),
            ("-l -t", |args| args.log.clone(), some("-t")),
            ("a b", |args| args.config.clone(), None),
        ];
        for (words, get, want) in table {
            assert_eq!(parsed(words).map(|args| get(&args)), Ok(want), "{words}");
        }
        let counts = |words: &str| parsed(words).map(|args| (args.test, args.debug, args.keep_idle));
        assert_eq!(counts("-tt -d -dd -E"), Ok((2, 3, true)));
        assert_eq!(counts("-Etdt"), Ok((2, 1, true)));
        assert_eq!(parsed("-E -E -s -s -v -v").map(|args| args.submission), Ok(true));
    }

    #[test]
    fn unknown_flags_are_rejected_and_help_is_shown() {
        for (words, want) in [
            ("-Z", ErrorKind::UnknownArgument),
            ("-f", ErrorKind::InvalidValue),
            ("--port 1", ErrorKind::UnknownArgument),
            ("-h", ErrorKind::DisplayHelp),
            ("--help", ErrorKind::DisplayHelp),
        ] {
            assert_eq!(parsed(words).map(|_| ()), Err(want), "{words}");
        }
    }
}
