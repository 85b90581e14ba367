//! For which time ranges a function evaluates its first argument.
//!
//! The plan of a request and the functions use the same computations, so that what a function needs is fetched before.

use super::call::{Range, Request, Value};
use super::error::QueryError;
use super::time::{Clock, TimeError, Unit, floor, is_summer_time, parse_offset, parse_time};

/// Most shifted copies of `timeStack`.
pub const SHIFTS_MAX: i64 = 1_000;

/// What a function evaluates its first argument for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeRanges {
    /// The range of the call, before the call.
    Same,
    /// The range, from a window earlier: `movingAverage`. A window in points is known after a fetch only.
    Window,
    /// The range, from a bootstrap interval earlier. The number is that of its parameter.
    Bootstrap(usize),
    /// The same, and the range itself.
    BootstrapAndSame(usize),
    /// The range, and a shifted one.
    Shift,
    /// The range, and several shifted ones.
    Stack,
    /// The range from the beginning of a calendar unit: `smartSummarize`.
    Unit,
    /// The range from the beginning of a minute, hour or day: `hitcount`.
    Interval,
    /// The range, and another one: `linearRegression`.
    Source,
}

/// The ranges of a call with these arguments; wrong arguments are reported by the call itself.
pub(crate) fn ranges(
    time_ranges: TimeRanges,
    argument: &dyn Fn(usize) -> Value,
    range: Range,
    request: &Request<'_>,
) -> Vec<Range> {
    let text = |at: usize| match argument(at) {
        Value::Text(text) => Some(text),
        _ => None,
    };
    let known = |moved: Result<Range, QueryError>| moved.ok().into_iter();
    let here = std::iter::once(range);
    match time_ranges {
        TimeRanges::Same => vec![range],
        TimeRanges::Window => match text(1) {
            None => vec![range],
            Some(window) => known(seconds(&window).map(|s| range.earlier(s))).collect(),
        },
        TimeRanges::Bootstrap(at) => {
            text(at).into_iter().flat_map(|t| known(bootstrapped(&t, range))).collect()
        }
        TimeRanges::BootstrapAndSame(at) => {
            here.chain(text(at).into_iter().flat_map(|t| known(bootstrapped(&t, range)))).collect()
        }
        TimeRanges::Shift => {
            let align = argument(3) == Value::Bool(true);
            here.chain(text(1).into_iter().flat_map(|t| known(shifted(&t, align, range, request)))).collect()
        }
        TimeRanges::Stack => {
            let (Value::Int(start), Value::Int(end)) = (argument(2), argument(3)) else { return vec![range] };
            let stack = text(1).and_then(|unit| stacked(&unit, start, end, range).ok()).unwrap_or_default();
            here.chain(stack.into_iter().map(|(_, range)| range)).collect()
        }
        TimeRanges::Unit => vec![match text(3) {
            None => range,
            Some(unit) => from_unit(&unit, range, request).unwrap_or(range),
        }],
        TimeRanges::Interval => {
            let is_aligned = argument(2) == Value::Bool(true);
            let interval = text(1).filter(|_| is_aligned).and_then(|t| seconds(&t).ok());
            vec![interval.map_or(range, |interval| from_interval(interval, range, request))]
        }
        TimeRanges::Source => here.chain(known(source(&argument(1), &argument(2), range, request))).collect(),
    }
}

fn wrong(text: &str, cause: &TimeError) -> QueryError {
    QueryError::argument(format!("`{text}` is not a time: {cause}"))
}

/// Seconds of an interval, without its sign.
pub(crate) fn seconds(interval: &str) -> Result<i64, QueryError> {
    parse_offset(interval).map(i64::abs).map_err(|cause| wrong(interval, &cause))
}

/// Seconds of an interval that is not empty.
pub(crate) fn positive_seconds(interval: &str) -> Result<i64, QueryError> {
    let seconds = parse_offset(interval).map_err(|cause| wrong(interval, &cause))?;
    if seconds > 0 {
        return Ok(seconds);
    }
    Err(QueryError::argument(format!("the interval `{interval}` has to be longer than nothing")))
}

/// The range with what comes before it.
pub(crate) fn bootstrapped(interval: &str, range: Range) -> Result<Range, QueryError> {
    Ok(range.earlier(seconds(interval)?))
}

/// An interval without a sign goes back.
pub(crate) fn signed(shift: &str) -> String {
    if shift.starts_with(|c: char| c.is_ascii_digit()) { format!("-{shift}") } else { shift.to_owned() }
}

/// The range of `timeShift`.
pub(crate) fn shifted(
    shift: &str,
    align_dst: bool,
    range: Range,
    request: &Request<'_>,
) -> Result<Range, QueryError> {
    let delta = parse_offset(&signed(shift)).map_err(|cause| wrong(shift, &cause))?;
    let moved = range.moved(delta);
    if !align_dst {
        return Ok(moved);
    }
    // True and false when the whole range is on one side of a change, None when it is on both.
    let side = |range: Range| {
        let from = is_summer_time(range.from, request.zone);
        (from == is_summer_time(range.until, request.zone)).then_some(from)
    };
    Ok(match (side(range), side(moved)) {
        (Some(true), Some(false)) => moved.moved(3_600),
        (Some(false), Some(true)) => moved.moved(-3_600),
        _ => moved,
    })
}

/// Factors and ranges of `timeStack`.
pub(crate) fn stacked(
    unit: &str,
    start: i64,
    end: i64,
    range: Range,
) -> Result<Vec<(i64, Range)>, QueryError> {
    let delta = parse_offset(&signed(unit)).map_err(|cause| wrong(unit, &cause))?;
    if end.saturating_sub(start) > SHIFTS_MAX {
        return Err(QueryError::argument(format!("at most {SHIFTS_MAX} shifted copies are possible")));
    }
    Ok((start..end).map(|factor| (factor, range.moved(delta.saturating_mul(factor)))).collect())
}

/// The range of `smartSummarize` from the beginning of a unit such as `hours`, `w3` or `weeks3`.
pub(crate) fn from_unit(unit: &str, range: Range, request: &Request<'_>) -> Result<Range, QueryError> {
    let Some(name) = Unit::from_name(unit) else {
        let message = format!("`{unit}` is not a unit of time");
        return Err(
            QueryError::argument(message).hint("use years, months, weeks, days, hours, minutes or seconds")
        );
    };
    let weekday = match unit.bytes().last() {
        Some(digit @ b'1'..=b'7') => (digit - b'0').cast_signed(),
        Some(b'0' | b'8' | b'9') => {
            return Err(QueryError::argument("days of the week are 1 to 7".to_owned()));
        }
        _ => 1,
    };
    Ok(Range { from: floor(range.from, name, weekday, request.zone), ..range })
}

/// The range of `hitcount` from the beginning of a minute, hour or day.
pub(crate) fn from_interval(interval: i64, range: Range, request: &Request<'_>) -> Range {
    let unit = match interval {
        86_400.. => Unit::Days,
        3_600.. => Unit::Hours,
        60.. => Unit::Minutes,
        _ => return range,
    };
    Range { from: floor(range.from, unit, 1, request.zone), ..range }
}

/// A time in an argument.
pub(crate) fn time(value: &Value, request: &Request<'_>) -> Result<Option<i64>, QueryError> {
    let text = match value {
        Value::None => return Ok(None),
        other => other.text(),
    };
    let clock = Clock { now: request.now, zone: request.zone };
    parse_time(&text, &clock).map(Some).map_err(|cause| wrong(&text, &cause))
}

/// The range from which `linearRegression` learns.
pub(crate) fn source(
    from: &Value,
    until: &Value,
    range: Range,
    request: &Request<'_>,
) -> Result<Range, QueryError> {
    let from = time(from, request)?.unwrap_or(range.from);
    let until = time(until, request)?.unwrap_or(range.until);
    Ok(Range { from, until })
}
