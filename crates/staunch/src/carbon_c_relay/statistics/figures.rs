//! The figures of relays at one moment, as totals since the start: from the accounts, the shard and the queues.
//!
//! Not here: their names (`names`), differences (`names`, `line`).

use std::collections::BTreeMap;

use config::plan::{self, Link, OutputKind, Plan, StreamLink};
use model::{OutputId, Reject, SourceId};
use pipeline::RelayState;
use process::aggregation_rules::Fed;
use process::relay::Statement;

use crate::admin::accounts::{self, AccountsPage, LossTable, OutputRow};
use crate::daemon::shared::Shared;
use crate::daemon::worker::LoopTimes;
use sys::clock::Clock;

/// The figures of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RelayTotals {
    /// Unix seconds.
    pub(super) time_s: u64,
    /// Points at statements, including results and statistics.
    pub(super) received: u64,
    /// Points that were not sent anywhere.
    pub(super) blackholed: u64,
    /// Rejected lines.
    pub(super) discarded: u64,
    /// The same by reason.
    pub(super) discarded_by: BTreeMap<&'static str, u64>,
    /// The busy time of the routing thread.
    pub(super) shard: LoopTimes,
    /// Busy time of the thread of connections and endpoints, in nanoseconds.
    pub(super) runtime_busy_ns: u64,
    /// The path of results and statistics back to the statements.
    pub(super) internal: Destination,
    /// Every server and file, in the order of the clusters.
    pub(super) destinations: Vec<Destination>,
    /// Accepted connections.
    pub(super) connections: u64,
    /// Connections that have ended.
    pub(super) disconnects: u64,
    /// Names in the route cache, and their memory in bytes.
    pub(super) names: (u64, u64),
    /// Aggregation rules; `None` without any.
    pub(super) aggregation_rules: Option<AggregationRuleTotals>,
}

/// One server or file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Destination {
    /// `host:port`, `host:port-udp`, or a path, with unchanged dots.
    pub(super) place: String,
    /// Delivered copies, as far as the protocol shows.
    pub(super) sent: u64,
    /// Queued copies.
    pub(super) queued: u64,
    /// How often a client began to wait for room in its queue.
    pub(super) stalls: u64,
    /// Lost copies.
    pub(super) dropped: u64,
    /// The same by reason.
    pub(super) dropped_by: BTreeMap<&'static str, u64>,
    /// Time spent on sending, in nanoseconds.
    pub(super) busy_ns: u64,
    /// Bytes of the delivered copies.
    pub(super) sent_bytes: u64,
    /// Queued bytes.
    pub(super) queued_bytes: u64,
    /// Age of the oldest queued copy, in milliseconds.
    pub(super) oldest_ms: u64,
    /// How full its queue is, in percent of its nearest limit.
    pub(super) full_percent: u64,
}

/// The figures of aggregation rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AggregationRuleTotals {
    /// Points passed to them, once for each rule.
    pub(super) received: u64,
    /// Results.
    pub(super) sent: u64,
    /// Values that were too late or too early, or for which there was no room.
    pub(super) dropped: u64,
}

/// The current totals. `own` is the reporting source, with the time that it has spent. `None` without a shard.
pub(super) async fn totals(shared: &Shared, plan: &Plan, own: SourceId, busy_ns: u64) -> Option<RelayTotals> {
    let asked = shared.shard.call(|worker| (worker.turn.shard.relays().collect::<Vec<_>>(), worker.times()));
    let (relays, shard) = asked.await.ok()?;
    let now = Clock::now();
    let page = accounts::page(shared, now);
    let runtime = tokio::runtime::Handle::current().metrics().worker_total_busy_duration(0);
    let runtime_busy_ns = u64::try_from(runtime.as_nanos()).unwrap_or(u64::MAX);
    let parts = Parts { plan, own, relays: &relays, page: &page };
    Some(RelayTotals { time_s: now.wall_seconds(), shard, runtime_busy_ns, ..parts.totals(busy_ns) })
}

/// The sources of totals.
struct Parts<'a> {
    plan: &'a Plan,
    own: SourceId,
    relays: &'a [RelayState],
    page: &'a AccountsPage,
}

impl Parts<'_> {
    fn totals(&self, busy_ns: u64) -> RelayTotals {
        let Parts { plan, relays, page, .. } = self;
        let sum = |figure: fn(&RelayState) -> u64| relays.iter().map(figure).sum::<u64>();
        let mut totals = RelayTotals {
            received: sum(|relay| relay.figures.points),
            blackholed: sum(|relay| relay.figures.nowhere),
            names: (sum(|relay| relay.names), sum(|relay| relay.names_bytes)),
            internal: self.internal(busy_ns),
            destinations: self.destinations(),
            ..RelayTotals::default()
        };
        let clients = plan.sources.iter().zip(&page.sources);
        for (_, row) in clients.filter(|(source, _)| source.kind.gives_points() && !source.kind.is_own()) {
            totals.connections += row.connections_accepted;
            totals.disconnects += row.connections_accepted.saturating_sub(row.connections_open);
            let rejected = row.losses.get("rejected").into_iter().flatten();
            // Points that failed a `validate` have reached the rules, which count them.
            for (reason, count) in rejected.filter(|(reason, _)| **reason != Reject::Invalid.word()) {
                totals.discarded += count;
                *totals.discarded_by.entry(reason).or_default() += count;
            }
        }
        let is_aggregation_rule = |statement: &Statement| matches!(statement, Statement::Aggregate(_));
        let has_aggregation_rules =
            plan.relays().any(|(_, _, relay)| relay.plan.statements.iter().any(is_aggregation_rule));
        totals.aggregation_rules = has_aggregation_rules.then(|| AggregationRuleTotals {
            received: sum(|relay| relay.figures.rolled_up),
            sent: sum(|relay| relay.figures.results),
            dropped: sum(|relay| {
                let lost = relay
                    .figures
                    .fed
                    .iter()
                    .filter(|(fed, _)| !matches!(fed, Fed::Counted | Fed::CountedLate));
                lost.map(|(_, count)| count).sum()
            }),
        });
        totals
    }

    /// Our own path back to the statements: results do not wait, and statistics wait for no endpoint.
    fn internal(&self, busy_ns: u64) -> Destination {
        let results: u64 = self.relays.iter().map(|relay| relay.figures.results).sum();
        let row = self.page.sources.get(self.own.index());
        let (reported, queued, dropped) = row.map_or((0, 0, 0), |row| {
            (
                row.sum.received - row.sum.rejected.min(row.sum.received),
                row.sum.in_flight,
                row.sum.rejected + row.sum.dropped,
            )
        });
        Destination {
            place: "internal".into(),
            sent: (reported + results).saturating_sub(queued),
            queued,
            dropped,
            busy_ns,
            ..Destination::default()
        }
    }

    /// In the order of the clusters and their members, each once.
    fn destinations(&self) -> Vec<Destination> {
        let mut known: Vec<OutputId> = Vec::new();
        let mut destinations: Vec<Destination> = Vec::new();
        let clusters = self.plan.relays().flat_map(|(_, _, relay)| &relay.plan.clusters);
        for member in clusters.flat_map(|cluster| &cluster.members) {
            let Some(id) = member.node.output().filter(|id| !known.contains(id)) else { continue };
            known.push(id);
            let Some(output) = self.plan.outputs.get(id.index()) else { continue };
            let Some(row) = self.page.outputs.iter().find(|row| row.name == output.name) else { continue };
            let one = destination(place(&output.kind, &output.name), row);
            match destinations.iter_mut().find(|before| before.place == one.place) {
                Some(before) => before.add(&one),
                None => destinations.push(one),
            }
        }
        destinations
    }
}

/// In the original's format, with unchanged dots.
fn place(kind: &OutputKind, name: &str) -> String {
    match kind.facts().link {
        Link::Stream(StreamLink { to: plan::Destination::Tcp(to), .. }) => format!("{}:{}", to.host, to.port),
        Link::Datagrams { to: plan::Destination::Udp(to), .. } => format!("{}:{}-udp", to.host, to.port),
        Link::File { path, .. } => path.display().to_string(),
        Link::Store(store) => store.path.display().to_string(),
        Link::Stream(_) | Link::Datagrams { .. } | Link::Requests { .. } | Link::Stdout | Link::Stderr => {
            name.to_owned()
        }
    }
}

fn destination(place: String, row: &OutputRow) -> Destination {
    Destination {
        place,
        sent: row.sum.delivered,
        queued: row.sum.queued,
        stalls: row.stalls,
        dropped: row.sum.lost(),
        dropped_by: dropped_by(&row.losses, row.sum.expired),
        busy_ns: row.busy_us * 1_000,
        sent_bytes: row.bytes_delivered,
        queued_bytes: row.queued_bytes,
        oldest_ms: (row.oldest_s * 1e3) as u64,
        full_percent: percent(row.sum.queued, row.max_records).max(percent(row.queued_bytes, row.max_bytes)),
    }
}

fn dropped_by(losses: &LossTable, expired: u64) -> BTreeMap<&'static str, u64> {
    let mut by = BTreeMap::new();
    for (_, reasons) in losses.iter().filter(|(family, _)| **family != "filtered") {
        for (reason, count) in reasons {
            *by.entry(*reason).or_default() += count;
        }
    }
    if expired > 0 {
        by.insert("expired", expired);
    }
    by
}

/// 0 without a limit.
fn percent(part: u64, of: u64) -> u64 {
    part.saturating_mul(100).checked_div(of).unwrap_or(0)
}

impl Destination {
    /// Adds another output with the same address.
    fn add(&mut self, more: &Destination) {
        self.sent += more.sent;
        self.queued += more.queued;
        self.stalls += more.stalls;
        self.dropped += more.dropped;
        self.busy_ns += more.busy_ns;
        self.sent_bytes += more.sent_bytes;
        self.queued_bytes += more.queued_bytes;
        self.oldest_ms = self.oldest_ms.max(more.oldest_ms);
        self.full_percent = self.full_percent.max(more.full_percent);
        for (reason, count) in &more.dropped_by {
            *self.dropped_by.entry(reason).or_default() += count;
        }
    }
}

impl RelayTotals {
    /// The sum of one figure over all destinations except `internal`.
    pub(super) fn sum(&self, figure: fn(&Destination) -> u64) -> u64 {
        self.destinations.iter().map(figure).sum()
    }
}
