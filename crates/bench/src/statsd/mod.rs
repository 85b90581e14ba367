//! `staunch bench statsd`: from arguments to the report.

pub(crate) mod scenario;

use crate::BenchError;
use crate::failed;
use crate::ground::{self, About, Common, Ground, RUNS_MAX};
use crate::report::{Report, ScenarioReport};
use crate::rival::NodeStatsd;
use crate::statsd::scenario::Bench;
use crate::traffic::packets::Ring;
pub use crate::traffic::packets::SampleType;
use crate::traffic::sink::Sink;

/// Most distinct series of the `series` scenario: each has a packet in the generator's memory.
const SERIES_MAX: u64 = 50_000_000;

/// The scenarios.
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
    /// CPU per packet with the output's queue on disk, beside one in memory.
    Disk,
}

impl Scenario {
    /// All, in the order of the report.
    pub const ALL: [Scenario; 5] =
        [Scenario::One, Scenario::Packed, Scenario::Flood, Scenario::Series, Scenario::Disk];
}

/// Arguments of `staunch bench statsd`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to measure; repeatable. All five without it.
    #[arg(long, value_enum)]
    pub scenario: Vec<Scenario>,
    /// Runs of `one`, `packed` and `disk`, in turn with what they are beside (`flood`: at most 3 of them, `series`: 1)
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    pub runs: u64,
    /// Packets of a run [default: 1,000,000; `packed` 200,000; `flood` and `disk` 5,000,000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Distinct names of `one`, `packed`, `flood` and `disk`
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    pub names: u64,
    /// Samples in a packet of `packed`
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=Ring::pack_max()), hide_short_help = true)]
    pub pack: u64,
    /// Type of the samples of `one`, `packed`, `flood` and `disk`
    #[arg(long = "type", value_enum, default_value_t = SampleType::C)]
    pub kind: SampleType,
    /// Packets per second of `one`, `packed` and `disk`; 0 for full speed
    #[arg(long, default_value_t = 0, hide_short_help = true)]
    pub rate: u64,
    /// Distinct counters of `series`
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=SERIES_MAX), hide_short_help = true)]
    pub series: u64,
    /// Packets per second of `series`
    #[arg(long, default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true)]
    pub series_rate: u64,
    /// The rival.
    #[command(flatten)]
    pub rival: NodeStatsd,
    /// Cores and binary.
    #[command(flatten)]
    pub common: Common,
}

/// Runs the benchmark. `talk` gets one line of progress at a time.
///
/// The caller prints the report (`Display`, or as JSON) and may end with 1 when [`Report::all_met`] is false.
///
/// # Errors
/// When the benchmark itself fails, or the daemon under test does not start or answer. The folder with its configs and
/// logs is then kept; the error names it.
pub fn run(args: &Args, talk: &mut (dyn FnMut(&str) + Send)) -> Result<Report, BenchError> {
    let about = About { name: "statsd", over: "UDP", method: method(args), rival: args.rival.find() };
    ground::measure(&args.common, about, talk, |ground| run_scenarios(args, ground))
}

fn run_scenarios(args: &Args, ground: &mut Ground<'_>) -> Result<Vec<ScenarioReport>, BenchError> {
    let sink = Sink::start().map_err(failed("start the Graphite sink"))?;
    let wanted = if args.scenario.is_empty() { &Scenario::ALL[..] } else { &args.scenario };
    let mut bench = Bench { args, ground, sink: &sink };
    wanted
        .iter()
        .map(|scenario| match scenario {
            Scenario::One => bench.cpu("one", 1, args.count.unwrap_or(1_000_000)),
            Scenario::Packed => bench.cpu("packed", args.pack, args.count.unwrap_or(200_000)),
            Scenario::Flood => bench.flood(args.count.unwrap_or(5_000_000)),
            Scenario::Series => bench.series(),
            Scenario::Disk => bench.disk(args.count.unwrap_or(5_000_000)),
        })
        .collect()
}

fn method(args: &Args) -> String {
    let plural = if args.runs == 1 { "" } else { "s" };
    format!(
        "{} run{plural} of each, in turn, each with a daemon started for it and warmed up; CPU is user + system of \
         the whole process from the first packet until all are in, idle use subtracted, per packet that was counted",
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
        assert_eq!((args.runs, args.names, args.pack, args.kind), (5, 1000, 30, SampleType::C));
        let args = parse::<Args>("--scenario one --scenario flood --type mix --pack 128").unwrap();
        assert_eq!(args.scenario, [Scenario::One, Scenario::Flood]);
        for bad in
            ["--runs 0", "--runs 1001", "--names 0", "--pack 0", "--pack 129", "--series 0", "--type x"]
        {
            assert!(parse::<Args>(bad).is_err(), "{bad}");
        }
    }
}
