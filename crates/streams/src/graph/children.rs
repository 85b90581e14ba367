//! A list of nodes that is mostly of one.

use super::id::NodeId;

/// Nodes, in order; one of them needs no memory of its own.
#[derive(Clone, Debug)]
pub enum Children {
    /// One node.
    One(NodeId),
    /// None, or several.
    Many(Box<[NodeId]>),
}

impl Children {
    /// A list of these.
    pub fn of(nodes: &[NodeId]) -> Children {
        match nodes {
            [only] => Children::One(*only),
            nodes => Children::Many(nodes.into()),
        }
    }

    /// All of them.
    pub fn all(&self) -> &[NodeId] {
        match self {
            Children::One(only) => std::slice::from_ref(only),
            Children::Many(nodes) => nodes,
        }
    }
}
