//! `staunch bench fanout`: from arguments to the report; the configs of the contestants.

mod copies;

use std::net::SocketAddr;

use crate::BenchError;
use crate::contestant::server::{Daemon, Ports, with_ports};
use crate::fanout::copies::Copies;
use crate::ground::{self, About, Common, Ground, RUNS_MAX};
use crate::report::{Report, ScenarioReport};
use crate::rival::NodeStatsd;

/// Config files of the repository, published with the numbers.
const STAUNCH_CONFIG: &str = include_str!("../../../../bench/fanout.toml");
const NODE_CONFIG: &str = include_str!("../../../../bench/fanout.js");

/// Most endpoints of `cpu`.
const ENDPOINTS_MAX: u64 = 64;

/// The scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scenario {
    /// CPU per packet at a steady rate, beside a bare loop that receives and sends.
    Cpu,
    /// One endpoint lives, one is closed, one is stopped: does the live one get everything, do the accounts add up?
    Outage,
    /// Full speed to 1, 2 and 4 endpoints: how much arrives?
    Speed,
}

impl Scenario {
    /// All, in the order of the report.
    pub const ALL: [Scenario; 3] = [Scenario::Cpu, Scenario::Outage, Scenario::Speed];
}

/// Arguments of `staunch bench fanout`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to measure; repeatable. All three without it.
    #[arg(long, value_enum)]
    pub scenario: Vec<Scenario>,
    /// Runs of `cpu`, in turn with the bare loop's (`outage` and `speed`: at most 3 of them)
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=RUNS_MAX))]
    pub runs: u64,
    /// Packets of a run [default: 1,000,000; `outage` 5,000,000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Packets per second of `cpu`; 0 for full speed
    #[arg(long, default_value_t = 200_000)]
    pub rate: u64,
    /// Packets per second of `outage`; 0 for full speed
    #[arg(long, default_value_t = 300_000)]
    pub outage_rate: u64,
    /// Endpoints of `cpu`
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=ENDPOINTS_MAX), hide_short_help = true)]
    pub endpoints: u64,
    /// Samples in a packet
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=crate::traffic::packets::Ring::pack_max()), hide_short_help = true)]
    pub pack: u64,
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
/// When the benchmark itself fails, or a daemon under test does not start or answer. The folder with its configs and
/// logs is then kept; the error names it.
pub fn run(args: &Args, talk: &mut (dyn FnMut(&str) + Send)) -> Result<Report, BenchError> {
    let about = About { name: "fanout", over: "UDP", method: method(args), rival: args.rival.find() };
    ground::measure(&args.common, about, talk, |ground| run_scenarios(args, ground))
}

fn run_scenarios(args: &Args, ground: &mut Ground<'_>) -> Result<Vec<ScenarioReport>, BenchError> {
    let wanted = if args.scenario.is_empty() { &Scenario::ALL[..] } else { &args.scenario };
    let mut copies = Copies { args, ground };
    wanted
        .iter()
        .map(|scenario| match scenario {
            Scenario::Cpu => copies.cpu(args.count.unwrap_or(1_000_000)),
            Scenario::Outage => copies.outage(args.count.unwrap_or(5_000_000)),
            Scenario::Speed => copies.speed(args.count.unwrap_or(1_000_000)),
        })
        .collect()
}

fn method(args: &Args) -> String {
    let plural = if args.runs == 1 { "" } else { "s" };
    format!(
        "the endpoints, which count, share the generator's core; {} run{plural} of each, in turn, each with a daemon \
         started for it; CPU is user + system of the whole process from the first packet until all copies are in, idle \
         use subtracted, per packet that was received",
        args.runs
    )
}

/// The config of a daemon that sends each packet to each of `to`: the published file with other addresses.
pub(crate) fn config(daemon: Daemon, to: &[SocketAddr], ports: Ports) -> String {
    let text = match daemon {
        Daemon::Staunch => STAUNCH_CONFIG,
        Daemon::Node => NODE_CONFIG,
    };
    let (before, after) = text.split_once(OPENS[daemon as usize]).expect("a test looks at both files");
    let (_places, after) = after.split_once(CLOSES).expect("a test looks at both files");
    let places: Vec<String> = to.iter().map(|to| place(daemon, *to)).collect();
    let opens = OPENS[daemon as usize];
    with_ports(daemon, &format!("{before}{opens}{}{CLOSES}{after}", places.join(", ")), ports)
}

/// The text before the list of endpoints, by daemon, and after it.
const OPENS: [&str; 2] = ["\nto = [", "\n  repeater: ["];
const CLOSES: &str = "]\n";

fn place(daemon: Daemon, to: SocketAddr) -> String {
    match daemon {
        Daemon::Staunch => format!("\"udp://{to}\""),
        Daemon::Node => format!("{{ host: \"{}\", port: {} }}", to.ip(), to.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn arguments_have_defaults_and_bounds() {
        let args = parse::<Args>("").unwrap();
        assert_eq!((args.runs, args.rate, args.outage_rate, args.endpoints), (5, 200_000, 300_000, 2));
        let args = parse::<Args>("--scenario outage --scenario cpu --server-core 3").unwrap();
        assert_eq!(args.scenario, [Scenario::Outage, Scenario::Cpu]);
        assert_eq!(args.common.server_core, 3);
        for bad in ["--runs 0", "--endpoints 0", "--endpoints 65", "--count 0", "--scenario two"] {
            assert!(parse::<Args>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_measured_config_is_the_published_one_with_other_addresses() {
        let to = |ports: &[u16]| -> Vec<SocketAddr> {
            ports.iter().map(|port| SocketAddr::from(([127, 0, 0, 1], *port))).collect()
        };
        let published = [(Daemon::Staunch, STAUNCH_CONFIG, 28680), (Daemon::Node, NODE_CONFIG, 28126)];
        for (daemon, text, control) in published {
            let ports = Ports { statsd: 28125, control };
            assert_eq!(config(daemon, &to(&[28201, 28202]), ports), text);
            let other = config(daemon, &to(&[7, 8, 9]), Ports { statsd: 5, control: 6 });
            assert!(!other.contains("28"), "{other}");
            assert_eq!(other.matches("127.0.0.1").count(), text.matches("127.0.0.1").count() + 1);
        }
        let (plan, mistakes) = config::check(
            config::diagnostic::Source { name: "fanout.toml", text: STAUNCH_CONFIG },
            config::Format::Toml,
        );
        assert!(mistakes.is_empty(), "{mistakes:?}");
        assert_eq!(plan.map(|plan| plan.outputs.len()), Some(2));
    }
}
