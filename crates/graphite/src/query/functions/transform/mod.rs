//! Functions that compute each value from its own, or from those before it.

pub(crate) mod shift;
pub(crate) mod summarize;

use crate::query::call::{Answer, Call, Value};
use crate::query::error::QueryError;
use crate::query::functions::combine::power;
use crate::query::numbers;
use crate::query::series::Series;
use crate::query::series::aggregate::Aggregation;
use crate::query::time_ranges::positive_seconds;

/// A new name for a series, and its tag.
pub(crate) struct Label<'l> {
    /// What follows the old name: `,2)`.
    pub(crate) after: String,
    /// Name of the function and of its tag.
    pub(crate) function: &'l str,
    /// Value of the tag.
    pub(crate) tag: String,
}

impl<'l> Label<'l> {
    fn plain(function: &'l str, tag: &str) -> Label<'l> {
        Label { after: ")".to_owned(), function, tag: tag.to_owned() }
    }

    fn with(function: &'l str, argument: &str, tag: String) -> Label<'l> {
        Label { after: format!(",{argument})"), function, tag }
    }

    fn apply(&self, series: &mut Series) {
        series.tags.set(self.function.to_owned(), self.tag.as_str());
        series.rename_with_path(format!("{}({}{}", self.function, series.name, self.after));
    }
}

/// Computes each value by itself. A null stays null because NaN stays NaN in all that `of` does.
fn map(call: &mut Call<'_>, label: &Label<'_>, of: impl Fn(f64) -> f64) -> Answer {
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        label.apply(one);
        one.values.iter_mut().for_each(|value| *value = of(*value));
        one.is_integer = false;
    }
    Ok(Value::Series(series))
}

/// The second argument as a float, and as the tag prints it.
fn factor(call: &Call<'_>) -> (f64, String) {
    let factor = call.args.float(1).unwrap_or(0.0);
    (factor, numbers::repr(factor))
}

/// `scale(S, factor)`.
pub(crate) fn scale(call: &mut Call<'_>) -> Answer {
    let (factor, tag) = factor(call);
    map(call, &Label::with("scale", &numbers::general(factor), tag), |v| v * factor)
}

/// `offset(S, factor)`.
pub(crate) fn offset(call: &mut Call<'_>) -> Answer {
    let (factor, tag) = factor(call);
    map(call, &Label::with("offset", &numbers::general(factor), tag), |v| v + factor)
}

/// `add(S, constant)`: the name shows the constant without its fraction.
pub(crate) fn add(call: &mut Call<'_>) -> Answer {
    let (constant, tag) = factor(call);
    map(call, &Label::with("add", &numbers::decimal(constant), tag), |v| v + constant)
}

/// `absolute(S)`.
pub(crate) fn absolute(call: &mut Call<'_>) -> Answer {
    map(call, &Label::plain("absolute", "1"), f64::abs)
}

/// `invert(S)`.
pub(crate) fn invert(call: &mut Call<'_>) -> Answer {
    map(call, &Label::plain("invert", "1"), |v| power(v, -1.0))
}

/// `squareRoot(S)`.
pub(crate) fn square_root(call: &mut Call<'_>) -> Answer {
    map(call, &Label::plain("squareRoot", "1"), f64::sqrt)
}

/// `exp(S)`; null where the result is too large.
pub(crate) fn exp(call: &mut Call<'_>) -> Answer {
    map(call, &Label::plain("exp", "e"), |v| {
        let result = v.exp();
        if result.is_infinite() && v.is_finite() { f64::NAN } else { result }
    })
}

/// `sigmoid(S)`.
pub(crate) fn sigmoid(call: &mut Call<'_>) -> Answer {
    map(call, &Label::plain("sigmoid", "sigmoid"), |v| 1.0 / (1.0 + (-v).exp()))
}

/// `logit(S)`; null outside of 0 to 1.
pub(crate) fn logit(call: &mut Call<'_>) -> Answer {
    map(call, &Label::plain("logit", "logit"), |v| {
        if v > 0.0 && v < 1.0 { (v / (1.0 - v)).ln() } else { f64::NAN }
    })
}

/// `pow(S, factor)`.
pub(crate) fn pow(call: &mut Call<'_>) -> Answer {
    let (factor, tag) = factor(call);
    map(call, &Label::with("pow", &numbers::general(factor), tag), |v| power(v, factor))
}

/// `round(S, precision)`.
pub(crate) fn round(call: &mut Call<'_>) -> Answer {
    let places = call.args.int(1);
    let digits = i32::try_from(places.unwrap_or(0).clamp(-400, 400)).unwrap_or(0);
    let tag = places.unwrap_or(0).to_string();
    let label = match places {
        None => Label::plain("round", &tag),
        Some(places) => Label::with("round", &numbers::general(places as f64), tag),
    };
    map(call, &label, |v| numbers::round(v, digits))
}

/// `scaleToSeconds(S, seconds)`.
pub(crate) fn scale_to_seconds(call: &mut Call<'_>) -> Answer {
    let (seconds, tag) = factor(call);
    let label = Label::with("scaleToSeconds", &numbers::decimal(seconds), tag);
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        label.apply(one);
        let factor = seconds / one.step as f64;
        one.values.iter_mut().for_each(|value| *value = numbers::round(*value * factor, 6));
        one.is_integer = false;
    }
    Ok(Value::Series(series))
}

/// `log(S, base)`; null for values that are not positive. Its path and drawing are new.
pub(crate) fn log(call: &mut Call<'_>) -> Answer {
    let base = call.args.value(1).clone();
    let divisor = base.number().unwrap_or(10.0).ln();
    if !divisor.is_finite() || divisor == 0.0 {
        return Err(QueryError::argument("the base of a logarithm is positive and not 1".to_owned()));
    }
    renewed(call, "log", &base.text(), &|name| format!("log({name}, {})", base.text()), |one| {
        one.values.iter().map(|v| if *v > 0.0 { v.ln() / divisor } else { f64::NAN }).collect()
    })
}

/// New values under a name that is also the path.
fn renewed(
    call: &mut Call<'_>,
    tag: &str,
    tag_value: &str,
    name: &dyn Fn(&str) -> String,
    of: impl Fn(&Series) -> Vec<f64>,
) -> Answer {
    let series = call.args.series(0);
    let mut results = Vec::with_capacity(series.len());
    for mut one in series {
        call.engine.poll(one.values.len())?;
        one.tags.set(tag.to_owned(), tag_value);
        let (values, name) = (of(&one), name(&one.name));
        let is_integer = one.is_integer;
        results.push(Series { is_integer, ..one.copy_as(name, values) });
    }
    Ok(Value::Series(results))
}

/// `minMax(S)`: between 0 and 1.
pub(crate) fn min_max(call: &mut Call<'_>) -> Answer {
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.rename_with_path(format!("minMax({})", one.name));
        let (low, high) = (Aggregation::Min.of(&one.values), Aggregation::Max.of(&one.values));
        for value in one.values.iter_mut().filter(|v| !v.is_nan()) {
            *value = if high == low { 0.0 } else { (*value - low) / (high - low) };
        }
        one.is_integer = false;
    }
    Ok(Value::Series(series))
}

/// `offsetToZero(S)`.
pub(crate) fn offset_to_zero(call: &mut Call<'_>) -> Answer {
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        let low = Aggregation::Min.of(&one.values);
        let tag = match low {
            low if low.is_nan() => "None".to_owned(),
            low if one.is_integer => numbers::decimal(low),
            low => numbers::repr(low),
        };
        Label { tag, ..Label::plain("offsetToZero", "") }.apply(one);
        one.values.iter_mut().for_each(|value| *value -= low);
    }
    Ok(Value::Series(series))
}

/// `derivative(S)`.
pub(crate) fn derivative(call: &mut Call<'_>) -> Answer {
    renewed(call, "derivative", "1", &|name| format!("derivative({name})"), |one| {
        let first = one.values.first().map(|_| f64::NAN);
        first.into_iter().chain(one.values.windows(2).map(|pair| pair[1] - pair[0])).collect()
    })
}

/// Growth from value to value; `largest` is where a counter starts again from `smallest`.
fn growth(values: &[f64], largest: Option<f64>, smallest: Option<f64>) -> Vec<f64> {
    let mut previous = f64::NAN;
    let next = |value: &f64| {
        let mut value = *value;
        if largest.is_some_and(|max| value > max) || smallest.is_some_and(|min| value < min) {
            value = f64::NAN;
        }
        let before = std::mem::replace(&mut previous, value);
        match (largest, smallest) {
            _ if value.is_nan() || before.is_nan() => f64::NAN,
            _ if value >= before => value - before,
            (Some(max), min) => max + 1.0 + value - before - min.unwrap_or(0.0),
            (None, Some(min)) => value - min,
            (None, None) => f64::NAN,
        }
    };
    values.iter().map(next).collect()
}

/// `nonNegativeDerivative(S, maxValue, minValue)`.
pub(crate) fn non_negative_derivative(call: &mut Call<'_>) -> Answer {
    let (max, min) = (call.args.float(1), call.args.float(2));
    let name = |name: &str| format!("nonNegativeDerivative({name})");
    renewed(call, "nonNegativeDerivative", "1", &name, |one| growth(&one.values, max, min))
}

/// `perSecond(S, maxValue, minValue)`.
pub(crate) fn per_second(call: &mut Call<'_>) -> Answer {
    let (max, min) = (call.args.float(1), call.args.float(2));
    let answer = renewed(call, "perSecond", "1", &|name| format!("perSecond({name})"), |one| {
        let mut values = growth(&one.values, max, min);
        let step = one.step as f64;
        values.iter_mut().for_each(|value| *value = numbers::round(*value / step, 6));
        values
    });
    without_integers(answer)
}

fn without_integers(answer: Answer) -> Answer {
    let mut answer = answer?;
    if let Value::Series(series) = &mut answer {
        series.iter_mut().for_each(|one| one.is_integer = false);
    }
    Ok(answer)
}

/// `delay(S, steps)`.
pub(crate) fn delay(call: &mut Call<'_>) -> Answer {
    let steps = call.args.int(1).unwrap_or(0);
    let count = usize::try_from(steps.unsigned_abs()).unwrap_or(usize::MAX);
    let name = |name: &str| format!("delay({name},{steps})");
    renewed(call, "delay", &steps.to_string(), &name, |one| {
        let moved = count.min(one.values.len());
        let nulls = std::iter::repeat_n(f64::NAN, moved);
        if steps < 0 {
            one.values[moved..].iter().copied().chain(nulls).collect()
        } else {
            nulls.chain(one.values[..one.values.len() - moved].iter().copied()).collect()
        }
    })
}

/// `integral(S)`.
pub(crate) fn integral(call: &mut Call<'_>) -> Answer {
    let answer = renewed(call, "integral", "1", &|name| format!("integral({name})"), |one| {
        let mut sum = 0.0;
        let mut next = |value: &f64| {
            sum += if value.is_nan() { 0.0 } else { *value };
            if value.is_nan() { f64::NAN } else { sum }
        };
        one.values.iter().map(&mut next).collect()
    });
    without_integers(answer)
}

/// `integralByInterval(S, intervalUnit)`.
pub(crate) fn integral_by_interval(call: &mut Call<'_>) -> Answer {
    let unit = call.args.text(1).unwrap_or_default().to_owned();
    let interval = positive_seconds(unit.trim_start_matches('-'))?;
    let start = call.range.from;
    let name = |name: &str| format!("integralByInterval({name},'{unit}')");
    let answer = renewed(call, "integralByInterval", &unit, &name, |one| {
        let mut sum = 0.0;
        let number = |time: i64| (time - start).div_euclid(interval);
        let mut next = |(at, value): (usize, &f64)| {
            let time = one.time(at);
            if number(time) != number(time - one.step) {
                sum = 0.0;
            }
            sum += if value.is_nan() { 0.0 } else { *value };
            sum
        };
        one.values.iter().enumerate().map(&mut next).collect()
    });
    without_integers(answer)
}

/// Runs of nulls as ranges of indexes.
fn gaps(values: &[f64]) -> Vec<std::ops::Range<usize>> {
    let mut gaps: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, value) in values.iter().enumerate() {
        match gaps.last_mut() {
            _ if !value.is_nan() => {}
            Some(gap) if gap.end == at => gap.end += 1,
            _ => gaps.push(at..at + 1),
        }
    }
    gaps
}

/// The most nulls of a gap that is filled; None for all.
fn gap_limit(call: &Call<'_>) -> f64 {
    call.args.float(1).unwrap_or(f64::INFINITY)
}

/// `interpolate(S, limit)`.
pub(crate) fn interpolate(call: &mut Call<'_>) -> Answer {
    let limit = gap_limit(call);
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.rename_with_path(format!("interpolate({})", one.name));
        one.is_integer = false;
        for gap in gaps(&one.values) {
            let len = gap.len();
            if gap.start == 0 || gap.end == one.values.len() || len as f64 > limit {
                continue;
            }
            let (before, after) = (one.values[gap.start - 1], one.values[gap.end]);
            for (count, at) in gap.enumerate() {
                one.values[at] = before + (count + 1) as f64 * (after - before) / (len + 1) as f64;
            }
        }
    }
    Ok(Value::Series(series))
}

/// `keepLastValue(S, limit)`.
pub(crate) fn keep_last_value(call: &mut Call<'_>) -> Answer {
    let limit = gap_limit(call);
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.rename_with_path(format!("keepLastValue({})", one.name));
        for gap in gaps(&one.values) {
            if gap.start > 0 && gap.len() as f64 <= limit {
                let last = one.values[gap.start - 1];
                one.values[gap].fill(last);
            }
        }
    }
    Ok(Value::Series(series))
}

/// `transformNull(S, default, referenceSeries)`.
pub(crate) fn transform_null(call: &mut Call<'_>) -> Answer {
    let default = call.args.float(1).unwrap_or(0.0);
    let tag = call.args.value(1).text();
    let mut series = call.args.series(0);
    let references = call.args.series(2);
    let printed = numbers::general(default);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.tags.set("transformNull", tag.as_str());
        one.is_integer = false;
        if references.is_empty() {
            one.rename_with_path(format!("transformNull({},{printed})", one.name));
            one.values.iter_mut().for_each(|v| *v = if v.is_nan() { default } else { *v });
            continue;
        }
        one.tags.set("referenceSeries", "1");
        one.rename_with_path(format!("transformNull({},{printed},referenceSeries)", one.name));
        call.engine.charge_steps(one.values.len().saturating_mul(references.len()))?;
        for at in 0..one.values.len() {
            let time = one.time(at);
            call.engine.poll(references.len())?;
            if one.values[at].is_nan() && references.iter().any(|reference| knows(reference, time)) {
                one.values[at] = default;
            }
        }
    }
    Ok(Value::Series(series))
}

/// True when the series has a value for this time.
fn knows(series: &Series, time: i64) -> bool {
    let at = (time - series.start).div_euclid(series.step.max(1));
    usize::try_from(at).ok().and_then(|at| series.values.get(at)).is_some_and(|v| !v.is_nan())
}

/// `isNonNull(S)`.
pub(crate) fn is_non_null(call: &mut Call<'_>) -> Answer {
    let label = Label::plain("isNonNull", "1");
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        label.apply(one);
        one.values.iter_mut().for_each(|value| *value = if value.is_nan() { 0.0 } else { 1.0 });
        one.is_integer = true;
    }
    Ok(Value::Series(series))
}

/// `changed(S)`.
pub(crate) fn changed(call: &mut Call<'_>) -> Answer {
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.rename_with_path(format!("changed({})", one.name));
        let mut previous = f64::NAN;
        for value in &mut one.values {
            let current = *value;
            let is_changed = !previous.is_nan() && !current.is_nan() && current != previous;
            previous = if current.is_nan() { previous } else { current };
            *value = if is_changed { 1.0 } else { 0.0 };
        }
        one.is_integer = true;
    }
    Ok(Value::Series(series))
}
