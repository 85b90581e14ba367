//! Timers of the nodes, in the order in which they are due.

use std::collections::BTreeMap;

use super::NodeId;

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
}

/// All timers of a graph.
#[derive(Debug, Default)]
pub(super) struct Timers {
    set: BTreeMap<TimerId, (NodeId, u32)>,
    next: u64,
}

impl Timers {
    pub(super) fn set(&mut self, due_us: i64, node: NodeId, generation: u32) -> TimerId {
        let id = TimerId { due_us, order: self.next };
        self.next += 1;
        self.set.insert(id, (node, generation));
        id
    }

    pub(super) fn cancel(&mut self, id: TimerId) {
        self.set.remove(&id);
    }

    /// When the first one is due.
    pub(super) fn next_due_us(&self) -> Option<i64> {
        self.set.first_key_value().map(|(id, _)| id.due_us)
    }

    /// Takes the first one if it is due by then.
    pub(super) fn take_due(&mut self, now_us: i64) -> Option<(TimerId, (NodeId, u32))> {
        let first = self.set.first_entry().filter(|first| first.key().due_us <= now_us)?;
        Some(first.remove_entry())
    }
}
