//! Known bugs that can be let into the simulated composition, to prove that the simulator finds such bugs.
//!
//! They live here and nowhere else: the crates that make up the daemon know nothing of them. Chosen at run time, not
//! at compile time, so that every ordinary test run proves that each of them is found.

use std::sync::Arc;

use deliver::queue::{Block, BlockForm};
use model::{CopyOutcome, OutputAccount, Shed};

/// One bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// What a full queue sheds is counted as shed twice.
    ShedCountedTwice,
    /// What was only handed to the kernel counts as arrived.
    AckedTooEarly,
    /// A line loses its end and runs into the next one.
    TornLine,
    /// A block overtakes the one before it.
    Reordered,
}

impl Canary {
    /// All of them.
    pub const ALL: [Canary; 4] =
        [Canary::ShedCountedTwice, Canary::AckedTooEarly, Canary::TornLine, Canary::Reordered];

    pub(super) fn before_append(self, block: &mut Block) {
        if self == Canary::TornLine && matches!(block.form, BlockForm::Lines) && block.copies > 1 {
            let first = block.bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
            Arc::make_mut(&mut block.bytes).remove(first);
            block.copies -= 1;
        }
    }

    /// Whether the block has to wait until the next one has gone before it.
    pub(super) fn holds_back(self, block: &Block) -> bool {
        self == Canary::Reordered && matches!(block.form, BlockForm::Lines)
    }

    pub(super) fn after_shed(self, account: &Arc<OutputAccount>, copies: u64) {
        if self == Canary::ShedCountedTwice {
            account.settle(CopyOutcome::Shed(Shed::QueueFull), copies, 0);
        }
    }

    pub(super) fn unacked(self, unacked: u64) -> u64 {
        if self == Canary::AckedTooEarly { 0 } else { unacked }
    }
}
