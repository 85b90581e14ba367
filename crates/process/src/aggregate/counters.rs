//! Counters: values add up over a window (spec statsd §7.2).

use model::{FlushInfo, Flushed, Kind, SeriesRef};

use super::context::{Context, Tally};
use super::plan::{ExpiryPlan, SeriesExpiry};
use super::state::{Closing, State};
use crate::bytes::{Bytes, put_f64};

/// Sum of the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    pub(super) sum: f64,
}

impl Counter {
    /// Adds `amount` (value times weight). Returns false and changes nothing when the sum would not be finite.
    #[inline]
    pub(super) fn add(&mut self, amount: f64, allow_non_finite: bool) -> bool {
        let sum = self.sum + amount;
        if !sum.is_finite() {
            return self.add_non_finite(amount, allow_non_finite);
        }
        self.sum = sum;
        true
    }

    #[cold]
    fn add_non_finite(&mut self, amount: f64, allowed: bool) -> bool {
        if allowed {
            // In JavaScript a NaN counter is falsy: the next value starts from 0.
            let sum = if self.sum.is_nan() { 0.0 } else { self.sum };
            self.sum = sum + amount;
        }
        allowed
    }
}

impl State for Counter {
    const KIND: Kind = Kind::Counter;

    fn idle(plan: &ExpiryPlan) -> SeriesExpiry {
        plan.counters
    }

    fn emit(
        &mut self,
        series: SeriesRef<'_>,
        _active: bool,
        closing: &Closing,
        _context: &mut Context,
        emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
    ) {
        let rate = self.sum / closing.divisor;
        emit(&closing.info, Flushed::Counter { series, count: self.sum, rate });
    }

    fn clear(&mut self, _tally: &mut Tally) {
        self.sum = 0.0;
    }

    fn reset(&mut self, _tally: &mut Tally) {
        self.sum = 0.0;
    }

    fn save(&self, to: &mut Vec<u8>) {
        put_f64(self.sum, to);
    }

    fn load(&mut self, from: &mut Bytes<'_>, _seed: u32, _context: &mut Context) -> Option<()> {
        self.sum = from.f64()?;
        Some(())
    }
}

#[test]
fn sums_stay_finite_unless_compat_quirks_are_on() {
    let mut counter = Counter::default();
    assert!(counter.add(f64::MAX, false));
    assert!(!counter.add(f64::MAX, false) && counter.sum == f64::MAX, "refused, unchanged");
    assert!(!counter.add(f64::NAN, false));
    assert!(counter.add(f64::INFINITY, true) && counter.sum == f64::INFINITY);
    assert!(counter.add(f64::NEG_INFINITY, true) && counter.sum.is_nan());
    assert!(counter.add(2.0, true));
    assert_eq!(counter.sum.to_bits(), 2.0f64.to_bits(), "NaN is replaced as if there were no counter");
    let mut counter = Counter::default();
    assert!(counter.add(-0.0, false));
    assert_eq!(counter.sum.to_bits(), 0.0f64.to_bits(), "0 + -0 is 0");
}
