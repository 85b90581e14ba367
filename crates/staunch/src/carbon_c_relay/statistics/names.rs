//! Totals as lines of points, with carbon-c-relay's names, and our additional ones.
//!
//! Invariant: names and their order depend only on the plan, except those of losses, which begin with the first loss.

use std::collections::HashMap;

use config::plan::RelayOwnPlan;
use model::Figure;

use super::figures::{Destination, RelayTotals};

/// Family of the reported figures, for another process.
const REPORTED: &str = "reported";

/// The reported figures: with `reset`, counters are reported as differences to them.
#[derive(Debug, Default)]
pub(super) struct Reported(HashMap<String, u64>);

/// Whether a figure is a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grows {
    /// A counter, reported as a difference if the plan has `reset`.
    Counter,
    /// A current value, or a counter that is never reset, as in the original.
    Always,
}
use Grows::{Always, Counter};

impl Reported {
    /// Figures that another process has reported.
    pub(super) fn of(figures: &[Figure]) -> Reported {
        let reported = figures.iter().filter(|figure| figure.family == REPORTED);
        Reported(reported.map(|figure| (figure.reason.clone(), figure.count)).collect())
    }

    /// The figures for the next process.
    pub(super) fn figures(&self) -> impl Iterator<Item = Figure> + '_ {
        self.0.iter().map(|(name, value)| Figure::new(REPORTED, name, *value, 0))
    }

    /// A report: `name value time` of each figure.
    pub(super) fn lines(&mut self, own: &RelayOwnPlan, totals: &RelayTotals) -> Vec<String> {
        let prefix = if own.prefix.is_empty() { String::new() } else { format!("{}.", own.prefix) };
        let mut lines = Vec::new();
        for (name, grows, value) in figures(totals) {
            let value = match grows {
                Counter if own.reset => {
                    let reported = self.0.insert(name.clone(), value).unwrap_or(0);
                    value.saturating_sub(reported)
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

/// Microseconds from nanoseconds.
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
    if let Some(aggregation_rules) = totals.aggregation_rules {
        add("aggregators.metricsReceived".into(), Counter, aggregation_rules.received);
        add("aggregators.metricsSent".into(), Counter, aggregation_rules.sent);
        add("aggregators.metricsDropped".into(), Counter, aggregation_rules.dropped);
    }
    ours(totals, &mut add);
    all
}

/// Figures that the original does not have.
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use config::plan::RelayReport;

    use super::super::figures::AggregationRuleTotals;
    use super::*;
    use crate::daemon::worker::LoopTimes;

    fn own(reset: bool) -> RelayOwnPlan {
        RelayOwnPlan { every_ms: 1, reset, prefix: "p.h".into(), report: RelayReport::Points }
    }

    fn totals(received: u64) -> RelayTotals {
        let one = |place: &str| Destination {
            place: place.into(),
            sent: received,
            queued: 7,
            ..Destination::default()
        };
        let dropped_by = BTreeMap::from([("queue_full", 2)]);
        RelayTotals {
            time_s: 1_700_000_000,
            received,
            discarded: 3,
            discarded_by: BTreeMap::from([("no_value", 3)]),
            shard: LoopTimes { busy_ns: 5_000, slept_ns: 9_000 },
            internal: one("internal"),
            destinations: vec![
                one("10.0.0.1:2003"),
                Destination { dropped: 2, dropped_by, ..one("h.x:2003-udp") },
                one("/var/log.d/x"),
            ],
            connections: 4,
            disconnects: 1,
            aggregation_rules: Some(AggregationRuleTotals { received: 8, sent: 2, dropped: 1 }),
            ..RelayTotals::default()
        }
    }

    /// The report of carbon-c-relay 3.7.3 with a TCP server, a UDP server, a file and an aggregation (`compat`).
    #[test]
    fn every_name_of_the_original_is_there() {
        let lines = Reported::default().lines(&own(false), &totals(5));
        let names: BTreeSet<&str> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
        let of_workers =
            ["metricsReceived", "metricsBlackholed", "metricsDiscarded", "wallTime_us", "sleepTime_us"];
        let of_servers = ["sent", "queued", "stalls", "dropped", "wallTime_us"];
        let mut want: Vec<String> = of_workers.iter().map(|name| format!("dispatcher1.{name}")).collect();
        for place in ["internal", "10_0_0_1:2003", "h_x:2003-udp", "/var/log_d/x"] {
            want.extend(of_servers.iter().map(|name| format!("destinations.{place}.{name}")));
        }
        want.extend(["Received", "Sent", "Dropped"].map(|name| format!("aggregators.metrics{name}")));
        let whole = "metricsReceived metricsBlackholed metricsDiscarded dispatch_wallTime_us dispatch_sleepTime_us \
             metricsSent metricsQueued metricStalls metricsDropped server_wallTime_us connections disconnects";
        want.extend(whole.split_whitespace().map(str::to_owned));
        for name in want {
            assert!(names.contains(format!("p.h.{name}").as_str()), "{name} is missing: {lines:#?}");
        }
        assert_eq!(names.len(), lines.len(), "each once");
        for line in [
            "p.h.metricsSent 15 1700000000",
            "p.h.metricsQueued 21 1700000000",
            "p.h.metricsDropped 2 1700000000",
            "p.h.dispatcher1.sleepTime_us 9 1700000000",
            "p.h.destinations.h_x:2003-udp.droppedBy.queue_full 2 1700000000",
            "p.h.discardedBy.no_value 3 1700000000",
            "p.h.connectionsOpen 3 1700000000",
        ] {
            assert!(lines.iter().any(|known| known == line), "{line} is missing: {lines:#?}");
        }
    }

    #[test]
    fn only_counters_are_reset_and_only_if_configured() {
        let reported = |reset| {
            let mut reported = Reported::default();
            reported.lines(&own(reset), &totals(5));
            reported.lines(&own(reset), &totals(12))
        };
        let value = |lines: &[String], name: &str| {
            let prefix = format!("p.h.{name} ");
            let line = lines.iter().find_map(|line| line.strip_prefix(&prefix)).expect("it is reported");
            line.split(' ').next().and_then(|value| value.parse::<u64>().ok()).expect("a number")
        };
        let table = [
            ("metricsReceived", 12, 7),
            ("metricsSent", 36, 21),
            ("metricsDiscarded", 3, 0),
            ("metricsQueued", 21, 21),
            ("destinations.10_0_0_1:2003.queued", 7, 7),
            ("connections", 4, 4),
            ("aggregators.metricsSent", 2, 0),
        ];
        let (totals, differences) = (reported(false), reported(true));
        for (name, total, difference) in table {
            assert_eq!((value(&totals, name), value(&differences, name)), (total, difference), "{name}");
        }
        let bare = RelayOwnPlan { prefix: String::new(), ..own(false) };
        assert!(
            Reported::default().lines(&bare, &self::totals(1))[0]
                .starts_with("dispatcher1.metricsReceived 1 ")
        );
    }
}
