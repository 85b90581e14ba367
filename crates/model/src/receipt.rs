//! Receipts: the promise that a batch of records will get its outcome.

use std::sync::Arc;

use crate::{Internal, Outcome, SourceAccount};

/// Stands for a number of received records that have no outcome yet.
///
/// It cannot be cloned, may be split with a checked count, and is consumed by [`Receipt::settle`]. Dropping
/// one that still stands for records is a bug of ours: a panic in debug builds (and so in the simulator),
/// outcome `internal` (`receipt_dropped`) in release.
#[must_use = "a receipt must be settled: its records would have no outcome"]
#[derive(Debug)]
pub struct Receipt {
    account: Arc<SourceAccount>,
    records: u64,
}

impl Receipt {
    /// Counts `records` as received and promises them an outcome.
    pub fn receive(account: &Arc<SourceAccount>, records: u64) -> Receipt {
        account.receive(records);
        Receipt { account: Arc::clone(account), records }
    }

    /// Records that it stands for.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The account that they are counted in.
    pub fn account(&self) -> &Arc<SourceAccount> {
        &self.account
    }

    /// Cuts `records` off into a receipt of their own.
    ///
    /// # Panics
    /// When it stands for fewer: the caller counted wrong.
    pub fn split(&mut self, records: u64) -> Receipt {
        assert!(records <= self.records, "split {records} off a receipt for {}", self.records);
        self.records -= records;
        Receipt { account: Arc::clone(&self.account), records }
    }

    /// Ends it: all its records get `outcome`.
    pub fn settle(mut self, outcome: Outcome) {
        self.account.settle(outcome, self.records);
        self.records = 0;
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        if self.records == 0 {
            return;
        }
        self.account.settle(Outcome::Internal(Internal::ReceiptDropped), self.records);
        debug_assert!(std::thread::panicking(), "a receipt for {} records was dropped", self.records);
    }
}

#[test]
fn split_receipts_add_up() {
    let account = Arc::new(SourceAccount::default());
    let mut whole = Receipt::receive(&account, 10);
    let part = whole.split(4);
    assert_eq!((whole.records(), part.records()), (6, 4));
    part.settle(Outcome::Filtered);
    assert!(account.sum(6).holds());
    whole.settle(Outcome::Aggregated);
    assert!(account.sum(0).holds());
}

#[test]
#[should_panic(expected = "a receipt for 3 records was dropped")]
#[cfg(debug_assertions)]
fn a_dropped_receipt_is_a_bug() {
    drop(Receipt::receive(&Arc::new(SourceAccount::default()), 3));
}

#[test]
#[should_panic(expected = "split 4 off a receipt for 3")]
fn a_split_is_checked() {
    let account = Arc::new(SourceAccount::default());
    let mut receipt = Receipt::receive(&account, 3);
    let _too_many = receipt.split(4);
}
