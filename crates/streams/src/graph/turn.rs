//! What a node can do while a value or a timer is at it.

use crate::graph::timers::{LATE_US_MAX, TimerId};
use crate::graph::{Counts, Graph, Limit, Limits, NodeId};
use crate::language::error::Outcome;
use crate::value::Value;

/// One node's turn. What it emits goes to its children when the turn has ended, in the order in which it was emitted.
#[derive(Debug)]
pub struct Turn<'g> {
    pub(super) graph: &'g mut Graph,
    pub(super) node: NodeId,
}

/// Where an emitted value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// The children of one port of the node.
    Port(u16),
    /// One other node: a child of a fork.
    Node(NodeId),
}

/// The port of the nodes that have only one.
pub const CHILDREN: u16 = 0;

impl Turn<'_> {
    /// The server's clock, in microseconds since 1970. While a timer is due: when it was due.
    pub fn now_us(&self) -> i64 {
        self.graph.now_us
    }

    /// The node whose turn it is.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Passes a value to the children.
    pub fn emit(&mut self, value: Value) {
        self.emit_at(CHILDREN, value);
    }

    /// Passes a value to the children of one port.
    pub fn emit_at(&mut self, port: u16, value: Value) {
        self.graph.emitted.push((To::Port(port), value));
    }

    /// Passes a value to one node.
    pub fn emit_to(&mut self, node: NodeId, value: Value) {
        self.graph.emitted.push((To::Node(node), value));
    }

    /// Sets a timer. [`Node::due`](super::Node::due) is called when it is due, once.
    pub fn set_timer(&mut self, due_us: i64) -> TimerId {
        self.graph.timers.set(due_us, self.node)
    }

    /// Sets a timer that was due for another time: it keeps its place among the timers of an instant, as a task of Riemann does (spec
    /// riemann §8.4).
    pub fn repeat_timer(&mut self, timer: TimerId, due_us: i64) -> TimerId {
        self.graph.timers.set_again(timer.at(due_us), self.node)
    }

    /// Sets a timer anew that was set in a graph before: it is due among others of its instant as it was there. One that has been
    /// due for more than an hour, since the process was down for so long, is due now, for nobody needs the ticks in between. One
    /// that is due later than `after_us` from now, as this kind never is, was set while the clock was ahead: it is due then.
    pub fn set_timer_again(&mut self, timer: TimerId, after_us: i64) -> TimerId {
        if timer.due_us() < self.now_us().saturating_sub(LATE_US_MAX) {
            return self.set_timer(self.now_us());
        }
        let latest_us = self.now_us().saturating_add(after_us.max(0));
        if timer.due_us() > latest_us {
            return self.set_timer(latest_us);
        }
        self.graph.timers.set_again(timer, self.node)
    }

    /// The limits of the graph.
    pub fn limits(&self) -> Limits {
        self.graph.limits
    }

    /// Counts that a limit had an effect, so many times.
    pub fn count(&mut self, limit: Limit, times: u64) {
        self.graph.counts.add(limit, times);
    }

    /// A hash of the parts of a key, with the graph's seed. Equal keys have equal hashes.
    pub fn hash(&self, parts: &[Value]) -> u64 {
        self.graph.hashes.of(parts)
    }

    /// The counters of the graph.
    pub fn counts(&self) -> &Counts {
        &self.graph.counts
    }

    /// Counts forks that were made, or, negative, that were removed.
    pub fn count_forks(&mut self, more: i64) {
        self.graph.counts.add_forks(more);
    }

    /// Gives a node that this node made what it remembered.
    pub fn restore_node(&mut self, node: NodeId, saved: &Value) {
        self.graph.restore(node, saved);
    }

    /// The graph, for whatever makes nodes from values.
    pub fn graph(&mut self) -> &mut Graph {
        self.graph
    }

    /// Cancels a timer; nothing happens if it is none any more.
    pub fn cancel_timer(&mut self, timer: TimerId) {
        self.graph.timers.cancel(timer);
    }

    /// Calls a function of the config, or any other value that can be called.
    ///
    /// # Errors
    /// What it throws.
    pub fn call(&mut self, function: &Value, args: &[Value]) -> Outcome {
        self.graph.call(function, args)
    }

    /// The same with all sequences inside computed: for values that the node compares, takes apart or passes.
    ///
    /// # Errors
    /// What it throws, also if a sequence has no end.
    pub fn value_of(&mut self, function: &Value, args: &[Value]) -> Outcome {
        self.graph.value_of(function, args)
    }

    /// Makes nodes as [`Turn::make_with`] does, gives them their own trials, and lets `look` have what was made before it is removed.
    ///
    /// # Errors
    /// What it throws.
    pub fn try_with<T, R>(
        &mut self,
        make: impl FnOnce(&mut Graph) -> Outcome<T>,
        look: impl FnOnce(&Graph, T, &[NodeId]) -> R,
    ) -> Outcome<R> {
        let first = self.graph.trials.waiting.len();
        let (made, nodes) = match self.make_with(make) {
            Ok(made) => made,
            Err(error) => {
                self.graph.trials.waiting.truncate(first);
                return Err(error);
            }
        };
        self.graph.run_trials_from(first);
        let looked = look(self.graph, made, &nodes);
        for node in &nodes {
            self.graph.origins.remove(node);
        }
        self.drop_nodes(&nodes);
        Ok(looked)
    }

    /// Makes nodes, as the body of `by` does. They belong to this node, until [`Turn::drop_nodes`].
    ///
    /// # Errors
    /// What it throws. The nodes that it made are gone then.
    pub fn make_with<T>(&mut self, make: impl FnOnce(&mut Graph) -> Outcome<T>) -> Outcome<(T, Vec<NodeId>)> {
        let outer = self.graph.made.replace(Vec::new());
        // The handler of exceptions is that of the place where this node was made, not of who calls it now.
        let rescue = self.graph.slot(self.node).and_then(|slot| slot.rescue);
        let outer_rescue = std::mem::replace(&mut self.graph.rescue, rescue);
        let made = make(self.graph);
        self.graph.rescue = outer_rescue;
        let nodes = std::mem::replace(&mut self.graph.made, outer).unwrap_or_default();
        match made {
            Ok(value) => Ok((value, nodes)),
            Err(error) => {
                self.drop_nodes(&nodes);
                Err(error)
            }
        }
    }

    /// Removes nodes that this node made, with their timers.
    pub fn drop_nodes(&mut self, nodes: &[NodeId]) {
        nodes.iter().for_each(|node| self.graph.remove(*node));
    }
}
