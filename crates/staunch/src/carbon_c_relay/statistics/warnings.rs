//! Warnings that operators should act on, with the original's texts.

use model::Figure;

use super::figures::RelayTotals;
use super::times::one;

/// Family of the losses that were logged, for another process.
const WARNED: &str = "warned";

/// A queue is logged when it is this full, in percent.
const FULL_PERCENT: u64 = 75;

/// The logged losses.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    dropped: u64,
    aggregation_rules_dropped: u64,
}

impl Warnings {
    /// Losses that another process has logged.
    pub(super) fn of_figures(figures: &[Figure]) -> Warnings {
        let warned = |reason| one(figures, WARNED, reason).unwrap_or(0);
        Warnings {
            dropped: warned("dropped"),
            aggregation_rules_dropped: warned("aggregation_rules_dropped"),
        }
    }

    /// The figures for a successor.
    pub(super) fn figures(&self) -> [Figure; 2] {
        let Warnings { dropped, aggregation_rules_dropped } = *self;
        [("dropped", dropped), ("aggregation_rules_dropped", aggregation_rules_dropped)]
            .map(|(reason, count)| Figure::new(WARNED, reason, count, 0))
    }

    /// New losses since the last call, and queues that are filling up.
    pub(super) fn of(&mut self, totals: &RelayTotals) -> Vec<String> {
        let mut warnings = Vec::new();
        for one in totals.destinations.iter().filter(|one| one.full_percent >= FULL_PERCENT) {
            warnings.push(format!(
                "warning: metrics queuing up for {}: {} metrics ({}% of queue size)",
                one.place, one.queued, one.full_percent
            ));
        }
        let dropped = totals.sum(|one| one.dropped);
        let aggregation_rules_dropped =
            totals.aggregation_rules.map_or(0, |aggregation_rules| aggregation_rules.dropped);
        let news = dropped.saturating_sub(std::mem::replace(&mut self.dropped, dropped));
        if news > 0 {
            warnings.push(format!("warning: dropped {news} metrics"));
        }
        let news = aggregation_rules_dropped.saturating_sub(std::mem::replace(
            &mut self.aggregation_rules_dropped,
            aggregation_rules_dropped,
        ));
        if news > 0 {
            warnings.push(format!("warning: aggregator dropped {news} metrics"));
        }
        warnings
    }
}

#[test]
fn losses_are_logged_once_and_full_queues_repeatedly() {
    use super::figures::{AggregationRuleTotals, Destination};
    let one = |full_percent| Destination {
        place: "10.0.0.5:2003".into(),
        queued: 21,
        dropped: 4,
        full_percent,
        ..Destination::default()
    };
    let totals = |full_percent| RelayTotals {
        destinations: vec![one(full_percent), one(0)],
        aggregation_rules: Some(AggregationRuleTotals { dropped: 3, ..AggregationRuleTotals::default() }),
        ..RelayTotals::default()
    };
    let mut warnings = Warnings::default();
    let full = "warning: metrics queuing up for 10.0.0.5:2003: 21 metrics (75% of queue size)";
    let all = [full, "warning: dropped 8 metrics", "warning: aggregator dropped 3 metrics"];
    assert_eq!(warnings.of(&totals(75)), all);
    assert_eq!(warnings.of(&totals(75)), [full]);
    assert!(warnings.of(&totals(74)).is_empty());
}
