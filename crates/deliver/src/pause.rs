//! Retry pauses (exponential backoff with jitter from a seed) and deadlines.

use model::{Now, SECOND_NS};

pub(crate) const MS_NS: u64 = SECOND_NS / 1000;

/// `ms` milliseconds from now, monotonic nanoseconds.
pub(crate) fn after_ms(now: Now, ms: u64) -> u64 {
    now.mono_ns.saturating_add(ms.saturating_mul(MS_NS))
}

/// The earliest of `first` and the given `others`.
pub(crate) fn earliest<const N: usize>(first: u64, others: [Option<u64>; N]) -> u64 {
    others.into_iter().flatten().fold(first, u64::min)
}

/// Counts consecutive failures and gives the pause after each.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    min_ns: u64,
    max_ns: u64,
    failures: u32,
    random: u64,
}

impl Backoff {
    /// Pauses from `min_ms` to `max_ms`; the same seed gives the same pauses.
    pub(crate) fn new(min_ms: u64, max_ms: u64, seed: u64) -> Backoff {
        let mut backoff = Backoff { min_ns: 0, max_ns: 0, failures: 0, random: seed };
        backoff.set_bounds(min_ms, max_ms);
        backoff
    }

    /// Sets other limits for the pauses, from the next failure on.
    pub(crate) fn set_bounds(&mut self, min_ms: u64, max_ms: u64) {
        self.min_ns = min_ms.max(1).saturating_mul(MS_NS);
        self.max_ns = max_ms.saturating_mul(MS_NS).max(self.min_ns);
    }

    /// Counts a failure. Returns the pause before the next attempt: between half of the step and the whole step.
    pub(crate) fn fail(&mut self) -> u64 {
        let doublings = self.failures.min(63);
        self.failures = self.failures.saturating_add(1);
        let whole = self.min_ns.checked_shl(doublings).filter(|ns| ns >> doublings == self.min_ns);
        let step = whole.unwrap_or(self.max_ns).min(self.max_ns);
        step / 2 + self.next_random() % (step - step / 2 + 1)
    }

    /// Starts again from the shortest pause.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// SplitMix64: random enough to keep many instances from reconnecting at the same time.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[test]
fn pauses_double_up_to_the_maximum() {
    let mut backoff = Backoff::new(250, 15_000, 7);
    for step_ms in [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000] {
        let pause = backoff.fail();
        assert!(pause >= step_ms * MS_NS / 2 && pause <= step_ms * MS_NS, "{pause} ns at step {step_ms} ms");
    }
    backoff.reset();
    assert!(backoff.fail() <= 250 * MS_NS);
}

#[test]
fn pauses_stay_within_the_plan_limits() {
    for (min, max) in [(0, 0), (1, 0), (10, 5), (u64::MAX, u64::MAX), (3, u64::MAX)] {
        let mut backoff = Backoff::new(min, max, 1);
        for _ in 0..200 {
            assert!(backoff.fail() <= backoff.max_ns, "{min} to {max} ms");
        }
    }
}

#[test]
fn pauses_are_determined_by_the_seed() {
    let pauses = |seed| {
        let mut backoff = Backoff::new(250, 15_000, seed);
        std::array::from_fn::<u64, 8, _>(|_| backoff.fail())
    };
    assert_eq!(pauses(1), pauses(1));
    assert_ne!(pauses(1), pauses(2));
}
