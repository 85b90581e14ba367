//! A source's account: the received records and their outcomes.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};

use super::figure::{Figure, Losses, Named, find};
use super::records::{RecordAccount, RecordSum, zeros};
use crate::{Dropped, Outcome, Reject, Unacked};

/// Counts of one source. Unit: records, unless a field says packets or bytes.
#[derive(Debug)]
pub struct SourceAccount {
    records: RecordAccount,
    /// Reasons for which the log has already quoted a line.
    complained: [AtomicBool; Reject::COUNT],
    /// The first new series rejected at `series_max`, as text for the log.
    refused_series: OnceLock<String>,
    /// How many counting operations have begun, and how many have ended: see [`SourceAccount::counting`].
    begun: AtomicU64,
    done: AtomicU64,
    /// Datagrams, or reads that contained at least one whole line.
    pub packets: AtomicU64,
    /// Bytes read.
    pub bytes: AtomicU64,
    /// Lines read, valid or not.
    pub lines: AtomicU64,
    /// Empty datagrams.
    pub packets_empty: AtomicU64,
    /// Datagrams longer than the buffer; the received part still counts.
    pub packets_truncated: AtomicU64,
    /// Datagrams that the kernel dropped because the receive buffer was full.
    pub kernel_dropped: AtomicU64,
    /// Failed attempts to read a datagram socket; no queued packet was lost by them.
    pub read_errors: AtomicU64,
    /// Accepted connections.
    pub connections_accepted: AtomicU64,
    /// Connections rejected at `max_connections`, or at the sources' share of the descriptors.
    pub connections_refused: AtomicU64,
    /// Connections rejected at `max_connections_per_peer`, or because their peer had half of the sources' descriptors.
    pub connections_refused_per_peer: AtomicU64,
    /// Idle connections that were closed for a connection of a peer with fewer.
    pub connections_replaced: AtomicU64,
    /// Connections that ended in an error (reset, time-out).
    pub connections_broken: AtomicU64,
    /// Connections that ended before the end of the TLS handshake.
    pub handshakes_failed: AtomicU64,
    /// Connections open now.
    pub connections_open: AtomicU64,
    /// Samples whose last tag looks like a DogStatsD field attached to it (`etsy` only).
    pub glued_tag_fields: AtomicU64,
    /// Optional fields of events and checks with unknown contents.
    pub event_fields_ignored: AtomicU64,
    /// Unix seconds of the last packet; 0 before the first.
    pub last_packet_s: AtomicU64,
    /// Lines (frames: frames) acknowledged to their clients.
    pub lines_acked: AtomicU64,
    /// Lines received on open connections, or on ones closed just now, and not acknowledged yet.
    pub lines_unacked: AtomicU64,
    /// Connections with acknowledgements that the daemon closed.
    acks_failed: [AtomicU64; Unacked::COUNT],
}

/// A counting operation in progress: see [`SourceAccount::counting`].
#[derive(Debug)]
pub struct Counting<'a>(&'a AtomicU64);

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Release);
    }
}

impl Default for SourceAccount {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        SourceAccount {
            records: RecordAccount::default(),
            begun: zero(),
            done: zero(),
            complained: std::array::from_fn(|_| AtomicBool::new(false)),
            refused_series: OnceLock::new(),
            packets: zero(),
            bytes: zero(),
            lines: zero(),
            packets_empty: zero(),
            packets_truncated: zero(),
            kernel_dropped: zero(),
            read_errors: zero(),
            connections_accepted: zero(),
            connections_refused: zero(),
            connections_refused_per_peer: zero(),
            connections_replaced: zero(),
            connections_broken: zero(),
            handshakes_failed: zero(),
            connections_open: zero(),
            glued_tag_fields: zero(),
            event_fields_ignored: zero(),
            last_packet_s: zero(),
            lines_acked: zero(),
            lines_unacked: zero(),
            acks_failed: zeros(),
        }
    }
}

impl SourceAccount {
    /// Begins a counting operation, which ends when the result is dropped. [`Self::undisturbed`] sees all of its counts
    /// or none. For threads that count but do not settle.
    pub fn counting(&self) -> Counting<'_> {
        self.begun.fetch_add(1, Relaxed);
        fence(Release);
        Counting(&self.done)
    }

    /// The result of `look`, unless a [counting operation](Self::counting) was in progress meanwhile.
    pub fn undisturbed<R>(&self, look: impl FnOnce() -> R) -> Option<R> {
        let before = self.done.load(Acquire);
        if self.begun.load(Relaxed) != before {
            return None;
        }
        let seen = look();
        fence(Acquire);
        (self.begun.load(Relaxed) == before).then_some(seen)
    }

    /// Counts `records` as received. Each of them must be settled later, by [`Self::settle`] or a receipt.
    #[inline]
    pub fn receive(&self, records: u64) {
        self.records.receive(records);
    }

    /// Settles `records` received records.
    #[inline]
    pub fn settle(&self, outcome: Outcome, records: u64) {
        self.records.settle(outcome, records);
    }

    /// Records rejected for one reason.
    pub fn rejected(&self, reason: Reject) -> u64 {
        self.records.rejected(reason)
    }

    /// Records dropped for one reason.
    pub fn dropped(&self, reason: Dropped) -> u64 {
        self.records.dropped(reason)
    }

    /// Records lost after they were received completely: dropped, or lost by a bug in Staunch.
    pub fn lost(&self) -> u64 {
        self.records.lost()
    }

    /// The balance now. `in_flight` is the number of records in the exchanges, counted by them.
    pub fn sum(&self, in_flight: u64) -> RecordSum {
        self.records.sum(in_flight)
    }

    /// Every reason with its count, including those at 0.
    pub fn losses(&self) -> Losses {
        self.records.losses()
    }

    /// True once for each reason: the caller then quotes the line in the log; later lines are only counted. The account
    /// outlives sockets, connections and reloads, so none of them resets this.
    pub fn first_complaint(&self, reason: Reject) -> bool {
        !self.complained[reason.index()].swap(true, Relaxed)
    }

    /// Resets the reason: the line was not quoted, so a later line may be.
    pub fn put_complaint_back(&self, reason: Reject) {
        self.complained[reason.index()].store(false, Relaxed);
    }

    /// Stores the name of a new series rejected at `series_max`, if it is the first one.
    pub fn note_refused_series(&self, name: impl FnOnce() -> String) {
        self.refused_series.get_or_init(name);
    }

    /// The first new series rejected at `series_max` since the start.
    pub fn refused_series(&self) -> Option<&str> {
        self.refused_series.get().map(String::as_str)
    }

    /// Counts a connection with acknowledgements that the daemon closed.
    pub fn fail_acks(&self, reason: Unacked) {
        self.acks_failed[reason.index()].fetch_add(1, Relaxed);
    }

    /// Connections with acknowledgements that the daemon closed, for one reason.
    pub fn acks_failed(&self, reason: Unacked) -> u64 {
        self.acks_failed[reason.index()].load(Relaxed)
    }

    /// Counters that are not part of the balance. The number of open connections belongs to one process and is not
    /// included.
    fn beside(&self) -> Named<'_, AtomicU64> {
        let mut beside: Named<'_, AtomicU64> = vec![
            ("packets", "", &self.packets),
            ("bytes", "", &self.bytes),
            ("lines", "", &self.lines),
            ("packets_empty", "", &self.packets_empty),
            ("packets_truncated", "", &self.packets_truncated),
            ("kernel_dropped", "", &self.kernel_dropped),
            ("read_errors", "", &self.read_errors),
            ("connections_accepted", "", &self.connections_accepted),
            ("connections_refused", "", &self.connections_refused),
            ("connections_refused_per_peer", "", &self.connections_refused_per_peer),
            ("connections_replaced", "", &self.connections_replaced),
            ("connections_broken", "", &self.connections_broken),
            ("handshakes_failed", "", &self.handshakes_failed),
            ("glued_tag_fields", "", &self.glued_tag_fields),
            ("event_fields_ignored", "", &self.event_fields_ignored),
            ("lines_acked", "", &self.lines_acked),
        ];
        beside.extend(Unacked::ALL.iter().map(|r| ("acks_failed", r.word(), &self.acks_failed[r.index()])));
        beside
    }

    /// All figures that another process needs to continue this account, once no record is in flight.
    pub fn figures(&self) -> Vec<Figure> {
        let all = self.records.outcomes().into_iter().chain(self.beside());
        let figures = all.map(|(family, reason, count)| Figure::new(family, reason, count.load(Relaxed), 0));
        let mut figures: Vec<Figure> = figures.filter(|figure| figure.count > 0).collect();
        figures.push(Figure::new("last_packet_s", "", self.last_packet_s.load(Relaxed), 0));
        figures
    }

    /// Continues the account of another process. An unknown figure is left out of both sides of the balance, so that it
    /// still holds.
    pub fn go_on_with(&self, figures: &[Figure]) {
        for figure in figures {
            if self.records.go_on_with(figure) {
                continue;
            }
            if let Some(count) = find(&self.beside(), figure) {
                count.fetch_add(figure.count, Relaxed);
            } else if figure.family == "last_packet_s" {
                self.last_packet_s.fetch_max(figure.count, Relaxed);
            }
        }
    }
}

#[test]
fn reading_during_a_counting_operation_returns_nothing() {
    let account = SourceAccount::default();
    let look = || account.undisturbed(|| account.packets.load(Relaxed));
    assert_eq!(look(), Some(0));
    let counting = account.counting();
    account.packets.fetch_add(1, Relaxed);
    assert_eq!(look(), None, "begun before the look");
    drop(counting);
    assert_eq!(look(), Some(1));
    assert_eq!(account.undisturbed(|| drop(account.counting())), None, "begun during the look");
}
