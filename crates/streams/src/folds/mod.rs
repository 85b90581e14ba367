//! Riemann's folds: a list of events to one event (spec riemann §11).
//!
//! Friendly folds leave out events that are nil and metrics that are nil; the strict ones, whose names end in `*`, throw. The event
//! that a fold gives is one of the list with a new metric.

mod samples;
pub mod table;

use std::cmp::Ordering;
use std::sync::Arc;

use arcstr::{ArcStr, literal};

pub use samples::{points, sample};

use crate::arithmetic;
use crate::collections::map::Map;
use crate::event::{Event, Field};
use crate::language::error::{DIVIDED_BY_ZERO, EvalError, Outcome, Reason};
use crate::language::machine::Machine;
use crate::nodes::fields;
use crate::number::Number;
use crate::value::Value;

/// The events of a list.
fn events(list: &Value) -> Outcome<Vec<Value>> {
    fields::items(list).ok_or_else(|| fields::cannot("take the events of", list))
}

/// The events of a list that are not nil.
fn present(list: &Value) -> Outcome<Vec<Value>> {
    Ok(events(list)?.into_iter().filter(|event| !event.is_nil()).collect())
}

/// The metrics of events that have one.
fn metrics(events: &[Value]) -> Outcome<Vec<Number>> {
    let metrics = events.iter().map(|event| fields::metric(event).map(Option::<&Number>::cloned));
    metrics.filter_map(Result::transpose).collect()
}

/// An event with another metric; of nil it is a map.
fn with_metric(event: &Value, metric: Value) -> Outcome {
    let mut event = event.clone();
    fields::set(&mut event, Field::Metric, metric)?;
    Ok(event)
}

fn add_up(numbers: &[Number]) -> Outcome<Number> {
    numbers.iter().try_fold(Number::Int(0), |sum, number| fields::add(&sum, number))
}

/// The first event with what `of` makes of all metrics; nil without an event, and where `of` gives none.
fn of_metrics(list: &Value, of: impl FnOnce(&[Number]) -> Outcome<Option<Number>>) -> Outcome {
    let events = present(list)?;
    let Some(first) = events.first() else { return Ok(Value::Nil) };
    match of(&metrics(&events)?)? {
        Some(metric) => with_metric(first, Value::Number(metric)),
        None => Ok(Value::Nil),
    }
}

fn mean(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    of_metrics(&args[0], |metrics| match metrics.len() {
        0 => Ok(None),
        count => fields::divide(&add_up(metrics)?, &Number::Int(count as i64)).map(Some),
    })
}

fn sum(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    of_metrics(&args[0], |metrics| add_up(metrics).map(Some))
}

fn product(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    of_metrics(&args[0], |metrics| multiply_up(metrics).map(Some))
}

fn multiply_up(numbers: &[Number]) -> Outcome<Number> {
    numbers.iter().try_fold(Number::Int(1), |product, number| fields::multiply(&product, number))
}

fn std_dev(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    of_metrics(&args[0], |metrics| {
        let count = metrics.len() as f64;
        let mean = metrics.iter().map(Number::as_f64).sum::<f64>() / count;
        let squares: f64 = metrics.iter().map(|metric| (metric.as_f64() - mean).powi(2)).sum();
        Ok((!metrics.is_empty()).then(|| Number::Double((squares / count).sqrt())))
    })
}

fn count(args: &[Value], machine: &mut Machine<'_>) -> Outcome {
    let events = present(&args[0])?;
    match events.first() {
        Some(first) => with_metric(first, Value::from(events.len())),
        None => {
            let mut event = Event::default();
            event.set(Field::Metric, Value::from(0_i64));
            event.set(
                Field::Time,
                Value::from(machine.graph.now_us().saturating_add(500_000).div_euclid(1_000_000)),
            );
            Ok(Value::Event(Arc::new(event)))
        }
    }
}

/// The event whose metric `wins` over the best one so far, or equals it.
fn best(list: &Value, mut wins: impl FnMut(&Number, &Number) -> Outcome<bool>) -> Outcome {
    let mut best = (Value::Nil, None::<Number>);
    for event in present(list)? {
        let Some(metric) = fields::metric(&event)?.cloned() else { continue };
        let is_better = match &best.1 {
            Some(best) => wins(&metric, best)?,
            None => true,
        };
        if is_better {
            best = (event, Some(metric));
        }
    }
    Ok(best.0)
}

fn maximum(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    best(&args[0], |new, old| Ok(new.compare(old).is_some_and(Ordering::is_ge)))
}

fn minimum(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    best(&args[0], |new, old| Ok(new.compare(old).is_some_and(Ordering::is_le)))
}

fn extremum(args: &[Value], machine: &mut Machine<'_>) -> Outcome {
    best(&args[1], |new, old| {
        let both = [Value::Number(new.clone()), Value::Number(old.clone())];
        machine.graph.call(&args[0], &both).map(|result| result.is_true())
    })
}

fn median(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    let sorted = samples::sorted(present(&args[0])?)?;
    Ok(sorted.get(sorted.len() / 2).cloned().unwrap_or_default())
}

/// How two metrics become one.
type Operation<'a> = &'a mut dyn FnMut(&Number, &Number) -> Outcome<Number>;

/// All metrics into the first event, which says so if one is missing.
fn of_all(list: &Value, operation: Operation<'_>) -> Outcome {
    let events = events(list)?;
    let Some(first) = events.first().filter(|first| !first.is_nil()) else { return Ok(Value::Nil) };
    let without = |description: ArcStr| {
        let mut event = with_metric(first, Value::Nil)?;
        fields::set(&mut event, Field::Description, Value::Text(description))?;
        Ok(event)
    };
    let metrics = metrics(&events)?;
    if metrics.len() < events.len() {
        return without(literal!("An event or metric was nil."));
    }
    match reduce(&metrics, operation) {
        Ok(result) => with_metric(first, result.into()),
        Err(error) if is_division_by_zero(&error) => without(literal!("Can't divide by zero")),
        Err(error) => Err(error),
    }
}

fn is_division_by_zero(error: &EvalError) -> bool {
    matches!(error.reason(), Reason::Thrown(exception) if exception.message.as_deref() == Some(DIVIDED_BY_ZERO))
}

fn reduce(metrics: &[Number], operation: Operation<'_>) -> Outcome<Option<Number>> {
    let Some((first, rest)) = metrics.split_first() else { return Ok(None) };
    rest.iter().try_fold(first.clone(), |result, metric| operation(&result, metric)).map(Some)
}

/// `/` of boxed numbers: any zero as the divisor throws, also 0.0.
fn divide(a: &Number, b: &Number) -> Outcome<Number> {
    match b.is_zero() {
        true => fields::computed(Err(arithmetic::ArithmeticError::DivideByZero)),
        false => fields::divide(a, b),
    }
}

fn quotient(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    of_all(&args[0], &mut divide)
}

fn difference(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    of_all(&args[0], &mut fields::subtract)
}

/// A function of the config as an operation.
fn called<'a>(
    function: &'a Value,
    machine: &'a mut Machine<'_>,
) -> impl FnMut(&Number, &Number) -> Outcome<Number> + 'a {
    |a, b| {
        let result = machine.graph.call(function, &[Value::Number(a.clone()), Value::Number(b.clone())])?;
        fields::number(&result).cloned()
    }
}

fn fold_all(args: &[Value], machine: &mut Machine<'_>) -> Outcome {
    of_all(&args[1], &mut called(&args[0], machine))
}

fn quotient_sloppy(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    let events = events(&args[0])?;
    let Some(first) = events.first().filter(|first| !first.is_nil()) else { return Ok(Value::Nil) };
    let metrics = strict(&events)?;
    let result = match metrics.iter().any(Number::is_zero) {
        true => Some(Number::Int(0)),
        false => reduce(&metrics, &mut divide)?,
    };
    with_metric(first, result.into())
}

/// All metrics: none of them may be missing.
fn strict(events: &[Value]) -> Outcome<Vec<Number>> {
    events.iter().map(|event| fields::number(fields::get(event, Field::Metric)).cloned()).collect()
}

/// The strict form of a fold. `empty` is what no metrics give.
fn of_strict(list: &Value, empty: Option<i64>, operation: Operation<'_>) -> Outcome {
    let events = events(list)?;
    let result = match (reduce(&strict(&events)?, operation)?, empty) {
        (Some(result), _) => result,
        (None, Some(empty)) => Number::Int(empty),
        (None, None) => {
            return Err(EvalError::illegal_argument("this fold needs at least one event"));
        }
    };
    with_metric(&events.first().cloned().unwrap_or_default(), Value::Number(result))
}

fn sum_strict(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    of_strict(&args[0], Some(0), &mut fields::add)
}

fn product_strict(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    of_strict(&args[0], Some(1), &mut fields::multiply)
}

fn difference_strict(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    of_strict(&args[0], None, &mut fields::subtract)
}

fn quotient_strict(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    of_strict(&args[0], None, &mut divide)
}

fn fold_strict(args: &[Value], machine: &mut Machine<'_>) -> Outcome {
    let events = events(&args[1])?;
    let result = reduce(&strict(&events)?, &mut called(&args[0], machine))?;
    match result {
        Some(result) => with_metric(&events[0], Value::Number(result)),
        None => with_metric(&Value::Nil, machine.graph.call(&args[0], &[])?),
    }
}

fn fold(args: &[Value], machine: &mut Machine<'_>) -> Outcome {
    let events = present(&args[1])?;
    let Some(first) = events.first() else { return Ok(Value::Nil) };
    let result = reduce(&metrics(&events)?, &mut called(&args[0], machine))?;
    match result {
        Some(result) => with_metric(first, Value::Number(result)),
        None => with_metric(first, machine.graph.call(&args[0], &[])?),
    }
}

fn non_nil_metrics(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    Ok(Value::vector(metrics(&present(&args[0])?)?.into_iter().map(Value::Number)))
}

/// The last event of each of the most frequent metrics, in the order in which these came first.
fn most_frequent(list: &Value) -> Outcome<Vec<Value>> {
    let (mut places, mut found): (Map<Value>, Vec<(usize, Value)>) = (Map::default(), Vec::new());
    for event in present(list)? {
        let Some(metric) = fields::metric(&event)?.cloned().map(Value::Number) else { continue };
        let known = places.get(&metric).and_then(Value::as_number).map(|place| place.as_f64() as usize);
        match known {
            Some(place) => found[place] = (found[place].0 + 1, event),
            None => {
                places.insert(metric, Value::from(found.len()));
                found.push((1, event));
            }
        }
    }
    let most = found.iter().map(|(count, _)| *count).max().unwrap_or(0);
    Ok(found.into_iter().filter(|(count, _)| *count == most).map(|(_, event)| event).collect())
}

fn modes(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    most_frequent(&args[0]).map(Value::vector)
}

fn mode(args: &[Value], _: &mut Machine<'_>) -> Outcome {
    Ok(most_frequent(&args[0])?.into_iter().next().unwrap_or_default())
}
