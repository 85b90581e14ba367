//! F5: one endpoint of five is away for minutes. The others lose nothing and hardly notice.
//!
//! Two daemons with the same config get the same load in turns, one with all five endpoints, one with the fifth away;
//! each pair of turns gives one ratio. So whatever else the machine does meets both. The fifth endpoint refuses
//! connections for half of the time and takes no byte for the other half, and then comes back.

use std::time::{Duration, Instant};

use crate::endpoint::Endpoint;
use crate::finding::{Bench, End, Finding, median, pair_ratio};
use crate::load::Client;
use crate::oracle::Form;
use crate::support::{Builder, Daemon};

const ENDPOINTS: usize = 5;
const HEALTHY: usize = ENDPOINTS - 1;

/// A sender's lead over the slowest healthy endpoint: enough to keep everything busy, and far from filling a queue.
const AHEAD_MAX: u64 = 50_000;

/// Longest wait for an endpoint to have what was sent.
const PATIENCE: Duration = Duration::from_secs(60);

/// Slower than so is not "hardly".
const RATIO_MAX: f64 = 1.05;

struct Side {
    daemon: Daemon,
    endpoints: Vec<Endpoint>,
    client: Client,
}

impl Side {
    fn start() -> Side {
        let endpoints: Vec<_> = (0..ENDPOINTS).map(|_| Endpoint::new(Form::Line)).collect();
        let mut toml = String::from("[sources.app]\ntype = \"statsd\"\nlisten = [\"tcp://127.0.0.1:0\"]\n");
        for (at, endpoint) in endpoints.iter().enumerate() {
            toml += &format!(
                "[outputs.copy{at}]\ntype = \"tcp\"\nfrom = [\"app\"]\nto = [\"{}\"]\nwrite_timeout = \"1h\"\n\
                 min_retry_delay = \"50ms\"\nmax_retry_delay = \"500ms\"\nqueue = {{ max_bytes = \"32MiB\" }}\n",
                endpoint.to()
            );
        }
        let daemon = Builder::native(&toml).start();
        let client = Client::new(daemon.at("app", "tcp"), 0);
        Side { daemon, endpoints, client }
    }

    /// The least that a healthy endpoint has.
    fn arrived(endpoints: &[Endpoint]) -> u64 {
        endpoints.iter().map(|endpoint| endpoint.oracle.arrived()).min().unwrap_or(0)
    }

    /// Time from the first record sent to the last one at every healthy endpoint.
    fn turn(&mut self, bench: &Bench, records: u64) -> Option<Duration> {
        let since = Instant::now();
        let healthy = &self.endpoints[..HEALTHY];
        self.client.send(records, AHEAD_MAX, || Side::arrived(healthy));
        let sent = self.client.next;
        bench.wait("the healthy endpoints", PATIENCE, || {
            (Side::arrived(healthy) >= sent).then_some(since.elapsed())
        })
    }
}

pub(crate) fn run(bench: &Bench) -> End {
    let (away_for, records) =
        bench.pick((Duration::from_secs(1), 10_000), (Duration::from_secs(120), 200_000));
    let pairs_min = bench.pick(3, 20);
    let mut finding = Finding::default();
    let (mut up, mut down) = (Side::start(), Side::start());
    let turns = (up.turn(bench, records), down.turn(bench, records));
    finding.promise(turns.0.is_some() && turns.1.is_some(), || {
        "an endpoint did not get the first records".into()
    });
    // What its kernel has and it has not read would go with it: the window of doubt is not the subject here.
    let all = down.client.next;
    let fifth = &mut down.endpoints[HEALTHY];
    let read = bench.wait("the fifth", PATIENCE, || (fifth.oracle.arrived() >= all).then_some(()));
    finding.promise(read.is_some(), || "the fifth endpoint did not get the first records".into());
    fifth.go_away();
    let since = Instant::now();
    let mut ratios = Vec::new();
    let mut silent = false;
    while since.elapsed() < away_for || ratios.len() < pairs_min {
        if !silent && since.elapsed() > away_for / 2 {
            down.endpoints[HEALTHY].come_back();
            down.endpoints[HEALTHY].be_silent(true);
            silent = true;
        }
        let sides = (&mut up, &mut down);
        let Some(ratio) = pair_ratio(ratios.len(), sides, |side| side.turn(bench, records)) else {
            finding.promise(false, || "a healthy endpoint waited a minute for its records".into());
            break;
        };
        ratios.push(ratio);
        bench.say(|| format!("away for {} s, {} pairs of turns", since.elapsed().as_secs(), ratios.len()));
    }
    let away = since.elapsed();
    if !silent {
        down.endpoints[HEALTHY].come_back();
    }
    down.endpoints[HEALTHY].be_silent(false);
    account(bench, &mut finding, &down);
    let slower = (median(ratios.clone()) - 1.0) * 100.0;
    finding.done = format!("1 of 5 endpoints away {:.0} s", away.as_secs_f64());
    finding.figure(format!(
        "the four others: {slower:+.1} % time for the same load (median of {} pairs)",
        ratios.len()
    ));
    if bench.full {
        finding
            .promise(slower <= (RATIO_MAX - 1.0) * 100.0, || format!("the others were {slower:.1} % slower"));
    }
    up.daemon.assert_sums_hold();
    up.daemon.stop();
    down.daemon.stop();
    End::Ran(finding)
}

/// Everything at the healthy ones; at the fifth everything but what its queue had no room for, which is counted.
fn account(bench: &Bench, finding: &mut Finding, side: &Side) {
    let sent = side.client.next;
    for (at, endpoint) in side.endpoints.iter().enumerate() {
        let name = format!("copy{at}");
        let empty = bench.wait("the queues to be empty", Duration::from_secs(120), || {
            (Daemon::number(&side.daemon.output(&name), "queued") == 0).then_some(())
        });
        finding.promise(empty.is_some(), || format!("endpoint {at} did not get what waited for it"));
        let row = side.daemon.output(&name);
        let dropped = Daemon::number(&row, "losses/dropped/queue_full");
        let arrives = sent.saturating_sub(dropped);
        // What was delivered is in the endpoint's kernel; it may not have read it.
        let _all = bench.wait("the endpoint to read", Duration::from_secs(20), || {
            (endpoint.oracle.arrived() >= arrives).then_some(())
        });
        let count = endpoint.oracle.count();
        finding.add(&count);
        finding.sent += sent;
        finding.named += dropped;
        finding.promise(count.out_of_order == 0, || {
            format!("endpoint {at} got {} records out of order", count.out_of_order)
        });
        if at < HEALTHY {
            finding.promise(dropped == 0 && count.arrived == sent && count.twice == 0, || {
                format!(
                    "endpoint {at}, which was up: {} of {sent} arrived, {} twice",
                    count.arrived, count.twice
                )
            });
        } else {
            let resent = Daemon::number(&row, "resent");
            finding.promise(count.twice <= resent, || {
                format!("{} records came twice, {resent} were sent again", count.twice)
            });
            finding.figure(format!(
                "the fifth, when it was back: {} of {sent}, {dropped} dropped as queue_full, {} twice",
                count.arrived, count.twice
            ));
        }
    }
    let lost = finding.lost();
    finding.promise(lost == 0, || format!("{lost} copies were lost and nothing says why"));
}
