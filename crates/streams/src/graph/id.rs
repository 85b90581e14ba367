//! Names of nodes.

/// A node of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    /// Its number, for a value of the language.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The node of that number.
    pub fn of(number: u32) -> NodeId {
        NodeId(number)
    }
}
