//! Documents of `/api/v1/queues`: the daemon writes them, `staunch queue` reads them.

use model::{Dropped, OutputAccount};
use serde::{Deserialize, Serialize};

/// Copies and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// How many; of a quarantine its files.
    pub copies: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Amount {
    /// What the account says was dropped under a reason.
    pub fn dropped(account: &OutputAccount, reason: Dropped) -> Amount {
        let bytes = account.losses_bytes();
        let bytes = bytes.iter().find(|loss| loss.0 == "dropped" && loss.1 == reason.word());
        Amount { copies: account.dropped(reason), bytes: bytes.map_or(0, |loss| loss.2) }
    }
}

/// `GET /api/v1/queues`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueuesPage {
    /// One for each output.
    pub queues: Vec<QueueRow>,
}

/// What waits for one output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueRow {
    /// Its name.
    pub name: String,
    /// `memory` or `disk`.
    pub kind: String,
    /// Copies without an outcome.
    pub copies: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bound of that.
    pub max_bytes: u64,
    /// Age of the oldest that nobody holds, in seconds.
    pub oldest_s: Option<f64>,
    /// Somebody had the queue all the time, such as a disk that does not answer: age and figures of the disk are those of the
    /// last look.
    #[serde(default)]
    pub busy: bool,
    /// Of queues on disk.
    #[serde(flatten)]
    pub disk: Option<DiskFigures>,
}

/// Figures of a queue on disk since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskFigures {
    /// Files with records.
    pub segments: u64,
    /// Ranges of them that could not be used.
    pub damaged_ranges: u64,
    /// Blocks that lay in them.
    pub damaged_records: u64,
    /// Bytes in quarantine.
    pub quarantined_bytes: u64,
    /// Copies in files that are gone, or in a folder that is away.
    #[serde(default)]
    pub records_missing: u64,
}

/// What was dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropResult {
    /// The output's name.
    pub queue: String,
    /// Counted as dropped (`dropped`).
    pub dropped: Amount,
    /// Copies on the way that turned out to be damaged, counted as such.
    pub damaged: u64,
    /// What waits now, what is on its way to the endpoint included.
    pub left: Amount,
    /// Files of the quarantine that were removed.
    pub quarantine: Amount,
}

/// What was put back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replayed {
    /// Whole blocks, from the first on.
    pub blocks: u64,
    /// Copies in them.
    pub copies: u64,
    /// The queue had no room for the next block: this one and those behind it were not taken.
    pub full: bool,
    /// All of them are safe on disk.
    pub safe: bool,
}
