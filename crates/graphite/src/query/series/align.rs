//! Several series on one grid, before their values are combined row by row.
//!
//! The step is the least common multiple, each series is consolidated to it with its own function, and rows are points
//! in time. graphite-web numbers the rows of each series from its own start instead, which shifts series with different
//! starts against each other; `by_index` does the same.

use std::borrow::Cow;

use super::Series;
use crate::query::budget::Poll;
use crate::query::error::{Code, QueryError};

/// Longest common step in seconds: a thousand years.
const STEP_MAX: i64 = 1000 * 366 * 86_400;

/// The times of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) step: i64,
    pub(crate) rows: usize,
}

impl Grid {
    /// As the arguments of a new series.
    pub(crate) fn times(&self) -> (i64, i64, i64) {
        (self.start, self.end, self.step)
    }
}

/// The values of one series on a grid.
#[derive(Clone, Debug)]
pub(crate) struct Column<'s> {
    /// Row of the first value.
    pub(crate) offset: usize,
    pub(crate) values: Cow<'s, [f64]>,
}

impl Column<'_> {
    /// The value of a row; NaN outside.
    pub(crate) fn at(&self, row: usize) -> f64 {
        row.checked_sub(self.offset).and_then(|at| self.values.get(at)).copied().unwrap_or(f64::NAN)
    }
}

/// Puts series on one grid; None without any series.
///
/// # Errors
/// When the grid has more than `rows_max` rows, or `poll` ends the request.
pub(crate) fn align<'s>(
    series: &[&'s Series],
    by_index: bool,
    rows_max: usize,
    poll: &mut Poll<'_>,
) -> Result<Option<(Grid, Vec<Column<'s>>)>, QueryError> {
    let Some(first) = series.first() else { return Ok(None) };
    let mut step = first.step.max(1);
    for one in series {
        step = common_multiple(step, one.step.max(1))?;
    }
    let start = series.iter().map(|s| s.start).min().unwrap_or(0);
    let end = series.iter().map(|s| s.end).max().unwrap_or(0);
    let mut columns: Vec<Column<'s>> = Vec::with_capacity(series.len());
    for one in series {
        columns.push(column(one, if by_index { one.start } else { start }, step));
        // Values of the common step are not copied.
        poll(1 + if one.step == step { 0 } else { one.values.len() })?;
    }
    let rows = columns.iter().map(|column| column.offset + column.values.len()).max().unwrap_or(0);
    if rows > rows_max {
        let message = format!("the common times of {} series are {rows} points", series.len());
        return Err(
            QueryError::new(Code::Limit, message).hint("combine series of nearer times, or a shorter range")
        );
    }
    let grid = Grid { start, end: end - (end - start).rem_euclid(step), step, rows };
    Ok(Some((grid, columns)))
}

fn column(series: &Series, start: i64, step: i64) -> Column<'_> {
    let own = series.step.max(1);
    let late = series.start - start;
    let offset = usize::try_from(late / step).unwrap_or(usize::MAX / 2);
    if own == step {
        return Column { offset, values: Cow::Borrowed(&series.values) };
    }
    // Values of the first row: those before the row's end.
    let until_next = step - late % step;
    let head = if late % step == 0 { 0 } else { (until_next + own - 1) / own };
    let per_row = usize::try_from(step / own).unwrap_or(1);
    let head = usize::try_from(head).unwrap_or(0);
    let values = series.consolidation.apply(&series.values, head, per_row, series.x_files_factor);
    Column { offset, values: Cow::Owned(values) }
}

fn common_multiple(a: i64, b: i64) -> Result<i64, QueryError> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b).filter(|step| *step <= STEP_MAX).ok_or_else(|| {
        QueryError::new(
            Code::Limit,
            format!("steps of {a} s and {b} s have no common multiple below 1000 years"),
        )
        .hint("summarize the series to one step first")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::query::series::aggregate::Aggregation;
    use crate::query::series::consolidate::Consolidation;

    fn series(start: i64, step: i64, values: Vec<f64>) -> Series {
        let end = start + step * values.len() as i64;
        Series::new("s".to_owned(), (start, end, step), values)
    }

    fn sums(all: &[Series], by_index: bool) -> (Grid, Vec<f64>) {
        let all: Vec<&Series> = all.iter().collect();
        let (grid, columns) =
            align(&all, by_index, 1_000_000, &mut |_| Ok(())).expect("few rows").expect("some series");
        (grid, Aggregation::Sum.of_rows(&columns, grid.rows, 0.0, &mut |_| Ok(())).expect("no end"))
    }

    #[test]
    fn series_of_different_steps_get_the_common_step() {
        let coarse = [series(0, 30, vec![1.0, 2.0, 3.0, 4.0]), series(0, 60, vec![10.0, 20.0])];
        assert_eq!(sums(&coarse, false), (Grid { start: 0, end: 120, step: 60, rows: 2 }, vec![11.5, 23.5]));
        let ten = [10.0, 20.0, 30.0, 40.0].to_vec();
        let uneven = [series(0, 2, (1..=6).map(f64::from).collect()), series(0, 3, ten)];
        assert_eq!(sums(&uneven, false), (Grid { start: 0, end: 12, step: 6, rows: 2 }, vec![17.0, 40.0]));
    }

    #[test]
    fn rows_are_times() {
        let late = [series(0, 60, vec![1.0, 2.0, 3.0]), series(60, 60, vec![10.0, 20.0])];
        assert_eq!(sums(&late, false).1, [1.0, 12.0, 23.0]);
        assert_eq!(sums(&late, true).1, [11.0, 22.0, 3.0], "as in graphite-web");
        let within = [series(0, 60, vec![1.0, 2.0]), series(90, 30, vec![10.0, 20.0, 30.0])];
        assert_eq!(sums(&within, false).1, [1.0, 12.0, 25.0]);
    }

    #[test]
    fn far_apart_series_are_refused() {
        let far = [series(0, 1, vec![1.0]), series(100, 1, vec![1.0])];
        let all: Vec<&Series> = far.iter().collect();
        assert!(align(&all, false, 101, &mut |_| Ok(())).is_ok());
        assert!(align(&all, false, 100, &mut |_| Ok(())).is_err());
        let primes = [series(0, 2_147_483_647, vec![1.0]), series(0, 2_147_483_629, vec![1.0])];
        assert!(align(&primes.iter().collect::<Vec<_>>(), false, 100, &mut |_| Ok(())).is_err());
    }

    proptest! {
        #[test]
        fn aligning_keeps_sums(
            start in 0..5_i64, steps in prop::sample::select(vec![(1_i64, 1_i64), (2, 3), (2, 4), (5, 3)]),
            a in prop::collection::vec(0..100_u8, 1..40), b in prop::collection::vec(0..100_u8, 1..40),
        ) {
            let total: f64 = a.iter().chain(&b).map(|v| f64::from(*v)).sum();
            let mut all = [
                series(0, steps.0, a.into_iter().map(f64::from).collect()),
                series(start, steps.1, b.into_iter().map(f64::from).collect()),
            ];
            all.iter_mut().for_each(|s| s.consolidation = Consolidation::Sum);
            for by_index in [false, true] {
                let (grid, rows) = sums(&all, by_index);
                prop_assert_eq!(rows.iter().filter(|v| !v.is_nan()).sum::<f64>(), total);
                prop_assert_eq!((grid.end - grid.start) % grid.step, 0);
            }
        }
    }
}
