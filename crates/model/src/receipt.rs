//! Receipts: each batch of received records must get an outcome.

use std::sync::Arc;

use crate::{Internal, Outcome, SourceAccount};

/// A number of received records that have no outcome yet.
///
/// It cannot be cloned, can be split with a checked count, and is consumed by [`Receipt::settle`]. Dropping one that
/// still has records is a bug: a panic in debug builds (and so in the simulator), outcome `internal`
/// (`receipt_dropped`) in release builds.
#[must_use = "a receipt must be settled: its records would have no outcome"]
#[derive(Debug)]
pub struct Receipt {
    account: Arc<SourceAccount>,
    records: u64,
}

impl Receipt {
    /// Counts `records` as received and returns their receipt.
    #[inline]
    pub fn receive(account: &Arc<SourceAccount>, records: u64) -> Receipt {
        account.receive(records);
        Receipt { account: Arc::clone(account), records }
    }

    /// Number of its records.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The account that counts them.
    pub fn account(&self) -> &Arc<SourceAccount> {
        &self.account
    }

    /// Splits `records` off into a receipt of their own.
    ///
    /// # Panics
    /// When it has fewer: the caller counted wrong.
    pub fn split(&mut self, records: u64) -> Receipt {
        assert!(records <= self.records, "split {records} off a receipt for {}", self.records);
        self.records -= records;
        Receipt { account: Arc::clone(&self.account), records }
    }

    /// Consumes it: all its records get `outcome`.
    #[inline]
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
fn dropping_an_unsettled_receipt_panics() {
    drop(Receipt::receive(&Arc::new(SourceAccount::default()), 3));
}

#[test]
#[should_panic(expected = "split 4 off a receipt for 3")]
fn splitting_off_too_many_records_panics() {
    let account = Arc::new(SourceAccount::default());
    let mut receipt = Receipt::receive(&account, 3);
    let _too_many = receipt.split(4);
}
