//! What is too old goes in slices: each record's header is read from the disk, and the threads of records and senders wait
//! meanwhile.
//!
//! Path of a packet: `append`, `pop` and a sender's `poll` -> `Queue::expire` -> **[`DiskQueue::expire_slice`]**.
//! Not here: when a record is too old (`stamps`), queues in memory.
//! Invariant: while there is more to drop, `pop` gives nothing, and the sender is woken to go on.

use model::{Disk, Dropped, Now};

use super::DiskQueue;
use crate::queue::Queue;

/// Most records that one call drops.
const SLICE_RECORDS_MAX: usize = 256;

/// Bytes of records, as they are on disk, after which a call ends.
const SLICE_BYTES_MAX: u64 = 2 << 20;

/// Most further slices for one block: each gives room for many records as small as those that it drops.
const SLICES_FOR_ROOM_MAX: usize = 16;

/// How far the slices have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Expiry {
    /// Nothing was too old at the last look.
    #[default]
    Done,
    /// There is more.
    GoesOn,
    /// There is more, and somebody was woken for it.
    Told,
}

impl Expiry {
    pub(super) fn goes_on(self) -> bool {
        self != Expiry::Done
    }
}

impl<D: Disk> DiskQueue<D> {
    pub(super) fn expire_slice(&mut self, now: Now) {
        let begun = self.read.disk_bytes;
        self.expiry = Expiry::Done;
        for _ in 0..SLICE_RECORDS_MAX {
            let is_old = self.expires_ns().is_some_and(|at_ns| at_ns <= now.mono_ns);
            if !is_old || !self.drop_front(Dropped::TooOld) {
                return;
            }
            if self.read.disk_bytes.saturating_sub(begun) >= SLICE_BYTES_MAX {
                break;
            }
        }
        if self.expires_ns().is_some_and(|at_ns| at_ns <= now.mono_ns) {
            self.expiry = Expiry::GoesOn;
        }
    }

    /// Goes on while what is too old takes the room of a new block, which is not to be dropped for it.
    pub(super) fn expire_for_room(&mut self, (disk_bytes, copies): (u64, u64), now: Now) {
        for _ in 0..SLICES_FOR_ROOM_MAX {
            if !self.expiry.goes_on() || self.has_room(disk_bytes, copies) {
                return;
            }
            self.expire_slice(now);
        }
    }

    /// True once after each slice that has left something.
    pub(super) fn expires_again(&mut self) -> bool {
        let goes_on = self.expiry == Expiry::GoesOn;
        if goes_on {
            self.expiry = Expiry::Told;
        }
        goes_on
    }
}
