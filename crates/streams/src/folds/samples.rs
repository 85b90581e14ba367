//! Events at points of the order of their metrics: `sorted-sample`, and `percentiles` of the streams.

use arcstr::ArcStr;

use crate::event::Field;
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::Machine;
use crate::nodes::fields;
use crate::number::Number;
use crate::print::to_str;
use crate::value::Value;

/// The events that have a metric, by it. Equal ones keep their order.
pub(super) fn sorted(events: Vec<Value>) -> Outcome<Vec<Value>> {
    let mut sorted = Vec::with_capacity(events.len());
    for event in events {
        if let Some(metric) = fields::metric(&event)?.cloned() {
            sorted.push((metric, event));
        }
    }
    sorted.sort_by(|(a, _), (b, _)| fields::order(a, b));
    Ok(sorted.into_iter().map(|(_, event)| event).collect())
}

/// The points of an argument, with what each appends to the service: a vector of numbers, or a map of numbers to texts. None for
/// anything else.
pub fn points(value: &Value) -> Option<Vec<(Number, String)>> {
    if let Value::Map(map) = value {
        return map
            .iter()
            .map(|(point, suffix)| Some((point.as_number()?.clone(), to_str(suffix))))
            .collect();
    }
    let points = fields::items(value)?;
    points.iter().map(|point| Some((point.as_number()?.clone(), format!(" {}", to_str(point))))).collect()
}

/// The event at a point of `0..=1` among sorted ones.
fn at_point<'e>(sorted: &'e [Value], point: &Number) -> Option<&'e Value> {
    let at = (sorted.len() as f64 * point.as_f64()).floor() as usize;
    sorted.get(at.min(sorted.len().checked_sub(1)?))
}

/// The event of each point, its service with the point's text. None of no events.
///
/// # Errors
/// If a metric is no number.
pub fn sample(events: Vec<Value>, points: &[(Number, String)]) -> Outcome<Vec<Value>> {
    let sorted = sorted(events)?;
    let mut sample = Vec::with_capacity(points.len());
    for (point, suffix) in points {
        let Some(event) = at_point(&sorted, point) else { continue };
        let mut event = event.clone();
        let service = format!("{}{suffix}", to_str(fields::get(&event, Field::Service)));
        fields::set(&mut event, Field::Service, Value::Text(ArcStr::from(service)))?;
        sample.push(event);
    }
    Ok(sample)
}

fn points_or_throw(value: &Value) -> Outcome<Vec<(Number, String)>> {
    points(value).ok_or_else(|| EvalError::illegal_argument("points are a vector or a map of numbers"))
}

/// `(sorted-sample events points)`
pub(super) fn sorted_sample(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    sample(super::present(&args[0])?, &points_or_throw(&args[1])?).map(Value::vector)
}

/// `(sorted-sample-extract events points)`
pub(super) fn sorted_sample_extract(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    let sorted = sorted(super::present(&args[0])?)?;
    let points = points_or_throw(&args[1])?;
    Ok(Value::vector(points.iter().filter_map(|(point, _)| at_point(&sorted, point)).cloned()))
}
