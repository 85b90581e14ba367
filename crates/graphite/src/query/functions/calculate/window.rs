//! Moving windows. Data is fetched from one window earlier, so that the first value has a whole window.

use crate::query::budget::Poll;
use crate::query::call::{Answer, Call, Range, Value};
use crate::query::error::QueryError;
use crate::query::numbers;
use crate::query::series::Series;
use crate::query::series::aggregate::{Aggregation, is_known};
use crate::query::time_ranges::seconds;

/// Largest window in points, and in seconds.
const WINDOW_MAX: i64 = 1 << 40;

/// Longest window whose sums are computed one by one; those of longer ones may differ in their last digits.
const SUMMED_POINTS_MAX: usize = 512;

/// A window and the series that it needs.
struct Window {
    /// Seconds before the range.
    preview: i64,
    /// The argument as names print it.
    printed: String,
    /// Number of points, unless it depends on the step of each series.
    points: Option<i64>,
    /// As tags print it.
    tag: String,
    series: Vec<Series>,
}

impl Window {
    /// Reads the second argument and evaluates the first one from a window earlier.
    fn new(call: &mut Call<'_>) -> Result<Option<Window>, QueryError> {
        let window = call.args.value(1).clone();
        let tag = window.text();
        if let Value::Text(text) = window {
            let preview = seconds(&text)?;
            if preview > WINDOW_MAX {
                return Err(QueryError::argument("the window is too long".to_owned()));
            }
            let series = call.evaluate_first(call.range.earlier(preview))?;
            return Ok(Some(Window { preview, printed: format!("\"{text}\""), points: None, tag, series }));
        }
        let points = call.args.int(1).filter(|points| (1..=WINDOW_MAX >> 20).contains(points));
        let Some(points) = points else {
            let message = format!("a window has 1 to {} points", WINDOW_MAX >> 20);
            return Err(QueryError::argument(message));
        };
        let here = call.evaluate_first(call.range)?;
        let Some(step) = here.iter().map(|one| one.step).max() else { return Ok(None) };
        let preview = step.saturating_mul(points).min(WINDOW_MAX);
        let earlier: Range = call.range.earlier(preview);
        let series = call.evaluate_first(earlier)?;
        Ok(Some(Window { preview, printed: tag.clone(), points: Some(points), tag, series }))
    }

    fn points_of(&self, series: &Series) -> usize {
        let points = self.points.unwrap_or(self.preview / series.step.max(1));
        usize::try_from(points).unwrap_or(usize::MAX)
    }
}

/// `movingWindow(S, window, func, xFilesFactor)`.
pub(crate) fn moving_window(call: &mut Call<'_>) -> Answer {
    let function = call.args.text(2).unwrap_or("average").to_owned();
    let factor = call.args.float(3);
    moving(call, &function, factor)
}

/// `movingAverage(S, window, xFilesFactor)` and the like.
pub(crate) fn fixed(call: &mut Call<'_>, function: &str) -> Answer {
    let factor = call.args.float(2);
    moving(call, function, factor)
}

fn moving(call: &mut Call<'_>, function: &str, factor: Option<f64>) -> Answer {
    let Some(aggregation) = Aggregation::from_name(function) else {
        return Err(QueryError::argument(format!("unknown aggregation function `{function}`")));
    };
    let Some(mut window) = Window::new(call)? else { return Ok(Value::Series(Vec::new())) };
    let name = format!("moving{}", capitalized(function));
    let mut results = Vec::new();
    for mut one in std::mem::take(&mut window.series) {
        call.engine.poll(one.values.len())?;
        let points = window.points_of(&one);
        let factor = factor.unwrap_or(one.x_files_factor);
        let work = match aggregation {
            Aggregation::Average | Aggregation::Sum => 2 + points.min(SUMMED_POINTS_MAX) / 8,
            _ => points.min(one.values.len()),
        };
        call.engine.charge_steps(work.saturating_mul(one.values.len()))?;
        let values = windows(&one.values, points, aggregation, factor, &mut |work| call.engine.poll(work))?;
        one.tags.set(name.clone(), window.tag.as_str());
        let new_name = format!("{name}({},{})", one.name, window.printed);
        let is_integer = one.is_integer && aggregation.keeps_integers() || aggregation == Aggregation::Count;
        let start = one.start + window.preview;
        results.push(Series { start, is_integer, ..one.copy_as(new_name, values) });
    }
    Ok(Value::Series(results))
}

/// As Python's `capitalize`: the first letter large, all others small.
fn capitalized(name: &str) -> String {
    let (first, rest) = name.split_at(1.min(name.len()));
    first.to_uppercase() + &rest.to_lowercase()
}

/// One value for each window that ends after the first `points` values.
fn windows(
    values: &[f64],
    points: usize,
    function: Aggregation,
    factor: f64,
    poll: &mut Poll<'_>,
) -> Result<Vec<f64>, QueryError> {
    if points == 0 {
        return Ok(vec![f64::NAN; values.len()]);
    }
    if values.len() <= points {
        return Ok(Vec::new());
    }
    let is_finite = values.iter().all(|value| !value.is_infinite());
    match function {
        Aggregation::Sum | Aggregation::Average if points <= SUMMED_POINTS_MAX => {
            summed(values, points, function, factor, poll)
        }
        Aggregation::Sum | Aggregation::Average if is_finite => Ok(running(values, points, function, factor)),
        Aggregation::Median => medians(values, points, factor, poll),
        _ => {
            let mut out = Vec::with_capacity(values.len() - points);
            for window in values[1..].windows(points) {
                poll(points)?;
                out.push(checked(window, function, factor));
            }
            Ok(out)
        }
    }
}

fn checked(window: &[f64], function: Aggregation, factor: f64) -> f64 {
    let known = window.iter().filter(|value| !value.is_nan()).count();
    if !is_known(known, window.len() as f64, factor) {
        return f64::NAN;
    }
    match function {
        // Nulls are left out before, so they are no part of these.
        Aggregation::AvgZero => Aggregation::Average.of(window),
        Aggregation::Multiply => window.iter().filter(|value| !value.is_nan()).product(),
        function => function.of(window),
    }
}

/// The sum of each window by itself, so that equal windows have equal sums. The inner loop goes over the windows, which
/// adds in the order of the values and still vectorises.
fn summed(
    values: &[f64],
    points: usize,
    function: Aggregation,
    factor: f64,
    poll: &mut Poll<'_>,
) -> Result<Vec<f64>, QueryError> {
    let windows = values.len() - points;
    let numbers: Vec<f64> = values.iter().map(|value| if value.is_nan() { 0.0 } else { *value }).collect();
    let mut sums = vec![0.0; windows];
    for first in 1..=points {
        poll(windows / 8)?;
        for (sum, number) in sums.iter_mut().zip(&numbers[first..]) {
            *sum += number;
        }
    }
    let mut known = values[1..points].iter().filter(|value| !value.is_nan()).count();
    for (at, sum) in sums.iter_mut().enumerate() {
        known += usize::from(!values[at + points].is_nan());
        if !is_known(known, points as f64, factor) {
            *sum = f64::NAN;
        } else if function == Aggregation::Average {
            *sum /= known as f64;
        }
        known -= usize::from(!values[at + 1].is_nan());
    }
    Ok(sums)
}

/// Sums that are computed anew once a window, so that rounding does not add up.
fn running(values: &[f64], points: usize, function: Aggregation, factor: f64) -> Vec<f64> {
    let known = |value: f64| usize::from(!value.is_nan());
    let number = |value: f64| if value.is_nan() { 0.0 } else { value };
    let (mut sum, mut count) = (0.0, 0);
    let mut out = Vec::with_capacity(values.len() - points);
    for (at, window) in values[1..].windows(points).enumerate() {
        if at % points == 0 {
            sum = window.iter().map(|value| number(*value)).sum();
            count = window.iter().map(|value| known(*value)).sum::<usize>();
        } else {
            // The value before this window is that at the same index: windows begin one later.
            sum += number(window[points - 1]) - number(values[at]);
            count = count + known(window[points - 1]) - known(values[at]);
        }
        let is_enough = is_known(count, points as f64, factor);
        out.push(match function {
            _ if !is_enough => f64::NAN,
            Aggregation::Average => sum / count as f64,
            _ => sum,
        });
    }
    out
}

/// Medians of a sorted window into which values are inserted and from which they are removed.
fn medians(values: &[f64], points: usize, factor: f64, poll: &mut Poll<'_>) -> Result<Vec<f64>, QueryError> {
    let mut sorted: Vec<f64> = values[1..points].iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = |sorted: &[f64], value: f64| sorted.partition_point(|other| other.total_cmp(&value).is_lt());
    let mut out = Vec::with_capacity(values.len() - points);
    for at in points..values.len() {
        // An insertion and a removal each move half of the window.
        poll(32 + points / 8)?;
        let new = values[at];
        if !new.is_nan() {
            sorted.insert(place(&sorted, new), new);
        }
        let middle = sorted.len() / 2;
        out.push(match sorted.len() {
            known if !is_known(known, points as f64, factor) => f64::NAN,
            known if known.is_multiple_of(2) => (sorted[middle - 1] + sorted[middle]) / 2.0,
            _ => sorted[middle],
        });
        let old = values[at + 1 - points];
        if !old.is_nan() {
            sorted.remove(place(&sorted, old));
        }
    }
    Ok(out)
}

/// `exponentialMovingAverage(S, window)`: of a window as text, seconds count as points, as in the original.
pub(crate) fn exponential(call: &mut Call<'_>) -> Answer {
    let Some(mut window) = Window::new(call)? else { return Ok(Value::Series(Vec::new())) };
    let weight = 2.0 / (window.points.unwrap_or(window.preview) + 1) as f64;
    let mut results = Vec::new();
    for mut one in std::mem::take(&mut window.series) {
        call.engine.poll(one.values.len())?;
        let points = window.points_of(&one).min(one.values.len());
        let mut average = Aggregation::Average.of(&one.values[..points]);
        if average.is_nan() {
            average = 0.0;
        }
        let mut values = Vec::with_capacity(one.values.len() - points + 1);
        values.push(numbers::round(average, 6));
        for value in &one.values[points..] {
            if !value.is_nan() {
                average = weight * value + (1.0 - weight) * average;
            }
            values.push(if value.is_nan() { f64::NAN } else { numbers::round(average, 6) });
        }
        one.tags.set("exponentialMovingAverage", window.tag.as_str());
        let name = format!("exponentialMovingAverage({},{})", one.name, window.printed);
        let start = one.start + window.preview;
        results.push(Series { start, ..one.copy_as(name, values) });
    }
    Ok(Value::Series(results))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn short_ways_agree_with_each_window_by_itself(
            values in prop::collection::vec(prop_oneof![Just(f64::NAN), -100.0..100.0_f64], 0..60),
            points in 1..10_usize, factor in prop_oneof![Just(0.0), 0.0..1.0],
        ) {
            for (function, is_running) in [
                (Aggregation::Sum, false),
                (Aggregation::Average, false),
                (Aggregation::Sum, true),
                (Aggregation::Average, true),
                (Aggregation::Median, false),
            ] {
                let short = match is_running && values.len() > points {
                    true => running(&values, points, function, factor),
                    false => windows(&values, points, function, factor, &mut |_| Ok(())).expect("no end"),
                };
                let long: Vec<f64> = match values.get(1..) {
                    Some(rest) => rest.windows(points).map(|window| checked(window, function, factor)).collect(),
                    None => Vec::new(),
                };
                prop_assert_eq!(short.len(), long.len());
                for (a, b) in short.iter().zip(&long) {
                    let error = if is_running { 1e-9 } else { 0.0 };
                    prop_assert!(a.is_nan() && b.is_nan() || (a - b).abs() <= error, "{} {}", a, b);
                }
            }
        }
    }
}
