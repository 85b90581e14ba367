//! Functions that show other times: `timeShift`, `timeStack`, `timeSlice`.

use crate::query::call::{Answer, Call, Value};
use crate::query::error::QueryError;
use crate::query::time_ranges::{shifted, signed, stacked, time};

/// `timeShift(S, shift, resetEnd, alignDst)`.
pub(crate) fn time_shift(call: &mut Call<'_>) -> Answer {
    let shift = call.args.text(1).unwrap_or_default().to_owned();
    let reset_end = call.args.is_true(2);
    let moved = shifted(&shift, call.args.is_true(3), call.range, call.engine.request())?;
    let here = call.evaluate_first(call.range)?;
    let Some((start, end)) = here.first().map(|one| (one.start, one.end)) else {
        return Ok(Value::Series(Vec::new()));
    };
    let shift = signed(&shift);
    let mut results = call.evaluate_first(moved)?;
    for one in &mut results {
        call.engine.poll(one.values.len())?;
        one.tags.set("timeShift", shift.as_str());
        one.name = format!("timeShift({}, \"{shift}\")", one.name);
        one.end = if reset_end { end } else { one.end - one.start + start };
        one.start = start;
    }
    Ok(Value::Series(results))
}

/// `timeStack(S, unit, start, end)`.
pub(crate) fn time_stack(call: &mut Call<'_>) -> Answer {
    let unit = call.args.text(1).unwrap_or_default().to_owned();
    let (first, last) = (call.args.int(2).unwrap_or(0), call.args.int(3).unwrap_or(0));
    let stack = stacked(&unit, first, last, call.range)?;
    let here = call.evaluate_first(call.range)?;
    let Some((start, end)) = here.first().map(|one| (one.start, one.end)) else {
        return Ok(Value::Series(Vec::new()));
    };
    let unit = signed(&unit);
    let mut results = Vec::new();
    for (factor, range) in stack {
        for mut one in call.evaluate_first(range)? {
            call.engine.poll(one.values.len())?;
            one.tags.set("timeShiftUnit", unit.as_str());
            one.tags.set("timeShift", factor.to_string());
            one.rename_with_path(format!("timeShift({}, {unit}, {factor})", one.name));
            (one.start, one.end) = (start, end);
            results.push(one);
        }
    }
    Ok(Value::Series(results))
}

/// `timeSlice(S, start, end)`: null outside.
pub(crate) fn time_slice(call: &mut Call<'_>) -> Answer {
    let at = |index: usize| time(call.args.value(index), call.engine.request());
    let (Some(start), Some(end)) = (at(1)?, at(2)?) else {
        return Err(QueryError::argument("the times of the slice are missing".to_owned()));
    };
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.tags.set("timeSliceStart", start.to_string());
        one.tags.set("timeSliceEnd", end.to_string());
        one.name = format!("timeSlice({}, {start}, {end})", one.name);
        for index in 0..one.values.len() {
            if !(start..=end).contains(&one.time(index)) {
                one.values[index] = f64::NAN;
            }
        }
    }
    Ok(Value::Series(series))
}
