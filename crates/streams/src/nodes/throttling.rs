//! Streams that pass fewer, or larger, values: `throttle`, `batch`, and the one between them.

use super::arguments::Args;
use super::clocked::Grid;
use super::state;
use crate::graph::{Graph, Limit, Node, TimerId, Turn};
use crate::language::error::Outcome;
use crate::value::Value;

/// `throttle`
#[derive(Debug)]
struct Throttle {
    grid: Grid,
    allowed: usize,
    passed: usize,
}

impl Node for Throttle {
    fn start(&mut self, turn: &mut Turn<'_>) {
        self.grid.start(turn);
    }

    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.grid.event(turn);
        if self.passed < self.allowed {
            self.passed += 1;
            turn.emit(std::mem::take(value));
        }
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, _: &mut Turn<'_>) -> Outcome<()> {
        self.grid.due(timer);
        self.passed = 0;
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("grid", self.grid.save()), ("passed", self.passed.into())])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.grid.restore(&state::entry(saved, "grid"), turn);
        self.passed = state::count(saved, "passed").unwrap_or(0);
    }
}

/// `(throttle n dt c…)`
pub(super) fn throttle(args: &mut Args<'_>) -> Outcome {
    let (allowed, (_, dt_us)) = (args.count()?, args.seconds()?);
    Ok(args.add(Throttle { grid: Grid::new(dt_us), allowed, passed: 0 }))
}

/// Passes the first events of a window, and collects what comes after them.
#[derive(Debug)]
struct Collect {
    grid: Grid,
    allowed: usize,
    passed: usize,
    queue: Vec<Value>,
}

impl Node for Collect {
    fn start(&mut self, turn: &mut Turn<'_>) {
        self.grid.start(turn);
    }

    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.grid.event(turn);
        let value = std::mem::take(value);
        if self.passed < self.allowed {
            self.passed += 1;
            turn.emit(Value::vector([value]));
            return Ok(true);
        }
        self.queue.push(value);
        if self.queue.len() >= turn.limits().window_events {
            turn.count(Limit::FlushedEarly, 1);
            turn.emit(Value::vector(self.queue.drain(..)));
        }
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        self.grid.due(timer);
        self.passed = 0;
        if !self.queue.is_empty() {
            // This flush is one of those that the next window may pass.
            self.passed = 1;
            turn.emit(Value::vector(self.queue.drain(..)));
        }
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([
            ("grid", self.grid.save()),
            ("passed", self.passed.into()),
            ("queue", state::vector(&self.queue)),
        ])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.grid.restore(&state::entry(saved, "grid"), turn);
        self.passed = state::count(saved, "passed").unwrap_or(0);
        self.queue = state::values(saved, "queue");
    }
}

/// Vectors: at most n in dt seconds.
pub(super) fn roll_up(args: &mut Args<'_>) -> Outcome {
    let (allowed, (_, dt_us)) = (args.count()?, args.seconds()?);
    Ok(args.add(Collect { grid: Grid::new(dt_us), allowed, passed: 0, queue: Vec::new() }))
}

/// `batch`
#[derive(Debug)]
struct Batch {
    grid: Grid,
    size: usize,
    queue: Vec<Value>,
}

impl Node for Batch {
    fn start(&mut self, turn: &mut Turn<'_>) {
        self.grid.start(turn);
    }

    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        self.grid.event(turn);
        self.queue.push(std::mem::take(value));
        let limit = turn.limits().window_events;
        if self.queue.len() >= self.size.min(limit) {
            turn.count(Limit::FlushedEarly, u64::from(self.queue.len() < self.size));
            turn.emit(Value::vector(self.queue.drain(..)));
        }
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        self.grid.due(timer);
        if !self.queue.is_empty() {
            turn.emit(Value::vector(self.queue.drain(..)));
        }
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("grid", self.grid.save()), ("queue", state::vector(&self.queue))])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.grid.restore(&state::entry(saved, "grid"), turn);
        self.queue = state::values(saved, "queue");
    }
}

/// `(batch n dt c…)`
pub(super) fn batch(args: &mut Args<'_>) -> Outcome {
    let (size, (_, dt_us)) = (args.count()?, args.seconds()?);
    Ok(args.add(Batch { grid: Grid::new(dt_us), size, queue: Vec::new() }))
}
