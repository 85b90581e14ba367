//! Watermark of a queue in memory: every block below it has its outcome, in whatever order the blocks end.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Each entry reports here when it ends, on any thread.
#[derive(Debug, Default)]
pub(crate) struct SettledWatermark(Mutex<Settled>);

#[derive(Debug, Default)]
struct Settled {
    /// Every block below this number has its outcome.
    settled: u64,
    /// Blocks above the watermark that have their outcome.
    ahead: BTreeSet<u64>,
}

impl SettledWatermark {
    /// Every block below `settled` has its outcome.
    pub(super) fn at(settled: u64) -> SettledWatermark {
        SettledWatermark(Mutex::new(Settled { settled, ahead: BTreeSet::new() }))
    }

    /// A block got its outcome.
    pub(super) fn settle(&self, number: u64) {
        // A panic elsewhere leaves a set that misses one number at most: the watermark then stays where it is.
        let mut watermark = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if number != watermark.settled {
            watermark.ahead.insert(number);
            return;
        }
        watermark.settled += 1;
        while watermark.ahead.first() == Some(&watermark.settled) {
            watermark.ahead.pop_first();
            watermark.settled += 1;
        }
    }

    /// Every block below this number has its outcome.
    pub(super) fn settled(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).settled
    }
}

#[test]
fn the_watermark_advances_over_blocks_settled_out_of_order() {
    let watermark = SettledWatermark::default();
    for (number, settled) in [(2, 0), (1, 0), (0, 3), (4, 3), (3, 5)] {
        watermark.settle(number);
        assert_eq!(watermark.settled(), settled, "after {number}");
    }
}
