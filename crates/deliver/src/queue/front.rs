//! How far everything that a queue in memory took has its outcome, in whatever order the entries end.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Told by each entry when it ends, on whatever thread.
#[derive(Debug, Default)]
pub(crate) struct SettledFront(Mutex<Front>);

#[derive(Debug, Default)]
struct Front {
    /// Every block before it has its outcome.
    settled: u64,
    /// Those behind it that have theirs.
    ahead: BTreeSet<u64>,
}

impl SettledFront {
    /// Everything before `settled` has its outcome.
    pub(super) fn at(settled: u64) -> SettledFront {
        SettledFront(Mutex::new(Front { settled, ahead: BTreeSet::new() }))
    }

    /// A block has its outcome.
    pub(super) fn done(&self, number: u64) {
        // A panic elsewhere leaves a set behind that misses one number at most: the front then stays where it is.
        let mut front = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if number != front.settled {
            front.ahead.insert(number);
            return;
        }
        front.settled += 1;
        while front.ahead.first() == Some(&front.settled) {
            front.ahead.pop_first();
            front.settled += 1;
        }
    }

    /// Every block before it has its outcome.
    pub(super) fn settled(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).settled
    }
}

#[test]
fn the_front_moves_over_what_was_settled_ahead_of_it() {
    let front = SettledFront::default();
    for (number, settled) in [(2, 0), (1, 0), (0, 3), (4, 3), (3, 5)] {
        front.done(number);
        assert_eq!(front.settled(), settled, "after {number}");
    }
}
