//! Why a connection cannot be read any further.

use model::Reject;

use crate::intake::unfinished::UnfinishedFull;

/// Why a connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It cannot be read any further since a record was rejected for this reason.
    Rejected(Reject),
    /// There was no room for its unfinished line or message, which was rejected.
    NoRoom(UnfinishedFull),
    /// A reload made its source read messages instead of lines, lines instead of messages, or other messages.
    Reloaded,
}

impl Broken {
    /// One sentence for the log.
    pub fn why(self) -> &'static str {
        match self {
            Broken::Rejected(reason) => reason.why(),
            Broken::NoRoom(_) => Reject::UnfinishedFull.why(),
            Broken::Reloaded => {
                "since a reload the source takes lines where it took messages, the other way round, or other messages"
            }
        }
    }
}
