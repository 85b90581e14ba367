//! Names of nodes.

use std::num::NonZeroU32;

/// A node of a graph. It names no other node after the node is gone, though the other one has its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    place: u32,
    generation: NonZeroU32,
}

impl NodeId {
    /// The first node of a place.
    pub(crate) fn first(place: u32) -> NodeId {
        NodeId { place, generation: NonZeroU32::MIN }
    }

    /// The node that has the place after this one. After 2^32 of them the names begin anew.
    pub(super) fn next(self) -> NodeId {
        NodeId { generation: self.generation.checked_add(1).unwrap_or(NonZeroU32::MIN), ..self }
    }

    /// Its place among the nodes that are there.
    pub(super) fn place(self) -> usize {
        self.place as usize
    }

    /// A number that no other node of the graph has.
    pub fn number(self) -> u64 {
        u64::from(self.generation.get()) << 32 | u64::from(self.place)
    }
}
