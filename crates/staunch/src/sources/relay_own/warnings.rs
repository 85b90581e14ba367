//! What somebody should look at, in the words that the original has for it.

use super::figures::RelayTotals;

/// A queue that is so full is told of, in percent.
const FULL_PERCENT: u64 = 75;

/// What has been told of losses.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    dropped: u64,
    rollups_dropped: u64,
}

impl Warnings {
    /// What is new since the last call, and which queues are filling up.
    pub(super) fn of(&mut self, totals: &RelayTotals) -> Vec<String> {
        let mut warnings = Vec::new();
        for one in totals.destinations.iter().filter(|one| one.full_percent >= FULL_PERCENT) {
            warnings.push(format!(
                "warning: metrics queuing up for {}: {} metrics ({}% of queue size)",
                one.place, one.queued, one.full_percent
            ));
        }
        let dropped = totals.sum(|one| one.dropped);
        let rollups_dropped = totals.rollups.map_or(0, |rollups| rollups.dropped);
        let news = dropped.saturating_sub(std::mem::replace(&mut self.dropped, dropped));
        if news > 0 {
            warnings.push(format!("warning: dropped {news} metrics"));
        }
        let news =
            rollups_dropped.saturating_sub(std::mem::replace(&mut self.rollups_dropped, rollups_dropped));
        if news > 0 {
            warnings.push(format!("warning: aggregator dropped {news} metrics"));
        }
        warnings
    }
}
