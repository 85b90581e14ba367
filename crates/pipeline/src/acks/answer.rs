//! What a connection has been promised so far: written as replies by its intake (`intake::replies`).

use model::Unacked;

/// The current answer to a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Lines, from its first, that have met the condition.
    pub up_to: u64,
    /// Records among them that were rejected at intake.
    pub rejected: u64,
    /// Marks that were met.
    pub marks: u64,
    /// Lines after `up_to` can no longer be acknowledged: send the error, and close.
    pub failed: Option<Unacked>,
}
