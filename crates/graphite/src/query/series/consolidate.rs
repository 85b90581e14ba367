//! Fewer points from many: consolidation functions and `maxDataPoints`.

use super::Series;

/// How several values become one. Nulls are left out, except in `AvgZero`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consolidation {
    /// Mean of the known values.
    Average,
    /// Mean with nulls as 0.
    AvgZero,
    /// Sum of the known values.
    Sum,
    /// The smallest known value.
    Min,
    /// The largest known value.
    Max,
    /// The first known value.
    First,
    /// The last known value.
    Last,
}

impl Consolidation {
    /// Names in targets.
    pub const NAMES: [&'static str; 8] = ["sum", "average", "avg", "avg_zero", "min", "max", "first", "last"];

    /// The function of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Consolidation> {
        Some(match name {
            "average" | "avg" => Consolidation::Average,
            "avg_zero" => Consolidation::AvgZero,
            "sum" => Consolidation::Sum,
            "min" => Consolidation::Min,
            "max" => Consolidation::Max,
            "first" => Consolidation::First,
            "last" => Consolidation::Last,
            _ => return None,
        })
    }

    /// Its name in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Consolidation::Average => "average",
            Consolidation::AvgZero => "avg_zero",
            Consolidation::Sum => "sum",
            Consolidation::Min => "min",
            Consolidation::Max => "max",
            Consolidation::First => "first",
            Consolidation::Last => "last",
        }
    }

    /// One value of a bucket that has room for `room` values. Null when too few are known.
    fn bucket(self, values: &[f64], room: usize, x_files_factor: f64) -> f64 {
        let known = values.iter().filter(|v| !v.is_nan()).count();
        if known == 0 || (known as f64 / room as f64) < x_files_factor {
            return f64::NAN;
        }
        let mut usable = values.iter().copied().filter(|v| !v.is_nan());
        match self {
            Consolidation::Average => usable.sum::<f64>() / known as f64,
            Consolidation::AvgZero => usable.sum::<f64>() / values.len() as f64,
            Consolidation::Sum => usable.sum(),
            Consolidation::Min => usable.fold(f64::INFINITY, f64::min),
            Consolidation::Max => usable.fold(f64::NEG_INFINITY, f64::max),
            Consolidation::First => usable.next().unwrap_or(f64::NAN),
            Consolidation::Last => usable.next_back().unwrap_or(f64::NAN),
        }
    }

    /// Buckets of `per_bucket` values, the first of `first` values; the last may be short.
    pub(crate) fn apply(
        self,
        values: &[f64],
        first: usize,
        per_bucket: usize,
        x_files_factor: f64,
    ) -> Vec<f64> {
        let per_bucket = per_bucket.max(1);
        let (head, tail) = values.split_at(first.min(values.len()));
        let buckets = head.chunks(per_bucket).chain(tail.chunks(per_bucket));
        buckets.map(|bucket| self.bucket(bucket, per_bucket, x_files_factor)).collect()
    }
}

/// Reduces all series to at most `max_data_points` values each. Buckets begin at multiples of their length, so that they
/// stay the same while a graph moves; the label of a bucket is one step after its first value, as in graphite-web.
/// Zero leaves everything as it is.
pub fn limit_points(series: &mut [Series], max_data_points: usize) {
    let (Some(start), Some(end)) = (series.iter().map(|s| s.start).min(), series.iter().map(|s| s.end).max())
    else {
        return;
    };
    if max_data_points == 0 {
        return;
    }
    for one in series {
        reduce(one, end - start, max_data_points);
    }
}

fn reduce(series: &mut Series, range: i64, max_data_points: usize) {
    let (function, factor) = (series.consolidation, series.x_files_factor);
    if max_data_points == 1 {
        let all = series.values.len();
        series.values = function.apply(&series.values, all, all, factor);
        series.is_integer = false;
        return;
    }
    let step = series.step.max(1);
    let points = range as f64 / step as f64;
    if max_data_points as f64 >= points {
        return;
    }
    let per_bucket = (points / max_data_points as f64).ceil() as i64;
    let bucket_step = per_bucket * step;
    let nudge = bucket_step + series.start.rem_euclid(step) - series.start.rem_euclid(bucket_step);
    let dropped = usize::try_from(nudge / step - 1).unwrap_or(0).min(series.values.len());
    let per_bucket = usize::try_from(per_bucket).unwrap_or(1);
    series.values = function.apply(&series.values[dropped..], 0, per_bucket, factor);
    series.start += nudge;
    series.step = bucket_step;
    series.is_integer = false;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lin() -> Series {
        let values = (31..=40).map(f64::from).collect();
        Series::new("vec.lin".to_owned(), (1_710_001_860, 1_710_002_460, 60), values)
    }

    fn points(series: &Series) -> Vec<(f64, i64)> {
        series.points().map(|(time, value)| (value, time - 1_710_000_000)).collect()
    }

    #[test]
    fn buckets_begin_at_multiples_of_their_length() {
        let table = [
            (4, vec![(33.0, 1980), (36.0, 2160), (39.0, 2340)]),
            (7, vec![(31.5, 1920), (33.5, 2040), (35.5, 2160), (37.5, 2280), (39.5, 2400)]),
            (1, vec![(35.5, 1860)]),
        ];
        for (max, want) in table {
            let mut series = [lin()];
            limit_points(&mut series, max);
            assert_eq!(points(&series[0]), want, "{max}");
        }
        let mut series = [lin()];
        limit_points(&mut series, 10);
        assert_eq!(series[0], lin(), "enough room");
        series[0].consolidation = Consolidation::Max;
        limit_points(&mut series, 4);
        assert_eq!(series[0].values, [34.0, 37.0, 40.0]);
    }

    #[test]
    fn buckets_have_one_value_of_those_known() {
        let nan = f64::NAN;
        let table = [
            ("average", [2.0, 3.0]),
            ("avg_zero", [4.0 / 3.0, 3.0]),
            ("sum", [4.0, 3.0]),
            ("min", [1.0, 3.0]),
            ("max", [3.0, 3.0]),
            ("first", [1.0, 3.0]),
            ("last", [3.0, 3.0]),
        ];
        for (name, want) in table {
            let function = Consolidation::from_name(name).expect("a name");
            assert_eq!(function.name(), name);
            assert_eq!(function.apply(&[1.0, nan, 3.0, 3.0], 0, 3, 0.0), want, "{name}");
        }
        let few = Consolidation::Sum.apply(&[1.0, nan, 3.0, 3.0], 0, 3, 0.5);
        assert_eq!((few[0], few[1].is_nan()), (4.0, true), "one of three is too few");
        assert!(Consolidation::Sum.apply(&[nan, nan], 0, 2, 0.0)[0].is_nan());
    }
}
