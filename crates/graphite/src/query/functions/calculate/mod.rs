//! Functions that compute lines from whole series: percentiles, aggregates, regressions, deviations.

pub(crate) mod holt_winters;
pub(crate) mod window;

use crate::query::call::{Answer, Call, Value};
use crate::query::error::QueryError;
use crate::query::functions::generate;
use crate::query::numbers;
use crate::query::series::Series;
use crate::query::series::aggregate::{Aggregation, percentile};
use crate::query::time_ranges::source;

/// The percentile of a series; None without a known value.
pub(crate) fn percentile_of(series: &Series, percent: f64) -> Option<f64> {
    let mut known: Vec<f64> = series.known().collect();
    let value = percentile(&mut known, percent, false);
    (!value.is_nan()).then_some(value)
}

/// `nPercentile(S, n)`.
pub(crate) fn n_percentile(call: &mut Call<'_>) -> Answer {
    let percent = call.args.float(1).unwrap_or(0.0);
    if percent == 0.0 {
        return Err(QueryError::argument("the percentile has to be greater than 0".to_owned()));
    }
    let mut results = Vec::new();
    for mut one in call.args.series(0) {
        call.engine.poll(one.values.len())?;
        let Some(value) = percentile_of(&one, percent) else { continue };
        let count = usize::try_from((one.end - one.start) / one.step.max(1)).unwrap_or(0);
        call.engine.charge_points(count)?;
        one.tags.set("nPercentile", numbers::repr(percent));
        let name = format!("nPercentile({}, {})", one.name, numbers::general(percent));
        let is_integer = one.is_integer;
        results.push(Series { is_integer, ..one.copy_as(name, vec![value; count]) });
    }
    Ok(Value::Series(results))
}

/// `aggregateLine(S, func, keepStep)`.
pub(crate) fn aggregate_line(call: &mut Call<'_>) -> Answer {
    let function = call.args.text(1).and_then(Aggregation::from_name).unwrap_or(Aggregation::Average);
    let keep_step = call.args.is_true(2);
    let mut results = Vec::new();
    for one in call.args.series(0) {
        call.engine.poll(one.values.len())?;
        let value = function.of(&one.values);
        let printed = if value.is_nan() { "None".to_owned() } else { numbers::general(value) };
        let name = format!("aggregateLine({}, {printed})", one.name);
        let is_integer = one.is_integer && function.keeps_integers() || function == Aggregation::Count;
        let line = if keep_step {
            let count = one.values.len();
            one.copy_as(name, vec![value; count])
        } else {
            let number = match value {
                value if value.is_nan() => Value::None,
                value if is_integer => Value::Int(value as i64),
                value => Value::Float(value),
            };
            let mut line = generate::constant(call, &number)?;
            line.rename_with_path(name);
            line
        };
        results.push(Series { is_integer, ..line });
    }
    Ok(Value::Series(results))
}

/// `stdev(S, points, windowTolerance)`: the deviation of the last points, from running sums as in the original.
pub(crate) fn stdev(call: &mut Call<'_>) -> Answer {
    let points = call.args.int(1).unwrap_or(0);
    let tolerance = call.args.float(2).unwrap_or(0.1);
    let window = usize::try_from(points).ok().filter(|points| *points > 0);
    let Some(window) = window else {
        return Err(QueryError::argument("the number of points has to be greater than 0".to_owned()));
    };
    let mut results = Vec::new();
    for mut one in call.args.series(0) {
        call.engine.poll(one.values.len())?;
        one.tags.set("stdev", points.to_string());
        let name = format!("stdev({},{points})", one.name);
        let values = deviations(&one.values, window, tolerance);
        results.push(one.copy_as(name, values));
    }
    Ok(Value::Series(results))
}

fn deviations(values: &[f64], window: usize, tolerance: f64) -> Vec<f64> {
    let (mut known, mut sum, mut squares) = (0_usize, 0.0, 0.0);
    let next = |(at, value): (usize, &f64)| {
        if let Some(dropped) = at.checked_sub(window).map(|old| values[old]).filter(|v| !v.is_nan()) {
            known -= 1;
            sum -= dropped;
            squares -= dropped * dropped;
        }
        if !value.is_nan() {
            known += 1;
            sum += value;
            squares += value * value;
        }
        let count = known as f64;
        if known == 0 || count / (window as f64) < tolerance {
            return f64::NAN;
        }
        // A negative difference, which rounding can give, has no root: null.
        (count * squares - sum * sum).sqrt() / count
    };
    values.iter().enumerate().map(next).collect()
}

/// `linearRegression(S, startSourceAt, endSourceAt)`.
pub(crate) fn linear_regression(call: &mut Call<'_>) -> Answer {
    let request = call.engine.request();
    let learned = source(call.args.value(1), call.args.value(2), call.range, request)?;
    let here = call.evaluate_first(call.range)?;
    let sources = call.evaluate_first(learned)?;
    let mut results = Vec::new();
    for (source, mut one) in sources.into_iter().zip(here) {
        call.engine.poll(source.values.len() + one.values.len())?;
        let times = format!("{}, {}", learned.from, learned.until);
        one.tags.set("linearRegressions", times.as_str());
        let Some((factor, offset)) = line(&source) else { continue };
        let values: Vec<f64> =
            (0..one.values.len()).map(|at| offset + one.time(at) as f64 * factor).collect();
        let name = format!("linearRegression({}, {times})", one.name);
        let mut result = Series::new(name, (one.start, one.end, one.step), values);
        result.tags = one.tags;
        result.x_files_factor = one.x_files_factor;
        results.push(result);
    }
    Ok(Value::Series(results))
}

/// Factor and offset of the line through the known values, by least squares over their indexes.
fn line(series: &Series) -> Option<(f64, f64)> {
    let (mut n, mut i, mut v, mut ii, mut iv) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (at, value) in series.values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
        let at = at as f64;
        n += 1.0;
        i += at;
        v += value;
        ii += at * at;
        iv += at * value;
    }
    let denominator = n * ii - i * i;
    if denominator == 0.0 {
        return None;
    }
    let factor = (n * iv - i * v) / denominator / series.step as f64;
    let offset = (ii * v - iv * i) / denominator - factor * series.start as f64;
    Some((factor, offset))
}
