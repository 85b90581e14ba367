//! Acknowledgements to clients: when a line may be acknowledged, and what a batch of a connection asks for.

use crate::ConnectionId;

/// What must hold of all copies of a line before its client is told that it need not keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AckWhen {
    /// The shard has taken it: it is part of an aggregate, or its copies are in the outputs' queues.
    Accepted,
    /// Every copy is in a queue on disk, and synced.
    Safe,
    /// Every copy has the outcome delivered.
    Delivered,
}

impl AckWhen {
    /// All of them, weakest first.
    pub const ALL: [AckWhen; 3] = [AckWhen::Accepted, AckWhen::Safe, AckWhen::Delivered];

    /// The word that configs, the API and the docs use.
    pub fn word(self) -> &'static str {
        match self {
            AckWhen::Accepted => "accepted",
            AckWhen::Safe => "safe",
            AckWhen::Delivered => "delivered",
        }
    }
}

/// Asks for an acknowledgement of everything that a connection sent up to one of its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckMark {
    /// Who is to be answered.
    pub connection: ConnectionId,
    /// Lines (frames: frames) of the connection up to here, from its first.
    pub up_to: u64,
    /// Records among them that the intake has rejected.
    pub rejected: u64,
    /// The condition.
    pub when: AckWhen,
}
