//! The queue between the pipeline and one output's sender: in memory, bounded in bytes, in
//! copies and in age.
//!
//! Path of a packet: pipeline -> **`append`** -> `pop` -> a sender -> settled.
//! Not here: what is on the way (`stream`, `datagram`, `file`), the queue on disk (`disk_queue`).
//! Invariant: every block that was appended is counted as routed, and each of its copies is settled once: by the
//! sender, or here when it is dropped. What a sender holds still counts against the bound.

mod front;
mod kinds;
mod left;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use model::{CopyOutcome, Dropped, Now, OutputAccount};

pub use crate::block::{BLOCK_BYTES_MAX, Block, BlockEncoding};
use crate::disk_queue::{Part, Position, Promise, SettleLog, Ticket};
use crate::plan::QueueLimits;
use front::SettledFront;
pub use kinds::{OutputQueue, Queue, Room};
pub use left::{Left, promises as left_promises};

/// What became of a block.
#[must_use = "a block that was not taken must be kept or dropped by the caller"]
#[derive(Debug, PartialEq, Eq)]
pub enum Appended {
    /// It waits in the queue.
    Kept,
    /// It was dropped, and counted as such.
    Dropped,
    /// The queue is full and `when_full` is `block`: here it is again, and nothing was counted. The caller waits
    /// and tries again, or drops it with [`Queue::drop_block`].
    Full(Block),
}

/// A block with what is known about its delivery. Counted as waiting until it is settled; what is left when it
/// is dropped is settled as dropped (`stopped`), or goes on waiting if a disk keeps it.
#[must_use = "an entry must be settled or put back"]
#[derive(Debug)]
pub struct Entry {
    block: Block,
    /// Bytes from the front whose copies are settled. Always a border between copies.
    pub(crate) settled: usize,
    /// Bytes from the front that were written to an earlier connection: their copies are sent a second time.
    pub(crate) written_before: usize,
    /// Packets from the front that have their outcome; for senders of packets.
    pub(crate) packets_done: usize,
    copies_left: u32,
    /// Bytes of the copies that are left.
    bytes_left: u64,
    memory_bytes: u64,
    account: Arc<OutputAccount>,
    home: Home,
}

/// Where an entry belongs.
#[derive(Debug)]
enum Home {
    /// In memory: its number there, and who is told when it ends.
    Memory(u64, Arc<SettledFront>),
    /// A disk keeps it: what is not settled when the entry is dropped waits there.
    Disk(Ticket),
}

impl Entry {
    /// A block that was read from disk, where it takes up `disk_bytes`. Its copies were counted as routed when it was
    /// appended, and `part` of them may be settled already.
    pub(crate) fn from_disk(
        block: Block,
        part: Option<Part>,
        disk_bytes: u64,
        account: &Arc<OutputAccount>,
        ticket: Ticket,
    ) -> Entry {
        let part = part.unwrap_or_else(|| Part::whole(block.copies, block.copy_bytes()));
        Entry {
            settled: part.settled,
            written_before: part.written_before,
            packets_done: part.packets_done,
            copies_left: part.copies_left,
            bytes_left: part.bytes_left,
            block,
            memory_bytes: disk_bytes,
            account: Arc::clone(account),
            home: Home::Disk(ticket),
        }
    }

    /// Number of the block: counts all that its queue ever took.
    pub(crate) fn number(&self) -> u64 {
        match &self.home {
            Home::Memory(number, _) => *number,
            Home::Disk(ticket) => ticket.number(),
        }
    }

    /// True for an entry of the disk queue that owns `log`.
    pub(crate) fn is_of(&self, log: &Arc<SettleLog>) -> bool {
        matches!(&self.home, Home::Disk(ticket) if ticket.is_of(log))
    }

    /// A block that comes into memory. Of its copies those of `part` that are left are counted as routed.
    fn in_memory(
        block: Block,
        part: Part,
        account: &Arc<OutputAccount>,
        number: u64,
        front: &Arc<SettledFront>,
    ) -> Entry {
        let memory_bytes = block.memory_bytes();
        account.route(u64::from(part.copies_left), part.bytes_left);
        let waiting = account.queued_bytes.fetch_add(memory_bytes, Relaxed) + memory_bytes;
        account.queued_bytes_high.fetch_max(waiting, Relaxed);
        Entry {
            settled: part.settled,
            written_before: part.written_before,
            packets_done: part.packets_done,
            copies_left: part.copies_left,
            bytes_left: part.bytes_left,
            block,
            memory_bytes,
            account: Arc::clone(account),
            home: Home::Memory(number, Arc::clone(front)),
        }
    }

    /// The block, parts that are settled included.
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// Copies that have no outcome yet.
    pub fn copies(&self) -> u64 {
        u64::from(self.copies_left)
    }

    /// The lines that have no outcome yet; none of a block of another form.
    pub fn lines_left(&self) -> Option<&[u8]> {
        matches!(self.block.form, BlockEncoding::Lines).then(|| &self.block.bytes[self.settled..])
    }

    /// Memory that it holds until it is settled.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Gives all copies that are left their outcome.
    pub fn settle(mut self, outcome: CopyOutcome) {
        if outcome == CopyOutcome::Delivered {
            self.delivered_up_to(self.block.bytes.len());
        } else {
            self.settle_left(outcome);
        }
    }

    /// Settles whole copies up to `at` (bytes from the front) as delivered. Returns how many.
    pub(crate) fn delivered_up_to(&mut self, at: usize) -> u32 {
        let border = self.block.border_before(self.settled, at);
        // The block's end takes what is left, even if its maker counted copies that have no border.
        let (copies, bytes) = if border == self.block.bytes.len() {
            (self.copies_left, self.bytes_left)
        } else {
            let (copies, bytes) = self.block.copies_between(self.settled, border);
            (copies.min(self.copies_left), bytes.min(self.bytes_left))
        };
        self.settle_part(CopyOutcome::Delivered, copies, bytes);
        self.settled = border;
        copies
    }

    /// Leaves the outcome of the next `copies` copies, of `bytes` bytes, to the caller.
    pub(crate) fn hand_over(&mut self, copies: u32, bytes: u64) {
        debug_assert!(copies <= self.copies_left, "{copies} of {} copies", self.copies_left);
        self.copies_left = self.copies_left.saturating_sub(copies);
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }

    /// Bytes of the copies that have no outcome yet.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.bytes_left
    }

    /// How far it got.
    pub(crate) fn part(&self) -> Part {
        Part {
            settled: self.settled,
            written_before: self.written_before,
            packets_done: self.packets_done,
            copies_left: self.copies_left,
            bytes_left: self.bytes_left,
        }
    }

    fn settle_left(&mut self, outcome: CopyOutcome) {
        self.settle_part(outcome, self.copies_left, self.bytes_left);
    }

    fn settle_part(&mut self, outcome: CopyOutcome, copies: u32, bytes: u64) {
        self.account.settle(outcome, u64::from(copies), bytes);
        self.copies_left -= copies;
        self.bytes_left -= bytes;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let part = match &self.home {
            Home::Memory(..) => {
                self.settle_left(CopyOutcome::Dropped(Dropped::Stopped));
                None
            }
            Home::Disk(_) => (self.copies_left > 0).then_some(self.part()),
        };
        if part.is_none() {
            self.account.queued_bytes.fetch_sub(self.memory_bytes, Relaxed);
        }
        match &self.home {
            Home::Memory(number, front) => front.done(*number),
            Home::Disk(ticket) => ticket.hand_in(part),
        }
    }
}

/// Blocks in order of arrival, bounded in bytes of memory truly held, in copies and in age.
#[derive(Debug)]
pub struct MemoryQueue {
    limits: QueueLimits,
    account: Arc<OutputAccount>,
    entries: VecDeque<Entry>,
    bytes: u64,
    copies: u64,
    /// Blocks that it ever took.
    appended: u64,
    front: Arc<SettledFront>,
    /// What waits is not dropped when its sender ends: somebody else goes on with it.
    kept: bool,
}

impl MemoryQueue {
    /// An empty queue of the output that owns `account`.
    pub fn new(limits: QueueLimits, account: Arc<OutputAccount>) -> MemoryQueue {
        MemoryQueue {
            limits,
            account,
            entries: VecDeque::new(),
            bytes: 0,
            copies: 0,
            appended: 0,
            front: Arc::default(),
            kept: false,
        }
    }

    /// An empty queue in the place of one that has settled everything before `place`.
    pub fn after(place: Position, limits: QueueLimits, account: Arc<OutputAccount>) -> MemoryQueue {
        let front = Arc::new(SettledFront::at(place.0));
        MemoryQueue { appended: place.0, front, ..MemoryQueue::new(limits, account) }
    }

    /// Whether what waits stays when its sender ends, for the next sender or another process (see [`MemoryQueue::left`]).
    pub fn keep(&mut self, kept: bool) {
        self.kept = kept;
    }

    /// Drops everything that waits here (`stopped`, or another reason).
    pub fn drop_all(&mut self, reason: Dropped) {
        while self.drop_front(reason) {}
    }

    /// Blocks in the queue.
    pub fn blocks(&self) -> usize {
        self.entries.len()
    }

    /// The account that its blocks are counted in.
    pub fn account(&self) -> &Arc<OutputAccount> {
        &self.account
    }

    fn push_back(&mut self, block: Block, part: Part) {
        let entry = Entry::in_memory(block, part, &self.account, self.appended, &self.front);
        self.appended += 1;
        self.bytes += entry.memory_bytes;
        self.copies += entry.copies();
        self.entries.push_back(entry);
    }

    fn pop_front(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.memory_bytes;
        self.copies -= entry.copies();
        Some(entry)
    }
}

impl Queue for MemoryQueue {
    /// Takes a block at the end, under the limits. See [`Appended`].
    ///
    /// A block that is larger than the whole bound is dropped (`queue_full`) whatever `when_full` says: it would
    /// never fit. So is one that finds the bound taken up by what is on the way to the endpoint.
    fn append(&mut self, block: Block, now: Now) -> Appended {
        if block.copies == 0 && block.bytes.is_empty() {
            return Appended::Kept;
        }
        self.expire(now);
        let memory_bytes = block.memory_bytes();
        if memory_bytes > self.limits.bytes_max {
            self.drop_block(block, Dropped::QueueFull);
            return Appended::Dropped;
        }
        let block = match self.fit(block, memory_bytes) {
            Ok(block) => block,
            Err(appended) => return appended,
        };
        let part = Part::whole(block.copies, block.copy_bytes());
        self.push_back(block, part);
        Appended::Kept
    }

    /// Counts a block that the queue never held as routed and dropped.
    fn drop_block(&self, block: Block, reason: Dropped) {
        self.account.pass(CopyOutcome::Dropped(reason), u64::from(block.copies), block.copy_bytes());
    }

    /// Takes the oldest block out. Its memory counts against the bound until it is settled.
    fn pop(&mut self, now: Now) -> Option<Entry> {
        self.expire(now);
        self.pop_front()
    }

    fn put_back(&mut self, entry: Entry) {
        let own = matches!(&entry.home, Home::Memory(_, front) if Arc::ptr_eq(front, &self.front));
        debug_assert!(own, "an entry goes back to the queue that it is from");
        self.bytes += entry.memory_bytes;
        self.copies += entry.copies();
        let at = self.entries.partition_point(|other| other.number() < entry.number());
        self.entries.insert(at, entry);
    }

    /// Drops what is older than `age_max_ms` (`too_old`).
    fn expire(&mut self, now: Now) {
        while self.expires_ns().is_some_and(|at_ns| at_ns <= now.mono_ns) {
            self.drop_front(Dropped::TooOld);
        }
    }

    fn drop_front(&mut self, reason: Dropped) -> bool {
        let Some(entry) = self.pop_front() else { return false };
        entry.settle(CopyOutcome::Dropped(reason));
        true
    }

    fn oldest_age_ns(&mut self, now: Now) -> Option<u64> {
        self.oldest_ns().map(|made_ns| now.mono_ns.saturating_sub(made_ns))
    }

    /// When the oldest block becomes too old, monotonic nanoseconds. None when it never does.
    fn expires_ns(&mut self) -> Option<u64> {
        self.oldest_ns().and_then(|at_ns| self.limits.expires_ns(at_ns))
    }

    /// When the oldest block in the queue was made.
    fn oldest_ns(&mut self) -> Option<u64> {
        self.entries.front().map(|entry| entry.block.at_ns)
    }

    /// Memory of the oldest block.
    fn front_bytes(&mut self) -> Option<u64> {
        self.entries.front().map(|entry| entry.memory_bytes)
    }

    /// True when nothing waits here.
    fn is_empty(&mut self) -> bool {
        self.entries.is_empty()
    }

    /// Copies in the queue, without what its sender holds.
    fn copies(&self) -> u64 {
        self.copies
    }

    /// Bytes of memory in the queue, without what its sender holds.
    fn bytes(&mut self) -> u64 {
        self.bytes
    }

    /// True when a block of `copies` that holds `memory_bytes` would fit now.
    fn has_room(&self, memory_bytes: u64, copies: u64) -> bool {
        let held = self.account.queued_bytes.load(Relaxed);
        let fits = held.saturating_add(memory_bytes) <= self.limits.bytes_max;
        let waiting = self.account.copies_queued();
        let most = self.limits.records_max;
        // Blocks move as a whole: where nothing waits, one may be larger than the bound.
        fits && (most == 0 || waiting == 0 || waiting.saturating_add(copies) <= most)
    }

    /// The bounds.
    fn limits(&self) -> QueueLimits {
        self.limits
    }

    /// Sets other bounds. They apply from the next call on; a smaller `max_bytes` drops nothing by itself.
    fn set_limits(&mut self, limits: QueueLimits) {
        self.limits = limits;
    }

    fn leave(&mut self) {
        if !self.kept {
            self.drop_all(Dropped::Stopped);
        }
    }

    fn accepted_up_to(&self) -> Position {
        Position(self.appended)
    }

    fn settled_up_to(&mut self) -> Position {
        Position(self.front.settled())
    }

    fn promise(&mut self, of: Position) -> Promise {
        if of < self.settled_up_to() { Promise::Safe } else { Promise::Accepted }
    }
}
