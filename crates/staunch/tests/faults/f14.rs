//! F14: an endpoint of three is away for minutes while lines go through a relay with queues on disk. Its siblings are not
//! slowed, and every line arrives when it is back.
//!
//! As in F5 two relays get the same load in turns, one with all three endpoints, one with the third away; each pair of turns
//! gives one ratio.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::finding::{Bench, End, Finding, median, pair_ratio};
use crate::relay::{Relay, send};
use crate::support::Daemon;

const ENDPOINTS: usize = 3;
const HEALTHY: usize = ENDPOINTS - 1;

/// Records of one write.
const CHUNK: u64 = 1_000;

/// A sender's lead over what the healthy endpoints have.
const AHEAD_MAX: u64 = 50_000;

const PATIENCE: Duration = Duration::from_secs(120);

/// Slower than so is slowed.
const RATIO_MAX: f64 = 1.05;

struct Side {
    relay: Relay,
    client: UnixStream,
    sent: u64,
    /// Of those that were sent, those that are for the healthy endpoints.
    for_healthy: u64,
}

impl Side {
    fn start() -> Side {
        let relay = Relay::start(ENDPOINTS);
        let client = relay.connect();
        Side { relay, client, sent: 0, for_healthy: 0 }
    }

    /// What the healthy endpoints have.
    fn arrived(&self) -> u64 {
        self.relay.endpoints[..HEALTHY].iter().map(|endpoint| endpoint.oracle.arrived()).sum()
    }

    /// Time from the first record sent to the last one at its healthy endpoint.
    fn turn(&mut self, bench: &Bench, records: u64) -> Option<Duration> {
        let since = Instant::now();
        let end = self.sent + records;
        while self.sent < end {
            let fits = || (self.for_healthy - self.arrived() < AHEAD_MAX).then_some(());
            bench.wait("the healthy endpoints", PATIENCE, fits)?;
            let ids = self.sent..end.min(self.sent + CHUNK);
            self.sent = ids.end;
            let owners = ids.clone().map(|id| self.relay.owner(id));
            self.for_healthy += owners.filter(|owner| *owner < HEALTHY).count() as u64;
            send(&mut self.client, ids).expect("the relay reads");
        }
        bench.wait("the healthy endpoints", PATIENCE, || {
            (self.arrived() >= self.for_healthy).then_some(since.elapsed())
        })
    }
}

pub(crate) fn run(bench: &Bench) -> End {
    let (away_for, records) =
        bench.pick((Duration::from_millis(500), 5_000), (Duration::from_secs(180), 100_000));
    let pairs_min = bench.pick(3, 20);
    let mut finding = Finding::default();
    let (mut up, mut down) = (Side::start(), Side::start());
    let turns = (up.turn(bench, records), down.turn(bench, records));
    finding.promise(turns.0.is_some() && turns.1.is_some(), || "the first records did not arrive".into());
    let drained = bench.wait("the third", PATIENCE, || down.relay.is_drained().then_some(()));
    finding.promise(drained.is_some(), || "the third did not get the first records".into());
    down.relay.endpoints[HEALTHY].go_away();
    let since = Instant::now();
    let mut ratios = Vec::new();
    while since.elapsed() < away_for || ratios.len() < pairs_min {
        let sides = (&mut up, &mut down);
        let Some(ratio) = pair_ratio(ratios.len(), sides, |side| side.turn(bench, records)) else {
            finding.promise(false, || "a healthy endpoint waited in vain for its records".into());
            break;
        };
        ratios.push(ratio);
        bench.say(|| format!("away for {} s, {} pairs of turns", since.elapsed().as_secs(), ratios.len()));
    }
    let away = since.elapsed();
    down.relay.endpoints[HEALTHY].come_back();
    account(bench, &mut finding, &down);
    let slower = (median(ratios.clone()) - 1.0) * 100.0;
    finding.done = format!("relay, queues on disk, 1 of 3 endpoints away {:.0} s", away.as_secs_f64());
    finding.figure(format!(
        "the two others: {slower:+.1} % time for the same load (median of {} pairs)",
        ratios.len()
    ));
    if bench.full {
        finding
            .promise(slower <= (RATIO_MAX - 1.0) * 100.0, || format!("the others were {slower:.1} % slower"));
    }
    up.relay.daemon.stop();
    down.relay.daemon.stop();
    End::Ran(finding)
}

/// Everything is where it belongs.
fn account(bench: &Bench, finding: &mut Finding, side: &Side) {
    let since = Instant::now();
    let Side { relay, sent, .. } = side;
    let drained = bench.wait("the queues to be empty", PATIENCE, || relay.is_drained().then_some(()));
    finding.promise(drained.is_some(), || "the third did not get what waited for it".into());
    finding
        .figure(format!("what waited for the third was there after {:.1} s", since.elapsed().as_secs_f64()));
    let mut of_each = [0_u64; ENDPOINTS];
    (0..*sent).for_each(|id| of_each[relay.owner(id)] += 1);
    finding.sent = *sent;
    for (at, endpoint) in relay.endpoints.iter().enumerate() {
        // What was delivered is in the endpoint's kernel; it may not have read it.
        let _all = bench.wait("the endpoint to read", Duration::from_secs(20), || {
            (endpoint.oracle.arrived() >= of_each[at]).then_some(())
        });
        let count = endpoint.oracle.count();
        finding.add(&count);
        let row = relay.daemon.output(&relay.output(at));
        let resent = Daemon::number(&row, "resent");
        finding.promise(
            count.arrived == of_each[at] && count.out_of_order == 0 && count.twice <= resent,
            || {
                format!(
                    "endpoint {at}: {} of {} arrived, {} out of order, {} twice of {resent} sent again",
                    count.arrived, of_each[at], count.out_of_order, count.twice
                )
            },
        );
    }
    let lost = finding.lost();
    finding.promise(lost == 0, || format!("{lost} records were lost"));
}
