//! What a node can do while a value or a timer is at it.

use crate::graph::timers::TimerId;
use crate::graph::{Graph, NodeId};
use crate::thrown::Thrown;
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
        let generation = self.graph.slots[self.node.0 as usize].generation;
        self.graph.timers.set(due_us, self.node, generation)
    }

    /// Cancels a timer; nothing happens if it is none any more.
    pub fn cancel_timer(&mut self, timer: TimerId) {
        self.graph.timers.cancel(timer);
    }

    /// Calls a function of the config, or any other value that can be called.
    ///
    /// # Errors
    /// What it throws.
    pub fn call(&mut self, function: &Value, args: &[Value]) -> Result<Value, Thrown> {
        let caller = std::sync::Arc::clone(&self.graph.caller);
        caller.call(self.graph, function, args)
    }

    /// Calls a function that makes streams, as the body of `by` does. Returns what it gives; the nodes that it makes belong to this
    /// node, until [`Turn::drop_nodes`].
    ///
    /// # Errors
    /// What it throws. The nodes that it made are gone then.
    pub fn make(&mut self, function: &Value, args: &[Value]) -> Result<(Value, Vec<NodeId>), Thrown> {
        let outer = self.graph.made.replace(Vec::new());
        let made = self.call(function, args);
        let nodes = std::mem::replace(&mut self.graph.made, outer).unwrap_or_default();
        match made {
            Ok(value) => Ok((value, nodes)),
            Err(thrown) => {
                self.drop_nodes(&nodes);
                Err(thrown)
            }
        }
    }

    /// Removes nodes that this node made, with their timers.
    pub fn drop_nodes(&mut self, nodes: &[NodeId]) {
        nodes.iter().for_each(|node| self.graph.remove(*node));
    }
}
