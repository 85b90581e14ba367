//! Computes the aggregates of a timer, with node's order of operations, so that the results are equal bit for bit
//! (spec statsd §7.3).
//!
//! Three entry points: `plain` for values that count once each, `weighted` for sampled values under
//! `timer_weights`, `sketched` for timers with more values than are kept. `weighted` with weights of 1 gives the
//! same bits as `plain`.

use super::context::Scratch;
use super::labels::{Bins, Labels};
use super::sketch::Sketch;

/// The reported count, and the divisor for `count_ps`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) count: f64,
    pub(super) divisor: f64,
}

/// JavaScript's `Math.round`: half up, exact.
pub(super) fn round_half_up(x: f64) -> f64 {
    let down = x.floor();
    if x - down >= 0.5 { down + 1.0 } else { down }
}

/// An idle timer: zeros only.
pub(super) fn idle(labels: &Labels, to: &mut Vec<(u16, f64)>) {
    let (count, count_ps) = labels.counts();
    labels.push(count_ps, 0.0, to);
    labels.push(count, 0.0, to);
}

/// Results of one threshold.
struct Part {
    count: f64,
    boundary: f64,
    sum: f64,
    squares: f64,
}

/// Everything but thresholds, counts and histogram.
struct Whole {
    std: f64,
    upper: f64,
    lower: f64,
    sum: f64,
    squares: f64,
    mean: f64,
    median: f64,
}

fn push_part(labels: &Labels, first: usize, part: &Part, to: &mut Vec<(u16, f64)>) {
    let values = [part.count, part.sum / part.count, part.boundary, part.sum, part.squares];
    for (at, value) in values.into_iter().enumerate() {
        labels.push(first + at, value, to);
    }
}

fn push_whole(labels: &Labels, whole: &Whole, counted: Counted, to: &mut Vec<(u16, f64)>) {
    let values = [
        whole.std,
        whole.upper,
        whole.lower,
        counted.count,
        counted.count / counted.divisor,
        whole.sum,
        whole.squares,
        whole.mean,
        whole.median,
    ];
    for (at, value) in values.into_iter().enumerate() {
        labels.push(labels.fixed() + at, value, to);
    }
}

fn push_bins(labels: &Labels, bins: &Bins, below: impl Fn(f64) -> u64, to: &mut Vec<(u16, f64)>) {
    let mut counted = 0;
    for (at, limit) in bins.limits.iter().enumerate() {
        let reached = below(*limit).max(counted);
        labels.push(bins.first + at, (reached - counted) as f64, to);
        counted = reached;
    }
}

/// Number of values below a limit; all of them for `inf`.
fn below(values: &[f64], limit: f64) -> u64 {
    let count = if limit == f64::INFINITY { values.len() } else { values.partition_point(|v| *v < limit) };
    count as u64
}

/// Aggregates of values that count once each. `values` is ascending and not empty.
pub(super) fn plain(values: &[f64], counted: Counted, name: &[u8], labels: &Labels, scratch: &mut Scratch) {
    debug_assert!(!values.is_empty());
    let n = values.len();
    let Scratch { aggregates, sums, squares, .. } = scratch;
    sums.clear();
    squares.clear();
    let (mut sum, mut square) = (values[0], values[0] * values[0]);
    sums.push(sum);
    squares.push(square);
    for value in &values[1..] {
        sum += *value;
        square += *value * *value;
        sums.push(sum);
        squares.push(square);
    }
    for threshold in &labels.thresholds {
        let part = if n == 1 {
            Part { count: 1.0, boundary: values[0], sum: values[0], squares: values[0] * values[0] }
        } else {
            let k = round_half_up(threshold.percent.abs() / 100.0 * n as f64) as usize;
            let k = k.min(n);
            if k == 0 {
                continue;
            }
            let at = |run: &[f64]| match () {
                () if threshold.percent > 0.0 => run[k - 1],
                () if k == n => run[n - 1],
                () => run[n - 1] - run[n - k - 1],
            };
            let boundary = if threshold.percent > 0.0 { values[k - 1] } else { values[n - k] };
            Part { count: k as f64, boundary, sum: at(sums), squares: at(squares) }
        };
        push_part(labels, threshold.first, &part, aggregates);
    }
    let mean = sum / n as f64;
    let differences = values.iter().fold(0.0, |all, value| all + (value - mean) * (value - mean));
    let middle = n / 2;
    let whole = Whole {
        std: (differences / n as f64).sqrt(),
        upper: values[n - 1],
        lower: values[0],
        sum,
        squares: square,
        mean,
        median: if n % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 },
    };
    push_whole(labels, &whole, counted, aggregates);
    if let Some(bins) = labels.histogram(name) {
        push_bins(labels, bins, |limit| below(values, limit), aggregates);
    }
}

/// Running sums over (value, weight) pairs, and lookup of ranks in them.
struct Ranks<'a> {
    pairs: &'a [(f64, f64)],
    sums: &'a [f64],
    squares: &'a [f64],
    weights: &'a [f64],
}

impl<'a> Ranks<'a> {
    fn new(
        pairs: &'a [(f64, f64)],
        sums: &'a mut Vec<f64>,
        squares: &'a mut Vec<f64>,
        weights: &'a mut Vec<f64>,
    ) -> Ranks<'a> {
        sums.clear();
        squares.clear();
        weights.clear();
        let (mut sum, mut square, mut total) = (-0.0, -0.0, 0.0);
        for (value, weight) in pairs {
            sum += value * weight;
            square += value * value * weight;
            total += weight;
            sums.push(sum);
            squares.push(square);
            weights.push(total);
        }
        Ranks { pairs, sums, squares, weights }
    }

    fn last(run: &[f64]) -> f64 {
        run.last().copied().unwrap_or(0.0)
    }

    fn total(&self) -> f64 {
        Ranks::last(self.weights)
    }

    /// Index of the first pair at which the running weight reaches `rank`.
    fn reaching(&self, rank: f64) -> usize {
        self.weights.partition_point(|weight| *weight < rank).min(self.pairs.len() - 1)
    }

    /// Sum and sum of squares of the lowest `rank` of weight.
    fn lowest(&self, rank: f64) -> (f64, f64) {
        let at = self.reaching(rank);
        let value = self.pairs[at].0;
        if at == 0 {
            return (value * rank, value * value * rank);
        }
        let part = rank - self.weights[at - 1];
        (self.sums[at - 1] + value * part, self.squares[at - 1] + value * value * part)
    }

    fn part(&self, percent: f64) -> Option<Part> {
        let total = self.total();
        if self.pairs.len() == 1 && total == 1.0 {
            let value = self.pairs[0].0;
            return Some(Part { count: 1.0, boundary: value, sum: value, squares: value * value });
        }
        let k = round_half_up(percent.abs() / 100.0 * total).min(total);
        if k == 0.0 {
            return None;
        }
        if percent > 0.0 {
            let (sum, squares) = self.lowest(k);
            return Some(Part { count: k, boundary: self.pairs[self.reaching(k)].0, sum, squares });
        }
        let (sum, squares) = (Ranks::last(self.sums), Ranks::last(self.squares));
        let left = total - k;
        if left <= 0.0 {
            return Some(Part { count: k, boundary: self.pairs[0].0, sum, squares });
        }
        let above = self.weights.partition_point(|weight| *weight <= left).min(self.pairs.len() - 1);
        let (sum_left, squares_left) = self.lowest(left);
        let boundary = self.pairs[above].0;
        Some(Part { count: k, boundary, sum: sum - sum_left, squares: squares - squares_left })
    }

    fn median(&self) -> f64 {
        let half = self.total() / 2.0;
        let at = self.reaching(half);
        match self.pairs.get(at + 1) {
            Some((next, _)) if self.weights[at] == half => (self.pairs[at].0 + next) / 2.0,
            _ => self.pairs[at].0,
        }
    }
}

/// Aggregates of values with weights. `scratch.pairs` is ascending and not empty. Ranks are those of the running
/// weight, as if each value had been sent as often as its weight.
pub(super) fn weighted(
    values: &[f64],
    counted: Counted,
    name: &[u8],
    labels: &Labels,
    scratch: &mut Scratch,
) {
    let Scratch { aggregates, pairs, sums, squares, weights } = scratch;
    let ranks = Ranks::new(pairs, sums, squares, weights);
    for threshold in &labels.thresholds {
        if let Some(part) = ranks.part(threshold.percent) {
            push_part(labels, threshold.first, &part, aggregates);
        }
    }
    let sum = Ranks::last(ranks.sums);
    let mean = sum / ranks.total();
    let differences =
        pairs.iter().fold(0.0, |all, (value, weight)| all + (value - mean) * (value - mean) * weight);
    let whole = Whole {
        std: (differences / ranks.total()).sqrt(),
        upper: values[values.len() - 1],
        lower: values[0],
        sum,
        squares: Ranks::last(ranks.squares),
        mean,
        median: ranks.median(),
    };
    push_whole(labels, &whole, counted, aggregates);
    if let Some(bins) = labels.histogram(name) {
        push_bins(labels, bins, |limit| below(values, limit), aggregates);
    }
}

/// Aggregates of a timer with too many values to keep: sums, extremes and deviation are exact, ranks come from the
/// sketch.
pub(super) fn sketched(
    sketch: &Sketch,
    counted: Counted,
    name: &[u8],
    labels: &Labels,
    scratch: &mut Scratch,
) {
    let Scratch { aggregates, pairs, sums, squares, weights } = scratch;
    pairs.clear();
    sketch.pairs(|value, weight, _| pairs.push((value, weight)));
    let ranks = Ranks::new(pairs, sums, squares, weights);
    for threshold in &labels.thresholds {
        if let Some(part) = ranks.part(threshold.percent) {
            push_part(labels, threshold.first, &part, aggregates);
        }
    }
    let whole = Whole {
        std: sketch.std(),
        upper: sketch.max(),
        lower: sketch.min(),
        sum: sketch.sum(),
        squares: sketch.sum_squares(),
        mean: sketch.mean(),
        median: ranks.median(),
    };
    push_whole(labels, &whole, counted, aggregates);
    if let Some(bins) = labels.histogram(name) {
        push_bins(labels, bins, |limit| sketch.below(limit), aggregates);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::aggregate::plan::{AggregatePlan, HistogramPlan};

    fn labels() -> Labels {
        let percents = ["90", "99.9", "50", "1", "0", "-25", "-100", "100", "-0.5"];
        Labels::new(&AggregatePlan {
            percentiles: percents.map(|text| (text.parse().expect("a number"), text.to_owned())).into(),
            histograms: vec![HistogramPlan {
                name_contains: String::new(),
                bins: vec![(0.0, "0".into()), (10.0, "10".into())],
            }],
            ..AggregatePlan::default()
        })
    }

    fn by_plain(values: &[f64]) -> Vec<(u16, f64)> {
        let mut scratch = Scratch::default();
        let counted = Counted { count: values.len() as f64, divisor: 10.0 };
        plain(values, counted, b"t", &labels(), &mut scratch);
        scratch.aggregates
    }

    fn by_weights(pairs: &[(f64, f64)]) -> Vec<(u16, f64)> {
        let mut scratch = Scratch { pairs: pairs.to_vec(), ..Scratch::default() };
        let values: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let count = pairs.iter().map(|pair| pair.1).sum();
        weighted(&values, Counted { count, divisor: 10.0 }, b"t", &labels(), &mut scratch);
        scratch.aggregates
    }

    #[test]
    fn sampled_values_count_by_their_weight() {
        let labels = labels();
        let of = |pairs: &[(f64, f64)]| -> Vec<String> {
            let wanted =
                ["count_50", "upper_50", "sum_50", "count_top25", "sum_top25", "std", "mean", "median"];
            by_weights(pairs)
                .iter()
                .map(|(label, value)| (&*labels.names()[usize::from(*label)], value))
                .filter(|(label, _)| wanted.contains(label))
                .map(|(label, value)| format!("{label}={value}"))
                .collect()
        };
        // One value of 10 and ten of 20: a rate of 0.1 on the second.
        assert_eq!(
            of(&[(10.0, 1.0), (20.0, 10.0)]).join(" "),
            "count_50=6 upper_50=20 sum_50=110 count_top25=3 sum_top25=60 \
             std=2.8747978728803445 mean=19.09090909090909 median=20"
        );
        // A single value at a rate of 0.3 counts three and a third times.
        assert_eq!(
            of(&[(6.0, 1.0 / 0.3)]).join(" "),
            "count_50=2 upper_50=6 sum_50=12 count_top25=1 sum_top25=6 std=0 mean=6 median=6"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn weights_of_one_give_the_same_bits_as_no_weights(
            mut values in prop::collection::vec(prop_oneof![-1e6f64..1e6, Just(0.0), Just(-0.0), Just(1e300)], 1..60),
        ) {
            values.sort_by(f64::total_cmp);
            let pairs: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
            let bits = |all: Vec<(u16, f64)>| -> Vec<(u16, u64)> {
                all.into_iter().map(|(label, value)| (label, value.to_bits())).collect()
            };
            prop_assert_eq!(bits(by_weights(&pairs)), bits(by_plain(&values)));
        }

        #[test]
        fn integer_weights_equal_repeated_values(
            mut pairs in prop::collection::vec((-50i32..50, 1u8..6), 1..30),
        ) {
            pairs.sort_unstable();
            let repeated: Vec<f64> = pairs
                .iter()
                .flat_map(|(value, weight)| std::iter::repeat_n(f64::from(*value), usize::from(*weight)))
                .collect();
            let pairs: Vec<(f64, f64)> = pairs.iter().map(|(v, w)| (f64::from(*v), f64::from(*w))).collect();
            let bins = labels().names().len() - 2;
            for (one, two) in by_weights(&pairs).into_iter().zip(by_plain(&repeated)) {
                prop_assert_eq!(one.0, two.0);
                let near = (one.1 - two.1).abs() <= 1e-9 * (1.0 + two.1.abs());
                // Histograms ignore sample rates in every dialect.
                prop_assert!(near || usize::from(one.0) >= bins, "{:?} {:?}", one, two);
            }
        }
    }
}
