//! How a block gets into a queue: within its limits, past them, or only if there is room.
//!
//! Not here: what an append does (`queue`, `disk_queue`), locks and wake-ups (`staunch`).

use model::{Disk, Now};

use super::{Appended, Block, OutputQueue, Queue};
use crate::plan::{QueueLimits, WhenFull};

/// Whether the limits of a queue apply to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// They apply.
    Bounded,
    /// Its batch waited for room and was admitted: it is kept, even if a relay made more copies than expected.
    Granted,
}

/// Least size that [`OutputQueue::has_room_for_all`] checks: multiplied as there, more than an encoder's open blocks hold.
const OPEN_BLOCKS_BYTES_MAX: u64 = 64 * 1024;

impl<D: Disk> OutputQueue<D> {
    /// True for a queue in memory with room for everything that `bytes` and `records` may turn into, and for open blocks: then
    /// batches need not be checked one by one. A disk reserves room for each.
    pub fn has_room_for_all(&mut self, bytes: u64, records: u64) -> bool {
        self.in_memory().is_some() && self.has_ample_room(bytes.max(OPEN_BLOCKS_BYTES_MAX), records)
    }

    /// Whether a block fits, also on the disk, without dropping anything.
    pub fn has_room_for(&mut self, block: &Block, now: Now) -> bool {
        let (bytes, copies) = (block.memory_bytes(), u64::from(block.copies));
        self.has_room(bytes, copies) && self.takes(bytes, copies, now)
    }

    /// Appends a block whose source cannot wait. A full queue drops it, or a failing disk holds it in memory.
    pub fn append_as(&mut self, block: Block, admission: Admission, now: Now) -> Appended {
        let appended = match admission {
            Admission::Bounded => self.append(block, now),
            Admission::Granted => self.append_admitted(block, now),
        };
        match appended {
            Appended::Full(block) => self.append_or_hold(block, now),
            Appended::Kept | Appended::Dropped => appended,
        }
    }

    /// Appends a block only if there is room, whatever `when_full` says: nothing else is dropped to make some. Without room,
    /// the caller keeps the block.
    pub fn offer(&mut self, block: Block, now: Now) -> Appended {
        let limits = self.limits();
        self.set_limits(QueueLimits { when_full: WhenFull::Block, ..limits });
        let appended = self.append(block, now);
        self.set_limits(limits);
        appended
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::OutputAccount;

    use super::*;
    use crate::disk_queue::faulty_disk::FaultyDisk;
    use crate::queue::MemoryQueue;

    #[test]
    fn a_granted_block_is_kept_past_the_limit_and_a_bounded_one_is_dropped() {
        let account = Arc::new(OutputAccount::default());
        let limits = QueueLimits { records_max: 2, when_full: WhenFull::Block, ..QueueLimits::default() };
        let mut queue: OutputQueue<FaultyDisk> =
            OutputQueue::Memory(MemoryQueue::new(limits, Arc::clone(&account)));
        let two = || Block::lines(b"a 1 2\nb 1 2\n".to_vec(), 2, 0);
        let at = Now::default();
        assert_eq!(queue.append_as(two(), Admission::Bounded, at), Appended::Kept);
        assert_eq!(queue.append_as(two(), Admission::Bounded, at), Appended::Dropped);
        assert_eq!(queue.append_as(two(), Admission::Granted, at), Appended::Kept);
        assert!(matches!(queue.offer(two(), at), Appended::Full(_)));
        assert_eq!((queue.copies(), queue.limits()), (4, limits));
        assert_eq!(account.sum(queue.copies()).dropped, 2);
    }
}
