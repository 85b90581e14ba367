//! Functions that make fewer, longer steps: `summarize`, `smartSummarize`, `hitcount`, `compressPeriodicGaps`.

use crate::query::call::{Answer, Call, Value};
use crate::query::error::QueryError;
use crate::query::series::Series;
use crate::query::series::aggregate::{Aggregation, is_known};
use crate::query::time_ranges::{from_interval, from_unit, positive_seconds};

/// Buckets of one series from a start to an end; gives the values and the end of the last bucket.
fn buckets(
    call: &mut Call<'_>,
    series: &Series,
    function: Aggregation,
    interval: i64,
    (start, end): (i64, i64),
) -> Result<(Vec<f64>, i64), QueryError> {
    let step = series.step.max(1);
    let count = (end - start).max(0).div_euclid(interval) + i64::from((end - start).max(0) % interval > 0);
    call.engine.charge_points(usize::try_from(count).unwrap_or(usize::MAX))?;
    let times = (series.end - series.start + step - 1).max(0) / step;
    let points = series.values.len().min(usize::try_from(times).unwrap_or(0));
    let room = interval as f64 / step as f64;
    let mut values = Vec::new();
    let (mut at, mut bucket) = (0, start);
    while bucket < end {
        let (mut first, mut known) = (at, 0);
        while at < points && series.time(at) < bucket + interval {
            if series.time(at) <= bucket {
                first = at;
            }
            known += usize::from(series.time(at) >= bucket && !series.values[at].is_nan());
            at += 1;
        }
        call.engine.poll(1 + at - first)?;
        let is_enough = is_known(known, room, series.x_files_factor);
        values.push(if is_enough { function.of(&series.values[first..at]) } else { f64::NAN });
        bucket += interval;
    }
    Ok((values, bucket))
}

fn aggregation(call: &Call<'_>) -> (Aggregation, String) {
    let name = call.args.text(2).unwrap_or("sum").to_owned();
    (Aggregation::from_name(&name).unwrap_or(Aggregation::Sum), name)
}

/// `summarize(S, interval, func, alignToFrom)`.
pub(crate) fn summarize(call: &mut Call<'_>) -> Answer {
    let text = call.args.text(1).unwrap_or_default().to_owned();
    let interval = positive_seconds(&text)?;
    let (function, name) = aggregation(call);
    let align_to_from = call.args.is_true(3);
    let mut results = Vec::new();
    for mut one in call.args.series(0) {
        call.engine.poll(one.values.len())?;
        let (start, mut end) = if align_to_from {
            (one.start, one.end)
        } else {
            let floor = |time: i64| time - time.rem_euclid(interval);
            (floor(one.start), floor(one.end) + interval)
        };
        let (values, aligned_end) = buckets(call, &one, function, interval, (start, end))?;
        if align_to_from {
            end = aligned_end;
        }
        one.tags.set("summarize", text.as_str());
        one.tags.set("summarizeFunction", name.as_str());
        let suffix = if align_to_from { ", true" } else { "" };
        let new_name = format!("summarize({}, \"{text}\", \"{name}\"{suffix})", one.name);
        results.push(summarized(one, new_name, values, (start, end, interval), function));
    }
    Ok(Value::Series(results))
}

fn summarized(
    series: Series,
    name: String,
    values: Vec<f64>,
    (start, end, step): (i64, i64, i64),
    function: Aggregation,
) -> Series {
    let is_integer = series.is_integer && function.keeps_integers() || function == Aggregation::Count;
    Series { start, end, step, is_integer, ..series.copy_as(name, values) }
}

/// `smartSummarize(S, interval, func, alignTo)`.
pub(crate) fn smart_summarize(call: &mut Call<'_>) -> Answer {
    let text = call.args.text(1).unwrap_or_default().to_owned();
    let interval = positive_seconds(&text)?;
    let (function, name) = aggregation(call);
    let range = match call.args.text(3) {
        None => call.range,
        Some(unit) => from_unit(unit, call.range, call.engine.request())?,
    };
    let mut results = Vec::new();
    for mut one in call.evaluate_first(range)? {
        call.engine.poll(one.values.len())?;
        let (start, end) = (one.start, one.end);
        let (values, end) = buckets(call, &one, function, interval, (start, end))?;
        one.tags.set("smartSummarize", text.as_str());
        one.tags.set("smartSummarizeFunction", name.as_str());
        let new_name = format!("smartSummarize({}, \"{text}\", \"{name}\")", one.name);
        results.push(summarized(one, new_name, values, (start, end, interval), function));
    }
    Ok(Value::Series(results))
}

/// `hitcount(S, interval, alignToInterval)`.
pub(crate) fn hitcount(call: &mut Call<'_>) -> Answer {
    let text = call.args.text(1).unwrap_or_default().to_owned();
    let interval = positive_seconds(&text)?;
    let is_aligned = call.args.is_true(2);
    let range =
        if is_aligned { from_interval(interval, call.range, call.engine.request()) } else { call.range };
    let mut series = call.evaluate_first(range)?;
    let mut results = Vec::new();
    for mut one in series.drain(..) {
        call.engine.poll(one.values.len())?;
        if is_aligned {
            one.end = one.start + (one.end - one.start).div_euclid(interval) * interval + interval;
        }
        let length = (one.end - one.start).max(0);
        let count = length.div_euclid(interval) + i64::from(length % interval > 0);
        let places = usize::try_from(count).unwrap_or(usize::MAX);
        call.engine.charge_points(places)?;
        call.engine.charge_steps(places.saturating_add(one.values.len()))?;
        let start = one.end - count * interval;
        let values = hits(&one, start, interval, places);
        one.tags.set("hitcount", text.as_str());
        let suffix = if is_aligned { ", true" } else { "" };
        let name = format!("hitcount({}, \"{text}\"{suffix})", one.name);
        let is_integer = one.is_integer;
        results.push(Series { start, step: interval, is_integer, ..one.copy_as(name, values) });
    }
    Ok(Value::Series(results))
}

/// Each value times the seconds that it has in a bucket.
fn hits(series: &Series, start: i64, interval: i64, count: usize) -> Vec<f64> {
    let mut sums = vec![f64::NAN; count];
    let Some(last) = count.checked_sub(1) else { return sums };
    let mut add = |bucket: i64, hits: f64| {
        if let Some(sum) = usize::try_from(bucket).ok().and_then(|at| sums.get_mut(at)) {
            *sum = if sum.is_nan() { hits } else { *sum + hits };
        }
    };
    for (at, value) in series.values.iter().enumerate().filter(|(_, value)| !value.is_nan()) {
        let split = |time: i64| ((time - start).div_euclid(interval), (time - start).rem_euclid(interval));
        let (first, skipped) = split(series.time(at));
        let (mut end, mut rest) = split(series.time(at) + series.step);
        if end > last as i64 {
            (end, rest) = (last as i64, interval);
        }
        if first >= end {
            add(first, value * (rest - skipped) as f64);
            continue;
        }
        add(first, value * (interval - skipped) as f64);
        for bucket in first + 1..end {
            add(bucket, value * interval as f64);
        }
        if rest > 0 {
            add(end, value * rest as f64);
        }
    }
    sums
}

/// `compressPeriodicGaps(S)`: one value of each period, when all between them is null.
pub(crate) fn compress_periodic_gaps(call: &mut Call<'_>) -> Answer {
    let mut results = Vec::new();
    for mut one in call.args.series(0) {
        call.engine.poll(one.values.len())?;
        one.rename_with_path(format!("compressPeriodicGaps({})", one.name));
        if let Some((first, period)) = period(&one.values) {
            let interval = period as i64 * one.step;
            let start = one.time(first);
            let (values, _) = buckets(call, &one, Aggregation::Last, interval, (start, one.end))?;
            let end = start + interval * (values.len() as i64 - 1);
            one = Series { start, end, step: interval, values, ..one };
            one.drawing = crate::query::series::Drawing::default();
        }
        results.push(one);
    }
    Ok(Value::Series(results))
}

/// Where the first value is, and the distance of the second, if a third one follows at the same distance, alone. A first
/// value at the very beginning, and values of 0, do not count, as in the original.
fn period(values: &[f64]) -> Option<(usize, usize)> {
    let is_value = |at: usize| values.get(at).is_some_and(|v| !v.is_nan() && *v != 0.0);
    let mut seen = (0..values.len()).filter(|at| is_value(*at)).skip_while(|at| *at == 0);
    let first = seen.next()?;
    let second = seen.next()?;
    let period = second - first;
    let third = second + period;
    let is_alone = third + 2 <= values.len() && values[third - 1].is_nan() && values[third + 1].is_nan();
    (period > 1 && is_alone && is_value(third)).then_some((first, period))
}
