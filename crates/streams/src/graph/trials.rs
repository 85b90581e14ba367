//! What the trials of a load are about (`trial`).

use super::id::NodeId;
use crate::language::diagnostic::Diagnostic;

/// The trials of a load.
#[derive(Debug, Default)]
pub(super) struct Trials {
    /// Nodes that wait for theirs, in the order in which they were made.
    pub(super) waiting: Vec<NodeId>,
    pub(super) done: usize,
    pub(super) depth: u32,
    pub(super) failed: Vec<Diagnostic>,
}
