//! Aggregation functions: one value of many, over the values of a series or over the rows of several series.

use super::align::Column;
use crate::query::budget::Poll;
use crate::query::error::QueryError;

/// An aggregation function. Nulls are left out unless the variant says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Mean of the known values.
    Average,
    /// Mean with nulls as 0.
    AvgZero,
    /// The middle value, or the mean of the two middle ones.
    Median,
    /// Sum.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The first known value minus the others.
    Diff,
    /// Standard deviation of the population.
    StdDev,
    /// Number of known values.
    Count,
    /// The largest minus the smallest.
    Range,
    /// Product; null if any value is null.
    Multiply,
    /// The last known value.
    Last,
}

impl Aggregation {
    /// Names in targets, aliases last.
    pub const NAMES: [&'static str; 16] = [
        "average", "median", "sum", "min", "max", "diff", "stddev", "count", "range", "multiply", "last",
        "avg_zero", "rangeOf", "avg", "total", "current",
    ];

    /// The function of a name; `Series` at the end of the name is ignored.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Aggregation> {
        Some(match name.strip_suffix("Series").unwrap_or(name) {
            "average" | "avg" => Aggregation::Average,
            "avg_zero" => Aggregation::AvgZero,
            "median" => Aggregation::Median,
            "sum" | "total" => Aggregation::Sum,
            "min" => Aggregation::Min,
            "max" => Aggregation::Max,
            "diff" => Aggregation::Diff,
            "stddev" => Aggregation::StdDev,
            "count" => Aggregation::Count,
            "range" | "rangeOf" => Aggregation::Range,
            "multiply" => Aggregation::Multiply,
            "last" | "current" => Aggregation::Last,
            _ => return None,
        })
    }

    /// True when whole numbers give a whole number that prints without a fraction.
    pub(crate) fn keeps_integers(self) -> bool {
        use Aggregation::{
            Average, AvgZero, Count, Diff, Last, Max, Median, Min, Multiply, Range, StdDev, Sum,
        };
        match self {
            Sum | Min | Max | Diff | Count | Last => true,
            Average | AvgZero | Median | StdDev | Range | Multiply => false,
        }
    }

    /// One value of all; NaN when there is none.
    #[must_use]
    pub fn of(self, values: &[f64]) -> f64 {
        let known = || values.iter().copied().filter(|v| !v.is_nan());
        let count = known().count();
        match self {
            Aggregation::Count => return count as f64,
            Aggregation::AvgZero if !values.is_empty() => return known().sum::<f64>() / values.len() as f64,
            Aggregation::Multiply if count < values.len() => return f64::NAN,
            _ if count == 0 => return f64::NAN,
            _ => {}
        }
        match self {
            Aggregation::Average => known().sum::<f64>() / count as f64,
            Aggregation::AvgZero | Aggregation::Count => f64::NAN,
            Aggregation::Median => median(&mut known().collect::<Vec<f64>>()),
            Aggregation::Sum => known().sum(),
            Aggregation::Min => known().fold(f64::INFINITY, f64::min),
            Aggregation::Max => known().fold(f64::NEG_INFINITY, f64::max),
            Aggregation::Diff => known().reduce(|first, v| first - v).unwrap_or(f64::NAN),
            Aggregation::StdDev => {
                let mean = known().sum::<f64>() / count as f64;
                (known().map(|v| (v - mean) * (v - mean)).sum::<f64>() / count as f64).sqrt()
            }
            Aggregation::Range => Aggregation::Max.of(values) - Aggregation::Min.of(values),
            Aggregation::Multiply => known().product(),
            Aggregation::Last => known().next_back().unwrap_or(f64::NAN),
        }
    }

    /// One value for each row. A row is null when nothing in it is known, or less than `x_files_factor` of it.
    ///
    /// # Errors
    /// When `poll` ends the request.
    pub(crate) fn of_rows(
        self,
        columns: &[Column<'_>],
        rows: usize,
        x_files_factor: f64,
        poll: &mut Poll<'_>,
    ) -> Result<Vec<f64>, QueryError> {
        let mut counts = vec![0_u32; rows];
        for column in columns {
            poll(column.values.len())?;
            for (count, value) in counts[column.offset..].iter_mut().zip(column.values.iter()) {
                *count += u32::from(!value.is_nan());
            }
        }
        let total = columns.len() as f64;
        let mut out = self.unchecked_rows(columns, &counts, poll)?;
        let needs_all = self == Aggregation::Multiply;
        for (value, count) in out.iter_mut().zip(&counts) {
            let count = f64::from(*count);
            if count == 0.0 || count / total < x_files_factor || (needs_all && count < total) {
                *value = f64::NAN;
            }
        }
        Ok(out)
    }

    /// Rows without the check of how many are known.
    fn unchecked_rows(
        self,
        columns: &[Column<'_>],
        counts: &[u32],
        poll: &mut Poll<'_>,
    ) -> Result<Vec<f64>, QueryError> {
        let rows = counts.len();
        let divided = |sums: Vec<f64>, by: &dyn Fn(u32) -> f64| -> Vec<f64> {
            sums.iter().zip(counts).map(|(sum, count)| sum / by(*count)).collect()
        };
        Ok(match self {
            Aggregation::Sum => sums(columns, rows, poll)?,
            Aggregation::Average => divided(sums(columns, rows, poll)?, &|count| f64::from(count)),
            Aggregation::AvgZero => divided(sums(columns, rows, poll)?, &|_| columns.len() as f64),
            Aggregation::Min => fold(columns, rows, f64::INFINITY, poll, f64::min)?,
            Aggregation::Max => fold(columns, rows, f64::NEG_INFINITY, poll, f64::max)?,
            Aggregation::Range => {
                let low = fold(columns, rows, f64::INFINITY, poll, f64::min)?;
                let high = fold(columns, rows, f64::NEG_INFINITY, poll, f64::max)?;
                high.iter().zip(low).map(|(high, low)| high - low).collect()
            }
            Aggregation::Count => counts.iter().map(|count| f64::from(*count)).collect(),
            Aggregation::Multiply => fold(columns, rows, 1.0, poll, |product, v| product * v)?,
            Aggregation::Last => fold(columns, rows, f64::NAN, poll, |_, v| v)?,
            Aggregation::Diff => {
                fold(columns, rows, f64::NAN, poll, |first, v| if first.is_nan() { v } else { first - v })?
            }
            Aggregation::StdDev => {
                let means = divided(sums(columns, rows, poll)?, &|count| f64::from(count));
                let mut squares = vec![0.0; rows];
                for column in columns {
                    poll(column.values.len())?;
                    let places = squares[column.offset..].iter_mut().zip(&means[column.offset..]);
                    for ((square, mean), value) in places.zip(column.values.iter()) {
                        let delta = if value.is_nan() { 0.0 } else { value - mean };
                        *square += delta * delta;
                    }
                }
                divided(squares, &|count| f64::from(count)).into_iter().map(f64::sqrt).collect()
            }
            Aggregation::Median => by_row(columns, rows, poll, |row| median(row))?,
        })
    }
}

/// Adds the known values of each row; the loop has no branch, so that it vectorises.
fn sums(columns: &[Column<'_>], rows: usize, poll: &mut Poll<'_>) -> Result<Vec<f64>, QueryError> {
    let mut sums = vec![0.0; rows];
    for column in columns {
        poll(column.values.len())?;
        for (sum, value) in sums[column.offset..].iter_mut().zip(column.values.iter()) {
            *sum += if value.is_nan() { 0.0 } else { *value };
        }
    }
    Ok(sums)
}

fn fold(
    columns: &[Column<'_>],
    rows: usize,
    start: f64,
    poll: &mut Poll<'_>,
    step: impl Fn(f64, f64) -> f64,
) -> Result<Vec<f64>, QueryError> {
    let mut out = vec![start; rows];
    for column in columns {
        poll(column.values.len())?;
        for (sum, value) in out[column.offset..].iter_mut().zip(column.values.iter()) {
            *sum = if value.is_nan() { *sum } else { step(*sum, *value) };
        }
    }
    Ok(out)
}

/// One value of the known values of each row; NaN for a row without any.
///
/// # Errors
/// When `poll` ends the request.
pub(crate) fn by_row(
    columns: &[Column<'_>],
    rows: usize,
    poll: &mut Poll<'_>,
    of: impl Fn(&mut Vec<f64>) -> f64,
) -> Result<Vec<f64>, QueryError> {
    let mut row = Vec::with_capacity(columns.len());
    let mut out = Vec::with_capacity(rows);
    for at in 0..rows {
        // Rows are sorted, or nearly.
        poll(4 * columns.len())?;
        row.clear();
        row.extend(columns.iter().map(|column| column.at(at)).filter(|v| !v.is_nan()));
        out.push(if row.is_empty() { f64::NAN } else { of(&mut row) });
    }
    Ok(out)
}

/// The median of at least one value; the order of the values changes.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let is_even = values.len().is_multiple_of(2);
    let (below, &mut value, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if is_even { (below.iter().copied().fold(f64::NEG_INFINITY, f64::max) + value) / 2.0 } else { value }
}

/// The percentile of the known values; NaN if there is none. The order of the values changes.
pub(crate) fn percentile(values: &mut [f64], percent: f64, interpolate: bool) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return f64::NAN };
    values.sort_unstable_by(f64::total_cmp);
    let exact = ((percent / 100.0) * (values.len() + 1) as f64).clamp(0.0, values.len() as f64 + 1.0);
    let rank = if interpolate { exact.floor() } else { exact.ceil() } as usize;
    let value = values[rank.saturating_sub(1).min(last)];
    match values.get(rank) {
        Some(next) if interpolate => value + exact.fract() * (next - value),
        _ => value,
    }
}

/// True when enough of `total` values are known.
pub(crate) fn is_known(known: usize, total: f64, x_files_factor: f64) -> bool {
    known > 0 && total > 0.0 && known as f64 / total >= x_files_factor
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    const NAN: f64 = f64::NAN;

    #[test]
    fn names_are_known_with_their_aliases() {
        for name in Aggregation::NAMES {
            assert_eq!(
                Aggregation::from_name(name),
                Aggregation::from_name(&format!("{name}Series")),
                "{name}"
            );
            assert!(Aggregation::from_name(name).is_some(), "{name}");
        }
        assert_eq!(Aggregation::from_name("first"), None);
    }

    #[test]
    fn rows_and_values_agree() {
        let rows = [[1.0, 10.0, 7.0], [2.0, NAN, 3.0], [NAN, NAN, 9.0], [NAN, NAN, NAN], [5.0, 50.0, NAN]];
        let columns: Vec<Column<'_>> = (0..3)
            .map(|c| Column { offset: 0, values: Cow::Owned(rows.iter().map(|row| row[c]).collect()) })
            .collect();
        for name in Aggregation::NAMES {
            let function = Aggregation::from_name(name).expect("a name");
            let all = function.of_rows(&columns, rows.len(), 0.0, &mut |_| Ok(())).expect("no end");
            for (row, got) in rows.iter().zip(all) {
                let want = if row.iter().all(|v| v.is_nan()) { NAN } else { function.of(row) };
                assert!(got == want || got.is_nan() && want.is_nan(), "{name} of {row:?}: {got}");
            }
        }
    }

    #[test]
    fn percentiles_are_of_ranks() {
        let table = [
            (50.0, false, 2.0),
            (50.0, true, 2.0),
            (25.0, false, 1.0),
            (60.0, false, 3.0),
            (60.0, true, 2.4),
            (0.1, false, 1.0),
            (100.0, false, 3.0),
            (100.0, true, 3.0),
            (0.0, true, 1.0),
            (1e9, false, 3.0),
            (-5.0, false, 1.0),
        ];
        for (percent, interpolate, want) in table {
            let got = percentile(&mut [3.0, 1.0, 2.0], percent, interpolate);
            assert!((got - want).abs() < 1e-9, "{percent} {interpolate}: {got}");
        }
        assert!(percentile(&mut [], 50.0, false).is_nan());
    }
}
