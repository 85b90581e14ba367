//! `staunch bench relay`: from arguments to the report.
//!
//! Path of a line: `lines` makes a ring of them -> one connection -> a contestant (`contestant`): the bare loop
//! (`bare`), Staunch or carbon-c-relay as child processes -> the endpoints that count (`sinks`). `scenarios` chooses
//! the contestants.
//! Invariant: with each figure, the report checks that each line arrived at its endpoint.

mod bare;
mod contestant;
mod lines;
mod scenarios;
mod siblings;
mod sinks;

use std::path::PathBuf;

use crate::ground::{self, About, Common, Ground, RUNS_MAX};
use crate::report::{Report, ScenarioReport};
use crate::rival::CarbonCRelay;
use crate::{BenchError, failed};
use scenarios::Relays;
use sinks::Sinks;

/// Most lines of a run: the original allots its queues at the start.
const LINES_MAX: u64 = 1_000_000_000;

/// Most names: each has at least one line in the generator's memory.
const NAMES_MAX: u64 = 10_000_000;

/// The scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// Ten thousand names on a ring over three endpoints.
    Plain,
    /// The same with very many names.
    Names,
    /// The same with rules before the one that matches.
    Rules,
    /// The same with the queues of all endpoints on disk.
    Disk,
    /// Two outputs beside a third one whose peer is slow, hangs or is dead.
    Siblings,
}

impl Scenario {
    /// All, in the order of the report.
    pub const ALL: [Scenario; 5] =
        [Scenario::Plain, Scenario::Names, Scenario::Rules, Scenario::Disk, Scenario::Siblings];
}

/// Arguments of `staunch bench relay`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to measure; repeatable. All five without it.
    #[arg(long, value_enum)]
    pub scenario: Vec<Scenario>,
    /// Runs of each, in turn with what they are beside
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    pub runs: u64,
    /// Lines of a run
    #[arg(long, default_value_t = 4_000_000, value_parser = clap::value_parser!(u64).range(1..=LINES_MAX))]
    pub lines: u64,
    /// Distinct names of all scenarios but `names`
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=NAMES_MAX), hide_short_help = true)]
    pub names: u64,
    /// Distinct names of `names`
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=NAMES_MAX), hide_short_help = true)]
    pub many_names: u64,
    /// Regular expressions before the match of `rules`
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=10_000), hide_short_help = true)]
    pub rules: u64,
    /// Seconds of a run of `siblings`
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600), hide_short_help = true)]
    pub seconds: u64,
    /// A folder on the disk that `disk` and `siblings` put their queues on
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The rival.
    #[command(flatten)]
    pub rival: CarbonCRelay,
    /// Cores and binary.
    #[command(flatten)]
    pub common: Common,
}

/// Runs the benchmark. `talk` gets one line of progress at a time.
///
/// The caller prints the report (`Display`, or as JSON) and may end with 1 when [`Report::all_met`] is false.
///
/// # Errors
/// When the benchmark itself fails, or a relay under test does not start or end. The folder with its configs and logs
/// is then kept; the error names it.
pub fn run(args: &Args, talk: &mut (dyn FnMut(&str) + Send)) -> Result<Report, BenchError> {
    let about = About { name: "relay", over: "TCP", method: method(args), rival: args.rival.find() };
    ground::measure(&args.common, about, talk, |ground| run_scenarios(args, ground))
}

fn run_scenarios(args: &Args, ground: &mut Ground<'_>) -> Result<Vec<ScenarioReport>, BenchError> {
    let sinks = Sinks::start().map_err(failed("start the endpoints"))?;
    let wanted = if args.scenario.is_empty() { &Scenario::ALL[..] } else { &args.scenario };
    let mut relays = Relays { args, ground, sinks: &sinks };
    wanted
        .iter()
        .map(|scenario| match scenario {
            Scenario::Plain => relays.plain(),
            Scenario::Names => relays.names(),
            Scenario::Rules => relays.rules(),
            Scenario::Disk => relays.disk(),
            Scenario::Siblings => siblings::measure(wanted_of_siblings(args), relays.ground, &sinks),
        })
        .collect()
}

fn wanted_of_siblings(args: &Args) -> siblings::Wanted<'_> {
    let Args { runs, seconds, names, folder, .. } = args;
    siblings::Wanted { runs: *runs, seconds: *seconds, names: *names, folder }
}

fn method(args: &Args) -> String {
    let plural = if args.runs == 1 { "" } else { "s" };
    format!(
        "one connection; the three endpoints, which count, share the generator's core; {} run{plural} of each, in turn, \
         each with a relay started for it and warmed up; CPU is user + system of the whole process from the first line \
         until all have arrived, idle use subtracted, per line that arrived",
        args.runs
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn arguments_have_defaults_and_bounds() {
        let args = parse::<Args>("").unwrap();
        assert_eq!((args.runs, args.lines, args.names, args.rules), (5, 4_000_000, 10_000, 200));
        let args = parse::<Args>("--scenario disk --scenario siblings --folder x --seconds 5").unwrap();
        assert_eq!((args.scenario, args.seconds), (vec![Scenario::Disk, Scenario::Siblings], 5));
        for bad in ["--runs 0", "--lines 0", "--names 0", "--rules 0", "--seconds 0", "--scenario one"] {
            assert!(parse::<Args>(bad).is_err(), "{bad}");
        }
    }
}
