//! One window of one series: accumulates the values.
//!
//! Percentiles keep all values, other functions one or two numbers. Computing a result takes time linear in the
//! number of kept values. Invariant: the same values in the same order give the same bits.

use super::Compute;
use crate::bytes::{Bytes, put_f64, put_varint};

/// Bytes of a kept value.
pub(super) const VALUE_BYTES: usize = size_of::<f64>();

/// New capacity for one more element, with spare capacity, so that the cost of copying is small per element.
pub(super) fn grown(capacity: usize) -> usize {
    capacity + (capacity / 2).max(1)
}

/// Maximum values of a restored window: a million a second for twelve days. It ensures that sums over windows do
/// not overflow, whatever was read.
const COUNT_MAX: u64 = 1 << 40;

/// The values of a window, as far as its function needs them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Window {
    /// Number of values so far.
    pub(super) count: u64,
    /// Sum, maximum, minimum or mean.
    first: f64,
    /// Sum of the squared distances from the mean.
    second: f64,
    /// The values, for percentiles.
    values: Vec<f64>,
}

impl Compute {
    /// True when each value is kept until the window ends.
    pub(super) fn keeps_values(self) -> bool {
        matches!(self, Compute::Percentile(_) | Compute::Interpolated(_))
    }
}

impl Window {
    /// Adds a finite value.
    pub(super) fn add(&mut self, compute: Compute, value: f64) {
        debug_assert!(value.is_finite());
        self.count += 1;
        let first = self.count == 1;
        match compute {
            Compute::Count => {}
            Compute::Sum | Compute::Average => self.first += value,
            Compute::Max => self.first = if first { value } else { self.first.max(value) },
            Compute::Min => self.first = if first { value } else { self.first.min(value) },
            Compute::Percentile(_) | Compute::Interpolated(_) => {
                if self.values.len() == self.values.capacity() {
                    self.values.reserve_exact(grown(self.values.len()) - self.values.len());
                }
                self.values.push(value);
            }
            Compute::Variance | Compute::Stddev => {
                // Welford's algorithm: exact where sums of squares would cancel.
                let distance = value - self.first;
                self.first += distance / self.count as f64;
                self.second += distance * (value - self.first);
            }
        }
    }

    /// Appends the window, for [`Window::read`].
    pub(super) fn save(&self, to: &mut Vec<u8>) {
        put_varint(self.count, to);
        put_f64(self.first, to);
        put_f64(self.second, to);
        put_varint(self.values.len() as u64, to);
        self.values.iter().for_each(|value| put_f64(*value, to));
    }

    /// Reads a saved window; None when it is invalid.
    pub(super) fn read(from: &mut Bytes<'_>) -> Option<Window> {
        let (count, first, second) = (from.varint()?, from.f64()?, from.f64()?);
        let kept = from.len_of(VALUE_BYTES)?;
        let values = from.f64s(kept)?;
        let is_one = (1..=COUNT_MAX).contains(&count)
            && (kept == 0 || kept as u64 == count)
            && values.iter().all(|value| value.is_finite());
        is_one.then_some(Window { count, first, second, values })
    }

    /// True when it can be a window of this function.
    pub(super) fn is_of(&self, compute: Compute) -> bool {
        compute.keeps_values() != self.values.is_empty()
    }

    /// Number of kept values.
    pub(super) fn kept(&self) -> usize {
        self.values.len()
    }

    /// Bytes of the kept values, including spare capacity.
    pub(super) fn kept_bytes(&self) -> usize {
        self.values.capacity() * VALUE_BYTES
    }

    /// The same after one more value.
    pub(super) fn kept_bytes_of_one_more(&self, compute: Compute) -> usize {
        match compute.keeps_values() && self.values.len() == self.values.capacity() {
            true => grown(self.values.len()) * VALUE_BYTES,
            false => self.kept_bytes(),
        }
    }

    /// The result. The window must have at least one value.
    pub(super) fn result(&mut self, compute: Compute) -> f64 {
        debug_assert!(self.count > 0, "windows without values are not emitted");
        let count = self.count as f64;
        match compute {
            Compute::Count => count,
            Compute::Sum | Compute::Max | Compute::Min => self.first,
            Compute::Average => self.first / count,
            Compute::Variance => self.second / count,
            Compute::Stddev => (self.second / count).sqrt(),
            Compute::Percentile(percent) => {
                let rank = (f64::from(percent) / 100.0 * count + 0.9) as usize;
                let at = rank.clamp(1, self.values.len()) - 1;
                *self.values.select_nth_unstable_by(at, f64::total_cmp).1
            }
            Compute::Interpolated(permille) => {
                let rank = f64::from(permille) / 1000.0 * (count - 1.0);
                let at = rank.floor() as usize;
                let (_, below, behind) = self.values.select_nth_unstable_by(at, f64::total_cmp);
                let below = *below;
                let next = behind.iter().copied().min_by(f64::total_cmp);
                let above = next.filter(|_| rank.ceil() > rank.floor()).unwrap_or(below);
                below + (rank - rank.floor()) * (above - below)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(compute: Compute, values: &[f64]) -> String {
        let mut window = Window::default();
        values.iter().for_each(|value| window.add(compute, *value));
        format!("{:.6}", window.result(compute))
    }

    #[test]
    fn the_vector_of_the_specification() {
        let values = [1.0, 2.5, 3.0, 10.0, -4.0];
        for (compute, want) in [
            (Compute::Sum, "12.500000"),
            (Compute::Count, "5.000000"),
            (Compute::Max, "10.000000"),
            (Compute::Min, "-4.000000"),
            (Compute::Average, "2.500000"),
            (Compute::Percentile(50), "2.500000"),
            (Compute::Percentile(90), "10.000000"),
            (Compute::Variance, "20.200000"),
            (Compute::Stddev, "4.494441"),
        ] {
            assert_eq!(result(compute, &values), want, "{compute:?}");
        }
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let to = |last: u32| (1..=last).map(f64::from).collect::<Vec<_>>();
        for (percent, values, want) in [
            // The original reads memory outside the window's values here.
            (1, to(2), "1.000000"),
            (99, to(1), "1.000000"),
            (50, to(4), "2.000000"),
            (75, to(4), "3.000000"),
            (95, to(100), "95.000000"),
            (99, to(10), "10.000000"),
            // The original treats values that differ by less than 1 as equal.
            (50, vec![0.9, 0.1, 0.5], "0.500000"),
        ] {
            assert_eq!(result(Compute::Percentile(percent), &values), want, "{percent} of {values:?}");
        }
        for (permille, values, want) in [
            (500, to(4), "2.500000"),
            (999, to(1001), "1000.000000"),
            (900, vec![7.0], "7.000000"),
            (0, to(3), "1.000000"),
            (1000, to(3), "3.000000"),
        ] {
            assert_eq!(result(Compute::Interpolated(permille), &values), want, "{permille} of {values:?}");
        }
    }

    #[test]
    fn one_value_and_values_far_from_zero() {
        for (compute, want) in [
            (Compute::Max, "-5.000000"),
            (Compute::Min, "-5.000000"),
            (Compute::Variance, "0.000000"),
            (Compute::Average, "-5.000000"),
        ] {
            assert_eq!(result(compute, &[-5.0]), want, "{compute:?}");
        }
        assert_eq!(result(Compute::Variance, &[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0]), "0.666667");
    }
}
