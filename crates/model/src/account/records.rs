//! The outcomes of records, for sources and for the edges between nodes.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::figure::{Figure, Losses, Named, find};
use crate::{Dropped, Internal, Outcome, Reject};

/// Received records and their outcomes. Each source has one, and each edge into a transform.
#[derive(Debug)]
pub struct RecordAccount {
    received: AtomicU64,
    rejected: [AtomicU64; Reject::COUNT],
    dropped: [AtomicU64; Dropped::COUNT],
    duplicate: AtomicU64,
    filtered: AtomicU64,
    aggregated: AtomicU64,
    routed: AtomicU64,
    internal: [AtomicU64; Internal::COUNT],
}

impl Default for RecordAccount {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        RecordAccount {
            received: zero(),
            rejected: zeros(),
            dropped: zeros(),
            duplicate: zero(),
            filtered: zero(),
            aggregated: zero(),
            routed: zero(),
            internal: zeros(),
        }
    }
}

/// The balance of a source or an edge at one moment: `received` equals the sum of all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordSum {
    /// Records received, valid or not.
    pub received: u64,
    /// Rejected at intake, all reasons.
    pub rejected: u64,
    /// Lost at a limit, all reasons.
    pub dropped: u64,
    /// Duplicates of accepted records.
    pub duplicate: u64,
    /// Matched no route.
    pub filtered: u64,
    /// Became part of an aggregate.
    pub aggregated: u64,
    /// Passed on unchanged.
    pub routed: u64,
    /// Lost by a bug in Staunch.
    pub internal: u64,
    /// Between intake and shard.
    pub in_flight: u64,
}

impl RecordSum {
    /// The terms of the sum of `received`, by name.
    pub fn parts(&self) -> [(&'static str, u64); 8] {
        [
            ("rejected", self.rejected),
            ("dropped", self.dropped),
            ("duplicate", self.duplicate),
            ("filtered", self.filtered),
            ("aggregated", self.aggregated),
            ("routed", self.routed),
            ("internal", self.internal),
            ("in_flight", self.in_flight),
        ]
    }

    /// True when every received record has exactly one outcome.
    pub fn holds(&self) -> bool {
        self.received == self.parts().iter().map(|part| part.1).sum()
    }
}

impl RecordAccount {
    /// Counts `records` as received. Each of them must be settled later, by [`Self::settle`] or a receipt.
    #[inline]
    pub fn receive(&self, records: u64) {
        self.received.fetch_add(records, Relaxed);
    }

    /// Settles `records` received records.
    #[inline]
    pub fn settle(&self, outcome: Outcome, records: u64) {
        let counter = match outcome {
            Outcome::Rejected(reason) => &self.rejected[reason.index()],
            Outcome::Dropped(reason) => &self.dropped[reason.index()],
            Outcome::Duplicate => &self.duplicate,
            Outcome::Filtered => &self.filtered,
            Outcome::Aggregated => &self.aggregated,
            Outcome::Routed => &self.routed,
            Outcome::Internal(reason) => &self.internal[reason.index()],
        };
        counter.fetch_add(records, Relaxed);
    }

    /// Records rejected for one reason.
    pub fn rejected(&self, reason: Reject) -> u64 {
        self.rejected[reason.index()].load(Relaxed)
    }

    /// Records dropped for one reason.
    pub fn dropped(&self, reason: Dropped) -> u64 {
        self.dropped[reason.index()].load(Relaxed)
    }

    /// Records lost after they were received completely: dropped, or lost by a bug in Staunch.
    pub fn lost(&self) -> u64 {
        total(&self.dropped) + total(&self.internal)
    }

    /// The balance now. `in_flight` is the number of records in the exchanges, counted by them.
    pub fn sum(&self, in_flight: u64) -> RecordSum {
        RecordSum {
            received: self.received.load(Relaxed),
            rejected: total(&self.rejected),
            dropped: total(&self.dropped),
            duplicate: self.duplicate.load(Relaxed),
            filtered: self.filtered.load(Relaxed),
            aggregated: self.aggregated.load(Relaxed),
            routed: self.routed.load(Relaxed),
            internal: total(&self.internal),
            in_flight,
        }
    }

    /// The outcomes of records: the terms of the sum.
    pub(super) fn outcomes(&self) -> Named<'_, AtomicU64> {
        let mut outcomes: Named<'_, AtomicU64> = vec![
            ("duplicate", "", &self.duplicate),
            ("filtered", "", &self.filtered),
            ("aggregated", "", &self.aggregated),
            ("routed", "", &self.routed),
        ];
        outcomes.extend(Reject::ALL.iter().map(|r| ("rejected", r.word(), &self.rejected[r.index()])));
        outcomes.extend(Dropped::ALL.iter().map(|r| ("dropped", r.word(), &self.dropped[r.index()])));
        outcomes.extend(Internal::ALL.iter().map(|r| ("internal", r.word(), &self.internal[r.index()])));
        outcomes
    }

    /// Every reason with its count, including those at 0.
    pub fn losses(&self) -> Losses {
        let mut losses = Losses::new();
        losses.extend(Reject::ALL.iter().map(|r| ("rejected", r.word(), self.rejected(*r))));
        losses.extend(Dropped::ALL.iter().map(|r| ("dropped", r.word(), self.dropped(*r))));
        losses.extend(
            Internal::ALL.iter().map(|r| ("internal", r.word(), self.internal[r.index()].load(Relaxed))),
        );
        losses
    }

    /// All figures that another process needs to continue this account, once no record is in flight.
    pub fn figures(&self) -> Vec<Figure> {
        let outcomes = self.outcomes().into_iter();
        let figures =
            outcomes.map(|(family, reason, count)| Figure::new(family, reason, count.load(Relaxed), 0));
        figures.filter(|figure| figure.count > 0).collect()
    }

    /// Adds a figure of another process to both sides of the balance. False when its outcome is unknown here.
    pub fn go_on_with(&self, figure: &Figure) -> bool {
        let outcomes = self.outcomes();
        let Some(count) = find(&outcomes, figure) else { return false };
        count.fetch_add(figure.count, Relaxed);
        self.received.fetch_add(figure.count, Relaxed);
        true
    }
}

pub(super) fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

fn total(counts: &[AtomicU64]) -> u64 {
    counts.iter().map(|count| count.load(Relaxed)).sum()
}
