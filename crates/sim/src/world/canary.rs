//! Known bugs that can be let into the simulated composition, to prove that the simulator finds such bugs.
//!
//! Those of the composition live here: the crates that make up the daemon know nothing of them, and every ordinary test
//! run proves that each is found. Those in the queue on disk are in `deliver`, behind its feature `canary`, which
//! nothing that is shipped has on; `cargo xtask sim --canary` builds with it.

use std::sync::Arc;

use config::plan::Plan;
use deliver::disk_queue::faulty_disk::FaultyDisk;
use deliver::disk_queue::{DiskQueue, Promise};
use deliver::plan::SenderPlan;
use deliver::queue::{Block, BlockEncoding};
use model::{CopyOutcome, Dropped, OutputAccount};
use pipeline::checkpoints::{Notes, generations};

/// One bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// What a full queue drops is counted as dropped twice.
    DroppedCountedTwice,
    /// What was only handed to the kernel counts as arrived.
    AckedTooEarly,
    /// A line loses its end and runs into the next one.
    TornLine,
    /// A block overtakes the one before it.
    Reordered,
    /// A client is told that its lines are safe when they are only written.
    AnsweredTooEarly,
    /// A source that waits for room does not ask the disk for any.
    RoomNotReserved,
    /// Pauses between attempts do not grow.
    Impatient,
    /// A checkpoint counts although its window was told.
    ToldTwice,
    /// A checkpoint is not read.
    CheckpointForgotten,
    /// A process goes by the wall clock as it was at its start.
    ClockStepIgnored,
    /// Each relay has lost its last rule.
    RuleForgotten,
    /// One in the queue on disk.
    #[cfg(feature = "canary")]
    Queue(deliver::disk_queue::Canary),
}

impl Canary {
    /// All that this build has.
    pub const ALL: &[Canary] = &[
        Canary::DroppedCountedTwice,
        Canary::AckedTooEarly,
        Canary::TornLine,
        Canary::Reordered,
        Canary::AnsweredTooEarly,
        Canary::RoomNotReserved,
        Canary::Impatient,
        Canary::ToldTwice,
        Canary::CheckpointForgotten,
        Canary::ClockStepIgnored,
        Canary::RuleForgotten,
        #[cfg(feature = "canary")]
        Canary::Queue(deliver::disk_queue::Canary::SafeBeforeSync),
        #[cfg(feature = "canary")]
        Canary::Queue(deliver::disk_queue::Canary::CursorPastUnsettled),
        #[cfg(feature = "canary")]
        Canary::Queue(deliver::disk_queue::Canary::SyncTriedAgain),
        #[cfg(feature = "canary")]
        Canary::Queue(deliver::disk_queue::Canary::SegmentRemovedTooEarly),
        #[cfg(feature = "canary")]
        Canary::Queue(deliver::disk_queue::Canary::ScarcityIsDamage),
    ];

    /// What the message of the check has in it that has to find the bug.
    pub fn finding(self) -> &'static str {
        match self {
            Canary::DroppedCountedTwice => "does not hold",
            Canary::AckedTooEarly => "count as delivered",
            Canary::TornLine => "never given",
            Canary::Reordered => "out of order",
            Canary::AnsweredTooEarly => "was acknowledged",
            Canary::RoomNotReserved => "although their source waits",
            Canary::Impatient => "the pauses allow",
            Canary::ToldTwice => "counted twice",
            Canary::CheckpointForgotten => "since the last checkpoint",
            Canary::ClockStepIgnored => "is not that of the clock",
            Canary::RuleForgotten => "explained",
            #[cfg(feature = "canary")]
            Canary::Queue(deliver::disk_queue::Canary::ScarcityIsDamage) => "count as damaged",
            #[cfg(feature = "canary")]
            Canary::Queue(_) => "are gone",
        }
    }

    pub(super) fn before_append(self, block: &mut Block) {
        if self == Canary::TornLine && matches!(block.encoding, BlockEncoding::Lines) && block.copies > 1 {
            let first = block.bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
            Arc::make_mut(&mut block.bytes).remove(first);
            block.copies -= 1;
        }
    }

    /// Whether the block has to wait until the next one has gone before it.
    pub(super) fn holds_back(self, block: &Block) -> bool {
        self == Canary::Reordered && matches!(block.encoding, BlockEncoding::Lines)
    }

    pub(super) fn after_dropped(self, account: &Arc<OutputAccount>, copies: u64) {
        if self == Canary::DroppedCountedTwice {
            account.settle(CopyOutcome::Dropped(Dropped::QueueFull), copies, 0);
        }
    }

    pub(super) fn promise(self, promise: Promise) -> Promise {
        if self == Canary::AnsweredTooEarly && promise == Promise::Accepted { Promise::Safe } else { promise }
    }

    pub(super) fn unacked(self, unacked: u64) -> u64 {
        if self == Canary::AckedTooEarly { 0 } else { unacked }
    }

    pub(super) fn sender(self, plan: SenderPlan) -> SenderPlan {
        if self == Canary::Impatient { SenderPlan { retry_max_ms: 1000, ..plan } } else { plan }
    }

    pub(super) fn before_restore(self, disk: &FaultyDisk, plan: &Plan, notes: &mut Notes) {
        match self {
            Canary::ToldTwice => *notes = Notes::default(),
            Canary::CheckpointForgotten => {
                for transform in &plan.transforms {
                    let found = generations(disk, &transform.name).unwrap_or_default();
                    found.iter().for_each(|generation| disk.store(&generation.file, b""));
                }
            }
            _ => {}
        }
    }

    /// The queue with the bug in it, if it is one of a queue.
    #[cfg(feature = "canary")]
    pub(super) fn let_into(self, mut queue: DiskQueue<FaultyDisk>) -> DiskQueue<FaultyDisk> {
        if let Canary::Queue(canary) = self {
            queue.enable_canary(Some(canary));
        }
        queue
    }

    /// This build has none that are in a queue.
    #[cfg(not(feature = "canary"))]
    pub(super) fn let_into(self, queue: DiskQueue<FaultyDisk>) -> DiskQueue<FaultyDisk> {
        queue
    }
}
