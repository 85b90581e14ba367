//! The data that the disk of one output's queue must still have after a crash.
//!
//! Every block given to the queue is recorded with its position and the queue's promise. After the process or the
//! machine has died, the data that the next process would find is compared with these records:
//!
//! - blocks on disk are unchanged, at their positions, in order, once;
//! - no block before the cursor returns, and only blocks that return may arrive twice;
//! - after a kill, all accepted blocks are there; after a power loss, all safe ones;
//! - each missing copy before the last one on disk is counted as damaged.
//!
//! A block that a failing disk has not accepted yet is in memory, and is lost with the process.
//!
//! A fault that no queue can repair (a flipped byte, a lost write) may lose one block. While the process runs, a
//! promise is never replaced by a weaker one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use deliver::disk_queue::{Position, Promise};
use deliver::queue::{Block, Queue};

use crate::world::outlet::Outlet;

/// A block given to the queue.
#[derive(Clone, Debug)]
struct Record {
    /// The numbers of its units, as its watch counts.
    units: Range<u64>,
    bytes: Arc<Vec<u8>>,
    copies: u64,
    /// The queue accepted it, and no fault has happened that may have lost it.
    kept: bool,
    promise: Promise,
}

/// The data that one process has left to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Legacy {
    /// Numbers of the units on disk, ascending.
    pub(super) units: Vec<Range<u64>>,
    /// Blocks on disk.
    pub(super) found: u64,
    /// Accepted blocks that are lost and had not arrived.
    pub(super) lost: u64,
    /// Copies that the next process will count as damaged.
    pub(super) damaged: u64,
}

/// See the module's header.
#[derive(Debug, Default)]
pub(super) struct Vault {
    /// Position -> the blocks written there; after a power loss or a failed write, there may be several.
    records: BTreeMap<Position, Vec<Record>>,
    /// Faults since the start that may each have lost a block.
    pub(super) damages: u64,
    /// The cursor may be lost.
    pub(super) cursor_damaged: bool,
    /// A write has failed since the start: a block that a source waited for may be dropped.
    pub(super) write_fails: bool,
    /// A fault since the start may have damaged data on the disk, or earlier damage is still there.
    pub(super) disk_failed: bool,
}

impl Vault {
    /// A block was given to the queue; `kept` is true when the queue accepted it.
    pub(super) fn gave(&mut self, at: Position, kept: bool, block: &Block, units: Range<u64>) {
        let (bytes, copies) = (Arc::clone(&block.bytes), u64::from(block.copies));
        let record = Record { units, bytes, copies, kept, promise: Promise::Accepted };
        let there = self.records.entry(at).or_default();
        // A reused position belonged to a block in memory that was dropped.
        there.iter_mut().for_each(|before| before.kept = false);
        there.push(record);
    }

    /// Compares the current promises with the earlier ones.
    ///
    /// # Errors
    /// A promise that became weaker.
    pub(super) fn look(&mut self, outlet: &mut Outlet) -> Result<(), String> {
        let settled = outlet.queue.settled_up_to();
        for (at, records) in self.records.range_mut(settled..) {
            for record in records.iter_mut().filter(|record| record.kept) {
                let promise = outlet.queue.promise(*at);
                let kept = record.promise == Promise::Accepted || record.promise == promise;
                if !kept {
                    return Err(format!(
                        "the promise of block {} was {:?} and is {promise:?}",
                        at.0, record.promise
                    ));
                }
                record.promise = promise;
            }
        }
        Ok(())
    }

    /// The process has died, alone or with the machine. `outlet` still has its queue, and its disk has the data that
    /// the next process will find.
    ///
    /// The failed check.
    /// What must not have happened.
    pub(super) fn die(&mut self, outlet: &mut Outlet, power: bool, found: &Found) -> Result<Legacy, String> {
        let Found { blocks, damaged } = found;
        let settled = outlet.queue.settled_up_to();
        if self.cursor_damaged
            && let Some(stored) = &mut outlet.stored
        {
            stored.forget_cursor();
        }
        let floor = outlet.stored.as_ref().map_or(Position(0), |stored| stored.cursor_written);
        let mut legacy = Legacy { damaged: *damaged, ..Legacy::default() };
        let mut last_unit = 0;
        let mut there = BTreeMap::new();
        for (at, bytes) in blocks {
            let known = || self.records.get(at).into_iter().flatten();
            let same = |record: &&Record| *record.bytes == *bytes;
            // Among equal blocks, it is one after the previous block's.
            let later = |record: &&Record| same(record) && record.units.start >= last_unit;
            let kept = known().find(|record| record.kept && same(record));
            let Some(record) = kept.or_else(|| known().find(later)).or_else(|| known().find(same)) else {
                return Err(format!("block {} is on disk as `{}`, but was never given", at.0, short(bytes)));
            };
            if *at < floor {
                return Err(format!("block {} is on disk, but the cursor was at {}", at.0, floor.0));
            }
            if record.units.start < last_unit {
                return Err(format!("block {} is on disk out of order", at.0));
            }
            last_unit = record.units.end;
            legacy.units.push(record.units.clone());
            there.insert(*at, record.units.start);
        }
        legacy.found = blocks.len() as u64;
        // Without a cursor, nothing shows that there were blocks before the first one on disk.
        let counted_from = if floor.0 > 0 { settled } else { Position(u64::MAX) };
        let written = outlet.queue.on_disk().map_or(Position(u64::MAX), |queue| queue.written_up_to());
        self.check_missing(&there, settled..written, counted_from, power, *damaged)?;
        for (at, records) in &mut self.records {
            for record in records {
                let found = there.get(at) == Some(&record.units.start);
                legacy.lost += u64::from(record.kept && !found && *at >= settled);
                record.kept = found;
                record.promise = Promise::Accepted;
            }
        }
        self.disk_failed = self.damages > 0 || self.cursor_damaged || *damaged > 0;
        (self.damages, self.cursor_damaged, self.write_fails) = (0, false, false);
        Ok(legacy)
    }

    /// # Errors
    /// A block is missing without a fault that explains it, or is not counted.
    fn check_missing(
        &self,
        there: &BTreeMap<Position, u64>,
        on_disk: Range<Position>,
        counted_from: Position,
        power: bool,
        damaged: u64,
    ) -> Result<(), String> {
        let known = there.first_key_value().map(|(at, _)| (*at).min(counted_from));
        let last = there.last_key_value().map(|(at, _)| *at);
        let (mut taken, mut uncounted) = (Vec::new(), 0);
        for (at, records) in self.records.range(on_disk) {
            let Some(record) =
                records.iter().find(|record| record.kept && there.get(at) != Some(&record.units.start))
            else {
                continue;
            };
            if !power || record.promise == Promise::Safe {
                taken.push((at.0, record.promise));
            }
            if known.is_some_and(|known| known <= *at) && Some(*at) < last {
                uncounted += record.copies;
            }
        }
        if taken.len() as u64 > self.damages {
            return Err(format!(
                "{} blocks are lost after {}, with {} faults that may lose one each: {:?}",
                taken.len(),
                if power { "a loss of power" } else { "a killed process" },
                self.damages,
                &taken[..taken.len().min(8)],
            ));
        }
        if damaged < uncounted {
            return Err(format!("{uncounted} copies are lost, but {damaged} will be counted as damaged"));
        }
        Ok(())
    }
}

/// The data for the next process: (position, bytes) of each block, and the copies that it will count as damaged.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) blocks: Vec<(Position, Vec<u8>)>,
    pub(super) damaged: u64,
}

fn short(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(60)];
    format!("{}{}", shown.escape_ascii(), if shown.len() < bytes.len() { "…" } else { "" })
}
