//! F2: `kill -9` in a loop under StatsD over UDP, which nobody acknowledges, with checkpoints.
//!
//! Each datagram is a counter of its own, in one window that lasts over all kills. What is missing in the end must have
//! arrived after the last checkpoint of its instance began. Which records that are is found out without a clock:
//! what was counted before two more checkpoints were done is in the second of them.

use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::finding::{Bench, End, Finding};
use crate::oracle::{Form, write_record};
use crate::support::{Builder, Daemon, udp};

/// Datagrams between two pauses, each a new series.
const BURST: u64 = 50;

/// Bursts between two looks at the daemon.
const BURSTS: usize = 10;

const PATIENCE: Duration = Duration::from_secs(60);

/// Checkpoints that an instance has written, and packets that it had read before.
fn look(daemon: &Daemon) -> (u64, u64) {
    let page = daemon.json("/api/v1/accounts");
    let written = page["checkpoints"][0]["written"].as_u64().unwrap_or(0);
    let packets = page["sources"].as_array().and_then(|rows| rows.first());
    (written, packets.map_or(0, |row| Daemon::number(row, "aggregated")))
}

pub(crate) fn run(bench: &Bench) -> End {
    let (kills, checkpoint, pause_ms) = bench.pick((5, "100ms", 1), (50, "1s", 10));
    let endpoint = Endpoint::new(Form::Point);
    let toml = format!(
        "[sources.app]\ntype = \"statsd\"\nlisten = [\"udp://127.0.0.1:0\"]\n\
         [transforms.stats]\ntype = \"aggregate\"\nfrom = [\"app\"]\nwindow = \"24h\"\nself_counters = \"none\"\n\
         checkpoint = \"{checkpoint}\"\nseries_max = 10000000\n\
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
            let (written, counted) = look(&daemon);
            looks.push((written, counted));
            let safe = looks.iter().filter(|(before, _)| before + 2 <= written).map(|(_, counted)| *counted);
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
