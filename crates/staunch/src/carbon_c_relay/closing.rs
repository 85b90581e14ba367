//! The last report in carbon-c-relay's compatibility mode: what became of every line that it has read, and of every
//! copy of one, in a few lines for a person.
//!
//! Not here: the accounts (`model`, `admin::accounts`), warnings about what could not be delivered (`stop`).

use std::collections::BTreeMap;

use crate::admin::accounts::{AccountsPage, LossTable, OutputRow, SourceRow};

/// Most outputs with losses or something left that have a line of their own.
const OUTPUTS_MAX: usize = 20;

/// The report, once nothing moves any more.
pub(super) fn report(page: &AccountsPage) -> Vec<String> {
    let mut lines: Vec<String> =
        page.sources.iter().filter(|row| row.sum.received > 0).map(of_source).collect();
    if lines.is_empty() {
        lines.push("no line was read".to_owned());
    }
    let copies = Copies::of(page.outputs.iter());
    lines.push(format!("to all endpoints: {}", copies.text()));
    let ends = page.outputs.iter().map(|row| (row, Copies::of(std::iter::once(row))));
    let unhappy: Vec<_> = ends.filter(|(_, copies)| copies.lost() + copies.on_disk > 0).collect();
    lines.extend(
        unhappy.iter().take(OUTPUTS_MAX).map(|(row, copies)| format!("to {}: {}", row.name, copies.text())),
    );
    if unhappy.len() > OUTPUTS_MAX {
        lines.push(format!("and {} more endpoints that did not get all", unhappy.len() - OUTPUTS_MAX));
    }
    lines
}

fn of_source(row: &SourceRow) -> String {
    let mut parts = vec![
        (row.sum.routed, "routed".to_owned()),
        (row.sum.aggregated, "aggregated".to_owned()),
        (row.sum.filtered, "sent nowhere by the rules".to_owned()),
    ];
    parts
        .extend(reasons(&row.losses).into_iter().map(|(reason, count)| (count, format!("lost as {reason}"))));
    parts.push((row.sum.in_flight, "not routed any more".to_owned()));
    format!("from {}: {} lines: {}", row.name, row.sum.received, listed(&parts))
}

/// What became of copies.
#[derive(Debug, Default)]
struct Copies {
    copies: u64,
    delivered: u64,
    moved: u64,
    /// Waiting on disk for the next start.
    on_disk: u64,
    /// By reason. What waits in memory is lost with it.
    lost: BTreeMap<&'static str, u64>,
}

impl Copies {
    fn of<'a>(rows: impl Iterator<Item = &'a OutputRow>) -> Copies {
        let mut all = Copies::default();
        for row in rows {
            all.copies += row.sum.copies;
            all.delivered += row.sum.delivered;
            all.moved += row.sum.moved;
            let on_disk = row.disk.is_some();
            all.on_disk += if on_disk { row.sum.queued } else { 0 };
            for (reason, count) in reasons(&row.losses) {
                *all.lost.entry(reason).or_default() += count;
            }
            let more = [("expired", row.sum.expired), ("stopped", if on_disk { 0 } else { row.sum.queued })];
            for (reason, count) in more.into_iter().filter(|(_, count)| *count > 0) {
                *all.lost.entry(reason).or_default() += count;
            }
        }
        all
    }

    fn lost(&self) -> u64 {
        self.lost.values().sum()
    }

    fn text(&self) -> String {
        let mut parts = vec![
            (self.delivered, "delivered".to_owned()),
            (self.moved, "moved to another endpoint".to_owned()),
            (self.on_disk, "left in queues on disk".to_owned()),
        ];
        parts.extend(self.lost.iter().map(|(reason, count)| (*count, format!("lost as {reason}"))));
        format!("{} copies: {}", self.copies, listed(&parts))
    }
}

/// Losses by reason, of all families but what a stage leaves out.
fn reasons(losses: &LossTable) -> BTreeMap<&'static str, u64> {
    let mut by = BTreeMap::new();
    for (_, table) in losses.iter().filter(|(family, _)| **family != "filtered") {
        for (reason, count) in table {
            *by.entry(*reason).or_default() += count;
        }
    }
    by
}

/// Those that there are.
fn listed(parts: &[(u64, String)]) -> String {
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let listed: Vec<String> = parts.map(|(count, what)| format!("{count} {what}")).collect();
    if listed.is_empty() { "none".to_owned() } else { listed.join(", ") }
}

#[cfg(test)]
mod tests {
    use model::{OutputSum, RecordSum};

    use super::*;
    use crate::admin::accounts::DiskRow;

    fn losses(family: &'static str, reason: &'static str, count: u64) -> LossTable {
        LossTable::from([(family, BTreeMap::from([(reason, count)]))])
    }

    #[test]
    fn every_line_and_copy_is_accounted_for() {
        let sum = |copies, delivered, waiting| OutputSum {
            copies,
            delivered,
            queued: waiting,
            ..OutputSum::default()
        };
        let output = |name: &str, sum| OutputRow { name: name.into(), sum, ..OutputRow::default() };
        let mut page = AccountsPage {
            time_ms: 0,
            sources: Vec::new(),
            transforms: Vec::new(),
            outputs: Vec::new(),
            ..AccountsPage::default()
        };
        assert_eq!(report(&page), ["no line was read", "to all endpoints: 0 copies: none"]);
        page.sources = vec![
            SourceRow { name: "idle".into(), ..SourceRow::default() },
            SourceRow {
                name: "lines".into(),
                sum: RecordSum {
                    received: 20,
                    routed: 12,
                    aggregated: 3,
                    filtered: 2,
                    rejected: 2,
                    in_flight: 1,
                    ..RecordSum::default()
                },
                losses: losses("rejected", "no_value", 2),
                ..SourceRow::default()
            },
        ];
        let lossy = OutputSum { moved: 1, dropped: 2, ..sum(12, 5, 4) };
        let disk = OutputSum { expired: 1, ..sum(10, 6, 3) };
        page.outputs = vec![
            output("good", sum(9, 9, 0)),
            OutputRow { losses: losses("dropped", "stopped", 2), ..output("lossy", lossy) },
            OutputRow { disk: Some(DiskRow::default()), ..output("disk", disk) },
        ];
        let want = [
            "from lines: 20 lines: 12 routed, 3 aggregated, 2 sent nowhere by the rules, 2 lost as no_value, \
             1 not routed any more",
            "to all endpoints: 31 copies: 20 delivered, 1 moved to another endpoint, 3 left in queues on disk, \
             1 lost as expired, 6 lost as stopped",
            "to lossy: 12 copies: 5 delivered, 1 moved to another endpoint, 6 lost as stopped",
            "to disk: 10 copies: 6 delivered, 3 left in queues on disk, 1 lost as expired",
        ];
        assert_eq!(report(&page), want);
        let many = (0..30).map(|at| output(&format!("o{at}"), sum(1, 0, 1)));
        page.outputs = many.collect();
        let lines = report(&page);
        assert_eq!(lines.len(), 2 + OUTPUTS_MAX + 1);
        assert_eq!(lines.last().map(String::as_str), Some("and 10 more endpoints that did not get all"));
    }
}
