//! Accounts: the received records, their outcomes, and the two balances that must always hold (design §5).
//!
//! Each source and each output has one account, written by the threads that move the records, and read by the API. The
//! counters are relaxed atomics, updated once per batch, never once per record. A reader may see a change in progress,
//! so the balances are asserted only while the writers are idle.

mod figure;
mod output;
mod records;
mod source;

pub use figure::{Figure, Losses};
pub use output::{OutputAccount, OutputSum};
pub use records::{RecordAccount, RecordSum};
pub use source::SourceAccount;

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::{CopyOutcome, Dropped, Filtered, Outcome, Reject, Unacked};

    #[test]
    fn an_account_is_balanced_only_when_every_record_has_one_outcome() {
        let account = SourceAccount::default();
        account.receive(10);
        account.settle(Outcome::Aggregated, 6);
        account.settle(Outcome::Rejected(Reject::BadValue), 1);
        assert!(!account.sum(0).holds());
        assert!(account.sum(3).holds());
        account.settle(Outcome::Dropped(Dropped::SeriesMax), 3);
        assert!(account.sum(0).holds());
        let losses: Vec<_> = account.losses().into_iter().filter(|loss| loss.2 > 0).collect();
        assert_eq!(losses, [("rejected", "bad_value", 1), ("dropped", "series_max", 3)]);

        let account = OutputAccount::default();
        account.route(5, 50);
        account.settle(CopyOutcome::Delivered, 2, 20);
        assert!(account.sum(3).holds() && !account.sum(2).holds());
        assert_eq!((account.copies_queued(), account.copies_waiting_high()), (3, 5));
        account.pass(CopyOutcome::Filtered(Filtered::ByName), 1, 7);
        account.settle(CopyOutcome::Dropped(Dropped::TooOld), 2, 20);
        assert!(!account.sum(0).holds() && account.lost_here() == 2);
        account.settle(CopyOutcome::Moved, 1, 10);
        assert!(account.sum(0).holds() && account.lost_here() == 2, "moved copies are not lost");
        assert_eq!((account.bytes_routed(), account.bytes_delivered()), (57, 20));
        let lost: Vec<_> = account.losses_bytes().into_iter().filter(|loss| loss.2 > 0).collect();
        assert_eq!(lost, [("dropped", "too_old", 20), ("filtered", "by_name", 7)]);
    }

    #[test]
    fn an_account_continued_by_another_process_is_balanced() {
        let unknown = Figure::new("dropped", "a reason of another version", 5, 50);
        let account = SourceAccount::default();
        account.receive(10);
        account.settle(Outcome::Aggregated, 6);
        account.settle(Outcome::Dropped(Dropped::SeriesMax), 4);
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
        assert_eq!((sum.received, sum.aggregated, next.dropped(Dropped::SeriesMax)), (11, 6, 4));
        assert_eq!((next.kernel_dropped.load(Relaxed), next.connections_open.load(Relaxed)), (3, 0));
        let lines = (next.lines_acked.load(Relaxed), next.lines_unacked.load(Relaxed));
        assert_eq!((lines, next.acks_failed(Unacked::Stopped)), ((7, 0), 1));

        let account = OutputAccount::default();
        account.route(9, 90);
        account.settle(CopyOutcome::Delivered, 5, 50);
        account.settle(CopyOutcome::Moved, 1, 10);
        account.resent.fetch_add(2, Relaxed);
        account.in_doubt.fetch_add(4, Relaxed);
        account.in_doubt_bytes.fetch_add(40, Relaxed);
        let next = OutputAccount::default();
        next.go_on_with(&account.figures());
        next.go_on_with(&[unknown]);
        assert!(next.sum(0).holds() && next.sum(0).copies == 6, "three are still queued: {:?}", next.sum(0));
        next.route(3, 30);
        assert_eq!((next.bytes_routed(), next.bytes_delivered(), next.copies_waiting_high()), (90, 50, 9));
        let sent = [&next.resent, &next.in_doubt, &next.in_doubt_bytes].map(|count| count.load(Relaxed));
        assert_eq!(sent, [2, 4, 40]);
    }
}
