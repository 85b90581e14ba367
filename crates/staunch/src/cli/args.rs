//! Commands and their options, for clap.

mod daemon;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use client::args::{QueueArgs, StatusArgs, TopArgs};
use config::plan::{Destination, Listen};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

pub(crate) use self::daemon::{HotRestart, Port, Ports};
use super::log_format::LogFormat;
use super::whisper::WhisperArgs;
#[cfg(unix)]
use crate::carbon::CarbonArgs;
use crate::carbon_c_relay::command_line::RelayArgs;

/// StatsD daemon, fan-out proxy, Graphite relay and store. Start here: staunch run
#[derive(Debug, Parser)]
#[command(name = "staunch", version, disable_version_flag = true, max_term_width = 80)]
pub(crate) struct Args {
    /// Log level: error, warn, info, debug, or a filter such as `staunch=debug`.
    #[arg(long, global = true, default_value = "info", value_name = "LEVEL", hide_short_help = true)]
    #[arg(value_parser = log_level)]
    pub(crate) log_level: String,
    /// Log format: text, or json for one JSON object per line.
    ///
    /// Members: `time`, `level`, `message`, and `fields` if there are any. `staunch relay` logs in the format of carbon-c-relay.
    #[arg(long, global = true, value_enum, default_value = "text", hide_short_help = true)]
    #[arg(value_name = "FORMAT", hide_possible_values = true)]
    pub(crate) log_format: LogFormat,
    /// Print version.
    #[arg(short = 'V', long = "version", action = clap::ArgAction::Version, hide_short_help = true)]
    version: Option<bool>,
    /// The command.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Rejects unknown levels: tracing would read one as a filter, and log nothing.
fn log_level(text: &str) -> Result<String, String> {
    let is_level = |part: &str| {
        part.contains('=') || (!part.trim().is_empty() && part.trim().parse::<LevelFilter>().is_ok())
    };
    if text.split(',').all(is_level) && EnvFilter::builder().parse(text).is_ok() {
        return Ok(text.to_owned());
    }
    Err("expected error, warn, info, debug, trace, off, or a filter such as `staunch=debug`".into())
}

#[test]
fn a_log_level_is_a_word_that_is_known_or_a_filter() {
    for (text, good) in [
        ("info", true),
        ("WARN", true),
        ("off", true),
        ("warn,staunch=debug", true),
        ("staunch=debug", true),
        ("chatty", false),
        ("staunch=chatty", false),
        ("", false),
    ] {
        assert_eq!(log_level(text).is_ok(), good, "{text}");
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run the daemon with a config file, or with defaults on loopback.
    Run(RunArgs),
    /// Run the daemon as a Windows service, which `sc create` registers.
    #[cfg(windows)]
    Service(RunArgs),
    /// Run with a config of node's statsd or Net::Statsd::Server.
    Statsd(StatsdArgs),
    /// Run with a config of node's cluster proxy (sharding by key).
    StatsdProxy(StatsdProxyArgs),
    /// Copy each packet to every target, independently of each other.
    Fanout(FanoutArgs),
    /// Route Graphite lines with a relay.conf of carbon-c-relay.
    #[command(alias = "c-relay")]
    Relay(Box<RelayArgs>),
    /// Run as carbon-cache, carbon-relay or carbon-aggregator.
    #[cfg(unix)]
    Carbon(Box<CarbonArgs>),
    /// Run a riemann.config.
    Riemann(RiemannArgs),
    /// Check a config and show all errors at once.
    Check(CheckArgs),
    /// Convert a config of another program to a native one.
    Import(ImportArgs),
    /// Run flow files: tests with a config, input and expected output.
    Test(TestArgs),
    /// Measure speed, compared with the originals. The short help has no room for it: `make bench` runs it.
    #[cfg(unix)]
    #[command(hide = true)]
    Bench(BenchArgs),
    /// Show a running daemon on one screen: rates, accounts, warnings.
    Status(StatusArgs),
    /// Watch a running daemon: rates, losses and queues, every second.
    Top(TopArgs),
    /// Manage queues on disk: list, check, export, drop, replay.
    Queue(QueueArgs),
    /// Look at, change and repair whisper files.
    Whisper(WhisperArgs),
    /// Explain an error code or an outcome, such as C014 or bad_value.
    Explain(ExplainArgs),
    /// Print the man page, completions, config reference or schema. For packages: the short help has no room for it.
    #[command(hide = true)]
    Manual(ManualArgs),
}

impl Verb {
    /// True for compatibility modes, which open their log themselves.
    pub(crate) fn has_own_log(&self) -> bool {
        match self {
            Verb::Relay(_) => true,
            #[cfg(unix)]
            Verb::Carbon(_) => true,
            _ => false,
        }
    }

    /// True for commands that run until a signal ends them.
    pub(crate) fn is_daemon(&self) -> bool {
        match self {
            Verb::Run(_) | Verb::Statsd(_) | Verb::StatsdProxy(_) | Verb::Fanout(_) | Verb::Relay(_) => true,
            Verb::Riemann(_) => true,
            #[cfg(windows)]
            Verb::Service(_) => true,
            #[cfg(unix)]
            Verb::Carbon(_) => true,
            #[cfg(unix)]
            Verb::Bench(_) => false,
            Verb::Check(_) | Verb::Import(_) | Verb::Test(_) | Verb::Top(_) | Verb::Queue(_) => false,
            Verb::Status(_) | Verb::Explain(_) | Verb::Manual(_) | Verb::Whisper(_) => false,
        }
    }
}

/// `staunch run`
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Config files, .toml or .yaml, or folders of them: one config.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The same; repeatable.
    #[arg(short, long = "config", value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Print the config as it is in force, and exit.
    ///
    /// One native file: all files together, variables replaced, and --http and --management applied. Contents of `${file:PATH}` are hidden.
    #[arg(long)]
    pub(crate) print: bool,
    /// Data directory if no FILE is given; a config has `data_dir`.
    #[arg(long, value_name = "DIR", default_value = "./staunch-data", conflicts_with_all = ["files", "config"])]
    pub(crate) data_dir: PathBuf,
    /// Addresses.
    #[command(flatten)]
    pub(crate) ports: Ports,
    /// Hot restart.
    #[command(flatten)]
    pub(crate) restart: HotRestart,
}

/// Program that a config is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// Node's statsd.
    Node,
    /// Net::Statsd::Server.
    Perl,
}

/// A config of an original StatsD, and its format.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Original {
    /// Config file of the original.
    pub(crate) file: PathBuf,
    /// Program that the config is written for [default: detected from the file].
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) compat: Option<Compat>,
    /// Ignore unknown backends.
    #[arg(long)]
    pub(crate) ignore_unknown_backends: bool,
}

/// `staunch statsd`
#[derive(Debug, clap::Args)]
pub(crate) struct StatsdArgs {
    /// Config.
    #[command(flatten)]
    pub(crate) original: Original,
    /// Addresses.
    #[command(flatten)]
    pub(crate) ports: Ports,
    /// Hot restart.
    #[command(flatten)]
    pub(crate) restart: HotRestart,
}

/// `staunch statsd-proxy`
#[derive(Debug, clap::Args)]
pub(crate) struct StatsdProxyArgs {
    /// Config of the proxy (proxyConfig.js).
    pub(crate) file: PathBuf,
    /// Addresses.
    #[command(flatten)]
    pub(crate) ports: Ports,
    /// Hot restart.
    #[command(flatten)]
    pub(crate) restart: HotRestart,
}

/// `staunch riemann`
///
/// Riemann's own command line: `riemann start FILE`, `riemann test FILE [NAMESPACES]`; and `riemann replay FILE --from EVENTS`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "test: run the tests of the config; NAMESPACES is a regular expression [default: .*-test]\n\
                  replay: show what the config would have done with recorded events"
)]
pub(crate) struct RiemannArgs {
    /// `start`, the default, `test` or `replay` (options: --help); then the config [default: riemann.config, or else
    /// /etc/riemann/riemann.config].
    #[arg(value_name = "start|test|replay] [FILE")]
    words: Vec<String>,
    /// With replay: the events, as `event_file` writes them, or messages of Riemann's clients, each after its length; `-` for stdin.
    #[arg(long, value_name = "EVENTS", hide_short_help = true)]
    pub(crate) from: Option<PathBuf>,
    /// With replay: show only what differs from this config.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) against: Option<PathBuf>,
    /// With replay: so many seconds go by after the last event.
    #[arg(long, value_name = "SECONDS", hide_short_help = true, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=31_536_000))]
    pub(crate) seconds_after: u32,
    /// With replay: print each action as an object of JSON.
    #[arg(long, hide_short_help = true)]
    pub(crate) json: bool,
    /// With test: also write the report as JUnit's XML.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) junit: Option<PathBuf>,
    /// Addresses.
    #[command(flatten)]
    pub(crate) ports: Ports,
    /// Hot restart.
    #[command(flatten)]
    pub(crate) restart: HotRestart,
}

/// What `staunch riemann` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RiemannVerb {
    /// Runs a config.
    Start(PathBuf),
    /// Runs the tests of a config, in the namespaces that match.
    Test(PathBuf, Option<String>),
    /// Runs recorded events through a config.
    Replay(PathBuf),
}

impl RiemannArgs {
    /// What to do.
    ///
    /// # Errors
    /// For other words.
    pub(crate) fn verb(&self) -> Result<RiemannVerb, String> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let default = || {
            let places = ["riemann.config", "/etc/riemann/riemann.config"].map(PathBuf::from);
            places.iter().find(|file| file.exists()).unwrap_or(&places[0]).clone()
        };
        match words[..] {
            [] | ["start"] => Ok(RiemannVerb::Start(default())),
            ["test"] => Ok(RiemannVerb::Test(default(), None)),
            ["test", file] => Ok(RiemannVerb::Test(file.into(), None)),
            ["test", file, namespaces] => Ok(RiemannVerb::Test(file.into(), Some(namespaces.to_owned()))),
            ["replay"] => Ok(RiemannVerb::Replay(default())),
            ["replay", file] => Ok(RiemannVerb::Replay(file.into())),
            ["start", file] | [file] => Ok(RiemannVerb::Start(file.into())),
            [..] => Err(format!("expected [start|test|replay] [FILE], and got: {}", words.join(" "))),
        }
    }
}

#[test]
fn words_of_riemann_are_a_verb_and_a_file() {
    let verb = |line: &str| {
        let args = Args::try_parse_from(line.split(' ')).expect("clap takes it");
        let Verb::Riemann(args) = args.verb else { panic!("{line} is another command") };
        args.verb()
    };
    for line in ["staunch riemann a.config", "staunch riemann start a.config"] {
        assert_eq!(verb(line), Ok(RiemannVerb::Start("a.config".into())), "{line}");
    }
    assert_eq!(verb("staunch riemann test a"), Ok(RiemannVerb::Test("a".into(), None)));
    assert_eq!(verb("staunch riemann test a b.*"), Ok(RiemannVerb::Test("a".into(), Some("b.*".into()))));
    assert_eq!(verb("staunch riemann replay a --from b"), Ok(RiemannVerb::Replay("a".into())));
    assert!(verb("staunch riemann stop a b").is_err());
}

/// How packets are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FanoutMode {
    /// Unchanged.
    Verbatim,
    /// Lines are packed into new packets.
    Repack,
}

/// `staunch fanout`
///
/// The first eight options have the same names and meanings as in other proxies.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "ADDR: HOST:PORT for UDP, udp://…, tcp://…, unixgram://PATH, unix://PATH")]
pub(crate) struct FanoutArgs {
    /// Address to listen on; repeatable.
    ///
    /// `:PORT` means all addresses of the machine. `tcp://…` and `unix://…` receive lines on streams.
    #[arg(long = "source", required = true, value_name = "ADDR", value_parser = import::fanout_source)]
    pub(crate) sources: Vec<Listen>,
    /// Address to send each packet to; repeatable.
    ///
    /// Several addresses may be separated by commas. Each is an output of its own, named after its address.
    #[arg(long = "target", required = true, value_name = "ADDR", value_delimiter = ',')]
    #[arg(value_parser = import::fanout_target)]
    pub(crate) targets: Vec<Destination>,
    /// Ignored: datagrams of any size are accepted.
    ///
    /// In other proxies this is the size of the receive buffer, and longer datagrams are cut. Staunch accepts up to 65535 bytes.
    #[arg(long, value_name = "BYTES", value_parser = buffer_bytes)]
    pub(crate) buffer: Option<u64>,
    /// Packets queued per target [default: 1000000].
    ///
    /// This is a maximum; another one is 64 MiB. Above either the oldest packets are dropped and counted. A million packets are three seconds
    /// at 300,000 packets per second; the 10,000 of other proxies would be 33 ms.
    #[arg(long, value_name = "N", default_value_t = import::Fanout::RECORDS_MAX, hide_default_value = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub(crate) channel_size: u64,
    /// Receive buffer of the socket.
    ///
    /// The kernel may grant less (`net.core.rmem_max`); the daemon then logs a warning.
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = receive_buffer_bytes)]
    pub(crate) readbuffer: u64,
    /// Send no self-metrics.
    ///
    /// This overrides --metrics-prefix. Without --metrics-prefix none are sent either: by default the proxy only copies.
    #[arg(long)]
    pub(crate) no_metrics: bool,
    /// HTTP API, or `off` [default: 127.0.0.1:8680].
    ///
    /// It serves the whole API: /healthz and /ready for probes, /metrics, /api/v1/accounts.
    #[arg(long, value_name = "ADDR")]
    pub(crate) health: Option<Port>,
    /// Data directory, which identifies the process for a hot restart [default: ./staunch-data].
    ///
    /// For hot restarts, each process needs a directory of its own.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) data_dir: Option<PathBuf>,
    /// Send self-metrics to the targets as PREFIX.….
    #[arg(long, value_name = "PREFIX")]
    pub(crate) metrics_prefix: Option<String>,
    /// verbatim or repack [default: verbatim].
    ///
    /// verbatim: packets are not changed. repack: lines are packed into new packets of up to 1432 bytes for UDP, 8 KiB otherwise.
    #[arg(
        long,
        value_enum,
        default_value = "verbatim",
        hide_possible_values = true,
        hide_default_value = true
    )]
    pub(crate) mode: FanoutMode,
    /// Answer 503 on /ready while a target is down.
    #[arg(long)]
    pub(crate) required: bool,
    /// Print the equivalent config and exit.
    #[arg(long)]
    pub(crate) print: bool,
    /// Hot restart.
    #[command(flatten)]
    pub(crate) restart: HotRestart,
}

/// A number of bytes, or a size with its unit.
fn bytes(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| config::text::parse_size(text))
}

fn buffer_bytes(text: &str) -> Result<u64, String> {
    let wanted = "expected a number of bytes from 1 to 65535, the maximum of a datagram";
    bytes(text).filter(|bytes| (1..=65_535).contains(bytes)).ok_or_else(|| wanted.into())
}

fn receive_buffer_bytes(text: &str) -> Result<u64, String> {
    let wanted = "expected a number of bytes or a size such as 64MiB, from 4KiB to 1GiB";
    bytes(text).filter(|bytes| (4096..=1 << 30).contains(bytes)).ok_or_else(|| wanted.into())
}

/// `staunch check`
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// Configs: .toml, .yaml, a folder of these, relay.conf, or .js of
    /// statsd; - is standard input. Each is checked by itself.
    #[arg(required_unless_present = "config", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// A file or folder of one config, as for `run`; repeatable.
    #[arg(short, long = "config", value_name = "FILE", conflicts_with = "files")]
    pub(crate) config: Vec<PathBuf>,
    /// Print the config as it is in force, and exit.
    #[arg(long, conflicts_with_all = ["keys", "json"])]
    pub(crate) print: bool,
    /// Program that a .js file is written for [default: detected from the file].
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) compat: Option<Compat>,
    /// Ignore unknown backends.
    #[arg(long)]
    pub(crate) ignore_unknown_backends: bool,
    /// Show the outputs for the keys in FILE, or on stdin (-).
    ///
    /// FILE has one key or one full line of input per line. The result has one line `KEY<tab>OUTPUT` per cluster, with the output
    /// that owns the key. For copies of a relay, a tab and the rule follow.
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Below the long help of `import`.
const IMPORT_EXIT_CODES: &str = "\
Exit codes:
  0  the native file is complete; there may be warnings
  1  errors, and no native file; or settings or rules of the original are not in it
  2  the file cannot be read, or has several daemons of carbon";

/// `staunch import`
#[derive(Debug, clap::Args)]
#[command(after_long_help = IMPORT_EXIT_CODES)]
pub(crate) struct ImportArgs {
    /// Program that the config is of.
    pub(crate) kind: ImportKind,
    /// Config.
    #[command(flatten)]
    pub(crate) original: Original,
    /// With carbon: the section of carbon.conf, such as `cache`, `aggregator` or `relay:b` [default: the only daemon in the file].
    #[arg(long, value_name = "NAME")]
    pub(crate) section: Option<String>,
    /// With carbon: the instance, as in carbon-relay.py: `b` for `[relay:b]`.
    #[arg(long, value_name = "NAME")]
    pub(crate) instance: Option<String>,
    /// With relay: the flags of carbon-c-relay, after `--`.
    #[arg(last = true, value_name = "FLAGS", allow_hyphen_values = true)]
    pub(crate) flags: Vec<String>,
}

/// Programs whose configs can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportKind {
    /// node's statsd, or Net::Statsd::Server.
    Statsd,
    /// The cluster proxy of node's statsd.
    StatsdProxy,
    /// carbon-c-relay: its relay.conf.
    Relay,
    /// A daemon of carbon: carbon.conf, with the rule files in its folder.
    Carbon,
    /// Riemann: its riemann.config, with the files that it loads.
    Riemann,
}

/// `staunch test`
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Flow files, or folders with flow files.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print the results as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `staunch explain`
#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// A code such as C014, an outcome such as bad_value, a value of last_error, or the reason of an `err` line; without it all are listed.
    pub(crate) code: Option<String>,
}

/// `staunch manual`
#[derive(Debug, clap::Args)]
pub(crate) struct ManualArgs {
    /// What to print.
    pub(crate) what: ManualKind,
    /// With man: the command [default: the page of the program, which lists the commands].
    pub(crate) verb: Option<String>,
    /// With completions: the shell.
    #[arg(long, value_name = "SHELL", default_value = "bash")]
    pub(crate) shell: clap_complete::Shell,
}

/// Documents that are generated from the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ManualKind {
    /// The man page, as roff.
    Man,
    /// Completions for a shell.
    Completions,
    /// Reference of the config file, as Markdown.
    Reference,
    /// JSON schema of the config file.
    Schema,
}

/// `staunch bench`
#[cfg(unix)]
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    /// The benchmark.
    #[command(subcommand)]
    pub(crate) kind: BenchKind,
    /// Print the figures as JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// The benchmarks.
#[cfg(unix)]
#[derive(Debug, Subcommand)]
pub(crate) enum BenchKind {
    /// Receiving and aggregating StatsD packets, beside a bare receive loop and node's statsd.
    Statsd(bench::statsd::Args),
    /// Copying packets to several endpoints, beside a bare loop and node's repeater.
    Fanout(bench::fanout::Args),
    /// Appending to queues on disk, beside a bare loop that appends and syncs.
    Queue(bench::queue::Args),
    /// Relaying lines to a ring of endpoints, beside a bare loop and carbon-c-relay.
    Relay(bench::relay::Args),
    /// Storing and querying points, beside carbon-cache and graphite-web.
    Store(bench::store::Args),
    /// Events through a riemann.config, beside a bare loop and Riemann.
    Riemann(bench::riemann::Args),
}

#[test]
fn short_help_fits_a_small_terminal() {
    use clap::CommandFactory;
    // The benchmark has many options for specialists.
    let short = |verb: &&mut clap::Command| verb.get_name() != "bench";
    let mut command = Args::command().term_width(80);
    let mut helps = vec![command.render_help().to_string()];
    helps.extend(command.get_subcommands_mut().filter(short).map(|verb| {
        let verb = std::mem::take(verb).term_width(80);
        verb.clone().render_help().to_string()
    }));
    for help in helps {
        assert!(help.lines().count() <= 24, "{} lines:\n{help}", help.lines().count());
        assert!(help.lines().all(|line| line.chars().count() <= 80), "over 80 columns:\n{help}");
    }
}
