//! An output's account: the copies routed to it, and their outcomes.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::figure::{Figure, Losses, Named, find};
use crate::{CopyOutcome, Dropped, Filtered, Internal, RejectedByPeer};

/// Counts of one output, in copies (records that were routed to it) and in the bytes of those copies.
#[derive(Debug, Default)]
pub struct OutputAccount {
    copies: Count,
    delivered: Count,
    dropped: [Count; Dropped::COUNT],
    rejected_by_peer: [Count; RejectedByPeer::COUNT],
    filtered: [Count; Filtered::COUNT],
    expired: Count,
    moved: Count,
    internal: [Count; Internal::COUNT],
    /// Copies without an outcome.
    copies_queued: AtomicU64,
    /// Most copies without an outcome at one time.
    copies_waiting_high: AtomicU64,
    /// Memory used by the queue and the data in flight, in bytes.
    pub queued_bytes: AtomicU64,
    /// Largest `queued_bytes` so far.
    pub queued_bytes_high: AtomicU64,
    /// Connections made.
    pub connects: AtomicU64,
    /// Failed attempts to connect or send.
    pub errors: AtomicU64,
    /// Copies sent a second time because the first may not have arrived.
    pub resent: AtomicU64,
    /// Copies that were sent, completely or in part, when their connection broke. A copy counts each time.
    pub in_doubt: AtomicU64,
    /// Unacknowledged bytes of connections that broke.
    pub in_doubt_bytes: AtomicU64,
    /// Copies that were lost before they were queued.
    turned_away: AtomicU64,
    /// How often a source began to wait because the output's queue was full.
    pub stalls: AtomicU64,
    /// When a source began to wait for room in the queue, in monotonic nanoseconds; 0 while none waits.
    pub stalled_since_ns: AtomicU64,
    /// Time that its senders were busy, in nanoseconds.
    pub busy_ns: AtomicU64,
    /// Tags omitted from sent lines because the output's encoding has no tags.
    pub tags_left_out: AtomicU64,
    /// Lines that the endpoint answered: Graphite and StatsD have no answers, and OpenTSDB's are complaints.
    pub answer_lines: AtomicU64,
    /// Unix seconds of the last failure; 0 for none.
    pub last_error_s: AtomicU64,
}

/// Copies, and their bytes on the wire.
#[derive(Debug, Default)]
struct Count {
    copies: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    fn add(&self, copies: u64, bytes: u64) {
        self.copies.fetch_add(copies, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    fn copies(&self) -> u64 {
        self.copies.load(Relaxed)
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}

/// The balance of an output at one moment: `copies` equals the sum of all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputSum {
    /// Copies routed to the output.
    pub copies: u64,
    /// Delivered to the endpoint.
    pub delivered: u64,
    /// Lost at a limit, all reasons.
    pub dropped: u64,
    /// Rejected by the endpoint.
    pub rejected_by_peer: u64,
    /// Filtered by the output's own stage.
    pub filtered: u64,
    /// Expired in the queue.
    pub expired: u64,
    /// Moved to another output.
    pub moved: u64,
    /// Lost by a bug in Staunch.
    pub internal: u64,
    /// In the queue or in flight.
    pub queued: u64,
}

impl OutputSum {
    /// The terms of the sum of `copies`, by name.
    pub fn parts(&self) -> [(&'static str, u64); 8] {
        [
            ("delivered", self.delivered),
            ("dropped", self.dropped),
            ("rejected_by_peer", self.rejected_by_peer),
            ("filtered", self.filtered),
            ("expired", self.expired),
            ("moved", self.moved),
            ("internal", self.internal),
            ("queued", self.queued),
        ]
    }

    /// Copies that ended without being delivered anywhere.
    pub fn lost(&self) -> u64 {
        self.dropped + self.rejected_by_peer + self.expired + self.internal
    }

    /// True when every copy has exactly one outcome or is queued.
    pub fn holds(&self) -> bool {
        self.copies == self.parts().iter().map(|part| part.1).sum()
    }
}

impl AddAssign for OutputSum {
    fn add_assign(&mut self, more: OutputSum) {
        self.copies += more.copies;
        self.delivered += more.delivered;
        self.dropped += more.dropped;
        self.rejected_by_peer += more.rejected_by_peer;
        self.filtered += more.filtered;
        self.expired += more.expired;
        self.moved += more.moved;
        self.internal += more.internal;
        self.queued += more.queued;
    }
}

impl OutputAccount {
    /// Counts `copies` as routed to the output; `bytes` is their size together. Each must be settled later.
    pub fn route(&self, copies: u64, bytes: u64) {
        self.copies.add(copies, bytes);
        let waiting = self.copies_queued.fetch_add(copies, Relaxed) + copies;
        self.copies_waiting_high.fetch_max(waiting, Relaxed);
    }

    /// Settles `copies` routed copies; `bytes` is their size together.
    pub fn settle(&self, outcome: CopyOutcome, copies: u64, bytes: u64) {
        self.count(outcome).add(copies, bytes);
        self.copies_queued.fetch_sub(copies, Relaxed);
    }

    /// Counts copies that are routed and settled at once, without being queued.
    pub fn pass(&self, outcome: CopyOutcome, copies: u64, bytes: u64) {
        if !matches!(outcome, CopyOutcome::Delivered | CopyOutcome::Filtered(_)) {
            self.turned_away.fetch_add(copies, Relaxed);
        }
        self.copies.add(copies, bytes);
        self.count(outcome).add(copies, bytes);
    }

    fn count(&self, outcome: CopyOutcome) -> &Count {
        match outcome {
            CopyOutcome::Delivered => &self.delivered,
            CopyOutcome::Dropped(reason) => &self.dropped[reason.index()],
            CopyOutcome::RejectedByPeer(reason) => &self.rejected_by_peer[reason.index()],
            CopyOutcome::Filtered(reason) => &self.filtered[reason.index()],
            CopyOutcome::Expired => &self.expired,
            CopyOutcome::Moved => &self.moved,
            CopyOutcome::Internal(reason) => &self.internal[reason.index()],
        }
    }

    /// Copies dropped for one reason.
    pub fn dropped(&self, reason: Dropped) -> u64 {
        self.dropped[reason.index()].copies()
    }

    /// Copies filtered for one reason.
    pub fn filtered(&self, reason: Filtered) -> u64 {
        self.filtered[reason.index()].copies()
    }

    /// Copies that were lost before they were queued.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Relaxed)
    }

    /// Copies that were lost without being sent, queued or not.
    pub fn lost_here(&self) -> u64 {
        let total = |counts: &[Count]| -> u64 { counts.iter().map(Count::copies).sum() };
        total(&self.dropped) + self.expired.copies() + total(&self.internal)
    }

    /// Copies that endpoints rejected.
    pub fn refused(&self) -> u64 {
        self.rejected_by_peer.iter().map(Count::copies).sum()
    }

    /// Copies routed to it without an outcome yet.
    pub fn copies_queued(&self) -> u64 {
        self.copies_queued.load(Relaxed)
    }

    /// Most copies without an outcome at one time.
    pub fn copies_waiting_high(&self) -> u64 {
        self.copies_waiting_high.load(Relaxed)
    }

    /// Bytes of all copies routed to it.
    pub fn bytes_routed(&self) -> u64 {
        self.copies.bytes()
    }

    /// Bytes of the delivered copies.
    pub fn bytes_delivered(&self) -> u64 {
        self.delivered.bytes()
    }

    /// The balance now. `waiting` is the number of copies in the queue and its sender, counted by them.
    pub fn sum(&self, waiting: u64) -> OutputSum {
        let total = |counts: &[Count]| counts.iter().map(Count::copies).sum();
        OutputSum {
            copies: self.copies.copies(),
            delivered: self.delivered.copies(),
            dropped: total(&self.dropped),
            rejected_by_peer: total(&self.rejected_by_peer),
            filtered: total(&self.filtered),
            expired: self.expired.copies(),
            moved: self.moved.copies(),
            internal: total(&self.internal),
            queued: waiting,
        }
    }

    /// The outcomes of copies: the terms of the sum.
    fn outcomes(&self) -> Named<'_, Count> {
        let mut outcomes: Named<'_, Count> = vec![
            ("delivered", "", &self.delivered),
            ("expired", "", &self.expired),
            ("moved", "", &self.moved),
        ];
        outcomes.extend(Dropped::ALL.iter().map(|r| ("dropped", r.word(), &self.dropped[r.index()])));
        outcomes.extend(
            RejectedByPeer::ALL
                .iter()
                .map(|r| ("rejected_by_peer", r.word(), &self.rejected_by_peer[r.index()])),
        );
        outcomes.extend(Filtered::ALL.iter().map(|r| ("filtered", r.word(), &self.filtered[r.index()])));
        outcomes.extend(Internal::ALL.iter().map(|r| ("internal", r.word(), &self.internal[r.index()])));
        outcomes
    }

    /// Counters that are not part of the balance.
    fn beside(&self) -> Named<'_, AtomicU64> {
        vec![
            ("connects", "", &self.connects),
            ("errors", "", &self.errors),
            ("resent", "", &self.resent),
            ("in_doubt", "", &self.in_doubt),
            ("in_doubt_bytes", "", &self.in_doubt_bytes),
            ("stalls", "", &self.stalls),
            ("busy_ns", "", &self.busy_ns),
            ("tags_left_out", "", &self.tags_left_out),
            ("answer_lines", "", &self.answer_lines),
        ]
    }

    /// Highest values, and the time of the last failure.
    fn highs(&self) -> Named<'_, AtomicU64> {
        vec![
            ("queued_high", "", &self.copies_waiting_high),
            ("queued_bytes_high", "", &self.queued_bytes_high),
            ("last_error_s", "", &self.last_error_s),
        ]
    }

    /// All figures that another process needs to continue this account. Queued copies are not included: the process
    /// that continues their queue counts them as routed.
    pub fn figures(&self) -> Vec<Figure> {
        let outcomes = self.outcomes().into_iter();
        let figures = outcomes
            .map(|(family, reason, count)| Figure::new(family, reason, count.copies(), count.bytes()));
        let beside = self.beside().into_iter().chain(self.highs());
        let beside =
            beside.map(|(family, reason, count)| Figure::new(family, reason, count.load(Relaxed), 0));
        figures.chain(beside).filter(|figure| figure.count > 0).collect()
    }

    /// Continues the account of another process. An unknown figure is left out of both sides of the balance, so that it
    /// still holds.
    pub fn go_on_with(&self, figures: &[Figure]) {
        for figure in figures {
            if let Some(count) = find(&self.outcomes(), figure) {
                count.add(figure.count, figure.bytes);
                self.copies.add(figure.count, figure.bytes);
            } else if let Some(count) = find(&self.beside(), figure) {
                count.fetch_add(figure.count, Relaxed);
            } else if let Some(high) = find(&self.highs(), figure) {
                high.fetch_max(figure.count, Relaxed);
            }
        }
    }

    /// Every reason with its number of copies, including those at 0.
    pub fn losses(&self) -> Losses {
        self.losses_by(Count::copies)
    }

    /// Every reason with the bytes of its copies, including those at 0.
    pub fn losses_bytes(&self) -> Losses {
        self.losses_by(Count::bytes)
    }

    fn losses_by(&self, unit: fn(&Count) -> u64) -> Losses {
        let mut losses = Losses::new();
        losses.extend(Dropped::ALL.iter().map(|r| ("dropped", r.word(), unit(&self.dropped[r.index()]))));
        losses.extend(
            RejectedByPeer::ALL
                .iter()
                .map(|r| ("rejected_by_peer", r.word(), unit(&self.rejected_by_peer[r.index()]))),
        );
        losses.extend(Filtered::ALL.iter().map(|r| ("filtered", r.word(), unit(&self.filtered[r.index()]))));
        losses.extend(Internal::ALL.iter().map(|r| ("internal", r.word(), unit(&self.internal[r.index()]))));
        losses
    }
}
