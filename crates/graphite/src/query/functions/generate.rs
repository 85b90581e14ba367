//! Functions that make series without fetching any: lines, test data, counts of events.

use crate::query::call::{Answer, Call, Value};
use crate::query::error::QueryError;
use crate::query::series::Series;
use crate::query::series::consolidate::Consolidation;
use crate::query::time_ranges::time;

/// Longest step of generated series in seconds.
const STEP_MAX: i64 = 1 << 32;

fn one(series: Series) -> Answer {
    Ok(Value::Series(vec![series]))
}

/// Three equal values over the range, named after the number.
pub(crate) fn constant(call: &mut Call<'_>, value: &Value) -> Result<Series, QueryError> {
    let range = call.range;
    call.engine.charge_points(3)?;
    let number = value.number().unwrap_or(f64::NAN);
    let step = (range.until - range.from) / 2;
    let mut line = Series::new(value.text(), (range.from, range.until, step), vec![number; 3]);
    line.path = format!("constantLine({})", value.text());
    line.is_integer = matches!(value, Value::Int(_));
    line.x_files_factor = call.x_files_factor();
    Ok(line)
}

/// `constantLine(value)`.
pub(crate) fn constant_line(call: &mut Call<'_>) -> Answer {
    let value = call.args.value(0).clone();
    one(constant(call, &value)?)
}

/// `threshold(value, label, color)`.
pub(crate) fn threshold(call: &mut Call<'_>) -> Answer {
    let value = call.args.value(0).clone();
    let mut line = constant(call, &value)?;
    if let Some(label) = call.args.text(1).filter(|label| !label.is_empty()) {
        label.clone_into(&mut line.name);
    }
    line.drawing.color = call.args.text(2).map(str::to_owned);
    one(line)
}

/// `verticalLine(ts, label, color)`.
pub(crate) fn vertical_line(call: &mut Call<'_>) -> Answer {
    let Some(at) = time(call.args.value(0), call.engine.request())? else {
        return Err(QueryError::argument("the time of the line is missing".to_owned()));
    };
    let range = call.range;
    if at < range.from || at > range.until {
        let side = if at < range.from { "before" } else { "after" };
        let message = format!("the time {at} is {side} the range {} to {}", range.from, range.until);
        return Err(QueryError::argument(message));
    }
    let name = call.args.text(1).map_or_else(|| format!("verticalLine({at})"), str::to_owned);
    let mut line = Series::new(name, (at, at, 1), vec![1.0, 1.0]);
    line.drawing.is_infinite = true;
    line.drawing.color = call.args.text(2).map(str::to_owned);
    one(line)
}

/// A series with a value for each step of the range.
fn generated(
    call: &mut Call<'_>,
    name: String,
    step: i64,
    mut of: impl FnMut(i64) -> f64,
) -> Result<Series, QueryError> {
    if !(1..=STEP_MAX).contains(&step) {
        return Err(QueryError::argument(format!(
            "a step has to be greater than 0, and at most {STEP_MAX} seconds"
        )));
    }
    let range = call.range;
    let length = (range.until - range.from).max(0);
    let count = usize::try_from(length / step + i64::from(length % step > 0)).unwrap_or(usize::MAX);
    call.engine.charge_points(count)?;
    call.engine.charge_steps(count)?;
    let values = (0..).take(count).map(|at: i64| of(range.from + at * step)).collect();
    let mut series = Series::new(name, (range.from, range.until, step), values);
    series.x_files_factor = call.x_files_factor();
    Ok(series)
}

fn name(call: &Call<'_>) -> String {
    call.args.text(0).unwrap_or_default().to_owned()
}

/// `identity(name)`.
pub(crate) fn identity(call: &mut Call<'_>) -> Answer {
    let name = name(call);
    let mut series = generated(call, name.clone(), 60, |time| time as f64)?;
    series.is_integer = true;
    series.path = format!("identity(\"{name}\")");
    one(series)
}

/// `timeFunction(name, step)`.
pub(crate) fn time_function(call: &mut Call<'_>) -> Answer {
    let (name, step) = (name(call), call.args.int(1).unwrap_or(60));
    one(generated(call, name, step, |time| time as f64)?)
}

/// `sinFunction(name, amplitude, step)`.
pub(crate) fn sin_function(call: &mut Call<'_>) -> Answer {
    let (name, amplitude) = (name(call), call.args.float(1).unwrap_or(1.0));
    let step = call.args.int(2).unwrap_or(60);
    one(generated(call, name, step, |time| (time as f64).sin() * amplitude)?)
}

/// `randomWalkFunction(name, step)`: from the seed of the request, so that a request repeats.
pub(crate) fn random_walk(call: &mut Call<'_>) -> Answer {
    let (name, step) = (name(call), call.args.int(1).unwrap_or(60));
    let bytes = name.bytes().map(u64::from);
    let mut state = bytes.fold(call.engine.request().seed, |seed, byte| mixed(seed ^ byte));
    let mut current = 0.0;
    one(generated(call, name, step, |_| {
        let value = current;
        state = mixed(state);
        current += (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
        value
    })?)
}

/// The next number of a sequence that looks random (splitmix64).
fn mixed(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// `events(*tags)`: the number of events in each second; null without one.
pub(crate) fn events(call: &mut Call<'_>) -> Answer {
    let tags: Vec<String> = call.args.values(0).iter().map(Value::text).collect();
    let quoted = format!("events(\"{}\")", tags.join("\", \""));
    let wanted = (tags != ["*"]).then_some(tags.as_slice());
    let mut series = generated(call, quoted, 1, |_| f64::NAN)?;
    let range = call.range;
    for time in call.engine.events(range, wanted)? {
        let at = usize::try_from(time - range.from).ok();
        if let Some(value) = at.and_then(|at| series.values.get_mut(at)) {
            *value = if value.is_nan() { 1.0 } else { *value + 1.0 };
        }
    }
    series.is_integer = true;
    series.consolidation = Consolidation::Sum;
    one(series)
}

/// Pie charts: one number for a slice.
pub(crate) fn pie(series: &Series, kind: &str) -> Option<f64> {
    use crate::query::series::aggregate::Aggregation;
    let function = match kind {
        "average" => Aggregation::Average,
        "maximum" => Aggregation::Max,
        "minimum" => Aggregation::Min,
        _ => return None,
    };
    let value = function.of(&series.values);
    (!value.is_nan()).then_some(value)
}
