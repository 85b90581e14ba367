//! Streams that fill gaps: `fill-in`, `fill-in-last`, `interpolate-constant`.

use super::arguments::Args;
use super::function::Function;
use super::{fields, state};
use crate::event::Field;
use crate::graph::{Graph, Node, TimerId, Turn};
use crate::language::error::Outcome;
use crate::value::Value;

/// What fills a gap.
#[derive(Debug)]
enum Fill {
    /// An event.
    Default(Value),
    /// The last event, with the entries of a map.
    LastWith(Value),
    /// The last event, mapped.
    LastMapped(Function),
}

/// `fill-in` and its relatives.
#[derive(Debug)]
struct FillIn {
    dt_us: i64,
    fill: Fill,
    last: Value,
    timer: Option<TimerId>,
}

impl FillIn {
    fn set_timer(&mut self, due_us: i64, turn: &mut Turn<'_>) {
        if let Some(timer) = self.timer.replace(turn.set_timer(due_us)) {
            turn.cancel_timer(timer);
        }
    }

    fn filling(&self, turn: &mut Turn<'_>) -> Outcome {
        let mut event = match &self.fill {
            Fill::Default(event) => event.clone(),
            Fill::LastMapped(function) => function.call(&self.last, turn)?,
            Fill::LastWith(update) => merge(&self.last, update)?,
        };
        fields::set(&mut event, Field::Time, Value::of_time_us(turn.now_us()))?;
        Ok(event)
    }
}

/// An event with the entries of a map, or of an event.
fn merge(event: &Value, update: &Value) -> Outcome {
    let mut event = event.clone();
    match update {
        Value::Map(map) => {
            for (key, value) in map.iter() {
                let Value::Keyword(name) = key else { return Err(fields::cannot("name a field by", key)) };
                fields::set_named(&mut event, name, value.clone())?;
            }
        }
        Value::Event(update) => {
            for field in Field::ALL {
                fields::set(&mut event, field, update.get(field).clone())?;
            }
            for (name, value) in update.attributes() {
                fields::set_named(&mut event, name, value.clone())?;
            }
        }
        _ => {}
    }
    Ok(event)
}

impl Node for FillIn {
    fn start(&mut self, turn: &mut Turn<'_>) {
        if matches!(self.fill, Fill::Default(_)) {
            self.set_timer(turn.now_us() + self.dt_us, turn);
        }
    }

    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if fields::is_expired(value, turn.now_us())? {
            if let Some(timer) = self.timer.take() {
                turn.cancel_timer(timer);
            }
        } else {
            self.set_timer(turn.now_us() + self.dt_us, turn);
            if !matches!(self.fill, Fill::Default(_)) {
                self.last = value.clone();
            }
        }
        turn.emit(std::mem::take(value));
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        self.timer = Some(turn.set_timer(timer.due_us().saturating_add(self.dt_us)));
        let event = self.filling(turn)?;
        turn.emit(event);
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("last", self.last.clone()), ("timer", state::of_timer(self.timer))])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.last = state::entry(saved, "last");
        self.timer = state::timer((saved, "timer"), self.timer, self.dt_us, turn);
    }
}

fn fill(args: &mut Args<'_>, dt_us: i64, fill: Fill) -> Value {
    args.add(FillIn { dt_us, fill, last: Value::Nil, timer: None })
}

/// `(fill-in dt default-event c…)`
pub(super) fn fill_in(args: &mut Args<'_>) -> Outcome {
    let (_, dt_us) = args.seconds()?;
    let event = args.take()?.clone();
    Ok(fill(args, dt_us, Fill::Default(event)))
}

/// `(fill-in-last dt update c…)`
pub(super) fn fill_in_last(args: &mut Args<'_>) -> Outcome {
    let (_, dt_us) = args.seconds()?;
    let update = args.take()?.clone();
    Ok(fill(args, dt_us, Fill::LastWith(update)))
}

/// `(fill-in-last* dt f c…)`
pub(super) fn fill_in_last_all(args: &mut Args<'_>) -> Outcome {
    let (_, dt_us) = args.seconds()?;
    let function = args.function()?;
    Ok(fill(args, dt_us, Fill::LastMapped(function)))
}

/// `interpolate-constant`
#[derive(Debug)]
struct InterpolateConstant {
    dt_us: i64,
    last: Value,
    timer: Option<TimerId>,
}

impl Node for InterpolateConstant {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let is_expired = fields::is_expired(value, turn.now_us())?;
        let value = std::mem::take(value);
        if is_expired {
            if let Some(timer) = self.timer.take() {
                turn.cancel_timer(timer);
            }
            turn.emit(value);
            return Ok(true);
        }
        self.last = value;
        if self.timer.is_none() {
            self.timer = Some(turn.set_timer(turn.now_us()));
        }
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        self.timer = Some(turn.set_timer(timer.due_us().saturating_add(self.dt_us)));
        let mut event = self.last.clone();
        fields::set(&mut event, Field::Time, Value::of_time_us(turn.now_us()))?;
        turn.emit(event);
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("last", self.last.clone()), ("timer", state::of_timer(self.timer))])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.last = state::entry(saved, "last");
        self.timer = state::timer((saved, "timer"), self.timer, self.dt_us, turn);
    }
}

/// `(interpolate-constant dt c…)`
pub(super) fn interpolate_constant(args: &mut Args<'_>) -> Outcome {
    let (_, dt_us) = args.seconds()?;
    Ok(args.add(InterpolateConstant { dt_us, last: Value::Nil, timer: None }))
}
