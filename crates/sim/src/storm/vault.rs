//! What the disk under one output's queue must still have when the next process looks.
//!
//! Every block that the queue was given is written down with its place and with what the queue promised. After the
//! process or the machine has died, everything that its successor would find is held against that:
//!
//! - what is there is what was given at that place, unchanged, in order, once;
//! - nothing before the cursor comes back, and what comes back of what had arrived is all that may arrive twice;
//! - after a killed process all is there that was accepted, after a loss of power all that was called safe;
//! - each copy that is missing before the last one that is there is counted as damaged.
//!
//! A block that a failing disk has not taken yet is in memory, and goes with the process.
//!
//! A fault that no queue can undo (a flipped byte, a write that the disk lost) may take one block.
//! While the process lives, a promise only ever becomes a better one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use deliver::disk_queue::{Position, Promise};
use deliver::queue::{Block, Queue};

use crate::world::outlet::Outlet;

/// A block that the queue was given.
#[derive(Clone, Debug)]
struct Record {
    /// Numbers of its units, as its watch counts.
    units: Range<u64>,
    bytes: Arc<Vec<u8>>,
    copies: u64,
    /// The queue took it, and nothing that may take it away has happened since.
    kept: bool,
    promise: Promise,
}

/// What one life of the queue has left to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Legacy {
    /// Numbers of the units that were found, ascending.
    pub(super) units: Vec<Range<u64>>,
    /// Blocks that were found.
    pub(super) found: u64,
    /// Blocks that are gone, although the queue had taken them and they had not arrived.
    pub(super) lost: u64,
    /// Copies that the next process will count as damaged.
    pub(super) damaged: u64,
}

/// See the module's header.
#[derive(Debug, Default)]
pub(super) struct Vault {
    /// Place -> what was put there; after a loss of power, or a write that failed, that may be several.
    records: BTreeMap<Position, Vec<Record>>,
    /// Faults of this life that may each have taken a block.
    pub(super) damages: u64,
    /// The cursor may be gone.
    pub(super) cursor_damaged: bool,
    /// A write fails in this life: what a source had waited for may be dropped.
    pub(super) write_fails: bool,
    /// Something was done to the disk in this life that may damage what is on it, or already had been.
    pub(super) disk_failed: bool,
}

impl Vault {
    /// The queue was given a block; `kept` says whether it took it.
    pub(super) fn gave(&mut self, at: Position, kept: bool, block: &Block, units: Range<u64>) {
        let (bytes, copies) = (Arc::clone(&block.bytes), u64::from(block.copies));
        let record = Record { units, bytes, copies, kept, promise: Promise::Accepted };
        let there = self.records.entry(at).or_default();
        // A place that is given again belonged to a block in memory that was dropped.
        there.iter_mut().for_each(|before| before.kept = false);
        there.push(record);
    }

    /// Holds the promises of now against those of before.
    ///
    /// # Errors
    /// A promise that was taken back.
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

    /// The process has died, with the machine or without; `outlet` still has its queue, and its disk has what the next
    /// process will find.
    ///
    /// # Errors
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
            // Of blocks that say the same, it is one that comes behind those before it.
            let later = |record: &&Record| same(record) && record.units.start >= last_unit;
            let kept = known().find(|record| record.kept && same(record));
            let Some(record) = kept.or_else(|| known().find(later)).or_else(|| known().find(same)) else {
                return Err(format!("block {} came back as `{}`, and was never given", at.0, short(bytes)));
            };
            if *at < floor {
                return Err(format!("block {} came back, and the cursor was at {}", at.0, floor.0));
            }
            if record.units.start < last_unit {
                return Err(format!("block {} came back out of order", at.0));
            }
            last_unit = record.units.end;
            legacy.units.push(record.units.clone());
            there.insert(*at, record.units.start);
        }
        legacy.found = blocks.len() as u64;
        // Without a cursor nobody knows that there was something before the first block that is there.
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
    /// A block is gone that must not be, or is gone and counted nowhere.
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
                "{} blocks are gone after {}, with {} faults that may take one each: {:?}",
                taken.len(),
                if power { "a loss of power" } else { "a killed process" },
                self.damages,
                &taken[..taken.len().min(8)],
            ));
        }
        if damaged < uncounted {
            return Err(format!("{uncounted} copies are gone, and {damaged} will be counted as damaged"));
        }
        Ok(())
    }
}

/// What the next process will find: (place, bytes) of each block, and copies that it will count as damaged.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) blocks: Vec<(Position, Vec<u8>)>,
    pub(super) damaged: u64,
}

fn short(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(60)];
    format!("{}{}", shown.escape_ascii(), if shown.len() < bytes.len() { "…" } else { "" })
}
