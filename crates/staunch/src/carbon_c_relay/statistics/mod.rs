//! Statistics of relays with carbon-c-relay's names (spec graphite §2.10), as a source.
//!
//! Path of a report: accounts, shard and queues -> [`figures`] (current totals) -> [`names`] (points) -> `Intake` ->
//! the exchange, like points from a connection; the shard routes them to the relays' destination for statistics. With
//! another `report` they go to the log ([`names`]), or as one line to stdout ([`mod@line`]). Not here: the format of
//! log lines (`carbon_c_relay`), `/metrics` (`admin::metrics`).
//! Invariants: a figure is measured or omitted, never estimated; a report never waits for an endpoint.

mod figures;
mod line;
mod names;
mod reports;
mod times;
mod warnings;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use config::plan::{Feed, Plan, RelayOwnPlan, RelayReport};
use model::{Figure, PacketBatch, SourceId};
use tokio::sync::watch;

use self::figures::RelayTotals;
use self::line::Screen;
use self::names::Reported;
pub use self::reports::Reports;
use self::times::Times;
use self::warnings::Warnings;
use crate::daemon::shared::Shared;
use crate::daemon::shared::stop_order::stopped;
use crate::sources::own::{packed, send};
use sys::clock::Clock;

/// Interval between two checks of the plan while it has no source of this kind.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Makes the reports of all sources of this kind until the daemon stops.
pub async fn run(shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut reporters: BTreeMap<u16, Reporter> = BTreeMap::new();
    loop {
        let (plan, generation) = {
            let wiring = shared.wiring.load();
            (Arc::clone(&wiring.plan), wiring.generation)
        };
        for (id, name, own) in own_sources(&plan) {
            let now_ns = Clock::mono_ns();
            let every_ns = own.every_ms * 1_000_000;
            let reporter = match reporters.entry(id.0) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let inherited = shared.reports.of_source(name);
                    let reporter = match Reporter::inherited(&inherited) {
                        Some(reporter) => reporter,
                        None => {
                            let Some(totals) = figures::totals(&shared, &plan, id, 0).await else { continue };
                            let first = shared.reports.begin_anew() && generation == 0;
                            let reporter = Reporter::new(own, &totals, now_ns + every_ns, first);
                            // If a new process continues before the first report, its reports begin here.
                            shared.reports.note(name, reporter.figures(&totals));
                            reporter
                        }
                    };
                    new.insert(reporter)
                }
            };
            // A reload may have shortened the interval.
            reporter.due_ns = reporter.due_ns.min(now_ns + every_ns);
            // During a hot restart, the figures that the new process got must not change.
            if now_ns < reporter.due_ns || shared.handing_over.load(Relaxed) {
                continue;
            }
            reporter.due_ns = (reporter.due_ns + every_ns).max(now_ns);
            let Some(mut totals) = figures::totals(&shared, &plan, id, reporter.busy_ns).await else {
                continue;
            };
            reporter.before.add_to(&mut totals);
            let points = reporter.report(own, &totals);
            reporter.busy_ns += Clock::mono_ns() - now_ns;
            shared.reports.note(name, reporter.figures(&totals));
            if let Some(points) = points {
                send(id, points, &shared).await;
            }
        }
        reporters.retain(|id, _| own_sources(&plan).any(|(known, ..)| known.0 == *id));
        let next_ns = reporters.values().map(|reporter| reporter.due_ns).min();
        let pause = next_ns.map(|due_ns| Duration::from_nanos(due_ns.saturating_sub(Clock::mono_ns())));
        let pause = pause.map_or(LOOK_EVERY, |pause| pause.min(LOOK_EVERY));
        // Both branches are cancel-safe: they only wait.
        tokio::select! {
            () = stopped(&mut stop) => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Sources with a destination: a reload may have removed one.
fn own_sources(plan: &Plan) -> impl Iterator<Item = (SourceId, &str, &RelayOwnPlan)> {
    let feeds = |id| {
        plan.transforms.iter().any(|transform| transform.takes_from(id))
            || plan.outputs.iter().any(|output| output.from.contains(&Feed::Source(id)))
    };
    plan.sources.iter().enumerate().filter_map(move |(at, source)| {
        let own = source.kind.as_relay_own()?;
        Some((SourceId(at as u16), &*source.name, own)).filter(|(id, ..)| feeds(*id))
    })
}

/// The reports of one source so far.
#[derive(Debug)]
struct Reporter {
    /// When the next report is due, in monotonic nanoseconds.
    due_ns: u64,
    reported: Reported,
    screen: Screen,
    warnings: Warnings,
    /// Time spent on its reports.
    busy_ns: u64,
    /// The times of processes before hot restarts.
    before: Times,
}

impl Reporter {
    /// Existing counts are not reported as new, except at a start: then they belong to this process.
    fn new(own: &RelayOwnPlan, totals: &RelayTotals, due_ns: u64, first: bool) -> Reporter {
        let (mut reported, mut screen, mut warnings) =
            (Reported::default(), Screen::default(), Warnings::default());
        let _shown = screen.lines(totals);
        if !first {
            let _reported = (reported.lines(own, totals), warnings.of(totals));
        }
        Reporter { due_ns, reported, screen, warnings, busy_ns: 0, before: Times::default() }
    }

    /// Continues the process before the hot restart; `None` without a report there.
    fn inherited(figures: &[Figure]) -> Option<Reporter> {
        let due_ns = times::one(figures, "due_ns", "")?;
        Some(Reporter {
            due_ns,
            reported: Reported::of(figures),
            screen: Screen::default(),
            warnings: Warnings::of_figures(figures),
            busy_ns: 0,
            before: Times::of(figures),
        })
    }

    /// State for the next process.
    fn figures(&self, totals: &RelayTotals) -> Vec<Figure> {
        let mut figures = vec![Figure::new("due_ns", "", self.due_ns, 0)];
        figures.extend(self.reported.figures());
        figures.extend(self.warnings.figures());
        figures.extend(Times::in_all(totals).figures());
        figures
    }

    /// Makes a report. Returns it unless it is logged.
    fn report(&mut self, own: &RelayOwnPlan, totals: &RelayTotals) -> Option<PacketBatch> {
        if own.report == RelayReport::Line {
            for line in self.screen.lines(totals) {
                // It may be unread, which must not delay relaying.
                crate::log_stream::to_stdout(line.as_bytes());
            }
            return None;
        }
        self.warnings.of(totals).iter().for_each(|warning| tracing::warn!("{warning}"));
        let lines = match own.report {
            RelayReport::Points | RelayReport::Log => self.reported.lines(own, totals),
            RelayReport::Line | RelayReport::Losses => return None,
        };
        if own.report == RelayReport::Log {
            lines.iter().for_each(|line| tracing::info!("{line}"));
            return None;
        }
        Some(packed(&lines))
    }
}

#[test]
fn counts_before_the_first_reading_are_in_the_first_report() {
    let own = RelayOwnPlan { every_ms: 1, reset: true, prefix: "p".into(), report: RelayReport::Log };
    let totals = RelayTotals { received: 5, ..RelayTotals::default() };
    for (first, want) in [(true, "p.metricsReceived 5 0"), (false, "p.metricsReceived 0 0")] {
        let mut reporter = Reporter::new(&own, &totals, 0, first);
        let lines = reporter.reported.lines(&own, &totals);
        assert!(lines.iter().any(|line| line == want), "{first}: {lines:?}");
    }
    // Also in a successor, from the last report on.
    let mut reporter = Reporter::new(&own, &totals, 7, true);
    let _reported = reporter.reported.lines(&own, &totals);
    let mut next = Reporter::inherited(&reporter.figures(&totals)).expect("something was reported");
    let lines = next.reported.lines(&own, &RelayTotals { received: 9, ..RelayTotals::default() });
    assert!(next.due_ns == 7 && lines.iter().any(|line| line == "p.metricsReceived 4 0"), "{lines:?}");
}
