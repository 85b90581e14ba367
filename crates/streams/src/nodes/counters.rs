//! Streams that compute with the metrics so far: `counter`, `ewma`, `ddt`, running sums.

use super::arguments::Args;
use super::clocked::UntilExpired;
use super::{fields, state};
use crate::arithmetic;
use crate::event::Field;
use crate::graph::{Graph, Limit, Node, TimerId, Turn};
use crate::language::error::Outcome;
use crate::number::Number;
use crate::value::Value;

/// Emits an event with another metric.
fn emit_metric(value: &mut Value, metric: Number, turn: &mut Turn<'_>) -> Outcome<()> {
    fields::set(value, Field::Metric, Value::Number(metric))?;
    turn.emit(std::mem::take(value));
    Ok(())
}

/// `counter`, `sum-over-time`, `mean-over-time`.
#[derive(Debug)]
struct Total {
    total: Number,
    /// `mean-over-time`: how many there were.
    mean_of: Option<i64>,
    /// `counter`: events with the tag `reset` set the total.
    resets: bool,
}

impl Node for Total {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let Some(metric) = fields::metric(value)? else {
            turn.emit(std::mem::take(value));
            return Ok(true);
        };
        let is_reset = self.resets && super::predicate::is_tagged(value, &[Value::text("reset")], true);
        let count = self.mean_of.map(|count| count.saturating_add(1));
        let total = match is_reset {
            true => metric.clone(),
            false => match fields::add(&self.total, metric) {
                Ok(total) => total,
                Err(overflow) => {
                    // Thrown once, as Riemann does. From then on it is a big integer, so that the events after this one have a sum.
                    self.total = fields::computed(arithmetic::or_big(arithmetic::add, &self.total, metric))?;
                    self.mean_of = count;
                    return Err(overflow);
                }
            },
        };
        let result = match count {
            Some(count) => fields::divide(&total, &Number::Int(count))?,
            None => total.clone(),
        };
        if fields::is_kept(&total) {
            (self.total, self.mean_of) = (total, count);
        }
        emit_metric(value, result, turn)?;
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("total", self.total.clone().into()), ("count", self.mean_of.into())])
    }

    fn restore(&mut self, saved: &Value, _: &mut Turn<'_>) {
        let total = state::number(saved, "total").filter(fields::is_kept);
        self.total = total.unwrap_or(self.total.clone());
        let count = state::int(saved, "count").unwrap_or(0).max(0);
        self.mean_of = self.mean_of.map(|_| count);
    }
}

/// `(counter [init] c…)`
pub(super) fn counter(args: &mut Args<'_>) -> Outcome {
    let total = match args.peek() {
        Some(Value::Number(_)) => args.number()?,
        _ => Number::Int(0),
    };
    Ok(args.add(Total { total, mean_of: None, resets: true }))
}

/// `(sum-over-time c…)`
pub(super) fn sum_over_time(args: &mut Args<'_>) -> Outcome {
    Ok(args.add(Total { total: Number::Int(0), mean_of: None, resets: false }))
}

/// `(mean-over-time [c…])`
pub(super) fn mean_over_time(args: &mut Args<'_>) -> Outcome {
    let children = fields::items(args.take()?).ok_or_else(|| args.wrong("a list of streams is needed"))?;
    let children: Vec<_> = children.iter().map(|child| args.graph.child(child)).collect();
    Ok(args.add_with(Total { total: Number::Int(0), mean_of: Some(0), resets: false }, &[&children]))
}

/// `ewma-timeless`
#[derive(Debug)]
struct EwmaTimeless {
    ratio: Number,
    mean: Number,
}

impl EwmaTimeless {
    fn exact(&self, metric: &Number) -> Outcome<Number> {
        let rest = fields::subtract(&Number::Int(1), &self.ratio)?;
        let (new, old) = (fields::multiply(&self.ratio, metric)?, fields::multiply(&rest, &self.mean)?);
        fields::add(&new, &old)
    }
}

impl Node for EwmaTimeless {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if let Some(metric) = fields::metric(value)? {
            // Numbers that are too large for exact ones.
            let inexact = |ratio: f64| ratio * metric.as_f64() + (1.0 - ratio) * self.mean.as_f64();
            let mean = self.exact(metric).unwrap_or_else(|_| Number::Double(inexact(self.ratio.as_f64())));
            if fields::is_kept(&mean) {
                self.mean = mean.clone();
            }
            emit_metric(value, mean, turn)?;
        } else {
            turn.emit(std::mem::take(value));
        }
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("mean", self.mean.clone().into())])
    }

    fn restore(&mut self, saved: &Value, _: &mut Turn<'_>) {
        let mean = state::number(saved, "mean").filter(fields::is_kept);
        self.mean = mean.unwrap_or(self.mean.clone());
    }
}

/// `(ewma-timeless r c…)`
pub(super) fn ewma_timeless(args: &mut Args<'_>) -> Outcome {
    let ratio = args.number()?;
    Ok(args.add(EwmaTimeless { ratio, mean: Number::Int(0) }))
}

/// `ewma`
#[derive(Debug)]
struct Ewma {
    /// What a second leaves of the past.
    decay: f64,
    mean: f64,
    /// The largest time so far.
    time: Option<Number>,
}

impl Node for Ewma {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let (Some(metric), Some(time)) = (fields::metric(value)?, fields::time(value)?) else {
            turn.emit(std::mem::take(value));
            return Ok(true);
        };
        let (metric, time) = (metric.as_f64(), time.clone());
        // With a time that cannot be right, it is an event of the latest time.
        let is_far_ahead = fields::is_far_ahead(&time, turn.now_us());
        turn.count(Limit::TimeAhead, u64::from(is_far_ahead));
        let ahead = match &self.time {
            Some(last) if !is_far_ahead => time.as_f64() - last.as_f64(),
            Some(_) | None => 0.0,
        };
        let new = (1.0 - self.decay) * metric;
        let mean = match ahead >= 0.0 {
            true => new + self.mean * self.decay.powf(ahead),
            false => self.mean + new * self.decay.powf(-ahead),
        };
        if ahead >= 0.0 && !is_far_ahead {
            self.time = Some(time.clone());
        }
        if mean.is_finite() {
            self.mean = mean;
        }
        let shown = self.time.clone().unwrap_or(time);
        fields::set(value, Field::Time, Value::Number(shown))?;
        fields::set(value, Field::Metric, Value::from(mean))?;
        turn.emit(std::mem::take(value));
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("mean", self.mean.into()), ("time", self.time.clone().into())])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.mean = state::number(saved, "mean").filter(fields::is_kept).map_or(0.0, |mean| mean.as_f64());
        let is_far_ahead = |time: &Number| fields::is_far_ahead(time, turn.now_us());
        self.time = state::number(saved, "time").filter(|time| !is_far_ahead(time));
    }
}

/// `(ewma halflife c…)`
pub(super) fn ewma(args: &mut Args<'_>) -> Outcome {
    let half_life = args.number()?.as_f64();
    Ok(args.add(Ewma { decay: (-1.0 / half_life).exp2(), mean: 0.0, time: None }))
}

/// The slope between two events.
fn slope(from: &Value, to: &Value) -> Outcome<Option<Number>> {
    let number = |event, field| fields::number(fields::get(event, field));
    let dt = fields::subtract(number(to, Field::Time)?, number(from, Field::Time)?)?;
    if dt.is_zero() {
        return Ok(None);
    }
    let rise = fields::subtract(number(to, Field::Metric)?, number(from, Field::Metric)?)?;
    fields::divide(&rise, &dt).map(Some)
}

/// `ddt` of each event and the one before it.
#[derive(Debug)]
struct Ddt(Option<Value>);

impl Node for Ddt {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if fields::metric(value)?.is_none() {
            return Ok(true);
        }
        let before = self.0.replace(value.clone());
        let slope = before.map(|before| slope(&before, value)).transpose()?.flatten();
        if let Some(slope) = slope {
            emit_metric(value, slope, turn)?;
        }
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("before", Value::vector(self.0.iter().cloned()))])
    }

    fn restore(&mut self, saved: &Value, _: &mut Turn<'_>) {
        self.0 = state::values(saved, "before").pop();
    }
}

/// `ddt` of intervals.
#[derive(Debug)]
struct DdtOfIntervals {
    clock: UntilExpired,
    /// The newest event, if one came in this interval.
    new: Option<Value>,
    /// The newest event of the last interval that had one.
    old: Option<Value>,
}

impl Node for DdtOfIntervals {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if fields::metric(value)?.is_some() {
            self.new = Some(value.clone());
        }
        self.clock.event(value, turn)?;
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        if !self.clock.due(timer, turn) {
            return Ok(());
        }
        let (slope, newest) = match (self.new.take(), self.old.take()) {
            (Some(new), Some(old)) => {
                self.old = Some(new.clone());
                (slope(&old, &new)?, new)
            }
            (Some(new), None) => {
                self.old = Some(new);
                return Ok(());
            }
            (None, Some(old)) => {
                self.old = Some(old.clone());
                (Some(Number::Int(0)), old)
            }
            (None, None) => return Ok(()),
        };
        if let Some(slope) = slope {
            let mut event = newest;
            fields::set(&mut event, Field::Time, Value::of_time_us(turn.now_us()))?;
            emit_metric(&mut event, slope, turn)?;
        }
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([
            ("clock", self.clock.save()),
            ("new", self.new.clone().into()),
            ("old", self.old.clone().into()),
        ])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.clock.restore(&state::entry(saved, "clock"), turn);
        let event = |name| Some(state::entry(saved, name)).filter(|event| !event.is_nil());
        (self.new, self.old) = (event("new"), event("old"));
    }
}

/// `(ddt c…)`, `(ddt dt c…)`
pub(super) fn ddt(args: &mut Args<'_>) -> Outcome {
    match args.peek() {
        Some(Value::Number(_)) => {
            let (_, dt_us) = args.seconds()?;
            Ok(args.add(DdtOfIntervals { clock: UntilExpired::new(dt_us, 0), new: None, old: None }))
        }
        _ => Ok(args.add(Ddt(None))),
    }
}
