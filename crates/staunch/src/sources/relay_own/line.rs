//! One line a second for people (`-S`): what came in, went out, was lost and waits.

use super::figures::RelayTotals;
use crate::daemon::worker::LoopTimes;

/// Lines between two headers.
const HEADER_EVERY: u32 = 24;

const HEADER: [&str; 2] = [
    "---- metrics in ----  metrics  metrics  metrics  --- connections ---  worker\n",
    "  second       total      out     lost  waiting  second   open ended  busy %\n",
];

/// What has been shown.
#[derive(Debug, Default)]
pub(super) struct Screen {
    before: Option<RelayTotals>,
    lines: u32,
}

impl Screen {
    /// The next line, behind a header where one is due. The first call only takes the totals to compare with.
    pub(super) fn lines(&mut self, totals: &RelayTotals) -> Vec<String> {
        let Some(before) = self.before.replace(totals.clone()) else { return Vec::new() };
        let mut lines = Vec::new();
        if self.lines.is_multiple_of(HEADER_EVERY) {
            lines.extend(HEADER.map(str::to_owned));
        }
        self.lines += 1;
        let more = |figure: fn(&RelayTotals) -> u64| figure(totals).saturating_sub(figure(&before));
        let (ended, open) = (more(|t| t.disconnects), totals.connections.saturating_sub(totals.disconnects));
        lines.push(format!(
            "{:>8} {:>11} {:>8} {:>8} {:>8} {:>7} {:>6} {:>5} {:>7}\n",
            more(|t| t.received),
            totals.received,
            more(|t| t.sum(|one| one.sent)),
            more(|t| t.sum(|one| one.dropped)),
            totals.sum(|one| one.queued),
            more(|t| t.connections),
            open,
            ended,
            busy_percent(totals.shard, before.shard),
        ));
        lines
    }
}

/// Share of the time that the thread which routes was at work, to a tenth of a percent.
fn busy_percent(now: LoopTimes, before: LoopTimes) -> String {
    let busy = now.busy_ns.saturating_sub(before.busy_ns);
    let slept = now.slept_ns.saturating_sub(before.slept_ns);
    let tenths = (busy * 1_000).checked_div(busy + slept).unwrap_or(0);
    format!("{}.{}", tenths / 10, tenths % 10)
}
