//! Streams that sum up intervals of the server's clock: `rate`, `percentiles`, `fold-interval`, `apdex`.

use super::arguments::Args;
use super::clocked::{Grid, UntilExpired};
use super::function::Function;
use super::predicate::Predicate;
use super::{fields, state};
use crate::event::Field;
use crate::folds;
use crate::graph::{Graph, Limit, Node, TimerId, Turn};
use crate::language::error::Outcome;
use crate::number::Number;
use crate::value::Value;

/// `rate`
#[derive(Debug)]
struct Rate {
    dt: Number,
    clock: UntilExpired,
    sum: Number,
    /// The last event with a metric; its ttl shrinks while none comes.
    last: Value,
}

impl Node for Rate {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.clock.event(value, turn)?;
        if let Some(metric) = fields::metric(value)? {
            self.sum = fields::add(&self.sum, metric)?;
            self.last = std::mem::take(value);
        }
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        if !self.clock.due(timer, turn) {
            return Ok(());
        }
        let sum = std::mem::replace(&mut self.sum, Number::Int(0));
        let mut event = self.last.clone();
        let rate = fields::divide(&sum, &self.dt)?;
        fields::set(&mut event, Field::Metric, Value::Number(rate))?;
        fields::set(&mut event, Field::Time, Value::of_time_us(turn.now_us()))?;
        turn.emit(event);
        if let Some(ttl) = fields::get(&self.last, Field::Ttl).as_number() {
            let ttl = fields::subtract(ttl, &self.dt)?;
            fields::set(&mut self.last, Field::Ttl, Value::Number(ttl))?;
        }
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([
            ("clock", self.clock.save()),
            ("sum", self.sum.clone().into()),
            ("last", self.last.clone()),
        ])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.clock.restore(&state::entry(saved, "clock"), turn);
        self.sum = state::number(saved, "sum").unwrap_or(Number::Int(0));
        self.last = state::entry(saved, "last");
    }
}

/// `(rate dt c…)`
pub(super) fn rate(args: &mut Args<'_>) -> Outcome {
    let (dt, dt_us) = args.seconds()?;
    let clock = UntilExpired::new(dt_us, dt_us);
    Ok(args.add(Rate { dt, clock, sum: Number::Int(0), last: Value::Nil }))
}

/// The events of one interval, for streams that look at all of them at its end (part-time-fast).
#[derive(Debug)]
struct Bin {
    clock: UntilExpired,
    events: Vec<Value>,
}

impl Bin {
    fn new(interval_us: i64) -> Bin {
        Bin { clock: UntilExpired::new(interval_us, interval_us), events: Vec::new() }
    }

    fn event(&mut self, value: &Value, keep: bool, turn: &mut Turn<'_>) -> Outcome<()> {
        if self.clock.event(value, turn)? {
            self.events.clear();
        } else if keep && self.events.len() >= turn.limits().window_events {
            turn.count(Limit::WindowFull, 1);
        } else if keep {
            self.events.push(value.clone());
        }
        Ok(())
    }

    /// The events of the interval that has ended; none if the stream has expired.
    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Option<Vec<Value>> {
        self.clock.due(timer, turn).then(|| std::mem::take(&mut self.events))
    }

    fn save(&self) -> Value {
        state::saved([("clock", self.clock.save()), ("events", state::vector(&self.events))])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.clock.restore(&state::entry(saved, "clock"), turn);
        self.events = state::values(saved, "events");
        self.events.truncate(turn.limits().window_events);
    }
}

/// `percentiles`
#[derive(Debug)]
struct Percentiles {
    bin: Bin,
    /// Each point, and what the service gets.
    points: Vec<(Number, String)>,
}

impl Node for Percentiles {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let has_metric = fields::metric(value)?.is_some();
        self.bin.event(value, has_metric, turn)?;
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        if let Some(events) = self.bin.due(timer, turn) {
            folds::sample(events, &self.points)?.into_iter().for_each(|event| turn.emit(event));
        }
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        self.bin.save()
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.bin.restore(saved, turn);
    }
}

/// `(percentiles dt points c…)`
pub(super) fn percentiles(args: &mut Args<'_>) -> Outcome {
    let (_, dt_us) = args.seconds()?;
    let points =
        folds::points(args.take()?).ok_or_else(|| args.wrong("points are a vector or a map of numbers"))?;
    Ok(args.add(Percentiles { bin: Bin::new(dt_us), points }))
}

/// `fold-interval`
#[derive(Debug)]
struct FoldInterval {
    bin: Bin,
    field: Function,
    function: Value,
}

impl Node for FoldInterval {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let has_field = !self.field.call(value, turn)?.is_nil();
        self.bin.event(value, has_field, turn)?;
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        let Some(events) = self.bin.due(timer, turn) else { return Ok(()) };
        if events.is_empty() && turn.limits().drop_empty_folds {
            return Ok(());
        }
        let values: Outcome<Vec<Value>> = events.iter().map(|event| self.field.call(event, turn)).collect();
        let folded = turn.value_of(&self.function, &[Value::vector(values?)])?;
        let mut event = events.last().cloned().unwrap_or_default();
        match &self.field {
            Function::Field(field) => fields::set(&mut event, *field, folded)?,
            Function::Attribute(name) => fields::set_named(&mut event, name, folded)?,
            Function::Keys(_) | Function::Value(_) => {}
        }
        turn.emit(event);
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        self.bin.save()
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.bin.restore(saved, turn);
    }
}

fn add_fold(args: &mut Args<'_>, dt_us: i64, field: Function) -> Outcome {
    let function = args.take()?.clone();
    Ok(args.add(FoldInterval { bin: Bin::new(dt_us), field, function }))
}

/// `(fold-interval dt field f c…)`
pub(super) fn fold_interval(args: &mut Args<'_>) -> Outcome {
    let (_, dt_us) = args.seconds()?;
    let field = args.function()?;
    match field {
        Function::Field(_) | Function::Attribute(_) => add_fold(args, dt_us, field),
        Function::Keys(_) | Function::Value(_) => Err(args.wrong("the field is a keyword")),
    }
}

/// `(fold-interval-metric dt f c…)`
pub(super) fn fold_interval_metric(args: &mut Args<'_>) -> Outcome {
    let (_, dt_us) = args.seconds()?;
    add_fold(args, dt_us, Function::Field(Field::Metric))
}

/// `apdex`: how many events were satisfied, tolerated, and others.
#[derive(Debug)]
struct Apdex {
    grid: Grid,
    satisfied: Predicate,
    tolerated: Predicate,
    counts: [i64; 3],
    last: Value,
}

impl Node for Apdex {
    fn start(&mut self, turn: &mut Turn<'_>) {
        self.grid.start(turn);
    }

    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if fields::is_expired(value, turn.now_us())? {
            return Ok(true);
        }
        let sort = match self.satisfied.is_true(value, turn)? {
            true => 0,
            false if self.tolerated.is_true(value, turn)? => 1,
            false => 2,
        };
        self.counts[sort] = self.counts[sort].saturating_add(1);
        self.last = std::mem::take(value);
        self.grid.event(turn);
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        self.grid.due(timer);
        let [satisfied, tolerated, other] = std::mem::take(&mut self.counts).map(Number::Int);
        let mut event = std::mem::take(&mut self.last);
        let half = fields::divide(&tolerated, &Number::Int(2))?;
        let all = fields::add(&fields::add(&satisfied, &tolerated)?, &other)?;
        if !all.is_zero() {
            let apdex = fields::divide(&fields::add(&satisfied, &half)?, &all)?;
            fields::set(&mut event, Field::Metric, Value::Number(apdex))?;
            turn.emit(event);
        }
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        let counts = Value::vector(self.counts.map(Value::from));
        state::saved([("grid", self.grid.save()), ("counts", counts), ("last", self.last.clone())])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.grid.restore(&state::entry(saved, "grid"), turn);
        self.last = state::entry(saved, "last");
        let counts = state::values(saved, "counts");
        for (count, saved) in self.counts.iter_mut().zip(&counts) {
            *count = match saved {
                Value::Number(Number::Int(count)) => (*count).max(0),
                _ => 0,
            };
        }
    }
}

/// `(apdex* dt satisfied? tolerated? c…)`
pub(super) fn apdex_all(args: &mut Args<'_>) -> Outcome {
    let (_, dt_us) = args.seconds()?;
    let (satisfied, tolerated) = (args.predicate()?, args.predicate()?);
    Ok(args.add(Apdex { grid: Grid::new(dt_us), satisfied, tolerated, counts: [0; 3], last: Value::Nil }))
}
