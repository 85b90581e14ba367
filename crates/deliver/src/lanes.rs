//! One queue between several senders of one endpoint, without breaking the order of any series.
//!
//! Path of a packet: `OutputQueue` -> **[`Lanes::lane`]** `.pop()` -> the sender of that lane.
//!
//! The pipeline puts each series into one of [`PARTITIONS`] and fills a block with series of one of them. A partition
//! belongs to one lane, so blocks of a series pass through one sender, one behind the other. A block of no partition may
//! hold any series: a queue on disk has some after the number of connections was changed from one. Such a block is given
//! out alone: after everything before it has its outcome, and before anything behind it.
//!
//! What is in front of a lane's next block but belongs to others waits here for them, at most [`AHEAD_BYTES_MAX`]: a
//! sender that takes nothing makes the others wait once so much is in front of them.
//!
//! Not here: which blocks are divided (`pipeline`), senders.
//! Invariant: [`Queue::copies`] and [`Queue::bytes`] of a lane are those of the whole queue, with what waits here.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use model::{CopyOutcome, Now, Shed};
use twox_hash::XxHash3_64;

pub use crate::block::PARTITIONS;
use crate::disk_queue::{Position, Promise};
use crate::plan::QueueLimits;
use crate::queue::{Appended, Block, Entry, Queue};

/// Most bytes that wait outside the queue for the lanes they belong to; less in a queue with a small bound.
pub const AHEAD_BYTES_MAX: u64 = 4 << 20;

/// The partition of a series: the same in every run, or an order would not outlive a restart.
pub fn partition(name: &[u8], tags: &[u8]) -> u8 {
    let seed = XxHash3_64::oneshot(tags);
    (XxHash3_64::oneshot_with_seed(seed, name) % u64::from(PARTITIONS)) as u8
}

/// See the module's header.
#[derive(Debug)]
pub struct Lanes<Q> {
    queue: Q,
    /// By lane: blocks that were in front of another lane's.
    ahead: Vec<VecDeque<Entry>>,
    ahead_bytes: u64,
    ahead_copies: u64,
    /// A block of no partition that waits for its turn, in front of everything that is still in the queue.
    whole: Option<Entry>,
    /// Nothing is taken from the queue before everything before this has its outcome.
    after: Position,
    /// Lanes whose senders have ended.
    left: usize,
}

/// The queue as the sender of one lane sees it.
#[derive(Debug)]
pub struct Lane<'a, Q> {
    lanes: &'a mut Lanes<Q>,
    number: usize,
}

impl<Q: Queue> Lanes<Q> {
    /// The queue with so many lanes: at least 1, at most [`PARTITIONS`].
    pub fn new(queue: Q, lanes: usize) -> Lanes<Q> {
        let lanes = lanes.clamp(1, usize::from(PARTITIONS));
        Lanes {
            queue,
            ahead: (0..lanes).map(|_| VecDeque::new()).collect(),
            ahead_bytes: 0,
            ahead_copies: 0,
            whole: None,
            after: Position(0),
            left: 0,
        }
    }

    /// How many lanes there are.
    pub fn count(&self) -> usize {
        self.ahead.len()
    }

    /// The queue for the sender of lane `number`, which is below [`Lanes::count`].
    pub fn lane(&mut self, number: usize) -> Lane<'_, Q> {
        debug_assert!(number < self.count(), "lane {number} of {}", self.count());
        let number = number.min(self.count() - 1);
        Lane { lanes: self, number }
    }

    /// The queue itself. What waits for a lane is not in it: see [`Lanes::recall`].
    pub fn queue(&mut self) -> &mut Q {
        &mut self.queue
    }

    /// Puts back what waits for lanes, so that the queue has all that no sender holds.
    pub fn recall(&mut self) {
        let waiting = self.ahead.iter_mut().flat_map(|ahead| ahead.drain(..)).chain(self.whole.take());
        for entry in waiting {
            self.queue.put_back(entry);
        }
        (self.ahead_bytes, self.ahead_copies) = (0, 0);
    }

    /// Which lanes could take something now: bit `n` for lane `n`. For the binary, which wakes their senders after one
    /// of them has changed anything.
    pub fn ready(&mut self) -> u16 {
        let ahead = self.ahead.iter().enumerate().filter(|(_, ahead)| !ahead.is_empty());
        let ahead = ahead.fold(0, |lanes, (number, _)| lanes | 1 << number);
        if !self.may_take() {
            return ahead;
        }
        match &self.whole {
            Some(whole) if self.queue.settled_up_to().0 >= whole.number() => ahead | 1,
            Some(_) => ahead,
            None if self.queue.is_empty() => ahead,
            // Nobody knows whose the next one is.
            None => ((1_u32 << self.count()) - 1) as u16,
        }
    }

    fn ahead_bytes_max(&self) -> u64 {
        AHEAD_BYTES_MAX.min(self.queue.limits().bytes_max / 4)
    }

    fn may_take(&mut self) -> bool {
        self.after.0 == 0 || self.queue.settled_up_to() >= self.after
    }

    fn pop(&mut self, lane: usize, now: Now) -> Option<Entry> {
        if self.count() == 1 {
            return self.queue.pop(now);
        }
        self.expire(now);
        if let Some(entry) = self.ahead[lane].pop_front() {
            self.count_ahead(&entry, false);
            return Some(entry);
        }
        loop {
            if !self.may_take() {
                return None;
            }
            if let Some(whole) = &self.whole {
                let number = whole.number();
                if lane != 0 || self.queue.settled_up_to().0 < number {
                    return None;
                }
                self.after = Position(number + 1);
                let whole = self.whole.take()?;
                self.count_ahead(&whole, false);
                return Some(whole);
            }
            if self.ahead_bytes > self.ahead_bytes_max() {
                return None;
            }
            let entry = self.queue.pop(now)?;
            match entry.block().partition {
                Some(partition) if usize::from(partition) % self.count() == lane => return Some(entry),
                Some(partition) => {
                    self.count_ahead(&entry, true);
                    let of = usize::from(partition) % self.count();
                    self.ahead[of].push_back(entry);
                }
                None => {
                    self.count_ahead(&entry, true);
                    self.whole = Some(entry);
                }
            }
        }
    }

    fn put_back(&mut self, lane: usize, entry: Entry) {
        if self.count() == 1 {
            return self.queue.put_back(entry);
        }
        self.count_ahead(&entry, true);
        if entry.block().partition.is_none() {
            self.after = Position(entry.number());
            self.whole = Some(entry);
            return;
        }
        let ahead = &mut self.ahead[lane];
        let at = ahead.partition_point(|other| other.number() < entry.number());
        ahead.insert(at, entry);
    }

    fn expire(&mut self, now: Now) {
        self.queue.expire(now);
        let limits = self.queue.limits();
        let expired =
            |entry: &Entry| limits.expires_ns(entry.block().at_ns).is_some_and(|at_ns| at_ns <= now.mono_ns);
        for lane in 0..self.count() {
            while let Some(entry) = self.ahead[lane].pop_front_if(|entry| expired(entry)) {
                self.count_ahead(&entry, false);
                entry.settle(CopyOutcome::Shed(Shed::TooOld));
            }
        }
        if let Some(whole) = self.whole.take_if(|whole| expired(whole)) {
            self.count_ahead(&whole, false);
            whole.settle(CopyOutcome::Shed(Shed::TooOld));
        }
    }

    /// When the first of the blocks that wait here was made.
    fn oldest_ahead_ns(&self) -> Option<u64> {
        let fronts = self.ahead.iter().filter_map(VecDeque::front).chain(&self.whole);
        fronts.map(|entry| entry.block().at_ns).min()
    }

    /// A sender has ended. The last one leaves the queue.
    fn leave(&mut self) {
        self.left += 1;
        if self.left == self.count() {
            self.recall();
            self.queue.leave();
        }
    }

    fn count_ahead(&mut self, entry: &Entry, came: bool) {
        let (bytes, copies) = (entry.memory_bytes(), entry.copies());
        if came {
            self.ahead_bytes += bytes;
            self.ahead_copies += copies;
        } else {
            self.ahead_bytes -= bytes;
            self.ahead_copies -= copies;
        }
    }
}

impl<Q: Queue> Queue for Lane<'_, Q> {
    fn append(&mut self, block: Block, now: Now) -> Appended {
        self.lanes.queue.append(block, now)
    }

    fn shed(&self, block: Block, reason: Shed) {
        self.lanes.queue.shed(block, reason);
    }

    fn pop(&mut self, now: Now) -> Option<Entry> {
        self.lanes.pop(self.number, now)
    }

    fn put_back(&mut self, entry: Entry) {
        self.lanes.put_back(self.number, entry);
    }

    fn expire(&mut self, now: Now) {
        self.lanes.expire(now);
    }

    /// Of the whole queue, what waits for other lanes included.
    fn shed_front(&mut self, reason: Shed) -> bool {
        self.lanes.recall();
        self.lanes.queue.shed_front(reason)
    }

    fn oldest_age_ns(&mut self, now: Now) -> Option<u64> {
        let ahead_ns = self.lanes.oldest_ahead_ns().map(|at_ns| now.mono_ns.saturating_sub(at_ns));
        self.lanes.queue.oldest_age_ns(now).into_iter().chain(ahead_ns).max()
    }

    fn expires_ns(&mut self) -> Option<u64> {
        let limits = self.lanes.queue.limits();
        let ahead_ns = self.lanes.oldest_ahead_ns().and_then(|at_ns| limits.expires_ns(at_ns));
        self.lanes.queue.expires_ns().into_iter().chain(ahead_ns).min()
    }

    fn oldest_ns(&mut self) -> Option<u64> {
        let ahead_ns = self.lanes.oldest_ahead_ns();
        self.lanes.queue.oldest_ns().into_iter().chain(ahead_ns).min()
    }

    fn front_bytes(&mut self) -> Option<u64> {
        let lanes = &mut *self.lanes;
        if let Some(entry) = lanes.ahead[self.number].front() {
            return Some(entry.memory_bytes());
        }
        if !lanes.may_take() {
            return None;
        }
        match &lanes.whole {
            Some(whole) => (self.number == 0).then(|| whole.memory_bytes()),
            None => lanes.queue.front_bytes(),
        }
    }

    /// Also false when what waits belongs to other lanes.
    fn is_empty(&mut self) -> bool {
        self.lanes.ahead_copies == 0 && self.lanes.whole.is_none() && self.lanes.queue.is_empty()
    }

    fn copies(&self) -> u64 {
        self.lanes.queue.copies() + self.lanes.ahead_copies
    }

    fn bytes(&mut self) -> u64 {
        self.lanes.queue.bytes() + self.lanes.ahead_bytes
    }

    fn has_room(&self, bytes: u64, copies: u64) -> bool {
        self.lanes.queue.has_room(bytes, copies)
    }

    /// Each sender may hold its share.
    fn limits(&self) -> QueueLimits {
        let limits = self.lanes.queue.limits();
        QueueLimits { bytes_max: limits.bytes_max / self.lanes.count() as u64, ..limits }
    }

    fn set_limits(&mut self, limits: QueueLimits) {
        self.lanes.queue.set_limits(limits);
    }

    fn leave(&mut self) {
        self.lanes.leave();
    }

    fn accepted_up_to(&self) -> Position {
        self.lanes.queue.accepted_up_to()
    }

    fn settled_up_to(&mut self) -> Position {
        self.lanes.queue.settled_up_to()
    }

    fn promise(&mut self, of: Position) -> Promise {
        self.lanes.queue.promise(of)
    }
}
