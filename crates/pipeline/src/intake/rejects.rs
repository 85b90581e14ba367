//! Settles rejected records of a read.

use model::{Outcome, Reject, SourceAccount};

/// Settles refused records, by [`Reject::index`]; returns their number.
pub(crate) fn settle_rejects(account: &SourceAccount, rejects: &[u64; Reject::COUNT]) -> u64 {
    let bad = rejects.iter().sum();
    if bad > 0 {
        account.receive(bad);
        for reason in Reject::ALL {
            let records = rejects[reason.index()];
            if records > 0 {
                account.settle(Outcome::Rejected(*reason), records);
            }
        }
    }
    bad
}
