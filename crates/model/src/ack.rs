//! Acknowledgements to clients: the condition for a line, and the request that a connection's batch carries.

use crate::ConnectionId;

/// The condition that all copies of a line must meet before it is acknowledged to its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AckWhen {
    /// The shard has processed it: it is part of an aggregate, or its copies are in the outputs' queues.
    Accepted,
    /// Every copy is in a queue on disk, and synced.
    Safe,
    /// Every copy has the outcome delivered.
    Delivered,
}

impl AckWhen {
    /// All conditions, weakest first.
    pub const ALL: [AckWhen; 3] = [AckWhen::Accepted, AckWhen::Safe, AckWhen::Delivered];

    /// The value in configs, the API and the docs.
    pub fn word(self) -> &'static str {
        match self {
            AckWhen::Accepted => "accepted",
            AckWhen::Safe => "safe",
            AckWhen::Delivered => "delivered",
        }
    }
}

/// Requests an acknowledgement of all lines of a connection up to one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckMark {
    /// The connection to acknowledge to.
    pub connection: ConnectionId,
    /// Number of lines (or frames) of the connection up to this one, from its first.
    pub up_to: u64,
    /// Records among them that were rejected at intake.
    pub rejected: u64,
    /// The condition.
    pub when: AckWhen,
}
