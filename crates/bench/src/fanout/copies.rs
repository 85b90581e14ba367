//! The three scenarios of `staunch bench fanout`: contestants, endpoints, number of runs and figures.
//!
//! Path of a packet: the ring made here -> `Contestant::measure_until` -> `Counting` endpoints, or one that is closed
//! or stopped -> rows and checks of the report. Not here: reading CPU time and counts (`contestant`), configs
//! (`fanout`).

use std::path::Path;
use std::thread;
use std::time::Duration;

use model::SECOND_NS;
use serde_json::Value;

use crate::contestant::server::{Daemon, Server};
use crate::contestant::usage::Progress;
use crate::contestant::{Contestant, Entrant, Measured};
use crate::fanout::{Args, config};
use crate::ground::Ground;
use crate::report::{Check, Row, ScenarioReport, figure};
use crate::rounds::{LONG_RUNS_MAX, warm_up};
use crate::statsd::scenario::{DROPPED, TIMES_BARE, cpu_rows};
use crate::traffic::endpoints::{Arrived, Closed, Counting, Stopped};
use crate::traffic::packets::{Mixture, Ring, SampleType};
use crate::{BenchError, failed};

/// The project's promises; the report marks a figure beyond them as not met.
const CPU_TIMES_BARE_MAX: f64 = 1.25;

/// Distinct names in the packets.
const NAMES: u64 = 1000;

/// Numbers of endpoints in `speed`, with the labels of their rows.
const SPEED_ENDPOINTS: [(usize, &str, &str); 3] = [
    (1, "copied to 1", "of it arrived, 1"),
    (2, "copied to each of 2", "of it arrived, 2"),
    (4, "copied to each of 4", "of it arrived, 4"),
];

/// The interval between two reads of the accounts; reads without a change after which they count as final; most reads,
/// since a closed endpoint may be retried forever.
const ACCOUNT_LOOK_EVERY: Duration = Duration::from_millis(100);
const ACCOUNT_LOOKS_UNCHANGED: u32 = 10;
const ACCOUNT_LOOKS_MAX: u32 = 300;

/// The arguments of all scenarios.
pub(crate) struct Copies<'a, 'g> {
    pub args: &'a Args,
    pub ground: &'a mut Ground<'g>,
}

/// One run: packets in and copies out.
#[derive(Clone, Debug, Default)]
struct Run {
    measured: Measured,
    arrived: Vec<Arrived>,
}

impl Copies<'_, '_> {
    /// `cpu`: CPU per packet of the bare loops, Staunch and the rival, in turn.
    pub(crate) fn cpu(&mut self, packets: u64) -> Result<ScenarioReport, BenchError> {
        let (rate, endpoints) = (self.args.rate, self.args.endpoints as usize);
        let ring = self.ring();
        let copiers = Entrant::all(&self.ground.stand);
        let runs = self.ground.rounds("cpu", self.args.runs, &copiers, |copier, _round| {
            self.run(*copier, endpoints, &ring, packets, rate)
        })?;
        self.doubts("cpu", rate, runs.iter().flatten());
        let measured = |at: usize| -> Vec<Measured> { runs[at].iter().map(|run| run.measured).collect() };
        let bare = measured(0);
        let mut rows = Vec::new();
        for (at, copier) in copiers.iter().enumerate() {
            rows.extend(cpu_rows(copier.name(), &measured(at), (at > 0).then_some(&bare[..]), 1));
            rows.push(row(copier.name(), "arrived, least", "%", &runs[at], Run::percent_arrived));
        }
        let times = rows.iter().find(|row| row.who == Daemon::Staunch.name() && row.what == TIMES_BARE);
        let checks = vec![
            Check::at_most(
                "CPU per packet, times the bare loop's:",
                times.map_or(f64::NAN, Row::median),
                CPU_TIMES_BARE_MAX,
            ),
            Check::at_least("packets at each endpoint:", least(&runs[1], Run::came_least), packets as f64),
        ];
        let what =
            format!("{}, to {endpoints} endpoints, {} packets a run", speed(rate), figure(packets as f64));
        Ok(ScenarioReport { name: "cpu", what, rows, checks })
    }

    /// `speed`: how much arrives when the generator never rests.
    pub(crate) fn speed(&mut self, packets: u64) -> Result<ScenarioReport, BenchError> {
        let ring = self.ring();
        let count = self.args.runs.min(LONG_RUNS_MAX);
        let mut rows = Vec::new();
        let mut all = Vec::new();
        for (endpoints, speed, share) in SPEED_ENDPOINTS {
            let copiers = Entrant::all(&self.ground.stand);
            let name = format!("speed: {endpoints} endpoints");
            let runs = self.ground.rounds(&name, count, &copiers, |copier, _round| {
                self.run(*copier, endpoints, &ring, packets, 0)
            })?;
            for (copier, runs) in copiers.iter().zip(&runs) {
                rows.push(row(copier.name(), speed, "pkt/s", runs, Run::came_per_second));
                rows.push(row(copier.name(), share, "%", runs, Run::percent_arrived));
            }
            all.extend(runs.into_iter().flatten());
        }
        self.doubts("speed", 0, &all);
        let sent = row("generator", "speed", "pkt/s", &all, |run| run.measured.sent.packets_per_second());
        rows.insert(0, sent);
        let what = format!(
            "full speed, {} packets a run; copies per second at the slowest endpoint, from its first to its last",
            figure(packets as f64)
        );
        Ok(ScenarioReport { name: "speed", what, rows, checks: Vec::new() })
    }

    /// `outage`: a live, a closed and a stopped endpoint.
    pub(crate) fn outage(&mut self, packets: u64) -> Result<ScenarioReport, BenchError> {
        let ring = self.ring();
        let rival = self.ground.stand.rival.is_some().then_some(Daemon::Node);
        let daemons: Vec<Daemon> = [Daemon::Staunch].into_iter().chain(rival).collect();
        let count = self.args.runs.min(LONG_RUNS_MAX);
        let runs = self
            .ground
            .rounds("outage", count, &daemons, |daemon, _round| self.outage_run(*daemon, &ring, packets))?;
        let both: Vec<Run> = runs.iter().flatten().map(|outage| outage.run.clone()).collect();
        self.doubts("outage", self.args.outage_rate, &both);
        let mut rows =
            vec![row("generator", "speed", "pkt/s", &both, |run| run.measured.sent.packets_per_second())];
        for (daemon, runs) in daemons.iter().zip(&runs) {
            rows.extend(Outage::rows(daemon.name(), runs, *daemon == Daemon::Staunch));
        }
        let own = &runs[0];
        let accounts = own.iter().flat_map(|outage| &outage.accounts);
        let (sums, exact) =
            accounts.fold((0, 0), |(sums, exact), account| (sums + 1, exact + u64::from(account.adds_up)));
        let checks = vec![
            Check::at_least("packets at the live endpoint:", least(own, Outage::live), packets as f64),
            Check::at_least("accounts that add up exactly:", f64::from(exact as u32), f64::from(sums)),
            Check::at_most(
                "copies that the accounts and the packets received differ by:",
                own.iter().map(Outage::copies_astray).fold(0.0, f64::max),
                0.0,
            ),
            Check::at_most(
                "copies that the accounts and the stopped endpoints' kernel differ by:",
                own.iter().map(Outage::stopped_astray).fold(0.0, f64::max),
                0.0,
            ),
        ];
        let what = format!(
            "{}, {} packets a run, to a live, a closed and a stopped UDP endpoint; Staunch also to a stopped unix \
             datagram one",
            speed(self.args.outage_rate),
            figure(packets as f64)
        );
        Ok(ScenarioReport { name: "outage", what, rows, checks })
    }

    fn outage_run(&self, daemon: Daemon, ring: &Ring, packets: u64) -> Result<Outage, BenchError> {
        let live = Counting::start(1).map_err(failed("start an endpoint"))?;
        let closed = Closed::new().map_err(failed("close an endpoint"))?;
        let core = self.ground.stand.core;
        let (stopped, stopped_at) = Stopped::udp(core).map_err(failed("stop an endpoint"))?;
        let path = self.ground.stand.dir.join(format!("stopped-{}.sock", stopped_at.port()));
        let stopped_unix = Stopped::unix(&path, core).map_err(failed("stop an endpoint"))?;
        let mut to = live.addresses().map_err(failed("find an endpoint's port"))?;
        to.push(closed.address().map_err(failed("find an endpoint's port"))?);
        to.push(stopped_at);
        let server = Server::start(&self.ground.stand, daemon, &|ports| {
            config(daemon, &to, ports) + &also_to_unix(daemon, &path)
        })?;
        let contestant = Contestant::Server(server);
        let run = measure(&contestant, core, ring, packets, self.args.outage_rate, &live)?;
        let Contestant::Server(server) = contestant else { unreachable!("made as a server above") };
        let memory = server.memory()?;
        let accounts = match daemon {
            Daemon::Staunch => still_accounts(&server)?,
            Daemon::Node => Vec::new(),
        };
        let took = |stopped: &Stopped| stopped.taken().map_err(failed("read what a stopped endpoint held"));
        let stopped_took = [took(&stopped)?, took(&stopped_unix)?];
        server.stop()?;
        Ok(Outage { run, accounts, stopped_took, memory_bytes: memory.resident_high })
    }

    /// One run with its own endpoints and contestant: warmed up, measured, stopped.
    fn run(
        &self,
        copier: Entrant,
        endpoints: usize,
        ring: &Ring,
        packets: u64,
        rate: u64,
    ) -> Result<Run, BenchError> {
        let core = self.ground.stand.core;
        let counting = Counting::start(endpoints).map_err(failed("start the endpoints"))?;
        let to = counting.addresses().map_err(failed("find an endpoint's port"))?;
        let contestant =
            copier.start(&self.ground.stand, &to, &|daemon, ports| config(daemon, &to, ports))?;
        measure(&contestant, core, ring, warm_up(packets), self.args.rate, &counting)?;
        let run = measure(&contestant, core, ring, packets, rate, &counting)?;
        if let Contestant::Server(server) = contestant {
            server.stop()?;
        }
        Ok(run)
    }

    fn ring(&self) -> Ring {
        Ring::new(Mixture { names: NAMES, pack: self.args.pack, kind: SampleType::C, every_name: false })
    }

    /// Warns about conditions that make these runs doubtful.
    fn doubts<'r>(&mut self, name: &str, rate: u64, runs: impl IntoIterator<Item = &'r Run>) {
        let runs: Vec<&Run> = runs.into_iter().collect();
        self.ground.warn_of_others(name, runs.iter().map(|run| &run.measured));
        let slowest = runs.iter().map(|run| run.measured.sent.packets_per_second());
        self.ground.warn_of_rate(name, slowest.fold(f64::INFINITY, f64::min), rate);
        let lost: u64 = runs.iter().flat_map(|run| &run.arrived).map(|arrived| arrived.dropped).sum();
        if lost > 0 {
            self.ground.warnings.push(format!(
                "{name}: the counting endpoints were too slow for {} packets, which count as arrived",
                figure(lost as f64)
            ));
        }
    }
}

/// The addition to a daemon's config that also copies to the unix datagram socket at `path`. Node cannot.
fn also_to_unix(daemon: Daemon, path: &Path) -> String {
    match daemon {
        Daemon::Staunch => format!(
            "\n[outputs.stopped]\ntype = \"unix\"\nfrom = [\"app\"]\nto = [\"unixgram://{}\"]\n",
            path.display()
        ),
        Daemon::Node => String::new(),
    }
}

/// The accounts of a daemon once they no longer change: queued data is then not being sent.
fn still_accounts(server: &Server) -> Result<Vec<Account>, BenchError> {
    let look = || Account::all(&server.accounts()?).map_err(|why| server.no_counts(why));
    let mut last = look()?;
    let mut unchanged = 0;
    for _ in 0..ACCOUNT_LOOKS_MAX {
        thread::sleep(ACCOUNT_LOOK_EVERY);
        let now = look()?;
        unchanged = if now == last { unchanged + 1 } else { 0 };
        if unchanged >= ACCOUNT_LOOKS_UNCHANGED {
            break;
        }
        last = now;
    }
    Ok(last)
}

/// Sends, and waits until all copies have arrived or nothing changes any more.
fn measure(
    contestant: &Contestant,
    core: Option<usize>,
    ring: &Ring,
    packets: u64,
    rate: u64,
    counting: &Counting,
) -> Result<Run, BenchError> {
    let look = || counting.arrived().map_err(failed("read what the endpoints have got"));
    let before = look()?;
    let since = || -> Result<Vec<Arrived>, BenchError> {
        Ok(look()?.into_iter().zip(&before).map(|(now, before)| now.since(*before)).collect())
    };
    counting.begin_run();
    let measured = contestant.measure_until(core, ring, packets, rate, &mut |_counted| {
        let came = since()?;
        Ok(Progress {
            done: came.iter().map(|arrived| arrived.came()).min().unwrap_or(0),
            moved: came.iter().map(|arrived| arrived.came()).sum(),
        })
    })?;
    Ok(Run { measured, arrived: since()? })
}

impl Run {
    /// Packets at the endpoint that received the fewest.
    fn came_least(&self) -> f64 {
        self.arrived.iter().map(|arrived| arrived.came()).min().unwrap_or(0) as f64
    }

    fn percent_arrived(&self) -> f64 {
        100.0 * self.came_least() / self.measured.sent.packets.max(1) as f64
    }

    fn came_per_second(&self) -> f64 {
        let each = self
            .arrived
            .iter()
            .map(|arrived| arrived.came() as f64 * SECOND_NS as f64 / arrived.ns.max(1) as f64);
        each.fold(f64::INFINITY, f64::min)
    }
}

/// One run of `outage`.
#[derive(Clone, Debug)]
struct Outage {
    run: Run,
    /// The outputs' accounts: live, closed, stopped, stopped unix. Empty for a daemon without accounts.
    accounts: Vec<Account>,
    /// Packets that the kernel accepted for the two stopped endpoints.
    stopped_took: [u64; 2],
    memory_bytes: u64,
}

/// Indexes of the endpoints in [`Outage::accounts`].
const CLOSED: usize = 1;
const STOPPED: usize = 2;
const STOPPED_UNIX: usize = 3;

impl Outage {
    fn rows(who: &'static str, runs: &[Outage], accounts: bool) -> Vec<Row> {
        let mut rows = vec![
            row(who, "at the live one", "", runs, Outage::live),
            row(who, DROPPED, "", runs, |outage| outage.run.measured.counted.dropped as f64),
            row(who, "CPU per packet", "ns", runs, |outage| outage.run.measured.ns_per_packet()),
            row(who, "memory, peak", "MiB", runs, |outage| outage.memory_bytes as f64 / f64::from(1 << 20)),
        ];
        if accounts {
            rows.extend([
                row(who, "closed: delivered", "", runs, |outage| outage.account(CLOSED).delivered as f64),
                row(who, "closed: lost", "", runs, |outage| outage.account(CLOSED).lost as f64),
                row(who, "closed: queued", "", runs, |outage| outage.account(CLOSED).waiting as f64),
                row(who, "stopped: delivered", "", runs, |outage| outage.account(STOPPED).delivered as f64),
                row(who, "stopped: lost", "", runs, |outage| outage.account(STOPPED).lost as f64),
                row(who, "stopped: queued", "", runs, |outage| outage.account(STOPPED).waiting as f64),
                row(who, "unix: delivered", "", runs, |outage| outage.account(STOPPED_UNIX).delivered as f64),
                row(who, "unix: lost", "", runs, |outage| outage.account(STOPPED_UNIX).lost as f64),
                row(who, "unix: queued", "", runs, |outage| outage.account(STOPPED_UNIX).waiting as f64),
            ]);
        }
        rows
    }

    fn live(&self) -> f64 {
        self.run.came_least()
    }

    fn account(&self, at: usize) -> Account {
        self.accounts.get(at).copied().unwrap_or_default()
    }

    /// Largest difference between an output's copies and the packets received.
    fn copies_astray(&self) -> f64 {
        let packets = self.run.measured.counted.packets;
        self.accounts.iter().map(|account| account.copies.abs_diff(packets)).max().unwrap_or(0) as f64
    }

    /// Largest difference between the `delivered` of a stopped output and the packets that its kernel accepted.
    fn stopped_astray(&self) -> f64 {
        let delivered = [STOPPED, STOPPED_UNIX].map(|at| self.account(at).delivered);
        let astray =
            delivered.iter().zip(&self.stopped_took).map(|(reported, took)| reported.abs_diff(*took));
        astray.max().unwrap_or(0) as f64
    }
}

/// The figures of an output's account that the report shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    copies: u64,
    delivered: u64,
    /// All other outcomes together.
    lost: u64,
    waiting: u64,
    /// The figures add up, and the daemon reports `balanced`.
    adds_up: bool,
}

impl Account {
    /// The accounts of all outputs in an accounts document.
    fn all(document: &Value) -> Result<Vec<Account>, String> {
        let outputs = document["outputs"].as_array().ok_or("no outputs in the accounts")?;
        outputs.iter().map(Account::read).collect()
    }

    fn read(row: &Value) -> Result<Account, String> {
        let field = |name: &str| row[name].as_u64().ok_or_else(|| format!("no `{name}` in an output"));
        let lost = field("dropped")? + field("rejected_by_peer")? + field("expired")? + field("internal")?;
        let (copies, delivered, waiting) = (field("copies")?, field("delivered")?, field("queued")?);
        let adds_up = copies == delivered + lost + waiting && row["balanced"] == true;
        Ok(Account { copies, delivered, lost, waiting, adds_up })
    }
}

fn row<R>(
    who: &'static str,
    what: &'static str,
    unit: &'static str,
    runs: &[R],
    figure: impl Fn(&R) -> f64,
) -> Row {
    Row { who, what, unit, runs: runs.iter().map(figure).collect() }
}

fn least<R>(runs: &[R], figure: impl Fn(&R) -> f64) -> f64 {
    runs.iter().map(figure).fold(f64::INFINITY, f64::min)
}

fn speed(rate: u64) -> String {
    match rate {
        0 => "full speed".into(),
        rate => format!("{} packets/s", figure(rate as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestant::bare::BareLoop;
    use sys::Gather;

    #[test]
    fn the_bare_loops_copy_every_packet_to_every_endpoint() {
        for gather in [None, Some(Gather::default())] {
            let counting = Counting::start(3).unwrap();
            let to = counting.addresses().unwrap();
            let bare = Contestant::Bare(BareLoop::start(None, gather, &to).unwrap());
            let ring = Ring::new(Mixture { names: 10, pack: 1, kind: SampleType::C, every_name: false });
            for _ in 0..2 {
                // Paced, so that no buffer can overflow.
                let run = measure(&bare, None, &ring, 5_000, 100_000, &counting).unwrap();
                let came: Vec<u64> = run.arrived.iter().map(|arrived| arrived.came()).collect();
                assert_eq!(came, [5_000; 3]);
                assert_eq!((run.measured.counted.packets, run.measured.counted.dropped), (5_000, 0));
                assert!(run.came_per_second() > 0.0 && run.percent_arrived() == 100.0, "{run:?}");
            }
        }
    }

    #[test]
    fn an_account_adds_up_only_when_its_sum_and_its_daemon_agree() {
        let account = |copies: u64, waiting: u64, holds: bool| {
            serde_json::json!({"copies": copies, "delivered": 5, "dropped": 3, "rejected_by_peer": 2, "expired": 1,
                "internal": 0, "queued": waiting, "balanced": holds})
        };
        let read = |row: Value| Account::read(&row).unwrap();
        let whole = Account { copies: 15, delivered: 5, lost: 6, waiting: 4, adds_up: true };
        assert_eq!(read(account(15, 4, true)), whole);
        assert_eq!(read(account(15, 4, false)), Account { adds_up: false, ..whole });
        assert_eq!(read(account(15, 5, true)), Account { waiting: 5, adds_up: false, ..whole });
        assert!(Account::read(&serde_json::json!({"copies": 1})).is_err());
        assert!(Account::all(&serde_json::json!({})).is_err());
        let both = serde_json::json!({"outputs": [account(15, 4, true), account(0, 0, true)]});
        assert_eq!(Account::all(&both).map(|all| all.len()), Ok(2));
    }

    #[test]
    fn missing_copies_are_found() {
        let account = |copies, delivered| Account { copies, delivered, ..Account::default() };
        let mut run = Run::default();
        run.measured.counted.packets = 10;
        run.arrived = vec![Arrived { packets: 7, dropped: 2, ns: 3 }];
        let accounts = vec![account(10, 9), account(10, 0), account(8, 6), account(10, 4)];
        let mut outage = Outage { run, accounts, stopped_took: [5, 4], memory_bytes: 0 };
        assert_eq!((outage.live(), outage.copies_astray(), outage.stopped_astray()), (9.0, 2.0, 1.0));
        outage.stopped_took = [6, 7];
        assert_eq!(outage.stopped_astray(), 3.0);
    }
}
