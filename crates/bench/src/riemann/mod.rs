//! `staunch bench riemann`: what events cost on their way through a riemann.config, beside a bare loop and Riemann.
//!
//! Path of an event: `events` makes it -> one connection (`connection`) -> a daemon with a riemann.config (`node`) or a loop that only
//! replies (`bare`). `ingest`, `index` and `start` measure the daemon; `costs` and `forks` measure single streams within this process,
//! which has the engine and the allocator of the daemon.
//! Invariant: with each figure of the daemon, the report checks that all events were replied to or counted.

mod bare;
mod connection;
mod costs;
mod events;
mod forks;
mod index;
mod ingest;
mod node;
mod start;

use std::path::PathBuf;

use crate::BenchError;
use crate::ground::{self, About, Common, Ground, RUNS_MAX};
use crate::report::{Report, ScenarioReport};
use crate::rival::Rival;

/// Most events of a run, and most of an index.
const EVENTS_MAX: u64 = 100_000_000;
const INDEXED_MAX: u64 = 3_000_000;

/// The scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// 100 events in a message, through an index, `where` and `rate`.
    Ingest,
    /// The same, one event in a message, 64 messages in flight.
    Single,
    /// The streams that configs use most, one by one.
    Streams,
    /// `by` with very many forks.
    Forks,
    /// An index of very many events: memory and queries.
    Index,
    /// From the start of the program to its first reply.
    Start,
}

impl Scenario {
    /// All, in the order of the report.
    pub const ALL: [Scenario; 6] = [
        Scenario::Ingest,
        Scenario::Single,
        Scenario::Streams,
        Scenario::Forks,
        Scenario::Index,
        Scenario::Start,
    ];
}

/// Arguments of `staunch bench riemann`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to measure; repeatable. All six without it.
    #[arg(long, value_enum)]
    pub scenario: Vec<Scenario>,
    /// Runs of each figure
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    pub runs: u64,
    /// Events of a run of `ingest`; a tenth of it of `single`
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1_000..=EVENTS_MAX))]
    pub events: u64,
    /// Events of the index, and forks of `by`
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..=INDEXED_MAX), hide_short_help = true)]
    pub many: u64,
    /// Seconds of events beside the queries of the index
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600), hide_short_help = true)]
    pub seconds: u64,
    /// The jar of Riemann, to be measured beside Staunch (needs `java`)
    #[arg(long, value_name = "FILE")]
    pub riemann: Option<PathBuf>,
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
    let about = About { name: "riemann", over: "TCP", method: method(args), rival: rival(args)? };
    ground::measure(&args.common, about, talk, |ground| run_scenarios(args, ground))
}

/// The jar, if one is named.
fn rival(args: &Args) -> Result<Rival, BenchError> {
    let Some(jar) = &args.riemann else {
        let missing = "Riemann is left out (--riemann FILE.jar): on a machine of this kind it took 3.92 us an event at 100 \
                       events a message, 14.5 us at one, and 5 to 10 s to start";
        return Ok(Rival { missing: Some(missing.into()), ..Rival::default() });
    };
    let jar = std::fs::canonicalize(jar).map_err(crate::failed("find the jar of --riemann"))?;
    let words = jar.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Rival { program: Some(jar), words, missing: None })
}

fn run_scenarios(args: &Args, ground: &mut Ground<'_>) -> Result<Vec<ScenarioReport>, BenchError> {
    let wanted = if args.scenario.is_empty() { &Scenario::ALL[..] } else { &args.scenario };
    // Memory is measured as growth of this process: before anything else has left free pages in it.
    let forks = match wanted.contains(&Scenario::Forks) {
        true => Some(forks::forks(ground, args.many, args.runs)?),
        false => None,
    };
    let mut reports = Vec::new();
    for scenario in wanted {
        reports.push(match scenario {
            Scenario::Ingest => ingest::ingest(ground, &ingest::HUNDRED, args.events, args.runs)?,
            Scenario::Single => {
                ingest::ingest(ground, &ingest::SINGLE, args.events / ingest::SINGLE_SHARE, args.runs)?
            }
            Scenario::Streams => costs::streams(ground, args.runs)?,
            Scenario::Forks => match &forks {
                Some(report) => report.clone(),
                None => continue,
            },
            Scenario::Index => index::index(ground, args.many, args.seconds)?,
            Scenario::Start => start::start(ground, args.runs)?,
        });
    }
    Ok(reports)
}

fn method(args: &Args) -> String {
    let plural = if args.runs == 1 { "" } else { "s" };
    format!(
        "{} run{plural} of each, in turn; CPU is user + system of the whole process from the first event until a query after the \
         last one is replied to, idle use subtracted; streams one by one: CPU of the least of {} passes in each run, in this \
         process, beyond an empty stream",
        args.runs,
        costs::PASSES
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn arguments_have_defaults_and_bounds() {
        let args = parse::<Args>("").unwrap();
        assert_eq!((args.runs, args.events, args.many), (5, 5_000_000, 1_000_000));
        let args = parse::<Args>("--scenario single --scenario start --riemann a.jar").unwrap();
        assert_eq!(args.scenario, [Scenario::Single, Scenario::Start]);
        assert!(rival(&args).is_err(), "there is no such jar");
        for bad in ["--runs 0", "--events 1", "--many 10", "--seconds 0", "--scenario one"] {
            assert!(parse::<Args>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn without_a_jar_the_report_has_the_figures_of_the_specification() {
        let rival = rival(&parse::<Args>("").unwrap()).unwrap();
        assert!(rival.program.is_none() && rival.missing.is_some_and(|why| why.contains("3.92 us")));
    }
}
