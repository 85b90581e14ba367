//! `staunch bench statsd`: arguments in, report out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::machine::Machine;
use super::packets::Ring;
pub use super::packets::SampleType;
use super::report::{Report, ScenarioReport};
use super::scenario::Bench;
use super::server::Stand;
use super::sink::Sink;
use super::{BenchError, failed};
use crate::sys;

/// Where `make bench` installs the rival, seen from the repository.
const NODE_SCRIPT: &str = "bench/node_modules/statsd/stats.js";

/// Most runs: more would not fit a report, nor an afternoon.
const RUNS_MAX: u64 = 1000;

/// Most distinct series of the `series` scenario: each is a packet held in the generator's memory.
const SERIES_MAX: u64 = 50_000_000;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// CPU per packet with one sample in each, beside a bare receive loop.
    One,
    /// CPU per sample with many samples in a packet.
    Packed,
    /// Full speed: is every packet counted?
    Flood,
    /// Very many distinct counters: memory of each, and a flush of them under load.
    Series,
}

impl Scenario {
    /// All, in the order of the report.
    pub const ALL: [Scenario; 4] = [Scenario::One, Scenario::Packed, Scenario::Flood, Scenario::Series];
}

/// Arguments of `staunch bench statsd`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to measure; repeatable. All four without it.
    #[arg(long, value_enum)]
    pub scenario: Vec<Scenario>,
    /// Runs of `one` and `packed`, in turn with the bare loop's (`flood`: at most 3 of them, `series`: 1)
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    pub runs: u64,
    /// Packets of a run [default: 1,000,000; `packed` 200,000; `flood` 5,000,000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Distinct names of `one`, `packed` and `flood`
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    pub names: u64,
    /// Samples in a packet of `packed`
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=Ring::pack_max()), hide_short_help = true)]
    pub pack: u64,
    /// Type of the samples of `one`, `packed` and `flood`
    #[arg(long = "type", value_enum, default_value_t = SampleType::C)]
    pub kind: SampleType,
    /// Packets per second of `one` and `packed`; 0 for full speed
    #[arg(long, default_value_t = 0, hide_short_help = true)]
    pub rate: u64,
    /// Distinct counters of `series`
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=SERIES_MAX), hide_short_help = true)]
    pub series: u64,
    /// Packets per second of `series`
    #[arg(long, default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    pub series_rate: u64,
    /// Core of the daemon under test
    #[arg(long, default_value_t = 0, hide_short_help = true)]
    pub server_core: usize,
    /// Core of the generator
    #[arg(long, default_value_t = 1, hide_short_help = true)]
    pub generator_core: usize,
    /// The `stats.js` of node statsd [default: the one that `make bench` installs]
    #[arg(long, hide_short_help = true)]
    pub node_statsd: Option<PathBuf>,
    /// Leave node statsd out
    #[arg(long, conflicts_with = "node_statsd")]
    pub without_node: bool,
    /// The staunch to measure [default: this one]
    #[arg(long, hide_short_help = true)]
    pub binary: Option<PathBuf>,
}

/// Runs the benchmark. `talk` gets a line at a time for people who wait.
///
/// The caller prints the report (`Display`, or as JSON) and may end with 1 when [`Report::all_met`] is false.
///
/// # Errors
/// When something of the benchmark's own fails, or the daemon under test does not start or answer. The folder
/// with its configs and logs is then left behind; the error names it.
pub fn run(args: &Args, talk: &mut (dyn FnMut(&str) + Send)) -> Result<Report, BenchError> {
    // On a thread of its own, because it binds itself to a core and the caller's threads should stay as they are.
    thread::scope(|threads| {
        let bench = threads.spawn(|| run_pinned(args, talk));
        bench.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn run_pinned(args: &Args, talk: &mut (dyn FnMut(&str) + Send)) -> Result<Report, BenchError> {
    let machine = Machine::look();
    let mut warnings = Vec::new();
    let cores = pin(args, &mut warnings);
    if machine.load > 0.3 {
        warnings
            .push(format!("the load was {:.2} before the first run: other programs disturb", machine.load));
    }
    let (node_script, rival) = find_rival(args, &mut warnings);
    let sink = Sink::start().map_err(failed("start the Graphite sink"))?;
    let dir = std::env::temp_dir().join(format!("staunch-bench-{}", std::process::id()));
    fs::create_dir_all(&dir).map_err(failed("make a folder for configs and logs"))?;
    let binary = match &args.binary {
        Some(binary) => fs::canonicalize(binary).map_err(failed("find the --binary"))?,
        None => std::env::current_exe().map_err(failed("find its own binary"))?,
    };
    let stand = Stand {
        binary,
        node_script,
        dir: dir.clone(),
        graphite: sink.address(),
        core: cores.map(|cores| cores.0),
    };
    let scenarios = run_scenarios(args, &stand, &sink, &mut warnings, talk)?;
    fs::remove_dir_all(&dir).map_err(failed("remove its folder"))?;
    let mut report = Report {
        version: env!("CARGO_PKG_VERSION").into(),
        machine,
        command: command_line(),
        method: method(args, cores),
        rival,
        scenarios,
        warnings,
    };
    report.warn_of_noise();
    Ok(report)
}

fn run_scenarios(
    args: &Args,
    stand: &Stand,
    sink: &Sink,
    warnings: &mut Vec<String>,
    talk: &mut dyn FnMut(&str),
) -> Result<Vec<ScenarioReport>, BenchError> {
    let wanted = if args.scenario.is_empty() { &Scenario::ALL[..] } else { &args.scenario };
    let mut bench = Bench { args, stand, sink, warnings, talk };
    wanted
        .iter()
        .map(|scenario| match scenario {
            Scenario::One => bench.cpu("one", 1, args.count.unwrap_or(1_000_000)),
            Scenario::Packed => bench.cpu("packed", args.pack, args.count.unwrap_or(200_000)),
            Scenario::Flood => bench.flood(args.count.unwrap_or(5_000_000)),
            Scenario::Series => bench.series(),
        })
        .collect()
}

/// Binds this thread to the generator's core; gives both cores when they exist.
fn pin(args: &Args, warnings: &mut Vec<String>) -> Option<(usize, usize)> {
    let (server, generator) = (args.server_core, args.generator_core);
    // The server's first: what may not be used fails here, and the second call undoes the first.
    let pinned = sys::pin_to_core(server).and_then(|()| sys::pin_to_core(generator));
    match pinned {
        Ok(()) if server != generator => Some((server, generator)),
        Ok(()) => {
            warnings.push("server and generator share a core: the figures say little".into());
            Some((server, generator))
        }
        Err(error) => {
            warnings
                .push(format!("nothing is pinned: cores {server} and {generator} cannot be used: {error}"));
            None
        }
    }
}

/// The rival's script and its versions in words.
fn find_rival(args: &Args, warnings: &mut Vec<String>) -> (Option<PathBuf>, String) {
    if args.without_node {
        return (None, String::new());
    }
    let script = args.node_statsd.clone().unwrap_or_else(|| NODE_SCRIPT.into());
    let Ok(script) = fs::canonicalize(&script) else {
        warnings.push(format!("node statsd is left out: no {} (`make bench` installs it)", script.display()));
        return (None, String::new());
    };
    let Ok(node) = Command::new("node").arg("--version").output() else {
        warnings.push("node statsd is left out: no `node` in PATH".into());
        return (None, String::new());
    };
    let node = String::from_utf8_lossy(&node.stdout).trim().to_owned();
    let version = statsd_version(&script).unwrap_or_else(|| "of unknown version".into());
    (Some(script), format!("node {node} with statsd {version} (npm registry)"))
}

fn statsd_version(script: &Path) -> Option<String> {
    let package = fs::read(script.parent()?.join("package.json")).ok()?;
    let package: serde_json::Value = serde_json::from_slice(&package).ok()?;
    Some(package["version"].as_str()?.to_owned())
}

fn method(args: &Args, cores: Option<(usize, usize)>) -> String {
    let place = match cores {
        Some((server, generator)) => format!("server on core {server}, generator on core {generator}"),
        None => "nothing pinned".into(),
    };
    let plural = if args.runs == 1 { "" } else { "s" };
    format!(
        "UDP on loopback; {place}; {} run{plural} of each, in turn, each with a daemon started for it and warmed up; \
         CPU is user + system of the whole process from the first packet until all are in, idle use subtracted, \
         per packet that was counted",
        args.runs
    )
}

/// This process's command line, the program by its name alone.
fn command_line() -> String {
    let mut words = std::env::args();
    let program = words.next().unwrap_or_default();
    let program =
        Path::new(&program).file_name().map_or(program.clone(), |name| name.to_string_lossy().into_owned());
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn parse(words: &str) -> Result<Args, clap::Error> {
        Cli::try_parse_from(std::iter::once("bench").chain(words.split_whitespace())).map(|cli| cli.args)
    }

    #[test]
    fn arguments_have_defaults_and_bounds() {
        let args = parse("").unwrap();
        assert_eq!((args.runs, args.names, args.pack, args.kind), (5, 1000, 30, SampleType::C));
        let args = parse("--scenario one --scenario flood --type mix --pack 128").unwrap();
        assert_eq!(args.scenario, [Scenario::One, Scenario::Flood]);
        for bad in
            ["--runs 0", "--runs 1001", "--names 0", "--pack 0", "--pack 129", "--series 0", "--type x"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_rival_that_is_not_there_is_a_warning() {
        let mut warnings = Vec::new();
        let args = parse("--node-statsd no/such/stats.js").unwrap();
        assert_eq!(find_rival(&args, &mut warnings), (None, String::new()));
        assert_eq!(warnings.len(), 1);
        warnings.clear();
        assert_eq!(find_rival(&parse("--without-node").unwrap(), &mut warnings), (None, String::new()));
        assert!(warnings.is_empty());
    }
}
