//! Tasks of a config: functions that run once or every so many seconds (spec riemann §8.4).

use crate::graph::{Node, TimerId, Turn};
use crate::language::error::{EvalError, Outcome};
use crate::language::machine::Machine;
use crate::natives;
use crate::nodes::fields;
use crate::number::Number;
use crate::value::Value;

/// Tasks of a config, at most: a function of each event can make any number of them.
const TASKS_MAX: usize = 100_000;

natives! {
    /// Functions of `riemann.time`.
    pub(super) NATIVES = {
        "once!", 2, 2, "Calls a function at a time, in Unix seconds; a task.", |m, a| {
            let at_us = us(&a[0])?;
            add(m, Task { function: a[1].clone(), due_us: at_us, interval_us: None, timer: None })
        };
        "after!", 2, 2, "Calls a function after so many seconds; a task.", |m, a| {
            let due_us = m.graph.now_us().saturating_add(us(&a[0])?);
            add(m, Task { function: a[1].clone(), due_us, interval_us: None, timer: None })
        };
        "every!", 2, 3, "Calls a function every so many seconds, the first time after a delay; a task.", |m, a| {
            let (interval_us, delay_us) = (us(&a[0])?, if a.len() == 3 { us(&a[1])? } else { us(&a[0])? });
            if interval_us <= 0 {
                return Err(EvalError::illegal_argument("(every! seconds f): the interval must be over zero"));
            }
            let function = a[a.len() - 1].clone();
            let due_us = m.graph.now_us().saturating_add(delay_us);
            add(m, Task { function, due_us, interval_us: Some(interval_us), timer: None })
        };
        "cancel", 1, 1, "Ends a task.", |m, a| {
            if let Value::Stream(task) = a[0] && m.graph.surroundings.tasks.remove(&task) {
                m.graph.remove(task);
            }
            Ok(Value::Nil)
        };
        "defer", 2, 2, "Lets a task run next after so many seconds.", |m, a| {
            let Value::Stream(task) = a[0] else { return Err(fields::cannot("defer", &a[0])) };
            m.graph.push(task, &a[1])?;
            Ok(a[0].clone())
        };
    }
}

fn us(seconds: &Value) -> Outcome<i64> {
    fields::number(seconds).map(fields::to_us)
}

fn add(machine: &mut Machine<'_>, task: Task) -> Outcome {
    if machine.graph.surroundings.tasks.len() == TASKS_MAX {
        let message = format!("a config can have {TASKS_MAX} tasks at a time");
        return Err(EvalError::throw(&crate::object::class::ILLEGAL_STATE, message));
    }
    let task = machine.graph.add(Box::new(task), &[]);
    if !machine.is_trial() {
        machine.graph.surroundings.tasks.insert(task);
    }
    Ok(Value::Stream(task))
}

/// A function and when it is called.
#[derive(Debug)]
struct Task {
    function: Value,
    due_us: i64,
    interval_us: Option<i64>,
    timer: Option<TimerId>,
}

impl Node for Task {
    fn start(&mut self, turn: &mut Turn<'_>) {
        self.timer = Some(turn.set_timer(self.due_us));
    }

    /// A number: the task runs next after so many seconds (`defer`).
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let after_us = us(value)?;
        if let Some(timer) = self.timer.take() {
            turn.cancel_timer(timer);
            self.due_us = turn.now_us().saturating_add(after_us);
            self.start(turn);
        }
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        self.timer = None;
        match self.interval_us {
            Some(interval_us) => {
                // After a step of the clock it runs once, and is on the grid of that time from then on.
                self.due_us = timer.due_us().saturating_add(interval_us);
                self.timer = Some(turn.repeat_timer(timer, self.due_us));
            }
            None => {
                let task = turn.node();
                turn.graph().surroundings.tasks.remove(&task);
                turn.graph().remove(task);
            }
        }
        turn.call(&self.function, &[]).map(|_| ())
    }
}

/// A time in Unix seconds.
pub(super) fn of_us(us: i64) -> Number {
    match Value::of_time_us(us) {
        Value::Number(number) => number,
        _ => unreachable!("a time is a number"),
    }
}
