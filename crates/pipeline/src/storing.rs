//! A store behind its queue: blocks go into its memory, and are settled once their points are in synced files. The daemon and the
//! simulator both run this.
//!
//! Path of a point: a block of lines -> [`take`] -> memory of the store -> `Store::write` -> its file -> [`Settling::sync`] ->
//! [`Settling::settle`].
//! Not here: memory and files (`graphite::store`), the queue (`deliver`), threads, and when files are written and synced (the callers).
//! Invariant: a block is settled only after a sync that began when all of its points were in their files or refused.

use deliver::queue::Queue;
use deliver::store::{Polled, StoreSender};
use graphite::store::{Pushed, Refusal, Store, When};
use graphite::whisper::Point;
use memchr::memchr;
use model::{CopyOutcome, DiskError, Dropped, FileTree, Now};
use wire::graphite::stored_point;

/// What [`take`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took {
    /// A block, or the rest of one.
    Block,
    /// The memory of points is full. Some of the block may have been taken.
    Part,
    /// Nothing is queued.
    Nothing,
}

/// Takes the next block, as far as there is memory.
pub fn take(store: &Store, sender: &mut StoreSender, queue: &mut impl Queue, now: Now) -> Took {
    let Some(polled) = sender.poll(queue, now) else { return Took::Nothing };
    let Polled { number, bytes: lines, queued_wall_ns } = polled;
    let came = Now { wall_ns: queued_wall_ns.unwrap_or(now.wall_ns), ..now };
    let when = When { now: now.unix_seconds(), came: came.unix_seconds() };
    let (mut taken, mut full, mut refused) = (0, false, Vec::new());
    while taken < lines.len() {
        let rest = &lines[taken..];
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        match push(store, &rest[..end], number, when) {
            Pushed::Taken => {}
            Pushed::Refused(why) => refused.push(why),
            Pushed::Full => {
                full = true;
                break;
            }
        }
        taken = (taken + end + 1).min(lines.len());
    }
    refused.into_iter().for_each(|why| sender.refused(outcome(why)));
    sender.taken(taken);
    if full {
        return Took::Part;
    }
    store.pushed_up_to(number + 1);
    Took::Block
}

fn push(store: &Store, line: &[u8], block: u64, when: When) -> Pushed {
    if line.is_empty() {
        return Pushed::Taken;
    }
    match stored_point(line) {
        Some(point) => {
            let stored = Point { time: point.time, value: point.value };
            store.push_queued(point.name, stored, block, when)
        }
        None => {
            store.note_refused(Refusal::NotANumber, 1, line, None, when.now);
            Pushed::Refused(Refusal::NotANumber)
        }
    }
}

/// Settles the blocks of a store.
#[derive(Debug, Default)]
pub struct Settling {
    /// The points of the blocks before this one are in synced files, or refused.
    durable: u64,
    /// Outcomes of points that were taken and are in no file, and that are not settled yet.
    others: Vec<(CopyOutcome, u64)>,
}

impl Settling {
    /// Syncs the tree, if points of further blocks are in their files. False if not.
    ///
    /// # Errors
    /// What the disk reports. But for [`DiskError::Away`], what was written since the last sync may be lost: the store has to begin
    /// anew, and takes the blocks that are not settled again.
    pub fn sync(&mut self, store: &Store, tree: &impl FileTree) -> Result<bool, DiskError> {
        // Before the sync: what is written while it runs may not be part of it.
        let up_to = store.written_up_to();
        let refused = store.take_refused();
        self.others.extend(refused.into_iter().map(|(why, count)| (outcome(why), count)));
        if up_to <= self.durable {
            return Ok(false);
        }
        tree.sync_all()?;
        self.durable = up_to;
        Ok(true)
    }

    /// Settles what the last sync made durable.
    pub fn settle(&mut self, sender: &mut StoreSender) {
        sender.settle(self.durable, &mut self.others);
    }
}

/// The outcome of a point that the store refused.
pub fn outcome(why: Refusal) -> CopyOutcome {
    CopyOutcome::Dropped(match why {
        Refusal::BadName => Dropped::UnsafeName,
        Refusal::NotANumber => Dropped::NotANumber,
        Refusal::TooManySeries => Dropped::SeriesMax,
        Refusal::NamesFull => Dropped::NamesFull,
        Refusal::InFuture => Dropped::InFuture,
        Refusal::TooOld => Dropped::BeforeRetention,
        Refusal::UnusableFile => Dropped::UnusableFile,
        Refusal::Deleted => Dropped::SeriesDeleted,
        Refusal::Expired => return CopyOutcome::Expired,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use deliver::disk_queue::faulty_disk::FaultyDisk;
    use deliver::disk_queue::{DiskQueue, DiskQueuePlan};
    use deliver::queue::{Appended, Block};
    use graphite::memory_tree::MemoryTree;
    use graphite::store::{Rules, StoreOptions, Writer};
    use graphite::whisper::rules::{Aggregations, Schemas};
    use model::{OutputAccount, SECOND_NS};

    use super::*;

    #[test]
    fn points_that_were_queued_before_the_clock_was_set_back_are_stored() {
        const AT_S: u64 = 1_800_000_000;
        let at = |mono_s: u64, wall_s: u64| Now { mono_ns: mono_s * SECOND_NS, wall_ns: wall_s * SECOND_NS };
        let account = Arc::<OutputAccount>::default();
        let (disk, plan) = (FaultyDisk::default(), DiskQueuePlan::default());
        let opened = DiskQueue::open(disk, plan, Arc::clone(&account), 1, at(0, AT_S));
        let (mut queue, _) = opened.expect("an empty disk");
        let lines = format!("a.b 1 {}\na.late 1 {}\n", AT_S + 600, AT_S + 602);
        let block = Block::lines(lines.into_bytes(), 2, SECOND_NS);
        assert_eq!(queue.append(block, at(1, AT_S + 1)), Appended::Kept);
        // Two hours back, as the hour of a machine that was set to local time.
        let now = at(2, AT_S - 7200);
        let schemas = Schemas::new(Vec::new()).expect("no rules are valid");
        let rules = Rules { schemas, aggregations: Aggregations::new(Vec::new()).expect("valid") };
        let store = Store::new(StoreOptions::default(), rules, 7);
        let mut sender = StoreSender::new(Arc::clone(&account));
        assert_eq!(take(&store, &mut sender, &mut queue, now), Took::Block);
        store.drain(true);
        let (tree, mut writer) = (MemoryTree::new(), Writer::default());
        let job = store.next(now.unix_seconds()).expect("it is due");
        let written = store.write(job, &tree, &mut writer, now.unix_seconds()).written;
        assert_eq!((written.written, written.in_future), (1, 0));
        let mut settling = Settling::default();
        assert_eq!(settling.sync(&store, &tree), Ok(true));
        settling.settle(&mut sender);
        let sum = account.sum(queue.copies() + sender.waiting_copies());
        assert_eq!((sum.delivered, sum.dropped), (1, 1), "{sum:?}");
    }
}
