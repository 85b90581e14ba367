//! What comparing, hashing and computing have cost since the budget was last charged for it.
//!
//! Values can share their parts: forty vectors, each of which has the one before it twice, are small in memory, and a trillion of values to
//! a walk through them. Equality, hashes and orders are asked for deep inside of collections, where no budget is at
//! hand, so each thread counts what they look at. The machine charges its budget after each function ([`take`]), and ends the
//! evaluation if it was too much. Until then those that ask get a wrong answer, but quickly.

use std::cell::Cell;

/// Most values that are looked at between two charges: as many as a collection has at most.
pub const EFFORT_MAX: u64 = 1_000_000;
/// The least effort that is past the limit.
pub const EFFORT_PAST: u64 = EFFORT_MAX + 1;
/// Values that are looked at for one step of a budget.
pub const EFFORT_PER_STEP: u64 = 8;

thread_local! {
    static SPENT: Cell<u64> = const { Cell::new(0) };
}

/// Counts values that are about to be looked at; whether that is within the limit.
pub fn spend(values: usize) -> bool {
    let spent = SPENT.get().saturating_add(values as u64);
    SPENT.set(spent);
    spent <= EFFORT_MAX
}

/// What was spent since the last call.
pub fn take() -> u64 {
    SPENT.replace(0)
}

#[test]
fn effort_has_a_limit_until_it_is_taken() {
    assert_eq!(take(), 0);
    assert!(spend(EFFORT_MAX as usize));
    assert!(!spend(1) && !spend(0));
    assert_eq!((take(), take()), (EFFORT_MAX + 1, 0));
    assert!(spend(usize::MAX) == (usize::MAX as u64 <= EFFORT_MAX));
    take();
}
