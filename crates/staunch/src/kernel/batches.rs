//! The number of packets in each receiving call: full calls mean that the reader is too slow.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Upper limits of the classes, in packets. No call returns more than the last one.
pub const BATCH_BOUNDS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// Counts of calls by the number of their packets. Written by one thread, read by any.
#[derive(Debug, Default)]
pub struct BatchSizes {
    calls: [AtomicU64; BATCH_BOUNDS.len()],
    packets: AtomicU64,
}

/// The counts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchCounts {
    /// Calls with at most as many packets as the same entry of [`BATCH_BOUNDS`]; the last entry counts all calls.
    pub calls_up_to: [u64; BATCH_BOUNDS.len()],
    /// Packets of all calls.
    pub packets: u64,
}

impl BatchSizes {
    /// Counts one call with `packets` packets. A call without packets is not counted.
    #[inline]
    pub fn count(&self, packets: usize) {
        if packets == 0 {
            return;
        }
        debug_assert!(packets <= BATCH_BOUNDS[BATCH_BOUNDS.len() - 1], "{packets} packets in one call");
        let class = packets.next_power_of_two().trailing_zeros() as usize;
        self.calls[class.min(BATCH_BOUNDS.len() - 1)].fetch_add(1, Relaxed);
        self.packets.fetch_add(packets as u64, Relaxed);
    }

    /// The counts now.
    pub fn counts(&self) -> BatchCounts {
        let mut calls = 0;
        let calls_up_to = std::array::from_fn(|class| {
            calls += self.calls[class].load(Relaxed);
            calls
        });
        BatchCounts { calls_up_to, packets: self.packets.load(Relaxed) }
    }
}

#[test]
fn each_call_is_counted_in_the_first_class_that_fits() {
    for packets in 0..=256 {
        let sizes = BatchSizes::default();
        sizes.count(packets);
        let want = BATCH_BOUNDS.map(|bound| u64::from(packets > 0 && packets <= bound));
        assert_eq!(
            sizes.counts(),
            BatchCounts { calls_up_to: want, packets: packets as u64 },
            "{packets} packets"
        );
    }
    let sizes = BatchSizes::default();
    (1..=256).for_each(|packets| sizes.count(packets));
    let want = BatchCounts { calls_up_to: BATCH_BOUNDS.map(|bound| bound as u64), packets: 256 * 257 / 2 };
    assert_eq!(sizes.counts(), want);
}
