//! Gauges: the last value is kept across windows (spec statsd §7.4).

use model::{FlushInfo, Flushed, GaugeOp, Kind, SeriesRef};

use super::context::{Context, Tally};
use super::plan::{ExpiryPlan, SeriesExpiry};
use super::state::{Closing, State};
use crate::bytes::{Bytes, put_f64, put_varint};

/// The last value. A gauge that does not exist and a gauge of 0 are the same.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gauge {
    pub(super) value: f64,
    /// Flushes left without an update, under `SeriesExpiry::Delete`.
    ttl: u32,
}

impl Gauge {
    /// Applies a sample. Returns false and changes nothing when the result would not be finite.
    #[inline]
    pub(super) fn add(&mut self, value: f64, op: GaugeOp, allow_non_finite: bool) -> bool {
        let changes = op == GaugeOp::Delta && self.value != 0.0 && !self.value.is_nan();
        let value = if changes { self.value + value } else { value };
        let good = value.is_finite() || allow_non_finite;
        if good {
            self.value = value;
        }
        good
    }
}

impl State for Gauge {
    const KIND: Kind = Kind::Gauge;

    fn idle(plan: &ExpiryPlan) -> SeriesExpiry {
        plan.gauges
    }

    fn emit(
        &mut self,
        series: SeriesRef<'_>,
        _active: bool,
        closing: &Closing,
        _context: &mut Context,
        emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
    ) {
        emit(&closing.info, Flushed::Gauge { series, value: self.value });
    }

    fn clear(&mut self, _tally: &mut Tally) {}

    fn reset(&mut self, _tally: &mut Tally) {
        *self = Gauge::default();
    }

    fn make_tombstone(&mut self) {
        *self = Gauge::default();
    }

    fn save(&self, to: &mut Vec<u8>) {
        put_f64(self.value, to);
        put_varint(u64::from(self.ttl), to);
    }

    fn load(&mut self, from: &mut Bytes<'_>, _seed: u32, _context: &mut Context) -> Option<()> {
        self.value = from.f64()?;
        self.ttl = u32::try_from(from.varint()?).ok()?;
        Some(())
    }

    fn outlives(&mut self, ttl_windows: u32, active: bool) -> bool {
        let ttl = if active { ttl_windows } else { self.ttl };
        self.ttl = ttl.saturating_sub(1);
        self.ttl > 0
    }
}

#[test]
fn deltas_apply_only_to_gauges_that_exist_and_are_not_0() {
    use GaugeOp::{Assign, Delta};
    let table: &[(&[(GaugeOp, f64)], f64)] = &[
        (&[(Assign, 333.0), (Delta, -10.0), (Delta, 4.0)], 327.0),
        (&[(Assign, 0.0), (Delta, -5.0)], -5.0),
        (&[(Delta, -5.0), (Delta, -5.0)], -10.0),
        (&[(Assign, 5.0), (Delta, -5.0), (Delta, -5.0)], -5.0),
        (&[(Assign, 5.0), (Delta, 5.0), (Delta, -1.0)], 9.0),
        (&[(Assign, 10.0), (Assign, -0.0), (Delta, -10.0)], -10.0),
        (&[(Assign, f64::MAX), (Delta, f64::MAX)], f64::MAX),
    ];
    for (samples, want) in table {
        let mut gauge = Gauge::default();
        for (op, value) in *samples {
            gauge.add(*value, *op, false);
        }
        assert_eq!(gauge.value.to_bits(), want.to_bits(), "{samples:?}");
    }
    let mut gauge = Gauge::default();
    assert!(gauge.add(f64::INFINITY, Assign, true));
    assert!(gauge.add(f64::NEG_INFINITY, Delta, true) && gauge.value.is_nan());
    assert!(gauge.add(3.0, Delta, true));
    assert_eq!(gauge.value, 3.0, "NaN is replaced as if there were no gauge");
}
