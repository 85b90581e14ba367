//! Why a connection cannot be read any further.

use model::Reject;

use crate::intake::unfinished::UnfinishedFull;

/// Why a connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It cannot be followed any further since a record was rejected for this reason.
    Rejected(Reject),
    /// There was no room for its unfinished line or message, which is rejected.
    NoRoom(UnfinishedFull),
    /// Since a reload its source reads messages in the place of lines, or lines in the place of messages.
    Reloaded,
}

impl Broken {
    /// One sentence for the log.
    pub fn why(self) -> &'static str {
        match self {
            Broken::Rejected(reason) => reason.why(),
            Broken::NoRoom(_) => Reject::UnfinishedFull.why(),
            Broken::Reloaded => {
                "since a reload the source takes lines where it took messages, or the other way round"
            }
        }
    }
}
