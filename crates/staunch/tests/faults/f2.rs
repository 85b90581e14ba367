//! F2: `kill -9` in a loop under StatsD over UDP, which nobody acknowledges, with checkpoints.
//!
//! Each datagram is a counter of its own, in one window that lasts over all kills. What is missing in the end must have
//! arrived after the last checkpoint of its instance began. The daemon says how old the checkpoint on its disk is; what it
//! had counted in an answer that came before is in it. Counting checkpoints would not do: several may be on their way to
//! a slow disk.

use std::time::{Duration, Instant};

use crate::endpoint::Endpoint;
use crate::finding::{Bench, End, Finding};
use crate::oracle::{Form, write_record};
use crate::support::{Builder, Daemon, udp};

/// Datagrams between two pauses, each a new series.
const BURST: u64 = 50;

/// Bursts between two looks at the daemon.
const BURSTS: usize = 10;

const PATIENCE: Duration = Duration::from_secs(60);

/// When the checkpoint on disk was begun at the earliest, if there is one, and packets that were counted by now.
fn look(daemon: &Daemon) -> (Option<Instant>, u64) {
    let asked = Instant::now();
    let page = daemon.json("/api/v1/accounts");
    let age = page["checkpoints"][0]["age_s"].as_f64().map(Duration::from_secs_f64);
    let packets = page["sources"].as_array().and_then(|rows| rows.first());
    (age.and_then(|age| asked.checked_sub(age)), packets.map_or(0, |row| Daemon::number(row, "aggregated")))
}

pub(crate) fn run(bench: &Bench) -> End {
    let (kills, checkpoint, pause_ms) = bench.pick((5, "100ms", 1), (50, "1s", 10));
    let endpoint = Endpoint::new(Form::Point);
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"24h\"\nself_counters = \"none\"\n\
         checkpoint = \"{checkpoint}\"\nmax_series = 10000000\n\
         [outputs.carbon]\ntype = \"graphite\"\nfrom = [\"stats\"]\nto = [\"{}\"]\n",
        endpoint.to()
    );
    let mut daemon = Builder::native(&toml).start();
    let mut random = bench.random();
    let mut finding = Finding::default();
    // For each kill: the first id that may be missing, and the first of the next instance.
    let mut doubts = Vec::new();
    let (mut next, mut packet) = (0, Vec::new());
    for kill in 0..kills {
        let socket = udp(daemon.at("app", "udp"));
        let first = next;
        let mut looks = Vec::new();
        let mut more = 1 + random.below(10);
        let safe = bench.wait("checkpoints", PATIENCE, || {
            for _ in 0..BURSTS {
                for _ in 0..BURST {
                    packet.clear();
                    write_record(&mut packet, next);
                    socket.send(&packet).expect("the daemon listens");
                    next += 1;
                }
                std::thread::sleep(Duration::from_millis(pause_ms));
            }
            let (begun, counted) = look(&daemon);
            looks.push((Instant::now(), counted));
            let safe = looks.iter().filter(|(answered, _)| begun.is_some_and(|begun| *answered <= begun));
            let safe = safe.map(|(_, counted)| *counted);
            let safe = safe.max().filter(|counted| *counted > 0)?;
            more = more.checked_sub(1)?;
            (more == 0).then_some(safe)
        });
        finding.promise(safe.is_some(), || format!("no checkpoint came before kill {kill}"));
        daemon.signal("KILL");
        daemon.wait_exit();
        doubts.push((first + safe.unwrap_or(0), next));
        daemon.start_again();
        bench.say(|| format!("{kill} of {kills} kills, {next} records"));
    }
    daemon.stop();
    endpoint.read_to_the_end(bench);
    finding.sent = next;
    finding.add(&endpoint.oracle.count());
    let missing = endpoint.oracle.missing(0..next);
    finding.done = format!("{kills} kills -9, UDP");
    finding.named = missing.len() as u64;
    let in_doubt: u64 = doubts.iter().map(|(from, to)| to - from).sum();
    finding.figure(format!(
        "checkpoint {checkpoint}: {} lost for each kill, {} had come since the last checkpoint",
        finding.named / kills,
        in_doubt / kills
    ));
    let outside =
        missing.iter().filter(|id| !doubts.iter().any(|(from, to)| (from..to).contains(id))).count();
    finding.promise(outside == 0, || format!("{outside} records are missing that a checkpoint had"));
    let twice = finding.twice;
    finding.promise(twice == 0, || format!("{twice} records were counted twice"));
    End::Ran(finding)
}
