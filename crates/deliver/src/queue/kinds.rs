//! The calls that every queue answers, wherever it keeps its blocks (design §11), and the queue of an output whose plan
//! says which kind it is.
//!
//! Not here: what the kinds do (`queue`, `disk_queue`).

use model::{Disk, Dropped, Now};

use super::{Appended, Block, Entry, MemoryQueue};
use crate::disk_queue::{DiskQueue, Position, Promise};
use crate::plan::{QueueLimits, WhenFull};

/// A queue of one output: what the pipeline appends to, and what senders take from.
pub trait Queue {
    /// Takes a block at the end, under the limits. Its place is [`Queue::accepted_up_to`] as it was before the call.
    fn append(&mut self, block: Block, now: Now) -> Appended;

    /// Counts a block that the queue never held as routed and dropped.
    fn drop_block(&self, block: Block, reason: Dropped);

    /// Takes out the oldest block that nobody holds. Its bytes count against the bound until it is settled. Several may
    /// be held at once, and settled in any order.
    fn pop(&mut self, now: Now) -> Option<Entry>;

    /// Puts a block back where it came from: it comes before all that were appended after it, and may be dropped like any
    /// other.
    fn put_back(&mut self, entry: Entry);

    /// Drops what is older than `age_max_ms` (`too_old`).
    fn expire(&mut self, now: Now);

    /// Drops the oldest block that nobody holds, or finds that it is damaged. False when there is none.
    fn drop_front(&mut self, reason: Dropped) -> bool;

    /// Makes room as `when_full` says for a block that will take up `bytes`. Gives it back when there is room, and
    /// otherwise what became of it.
    fn fit(&mut self, block: Block, bytes: u64) -> Result<Block, Appended> {
        while !self.has_room(bytes, u64::from(block.copies)) {
            let made_room = match self.limits().when_full {
                WhenFull::Block => return Err(Appended::Full(block)),
                // Who can wait has asked before.
                WhenFull::DropOldest | WhenFull::BlockWhileUp => self.drop_front(Dropped::QueueFull),
                WhenFull::DropNewest => false,
            };
            if !made_room {
                self.drop_block(block, Dropped::QueueFull);
                return Err(Appended::Dropped);
            }
        }
        Ok(block)
    }

    /// Age of the oldest block that nobody holds, in nanoseconds: also of one that is older than the machine is up.
    fn oldest_age_ns(&mut self, now: Now) -> Option<u64>;

    /// Drops blocks that are at least so old, the oldest first, at most `blocks_max` of them. True when there may be
    /// more: the caller lets others have the queue in between.
    fn drop_older(&mut self, age_ns: u64, reason: Dropped, blocks_max: usize, now: Now) -> bool {
        for _ in 0..blocks_max {
            let old = self.oldest_age_ns(now).is_some_and(|oldest_ns| oldest_ns >= age_ns);
            if !old || !self.drop_front(reason) {
                return false;
            }
        }
        true
    }

    /// When the oldest block that nobody holds becomes too old, monotonic nanoseconds. None when it never does.
    fn expires_ns(&mut self) -> Option<u64>;

    /// When the oldest block that nobody holds was made, monotonic nanoseconds.
    fn oldest_ns(&mut self) -> Option<u64>;

    /// Bytes that the oldest block takes up which nobody holds.
    fn front_bytes(&mut self) -> Option<u64>;

    /// True when no block waits here.
    fn is_empty(&mut self) -> bool;

    /// True while something is queued that [`Queue::pop`] would not give now, whoever asks: a disk gives nothing, or too much
    /// is open. Whoever reads is woken when that is over.
    fn withholds(&mut self) -> bool {
        false
    }

    /// Copies in the queue, without what senders hold.
    fn copies(&self) -> u64;

    /// Bytes that the blocks in the queue take up, without what senders hold.
    fn bytes(&mut self) -> u64;

    /// True when blocks of `copies` that take up `bytes` would be within the bounds now.
    fn has_room(&self, bytes: u64, copies: u64) -> bool;

    /// The bounds.
    fn limits(&self) -> QueueLimits;

    /// Sets other bounds. They apply from the next call on; a smaller `max_bytes` drops nothing by itself.
    fn set_limits(&mut self, limits: QueueLimits);

    /// Told when nobody will take anything out any more: what waits is dropped (`stopped`), unless a disk keeps it for the
    /// next run.
    fn leave(&mut self);

    /// Place of the next block: every one before it was accepted.
    fn accepted_up_to(&self) -> Position;

    /// Every block before it has its outcome.
    fn settled_up_to(&mut self) -> Position;

    /// What is known of a block that was appended. In memory nothing is safe before it has its outcome.
    fn promise(&mut self, of: Position) -> Promise;

    /// Copies among what this run found on disk that were lost: such as what a crash has torn. Whoever has appended
    /// something since then has not lost it.
    fn lost_of_before(&self) -> u64 {
        0
    }
}

/// Room that a queue has for a batch of a source that can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// The source is to wait.
    None,
    /// For the batch as it is; what a relay makes of it may be more.
    Tight,
    /// For whatever becomes of it, or nobody waits for this queue now.
    Ample,
}

/// Room of so many batches is ample for one: a relay makes no more copies of a line for one output.
const AMPLE_BATCHES: u64 = 128;

/// The queue of one output, of the kind that its plan names.
#[derive(Debug)]
pub enum OutputQueue<D: Disk> {
    /// In memory: gone with the process.
    Memory(MemoryQueue),
    /// On disk: there again in the next run.
    Disk(Box<DiskQueue<D>>),
}

/// The same call on whichever it is.
macro_rules! either {
    ($queue:expr, $kind:ident => $call:expr) => {
        match $queue {
            OutputQueue::Memory($kind) => $call,
            OutputQueue::Disk($kind) => $call,
        }
    };
}

impl<D: Disk> OutputQueue<D> {
    /// The queue in memory, if it is one.
    pub fn in_memory(&mut self) -> Option<&mut MemoryQueue> {
        match self {
            OutputQueue::Memory(queue) => Some(queue),
            OutputQueue::Disk(_) => None,
        }
    }

    /// The queue on disk, if it is one.
    pub fn on_disk(&mut self) -> Option<&mut DiskQueue<D>> {
        match self {
            OutputQueue::Memory(_) => None,
            OutputQueue::Disk(queue) => Some(queue),
        }
    }

    /// True when a batch of `bytes` and `records` would be taken without losing anything. An empty queue takes any, as
    /// far as the disk has room for it, which is set aside.
    pub fn takes(&mut self, bytes: u64, records: u64, now: Now) -> bool {
        // By the account: what the sender took out of the queue a moment ago it has not published yet.
        let nothing_waits = either!(self, queue => queue.account().copies_queued()) == 0;
        let fits = nothing_waits || self.has_room(bytes, records);
        fits && self.on_disk().is_none_or(|queue| queue.reserve(bytes, now))
    }

    /// Room for a batch of `bytes` and `records` of a source that can wait. `is_down` says whether the endpoint is down.
    pub fn room(&mut self, bytes: u64, records: u64, is_down: impl Fn() -> bool, now: Now) -> Room {
        let when_full = self.limits().when_full;
        if !when_full.ever_waits() {
            return Room::Ample;
        }
        if !self.takes(bytes, records, now) {
            return if when_full.waits(is_down()) { Room::None } else { Room::Ample };
        }
        if self.has_ample_room(bytes, records) { Room::Ample } else { Room::Tight }
    }

    /// True when there is room for whatever may become of `bytes` and `records`.
    pub fn has_ample_room(&self, bytes: u64, records: u64) -> bool {
        let (bytes, records) = (bytes.saturating_mul(AMPLE_BATCHES), records.saturating_mul(AMPLE_BATCHES));
        // Where nothing waits one block may be larger than the bound; the next one of the same batch would push it out.
        let most = self.limits().records_max;
        let waiting = either!(self, queue => queue.account().copies_queued());
        (most == 0 || waiting.saturating_add(records) <= most) && self.has_room(bytes, records)
    }

    /// Takes a block of a batch that was taken because there was room for it ([`Room::Tight`]), although more became of it
    /// than there is room for: whoever waits for the next batch waits longer. The bounds hold again for what follows.
    pub fn append_admitted(&mut self, block: Block, now: Now) -> Appended {
        let limits = self.limits();
        self.set_limits(QueueLimits { bytes_max: u64::MAX, records_max: 0, ..limits });
        let appended = self.append(block, now);
        self.set_limits(limits);
        appended
    }

    /// Takes a block that was given back ([`Appended::Full`]) from somebody who cannot wait: a disk that fails is waited
    /// for within bounds ([`DiskQueue::hold`]), a full queue in memory drops it.
    pub fn take_refused(&mut self, block: Block, now: Now) -> Appended {
        match self {
            OutputQueue::Disk(queue) => queue.hold(block, now),
            OutputQueue::Memory(queue) => {
                queue.drop_block(block, Dropped::QueueFull);
                Appended::Dropped
            }
        }
    }
}

impl<D: Disk> Queue for OutputQueue<D> {
    fn append(&mut self, block: Block, now: Now) -> Appended {
        either!(self, queue => queue.append(block, now))
    }

    fn drop_block(&self, block: Block, reason: Dropped) {
        either!(self, queue => queue.drop_block(block, reason));
    }

    fn pop(&mut self, now: Now) -> Option<Entry> {
        either!(self, queue => queue.pop(now))
    }

    fn put_back(&mut self, entry: Entry) {
        either!(self, queue => queue.put_back(entry));
    }

    fn expire(&mut self, now: Now) {
        either!(self, queue => queue.expire(now));
    }

    fn drop_front(&mut self, reason: Dropped) -> bool {
        either!(self, queue => queue.drop_front(reason))
    }

    fn oldest_age_ns(&mut self, now: Now) -> Option<u64> {
        either!(self, queue => queue.oldest_age_ns(now))
    }

    fn expires_ns(&mut self) -> Option<u64> {
        either!(self, queue => queue.expires_ns())
    }

    fn oldest_ns(&mut self) -> Option<u64> {
        either!(self, queue => queue.oldest_ns())
    }

    fn front_bytes(&mut self) -> Option<u64> {
        either!(self, queue => queue.front_bytes())
    }

    fn is_empty(&mut self) -> bool {
        either!(self, queue => queue.is_empty())
    }

    fn withholds(&mut self) -> bool {
        either!(self, queue => queue.withholds())
    }

    fn copies(&self) -> u64 {
        either!(self, queue => queue.copies())
    }

    fn bytes(&mut self) -> u64 {
        either!(self, queue => queue.bytes())
    }

    fn has_room(&self, bytes: u64, copies: u64) -> bool {
        either!(self, queue => queue.has_room(bytes, copies))
    }

    fn limits(&self) -> QueueLimits {
        either!(self, queue => queue.limits())
    }

    fn set_limits(&mut self, limits: QueueLimits) {
        either!(self, queue => queue.set_limits(limits));
    }

    fn leave(&mut self) {
        either!(self, queue => queue.leave());
    }

    fn accepted_up_to(&self) -> Position {
        either!(self, queue => queue.accepted_up_to())
    }

    fn settled_up_to(&mut self) -> Position {
        either!(self, queue => queue.settled_up_to())
    }

    fn promise(&mut self, of: Position) -> Promise {
        either!(self, queue => queue.promise(of))
    }

    fn lost_of_before(&self) -> u64 {
        either!(self, queue => queue.lost_of_before())
    }
}
