//! Limit on backtracking for one record, shared by all expressions.
//!
//! Each search has limits of its own (`backtracking`), but a plan may have any number of expressions, and a sender
//! can choose a name that brings each of them close to its limits. A search that ends quickly in a short name costs
//! no more than one of the linear engine and is not counted. Other searches draw from the record's budget, and give
//! up when it is used up.
//! Not here: which searches are counted.
//! Invariant: counted searches go over at most [`TOGETHER_BYTES_MAX`] of one record.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum bytes that counted searches may go over in one name, or in the rest of one line.
const TOGETHER_BYTES_MAX: usize = 16 << 10;

/// Budget left for the current record. Clones share it; they belong to one router. It is unlimited until
/// [`Budget::begin`].
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<AtomicUsize>);

impl Default for Budget {
    fn default() -> Budget {
        Budget(Arc::new(AtomicUsize::new(usize::MAX)))
    }
}

impl Budget {
    /// Starts the next record.
    pub(super) fn begin(&self) {
        self.0.store(TOGETHER_BYTES_MAX, Relaxed);
    }

    /// Takes bytes from the budget; false when too few are left.
    pub(super) fn take(&self, bytes: usize) -> bool {
        // One thread evaluates the statements of a router, and routers never share a budget: no other take happens
        // between load and store.
        let left = self.0.load(Relaxed);
        self.0.store(left.saturating_sub(bytes), Relaxed);
        left >= bytes
    }
}

#[test]
fn a_used_up_budget_is_refilled_at_the_next_record() {
    let budget = Budget::default();
    assert!(budget.take(TOGETHER_BYTES_MAX) && budget.take(TOGETHER_BYTES_MAX), "no record, no limit");
    budget.begin();
    assert!(budget.clone().take(TOGETHER_BYTES_MAX - 1) && budget.take(1) && !budget.take(1));
    budget.begin();
    assert!(!budget.take(TOGETHER_BYTES_MAX + 1) && !budget.take(1));
}
