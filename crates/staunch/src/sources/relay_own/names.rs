//! Totals as lines of points, under the names of carbon-c-relay, and ours beside them.
//!
//! Invariant: names and their order depend on the plan alone, but for those of losses, which come with the first one.

use std::collections::HashMap;

use config::plan::RelayOwnPlan;

use super::figures::{Destination, RelayTotals};

/// What has been told: counters that begin anew are told as differences to it.
#[derive(Debug, Default)]
pub(super) struct Told(HashMap<String, u64>);

/// Whether a figure only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grows {
    /// A counter, and a difference where the plan says so.
    Counter,
    /// What it is now, or a counter that never begins anew, as with the original.
    Always,
}
use Grows::{Always, Counter};

impl Told {
    /// A report: `name value time` of each figure.
    pub(super) fn lines(&mut self, own: &RelayOwnPlan, totals: &RelayTotals) -> Vec<String> {
        let prefix = if own.prefix.is_empty() { String::new() } else { format!("{}.", own.prefix) };
        let mut lines = Vec::new();
        for (name, grows, value) in figures(totals) {
            let value = match grows {
                Counter if own.reset => {
                    let told = self.0.insert(name.clone(), value).unwrap_or(0);
                    value.saturating_sub(told)
                }
                Counter | Always => value,
            };
            lines.push(format!("{prefix}{name} {value} {}", totals.time_s));
        }
        if !own.reset {
            self.0.clear();
        }
        lines
    }
}

/// Microseconds of nanoseconds.
fn us(ns: u64) -> u64 {
    ns / 1_000
}

fn figures(totals: &RelayTotals) -> Vec<(String, Grows, u64)> {
    let mut all = Vec::new();
    let mut add = |name: String, grows, value| all.push((name, grows, value));
    let RelayTotals { received, blackholed, discarded, shard, .. } = totals;
    let (wall, sleep) = (us(shard.busy_ns), us(shard.slept_ns));
    for (prefix, wall_name, sleep_name) in [
        ("dispatcher1.", "wallTime_us", "sleepTime_us"),
        ("", "dispatch_wallTime_us", "dispatch_sleepTime_us"),
    ] {
        add(format!("{prefix}metricsReceived"), Counter, *received);
        add(format!("{prefix}metricsBlackholed"), Counter, *blackholed);
        add(format!("{prefix}metricsDiscarded"), Counter, *discarded);
        add(format!("{prefix}{wall_name}"), Counter, wall);
        add(format!("{prefix}{sleep_name}"), Counter, sleep);
    }
    for destination in std::iter::once(&totals.internal).chain(&totals.destinations) {
        let Destination { place, sent, queued, stalls, dropped, busy_ns, .. } = destination;
        let name = |what: &str| format!("destinations.{}.{what}", place.replace('.', "_"));
        add(name("sent"), Counter, *sent);
        add(name("queued"), Always, *queued);
        add(name("stalls"), Counter, *stalls);
        add(name("dropped"), Counter, *dropped);
        add(name("wallTime_us"), Counter, us(*busy_ns));
    }
    add("metricsSent".into(), Counter, totals.sum(|one| one.sent));
    add("metricsQueued".into(), Always, totals.sum(|one| one.queued));
    add("metricStalls".into(), Counter, totals.sum(|one| one.stalls));
    add("metricsDropped".into(), Counter, totals.sum(|one| one.dropped));
    add("server_wallTime_us".into(), Counter, us(totals.sum(|one| one.busy_ns)));
    add("connections".into(), Always, totals.connections);
    add("disconnects".into(), Always, totals.disconnects);
    if let Some(rollups) = totals.rollups {
        add("aggregators.metricsReceived".into(), Counter, rollups.received);
        add("aggregators.metricsSent".into(), Counter, rollups.sent);
        add("aggregators.metricsDropped".into(), Counter, rollups.dropped);
    }
    ours(totals, &mut add);
    all
}

/// What the original does not tell.
fn ours(totals: &RelayTotals, add: &mut impl FnMut(String, Grows, u64)) {
    for destination in &totals.destinations {
        let name = |what: &str| format!("destinations.{}.{what}", destination.place.replace('.', "_"));
        add(name("bytesSent"), Counter, destination.sent_bytes);
        add(name("bytesQueued"), Always, destination.queued_bytes);
        add(name("queueAge_ms"), Always, destination.oldest_ms);
        for (reason, count) in &destination.dropped_by {
            add(name(&format!("droppedBy.{reason}")), Counter, *count);
        }
    }
    for (reason, count) in &totals.discarded_by {
        add(format!("discardedBy.{reason}"), Counter, *count);
    }
    add("bytesQueued".into(), Always, totals.sum(|one| one.queued_bytes));
    let oldest_ms = totals.destinations.iter().map(|one| one.oldest_ms).max();
    add("queueAge_ms".into(), Always, oldest_ms.unwrap_or(0));
    add("connectionsOpen".into(), Always, totals.connections.saturating_sub(totals.disconnects));
    add("namesKnown".into(), Always, totals.names.0);
    add("namesBytes".into(), Always, totals.names.1);
    add("runtime_wallTime_us".into(), Counter, us(totals.runtime_busy_ns));
}
