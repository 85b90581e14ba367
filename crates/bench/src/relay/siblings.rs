//! `siblings`: what two outputs of a source keep of their throughput beside a third one whose peer is slow, hangs or is dead.
//!
//! Path of a line: `lines` -> one connection -> Staunch with three outputs -> two endpoints that count (`sinks`), and the peer in
//! question. All queues are small, and full soon where the peer takes nothing. Each figure is beside that of the same round
//! in which the third peer reads everything: then Staunch does the same work for it.
//! Not here: arguments and order of the scenarios (`scenarios`).

use std::fs;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use model::SECOND_NS;

use super::lines::Lines;
use super::sinks::Sinks;
use crate::contestant::process::Process;
use crate::contestant::server::free_tcp_port;
use crate::ground::Ground;
use crate::report::{Check, Row, ScenarioReport, figure};
use crate::rounds::LONG_RUNS_MAX;
use crate::{BenchError, failed};
use sys::clock::Clock;

/// What the project promises, in per cent of the throughput beside a peer that reads everything.
const KEPT_PERCENT_MIN: f64 = 90.0;

/// Bytes of each queue: filled within a second, so that a run is about full queues.
const QUEUE_BYTES: &str = "8MiB";

/// Lines between two looks at the clock.
const LINES_AT_ONCE: u64 = 5_000;

/// Time ahead of a run, in which queues fill.
const WARM_UP_NS: u64 = SECOND_NS;

/// Between two bytes that the slow peer reads, and two looks whether a peer is to end.
const BYTE_PAUSE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Where the queues are.
const QUEUE_KINDS: [&str; 2] = ["memory", "disk"];

/// What is to be measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// Runs of each.
    pub runs: u64,
    /// Seconds of a run.
    pub seconds: u64,
    /// Distinct names.
    pub names: u64,
    /// Where the queues on disk are made.
    pub folder: &'a Path,
}

/// The third output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    /// There is none.
    None,
    /// It reads everything.
    Good,
    /// It reads a byte a second.
    Slow,
    /// It accepts connections and reads nothing.
    Hangs,
    /// Nothing listens.
    Dead,
}

impl Peer {
    /// In the order of a round. The second one is what the others are held against.
    const ALL: [Peer; 5] = [Peer::None, Peer::Good, Peer::Slow, Peer::Hangs, Peer::Dead];

    fn name(self) -> &'static str {
        match self {
            Peer::None => "alone",
            Peer::Good => "peer reads",
            Peer::Slow => "peer is slow",
            Peer::Hangs => "peer hangs",
            Peer::Dead => "peer is dead",
        }
    }
}

/// Measures both kinds of queues.
///
/// # Errors
/// When Staunch does not start or end, or takes no lines.
pub(super) fn measure(
    wanted: Wanted<'_>,
    ground: &Ground<'_>,
    sinks: &Sinks,
) -> Result<ScenarioReport, BenchError> {
    let lines = Lines::new(wanted.names);
    let rounds = wanted.runs.min(LONG_RUNS_MAX);
    let entrants: Vec<(&str, Peer)> =
        QUEUE_KINDS.iter().flat_map(|kind| Peer::ALL.map(|peer| (*kind, peer))).collect();
    let runs = ground.rounds("siblings", rounds, &entrants, |(kind, peer), round| {
        ground.say(&format!("siblings: {kind}, {}, run {round}", peer.name()));
        run((*kind, *peer), wanted, ground, sinks, &lines)
    })?;
    let (mut rows, mut checks) = (Vec::new(), Vec::new());
    for (kind, runs) in QUEUE_KINDS.iter().zip(runs.chunks(Peer::ALL.len())) {
        let (of_kind, checks_of_kind) = figures(kind, runs);
        rows.extend(of_kind);
        checks.extend(checks_of_kind);
    }
    let what = format!(
        "lines a second to each of two outputs, without a third one, and beside one whose peer reads everything, a byte a \
         second, or nothing, or is dead; queues of 8 MiB with the default `when_full`; {} s a run, {} lines of {} bytes",
        wanted.seconds,
        figure(wanted.names as f64),
        figure(lines.mean_bytes().round())
    );
    Ok(ScenarioReport { name: "siblings", what, checks, rows })
}

/// Rows and limits of one kind of queue, from its runs by peer.
fn figures(kind: &'static str, runs: &[Vec<f64>]) -> (Vec<Row>, Vec<Check>) {
    let (mut rows, mut checks) = (Vec::new(), Vec::new());
    let reference = runs.get(1).map_or(&[][..], Vec::as_slice);
    let in_memory = kind == QUEUE_KINDS[0];
    for (peer, runs) in Peer::ALL.into_iter().zip(runs) {
        let what = if in_memory { "in memory" } else { "on disk" };
        rows.push(Row { who: peer.name(), what, unit: "lines/s", runs: runs.clone() });
        if peer == Peer::Good {
            continue;
        }
        let what = if in_memory { "in memory, of reading" } else { "on disk, of reading" };
        let percent = runs.iter().zip(reference).map(|(run, all)| 100.0 * run / all.max(1.0)).collect();
        let kept = Row { who: peer.name(), what, unit: "%", runs: percent };
        if peer != Peer::None {
            let what = format!("{kind}, {}, per cent of the siblings' throughput:", peer.name());
            checks.push(Check::at_least(&what, kept.median(), KEPT_PERCENT_MIN));
        }
        rows.push(kept);
    }
    (rows, checks)
}

/// One run with a daemon started for it. Gives lines a second to the sibling that got fewer.
fn run(
    (kind, peer): (&str, Peer),
    wanted: Wanted<'_>,
    ground: &Ground<'_>,
    sinks: &Sinks,
    lines: &Lines,
) -> Result<f64, BenchError> {
    let third = Third::start(peer, sinks).map_err(failed("start a peer"))?;
    let folder = wanted.folder.join(format!("staunch-bench-siblings-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(failed("make a folder for queues"))?;
    let measured = measure_daemon(kind, third.address, wanted, ground, (sinks, lines), &folder);
    fs::remove_dir_all(&folder).map_err(failed("remove the folder of queues"))?;
    measured
}

fn measure_daemon(
    kind: &str,
    third: Option<SocketAddr>,
    wanted: Wanted<'_>,
    ground: &Ground<'_>,
    (sinks, lines): (&Sinks, &Lines),
    data_dir: &Path,
) -> Result<f64, BenchError> {
    let stand = &ground.stand;
    let listen = free_tcp_port().map_err(failed("find a free port"))?;
    let config = stand.dir.join(format!("siblings-{}.toml", listen.port()));
    let [one, two, _] = *sinks.addresses();
    let text = config_text(kind, listen, [Some(one), Some(two), third], data_dir);
    fs::write(&config, text).map_err(failed("write a config file"))?;
    let mut command = Command::new(&stand.binary);
    command.arg("run").arg(&config).current_dir(&stand.dir);
    let log = stand.dir.join(format!("siblings-{}.log", listen.port()));
    let process = Process::start("staunch", command, stand.core, log, || TcpStream::connect(listen))?;
    let speed = throughput(listen, wanted.seconds * SECOND_NS, sinks, lines)?;
    process.stop()?;
    Ok(speed)
}

/// Sends lines for a second, and then for `ns`, in which those that arrive are counted.
fn throughput(to: SocketAddr, ns: u64, sinks: &Sinks, lines: &Lines) -> Result<f64, BenchError> {
    let mut connection = TcpStream::connect(to).map_err(failed("connect to staunch"))?;
    let mut send_for = |ns: u64| {
        let until_ns = Clock::mono_ns() + ns;
        while Clock::mono_ns() < until_ns {
            lines.send(LINES_AT_ONCE, &mut connection).map_err(failed("send lines to staunch"))?;
        }
        Ok::<(), BenchError>(())
    };
    send_for(WARM_UP_NS)?;
    let (from_ns, [one, two, _]) = (Clock::mono_ns(), sinks.arrived());
    send_for(ns)?;
    let (to_ns, [one_now, two_now, _]) = (Clock::mono_ns(), sinks.arrived());
    let fewer = one_now.since(one).lines.min(two_now.since(two).lines);
    Ok(fewer as f64 / ((to_ns - from_ns).max(1) as f64 / SECOND_NS as f64))
}

fn config_text(
    kind: &str,
    listen: SocketAddr,
    endpoints: [Option<SocketAddr>; 3],
    data_dir: &Path,
) -> String {
    let mut text = format!(
        "data_dir = {:?}\nstop_timeout = \"1s\"\n[http]\nenabled = false\n\
         [sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://{listen}\"]\n",
        data_dir.display().to_string()
    );
    for (name, endpoint) in ["one", "two", "third"].into_iter().zip(endpoints) {
        let Some(endpoint) = endpoint else { continue };
        text += &format!(
            "[outputs.{name}]\ntype = \"graphite\"\nfrom = [\"lines\"]\nto = [\"tcp://{endpoint}\"]\n\
             queue = {{ kind = \"{kind}\", max_bytes = \"{QUEUE_BYTES}\" }}\n"
        );
    }
    text
}

/// The third peer, as long as it is needed.
struct Third {
    address: Option<SocketAddr>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Third {
    fn start(peer: Peer, sinks: &Sinks) -> io::Result<Third> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut third = Third { address: None, stop: Arc::clone(&stop), thread: None };
        match peer {
            Peer::None => {}
            Peer::Good => third.address = Some(sinks.addresses()[2]),
            Peer::Dead => third.address = Some(TcpListener::bind("127.0.0.1:0")?.local_addr()?),
            Peer::Slow | Peer::Hangs => {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                listener.set_nonblocking(true)?;
                third.address = Some(listener.local_addr()?);
                let reads = peer == Peer::Slow;
                let serve = move || serve(&listener, reads, &stop);
                third.thread = Some(thread::Builder::new().name("peer".into()).spawn(serve)?);
            }
        }
        Ok(third)
    }
}

impl Drop for Third {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        // A panic has been printed by the thread itself.
        let _panicked = self.thread.take().map(JoinHandle::join);
    }
}

/// Accepts all connections, and reads a byte a second from each, or nothing.
fn serve(listener: &TcpListener, reads: bool, stop: &AtomicBool) {
    let mut connections: Vec<TcpStream> = Vec::new();
    let mut read_ns = 0;
    while !stop.load(Relaxed) {
        if let Ok((connection, _)) = listener.accept()
            && connection.set_nonblocking(true).is_ok()
        {
            connections.push(connection);
        }
        if reads && Clock::mono_ns() >= read_ns {
            read_ns = Clock::mono_ns() + BYTE_PAUSE.as_nanos() as u64;
            // None may be there yet.
            connections.iter_mut().for_each(|connection| drop(connection.read(&mut [0])));
        }
        thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_cent_are_of_the_run_of_the_same_round_in_which_the_peer_reads() {
        let runs = [
            vec![300.0, 300.0],
            vec![200.0, 100.0],
            vec![190.0, 90.0],
            vec![200.0, 100.0],
            vec![100.0, 50.0],
        ];
        let (rows, checks) = figures("memory", &runs);
        let percent: Vec<(&str, &[f64])> =
            rows.iter().filter(|row| row.unit == "%").map(|row| (row.who, &row.runs[..])).collect();
        let want: [(&str, &[f64]); 4] = [
            ("alone", &[150.0, 300.0]),
            ("peer is slow", &[95.0, 90.0]),
            ("peer hangs", &[100.0, 100.0]),
            ("peer is dead", &[50.0, 50.0]),
        ];
        assert_eq!(percent, want);
        assert_eq!(checks.iter().map(|check| check.met).collect::<Vec<_>>(), [true, true, false]);
    }

    #[test]
    fn peers_are_as_they_are_called() {
        let sinks = Sinks::start().unwrap();
        let address = |peer| Third::start(peer, &sinks).map(|third| (third.address, third));
        assert!(address(Peer::None).unwrap().0.is_none());
        assert_eq!(address(Peer::Good).unwrap().0, Some(sinks.addresses()[2]));
        let (dead, _third) = address(Peer::Dead).unwrap();
        assert!(TcpStream::connect(dead.unwrap()).is_err());
        for peer in [Peer::Hangs, Peer::Slow] {
            let (at, third) = address(peer).unwrap();
            let mut connection = TcpStream::connect(at.unwrap()).unwrap();
            io::Write::write_all(&mut connection, b"ab").unwrap();
            drop(third);
        }
    }

    #[test]
    fn the_config_is_valid_with_each_kind_of_queue_and_without_a_third_output() {
        let at = SocketAddr::from(([127, 0, 0, 1], 5));
        let other = SocketAddr::from(([127, 0, 0, 1], 6));
        for (kind, third, outputs) in [("memory", None, 2), ("disk", Some(other), 3)] {
            let text = config_text(kind, at, [Some(other), Some(other), third], Path::new("/nowhere"));
            let source = config::diagnostic::Source { name: "t.toml", text: &text };
            let (plan, diagnostics) = config::check(source, config::Format::Toml);
            let plan = plan.unwrap_or_else(|| panic!("{diagnostics:?}"));
            assert_eq!(plan.outputs.len(), outputs);
        }
    }
}
