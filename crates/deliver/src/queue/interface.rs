//! What a queue offers, wherever it is: the pipeline appends blocks, senders take and settle them (design §11).
//!
//! Not here: the implementations (`queue`, `disk_queue`), and the queue that is either (`kinds`).

use model::{Dropped, Now};

use super::entry::{Appended, Entry};
use crate::block::Block;
use crate::disk_queue::commit::Promise;
use crate::disk_queue::settle::Position;
use crate::plan::{QueueLimits, WhenFull};

/// The queue of one output: the pipeline appends blocks, senders take them.
pub trait Queue {
    /// Appends a block, within the limits. Its position is [`Queue::accepted_up_to`] before the call.
    fn append(&mut self, block: Block, now: Now) -> Appended;

    /// Counts a block as routed and dropped without storing it.
    fn drop_block(&self, block: Block, reason: Dropped);

    /// Takes the oldest block that no sender holds. Its bytes count against the limit until it is settled. Several
    /// blocks may be held at once, and settled in any order.
    fn pop(&mut self, now: Now) -> Option<Entry>;

    /// Returns a block to its place: before all blocks appended after it. It may be dropped like any other block.
    fn put_back(&mut self, entry: Entry);

    /// Drops blocks older than `age_max_ms` (`too_old`).
    fn expire(&mut self, now: Now);

    /// Drops the oldest block that no sender holds, or finds it damaged. False when there is none.
    fn drop_front(&mut self, reason: Dropped) -> bool;

    /// Drops the oldest block that no sender holds; on disk a whole file of such blocks, if `most` has that many bytes or
    /// that many copies. False when there is none.
    fn drop_run(&mut self, reason: Dropped, most: (u64, u64)) -> bool {
        let _at_least_one = most;
        self.drop_front(reason)
    }

    /// Makes room for a block of `bytes` as `when_full` says. Returns the block when there is room, and otherwise the
    /// result of the append.
    fn fit(&mut self, block: Block, bytes: u64) -> Result<Block, Appended> {
        while !self.has_room(bytes, u64::from(block.copies)) {
            let made_room = match self.limits().when_full {
                WhenFull::Block => return Err(Appended::Full(block)),
                // A source that can wait has asked for room before.
                WhenFull::DropOldest | WhenFull::BlockWhileUp | WhenFull::Wait => {
                    self.drop_front(Dropped::QueueFull)
                }
                WhenFull::DropNewest => false,
            };
            if !made_room {
                self.drop_block(block, Dropped::QueueFull);
                return Err(Appended::Dropped);
            }
        }
        Ok(block)
    }

    /// Age of the oldest block that no sender holds, in nanoseconds; also of one created before the machine started.
    fn oldest_age_ns(&mut self, now: Now) -> Option<u64>;

    /// Drops blocks of this age or older, the oldest first, at most `blocks_max` of them. True when there may be more:
    /// the caller releases the lock on the queue before it goes on.
    fn drop_older(&mut self, age_ns: u64, reason: Dropped, blocks_max: usize, now: Now) -> bool {
        for _ in 0..blocks_max {
            let old = self.oldest_age_ns(now).is_some_and(|oldest_ns| oldest_ns >= age_ns);
            if !old || !self.drop_front(reason) {
                return false;
            }
        }
        true
    }

    /// When the oldest block that no sender holds becomes too old, monotonic nanoseconds. None without an age limit.
    fn expires_ns(&mut self) -> Option<u64>;

    /// When the oldest block that no sender holds was created, monotonic nanoseconds.
    fn oldest_ns(&mut self) -> Option<u64>;

    /// Bytes of the oldest block that no sender holds.
    fn front_bytes(&mut self) -> Option<u64>;

    /// True when no block is queued.
    fn is_empty(&mut self) -> bool;

    /// True while blocks are queued that [`Queue::pop`] does not return now: the disk cannot be read, or too many
    /// records are open. The senders are woken when that ends.
    fn is_paused(&mut self) -> bool {
        false
    }

    /// Copies in the queue, without those that senders hold.
    fn copies(&self) -> u64;

    /// Bytes of the queued blocks, without those that senders hold.
    fn bytes(&mut self) -> u64;

    /// True when blocks of `copies` copies and `bytes` bytes fit the limits now.
    fn has_room(&self, bytes: u64, copies: u64) -> bool;

    /// The limits.
    fn limits(&self) -> QueueLimits;

    /// Sets other limits, from the next call on. A smaller `max_bytes` drops nothing by itself.
    fn set_limits(&mut self, limits: QueueLimits);

    /// No sender takes from this queue any more: queued blocks are dropped (`stopped`), unless a disk keeps them for the
    /// next run.
    fn on_sender_stopped(&mut self);

    /// Position of the next block: every block before it was accepted.
    fn accepted_up_to(&self) -> Position;

    /// Every block before this position has its outcome.
    fn settled_up_to(&mut self) -> Position;

    /// Durability of a block that was appended. In memory nothing is safe before it has its outcome.
    fn promise(&mut self, of: Position) -> Promise;

    /// Lost copies among those found on disk at start, for example torn by a crash. Blocks appended since then are not
    /// included.
    fn lost_before_start(&self) -> u64 {
        0
    }
}
