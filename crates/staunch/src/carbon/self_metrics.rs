//! The daemon's own figures under carbon's names (spec graphite §4.8): the lines of one report.
//!
//! Path of a report: accounts, stores and CarbonLink -> [`Figures::of`] (totals) -> **[`Reporter::report`]** (differences to the last one)
//! -> `sources::own`, which makes records of them. Invariant: a figure is measured or omitted, never estimated. Omitted are
//! blacklistMatches and whitelistRejects, which are one count here, and the buffers of aggregation rules.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use config::plan::{CarbonOwnPlan, CarbonProgram, Destination, OutputKind, Plan, TransformKind};
use model::{Dropped, OutputId, SECOND_NS};
use process::relay::MemberNode;

use crate::admin::accounts::AccountsPage;
use crate::admin::stores::StoreRow;
use crate::daemon::shared::Shared;

/// Totals since the start, and states, as the names say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    received: u64,
    connections: u64,
    cpu_ns: u64,
    memory_bytes: u64,
    updates: u64,
    update_ns: u64,
    points_written: u64,
    creates: u64,
    errors: u64,
    points_in_memory: u64,
    series_in_memory: u64,
    /// Points for a store that found its queue full.
    overflow: u64,
    queries: u64,
    bulk_queries: u64,
    bulk_series: u64,
    destinations: BTreeMap<String, Relayed>,
}

/// Points to one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Relayed {
    attempted: u64,
    sent: u64,
    full: u64,
}

impl Figures {
    /// Those of now.
    pub(crate) fn of(shared: &Shared, plan: &Plan, page: &AccountsPage) -> Figures {
        let pid = std::process::id();
        let mut figures = Figures {
            cpu_ns: sys::process_cpu_ns(pid).unwrap_or_default(),
            memory_bytes: sys::memory_of(pid).map(|memory| memory.resident).unwrap_or_default(),
            bulk_series: shared.carbonlink.bulk_series(),
            ..Figures::default()
        };
        for (kind, count) in shared.carbonlink.requests() {
            match kind {
                "cache_query" => figures.queries = count,
                "cache_query_bulk" => figures.bulk_queries = count,
                _ => {}
            }
        }
        let stores = crate::admin::stores::page(shared);
        figures.update_ns = shared.stores.all().iter().map(|open| open.figures.write_ns.load(Relaxed)).sum();
        figures.add(plan, page, &stores.stores);
        figures
    }

    fn add(&mut self, plan: &Plan, page: &AccountsPage, stores: &[StoreRow]) {
        for row in page.sources.iter().filter(|row| row.kind != "self") {
            self.received += row.sum.received;
            self.connections += row.connections_open;
        }
        for row in stores {
            self.updates += row.updates;
            self.points_written += row.points_written;
            self.creates += row.creates;
            self.errors += row.errors;
            self.points_in_memory += row.points_in_memory;
            self.series_in_memory += row.series_in_memory;
        }
        for row in &page.outputs {
            let full = row.losses.get("dropped").and_then(|all| all.get(Dropped::QueueFull.word()));
            let full = full.copied().unwrap_or_default();
            let Some(id) = plan.outputs.iter().position(|output| output.name == row.name) else { continue };
            let kind = &plan.outputs[id].kind;
            if let OutputKind::Whisper(_) = kind {
                self.overflow += full;
            } else if let Some(name) = destination(plan, id, kind.destination()) {
                let (attempted, sent) = (row.sum.copies, row.sum.delivered);
                self.destinations.insert(name, Relayed { attempted, sent, full });
            }
        }
    }
}

/// `HOST:PORT:INSTANCE`, with underscores for dots; `None` for no instance, as Python prints it.
fn destination(plan: &Plan, id: usize, to: Option<Destination>) -> Option<String> {
    let Destination::Tcp(to) = to? else { return None };
    let relays = plan.transforms.iter().filter_map(|transform| {
        if let TransformKind::Relay(relay) = &transform.kind { Some(&relay.plan) } else { None }
    });
    let members = relays.flat_map(|relay| &relay.clusters).flat_map(|cluster| &cluster.members);
    let mut members = members.filter(|member| member.node == MemberNode::Output(OutputId(id as u16)));
    let instance = members.find_map(|member| member.instance.clone()).unwrap_or_else(|| "None".to_owned());
    Some(format!("{}:{}:{instance}", to.host, to.port).replace('.', "_"))
}

/// The last report of one source.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    last: Figures,
    last_ns: u64,
}

impl Reporter {
    /// Begins. What the process before a hot restart has received is not reported again.
    pub(crate) fn after(before: Option<&AccountsPage>, plan: &Plan, now_ns: u64) -> Reporter {
        let mut last = Figures::default();
        if let Some(before) = before {
            last.add(plan, before, &[]);
        }
        Reporter { last, last_ns: now_ns }
    }

    /// The lines of a report, with the time `now_s` in Unix seconds; `now_ns` is monotonic.
    pub(crate) fn report(
        &mut self,
        own: &CarbonOwnPlan,
        now: Figures,
        (now_ns, now_s): (u64, u64),
    ) -> Vec<String> {
        let last = std::mem::replace(&mut self.last, now.clone());
        let elapsed_ns = now_ns.saturating_sub(std::mem::replace(&mut self.last_ns, now_ns)).max(1);
        let mut lines = Lines { prefix: &own.prefix, now_s, lines: Vec::new() };
        lines.whole("metricsReceived", now.received.saturating_sub(last.received));
        lines.whole("activeConnections", now.connections);
        let cpu_ns = now.cpu_ns.saturating_sub(last.cpu_ns);
        lines.ratio("cpuUsage", cpu_ns as f64 * 100.0, elapsed_ns as f64);
        lines.whole("memUsage", now.memory_bytes);
        match own.program {
            CarbonProgram::Cache => cache(&now, &last, &mut lines),
            CarbonProgram::Relay | CarbonProgram::Aggregator => destinations(&now, &last, &mut lines),
        }
        lines.lines
    }
}

fn cache(now: &Figures, last: &Figures, lines: &mut Lines<'_>) {
    let since = |read: fn(&Figures) -> u64| read(now).saturating_sub(read(last));
    let (updates, points) = (since(|all| all.updates), since(|all| all.points_written));
    if updates > 0 {
        let seconds = since(|all| all.update_ns) as f64 / SECOND_NS as f64;
        lines.ratio("avgUpdateTime", seconds, updates as f64);
        lines.ratio("pointsPerUpdate", points as f64, updates as f64);
    }
    lines.whole("updateOperations", updates);
    lines.whole("committedPoints", points);
    lines.whole("creates", since(|all| all.creates));
    // A limit on new files lets points wait.
    lines.whole("droppedCreates", 0);
    lines.whole("errors", since(|all| all.errors));
    lines.whole("cache.size", now.points_in_memory);
    lines.whole("cache.queues", now.series_in_memory);
    lines.whole("cache.queries", since(|all| all.queries));
    let bulk = since(|all| all.bulk_queries);
    lines.whole("cache.bulk_queries", bulk);
    lines.whole("cache.overflow", since(|all| all.overflow));
    if bulk > 0 {
        lines.ratio("cache.bulk_queries_average_size", since(|all| all.bulk_series) as f64, bulk as f64);
    }
}

/// Only counters that happened, as the original.
fn destinations(now: &Figures, last: &Figures, lines: &mut Lines<'_>) {
    for (name, relayed) in &now.destinations {
        let before = last.destinations.get(name).copied().unwrap_or_default();
        for (word, count) in [
            ("attemptedRelays", relayed.attempted.saturating_sub(before.attempted)),
            ("sent", relayed.sent.saturating_sub(before.sent)),
            ("fullQueueDrops", relayed.full.saturating_sub(before.full)),
        ] {
            if count > 0 {
                lines.whole(&format!("destinations.{name}.{word}"), count);
            }
        }
    }
}

/// Lines of a report.
struct Lines<'p> {
    prefix: &'p str,
    now_s: u64,
    lines: Vec<String>,
}

impl Lines<'_> {
    fn whole(&mut self, name: &str, value: u64) {
        self.push(name, &value.to_string());
    }

    fn ratio(&mut self, name: &str, part: f64, whole: f64) {
        self.push(name, &(part / whole).to_string());
    }

    fn push(&mut self, name: &str, value: &str) {
        let dot = if self.prefix.is_empty() { "" } else { "." };
        self.lines.push(format!("{}{dot}{name} {value} {}", self.prefix, self.now_s));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(program: CarbonProgram) -> CarbonOwnPlan {
        CarbonOwnPlan { every_ms: 60_000, prefix: "carbon.agents.h-a".into(), program }
    }

    #[test]
    fn counters_are_differences_and_averages_need_updates() {
        let last = Figures { received: 5, ..Figures::default() };
        let mut reporter = Reporter { last, last_ns: 0 };
        let now = Figures {
            received: 12,
            connections: 3,
            cpu_ns: SECOND_NS / 2,
            updates: 2,
            update_ns: SECOND_NS,
            points_written: 10,
            points_in_memory: 7,
            bulk_queries: 2,
            bulk_series: 5,
            ..Figures::default()
        };
        let lines = reporter.report(&own(CarbonProgram::Cache), now.clone(), (SECOND_NS, 99));
        for want in [
            "metricsReceived 7",
            "activeConnections 3",
            "cpuUsage 50",
            "avgUpdateTime 0.5",
            "pointsPerUpdate 5",
            "updateOperations 2",
            "committedPoints 10",
            "cache.size 7",
            "cache.bulk_queries_average_size 2.5",
        ] {
            assert!(lines.contains(&format!("carbon.agents.h-a.{want} 99")), "{want}: {lines:?}");
        }
        let lines = reporter.report(&own(CarbonProgram::Cache), now, (2 * SECOND_NS, 100));
        assert!(lines.iter().any(|line| line.ends_with("metricsReceived 0 100")), "{lines:?}");
        assert!(
            !lines.iter().any(|line| line.contains("avgUpdateTime") || line.contains("average_size")),
            "{lines:?}"
        );
    }

    #[test]
    fn destinations_have_counters_that_happened() {
        let mut reporter = Reporter::default();
        let relayed = Relayed { attempted: 9, sent: 8, full: 0 };
        let destinations = BTreeMap::from([("10_0_0_1:2004:a".to_owned(), relayed)]);
        let now = Figures { destinations, ..Figures::default() };
        let lines = reporter.report(&own(CarbonProgram::Relay), now, (1, 9));
        let of_destination: Vec<&String> =
            lines.iter().filter(|line| line.contains(".destinations.")).collect();
        let prefix = "carbon.agents.h-a.destinations.10_0_0_1:2004:a";
        assert_eq!(of_destination, [&format!("{prefix}.attemptedRelays 9 9"), &format!("{prefix}.sent 8 9")]);
    }
}
