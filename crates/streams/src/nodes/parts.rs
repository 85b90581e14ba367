//! The clocked parts as streams of their own, for streams that a config writes: `part-time-fast`, `part-time-simple`,
//! `periodically-until-expired` (spec riemann §8.5).

use super::arguments::Args;
use super::clocked::{Grid, UntilExpired};
use super::{fields, state};
use crate::graph::{Graph, Node, TimerId, Turn};
use crate::language::error::Outcome;
use crate::value::Value;

/// `periodically-until-expired`
#[derive(Debug)]
struct Periodically {
    clock: UntilExpired,
    function: Value,
}

impl Node for Periodically {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.clock.event(value, turn)?;
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        if self.clock.due(timer, turn) {
            turn.call(&self.function, &[])?;
        }
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        self.clock.save()
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.clock.restore(saved, turn);
    }
}

/// `(periodically-until-expired [interval [delay]] f)`
pub(super) fn periodically_until_expired(args: &mut Args<'_>) -> Outcome {
    const INTERVAL_US_DEFAULT: i64 = 1_000_000;
    let is_number = |args: &Args<'_>| matches!(args.peek(), Some(Value::Number(_)));
    let interval_us = if is_number(args) { args.seconds()?.1 } else { INTERVAL_US_DEFAULT };
    let delay_us = if is_number(args) { fields::to_us(&args.number()?).max(0) } else { 0 };
    let function = args.take()?.clone();
    Ok(args.add(Periodically { clock: UntilExpired::new(interval_us, delay_us), function }))
}

/// `part-time-fast`
#[derive(Debug)]
struct PartTimeFast {
    clock: UntilExpired,
    create: Value,
    add: Value,
    finish: Value,
    /// What `create` made, and when.
    bin: Option<(Value, i64)>,
}

impl Node for PartTimeFast {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        if self.clock.event(value, turn)? {
            self.bin = None;
            return Ok(true);
        }
        let bin = match &self.bin {
            Some((bin, _)) => bin.clone(),
            None => {
                let bin = turn.call(&self.create, &[])?;
                self.bin = Some((bin.clone(), turn.now_us()));
                bin
            }
        };
        turn.call(&self.add, &[bin, value.clone()])?;
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        if !self.clock.due(timer, turn) {
            return Ok(());
        }
        let end_us = timer.due_us();
        let next = turn.call(&self.create, &[])?;
        if let Some((bin, start_us)) = self.bin.replace((next, end_us)) {
            let times = [start_us, end_us].map(Value::of_time_us);
            let [start, end] = times;
            turn.call(&self.finish, &[bin, start, end])?;
        }
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        let bin = self.bin.as_ref().map(|(bin, start_us)| Value::vector([bin.clone(), (*start_us).into()]));
        state::saved([("clock", self.clock.save()), ("bin", bin.into())])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.clock.restore(&state::entry(saved, "clock"), turn);
        let bin = state::pair(&state::entry(saved, "bin"));
        self.bin = bin.and_then(|(bin, start)| match start {
            Value::Number(crate::number::Number::Int(start_us)) => Some((bin, start_us)),
            _ => None,
        });
    }
}

/// `(part-time-fast interval create add finish)`
pub(super) fn part_time_fast(args: &mut Args<'_>) -> Outcome {
    let (_, interval_us) = args.seconds()?;
    let (create, add, finish) = (args.take()?.clone(), args.take()?.clone(), args.take()?.clone());
    let clock = UntilExpired::new(interval_us, interval_us);
    Ok(args.add(PartTimeFast { clock, create, add, finish, bin: None }))
}

/// `part-time-simple`
#[derive(Debug)]
struct PartTimeSimple {
    grid: Grid,
    reset: Value,
    add: Value,
    side_effects: Option<Value>,
    finish: Value,
    /// None before the first event.
    state: Option<Value>,
}

impl PartTimeSimple {
    fn state(&self, turn: &mut Turn<'_>) -> Outcome {
        match &self.state {
            Some(state) => Ok(state.clone()),
            None => turn.call(&self.reset, &[Value::Nil]),
        }
    }
}

impl Node for PartTimeSimple {
    fn start(&mut self, turn: &mut Turn<'_>) {
        self.grid.start(turn);
    }

    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.grid.event(turn);
        let state = self.state(turn)?;
        let state = turn.call(&self.add, &[state, value.clone()])?;
        self.state = Some(state.clone());
        if let Some(side_effects) = &self.side_effects {
            turn.call(side_effects, &[state, value.clone()])?;
        }
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        let (start_us, end_us) = self.grid.due(timer);
        let state = self.state(turn)?;
        self.state = Some(turn.call(&self.reset, std::slice::from_ref(&state))?);
        turn.call(&self.finish, &[state, Value::of_time_us(start_us), Value::of_time_us(end_us)])?;
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("grid", self.grid.save()), ("state", Value::vector(self.state.iter().cloned()))])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.grid.restore(&state::entry(saved, "grid"), turn);
        self.state = state::values(saved, "state").pop();
    }
}

/// `(part-time-simple dt reset add [side-effects] finish)`
pub(super) fn part_time_simple(args: &mut Args<'_>) -> Outcome {
    let (_, interval_us) = args.seconds()?;
    let (reset, add, last) = (args.take()?.clone(), args.take()?.clone(), args.take()?.clone());
    let (side_effects, finish) = match args.peek() {
        Some(finish) => (Some(last), finish.clone()),
        None => (None, last),
    };
    args.rest();
    Ok(args.add(PartTimeSimple {
        grid: Grid::new(interval_us),
        reset,
        add,
        side_effects,
        finish,
        state: None,
    }))
}
