//! Streams that look for changes: `changed`, `stable`, `runs`.

use std::collections::VecDeque;

use super::arguments::Args;
use super::function::Function;
use super::{fields, state};
use crate::collections::element::Element;
use crate::graph::{Graph, Limit, Node, TimerId, Turn};
use crate::language::error::{EvalError, Outcome};
use crate::number::Number;
use crate::object::class;
use crate::value::Value;

/// `changed`
#[derive(Debug)]
struct Changed {
    function: Function,
    /// The function's value of the last event.
    last: Value,
    /// With `:pairs? true`: the last event.
    pairs: Option<Value>,
}

impl Node for Changed {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let is_changed = match self.function.read(value) {
            Some(new) => {
                let is_changed = !new.equal(&self.last);
                if is_changed {
                    self.last = new.clone();
                }
                is_changed
            }
            None => {
                let new = self.function.call(value, turn)?;
                let is_changed = !new.equal(&self.last);
                self.last = new;
                is_changed
            }
        };
        let value = std::mem::take(value);
        let before = self.pairs.as_mut().map(|before| std::mem::replace(before, value.clone()));
        if is_changed {
            turn.emit(match before {
                Some(before) => Value::vector([before, value]),
                None => value,
            });
        }
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("last", self.last.clone()), ("before", self.pairs.clone().unwrap_or_default())])
    }

    fn restore(&mut self, saved: &Value, _: &mut Turn<'_>) {
        if matches!(saved, Value::Map(_)) {
            self.last = state::entry(saved, "last");
            self.pairs = self.pairs.take().map(|_| state::entry(saved, "before"));
        }
    }
}

/// `(changed f [{:init v :pairs? b}] c…)`
pub(super) fn changed(args: &mut Args<'_>) -> Outcome {
    let function = args.function()?;
    let options = args.options().cloned().unwrap_or_default();
    let pairs = state::entry(&options, "pairs?").is_true().then_some(Value::Nil);
    Ok(args.add(Changed { function, last: state::entry(&options, "init"), pairs }))
}

/// `stable`: what has not held for long enough is held back.
#[derive(Debug)]
struct Stable {
    dt: Number,
    dt_us: i64,
    function: Function,
    /// The value that holds; none before the first event.
    held: Option<Value>,
    is_stable: bool,
    /// When it began, by the first event's time.
    since: Number,
    queue: VecDeque<Value>,
    timer: Option<TimerId>,
}

impl Stable {
    fn pass_queue(&mut self, turn: &mut Turn<'_>) {
        self.is_stable = true;
        self.queue.drain(..).for_each(|event| turn.emit(event));
        self.cancel(turn);
    }

    fn cancel(&mut self, turn: &mut Turn<'_>) {
        if let Some(timer) = self.timer.take() {
            turn.cancel_timer(timer);
        }
    }

    fn queue(&mut self, value: Value, turn: &mut Turn<'_>) {
        if self.queue.len() >= turn.limits().window_events {
            self.queue.pop_front();
            turn.count(Limit::WindowFull, 1);
        }
        self.queue.push_back(value);
    }
}

impl Node for Stable {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let new = self.function.call(value, turn)?;
        let Some(time) = fields::time(value)?.cloned() else {
            return Err(EvalError::throw(&class::NULL_POINTER, "stable needs the time of the event"));
        };
        let value = std::mem::take(value);
        if !self.held.as_ref().is_some_and(|held| held.equal(&new)) {
            self.cancel(turn);
            self.queue.clear();
            (self.held, self.is_stable, self.since) = (Some(new), false, time);
            self.queue(value, turn);
            let due_us = fields::to_us(&self.since).saturating_add(self.dt_us);
            self.timer = Some(turn.set_timer(due_us.max(turn.now_us())));
            return Ok(true);
        }
        if self.is_stable {
            turn.emit(value);
            return Ok(true);
        }
        self.queue(value, turn);
        if !fields::is_less(&fields::subtract(&time, &self.since)?, &self.dt) {
            self.pass_queue(turn);
        }
        Ok(true)
    }

    fn due(&mut self, _: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        self.timer = None;
        self.pass_queue(turn);
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([
            ("held", Value::vector(self.held.iter().cloned())),
            ("stable", self.is_stable.into()),
            ("since", self.since.clone().into()),
            ("queue", state::vector(&self.queue)),
            ("timer", state::of_timer(self.timer)),
        ])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.held = state::values(saved, "held").pop();
        self.is_stable = state::entry(saved, "stable").is_true();
        self.since = state::number(saved, "since").unwrap_or(Number::Int(0));
        self.queue = state::values(saved, "queue").into();
        // It counts from the time of an event, which may be ahead of the clock.
        let since_us = match fields::is_far_ahead(&self.since, turn.now_us()) {
            true => turn.now_us(),
            false => fields::to_us(&self.since),
        };
        let after_us = since_us.saturating_add(self.dt_us).saturating_sub(turn.now_us());
        self.timer = state::timer((saved, "timer"), self.timer, after_us, turn);
        if self.held.is_some() && !self.is_stable && self.timer.is_none() {
            self.timer = Some(turn.set_timer(turn.now_us()));
        }
    }
}

/// `(stable dt f c…)`
pub(super) fn stable(args: &mut Args<'_>) -> Outcome {
    let dt = args.number()?;
    let dt_us = fields::to_us(&dt);
    let function = args.function()?;
    Ok(args.add(Stable {
        dt,
        dt_us,
        function,
        held: None,
        is_stable: false,
        since: Number::Int(0),
        queue: VecDeque::new(),
        timer: None,
    }))
}

/// `runs`: how often the last value has come in a row.
#[derive(Debug)]
struct Runs {
    wanted: usize,
    function: Function,
    last: Value,
    run: usize,
}

impl Node for Runs {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let new = self.function.call(value, turn)?;
        self.run = if self.run > 0 && new.equal(&self.last) { self.run.saturating_add(1) } else { 1 };
        self.last = new;
        if self.wanted > 0 && self.run >= self.wanted {
            turn.emit(std::mem::take(value));
        }
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("last", self.last.clone()), ("run", self.run.into())])
    }

    fn restore(&mut self, saved: &Value, _: &mut Turn<'_>) {
        self.run = state::count(saved, "run").unwrap_or(self.run);
        self.last = state::entry(saved, "last");
    }
}

/// `(runs n field c…)`
pub(super) fn runs(args: &mut Args<'_>) -> Outcome {
    let wanted = args.count()?;
    let function = args.function()?;
    Ok(args.add(Runs { wanted, function, last: Value::Nil, run: 0 }))
}
