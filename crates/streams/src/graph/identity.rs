//! Identities of nodes: which node of another graph, of the same config or of a changed one, is the same stream.
//!
//! The identity of a stream is made of its own form (constructor and arguments, without its children) and of the way to it from the
//! top: the identities of the streams above it, and the number among those beside it that have the same form. So it stays when
//! forms before or below it change, and goes with a form above it.
//! A stream with several parents belongs to the first.

use hashbrown::HashMap;

use super::Graph;
use super::id::NodeId;
use crate::form;

/// The identity of a node within its graph, or within its fork; by chance, two of 2^32 nodes have the same.
pub type Identity = u64;

/// Above the streams at the top.
const TOP: Identity = 0;
/// Above the streams that only functions of the config call.
const CALLED: Identity = 1;

/// Numbers among siblings by port and form.
type Numbers = HashMap<(u16, u64), u32, foldhash::fast::FixedState>;

struct Walk<'g> {
    graph: &'g Graph,
    /// The nodes that have an identity or get one, in order, and whether they have it.
    own: Vec<(NodeId, bool)>,
    found: Vec<(Identity, NodeId)>,
    /// Nodes on the way, with their identities, the next one last.
    next: Vec<(Identity, NodeId)>,
}

impl Graph {
    /// The identities of these nodes, from `roots` down, and then of those that only functions call.
    pub fn identities(&self, roots: &[NodeId], nodes: &[NodeId]) -> Vec<(Identity, NodeId)> {
        let mut own: Vec<(NodeId, bool)> = nodes.iter().map(|node| (*node, false)).collect();
        own.sort_unstable();
        let mut walk = Walk { graph: self, own, found: Vec::with_capacity(nodes.len()), next: Vec::new() };
        walk.from(TOP, roots);
        if walk.found.len() < nodes.len() {
            let called = walk.called(nodes);
            walk.from(CALLED, &called);
        }
        walk.found
    }

    /// All nodes that are there.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.slots.iter().filter_map(|slot| slot.id)
    }

    pub(super) fn form_of(&self, id: NodeId) -> u64 {
        self.forms.get(id.place()).copied().unwrap_or_default()
    }
}

impl Walk<'_> {
    fn from(&mut self, parent: Identity, roots: &[NodeId]) {
        self.below(parent, [(0, roots)].into_iter());
        while let Some((identity, node)) = self.next.pop() {
            let Ok(at) = self.own.binary_search_by_key(&node, |(node, _)| *node) else { continue };
            if std::mem::replace(&mut self.own[at].1, true) {
                continue;
            }
            self.found.push((identity, node));
            let graph = self.graph;
            let Some(slot) = graph.slot(node) else { continue };
            let ports = slot.ports.as_ref().map_or(1, |ports| ports.len());
            let children = (0..ports).map(|port| (port as u16, &slot.children.all()[slot.port(port as u16)]));
            self.below(identity, children);
        }
    }

    /// Puts the nodes below a node on the way.
    fn below<'n>(&mut self, parent: Identity, ports: impl Iterator<Item = (u16, &'n [NodeId])>) {
        let mut numbers = Numbers::default();
        let before = self.next.len();
        for (port, nodes) in ports {
            for node in nodes {
                let form = self.graph.form_of(*node);
                let number = numbers.entry((port, form)).or_default();
                let identity = form::of_numbers(&[parent, port.into(), form, u64::from(*number)]);
                *number += 1;
                self.next.push((identity, *node));
            }
        }
        self.next[before..].reverse();
    }

    /// The nodes without an identity that are nobody's child, in the order in which they were made.
    fn called(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let left = |node: &NodeId| {
            self.own.binary_search_by_key(node, |(own, _)| *own).is_ok_and(|at| !self.own[at].1)
        };
        let mut children: Vec<NodeId> = Vec::new();
        for slot in nodes.iter().filter(|node| left(node)).filter_map(|node| self.graph.slot(*node)) {
            children.extend(slot.children.all());
        }
        children.sort_unstable();
        let is_child = |node: &NodeId| children.binary_search(node).is_ok();
        nodes.iter().copied().filter(|node| left(node) && !is_child(node)).collect()
    }
}
