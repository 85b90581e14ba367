//! Timers of the nodes, in the order in which they are due.

use std::collections::BTreeMap;

use super::id::NodeId;
use crate::number::Number;
use crate::value::Value;

/// A timer that is due for longer, since no process ran or the clock stepped forward, runs once instead of at each of its times.
pub(super) const LATE_US_MAX: i64 = 3_600 * 1_000_000;

/// A timer that was set. Unique within its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerId {
    /// When it is due, in microseconds of the server's clock.
    due_us: i64,
    /// Timers of the same instant are due in the order in which they were set.
    order: u64,
}

impl TimerId {
    /// When it is due, in microseconds of the server's clock.
    pub fn due_us(self) -> i64 {
        self.due_us
    }

    /// The same timer at another time.
    pub(super) fn at(self, due_us: i64) -> TimerId {
        TimerId { due_us, ..self }
    }

    /// As a value, for the state of a node: `[due_us order]`.
    pub fn save(self) -> Value {
        Value::vector([Value::from(self.due_us), Value::from(self.order.cast_signed())])
    }

    /// The timer that `save` gave.
    pub fn of(saved: &Value) -> Option<TimerId> {
        let Value::Vector(saved) = saved else { return None };
        match (saved.len(), saved.first()?.as_number()?, saved.last()?.as_number()?) {
            (2, Number::Int(due_us), Number::Int(order)) => {
                Some(TimerId { due_us: *due_us, order: order.cast_unsigned() })
            }
            _ => None,
        }
    }
}

/// All timers of a graph.
#[derive(Debug, Default)]
pub(super) struct Timers {
    set: BTreeMap<TimerId, NodeId>,
    next: u64,
}

impl Timers {
    pub(super) fn set(&mut self, due_us: i64, node: NodeId) -> TimerId {
        let id = TimerId { due_us, order: self.next };
        self.next += 1;
        self.set.insert(id, node);
        id
    }

    /// Sets one of a graph before this one. Orders are 64-bit numbers that each timer takes one of, so they do not run out; one
    /// that a damaged state made up gets a new order.
    pub(super) fn set_again(&mut self, id: TimerId, node: NodeId) -> TimerId {
        if id.order > u64::MAX / 2 || self.set.contains_key(&id) {
            return self.set(id.due_us, node);
        }
        self.next = self.next.max(id.order + 1);
        self.set.insert(id, node);
        id
    }

    pub(super) fn cancel(&mut self, id: TimerId) {
        self.set.remove(&id);
    }

    /// Keeps those of the nodes that are wanted.
    pub(super) fn keep(&mut self, wanted: impl Fn(NodeId) -> bool) {
        self.set.retain(|_, node| wanted(*node));
    }

    pub(super) fn len(&self) -> usize {
        self.set.len()
    }

    /// When the first one is due.
    pub(super) fn next_due_us(&self) -> Option<i64> {
        self.set.first_key_value().map(|(id, _)| id.due_us)
    }

    /// Takes the first one if it is due by then.
    pub(super) fn take_due(&mut self, now_us: i64) -> Option<(TimerId, NodeId)> {
        let first = self.set.first_entry().filter(|first| first.key().due_us <= now_us)?;
        Some(first.remove_entry())
    }
}
