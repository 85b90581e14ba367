//! Functions that images obey: colours, widths, areas, axes. JSON shows at most their names.

use crate::query::call::{Answer, Call, Value};
use crate::query::error::{Code, QueryError};
use crate::query::numbers;
use crate::query::series::{Drawing, Series};

/// Most stacks of a request.
const STACKS_MAX: usize = 1_000;

fn draw(call: &mut Call<'_>, set: impl Fn(&mut Drawing)) -> Answer {
    let mut series = call.args.series(0);
    series.iter_mut().for_each(|one| set(&mut one.drawing));
    Ok(Value::Series(series))
}

/// `color(S, color)`.
pub(crate) fn color(call: &mut Call<'_>) -> Answer {
    let color = call.args.text(1).map(str::to_owned);
    draw(call, |drawing| drawing.color.clone_from(&color))
}

/// `alpha(S, alpha)`.
pub(crate) fn alpha(call: &mut Call<'_>) -> Answer {
    let alpha = call.args.float(1);
    draw(call, |drawing| drawing.alpha = alpha)
}

/// `lineWidth(S, width)`.
pub(crate) fn line_width(call: &mut Call<'_>) -> Answer {
    let width = call.args.float(1);
    draw(call, |drawing| drawing.line_width = width)
}

/// `dashed(S, dashLength)`.
pub(crate) fn dashed(call: &mut Call<'_>) -> Answer {
    let length = call.args.value(1).clone();
    let printed = numbers::general(length.number().unwrap_or(5.0));
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.tags.set("dashed", length.text());
        one.name = format!("dashed({}, {printed})", one.name);
        one.drawing.dashed = length.number();
    }
    Ok(Value::Series(series))
}

/// `drawAsInfinite(S)`.
pub(crate) fn draw_as_infinite(call: &mut Call<'_>) -> Answer {
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.drawing.is_infinite = true;
        one.tags.set("drawAsInfinite", "1");
        one.name = format!("drawAsInfinite({})", one.name);
    }
    Ok(Value::Series(series))
}

/// `secondYAxis(S)`.
pub(crate) fn second_y_axis(call: &mut Call<'_>) -> Answer {
    let mut series = call.args.series(0);
    for one in &mut series {
        call.engine.poll(one.values.len())?;
        one.drawing.is_on_second_axis = true;
        one.tags.set("secondYAxis", "1");
        one.name = format!("secondYAxis({})", one.name);
    }
    Ok(Value::Series(series))
}

/// `stacked(S, stack)`: sums of all series of a stack so far in the request.
pub(crate) fn stacked(call: &mut Call<'_>) -> Answer {
    const DEFAULT: &str = "__DEFAULT__";
    let stack = call.args.text(1).unwrap_or(DEFAULT).to_owned();
    let series = call.args.series(0);
    let stacks = &mut call.engine.state().stacks;
    let at = match stacks.iter().position(|(name, _)| *name == stack) {
        Some(at) => at,
        None if stacks.len() < STACKS_MAX => {
            stacks.push((stack.clone(), Vec::new()));
            stacks.len() - 1
        }
        None => {
            let message = format!("a request has at most {STACKS_MAX} stacks");
            return Err(QueryError::new(Code::Limit, message));
        }
    };
    let mut sums = std::mem::take(&mut stacks[at].1);
    let mut results = Vec::with_capacity(series.len());
    for mut one in series {
        call.engine.poll(one.values.len())?;
        sums.resize(sums.len().max(one.values.len()), 0.0);
        let mut values = one.values.clone();
        for (value, sum) in values.iter_mut().zip(sums.iter_mut()) {
            *sum += if value.is_nan() { 0.0 } else { *value };
            *value = if value.is_nan() { f64::NAN } else { *sum };
        }
        let mut name = one.name.clone();
        if stack == DEFAULT {
            one.tags.set("stacked", DEFAULT);
            name = format!("stacked({name})");
        }
        let mut result = one.copy_as(name, values);
        result.drawing.is_stacked = true;
        result.drawing.stack = at + 1;
        results.push(result);
    }
    call.engine.state().stacks[at].1 = sums;
    Ok(Value::Series(results))
}

/// `areaBetween(S)`.
pub(crate) fn area_between(call: &mut Call<'_>) -> Answer {
    Ok(Value::Series(between(call.args.series(0))?))
}

/// The area between exactly two series.
pub(crate) fn between(mut series: Vec<Series>) -> Result<Vec<Series>, QueryError> {
    let [lower, upper] = &mut series[..] else {
        let message = format!("an area is between exactly 2 series, not {}", series.len());
        return Err(QueryError::argument(message));
    };
    lower.drawing.is_stacked = true;
    lower.drawing.is_invisible = true;
    upper.drawing.is_stacked = true;
    upper.tags.set("areaBetween", "1");
    lower.tags = upper.tags.clone();
    upper.name = format!("areaBetween({})", upper.path);
    lower.name.clone_from(&upper.name);
    Ok(series)
}
