//! What a run of a flow file reports.

/// A mistake in a flow file, or a failed check of its pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Line in the flow file, from 1.
    pub line: usize,
    /// Expected and actual state, and advice. May have several lines.
    pub message: String,
}
