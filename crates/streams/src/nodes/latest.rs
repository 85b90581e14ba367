//! Streams that remember the latest event of each key: `coalesce`, `coalesce-with-event`, `project`.

use super::arguments::Args;
use super::clocked::UntilExpired;
use super::function::Function;
use super::predicate::Predicate;
use super::{fields, state};
use crate::collections::map::Map;
use crate::event::Field;
use crate::graph::{Graph, Limit, Node, TimerId, Turn};
use crate::language::error::Outcome;
use crate::value::Value;

/// The latest event of each key.
#[derive(Debug, Default)]
struct Latest {
    events: Map<Value>,
}

impl Latest {
    /// Remembers an event. If there are too many keys already, the first one in the map's order is forgotten.
    fn insert(&mut self, key: Value, event: Value, turn: &mut Turn<'_>) {
        if self.events.len() >= turn.limits().window_events && self.events.get(&key).is_none() {
            let first = self.events.iter().next().map(|(key, _)| key.clone());
            first.map(|first| self.events.remove(&first));
            turn.count(Limit::KeysFull, 1);
        }
        self.events.insert(key, event);
    }

    /// All of them, and which keys have expired: these are forgotten.
    fn take(&mut self, now_us: i64) -> Outcome<(Vec<Value>, Vec<Value>)> {
        let (mut live, mut expired, mut forgotten) = (Vec::new(), Vec::new(), Vec::new());
        for (key, event) in self.events.iter() {
            if fields::is_expired(event, now_us)? {
                expired.push(event.clone());
                forgotten.push(key.clone());
            } else {
                live.push(event.clone());
            }
        }
        forgotten.iter().for_each(|key| _ = self.events.remove(key));
        Ok((expired, live))
    }

    fn save(&self) -> Value {
        Value::vector(self.events.iter().map(|(key, event)| Value::vector([key.clone(), event.clone()])))
    }

    fn restore(&mut self, saved: &[Value], turn: &mut Turn<'_>) {
        self.events = Map::default();
        for (key, event) in saved.iter().filter_map(state::pair) {
            self.insert(key, event, turn);
        }
    }
}

/// `coalesce`
#[derive(Debug)]
struct Coalesce {
    clock: UntilExpired,
    latest: Latest,
}

impl Node for Coalesce {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let key = [fields::get(value, Field::Service), fields::get(value, Field::Host)];
        let key = state::vector(key);
        self.clock.event(value, turn)?;
        self.latest.insert(key, std::mem::take(value), turn);
        Ok(true)
    }

    fn due(&mut self, timer: TimerId, turn: &mut Turn<'_>) -> Outcome<()> {
        if self.clock.due(timer, turn) {
            let (expired, live) = self.latest.take(turn.now_us())?;
            turn.emit(Value::vector(expired.into_iter().chain(live)));
        }
        Ok(())
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("clock", self.clock.save()), ("latest", self.latest.save())])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.clock.restore(&state::entry(saved, "clock"), turn);
        self.latest.restore(&state::values(saved, "latest"), turn);
    }
}

/// `(coalesce [dt] c…)`
pub(super) fn coalesce(args: &mut Args<'_>) -> Outcome {
    const DT_US_DEFAULT: i64 = 1_000_000;
    let dt_us = match args.peek() {
        Some(Value::Number(_)) => args.seconds()?.1,
        _ => DT_US_DEFAULT,
    };
    Ok(args.add(Coalesce { clock: UntilExpired::new(dt_us, 0), latest: Latest::default() }))
}

/// `coalesce-with-event`
#[derive(Debug)]
struct CoalesceWithEvent {
    key: Function,
    child: Value,
    latest: Latest,
}

impl Node for CoalesceWithEvent {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let key = self.key.call(value, turn)?;
        self.latest.insert(key, value.clone(), turn);
        let (expired, live) = self.latest.take(turn.now_us())?;
        let all = Value::vector(expired.into_iter().chain(live));
        turn.call(&self.child, &[value.clone(), all])?;
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("latest", self.latest.save())])
    }

    fn restore(&mut self, saved: &Value, turn: &mut Turn<'_>) {
        self.latest.restore(&state::values(saved, "latest"), turn);
    }
}

/// `(coalesce-with-event keyfn child)`: the child is a function of the event and of the vector of all.
pub(super) fn coalesce_with_event(args: &mut Args<'_>) -> Outcome {
    let (key, child) = (args.function()?, args.take()?.clone());
    Ok(args.add(CoalesceWithEvent { key, child, latest: Latest::default() }))
}

/// `project`: the newest event of each predicate.
#[derive(Debug)]
struct Project {
    predicates: Box<[Predicate]>,
    events: Vec<Value>,
}

impl Node for Project {
    fn push(&mut self, value: &mut Value, turn: &mut Turn<'_>) -> Outcome<bool> {
        let mut is_match = false;
        for (predicate, event) in self.predicates.iter().zip(&mut self.events) {
            if predicate.is_true(value, turn)? {
                *event = value.clone();
                is_match = true;
            }
        }
        if !is_match {
            return Ok(true);
        }
        let mut shown = Vec::with_capacity(self.events.len());
        for event in &mut self.events {
            if !event.is_nil() && fields::is_expired(event, turn.now_us())? {
                shown.push(fields::expire(event, turn.now_us()));
                *event = Value::Nil;
            } else {
                shown.push(event.clone());
            }
        }
        turn.emit(Value::vector(shown));
        Ok(true)
    }

    fn save(&self, _: &Graph) -> Value {
        state::saved([("events", state::vector(&self.events))])
    }

    fn restore(&mut self, saved: &Value, _: &mut Turn<'_>) {
        let events = state::values(saved, "events");
        self.events.iter_mut().zip(events).for_each(|(event, saved)| *event = saved);
    }
}

/// `(project* [f…] c…)`
pub(super) fn project_all(args: &mut Args<'_>) -> Outcome {
    let predicates =
        fields::items(args.take()?).ok_or_else(|| args.wrong("a vector of predicates is needed"))?;
    let predicates: Outcome<Box<[Predicate]>> = predicates.iter().map(Predicate::of).collect();
    let predicates = predicates?;
    let events = vec![Value::Nil; predicates.len()];
    Ok(args.add(Project { predicates, events }))
}
