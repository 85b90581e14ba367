//! What a daemon counted since its start, over all sources and outputs, and what of it was lost. Pure.
//!
//! Not here: rates, and which row lost it (`sample`).

use std::collections::BTreeMap;

use serde::Serialize;

use super::document::Document;
use super::figure::count;

/// Sums over all rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    /// Records that sources received.
    pub(crate) received: u64,
    /// Copies that endpoints have.
    pub(crate) delivered: u64,
    /// Copies that wait for their endpoints.
    pub(crate) queued: u64,
    /// Records between a source and what it feeds.
    pub(crate) in_flight: u64,
    /// Copies that were being sent when a connection broke. They are sent again, and are in no balance.
    pub(crate) in_doubt: u64,
    /// Datagrams that the kernel dropped before they could be read.
    pub(crate) kernel_dropped: u64,
    /// Bad records that sources refused, by reason.
    pub(crate) rejected: BTreeMap<String, u64>,
    /// Good records and copies that were lost, by reason.
    pub(crate) lost: BTreeMap<String, u64>,
}

impl Totals {
    /// Of everything that a document has.
    pub(crate) fn of(document: &Document) -> Totals {
        let mut totals = Totals::default();
        for row in &document.sources {
            totals.received += row.received;
            totals.kernel_dropped += row.kernel_dropped;
            totals.in_flight += row.in_flight;
            for (family, reasons) in &row.losses {
                let into = if family == "rejected" { &mut totals.rejected } else { &mut totals.lost };
                reasons.iter().for_each(|(reason, count)| add(into, reason, *count));
            }
        }
        for row in &document.outputs {
            totals.delivered += row.delivered;
            totals.queued += row.queued;
            totals.in_doubt += row.in_doubt;
            row.reasons().into_iter().for_each(|(reason, count)| add(&mut totals.lost, reason, count));
        }
        totals
    }

    /// The same in a line, for a screen of 80 columns: of what was lost the reason with the most.
    pub(crate) fn short(&self) -> String {
        let mut lost: Vec<_> = self.lost.iter().map(|(reason, lost)| (reason.as_str(), *lost)).collect();
        if self.kernel_dropped > 0 {
            lost.push(("kernel_dropped", self.kernel_dropped));
        }
        lost.sort_by_key(|(_, lost)| std::cmp::Reverse(*lost));
        let lost = match &lost[..] {
            [] if self.rejected.is_empty() => "nothing lost".to_owned(),
            [] => format!("rejected {}, no other loss", count(self.rejected.values().sum::<u64>() as f64)),
            [(reason, most)] => format!("lost {reason} {}", count(*most as f64)),
            [(reason, most), others @ ..] => {
                format!("lost {reason} {} and {} more", count(*most as f64), others.len())
            }
        };
        format!(
            "received {}, delivered {}, {lost}",
            count(self.received as f64),
            count(self.delivered as f64)
        )
    }

    /// The same in sentences, whole.
    pub(crate) fn text(&self) -> String {
        let Totals { received, delivered, queued, in_flight, in_doubt, kernel_dropped, rejected, lost } =
            self;
        let mut text = format!(
            "Since the start: {received} records received, {delivered} copies delivered to endpoints, {queued} queued.\n"
        );
        if *in_flight > 0 {
            text.push_str(&format!("In flight: {in_flight} records.\n"));
        }
        if *in_doubt > 0 {
            text.push_str(&format!("In doubt, and sent again: {in_doubt} copies.\n"));
        }
        if !rejected.is_empty() {
            text.push_str(&format!("Rejected as bad input: {}.\n", listed(rejected)));
        }
        if *kernel_dropped > 0 {
            text.push_str(&format!(
                "Dropped by the kernel before they were read: {kernel_dropped} datagrams.\n"
            ));
        }
        match lost.is_empty() {
            true if *kernel_dropped == 0 && rejected.is_empty() => text.push_str("Nothing was lost.\n"),
            true if *kernel_dropped == 0 => text.push_str("Nothing else was lost.\n"),
            true => text.push_str("Nothing was lost of what was read.\n"),
            false => text.push_str(&format!("Lost: {}.\n", listed(lost))),
        }
        text
    }
}

fn add(into: &mut BTreeMap<String, u64>, reason: &str, count: u64) {
    if count > 0 {
        *into.entry(reason.to_owned()).or_default() += count;
    }
}

/// The reasons, that with the most first.
fn listed(reasons: &BTreeMap<String, u64>) -> String {
    let mut reasons: Vec<_> = reasons.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let reasons: Vec<_> = reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    reasons.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::document::{Losses, Output, Source};
    use super::*;

    fn losses(of: &[(&str, &str, u64)]) -> Losses {
        let mut losses = Losses::new();
        for (family, reason, count) in of {
            losses.entry((*family).to_owned()).or_default().insert((*reason).to_owned(), *count);
        }
        losses
    }

    fn totals(kernel_dropped: u64, source: &[(&str, &str, u64)], output: &[(&str, &str, u64)]) -> Totals {
        let source = Source { received: 7_000, kernel_dropped, losses: losses(source), ..Source::default() };
        let output = Output { delivered: 5_000, queued: 3, losses: losses(output), ..Output::default() };
        Totals::of(&Document {
            sources: vec![source.clone(), source],
            outputs: vec![output.clone(), output],
            ..Document::default()
        })
    }

    #[test]
    fn a_daemon_that_lost_nothing_says_so_and_one_that_did_says_what() {
        let counts =
            "Since the start: 14000 records received, 10000 copies delivered to endpoints, 6 queued.\n";
        let bad = &[("rejected", "no_type", 2), ("rejected", "bad_value", 4)][..];
        let full = &[("dropped", "queue_full", 10_000), ("dropped", "too_old", 1)][..];
        for (totals, short, text) in [
            (totals(0, &[], &[]), "nothing lost", "Nothing was lost.\n"),
            (
                totals(0, bad, &[("dropped", "too_old", 0)]),
                "rejected 12, no other loss",
                "Rejected as bad input: bad_value 8, no_type 4.\nNothing else was lost.\n",
            ),
            (
                totals(9, &[], &[]),
                "lost kernel_dropped 18",
                "Dropped by the kernel before they were read: 18 datagrams.\nNothing was lost of what was read.\n",
            ),
            (
                totals(9, &[("dropped", "series_max", 1)], full),
                "lost queue_full 20.0k and 3 more",
                "Dropped by the kernel before they were read: 18 datagrams.\n\
                 Lost: queue_full 20000, series_max 2, too_old 2.\n",
            ),
        ] {
            assert_eq!(totals.short(), format!("received 14.0k, delivered 10.0k, {short}"));
            assert_eq!(totals.text(), format!("{counts}{text}"));
        }
    }

    #[test]
    fn records_in_flight_and_copies_in_doubt_are_counted_once_each() {
        let totals = Totals::of(&Document {
            sources: vec![Source { received: 5, in_flight: 3, ..Source::default() }],
            outputs: vec![Output { in_doubt: 2, ..Output::default() }],
            ..Document::default()
        });
        assert_eq!((totals.in_flight, totals.in_doubt), (3, 2));
        let text = totals.text();
        assert!(text.contains("\nIn flight: 3 records.\nIn doubt, and sent again: 2 copies.\n"), "{text}");
    }
}
