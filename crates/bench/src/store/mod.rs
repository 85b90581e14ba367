//! `staunch bench store`: what storing and querying costs, beside carbon-cache and graphite-web.
//!
//! Path of a point: `traffic` makes its line -> one connection -> a daemon with a store (`node`) or carbon-cache (`originals`) -> files,
//! which `queries` reads through Staunch and graphite-web. `points`, `recovery` and `queries` have the scenarios.
//! Invariant: with each figure, the report checks that all points were taken.

mod node;
mod originals;
mod place;
mod points;
mod queries;
mod recovery;
mod traffic;

use std::fs;
use std::path::PathBuf;

pub use self::originals::GraphiteStack;
use self::originals::Originals;
use self::place::removed;
use crate::ground::{self, About, Common, Ground, RUNS_MAX};
use crate::report::{Report, ScenarioReport};
use crate::{BenchError, failed};
/// The scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// Points of known series.
    Points,
    /// New series.
    Create,
    /// A start with many points in the log only.
    Recovery,
    /// Series as JSON, with and without functions.
    Render,
    /// Names of very many.
    Find,
    /// Queries at a fixed rate beside points at a fixed rate.
    Dashboard,
    /// Very many series for minutes.
    Million,
}

impl Scenario {
    /// All, in the order of the report.
    pub const ALL: [Scenario; 7] = [
        Scenario::Points,
        Scenario::Create,
        Scenario::Recovery,
        Scenario::Render,
        Scenario::Find,
        Scenario::Dashboard,
        Scenario::Million,
    ];
}

/// Arguments of `staunch bench store`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to measure; repeatable. All seven without it.
    #[arg(long, value_enum)]
    pub scenario: Vec<Scenario>,
    /// Runs of `points`, `create`, `render` and `find`
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    pub runs: u64,
    /// Series of `points` and `create`
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    pub series: u64,
    /// Series of `find` and `million`
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10..=10_000_000), hide_short_help = true)]
    pub many_series: u64,
    /// Points of `recovery`
    #[arg(long, default_value_t = 50_000_000, value_parser = clap::value_parser!(u64).range(1000..=100_000_000), hide_short_help = true)]
    pub log_points: u64,
    /// Seconds of `dashboard`
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600), hide_short_help = true)]
    pub seconds: u64,
    /// Seconds of `million`
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(10..=86_400), hide_short_help = true)]
    pub many_seconds: u64,
    /// A folder on the disk that is measured
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub folder: PathBuf,
    /// The rivals.
    #[command(flatten)]
    pub rival: GraphiteStack,
    /// Cores and binary.
    #[command(flatten)]
    pub common: Common,
}

/// Runs the benchmark. `talk` gets one line of progress at a time.
///
/// # Errors
/// When the benchmark itself fails, or a program under test does not start or end. The folder with its configs and logs is then
/// kept; the error names it.
pub fn run(args: &Args, talk: &mut (dyn FnMut(&str) + Send)) -> Result<Report, BenchError> {
    let (originals, rival) = args.rival.find();
    let about = About { name: "store", over: "TCP", method: method(args), rival };
    ground::measure(&args.common, about, talk, |ground| run_scenarios(args, &originals, ground))
}

fn run_scenarios(
    args: &Args,
    originals: &Originals,
    ground: &mut Ground<'_>,
) -> Result<Vec<ScenarioReport>, BenchError> {
    let folder = fs::canonicalize(&args.folder).map_err(failed("find its --folder"))?;
    let folder = folder.join(format!("staunch-bench-store-{}", std::process::id()));
    let wanted = if args.scenario.is_empty() { &Scenario::ALL[..] } else { &args.scenario };
    let mut reports = Vec::new();
    for scenario in wanted {
        reports.push(match scenario {
            Scenario::Points => points::points(ground, (&folder, args.series, args.runs), originals)?,
            Scenario::Create => points::create(ground, (&folder, args.series, args.runs), originals)?,
            Scenario::Recovery => recovery::recovery(ground, &folder, args.log_points)?,
            Scenario::Render => queries::render(ground, (&folder, args.runs), originals)?,
            Scenario::Find => queries::find(ground, (&folder, args.many_series, args.runs))?,
            Scenario::Dashboard => queries::dashboard(ground, (&folder, args.seconds))?,
            Scenario::Million => {
                if let Some(why) = points::room_for(&folder, args.many_series)? {
                    ground.warnings.push(why);
                    continue;
                }
                points::million(ground, (&folder, args.many_series, args.many_seconds))?
            }
        });
    }
    removed(&folder)?;
    Ok(reports)
}

fn method(args: &Args) -> String {
    let plural = if args.runs == 1 { "" } else { "s" };
    format!(
        "{} run{plural}; lines over one connection at full speed; CPU is user + system of the whole process, of a query from the \
         request to the answer",
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
        assert_eq!((args.runs, args.series, args.log_points), (3, 100_000, 50_000_000));
        let args = parse::<Args>("--scenario find --many-series 1000 --without-original").unwrap();
        assert_eq!((args.scenario, args.many_series), (vec![Scenario::Find], 1000));
        for bad in ["--runs 0", "--series 0", "--scenario one", "--seconds 0", "--log-points 1"] {
            assert!(parse::<Args>(bad).is_err(), "{bad}");
        }
    }
}
