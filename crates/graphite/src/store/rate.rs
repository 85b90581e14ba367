//! A limit in time: so many in a second or in a minute (spec graphite §4.4, token buckets).

/// Tokens that come back evenly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Most in a period; 0: no limit.
    most: u64,
    period_s: u64,
    /// Tokens times the seconds of a period.
    tokens: u64,
    at: i64,
}

impl Rate {
    pub(super) fn new(most: u64, period_s: u64) -> Rate {
        Rate { most, period_s, tokens: most.saturating_mul(period_s), at: i64::MIN }
    }

    /// Takes a token; false when none is left.
    pub(super) fn take(&mut self, now: i64) -> bool {
        if self.most == 0 {
            return true;
        }
        let full = self.most.saturating_mul(self.period_s);
        // A clock that steps back brings no tokens, and one that steps far forward no more than a period's.
        let passed = now.saturating_sub(self.at).clamp(0, self.period_s as i64).unsigned_abs();
        self.at = now;
        self.tokens = self.tokens.saturating_add(passed * self.most).min(full);
        let enough = self.tokens >= self.period_s;
        if enough {
            self.tokens -= self.period_s;
        }
        enough
    }

    /// Gives a token back.
    pub(super) fn give_back(&mut self) {
        self.tokens = self.tokens.saturating_add(self.period_s);
    }
}

#[test]
fn tokens_come_back_evenly_and_are_no_more_than_those_of_a_period() {
    let taken = |rate: &mut Rate, now: i64| (0..1000).filter(|_| rate.take(now)).count();
    let mut rate = Rate::new(50, 60);
    assert_eq!([0, 0, 6, 12, 10_000, 5].map(|now| taken(&mut rate, now)), [50, 0, 5, 5, 50, 0]);
    let mut rate = Rate::new(500, 1);
    assert_eq!([0, 1, 3].map(|now| taken(&mut rate, now)), [500, 500, 500]);
    assert_eq!(taken(&mut Rate::new(0, 1), 0), 1000);
}
