//! Several connections share the queue of one endpoint, and every series keeps its order.
//!
//! Path of a packet: `OutputQueue` -> **[`SharedQueue::of`]** `.pop()` -> the sender of that connection.
//!
//! The pipeline hashes each series into one of [`PARTITIONS`] and fills a block with series of one partition. A
//! partition belongs to one connection, so all blocks of a series pass through one sender, in order. A block without
//! a partition may contain any series: a queue on disk has such blocks after the number of connections was changed
//! from one. A run of them goes to the first connection alone: after everything before the run is settled, and before
//! anything behind it.
//!
//! Blocks of other connections that are in front of a connection's next block are kept here, at most
//! [`AHEAD_BYTES_MAX`]. Past that limit a connection that accepts nothing makes the others wait.
//!
//! Not here: which blocks have a partition (`pipeline`), senders.
//! Invariant: the copies in the queue, those of [`SharedQueue::copies`] and those in senders are all queued copies.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use model::{CopyOutcome, Dropped, Now};
use twox_hash::XxHash3_64;

pub use crate::block::PARTITIONS;
use crate::disk_queue::{Position, Promise};
use crate::plan::QueueLimits;
use crate::queue::{Appended, Block, Entry, Queue};

/// Most bytes taken from the queue and kept here for other connections; less when the queue's limit is small.
pub const AHEAD_BYTES_MAX: u64 = 4 << 20;

/// The partition of a series. It must be the same in every run, or series would lose their order at a restart.
pub fn partition(name: &[u8], tags: &[u8]) -> u8 {
    let seed = XxHash3_64::oneshot(tags);
    (XxHash3_64::oneshot_with_seed(seed, name) % u64::from(PARTITIONS)) as u8
}

/// See the module's header. It belongs to one queue, which each call gets as an argument.
#[derive(Debug)]
pub struct SharedQueue {
    /// By connection: blocks taken while another connection looked for its next one.
    ahead: Vec<VecDeque<Entry>>,
    bytes: u64,
    copies: u64,
    /// Blocks without a partition that the first connection has returned; before everything still in the queue.
    run: VecDeque<Entry>,
    /// Position after the last popped block without a partition. Until everything before it is settled, only such
    /// blocks are taken from the queue.
    run_ends: Position,
    /// The first block before or after a run. It is kept until everything before it is settled.
    next: Option<Entry>,
    /// Connections that got no block although some are queued: bit `n` for connection `n`.
    starved: u16,
    /// Number of connections whose senders have ended.
    left: usize,
}

/// The queue as the sender of one connection sees it.
#[derive(Debug)]
pub struct ConnectionQueue<'a, Q> {
    connections: &'a mut SharedQueue,
    queue: &'a mut Q,
    number: usize,
}

impl SharedQueue {
    /// For so many connections: at least 1, at most [`PARTITIONS`].
    pub fn new(connections: usize) -> SharedQueue {
        let connections = connections.clamp(1, usize::from(PARTITIONS));
        SharedQueue {
            ahead: (0..connections).map(|_| VecDeque::new()).collect(),
            bytes: 0,
            copies: 0,
            run: VecDeque::new(),
            run_ends: Position(0),
            next: None,
            starved: 0,
            left: 0,
        }
    }

    /// Number of connections.
    pub fn count(&self) -> usize {
        self.ahead.len()
    }

    /// The connection for series of this partition; without a partition, the first.
    pub fn connection_of(&self, partition: Option<u8>) -> usize {
        partition.map_or(0, |partition| usize::from(partition) % self.count())
    }

    /// `queue` for the sender of connection `number`, which is below [`SharedQueue::count`].
    pub fn of<'a, Q: Queue>(&'a mut self, queue: &'a mut Q, number: usize) -> ConnectionQueue<'a, Q> {
        debug_assert!(number < self.count(), "connection {number} of {}", self.count());
        let number = number.min(self.count() - 1);
        ConnectionQueue { connections: self, queue, number }
    }

    /// Copies kept here.
    pub fn copies(&self) -> u64 {
        self.copies
    }

    /// Bytes of the blocks kept here.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts all blocks kept here back into the queue.
    pub fn put_back_all(&mut self, queue: &mut impl Queue) {
        let ahead = self.ahead.iter_mut().flat_map(|ahead| ahead.drain(..));
        for entry in ahead.chain(self.run.drain(..)).chain(self.next.take()) {
            queue.put_back(entry);
        }
        (self.bytes, self.copies) = (0, 0);
    }

    /// Connections that got no block before and may get one now: bit `n` for connection `n`. The binary wakes their
    /// senders after another one has changed anything.
    pub fn take_ready(&mut self, queue: &mut impl Queue) -> u16 {
        if self.starved == 0 {
            return 0;
        }
        let ready = self.starved & self.ready(queue);
        self.starved &= !ready;
        ready
    }

    fn ready(&mut self, queue: &mut impl Queue) -> u16 {
        self.release_next(queue);
        let connections = self.ahead.iter().enumerate().filter(|(_, ahead)| !ahead.is_empty());
        let connections = connections.fold(0, |connections, (number, _)| connections | 1 << number);
        if !self.run.is_empty() {
            return connections | 1;
        }
        match &self.next {
            Some(next) if is_first(next, queue) => return connections | 1,
            Some(_) => return connections,
            None => {}
        }
        // None of them would get a block now, and they would wake each other in a loop.
        if self.bytes > ahead_bytes_max(queue) || queue.is_paused() {
            return connections;
        }
        // The owner of the next block is unknown; or nothing is left, and senders that stop have to see that.
        if self.in_run(queue) { connections | 1 } else { ((1_u32 << self.count()) - 1) as u16 }
    }

    /// True while a run of blocks without a partition is not settled: all of it goes to the first connection.
    fn in_run(&self, queue: &mut impl Queue) -> bool {
        self.run_ends.0 != 0 && queue.settled_up_to() < self.run_ends
    }

    /// Gives the block after a run to its connection once the run is settled.
    fn release_next(&mut self, queue: &mut impl Queue) {
        let is_due = |next: &mut Entry| next.block().partition.is_some() && is_first(next, queue);
        if let Some(next) = self.next.take_if(is_due) {
            let of = self.connection_of(next.block().partition);
            self.ahead[of].push_back(next);
        }
    }

    fn pop(&mut self, connection: usize, queue: &mut impl Queue, now: Now) -> Option<Entry> {
        self.expire(queue, now);
        let popped = self.next(connection, queue, now);
        self.note_starved(connection, popped.is_none(), queue);
        popped
    }

    /// Notes that a connection got no block although one may be queued for it.
    fn note_starved(&mut self, connection: usize, nothing: bool, queue: &mut impl Queue) {
        let starved = nothing && !self.is_empty(connection, queue);
        self.starved = self.starved & !(1 << connection) | u16::from(starved) << connection;
    }

    /// False also when the owner of the next block is unknown.
    fn is_empty(&self, connection: usize, queue: &mut impl Queue) -> bool {
        let of_run = connection == 0 && !self.run.is_empty();
        let next =
            self.next.as_ref().is_some_and(|next| self.connection_of(next.block().partition) == connection);
        self.ahead[connection].is_empty() && !of_run && !next && queue.is_empty()
    }

    fn front_bytes(&mut self, connection: usize, queue: &mut impl Queue) -> Option<u64> {
        self.release_next(queue);
        if let Some(entry) = self.ahead[connection].front() {
            return Some(entry.memory_bytes());
        }
        if let Some(entry) = self.run.front() {
            return (connection == 0).then(|| entry.memory_bytes());
        }
        match &self.next {
            Some(next) => (connection == 0 && is_first(next, queue)).then(|| next.memory_bytes()),
            None if connection != 0 && self.in_run(queue) => None,
            None => queue.front_bytes(),
        }
    }

    fn next(&mut self, connection: usize, queue: &mut impl Queue, now: Now) -> Option<Entry> {
        self.release_next(queue);
        let waited = self.ahead[connection].pop_front();
        let waited = waited.or_else(|| if connection == 0 { self.run.pop_front() } else { None });
        if let Some(entry) = waited {
            self.count_ahead(&entry, false);
            return Some(entry);
        }
        loop {
            if self.next.is_some() {
                return self.begin_run(connection, queue);
            }
            let in_run = self.in_run(queue);
            if in_run && connection != 0 || self.bytes > ahead_bytes_max(queue) {
                return None;
            }
            let entry = queue.pop(now)?;
            let partition = entry.block().partition;
            let of = self.connection_of(partition);
            match partition {
                None if in_run => return Some(self.extend_run(entry)),
                Some(_) if !in_run && of == connection => return Some(entry),
                _ => self.count_ahead(&entry, true),
            }
            match partition {
                Some(_) if !in_run => self.ahead[of].push_back(entry),
                _ => self.next = Some(entry),
            }
        }
    }

    /// Gives the first connection the kept block without a partition, once everything before it is settled.
    fn begin_run(&mut self, connection: usize, queue: &mut impl Queue) -> Option<Entry> {
        let is_due =
            |next: &mut Entry| connection == 0 && next.block().partition.is_none() && is_first(next, queue);
        let entry = self.next.take_if(is_due)?;
        self.count_ahead(&entry, false);
        Some(self.extend_run(entry))
    }

    fn extend_run(&mut self, entry: Entry) -> Entry {
        self.run_ends = self.run_ends.max(Position(entry.number() + 1));
        entry
    }

    fn put_back(&mut self, connection: usize, entry: Entry) {
        self.count_ahead(&entry, true);
        let waiting = match entry.block().partition {
            Some(_) => &mut self.ahead[connection],
            None => {
                self.run_ends = self.run_ends.max(Position(entry.number() + 1));
                &mut self.run
            }
        };
        let at = waiting.partition_point(|other| other.number() < entry.number());
        waiting.insert(at, entry);
    }

    fn expire(&mut self, queue: &mut impl Queue, now: Now) {
        queue.expire(now);
        let limits = queue.limits();
        let expired =
            |entry: &Entry| limits.expires_ns(entry.block().at_ns).is_some_and(|at_ns| at_ns <= now.mono_ns);
        let mut all_expired = Vec::new();
        for waiting in self.ahead.iter_mut().chain([&mut self.run]) {
            all_expired.extend(std::iter::from_fn(|| waiting.pop_front_if(|entry| expired(entry))));
        }
        all_expired.extend(self.next.take_if(|next| expired(next)));
        for entry in all_expired {
            self.count_ahead(&entry, false);
            entry.settle(CopyOutcome::Dropped(Dropped::TooOld));
        }
    }

    /// When the oldest of the blocks kept here was created.
    fn oldest_ahead_ns(&self) -> Option<u64> {
        let fronts = self.ahead.iter().chain([&self.run]).filter_map(VecDeque::front).chain(&self.next);
        fronts.map(|entry| entry.block().at_ns).min()
    }

    /// A sender has ended. The last one leaves the queue.
    fn on_sender_stopped(&mut self, queue: &mut impl Queue) {
        self.left += 1;
        if self.left == self.count() {
            self.left = 0;
            self.put_back_all(queue);
            queue.on_sender_stopped();
        }
    }

    fn count_ahead(&mut self, entry: &Entry, came: bool) {
        let (bytes, copies) = (entry.memory_bytes(), entry.copies());
        if came {
            self.bytes += bytes;
            self.copies += copies;
        } else {
            self.bytes -= bytes;
            self.copies -= copies;
        }
    }
}

/// True when everything before the block is settled.
fn is_first(entry: &Entry, queue: &mut impl Queue) -> bool {
    queue.settled_up_to().0 >= entry.number()
}

fn ahead_bytes_max(queue: &impl Queue) -> u64 {
    AHEAD_BYTES_MAX.min(queue.limits().bytes_max / 4)
}

impl<Q: Queue> Queue for ConnectionQueue<'_, Q> {
    fn append(&mut self, block: Block, now: Now) -> Appended {
        self.queue.append(block, now)
    }

    fn drop_block(&self, block: Block, reason: Dropped) {
        self.queue.drop_block(block, reason);
    }

    fn pop(&mut self, now: Now) -> Option<Entry> {
        self.connections.pop(self.number, self.queue, now)
    }

    fn put_back(&mut self, entry: Entry) {
        self.connections.put_back(self.number, entry);
    }

    fn expire(&mut self, now: Now) {
        self.connections.expire(self.queue, now);
    }

    /// Of the whole queue, blocks kept for other connections included.
    fn drop_front(&mut self, reason: Dropped) -> bool {
        self.connections.put_back_all(self.queue);
        self.queue.drop_front(reason)
    }

    fn oldest_age_ns(&mut self, now: Now) -> Option<u64> {
        let ahead_ns = self.connections.oldest_ahead_ns().map(|at_ns| now.mono_ns.saturating_sub(at_ns));
        self.queue.oldest_age_ns(now).into_iter().chain(ahead_ns).max()
    }

    fn expires_ns(&mut self) -> Option<u64> {
        let limits = self.queue.limits();
        let ahead_ns = self.connections.oldest_ahead_ns().and_then(|at_ns| limits.expires_ns(at_ns));
        self.queue.expires_ns().into_iter().chain(ahead_ns).min()
    }

    fn oldest_ns(&mut self) -> Option<u64> {
        let ahead_ns = self.connections.oldest_ahead_ns();
        self.queue.oldest_ns().into_iter().chain(ahead_ns).min()
    }

    fn front_bytes(&mut self) -> Option<u64> {
        let front = self.connections.front_bytes(self.number, self.queue);
        if front.is_none() {
            self.connections.note_starved(self.number, true, self.queue);
        }
        front
    }

    /// Of this connection; false also when the owner of the next block is unknown.
    fn is_empty(&mut self) -> bool {
        self.connections.is_empty(self.number, self.queue)
    }

    fn copies(&self) -> u64 {
        self.queue.copies() + self.connections.copies
    }

    fn bytes(&mut self) -> u64 {
        self.queue.bytes() + self.connections.bytes
    }

    fn has_room(&self, bytes: u64, copies: u64) -> bool {
        self.queue.has_room(bytes, copies)
    }

    /// Each sender may hold its share of the limit.
    fn limits(&self) -> QueueLimits {
        let limits = self.queue.limits();
        QueueLimits { bytes_max: limits.bytes_max / self.connections.count() as u64, ..limits }
    }

    fn set_limits(&mut self, limits: QueueLimits) {
        self.queue.set_limits(limits);
    }

    fn on_sender_stopped(&mut self) {
        self.connections.on_sender_stopped(self.queue);
    }

    fn accepted_up_to(&self) -> Position {
        self.queue.accepted_up_to()
    }

    fn settled_up_to(&mut self) -> Position {
        self.queue.settled_up_to()
    }

    fn promise(&mut self, of: Position) -> Promise {
        self.queue.promise(of)
    }

    fn lost_before_start(&self) -> u64 {
        self.queue.lost_before_start()
    }
}
