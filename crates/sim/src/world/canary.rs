//! Known bugs for the simulated composition, to prove that the simulator finds such bugs.
//!
//! The bugs of the composition are here: the daemon's crates do not contain them, and every ordinary test run proves
//! that each is found. The bugs in the queue on disk are in `deliver`, behind its feature `canary`, which no released
//! build enables; `cargo xtask sim --canary` builds with it.

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
    /// Copies dropped by a full queue are counted twice.
    DroppedCountedTwice,
    /// Bytes handed to the kernel count as arrived.
    AckedTooEarly,
    /// A line loses its end and is joined with the next one.
    TornLine,
    /// A block overtakes the one before it.
    Reordered,
    /// A client gets an acknowledgement `safe` for lines that are written but not synced.
    AnsweredTooEarly,
    /// A source that waits for room does not reserve any on the disk.
    RoomNotReserved,
    /// The backoff does not grow.
    Impatient,
    /// A checkpoint is used although its window was emitted.
    FlushedTwice,
    /// A checkpoint is not read.
    CheckpointForgotten,
    /// A process uses the wall clock of its start.
    ClockStepIgnored,
    /// Each relay has lost its last rule.
    RuleForgotten,
    /// Blocks are settled although their files are not synced.
    TreeNotSynced,
    /// The second half of a checkpoint of streams is not read.
    StreamsForgotten,
    /// A bug in the queue on disk.
    #[cfg(feature = "canary")]
    Queue(deliver::disk_queue::Canary),
}

impl Canary {
    /// All bugs of this build.
    pub const ALL: &[Canary] = &[
        Canary::DroppedCountedTwice,
        Canary::AckedTooEarly,
        Canary::TornLine,
        Canary::Reordered,
        Canary::AnsweredTooEarly,
        Canary::RoomNotReserved,
        Canary::Impatient,
        Canary::FlushedTwice,
        Canary::CheckpointForgotten,
        Canary::ClockStepIgnored,
        Canary::RuleForgotten,
        Canary::TreeNotSynced,
        Canary::StreamsForgotten,
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

    /// A part of the message of the check that must find the bug.
    pub fn finding(self) -> &'static str {
        match self {
            Canary::DroppedCountedTwice => "does not hold",
            Canary::AckedTooEarly => "count as delivered",
            Canary::TornLine => "never given",
            Canary::Reordered => "out of order",
            Canary::AnsweredTooEarly => "was acknowledged",
            Canary::RoomNotReserved => "although their source waits",
            Canary::Impatient => "the backoff allows",
            Canary::FlushedTwice => "counted twice",
            Canary::CheckpointForgotten => "since the last checkpoint",
            Canary::ClockStepIgnored => "is not that of the clock",
            Canary::RuleForgotten => "explained",
            Canary::TreeNotSynced => "and not one of",
            Canary::StreamsForgotten => "what the streams had is lost",
            #[cfg(feature = "canary")]
            Canary::Queue(deliver::disk_queue::Canary::ScarcityIsDamage) => "count as damaged",
            #[cfg(feature = "canary")]
            Canary::Queue(_) => "are lost",
        }
    }

    pub(super) fn before_append(self, block: &mut Block) {
        if self == Canary::TornLine && matches!(block.encoding, BlockEncoding::Lines) && block.copies > 1 {
            let first = block.bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
            Arc::make_mut(&mut block.bytes).remove(first);
            block.copies -= 1;
        }
    }

    /// Whether the block waits until the next one has overtaken it.
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
            Canary::FlushedTwice => *notes = Notes::default(),
            Canary::CheckpointForgotten => {
                for transform in &plan.transforms {
                    let found = generations(disk, &transform.name).unwrap_or_default();
                    found.iter().for_each(|generation| disk.store(&generation.file, b""));
                }
            }
            Canary::StreamsForgotten => {
                for transform in &plan.transforms {
                    let found = generations(disk, &transform.name).unwrap_or_default();
                    for generation in &found {
                        let bytes = disk.bytes(&generation.file).unwrap_or_default();
                        disk.store(&generation.file, &bytes[..bytes.len() / 2]);
                    }
                }
            }
            _ => {}
        }
    }

    /// The queue with this bug, if it is a bug of the queue.
    #[cfg(feature = "canary")]
    pub(super) fn let_into(self, mut queue: DiskQueue<FaultyDisk>) -> DiskQueue<FaultyDisk> {
        if let Canary::Queue(canary) = self {
            queue.enable_canary(Some(canary));
        }
        queue
    }

    /// This build has no bugs of the queue.
    #[cfg(not(feature = "canary"))]
    pub(super) fn let_into(self, queue: DiskQueue<FaultyDisk>) -> DiskQueue<FaultyDisk> {
        queue
    }
}
