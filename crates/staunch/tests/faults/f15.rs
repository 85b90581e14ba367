//! F15: `kill -9` again and again while lines go through a relay with queues on disk, one of whose endpoints is away every
//! other time.
//!
//! A client of a relay gets no acknowledgement. What it may miss is the end of what it sent before the kill. Each endpoint
//! has a queue of its own, which is written by itself, so that this end begins elsewhere for each: no endpoint misses a line
//! before one that it got. How long the longest end is, in lines and in time, is the window of doubt.

use std::time::{Duration, Instant};

use crate::finding::{Bench, End, Finding, median};
use crate::relay::{Relay, send};

const ENDPOINTS: usize = 3;

/// Records of one write, and the pause behind it: so few that nothing piles up in the kernel, of which each write takes all
/// or nothing.
const CHUNK: u64 = 50;
const PAUSE: Duration = Duration::from_millis(1);

const PATIENCE: Duration = Duration::from_secs(120);

/// The window of doubt that is promised, in full runs: a turn of the shard, and what the machine takes for it.
const DOUBT_MAX_S: f64 = 0.25;

/// One life of the relay: its records, when each write was done, and when nobody read any more.
struct Life {
    begin: u64,
    writes: Vec<(u64, Instant)>,
    killed: Instant,
}

pub(crate) fn run(bench: &Bench) -> End {
    let kills = bench.pick(4, 200);
    let mut random = bench.random();
    let mut finding = Finding::default();
    let mut relay = Relay::start(ENDPOINTS);
    let (mut lives, mut next) = (Vec::new(), 0);
    for at in 0..kills {
        let away = at % 2 == 1;
        if away {
            relay.endpoints[0].go_away();
        }
        lives.push(live(&relay, &mut next, Duration::from_millis(20 + random.below(80) as u64)));
        let _status = relay.daemon.wait_exit();
        if away {
            relay.endpoints[0].come_back();
        }
        relay.daemon.start_again();
        bench.say(|| format!("{at} of {kills} kills"));
    }
    let drained = bench.wait("the queues to be empty", PATIENCE, || relay.is_drained().then_some(()));
    finding.promise(drained.is_some(), || "what waited on disk did not arrive".into());
    relay.daemon.stop();
    relay.endpoints.iter().for_each(|endpoint| endpoint.read_to_the_end(bench));
    let mut missing: Vec<u64> = (0..next)
        .filter(|id| !relay.endpoints[relay.owner(*id)].oracle.missing(*id..*id + 1).is_empty())
        .collect();
    relay.endpoints.iter().for_each(|endpoint| finding.add(&endpoint.oracle.count()));
    finding.sent = next;
    // Lines that were taken without an acknowledgement.
    finding.named = missing.len() as u64;
    missing.sort_unstable();
    let (mut lines, mut seconds) = (Vec::new(), Vec::new());
    for life in &lives {
        let end = life.writes.last().map_or(life.begin, |write| write.0);
        let lost: Vec<u64> = missing.iter().copied().filter(|id| (life.begin..end).contains(id)).collect();
        let first = lost.first().copied().unwrap_or(end);
        for endpoint in 0..ENDPOINTS {
            let of_it = |ids: &mut dyn Iterator<Item = u64>| -> Vec<u64> {
                ids.filter(|id| relay.owner(*id) == endpoint).collect()
            };
            let missing = of_it(&mut lost.iter().copied());
            let since = missing.first().map_or(Vec::new(), |first| of_it(&mut (*first..end)));
            finding.promise(missing == since, || {
                format!(
                    "of the {} last lines for endpoint {endpoint} before a kill, {} are missing: a hole",
                    since.len(),
                    missing.len()
                )
            });
        }
        let sent = life.writes.iter().find(|write| write.0 > first).map(|write| write.1);
        lines.push((end - first) as f64);
        seconds.push(sent.map_or(0.0, |sent| life.killed.saturating_duration_since(sent).as_secs_f64()));
    }
    let longest = seconds.iter().copied().fold(0.0, f64::max);
    finding.done = format!("relay, queues on disk, {kills} kills -9");
    finding.figure(format!(
        "window of doubt: {:.0} lines, {:.1} ms (medians), {:.1} ms at most",
        median(lines),
        1e3 * median(seconds),
        1e3 * longest
    ));
    let lost = finding.lost();
    finding.promise(lost == 0, || format!("{lost} records were lost and nothing says why"));
    if bench.full {
        finding.promise(longest <= DOUBT_MAX_S, || {
            format!("a line was missing that was sent {longest:.2} s before")
        });
    }
    End::Ran(finding)
}

/// Kills the relay while a client sends: that goes on until nobody reads any more.
fn live(relay: &Relay, next: &mut u64, kill_after: Duration) -> Life {
    let mut client = relay.connect();
    let begin = *next;
    let sender = move || {
        let (mut next, mut writes) = (begin, Vec::new());
        while send(&mut client, next..next + CHUNK).is_ok() {
            next += CHUNK;
            writes.push((next, Instant::now()));
            std::thread::sleep(PAUSE);
        }
        Life { begin, writes, killed: Instant::now() }
    };
    let sender = std::thread::spawn(sender);
    std::thread::sleep(kill_after);
    relay.daemon.signal("KILL");
    let life = sender.join().expect("no sender panics");
    *next = life.writes.last().map_or(begin, |write| write.0);
    life
}
