//! A store behind its queue: blocks go into its memory, and are settled once their points are in synced files. The daemon and the
//! simulator both run this.
//!
//! Path of a point: a block of lines -> [`take`] -> memory of the store -> `Store::write` -> its file -> [`Settling::sync`] ->
//! [`Settling::settle`].
//! Not here: memory and files (`graphite::store`), the queue (`deliver`), threads, and when files are written and synced (the callers).
//! Invariant: a block is settled only after a sync that began when all of its points were in their files or refused.

use deliver::queue::Queue;
use deliver::store::StoreSender;
use graphite::store::{Pushed, Refusal, Store};
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
    let Some((number, lines)) = sender.poll(queue, now) else { return Took::Nothing };
    let at = now.unix_seconds();
    let (mut taken, mut full, mut refused) = (0, false, Vec::new());
    while taken < lines.len() {
        let rest = &lines[taken..];
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        match push(store, &rest[..end], number, at) {
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

fn push(store: &Store, line: &[u8], block: u64, now: i64) -> Pushed {
    if line.is_empty() {
        return Pushed::Taken;
    }
    match stored_point(line) {
        Some(point) => store.push(point.name, Point { time: point.time, value: point.value }, block, now),
        None => {
            store.note_refused(Refusal::NotANumber, 1, line, None, now);
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
