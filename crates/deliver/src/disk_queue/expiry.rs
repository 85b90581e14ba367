//! Drops records that are too old, in slices: each record's header is read from disk, and the threads of the pipeline
//! and the senders wait meanwhile.
//!
//! Path of a packet: `append`, `pop` and a sender's `poll` -> `Queue::expire` -> **[`DiskQueue::expire_slice`]**.
//! Not here: when a record is too old (`stamps`), queues in memory.
//! Invariant: while there is more to drop, `pop` returns nothing, and the sender is woken for the next slice.

use model::{Disk, Dropped, Now};

use super::DiskQueue;
use super::state::Expiry;
use crate::queue::interface::Queue;

/// Most records that one slice drops.
const SLICE_RECORDS_MAX: usize = 256;

/// Bytes of records on disk after which a slice ends.
const SLICE_BYTES_MAX: u64 = 2 << 20;

/// Most slices for one new block: each slice makes room for many records as small as those that it drops.
const SLICES_FOR_ROOM_MAX: usize = 16;

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
            self.expiry = Expiry::HasMore;
        }
    }

    /// Expires more slices until the new block has room, so that it is not dropped for records that are too old.
    pub(super) fn expire_for_room(&mut self, (disk_bytes, copies): (u64, u64), now: Now) {
        for _ in 0..SLICES_FOR_ROOM_MAX {
            if !self.expiry.has_more() || self.has_room(disk_bytes, copies) {
                return;
            }
            self.expire_slice(now);
        }
    }

    /// True once after each slice that left more to drop.
    pub(super) fn take_wake_up(&mut self) -> bool {
        let has_more = self.expiry == Expiry::HasMore;
        if has_more {
            self.expiry = Expiry::Woken;
        }
        has_more
    }
}
