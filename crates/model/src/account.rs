//! The account: what came in, how it ended, and the two sums that must always hold (design §5).
//!
//! One account per source and one per output, written by the threads that carry the records and read by the
//! API. The counters are relaxed atomics, added to once per batch, never once per record; a reader may see a
//! sum in mid-change, so the sums are asserted only while the writers rest.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::{CopyOutcome, Filtered, Internal, Outcome, Refused, Reject, Shed, Unacked};

/// Counts of one source. Unit: records, unless a field says packets or bytes.
#[derive(Debug)]
pub struct SourceAccount {
    received: AtomicU64,
    rejected: [AtomicU64; Reject::COUNT],
    shed: [AtomicU64; Shed::COUNT],
    duplicate: AtomicU64,
    filtered: AtomicU64,
    aggregated: AtomicU64,
    routed: AtomicU64,
    internal: [AtomicU64; Internal::COUNT],
    /// Reasons that a line was quoted for already.
    complained: [AtomicBool; Reject::COUNT],
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
    /// Connections that were accepted.
    pub connections_accepted: AtomicU64,
    /// Connections that were turned away at `connections_max`.
    pub connections_refused: AtomicU64,
    /// Connections that ended in an error (reset, time-out).
    pub connections_broken: AtomicU64,
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

/// Counts of one output, in copies (records that were routed to it) and in the bytes of those copies.
#[derive(Debug, Default)]
pub struct OutputAccount {
    copies: Count,
    delivered: Count,
    shed: [Count; Shed::COUNT],
    refused: [Count; Refused::COUNT],
    filtered: [Count; Filtered::COUNT],
    expired: Count,
    internal: [Count; Internal::COUNT],
    /// Copies without an outcome.
    copies_waiting: AtomicU64,
    /// Most copies without an outcome so far.
    copies_waiting_high: AtomicU64,
    /// Memory held by the queue and what is in flight, in bytes.
    pub bytes_waiting: AtomicU64,
    /// Largest `bytes_waiting` so far.
    pub bytes_waiting_high: AtomicU64,
    /// Times that a connection was made.
    pub connects: AtomicU64,
    /// Times that connecting or sending failed.
    pub errors: AtomicU64,
    /// Copies sent a second time because the first may not have arrived.
    pub resent: AtomicU64,
    /// Copies that were on the way, wholly or in part, when their connection broke: each time it happened to them.
    pub in_doubt: AtomicU64,
    /// Bytes that had been written to connections that broke, and were not acknowledged.
    pub in_doubt_bytes: AtomicU64,
    /// Copies that were lost before they were in the queue.
    turned_away: AtomicU64,
    /// Tags left out of lines that were sent, because the output's form cannot hold them.
    pub tags_left_out: AtomicU64,
    /// Unix seconds of the last failure; 0 for none.
    pub last_error_s: AtomicU64,
}

/// Copies, and the bytes that they have on the wire.
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

/// The sum of one source at one moment: `received` equals the sum of all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceSum {
    /// Records received, good or bad.
    pub received: u64,
    /// Refused at intake, all reasons.
    pub rejected: u64,
    /// Lost at a limit, all reasons.
    pub shed: u64,
    /// Copies merged.
    pub duplicate: u64,
    /// Wanted by no route.
    pub filtered: u64,
    /// Became part of an aggregate.
    pub aggregated: u64,
    /// Sent on as they are.
    pub routed: u64,
    /// Lost by a bug of ours.
    pub internal: u64,
    /// Between intake and shard.
    pub in_flight: u64,
}

impl SourceSum {
    /// True when every received record has exactly one outcome.
    pub fn holds(&self) -> bool {
        self.received
            == self.rejected
                + self.shed
                + self.duplicate
                + self.filtered
                + self.aggregated
                + self.routed
                + self.internal
                + self.in_flight
    }
}

/// The sum of one output at one moment: `copies` equals the sum of all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputSum {
    /// Copies routed to the output.
    pub copies: u64,
    /// The endpoint has them.
    pub delivered: u64,
    /// Lost at a limit, all reasons.
    pub shed: u64,
    /// Not taken by the endpoint.
    pub refused: u64,
    /// Left out by the output's own stage.
    pub filtered: u64,
    /// Time ran out.
    pub expired: u64,
    /// Lost by a bug of ours.
    pub internal: u64,
    /// In the queue or on the way.
    pub waiting: u64,
}

impl OutputSum {
    /// True when every copy has exactly one outcome or still waits.
    pub fn holds(&self) -> bool {
        self.copies
            == self.delivered
                + self.shed
                + self.refused
                + self.filtered
                + self.expired
                + self.internal
                + self.waiting
    }
}

/// One reason with its count, for reports: (family such as `shed`, word such as `series_max`, count).
pub type Losses = Vec<(&'static str, &'static str, u64)>;

/// One figure of an account by its name, for whoever goes on with the account in another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// Family (`shed`, …), or the name of a figure that has no reasons.
    pub family: String,
    /// Reason; empty for none.
    pub reason: String,
    /// The count.
    pub count: u64,
    /// Bytes of those copies; 0 where bytes are not counted.
    pub bytes: u64,
}

impl Figure {
    /// A count under its name.
    pub fn new(family: &str, reason: &str, count: u64, bytes: u64) -> Figure {
        Figure { family: family.to_owned(), reason: reason.to_owned(), count, bytes }
    }
}

/// Figures with their names: (family, reason, the figure).
type Named<'a, T> = Vec<(&'static str, &'static str, &'a T)>;

fn find<'a, T>(named: &Named<'a, T>, wanted: &Figure) -> Option<&'a T> {
    let found = named.iter().find(|known| known.0 == wanted.family && known.1 == wanted.reason)?;
    Some(found.2)
}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

fn total(counts: &[AtomicU64]) -> u64 {
    counts.iter().map(|count| count.load(Relaxed)).sum()
}

impl Default for SourceAccount {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        SourceAccount {
            received: zero(),
            rejected: zeros(),
            shed: zeros(),
            duplicate: zero(),
            filtered: zero(),
            aggregated: zero(),
            routed: zero(),
            internal: zeros(),
            complained: std::array::from_fn(|_| AtomicBool::new(false)),
            packets: zero(),
            bytes: zero(),
            lines: zero(),
            packets_empty: zero(),
            packets_truncated: zero(),
            kernel_dropped: zero(),
            connections_accepted: zero(),
            connections_refused: zero(),
            connections_broken: zero(),
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
    /// Counts `records` as received. Each of them must be settled later, by [`Self::settle`] or a receipt.
    pub fn receive(&self, records: u64) {
        self.received.fetch_add(records, Relaxed);
    }

    /// Gives `records` received records their outcome.
    pub fn settle(&self, outcome: Outcome, records: u64) {
        let counter = match outcome {
            Outcome::Rejected(reason) => &self.rejected[reason.index()],
            Outcome::Shed(reason) => &self.shed[reason.index()],
            Outcome::Duplicate => &self.duplicate,
            Outcome::Filtered => &self.filtered,
            Outcome::Aggregated => &self.aggregated,
            Outcome::Routed => &self.routed,
            Outcome::Internal(reason) => &self.internal[reason.index()],
        };
        counter.fetch_add(records, Relaxed);
    }

    /// True once for each reason: whoever gets it quotes the line, later ones are only counted. The account outlives
    /// sockets, connections and reloads, so none of them begins anew.
    pub fn first_complaint(&self, reason: Reject) -> bool {
        !self.complained[reason.index()].swap(true, Relaxed)
    }

    /// Records refused for one reason.
    pub fn rejected(&self, reason: Reject) -> u64 {
        self.rejected[reason.index()].load(Relaxed)
    }

    /// Records shed for one reason.
    pub fn shed(&self, reason: Shed) -> u64 {
        self.shed[reason.index()].load(Relaxed)
    }

    /// Records that were lost after they had come in whole: shed, or lost by a bug of ours.
    pub fn lost(&self) -> u64 {
        total(&self.shed) + total(&self.internal)
    }

    /// Counts a connection that wants acknowledgements and was ended by us.
    pub fn fail_acks(&self, reason: Unacked) {
        self.acks_failed[reason.index()].fetch_add(1, Relaxed);
    }

    /// Connections that want acknowledgements and were ended by us for one reason.
    pub fn acks_failed(&self, reason: Unacked) -> u64 {
        self.acks_failed[reason.index()].load(Relaxed)
    }

    /// The sum now. `in_flight` is what the exchanges hold, counted by them.
    pub fn sum(&self, in_flight: u64) -> SourceSum {
        SourceSum {
            received: self.received.load(Relaxed),
            rejected: total(&self.rejected),
            shed: total(&self.shed),
            duplicate: self.duplicate.load(Relaxed),
            filtered: self.filtered.load(Relaxed),
            aggregated: self.aggregated.load(Relaxed),
            routed: self.routed.load(Relaxed),
            internal: total(&self.internal),
            in_flight,
        }
    }

    /// What records ended as: the parts of the sum.
    fn outcomes(&self) -> Named<'_, AtomicU64> {
        let mut outcomes: Named<'_, AtomicU64> = vec![
            ("duplicate", "", &self.duplicate),
            ("filtered", "", &self.filtered),
            ("aggregated", "", &self.aggregated),
            ("routed", "", &self.routed),
        ];
        outcomes.extend(Reject::ALL.iter().map(|r| ("rejected", r.word(), &self.rejected[r.index()])));
        outcomes.extend(Shed::ALL.iter().map(|r| ("shed", r.word(), &self.shed[r.index()])));
        outcomes.extend(Internal::ALL.iter().map(|r| ("internal", r.word(), &self.internal[r.index()])));
        outcomes
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
            ("connections_accepted", "", &self.connections_accepted),
            ("connections_refused", "", &self.connections_refused),
            ("connections_broken", "", &self.connections_broken),
            ("glued_tag_fields", "", &self.glued_tag_fields),
            ("event_fields_ignored", "", &self.event_fields_ignored),
            ("lines_acked", "", &self.lines_acked),
        ];
        beside.extend(Unacked::ALL.iter().map(|r| ("acks_failed", r.word(), &self.acks_failed[r.index()])));
        beside
    }

    /// Everything that another process needs to go on with this account, once nothing is in flight.
    pub fn figures(&self) -> Vec<Figure> {
        let all = self.outcomes().into_iter().chain(self.beside());
        let figures = all.map(|(family, reason, count)| Figure::new(family, reason, count.load(Relaxed), 0));
        let mut figures: Vec<Figure> = figures.filter(|figure| figure.count > 0).collect();
        figures.push(Figure::new("last_packet_s", "", self.last_packet_s.load(Relaxed), 0));
        figures
    }

    /// Goes on with the account of another process. A figure that is not known here is left out of both sides of the
    /// sum, which so holds in any case.
    pub fn go_on_with(&self, figures: &[Figure]) {
        for figure in figures {
            if let Some(count) = find(&self.outcomes(), figure) {
                count.fetch_add(figure.count, Relaxed);
                self.received.fetch_add(figure.count, Relaxed);
            } else if let Some(count) = find(&self.beside(), figure) {
                count.fetch_add(figure.count, Relaxed);
            } else if figure.family == "last_packet_s" {
                self.last_packet_s.fetch_max(figure.count, Relaxed);
            }
        }
    }

    /// Every reason with its count, those at 0 included.
    pub fn losses(&self) -> Losses {
        let mut losses = Losses::new();
        losses.extend(Reject::ALL.iter().map(|r| ("rejected", r.word(), self.rejected(*r))));
        losses.extend(Shed::ALL.iter().map(|r| ("shed", r.word(), self.shed(*r))));
        losses.extend(
            Internal::ALL.iter().map(|r| ("internal", r.word(), self.internal[r.index()].load(Relaxed))),
        );
        losses
    }
}

impl OutputAccount {
    /// Counts `copies` with `bytes` between them as routed to the output. Each must be settled later.
    pub fn route(&self, copies: u64, bytes: u64) {
        self.copies.add(copies, bytes);
        let waiting = self.copies_waiting.fetch_add(copies, Relaxed) + copies;
        self.copies_waiting_high.fetch_max(waiting, Relaxed);
    }

    /// Gives `copies` routed copies with `bytes` between them their outcome.
    pub fn settle(&self, outcome: CopyOutcome, copies: u64, bytes: u64) {
        self.count(outcome).add(copies, bytes);
        self.copies_waiting.fetch_sub(copies, Relaxed);
    }

    /// Counts copies that are routed and settled at once, without having waited.
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
            CopyOutcome::Shed(reason) => &self.shed[reason.index()],
            CopyOutcome::Refused(reason) => &self.refused[reason.index()],
            CopyOutcome::Filtered(reason) => &self.filtered[reason.index()],
            CopyOutcome::Expired => &self.expired,
            CopyOutcome::Internal(reason) => &self.internal[reason.index()],
        }
    }

    /// Copies shed for one reason.
    pub fn shed(&self, reason: Shed) -> u64 {
        self.shed[reason.index()].copies()
    }

    /// Copies left out for one reason.
    pub fn filtered(&self, reason: Filtered) -> u64 {
        self.filtered[reason.index()].copies()
    }

    /// Copies that were lost before they were in the queue.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Relaxed)
    }

    /// Copies that were lost without having been sent, whether or not they were in the queue.
    pub fn lost_here(&self) -> u64 {
        let total = |counts: &[Count]| -> u64 { counts.iter().map(Count::copies).sum() };
        total(&self.shed) + self.expired.copies() + total(&self.internal)
    }

    /// Copies that endpoints refused.
    pub fn refused(&self) -> u64 {
        self.refused.iter().map(Count::copies).sum()
    }

    /// Copies routed to it that have no outcome yet.
    pub fn copies_waiting(&self) -> u64 {
        self.copies_waiting.load(Relaxed)
    }

    /// Most copies that waited at one time.
    pub fn copies_waiting_high(&self) -> u64 {
        self.copies_waiting_high.load(Relaxed)
    }

    /// Bytes of all copies routed to it.
    pub fn bytes_routed(&self) -> u64 {
        self.copies.bytes()
    }

    /// Bytes of the copies that were delivered.
    pub fn bytes_delivered(&self) -> u64 {
        self.delivered.bytes()
    }

    /// The sum now. `waiting` is what the queue and its sender hold, counted by them.
    pub fn sum(&self, waiting: u64) -> OutputSum {
        let total = |counts: &[Count]| counts.iter().map(Count::copies).sum();
        OutputSum {
            copies: self.copies.copies(),
            delivered: self.delivered.copies(),
            shed: total(&self.shed),
            refused: total(&self.refused),
            filtered: total(&self.filtered),
            expired: self.expired.copies(),
            internal: total(&self.internal),
            waiting,
        }
    }

    /// What copies ended as: the parts of the sum.
    fn outcomes(&self) -> Named<'_, Count> {
        let mut outcomes: Named<'_, Count> =
            vec![("delivered", "", &self.delivered), ("expired", "", &self.expired)];
        outcomes.extend(Shed::ALL.iter().map(|r| ("shed", r.word(), &self.shed[r.index()])));
        outcomes.extend(Refused::ALL.iter().map(|r| ("refused", r.word(), &self.refused[r.index()])));
        outcomes.extend(Filtered::ALL.iter().map(|r| ("filtered", r.word(), &self.filtered[r.index()])));
        outcomes.extend(Internal::ALL.iter().map(|r| ("internal", r.word(), &self.internal[r.index()])));
        outcomes
    }

    /// Counts beside the sum.
    fn beside(&self) -> Named<'_, AtomicU64> {
        vec![
            ("connects", "", &self.connects),
            ("errors", "", &self.errors),
            ("resent", "", &self.resent),
            ("in_doubt", "", &self.in_doubt),
            ("in_doubt_bytes", "", &self.in_doubt_bytes),
            ("tags_left_out", "", &self.tags_left_out),
        ]
    }

    /// Highest values, and the time of the last failure.
    fn highs(&self) -> Named<'_, AtomicU64> {
        vec![
            ("waiting_high", "", &self.copies_waiting_high),
            ("bytes_waiting_high", "", &self.bytes_waiting_high),
            ("last_error_s", "", &self.last_error_s),
        ]
    }

    /// Everything that another process needs to go on with this account. Copies that wait are not part of it: they are
    /// counted as routed by whoever goes on with their queue.
    pub fn figures(&self) -> Vec<Figure> {
        let outcomes = self.outcomes().into_iter();
        let figures = outcomes
            .map(|(family, reason, count)| Figure::new(family, reason, count.copies(), count.bytes()));
        let beside = self.beside().into_iter().chain(self.highs());
        let beside =
            beside.map(|(family, reason, count)| Figure::new(family, reason, count.load(Relaxed), 0));
        figures.chain(beside).filter(|figure| figure.count > 0).collect()
    }

    /// Goes on with the account of another process. A figure that is not known here is left out of both sides of the
    /// sum, which so holds in any case.
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

    /// Every reason with its count of copies, those at 0 included.
    pub fn losses(&self) -> Losses {
        self.losses_by(Count::copies)
    }

    /// Every reason with the bytes of its copies, those at 0 included.
    pub fn losses_bytes(&self) -> Losses {
        self.losses_by(Count::bytes)
    }

    fn losses_by(&self, unit: fn(&Count) -> u64) -> Losses {
        let mut losses = Losses::new();
        losses.extend(Shed::ALL.iter().map(|r| ("shed", r.word(), unit(&self.shed[r.index()]))));
        losses.extend(Refused::ALL.iter().map(|r| ("refused", r.word(), unit(&self.refused[r.index()]))));
        losses.extend(Filtered::ALL.iter().map(|r| ("filtered", r.word(), unit(&self.filtered[r.index()]))));
        losses.extend(Internal::ALL.iter().map(|r| ("internal", r.word(), unit(&self.internal[r.index()]))));
        losses
    }
}

#[test]
fn a_sum_holds_only_when_every_record_has_one_outcome() {
    let account = SourceAccount::default();
    account.receive(10);
    account.settle(Outcome::Aggregated, 6);
    account.settle(Outcome::Rejected(Reject::BadValue), 1);
    assert!(!account.sum(0).holds());
    assert!(account.sum(3).holds());
    account.settle(Outcome::Shed(Shed::SeriesMax), 3);
    assert!(account.sum(0).holds());
    let losses: Vec<_> = account.losses().into_iter().filter(|loss| loss.2 > 0).collect();
    assert_eq!(losses, [("rejected", "bad_value", 1), ("shed", "series_max", 3)]);

    let account = OutputAccount::default();
    account.route(5, 50);
    account.settle(CopyOutcome::Delivered, 2, 20);
    assert!(account.sum(3).holds() && !account.sum(2).holds());
    assert_eq!((account.copies_waiting(), account.copies_waiting_high()), (3, 5));
    account.pass(CopyOutcome::Filtered(Filtered::ByName), 1, 7);
    account.settle(CopyOutcome::Shed(Shed::TooOld), 3, 30);
    assert!(account.sum(0).holds());
    assert_eq!((account.bytes_routed(), account.bytes_delivered()), (57, 20));
    let lost: Vec<_> = account.losses_bytes().into_iter().filter(|loss| loss.2 > 0).collect();
    assert_eq!(lost, [("shed", "too_old", 30), ("filtered", "by_name", 7)]);
}

#[test]
fn an_account_goes_on_in_another_process_and_its_sum_holds() {
    let unknown = Figure::new("shed", "a reason of another version", 5, 50);
    let account = SourceAccount::default();
    account.receive(10);
    account.settle(Outcome::Aggregated, 6);
    account.settle(Outcome::Shed(Shed::SeriesMax), 4);
    account.kernel_dropped.fetch_add(3, Relaxed);
    account.connections_open.fetch_add(1, Relaxed);
    account.lines_acked.fetch_add(7, Relaxed);
    account.lines_unacked.fetch_add(1, Relaxed);
    account.fail_acks(Unacked::Stopped);
    let next = SourceAccount::default();
    next.receive(1);
    next.settle(Outcome::Rejected(Reject::NoName), 1);
    next.go_on_with(&account.figures());
    next.go_on_with(std::slice::from_ref(&unknown));
    let sum = next.sum(0);
    assert!(sum.holds(), "{sum:?}");
    assert_eq!((sum.received, sum.aggregated, next.shed(Shed::SeriesMax)), (11, 6, 4));
    assert_eq!((next.kernel_dropped.load(Relaxed), next.connections_open.load(Relaxed)), (3, 0));
    let lines = (next.lines_acked.load(Relaxed), next.lines_unacked.load(Relaxed));
    assert_eq!((lines, next.acks_failed(Unacked::Stopped)), ((7, 0), 1));

    let account = OutputAccount::default();
    account.route(9, 90);
    account.settle(CopyOutcome::Delivered, 5, 50);
    account.settle(CopyOutcome::Shed(Shed::TooOld), 1, 10);
    account.resent.fetch_add(2, Relaxed);
    account.in_doubt.fetch_add(4, Relaxed);
    account.in_doubt_bytes.fetch_add(40, Relaxed);
    let next = OutputAccount::default();
    next.go_on_with(&account.figures());
    next.go_on_with(&[unknown]);
    assert!(next.sum(0).holds() && next.sum(0).copies == 6, "three still wait: {:?}", next.sum(0));
    next.route(3, 30);
    assert_eq!((next.bytes_routed(), next.bytes_delivered(), next.copies_waiting_high()), (90, 50, 9));
    let sent = [&next.resent, &next.in_doubt, &next.in_doubt_bytes].map(|count| count.load(Relaxed));
    assert_eq!(sent, [2, 4, 40]);
}
