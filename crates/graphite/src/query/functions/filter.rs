//! Functions that choose series, values, or the order of series.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::query::call::{Answer, Call, Value};
use crate::query::error::QueryError;
use crate::query::functions::calculate::percentile_of;
use crate::query::numbers;
use crate::query::series::Series;
use crate::query::series::aggregate::{Aggregation, by_row, is_known, percentile};

/// The end of a slice as Python counts it: negative numbers from the end.
pub(crate) fn slice_end(end: i64, len: usize) -> usize {
    match usize::try_from(end) {
        Ok(end) => end.min(len),
        Err(_) => len.saturating_sub(usize::try_from(end.unsigned_abs()).unwrap_or(usize::MAX)),
    }
}

/// Keeps some series; `is_kept` does work for each value and each byte of the name.
fn keep(call: &mut Call<'_>, mut is_kept: impl FnMut(&Series) -> bool) -> Answer {
    let mut kept = Vec::new();
    for one in call.args.series(0) {
        call.engine.poll(4 * one.values.len() + 16 * one.name.len())?;
        if is_kept(&one) {
            kept.push(one);
        }
    }
    Ok(Value::Series(kept))
}

/// Compares an aggregate with a threshold. No aggregate is smaller than any.
fn compare(value: f64, operator: &str, threshold: f64) -> bool {
    match operator {
        "=" => value == threshold,
        "!=" => value.is_nan() || value != threshold,
        ">" => value > threshold,
        ">=" => value >= threshold,
        "<" => value.is_nan() || value < threshold,
        _ => value.is_nan() || value <= threshold,
    }
}

/// `filterSeries(S, func, operator, threshold)`.
pub(crate) fn filter_series(call: &mut Call<'_>) -> Answer {
    let function = call.args.text(1).and_then(Aggregation::from_name).unwrap_or(Aggregation::Average);
    let operator = call.args.text(2).unwrap_or_default().to_owned();
    let threshold = call.args.float(3).unwrap_or(0.0);
    keep(call, |one| compare(function.of(&one.values), &operator, threshold))
}

/// `averageAbove(S, n)` and the like.
pub(crate) fn compared(call: &mut Call<'_>, function: Aggregation, operator: &str) -> Answer {
    let threshold = call.args.float(1).unwrap_or(0.0);
    keep(call, |one| compare(function.of(&one.values), operator, threshold))
}

/// Sorts by an aggregate; a series without one is smallest. Equal series keep their order.
fn sort(
    call: &mut Call<'_>,
    series: Vec<Series>,
    of: impl Fn(&Series) -> f64,
    is_descending: bool,
) -> Result<Vec<Series>, QueryError> {
    let key = |one: &Series| match of(one) {
        value if value.is_nan() => f64::NEG_INFINITY,
        value => value,
    };
    let mut keyed: Vec<(f64, Series)> = Vec::with_capacity(series.len());
    for one in series {
        call.engine.poll(4 * one.values.len())?;
        keyed.push((key(&one), one));
    }
    let order = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or(Ordering::Equal);
    keyed.sort_by(|a, b| if is_descending { order(b.0, a.0) } else { order(a.0, b.0) });
    Ok(keyed.into_iter().map(|(_, one)| one).collect())
}

fn first(mut series: Vec<Series>, count: i64) -> Answer {
    series.truncate(slice_end(count, series.len()));
    Ok(Value::Series(series))
}

/// `highest(S, n, func)` and `lowest(S, n, func)`.
pub(crate) fn extreme(call: &mut Call<'_>, is_highest: bool) -> Answer {
    let function = call.args.text(2).and_then(Aggregation::from_name).unwrap_or(Aggregation::Average);
    extreme_by(call, function, is_highest)
}

/// `highestAverage(S, n)` and the like.
pub(crate) fn extreme_by(call: &mut Call<'_>, function: Aggregation, is_highest: bool) -> Answer {
    let count = call.args.int(1).unwrap_or(1);
    let series = call.args.series(0);
    first(sort(call, series, |one| function.of(&one.values), is_highest)?, count)
}

/// `limit(S, n)`.
pub(crate) fn limit(call: &mut Call<'_>) -> Answer {
    let count = call.args.int(1).unwrap_or(0);
    first(call.args.series(0), count)
}

/// `grep(S, pattern)` and `exclude(S, pattern)`.
pub(crate) fn grep(call: &mut Call<'_>, is_kept: bool) -> Answer {
    let pattern = call.pattern(1)?;
    keep(call, |one| pattern.matches(&one.name) == is_kept)
}

/// `mostDeviant(S, n)`.
pub(crate) fn most_deviant(call: &mut Call<'_>) -> Answer {
    let count = call.args.int(1).unwrap_or(0);
    let mut series = call.args.series(0);
    series.retain(|one| one.known().next().is_some());
    let variance = |one: &Series| {
        let deviation = Aggregation::StdDev.of(&one.values);
        deviation * deviation
    };
    first(sort(call, series, variance, true)?, count)
}

/// Percentiles are those of the larger side.
fn upper_side(percent: f64) -> f64 {
    if percent < 50.0 { 100.0 - percent } else { percent }
}

/// `averageOutsidePercentile(S, n)`.
pub(crate) fn average_outside_percentile(call: &mut Call<'_>) -> Answer {
    let percent = upper_side(call.args.float(1).unwrap_or(0.0));
    let series = call.args.series(0);
    let mut averages = Vec::with_capacity(series.len());
    for one in &series {
        call.engine.poll(one.values.len())?;
        averages.push(Aggregation::Average.of(&one.values));
    }
    let mut known: Vec<f64> = averages.iter().copied().filter(|value| !value.is_nan()).collect();
    let low = percentile(&mut known, 100.0 - percent, false);
    let high = percentile(&mut known, percent, false);
    let is_within = |value: f64| low < value && value < high;
    let kept = series.into_iter().zip(averages).filter(|(_, average)| !is_within(*average));
    Ok(Value::Series(kept.map(|(one, _)| one).collect()))
}

/// `removeBetweenPercentile(S, n)`.
pub(crate) fn remove_between_percentile(call: &mut Call<'_>) -> Answer {
    let percent = upper_side(call.args.float(1).unwrap_or(0.0));
    let series = call.args.series(0);
    let all: Vec<&Series> = series.iter().collect();
    let Some((grid, columns)) = call.align(&all)? else { return Ok(Value::Series(series)) };
    call.engine.charge_steps(16 * grid.rows * columns.len())?;
    let mut row = |n: f64| {
        by_row(&columns, grid.rows, &mut |work| call.engine.poll(work), |row| percentile(row, n, false))
    };
    let (low, high) = (row(100.0 - percent)?, row(percent)?);
    let is_within = |at: usize, value: f64| low[at] < value && value < high[at];
    let kept: Vec<bool> = columns
        .iter()
        .map(|column| {
            column
                .values
                .iter()
                .enumerate()
                .any(|(at, value)| !value.is_nan() && !is_within(at + column.offset, *value))
        })
        .collect();
    let chosen = series.into_iter().zip(kept).filter(|(_, is_kept)| *is_kept).map(|(one, _)| one);
    Ok(Value::Series(chosen.collect()))
}

/// `removeEmptySeries(S, xFilesFactor)`.
pub(crate) fn remove_empty_series(call: &mut Call<'_>) -> Answer {
    let factor = call.args.float(1).unwrap_or(0.0);
    keep(call, |one| is_known(one.known().count(), one.values.len() as f64, factor))
}

/// `unique(*S)`.
pub(crate) fn unique(call: &mut Call<'_>) -> Answer {
    let mut seen = BTreeSet::<String>::new();
    keep(call, |one| seen.insert(one.name.clone()))
}

/// `useSeriesAbove(S, value, search, replace)`: other series for those with a value above.
pub(crate) fn use_series_above(call: &mut Call<'_>) -> Answer {
    let threshold = call.args.float(1).unwrap_or(0.0);
    let pattern = call.pattern(2)?;
    let replacement = pattern.replacement(call.args.text(3).unwrap_or_default())?;
    let mut results = Vec::new();
    for one in call.args.series(0) {
        call.engine.poll(one.values.len())?;
        if one.known().any(|value| value > threshold) {
            let target = pattern.replace(&one.name, &replacement)?;
            let range = call.range;
            results.extend(call.engine.evaluate_text(&target, range)?);
        }
    }
    results.retain(|one| !one.values.is_empty());
    Ok(Value::Series(results))
}

/// `fallbackSeries(S, fallback)`.
pub(crate) fn fallback_series(call: &mut Call<'_>) -> Answer {
    let series = call.args.series(0);
    Ok(Value::Series(if series.is_empty() { call.args.series(1) } else { series }))
}

/// Nulls values of each series under a name with the argument.
fn remove(
    call: &mut Call<'_>,
    function: &str,
    is_removed: impl Fn(&mut Series, f64) -> Option<(bool, f64)>,
) -> Answer {
    let argument = call.args.float(1).unwrap_or(0.0);
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.rename_with_path(format!("{function}({}, {})", one.name, numbers::general(argument)));
        let Some((is_above, limit)) = is_removed(one, argument) else { continue };
        for value in &mut one.values {
            if if is_above { *value > limit } else { *value < limit } {
                *value = f64::NAN;
            }
        }
    }
    Ok(Value::Series(series))
}

/// `removeAboveValue(S, n)` and `removeBelowValue(S, n)`.
pub(crate) fn remove_by_value(call: &mut Call<'_>, is_above: bool) -> Answer {
    let function = if is_above { "removeAboveValue" } else { "removeBelowValue" };
    remove(call, function, |_, limit| Some((is_above, limit)))
}

/// `removeAbovePercentile(S, n)` and `removeBelowPercentile(S, n)`: of each series by itself.
pub(crate) fn remove_by_percentile(call: &mut Call<'_>, is_above: bool) -> Answer {
    let function = if is_above { "removeAbovePercentile" } else { "removeBelowPercentile" };
    remove(call, function, |one, percent| {
        let limit = percentile_of(one, percent)?;
        one.tags.set("nPercentile", numbers::repr(percent));
        Some((is_above, limit))
    })
}

/// `sortBy(S, func, reverse)`.
pub(crate) fn sort_by(call: &mut Call<'_>) -> Answer {
    let function = call.args.text(1).and_then(Aggregation::from_name).unwrap_or(Aggregation::Average);
    let is_descending = call.args.is_true(2);
    sorted(call, function, is_descending)
}

/// `sortByTotal(S)` and `sortByMaxima(S)`.
pub(crate) fn sorted(call: &mut Call<'_>, function: Aggregation, is_descending: bool) -> Answer {
    let series = call.args.series(0);
    Ok(Value::Series(sort(call, series, |one| function.of(&one.values), is_descending)?))
}

/// `sortByMinima(S)`: without series that are never above 0.
pub(crate) fn sort_by_minima(call: &mut Call<'_>) -> Answer {
    let mut series = call.args.series(0);
    series.retain(|one| Aggregation::Max.of(&one.values) > 0.0);
    Ok(Value::Series(sort(call, series, |one| Aggregation::Min.of(&one.values), false)?))
}

/// `sortByName(S, natural, reverse)`.
pub(crate) fn sort_by_name(call: &mut Call<'_>) -> Answer {
    let (is_natural, is_descending) = (call.args.is_true(1), call.args.is_true(2));
    let mut series = call.args.series(0);
    let bytes: usize = series.iter().map(|one| one.name.len()).sum();
    call.engine.charge_steps(bytes.saturating_mul(12))?;
    let key = |one: &Series| if is_natural { natural(&one.name) } else { one.name.clone() };
    if is_descending {
        series.sort_by_cached_key(|one| std::cmp::Reverse(key(one)));
    } else {
        series.sort_by_cached_key(key);
    }
    Ok(Value::Series(series))
}

/// A name whose numbers have ten digits.
fn natural(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 20);
    let mut rest = name;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        let digits = rest[at..].bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[at..at + digits].trim_start_matches('0');
        out.push_str(&format!("{number:0>10}"));
        rest = &rest[at + digits..];
    }
    out.push_str(rest);
    out
}
