//! A source's account: what came in, and how each record of it ended.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};

use super::records::{RecordAccount, RecordSum, zeros};
use super::{Figure, Losses, Named, find};
use crate::{Dropped, Outcome, Reject, Unacked};

/// Counts of one source. Unit: records, unless a field says packets or bytes.
#[derive(Debug)]
pub struct SourceAccount {
    records: RecordAccount,
    /// Reasons that a line was quoted for already.
    complained: [AtomicBool; Reject::COUNT],
    /// The first new series that `series_max` refused, as text for the log.
    refused_series: OnceLock<String>,
    /// Times that somebody began to count what belongs together, and was done with it.
    begun: AtomicU64,
    done: AtomicU64,
    /// Datagrams, or reads that gave at least one whole line.
    pub packets: AtomicU64,
    /// Bytes read.
    pub bytes: AtomicU64,
    /// Lines read, good or bad.
    pub lines: AtomicU64,
    /// Datagrams of no byte.
    pub packets_empty: AtomicU64,
    /// Datagrams that were longer than the buffer; what was read of them still counts.
    pub packets_truncated: AtomicU64,
    /// Datagrams that the kernel dropped because the receive buffer was full.
    pub kernel_dropped: AtomicU64,
    /// Attempts to read a datagram socket that failed; nothing that waited was lost by them.
    pub read_errors: AtomicU64,
    /// Connections that were accepted.
    pub connections_accepted: AtomicU64,
    /// Connections that were turned away at `max_connections`, or at the sources' share of the descriptors.
    pub connections_refused: AtomicU64,
    /// Connections that were turned away at `max_connections_per_peer`, or because their peer had half of the sources'
    /// descriptors.
    pub connections_refused_per_peer: AtomicU64,
    /// Connections that were silent for long, and gave their place to one of a peer that had fewer.
    pub connections_replaced: AtomicU64,
    /// Connections that ended in an error (reset, time-out).
    pub connections_broken: AtomicU64,
    /// Connections that ended before their encryption began.
    pub handshakes_failed: AtomicU64,
    /// Connections open now.
    pub connections_open: AtomicU64,
    /// Samples whose last tag looks like a DogStatsD field that was glued to it (`etsy` only).
    pub glued_tag_fields: AtomicU64,
    /// Optional fields of events and checks that were not understood.
    pub event_fields_ignored: AtomicU64,
    /// Unix seconds at which the last packet came; 0 before the first.
    pub last_packet_s: AtomicU64,
    /// Lines (frames: frames) that were acknowledged to their clients.
    pub lines_acked: AtomicU64,
    /// Lines received on connections that are open, or were until now, and not acknowledged yet.
    pub lines_unacked: AtomicU64,
    /// Connections that want acknowledgements and were ended by us.
    acks_failed: [AtomicU64; Unacked::COUNT],
}

/// Somebody is counting: see [`SourceAccount::counting`].
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
    /// What is counted until this is dropped belongs together: whoever looks in between by [`Self::undisturbed`] sees all
    /// of it or nothing. For those who count on another thread than the one that settles.
    pub fn counting(&self) -> Counting<'_> {
        self.begun.fetch_add(1, Relaxed);
        fence(Release);
        Counting(&self.done)
    }

    /// What `look` sees, if nobody was in the middle of [counting](Self::counting) meanwhile.
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

    /// Gives `records` received records their outcome.
    #[inline]
    pub fn settle(&self, outcome: Outcome, records: u64) {
        self.records.settle(outcome, records);
    }

    /// Records refused for one reason.
    pub fn rejected(&self, reason: Reject) -> u64 {
        self.records.rejected(reason)
    }

    /// Records dropped for one reason.
    pub fn dropped(&self, reason: Dropped) -> u64 {
        self.records.dropped(reason)
    }

    /// Records that were lost after they had come in whole: dropped, or lost by a bug of ours.
    pub fn lost(&self) -> u64 {
        self.records.lost()
    }

    /// The sum now. `in_flight` is what the exchanges hold, counted by them.
    pub fn sum(&self, in_flight: u64) -> RecordSum {
        self.records.sum(in_flight)
    }

    /// Every reason with its count, those at 0 included.
    pub fn losses(&self) -> Losses {
        self.records.losses()
    }

    /// True once for each reason: whoever gets it quotes the line, later ones are only counted. The account outlives
    /// sockets, connections and reloads, so none of them begins anew.
    pub fn first_complaint(&self, reason: Reject) -> bool {
        !self.complained[reason.index()].swap(true, Relaxed)
    }

    /// The complaint was not made: the next bad line may make it, with more to say.
    pub fn put_complaint_back(&self, reason: Reject) {
        self.complained[reason.index()].store(false, Relaxed);
    }

    /// Notes the name of a new series that `series_max` refused, if it is the first one.
    pub fn note_refused_series(&self, name: impl FnOnce() -> String) {
        self.refused_series.get_or_init(name);
    }

    /// The first new series that `series_max` refused since the start.
    pub fn refused_series(&self) -> Option<&str> {
        self.refused_series.get().map(String::as_str)
    }

    /// Counts a connection that wants acknowledgements and was ended by us.
    pub fn fail_acks(&self, reason: Unacked) {
        self.acks_failed[reason.index()].fetch_add(1, Relaxed);
    }

    /// Connections that want acknowledgements and were ended by us for one reason.
    pub fn acks_failed(&self, reason: Unacked) -> u64 {
        self.acks_failed[reason.index()].load(Relaxed)
    }

    /// Counts beside the sum. What is open now belongs to a process and is none of them.
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

    /// Everything that another process needs to go on with this account, once nothing is in flight.
    pub fn figures(&self) -> Vec<Figure> {
        let all = self.records.outcomes().into_iter().chain(self.beside());
        let figures = all.map(|(family, reason, count)| Figure::new(family, reason, count.load(Relaxed), 0));
        let mut figures: Vec<Figure> = figures.filter(|figure| figure.count > 0).collect();
        figures.push(Figure::new("last_packet_s", "", self.last_packet_s.load(Relaxed), 0));
        figures
    }

    /// Goes on with the account of another process. A figure that is not known here is left out of both sides of the
    /// sum, which so holds in any case.
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
fn a_look_in_the_middle_of_counting_is_none() {
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
