//! One line per second (`-S`): received, sent, lost and queued points.

use super::figures::RelayTotals;
use crate::daemon::worker::LoopTimes;

/// Lines between two headers.
const HEADER_EVERY: u32 = 24;

const HEADER: [&str; 2] = [
    "---- metrics in ----  metrics  metrics  metrics  --- connections ---  worker\n",
    "  second       total      out     lost  waiting  second   open ended  busy %\n",
];

/// The state of the output so far.
#[derive(Debug, Default)]
pub(super) struct Screen {
    before: Option<RelayTotals>,
    lines: u32,
}

impl Screen {
    /// The next line, after a header when one is due. The first call only stores the totals for comparison.
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

/// Busy share of the routing thread, to a tenth of a percent.
fn busy_percent(now: LoopTimes, before: LoopTimes) -> String {
    let busy = now.busy_ns.saturating_sub(before.busy_ns);
    let slept = now.slept_ns.saturating_sub(before.slept_ns);
    let tenths = (busy * 1_000).checked_div(busy + slept).unwrap_or(0);
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[test]
fn a_line_shows_differences_and_the_header_is_repeated() {
    use super::figures::Destination;
    let totals = |received: u64, sent: u64| RelayTotals {
        received,
        connections: received / 10,
        disconnects: 1,
        shard: LoopTimes { busy_ns: received, slept_ns: 3 * received },
        destinations: vec![Destination { sent, queued: 5, dropped: 2, ..Destination::default() }],
        ..RelayTotals::default()
    };
    let mut screen = Screen::default();
    assert!(screen.lines(&totals(100, 50)).is_empty(), "there is nothing to compare with");
    let lines = screen.lines(&totals(300, 240));
    assert_eq!(lines[..2], HEADER);
    let figures: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!(figures, ["200", "300", "190", "0", "5", "20", "29", "0", "25.0"]);
    assert!(lines.iter().all(|line| line.len() <= 80 && line.len() == HEADER[0].len()), "{lines:?}");
    let headers = (0..48).filter(|_| screen.lines(&totals(300, 240)).len() > 1).count();
    assert_eq!(headers, 2);
}
