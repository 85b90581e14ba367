//! Sketch of a timer's values beyond the exact limit (DDSketch): counts in bins whose width grows with the value.
//! Each rank is found within 1 % of its value, in bounded memory.
//!
//! Count, sums, extremes and deviation are kept next to the bins and stay exact.

use crate::bytes::{Bytes, put_f64, put_varint};

/// Relative error of a value read back from its bin.
pub(super) const RELATIVE_ERROR: f64 = 0.01;
const GAMMA: f64 = (1.0 + RELATIVE_ERROR) / (1.0 - RELATIVE_ERROR);
/// Maximum bins per sign: a range of 10^17 from largest to smallest. Beyond it the values nearest to 0 share a bin.
pub(super) const BINS_MAX: usize = 2048;

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    weight: f64,
    values: u64,
}

/// Maximum plausible number of values in one bin: sums of such counts cannot overflow.
const BIN_VALUES_MAX: u64 = 1 << 50;

impl Bin {
    fn save(self, to: &mut Vec<u8>) {
        put_f64(self.weight, to);
        to.extend_from_slice(&self.values.to_le_bytes());
    }

    fn load(from: &mut Bytes<'_>) -> Option<Bin> {
        let bin = Bin { weight: from.f64()?, values: from.u64()? };
        (bin.values <= BIN_VALUES_MAX).then_some(bin)
    }
}

/// Bins of the magnitudes of one sign.
#[derive(Clone, Debug, Default)]
struct Bins {
    /// Number of the first bin.
    first: i32,
    bins: Vec<Bin>,
}

impl Bins {
    fn add(&mut self, bin: i32, weight: f64) {
        if self.bins.is_empty() {
            self.first = bin;
        }
        if bin < self.first {
            self.grow_down(bin);
        }
        let at = (bin - self.first).max(0) as usize;
        if at >= self.bins.len() {
            self.grow_up(at);
        }
        let at = ((bin - self.first).max(0) as usize).min(self.bins.len() - 1);
        self.bins[at].weight += weight;
        self.bins[at].values += 1;
    }

    fn grow_down(&mut self, bin: i32) {
        let lacking = (self.first - bin) as usize;
        let room = BINS_MAX - self.bins.len();
        let more = lacking.min(room);
        self.bins.splice(0..0, std::iter::repeat_n(Bin::default(), more));
        self.first -= more as i32;
    }

    fn grow_up(&mut self, at: usize) {
        let excess = (at + 1).saturating_sub(BINS_MAX);
        if excess > 0 {
            // Bins that fall off the lower end are merged into the lowest bin that remains.
            let off = excess.min(self.bins.len());
            let joined = self.bins.drain(..off).fold(Bin::default(), |all, bin| Bin {
                weight: all.weight + bin.weight,
                values: all.values + bin.values,
            });
            self.first += excess as i32;
            if self.bins.is_empty() {
                self.bins.push(Bin::default());
            }
            self.bins[0].weight += joined.weight;
            self.bins[0].values += joined.values;
        }
        let len = at + 1 - excess;
        if self.bins.len() < len {
            self.bins.resize(len, Bin::default());
        }
    }

    /// Format: number of the first bin (4), bins (varint), then weight (8) and values (8) of each bin.
    fn save(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.first.to_le_bytes());
        put_varint(self.bins.len() as u64, to);
        self.bins.iter().for_each(|bin| bin.save(to));
    }

    fn load(from: &mut Bytes<'_>) -> Option<Bins> {
        let first = from.i32()?;
        let len = from.len_of(16)?;
        let farthest = BIN_FARTHEST as i32 + BINS_MAX as i32;
        if len > BINS_MAX || !(-farthest..=farthest).contains(&first) {
            return None;
        }
        let bins = (0..len).map(|_| Bin::load(from)).collect::<Option<Vec<Bin>>>()?;
        Some(Bins { first, bins })
    }

    /// (number, bin) of all bins that are not empty, ascending.
    fn iter(&self) -> impl DoubleEndedIterator<Item = (i32, Bin)> + '_ {
        let first = self.first;
        self.bins
            .iter()
            .enumerate()
            .filter(|(_, bin)| bin.values > 0)
            .map(move |(at, bin)| (first + at as i32, *bin))
    }
}

/// Counts of values in bins, and exact sums.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    above: Bins,
    below: Bins,
    zero: Bin,
    weight: f64,
    sum: f64,
    sum_squares: f64,
    mean: f64,
    /// Weighted sum of squared differences from the mean.
    differences: f64,
    min: f64,
    max: f64,
}

/// Outside the bins of the smallest and the largest finite magnitude. Infinities (`compat_quirks`) land here.
const BIN_FARTHEST: f64 = 40_000.0;

/// Number of the bin of a magnitude above 0.
fn bin_of(magnitude: f64) -> i32 {
    (magnitude.ln() / GAMMA.ln()).ceil().clamp(-BIN_FARTHEST, BIN_FARTHEST) as i32
}

/// The value that represents a bin: within 1 % of every value in it.
fn value_of(bin: i32) -> f64 {
    (f64::from(bin) * GAMMA.ln()).exp() * 2.0 / (GAMMA + 1.0)
}

impl Sketch {
    pub(super) fn new() -> Sketch {
        Sketch {
            above: Bins::default(),
            below: Bins::default(),
            zero: Bin::default(),
            weight: 0.0,
            sum: 0.0,
            sum_squares: 0.0,
            mean: 0.0,
            differences: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }

    /// Adds a value that counts as `weight` observations.
    pub(super) fn add(&mut self, value: f64, weight: f64) {
        if value > 0.0 {
            self.above.add(bin_of(value), weight);
        } else if value < 0.0 {
            self.below.add(bin_of(-value), weight);
        } else {
            self.zero.weight += weight;
            self.zero.values += 1;
        }
        self.weight += weight;
        self.sum += value * weight;
        self.sum_squares += value * value * weight;
        let from_mean = value - self.mean;
        self.mean += from_mean * weight / self.weight;
        self.differences += weight * from_mean * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    pub(super) fn sum(&self) -> f64 {
        self.sum
    }

    pub(super) fn sum_squares(&self) -> f64 {
        self.sum_squares
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum / self.weight
    }

    pub(super) fn std(&self) -> f64 {
        (self.differences / self.weight).max(0.0).sqrt()
    }

    pub(super) fn min(&self) -> f64 {
        self.min
    }

    pub(super) fn max(&self) -> f64 {
        self.max
    }

    /// (value, weight, number of values) of each bin, ascending.
    pub(super) fn pairs(&self, mut see: impl FnMut(f64, f64, u64)) {
        let clamp = |value: f64| value.clamp(self.min, self.max);
        for (bin, counts) in self.below.iter().rev() {
            see(clamp(-value_of(bin)), counts.weight, counts.values);
        }
        if self.zero.values > 0 {
            see(0.0, self.zero.weight, self.zero.values);
        }
        for (bin, counts) in self.above.iter() {
            see(clamp(value_of(bin)), counts.weight, counts.values);
        }
    }

    /// Number of values below `limit`, according to the bins.
    pub(super) fn below(&self, limit: f64) -> u64 {
        let mut count = 0;
        self.pairs(|value, _, values| {
            if value < limit || limit == f64::INFINITY {
                count += values;
            }
        });
        count
    }

    /// Format: bins above 0, bins below 0, the bin at 0, and then the sums in the order of the fields.
    pub(super) fn save(&self, to: &mut Vec<u8>) {
        self.above.save(to);
        self.below.save(to);
        self.zero.save(to);
        for number in
            [self.weight, self.sum, self.sum_squares, self.mean, self.differences, self.min, self.max]
        {
            put_f64(number, to);
        }
    }

    /// A sketch of at least one value. None when the bytes are not a valid sketch.
    pub(super) fn load(from: &mut Bytes<'_>) -> Option<Sketch> {
        let (above, below, zero) = (Bins::load(from)?, Bins::load(from)?, Bin::load(from)?);
        let mut number = || from.f64();
        let sketch = Sketch {
            above,
            below,
            zero,
            weight: number()?,
            sum: number()?,
            sum_squares: number()?,
            mean: number()?,
            differences: number()?,
            min: number()?,
            max: number()?,
        };
        let in_bins = sketch.above.iter().next().is_some() || sketch.below.iter().next().is_some();
        // Values in bins lie between the extremes. NaN (`compat_quirks`) is in the bin at 0 and has no extremes.
        let good = if in_bins { sketch.min <= sketch.max } else { sketch.zero.values > 0 };
        good.then_some(sketch)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Sketch>() + (self.above.bins.capacity() + self.below.bins.capacity()) * size_of::<Bin>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantile(sketch: &Sketch, rank: u64) -> f64 {
        let (mut seen, mut found) = (0, f64::NAN);
        sketch.pairs(|value, _, values| {
            if seen < rank {
                found = value;
            }
            seen += values;
        });
        found
    }

    #[test]
    fn every_rank_is_within_one_percent() {
        let mut values: Vec<f64> = (1..=20_000)
            .map(|at| {
                let x = f64::from(at);
                if at % 10 == 0 { -x } else { x.powf(1.7) / 100.0 }
            })
            .chain([0.0, -0.0])
            .collect();
        let mut sketch = Sketch::new();
        values.iter().for_each(|value| sketch.add(*value, 1.0));
        values.sort_by(f64::total_cmp);
        for rank in (1..=values.len()).step_by(97) {
            let (want, got) = (values[rank - 1], quantile(&sketch, rank as u64));
            assert!(
                (want - got).abs() <= want.abs() * (RELATIVE_ERROR + 1e-9),
                "rank {rank}: {got} for {want}"
            );
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let std = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / values.len() as f64).sqrt();
        assert!((sketch.std() - std).abs() < std * 1e-9);
        assert_eq!((sketch.min(), sketch.max()), (values[0], values[values.len() - 1]));
    }

    #[test]
    fn past_the_bin_limit_only_the_smallest_values_lose_precision() {
        for up in [true, false] {
            let mut sketch = Sketch::new();
            let powers: Vec<i32> = if up { (-300..300).collect() } else { (-300..300).rev().collect() };
            powers.iter().for_each(|power| sketch.add(10f64.powi(*power), 1.0));
            assert!(sketch.above.bins.len() <= BINS_MAX);
            let got = quantile(&sketch, 600);
            assert!((got / 1e299 - 1.0).abs() <= RELATIVE_ERROR, "{got}");
            let got = quantile(&sketch, 590);
            assert!((got / 1e289 - 1.0).abs() <= RELATIVE_ERROR + 1e-9, "{got}");
            assert_eq!(sketch.below(f64::INFINITY), 600);
        }
        let mut sketch = Sketch::new();
        for value in [f64::MIN_POSITIVE, f64::MAX, 5e-324, -f64::MAX, -5e-324] {
            sketch.add(value, 1.0);
        }
        assert_eq!(sketch.below(f64::INFINITY), 5);
    }
}
