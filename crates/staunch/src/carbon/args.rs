//! The options of carbon's daemons (spec graphite §4.1), and ours.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::cli::args::{HotRestart, Port};

/// Below the long help.
const EXAMPLES: &str = "\
Examples:
  staunch carbon cache start --nodaemon      with /opt/graphite/conf/carbon.conf
  staunch carbon relay --config /etc/carbon/carbon.conf --instance b start
  ln -s /usr/bin/staunch /opt/graphite/bin/carbon-cache.py

Folders are carbon's: GRAPHITE_ROOT [/opt/graphite], GRAPHITE_CONF_DIR,
GRAPHITE_STORAGE_DIR.";

/// A daemon of carbon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Program {
    /// Stores points in whisper files, and answers graphite-web.
    Cache,
    /// Sends points on.
    Relay,
    /// Aggregates points, and sends the results on.
    Aggregator,
    /// Aggregates points, and stores the results.
    AggregatorCache,
}

impl Program {
    /// As in the name of carbon's program and of its section.
    pub(super) fn word(self) -> &'static str {
        match self {
            Program::Cache => "cache",
            Program::Relay => "relay",
            Program::Aggregator => "aggregator",
            Program::AggregatorCache => "aggregator-cache",
        }
    }
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Action {
    /// Run it, in the background unless --nodaemon or --debug is given.
    Start,
    /// Ask it to end.
    Stop,
    /// Say whether it runs; exit code 1 if it does not.
    Status,
}

/// `staunch carbon`
///
/// Run as carbon-cache, carbon-relay or carbon-aggregator.
///
/// Accepts the command line, carbon.conf and rule files of carbon's Python daemons. A link with the name of one of them, such as
/// carbon-cache.py, is this command. SIGHUP reads all files again.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Try:  staunch carbon cache start --nodaemon")]
#[command(after_long_help = EXAMPLES, args_override_self = true)]
pub(crate) struct CarbonArgs {
    /// cache, relay, aggregator or aggregator-cache.
    #[arg(value_enum, hide_possible_values = true)]
    pub(super) program: Program,
    /// start, stop or status.
    #[arg(value_enum, hide_possible_values = true)]
    pub(super) action: Action,
    /// carbon.conf; rule files are beside it.
    #[arg(short = 'c', long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Instance: `b` for `[cache:b]`.
    #[arg(long, value_name = "NAME", default_value = "a")]
    pub(super) instance: String,
    /// Stay in the foreground, log to stderr.
    #[arg(long)]
    pub(super) nodaemon: bool,
    /// The same, with debug messages.
    #[arg(long)]
    pub(super) debug: bool,
    /// HTTP API, or `off` [default: 127.0.0.1:8680].
    #[arg(long, value_name = "ADDR")]
    pub(super) http: Option<Port>,
    /// File with the process id.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) pidfile: Option<PathBuf>,
    /// Folder of the log.
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(super) logdir: Option<PathBuf>,
    /// Log file; - is stderr.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) logfile: Option<PathBuf>,
    /// Relay rules, or aggregation rules.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) rules: Option<PathBuf>,
    /// Rewrite rules of an aggregator.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) rewrite_rules: Option<PathBuf>,
    /// Names that are let through, with USE_WHITELIST.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) whitelist: Option<PathBuf>,
    /// Names that are dropped, with USE_WHITELIST.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(super) blacklist: Option<PathBuf>,
    /// Permissions that new files do not get, in octal.
    #[arg(long, value_name = "MASK", default_value = "022", value_parser = umask, hide_short_help = true)]
    pub(super) umask: u32,
    /// Folder of queues and catalog [default: STORAGE_DIR/staunch/PROGRAM-INSTANCE].
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(super) data_dir: Option<PathBuf>,
    /// Hot restart.
    #[command(flatten)]
    pub(super) restart: HotRestart,
    /// Ignored: a service manager passes the log on to syslog.
    #[arg(long, hide_short_help = true)]
    pub(super) syslog: bool,
    /// Ignored.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(super) profile: Option<PathBuf>,
    /// Ignored.
    #[arg(long, value_name = "NAME", hide = true)]
    pub(super) profiler: Option<String>,
    /// Ignored.
    #[arg(long, value_name = "NAME", hide = true)]
    pub(super) logger: Option<String>,
}

impl CarbonArgs {
    /// Options of the original that change nothing here.
    pub(super) fn ignored(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("--syslog", self.syslog),
            ("--profile", self.profile.is_some()),
            ("--profiler", self.profiler.is_some()),
            ("--logger", self.logger.is_some()),
        ];
        all.into_iter().filter_map(|(option, given)| given.then_some(option))
    }
}

fn umask(text: &str) -> Result<u32, String> {
    let mask = u32::from_str_radix(text.trim_start_matches("0o"), 8).ok();
    mask.filter(|mask| *mask <= 0o777)
        .ok_or_else(|| "expected up to three octal digits, such as 022".to_owned())
}

#[test]
fn options_are_those_of_carbon_in_any_order() {
    use clap::Parser;
    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        carbon: CarbonArgs,
    }
    let parsed = |words: &str| {
        let words = std::iter::once("carbon").chain(words.split_whitespace());
        Alone::try_parse_from(words).map(|alone| alone.carbon).map_err(|error| error.kind())
    };
    let args = parsed("cache --instance=b --debug start").expect("carbon accepts it");
    assert_eq!((args.program, args.action, &*args.instance), (Program::Cache, Action::Start, "b"));
    let args = parsed("aggregator-cache status --pidfile p --umask 077").expect("carbon accepts it");
    assert_eq!((args.program, args.action, args.umask), (Program::AggregatorCache, Action::Status, 0o77));
    let ignored = parsed("relay --syslog --profile=p stop").expect("carbon accepts it");
    assert_eq!(ignored.ignored().collect::<Vec<_>>(), ["--syslog", "--profile"]);
    for wrong in ["cache", "cache restart", "web start", "cache start --umask 9", "cache start --no-such"] {
        assert!(parsed(wrong).is_err(), "{wrong}");
    }
}
