//! The daemon's own figures as a source: StatsD lines at an interval (spec statsd §14 R11).
//!
//! Path of a report: the accounts' page -> **[`Reporter::report`]** -> `Intake::datagrams` -> the exchange, like data
//! of a connection, so all edges of a source work. Not here: `/metrics` (`admin::metrics`), which has more.
//! Invariant: a report contains nothing about sources that make reports, so a daemon without traffic reports zeros. Its
//! packets are copies of their outputs, or the outputs' accounts would not be balanced.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use config::plan::{CarbonOwnPlan, Feed, OwnPlan, Plan};
use model::{PacketBatch, SourceId};
use pipeline::Scratch;
use tokio::sync::watch;

use crate::admin::accounts::{self, AccountsPage};
use crate::carbon::self_metrics;
use crate::daemon::shared::Shared;
use crate::daemon::shared::stop_order::stopped;
use crate::sources::stream::hand_on;
use sys::clock::Clock;

/// Longest packet of a report: fits an Ethernet frame.
const PACKET_BYTES_MAX: usize = 1432;

/// Interval between two checks of the plan while it has no source of this kind.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Makes the reports of all sources of this kind until the daemon stops. Values in `before` were reported by the
/// process before a hot restart.
pub async fn run(shared: Arc<Shared>, mut stop: watch::Receiver<bool>, before: Option<Arc<AccountsPage>>) {
    let mut reporters: BTreeMap<u16, (AnyReporter, u64)> = BTreeMap::new();
    loop {
        let plan = Arc::clone(&shared.wiring.load().plan);
        let now_ns = Clock::mono_ns();
        for (id, own) in own_sources(&plan) {
            let every_ns = own.every_ms() * 1_000_000;
            let (reporter, due_ns) = reporters.entry(id.0).or_insert_with(|| {
                let reporter = AnyReporter::new(own, before.as_deref(), &plan);
                (reporter, now_ns + every_ns)
            });
            // During a hot restart, the figures for the new process must not change.
            if now_ns < *due_ns || shared.handing_over.load(Relaxed) {
                continue;
            }
            *due_ns = (*due_ns + every_ns).max(now_ns);
            let page = accounts::page(&shared, Clock::now());
            send(id, reporter.report(own, &page, &shared), &shared).await;
        }
        reporters.retain(|id, _| own_sources(&plan).any(|(known, _)| known.0 == *id));
        let next_ns = reporters.values().map(|(_, due_ns)| *due_ns).min();
        let pause = next_ns.map(|due_ns| Duration::from_nanos(due_ns.saturating_sub(Clock::mono_ns())));
        let pause = pause.map_or(LOOK_EVERY, |pause| pause.min(LOOK_EVERY));
        // Both branches are cancel-safe: they only wait.
        tokio::select! {
            () = stopped(&mut stop) => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The form of the reports of a source.
#[derive(Clone, Copy)]
enum Own<'p> {
    /// StatsD lines.
    Statsd(&'p OwnPlan),
    /// Points with carbon's names.
    Carbon(&'p CarbonOwnPlan),
}

impl Own<'_> {
    fn every_ms(self) -> u64 {
        match self {
            Own::Statsd(own) => own.every_ms,
            Own::Carbon(own) => own.every_ms,
        }
    }
}

/// What the next report of a source is compared with.
enum AnyReporter {
    Statsd(Reporter),
    Carbon(Box<self_metrics::Reporter>),
}

impl AnyReporter {
    fn new(own: Own<'_>, before: Option<&AccountsPage>, plan: &Plan) -> AnyReporter {
        match own {
            Own::Statsd(own) => {
                let mut reporter = Reporter::default();
                if let Some(before) = before {
                    let _first = reporter.report(own, before);
                }
                AnyReporter::Statsd(reporter)
            }
            Own::Carbon(_) => {
                let reporter = self_metrics::Reporter::after(before, plan, Clock::mono_ns());
                AnyReporter::Carbon(Box::new(reporter))
            }
        }
    }

    fn report(&mut self, own: Own<'_>, page: &AccountsPage, shared: &Shared) -> PacketBatch {
        match (self, own) {
            (AnyReporter::Statsd(reporter), Own::Statsd(own)) => reporter.report(own, page),
            (AnyReporter::Carbon(reporter), Own::Carbon(own)) => {
                let (plan, now) = (Arc::clone(&shared.wiring.load().plan), Clock::now());
                let figures = self_metrics::Figures::of(shared, &plan, page);
                packed(&reporter.report(own, figures, (now.mono_ns, now.wall_seconds())))
            }
            // A reload gave the source another form.
            (reporter, own) => {
                *reporter = AnyReporter::new(own, Some(page), &shared.wiring.load().plan);
                PacketBatch::default()
            }
        }
    }
}

/// Sources with a destination: a reload may have removed one.
fn own_sources(plan: &Plan) -> impl Iterator<Item = (SourceId, Own<'_>)> {
    let feeds = |id| {
        plan.transforms.iter().any(|transform| transform.takes_from(id))
            || plan.outputs.iter().any(|output| output.from.contains(&Feed::Source(id)))
    };
    plan.sources.iter().enumerate().filter_map(move |(at, source)| {
        let own = source.kind.as_own().map(Own::Statsd);
        let own = own.or_else(|| source.kind.as_carbon_own().map(Own::Carbon));
        Some((SourceId(at as u16), own?)).filter(|(id, _)| feeds(*id))
    })
}

/// Passes a report on like data of a connection.
pub(crate) async fn send(id: SourceId, report: PacketBatch, shared: &Shared) {
    let wiring = shared.wiring.load_full();
    let maker =
        shared.shard.call(move |worker| worker.turn.shard.intakes(&wiring.plan, id, &wiring.accounts));
    // Without a shard nothing accepts reports.
    let Ok(maker) = maker.await else { return };
    let mut scratch = Scratch::default();
    let batch =
        maker.make().datagrams(&report.bytes, &report.packets, Clock::now(), &mut scratch).into_owned();
    drop(scratch);
    let _taken = hand_on(batch, model::PeerKey::Local, shared).await;
}

/// The last report of one source.
#[derive(Debug, Default)]
struct Reporter {
    /// Totals of the last report, by name: counters are sent as differences.
    reported: BTreeMap<String, u64>,
}

impl Reporter {
    /// The lines of a report, in packets. Each report is complete, including zeros.
    fn report(&mut self, own: &OwnPlan, page: &AccountsPage) -> PacketBatch {
        let mut lines = Vec::new();
        let prefix = if own.prefix.is_empty() { String::new() } else { format!("{}.", own.prefix) };
        for row in page.sources.iter().filter(|row| row.kind != "self") {
            let name = format!("{prefix}source.{}", plain(&row.name));
            let totals = [
                ("packets", row.packets),
                ("bytes", row.bytes),
                ("received", row.sum.received),
                ("rejected", row.sum.rejected),
                ("dropped", row.sum.dropped),
                ("kernel_dropped", row.kernel_dropped),
            ];
            for (word, total) in totals {
                self.counter(format!("{name}.{word}"), total, &mut lines);
            }
        }
        for row in &page.outputs {
            let name = format!("{prefix}output.{}", plain(&row.name));
            let totals = [
                ("copies", row.sum.copies),
                ("delivered", row.sum.delivered),
                ("dropped", row.sum.dropped),
                ("rejected_by_peer", row.sum.rejected_by_peer),
                ("filtered", row.sum.filtered),
            ];
            for (word, total) in totals {
                self.counter(format!("{name}.{word}"), total, &mut lines);
            }
            lines.push(format!("{name}.waiting:{}|g", row.sum.queued));
            lines.push(format!("{name}.queued_bytes:{}|g", row.queued_bytes));
            lines.push(format!("{name}.down:{}|g", u8::from(row.state == "down")));
        }
        packed(&lines)
    }

    fn counter(&mut self, name: String, total: u64, lines: &mut Vec<String>) {
        let reported = self.reported.insert(name.clone(), total).unwrap_or(0);
        lines.push(format!("{name}:{}|c", total.saturating_sub(reported)));
    }
}

/// A name as one part of a dotted name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// Lines as packets.
pub(crate) fn packed(lines: &[String]) -> PacketBatch {
    let mut batch = PacketBatch::default();
    let mut open = String::new();
    for line in lines {
        if !open.is_empty() && open.len() + 1 + line.len() > PACKET_BYTES_MAX {
            batch.push(open.as_bytes());
            open.clear();
        }
        if !open.is_empty() {
            open.push('\n');
        }
        open.push_str(line);
    }
    if !open.is_empty() {
        batch.push(open.as_bytes());
    }
    batch
}

#[cfg(test)]
mod tests {
    use model::{OutputSum, RecordSum};

    use super::*;
    use crate::admin::accounts::{OutputRow, SourceRow};

    fn page(received: u64) -> AccountsPage {
        let row = |name: &str, kind, received| SourceRow {
            name: name.into(),
            kind,
            sum: RecordSum { received, ..RecordSum::default() },
            ..SourceRow::default()
        };
        let output = OutputRow {
            name: "o/10.0.0.1:8125".into(),
            sum: OutputSum { copies: received, queued: 7, ..OutputSum::default() },
            state: "down",
            ..OutputRow::default()
        };
        AccountsPage {
            time_ms: 0,
            sources: vec![row("app", "statsd", received), row("me", "self", 99)],
            transforms: Vec::new(),
            outputs: vec![output],
            ..AccountsPage::default()
        }
    }

    fn lines(batch: &PacketBatch) -> Vec<String> {
        let texts = batch.iter().map(|packet| String::from_utf8_lossy(packet).into_owned());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn counters_are_differences_and_own_sources_are_not_counted_as_traffic() {
        let own = OwnPlan { every_ms: 1000, prefix: "edge".into() };
        let mut reporter = Reporter::default();
        let first = lines(&reporter.report(&own, &page(5)));
        let second = lines(&reporter.report(&own, &page(12)));
        assert!(first.contains(&"edge.source.app.received:5|c".to_owned()), "{first:?}");
        assert!(second.contains(&"edge.source.app.received:7|c".to_owned()), "{second:?}");
        assert!(second.contains(&"edge.source.app.rejected:0|c".to_owned()), "{second:?}");
        for line in ["output.o_10_0_0_1_8125.copies:7|c", "output.o_10_0_0_1_8125.waiting:7|g"] {
            assert!(second.contains(&format!("edge.{line}")), "{second:?}");
        }
        assert!(second.contains(&"edge.output.o_10_0_0_1_8125.down:1|g".to_owned()), "{second:?}");
        assert!(!second.iter().any(|line| line.contains(".me.")), "{second:?}");
        let bare = OwnPlan { every_ms: 1000, prefix: String::new() };
        assert!(lines(&reporter.report(&bare, &page(12)))[0].starts_with("source.app."));
    }

    #[test]
    fn a_long_report_is_several_packets() {
        let all: Vec<String> = (0..200).map(|number| format!("name.of.some.length.{number}:1|c")).collect();
        let batch = packed(&all);
        assert!(batch.packets.len() > 3);
        assert!(batch.packets.iter().all(|packet| packet.len as usize <= PACKET_BYTES_MAX));
        assert_eq!(lines(&batch), all);
        assert_eq!(packed(&[]).packets.len(), 0);
    }
}
