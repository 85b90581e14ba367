//! What every benchmark is told and says: cores, the rival, the binary under test, the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::contestant::Measured;
use super::machine::Machine;
use super::report::{Report, ScenarioReport, figure};
use super::server::Stand;
use super::{BenchError, failed};
use crate::sys;

/// Where `make bench` installs the rival, seen from the repository.
const NODE_SCRIPT: &str = "bench/node_modules/statsd/stats.js";

/// Most runs: more would not fit a report, nor an afternoon.
pub(super) const RUNS_MAX: u64 = 1000;

/// A load of the machine from which on the figures are doubted.
const LOAD_MAX: f64 = 0.3;

/// When others take more than this share of the server's core, the server may have had to wait for it.
const OTHERS_SHARE_MAX: f64 = 0.05;

/// A rate that was not kept to this share was not kept.
const RATE_KEPT_MIN: f64 = 0.97;

/// Arguments that all benchmarks take.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// Core of the daemon under test
    #[arg(long, default_value_t = 0, hide_short_help = true)]
    pub server_core: usize,
    /// Core of the generator, and of whatever receives behind the daemon
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

/// Progress, a line at a time, for people who wait.
pub(super) type Talk<'t> = &'t mut (dyn FnMut(&str) + Send);

/// What a benchmark's scenarios are run with.
pub(super) struct Ground<'a> {
    /// What daemons are started with.
    pub stand: Stand,
    /// What makes the figures doubtful, so far.
    pub warnings: Vec<String>,
    /// Progress.
    pub talk: Talk<'a>,
}

/// What a benchmark says of itself.
pub(super) struct About {
    /// Its word on the command line.
    pub name: &'static str,
    /// How it measures, behind the words on the cores.
    pub method: String,
}

/// Pins, finds rival and binary, has the scenarios run, and makes the report.
///
/// # Errors
/// Those of `scenarios`, and when something of the benchmark's own fails. The folder with configs and logs is then
/// left behind; the error names it.
pub(super) fn measure(
    common: &Common,
    about: About,
    talk: Talk<'_>,
    scenarios: impl FnOnce(&mut Ground<'_>) -> Result<Vec<ScenarioReport>, BenchError> + Send,
) -> Result<Report, BenchError> {
    // On a thread of its own, because it binds itself to a core and the caller's threads should stay as they are.
    thread::scope(|threads| {
        let bench = threads.spawn(|| measure_pinned(common, about, talk, scenarios));
        bench.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn measure_pinned(
    common: &Common,
    about: About,
    talk: Talk<'_>,
    scenarios: impl FnOnce(&mut Ground<'_>) -> Result<Vec<ScenarioReport>, BenchError>,
) -> Result<Report, BenchError> {
    let machine = Machine::look();
    let mut warnings = Vec::new();
    let cores = common.pin(&mut warnings);
    warnings.extend(warning_of_load(&machine));
    let (node_script, rival) = common.find_rival(&mut warnings);
    let dir = std::env::temp_dir().join(format!("staunch-bench-{}", std::process::id()));
    fs::create_dir_all(&dir).map_err(failed("make a folder for configs and logs"))?;
    let binary = match &common.binary {
        Some(binary) => fs::canonicalize(binary).map_err(failed("find the --binary"))?,
        None => std::env::current_exe().map_err(failed("find its own binary"))?,
    };
    let stand = Stand { binary, node_script, dir: dir.clone(), core: cores.map(|cores| cores.0) };
    let mut ground = Ground { stand, warnings, talk };
    let scenarios = scenarios(&mut ground)?;
    fs::remove_dir_all(&dir).map_err(failed("remove its folder"))?;
    let place = match cores {
        Some((server, generator)) => format!("server on core {server}, generator on core {generator}"),
        None => "nothing pinned".into(),
    };
    let mut report = Report {
        bench: about.name,
        version: env!("CARGO_PKG_VERSION").into(),
        machine,
        command: command_line(),
        method: format!("UDP on loopback; {place}; {}", about.method),
        rival,
        scenarios,
        warnings: ground.warnings,
    };
    report.warn_of_noise();
    Ok(report)
}

/// A warning when the machine was busy before the first run.
pub(super) fn warning_of_load(machine: &Machine) -> Option<String> {
    (machine.load > LOAD_MAX)
        .then(|| format!("the load was {:.2} before the first run: other programs disturb", machine.load))
}

impl Ground<'_> {
    /// Warns when other processes took much of the server's core in any of `runs`.
    pub(super) fn warn_of_others<'r>(&mut self, name: &str, runs: impl IntoIterator<Item = &'r Measured>) {
        let share = runs.into_iter().map(|run| run.others_share).fold(0.0, f64::max);
        if share > OTHERS_SHARE_MAX {
            self.warnings.push(format!(
                "{name}: other programs took up to {:.0} % of the server's core during a run",
                share * 100.0
            ));
        }
    }

    /// Warns when the generator's speed was not the `rate` it was told; a rate of 0 is none.
    pub(super) fn warn_of_rate(&mut self, name: &str, speed: f64, rate: u64) {
        if speed < RATE_KEPT_MIN * rate as f64 {
            self.warnings
                .push(format!("{name}: the generator made only {} packets/s", figure(speed.round())));
        }
    }
}

impl Common {
    /// Binds this thread to the generator's core; gives both cores when they exist.
    fn pin(&self, warnings: &mut Vec<String>) -> Option<(usize, usize)> {
        let (server, generator) = (self.server_core, self.generator_core);
        // The server's first: what may not be used fails here, and the second call undoes the first.
        let pinned = sys::pin_to_core(server).and_then(|()| sys::pin_to_core(generator));
        match pinned {
            Ok(()) if server != generator => Some((server, generator)),
            Ok(()) => {
                warnings.push("server and generator share a core: the figures say little".into());
                Some((server, generator))
            }
            Err(error) => {
                warnings.push(format!(
                    "nothing is pinned: cores {server} and {generator} cannot be used: {error}"
                ));
                None
            }
        }
    }

    /// The rival's script and its versions in words.
    fn find_rival(&self, warnings: &mut Vec<String>) -> (Option<PathBuf>, String) {
        if self.without_node {
            return (None, String::new());
        }
        let script = self.node_statsd.clone().unwrap_or_else(|| NODE_SCRIPT.into());
        let Ok(script) = fs::canonicalize(&script) else {
            warnings
                .push(format!("node statsd is left out: no {} (`make bench` installs it)", script.display()));
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
}

fn statsd_version(script: &Path) -> Option<String> {
    let package = fs::read(script.parent()?.join("package.json")).ok()?;
    let package: serde_json::Value = serde_json::from_slice(&package).ok()?;
    Some(package["version"].as_str()?.to_owned())
}

/// This process's command line, the program by its name alone.
pub(super) fn command_line() -> String {
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
        common: Common,
    }

    fn parse(words: &str) -> Common {
        Cli::parse_from(std::iter::once("bench").chain(words.split_whitespace())).common
    }

    #[test]
    fn a_rival_that_is_not_there_is_a_warning() {
        let mut warnings = Vec::new();
        let common = parse("--node-statsd no/such/stats.js");
        assert_eq!(common.find_rival(&mut warnings), (None, String::new()));
        assert_eq!(warnings.len(), 1);
        warnings.clear();
        assert_eq!(parse("--without-node").find_rival(&mut warnings), (None, String::new()));
        assert!(warnings.is_empty());
    }
}
