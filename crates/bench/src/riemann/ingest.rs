//! Events through an index, `where` and `rate`, over one connection.

use super::bare::BareLoop;
use super::connection::{Connection, Messages};
use super::node::{CONFIG, Node, Program};
use crate::contestant::usage::{Patience, Progress, Usage};
use crate::ground::Ground;
use crate::report::{Check, Row, ScenarioReport, figure};
use crate::rounds::warm_up;
use crate::{BenchError, failed};
use std::time::Duration;

/// `single` has a tenth of the events: each costs more.
pub(super) const SINGLE_SHARE: u64 = 10;

/// A query has been replied to before the end of a run: nothing is left to wait for.
const PATIENCE: Patience = Patience { look_every: Duration::from_millis(1), looks_unchanged_max: 0 };

/// How the events come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    name: &'static str,
    /// Events in a message.
    pack: u64,
    /// Messages without their reply.
    in_flight: u64,
    /// The asked figure.
    ns_max: f64,
    /// Riemann's, measured for the specification.
    riemann_ns: f64,
}

/// 100 events in a message.
pub(super) const HUNDRED: Shape =
    Shape { name: "ingest", pack: 100, in_flight: 16, ns_max: 400.0, riemann_ns: 3_920.0 };

/// One event in a message.
pub(super) const SINGLE: Shape =
    Shape { name: "single", pack: 1, in_flight: 64, ns_max: 1_000.0, riemann_ns: 14_500.0 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Bare,
    Daemon(Program),
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Who::Bare => "bare loop",
            Who::Daemon(program) => program.name(),
        }
    }
}

enum Contestant {
    Bare(BareLoop),
    Node(Node),
}

impl Contestant {
    fn start(who: Who, ground: &Ground<'_>) -> Result<Contestant, BenchError> {
        match who {
            Who::Bare => BareLoop::start(ground.stand.core)
                .map(Contestant::Bare)
                .map_err(failed("start the bare loop")),
            Who::Daemon(program) => Node::start(&ground.stand, program, CONFIG).map(Contestant::Node),
        }
    }

    fn address(&self) -> std::net::SocketAddr {
        match self {
            Contestant::Bare(bare) => bare.address(),
            Contestant::Node(node) => node.address,
        }
    }

    fn cpu_ns(&self) -> Result<u64, BenchError> {
        match self {
            Contestant::Bare(bare) => bare.cpu_ns().map_err(failed("read the CPU time of the bare loop")),
            Contestant::Node(node) => node.cpu_ns(),
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// CPU for an event.
    ns: f64,
    /// Messages replied to with `ok`.
    good: u64,
    others_share: f64,
}

fn run(
    who: Who,
    ground: &Ground<'_>,
    shape: &Shape,
    messages: &Messages,
    count: u64,
) -> Result<Run, BenchError> {
    let contestant = Contestant::start(who, ground)?;
    let sent = || failed("send events");
    let mut connection = Connection::open(contestant.address()).map_err(failed("connect to a daemon"))?;
    connection.send(messages, warm_up(count), shape.in_flight).map_err(sent())?;
    connection.settle().map_err(sent())?;
    let read_cpu = || contestant.cpu_ns();
    let usage = Usage::begin(ground.stand.core, &read_cpu)?;
    let good = connection.send(messages, count, shape.in_flight).map_err(sent())?;
    connection.settle().map_err(sent())?;
    let used = usage.until_settled(0, PATIENCE, &mut || Ok(Progress { done: 0, moved: 0 }))?;
    drop(connection);
    match contestant {
        Contestant::Bare(bare) => bare.join(),
        Contestant::Node(node) => node.stop()?,
    }
    let events = (count * shape.pack) as f64;
    Ok(Run { ns: used.cpu_ns / events, good, others_share: used.others_share })
}

/// CPU of one event.
pub(super) fn ingest(
    ground: &mut Ground<'_>,
    shape: &Shape,
    events: u64,
    runs: u64,
) -> Result<ScenarioReport, BenchError> {
    let messages = Messages::new(shape.pack);
    let count = (events / shape.pack).max(1);
    let original = ground.stand.rival.is_some().then_some(Who::Daemon(Program::Riemann));
    let entrants: Vec<Who> = [Who::Bare, Who::Daemon(Program::Staunch)].into_iter().chain(original).collect();
    let results = ground
        .rounds(shape.name, runs, &entrants, |who, _round| run(*who, ground, shape, &messages, count))?;
    let others = results.iter().flatten().map(|run| run.others_share).fold(0.0, f64::max);
    ground.warn_of_share(shape.name, others);
    let row = |(who, runs): (&Who, &Vec<Run>)| {
        let runs = runs.iter().map(|run| run.ns).collect();
        Row { who: who.name(), what: "CPU per event", unit: "ns", runs }
    };
    let rows: Vec<Row> = entrants.iter().zip(&results).map(row).collect();
    let good: u64 = results[1].iter().map(|run| run.good).sum();
    let ours = rows[1].median();
    let mut checks = vec![
        Check::at_most("ns per event:", ours, shape.ns_max),
        Check::at_least("messages replied to with ok, of those sent:", good as f64, (count * runs) as f64),
    ];
    let (theirs, what) = match rows.get(2) {
        Some(row) => (row.median(), "times cheaper than Riemann:"),
        None => (shape.riemann_ns, "times cheaper than Riemann, as specified:"),
    };
    checks.push(Check::at_least(what, theirs / ours, 1.0));
    let what = format!(
        "{} events of six fields in a run, of {} hosts and services, {} in a message, {} messages in flight; bench/riemann.config",
        figure((count * shape.pack) as f64),
        figure(super::events::KEYS as f64),
        shape.pack,
        shape.in_flight
    );
    Ok(ScenarioReport { name: shape.name, what, rows, checks })
}
