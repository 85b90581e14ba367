//! Functions that combine the rows of several series into one.

pub(crate) mod group;
pub(crate) mod percent;

use crate::query::budget::NAME_BYTES_MAX;
use crate::query::call::{Answer, Call, Value};
use crate::query::error::{Code, QueryError};
use crate::query::functions::{generate, nodes};
use crate::query::numbers;
use crate::query::series::Series;
use crate::query::series::aggregate::{Aggregation, by_row, percentile};
use crate::query::series::align::Column;

/// Combines series row by row; None without any series.
pub(crate) fn aggregate_series(
    call: &mut Call<'_>,
    mut series: Vec<Series>,
    function: &str,
    x_files_factor: Option<f64>,
) -> Result<Option<Series>, QueryError> {
    let Some(aggregation) = Aggregation::from_name(function) else {
        return Err(QueryError::argument(format!("unknown aggregation function `{function}`")));
    };
    if call.engine.request().compat.trim_recent {
        trim_recent(&mut series);
    }
    let factor = x_files_factor.unwrap_or_else(|| call.x_files_factor());
    let all: Vec<&Series> = series.iter().collect();
    let Some((grid, columns)) = call.align(&all)? else { return Ok(None) };
    if matches!(aggregation, Aggregation::Median | Aggregation::StdDev) {
        call.engine.charge_steps(4 * grid.rows * columns.len())?;
    }
    let values = aggregation.of_rows(&columns, grid.rows, factor, &mut |work| call.engine.poll(work))?;
    let short = function.strip_suffix("Series").unwrap_or(function);
    let name = format!("{short}Series({})", paths(call, &series)?);
    let mut tags = series[0].tags.clone();
    series.iter().for_each(|one| tags.keep_common(&one.tags));
    if tags.value("name").is_none() {
        tags.set("name", name.as_str());
    }
    tags.set("aggregatedBy", short);
    let mut result = Series::new(name, grid.times(), values);
    result.tags = tags;
    result.x_files_factor = factor;
    let whole = aggregation.keeps_integers() && series.iter().all(|one| one.is_integer);
    result.is_integer = whole || aggregation == Aggregation::Count;
    Ok(Some(result))
}

/// Distinct paths for a name, within the limit of names.
fn paths(call: &mut Call<'_>, series: &[Series]) -> Result<String, QueryError> {
    let paths = nodes::paths(series);
    call.engine.charge_steps(paths.len())?;
    if paths.len() > NAME_BYTES_MAX {
        let message =
            format!("the name of the sum would have {} bytes, names have {NAME_BYTES_MAX}", paths.len());
        return Err(QueryError::new(Code::Limit, message).hint("combine first, then change the result"));
    }
    Ok(paths)
}

/// Nulls the last values of all series when some series lack theirs already.
fn trim_recent(series: &mut [Series]) {
    for back in [1, 2] {
        let value = |one: &Series, back: usize| one.values.len().checked_sub(back).map(|at| one.values[at]);
        let lacks = |one: &Series| {
            let known = value(one, back + 1).is_some_and(|v| !v.is_nan());
            known && value(one, back).is_some_and(f64::is_nan)
        };
        if series.iter().any(lacks) {
            for one in &mut *series {
                if let Some(at) = one.values.len().checked_sub(back) {
                    one.values[at] = f64::NAN;
                }
            }
        }
    }
}

fn list(result: Option<Series>) -> Answer {
    Ok(Value::Series(result.into_iter().collect()))
}

/// `sumSeries(*S)` and the like.
pub(crate) fn fixed(call: &mut Call<'_>, function: &str) -> Answer {
    let series = call.args.series(0);
    list(aggregate_series(call, series, function, None)?)
}

/// `aggregate(S, func, xFilesFactor)`.
pub(crate) fn aggregate(call: &mut Call<'_>) -> Answer {
    let series = call.args.series(0);
    let function = call.args.text(1).unwrap_or_default().to_owned();
    let factor = call.args.float(2);
    list(aggregate_series(call, series, &function, factor)?)
}

/// `multiplySeries(*S)`: one series stays as it is.
pub(crate) fn multiply(call: &mut Call<'_>) -> Answer {
    let series = call.args.series(0);
    if series.len() == 1 {
        return Ok(Value::Series(series));
    }
    list(aggregate_series(call, series, "multiply", None)?)
}

/// `…WithWildcards(S, *positions)`: groups by the name without some nodes.
pub(crate) fn with_wildcards(call: &mut Call<'_>, function: &str, positions: usize) -> Answer {
    let series = call.args.series(0);
    let dropped: Vec<i64> =
        call.args.values(positions).iter().filter_map(|v| v.number()).map(|n| n as i64).collect();
    let key = |one: &Series| {
        let kept = (0..).zip(one.name.split('.')).filter(|(at, _)| !dropped.contains(at));
        kept.map(|(_, node)| node).collect::<Vec<_>>().join(".")
    };
    let mut results = Vec::new();
    for (name, group) in nodes::group(series, key) {
        if let Some(mut result) = aggregate_series(call, group, function, None)? {
            result.name = name;
            results.push(result);
        }
    }
    Ok(Value::Series(results))
}

/// `aggregateWithWildcards(S, func, *positions)`.
pub(crate) fn aggregate_with_wildcards(call: &mut Call<'_>) -> Answer {
    let function = call.args.text(1).unwrap_or_default().to_owned();
    with_wildcards(call, &function, 2)
}

/// Two lists of the same length, as pairs.
fn pairs(call: &mut Call<'_>) -> Result<Vec<(Series, Series)>, QueryError> {
    let (first, second) = (call.args.series(0), call.args.series(1));
    if first.len() != second.len() {
        let message =
            format!("both lists need the same number of series, not {} and {}", first.len(), second.len());
        return Err(QueryError::argument(message));
    }
    Ok(first.into_iter().zip(second).collect())
}

/// `sumSeriesLists(S1, S2)` and the like: pairwise.
pub(crate) fn lists(call: &mut Call<'_>, function: &str, factor: Option<f64>) -> Answer {
    let mut results = Vec::new();
    for (first, second) in pairs(call)? {
        let short = function.strip_suffix("Series").unwrap_or(function);
        let name = format!("{short}Series({},{})", first.name, second.name);
        if let Some(mut result) = aggregate_series(call, vec![first, second], function, factor)? {
            result.name = name;
            results.push(result);
        }
    }
    Ok(Value::Series(results))
}

/// `aggregateSeriesLists(S1, S2, func, xFilesFactor)`.
pub(crate) fn aggregate_lists(call: &mut Call<'_>) -> Answer {
    let function = call.args.text(2).unwrap_or_default().to_owned();
    let factor = call.args.float(3);
    lists(call, &function, factor)
}

/// A quotient; null when either is null or the divisor is 0.
pub(crate) fn divided(value: f64, by: f64) -> f64 {
    if by == 0.0 { f64::NAN } else { value / by }
}

/// One value of each row of two series.
pub(crate) fn rows_of_two(
    call: &mut Call<'_>,
    first: &Series,
    second: &Series,
    name: String,
    of: impl Fn(f64, f64) -> f64,
) -> Result<Series, QueryError> {
    let Some((grid, columns)) = call.align(&[first, second])? else {
        return Ok(Series::new(name, (first.start, first.end, first.step), Vec::new()));
    };
    call.engine.poll(2 * grid.rows)?;
    let [a, b] = &columns[..] else { unreachable!("two series have two columns") };
    let values = (0..grid.rows).map(|row| of(a.at(row), b.at(row))).collect();
    let mut result = Series::new(name, grid.times(), values);
    result.x_files_factor = call.x_files_factor();
    Ok(result)
}

/// `divideSeries(S, divisor)`.
pub(crate) fn divide(call: &mut Call<'_>) -> Answer {
    let (mut dividends, divisors) = (call.args.series(0), call.args.series(1));
    let divisor = match &divisors[..] {
        [] => {
            for one in &mut dividends {
                call.engine.poll(one.values.len())?;
                one.rename_with_path(format!("divideSeries({},MISSING)", one.name));
                one.values.fill(f64::NAN);
            }
            return Ok(Value::Series(dividends));
        }
        [divisor] => divisor,
        more => {
            let message = format!("the divisor has to be one series, not {}", more.len());
            return Err(QueryError::argument(message).hint("sum the divisors, or use divideSeriesLists"));
        }
    };
    let mut results = Vec::with_capacity(dividends.len());
    for one in &dividends {
        call.engine.poll(one.values.len())?;
        let name = format!("divideSeries({},{})", one.name, divisor.name);
        results.push(rows_of_two(call, one, divisor, name, divided)?);
    }
    Ok(Value::Series(results))
}

/// `divideSeriesLists(S1, S2)`.
pub(crate) fn divide_lists(call: &mut Call<'_>) -> Answer {
    let mut results = Vec::new();
    for (one, divisor) in pairs(call)? {
        let name = format!("divideSeries({},{})", one.name, divisor.name);
        results.push(rows_of_two(call, &one, &divisor, name, divided)?);
    }
    Ok(Value::Series(results))
}

/// `countSeries(*S)`: the number of series in each row, nulls included.
pub(crate) fn count(call: &mut Call<'_>) -> Answer {
    if call.args.values(0).is_empty() {
        let mut line = generate::constant(call, &Value::Int(0))?;
        line.path = "countSeries()".to_owned();
        return list(Some(line));
    }
    let series = call.args.series(0);
    let all: Vec<&Series> = series.iter().collect();
    let Some((grid, columns)) = call.align(&all)? else { return list(None) };
    let name = format!("countSeries({})", paths(call, &series)?);
    let mut result = Series::new(name, grid.times(), vec![columns.len() as f64; grid.rows]);
    result.is_integer = true;
    result.x_files_factor = call.x_files_factor();
    list(Some(result))
}

/// `group(*S)`.
pub(crate) fn group(call: &mut Call<'_>) -> Answer {
    Ok(Value::Series(call.args.series(0)))
}

/// `percentileOfSeries(S, n, interpolate)`.
pub(crate) fn percentile_of_series(call: &mut Call<'_>) -> Answer {
    let series = call.args.series(0);
    let percent = call.args.float(1).unwrap_or(0.0);
    let interpolate = call.args.is_true(2);
    if percent.is_nan() || percent <= 0.0 {
        return Err(QueryError::argument("the percentile has to be greater than 0".to_owned()));
    }
    let all: Vec<&Series> = series.iter().collect();
    let Some((grid, columns)) = call.align(&all)? else { return list(None) };
    call.engine.charge_steps(8 * grid.rows * columns.len())?;
    let values = by_row(&columns, grid.rows, &mut |work| call.engine.poll(work), |row| {
        percentile(row, percent, interpolate)
    })?;
    let name = format!("percentileOfSeries({},{})", series[0].path, numbers::general(percent));
    let mut result = Series::new(name, grid.times(), values);
    result.x_files_factor = call.x_files_factor();
    list(Some(result))
}

/// A power; null outside of its domain, as when it is too large.
pub(crate) fn power(base: f64, exponent: f64) -> f64 {
    let result = base.powf(exponent);
    if result.is_infinite() && base.is_finite() && exponent.is_finite() || base.is_nan() || exponent.is_nan()
    {
        return f64::NAN;
    }
    result
}

/// `powSeries(*S)`: the first to the power of the second, and so on.
pub(crate) fn pow_series(call: &mut Call<'_>) -> Answer {
    let series = call.args.series(0);
    let all: Vec<&Series> = series.iter().collect();
    let Some((grid, columns)) = call.align(&all)? else { return list(None) };
    let fold = |row: usize| columns.iter().map(|column: &Column<'_>| column.at(row)).reduce(power);
    let mut values = Vec::with_capacity(grid.rows);
    for row in 0..grid.rows {
        values.push(fold(row).unwrap_or(f64::NAN));
        call.engine.poll(columns.len())?;
    }
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    let mut result = Series::new(format!("powSeries({})", names.join(",")), grid.times(), values);
    result.x_files_factor = call.x_files_factor();
    list(Some(result))
}

/// `weightedAverage(values, weights, *nodes)`.
pub(crate) fn weighted_average(call: &mut Call<'_>) -> Answer {
    let nodes = call.args.values(2).to_vec();
    let pairs = pairs(call)?;
    let distinct = |side: fn(&(Series, Series)) -> &Series| {
        let mut paths: Vec<&str> = pairs.iter().map(|pair| side(pair).path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths.join(",")
    };
    let printed: Vec<String> = nodes.iter().map(Value::text).collect();
    let name =
        format!("weightedAverage({}, {}, {})", distinct(|p| &p.0), distinct(|p| &p.1), printed.join(","));
    let (values, weights): (Vec<Series>, Vec<Series>) = pairs.into_iter().unzip();
    let by_key = nodes::group(weights.clone(), |one| nodes::key(one, &nodes));
    let mut products = Vec::new();
    for (key, group) in nodes::group(values, |one| nodes::key(one, &nodes)) {
        // Of several series with one key the last one counts.
        let weight = by_key.iter().find(|(other, _)| *other == key).and_then(|(_, all)| all.last());
        if let (Some(value), Some(weight)) = (group.last(), weight) {
            let product = format!("product({},{})", weight.name, value.name);
            products.push(rows_of_two(call, value, weight, product, |v, w| v * w)?);
        }
    }
    let sums =
        (aggregate_series(call, products, "sum", None)?, aggregate_series(call, weights, "sum", None)?);
    match sums {
        (Some(products), Some(weights)) => list(Some(rows_of_two(call, &products, &weights, name, divided)?)),
        _ => list(None),
    }
}
