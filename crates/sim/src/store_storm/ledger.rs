//! What clients gave a store, and what its series must therefore have.
//!
//! Each value is given once, so that its block is known. A slot of a series must have the last value that surely is in the store, or
//! one that was given after it: its block may be in the queue, or may have been in files before a power loss took it.

use std::collections::{BTreeMap, VecDeque};

/// A series, by its number, and a time.
pub(super) type Slot = (usize, i64);

/// A block that the queue accepted.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) bytes: Vec<u8>,
    pub(super) position: u64,
    /// It survives a power loss. Known of the blocks of a process that has died.
    pub(super) is_safe: bool,
    /// Its points are in synced files.
    is_settled: bool,
    /// A power loss took it, so that its points may or may not be in files.
    is_lost: bool,
    /// Its process died before its points were in synced files: the two parts of a value that stands on two pages may not belong
    /// together, until it is written again.
    is_torn: bool,
}

/// See the module's header.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) blocks: Vec<Given>,
    /// Blocks and values of each slot, in order.
    slots: BTreeMap<Slot, Vec<(usize, f64)>>,
    /// Blocks that are not settled, in order.
    pub(super) queued: VecDeque<usize>,
    /// How many of them, from the first on, are in the store's memory.
    taken: usize,
}

impl Ledger {
    /// The queue accepted a block with these values.
    pub(super) fn gave(&mut self, bytes: Vec<u8>, position: u64, values: &[(Slot, f64)]) {
        let block = self.blocks.len();
        self.blocks.push(Given {
            bytes,
            position,
            is_safe: false,
            is_settled: false,
            is_lost: false,
            is_torn: false,
        });
        self.queued.push_back(block);
        for (slot, value) in values {
            self.slots.entry(*slot).or_default().push((block, *value));
        }
    }

    /// The store has taken a block.
    pub(super) fn took(&mut self) {
        self.taken += 1;
    }

    /// The queue has settled so many blocks.
    pub(super) fn settled(&mut self, blocks: usize) {
        for block in self.queued.drain(..blocks) {
            self.blocks[block].is_settled = true;
        }
        self.taken -= blocks;
    }

    /// The memory of the store is gone.
    pub(super) fn forgotten(&mut self) {
        self.taken = 0;
    }

    /// A process has died, and the next one finds these blocks at these positions of the queue.
    ///
    /// # Errors
    /// A block that had to be there.
    pub(super) fn died(&mut self, found: &[(u64, Vec<u8>)], power: bool) -> Result<(), String> {
        let mut queued = VecDeque::new();
        let mut from = 0;
        for (position, bytes) in found {
            let later = self.blocks[from..].iter().position(|block| block.bytes == *bytes);
            let block = from + later.ok_or("the queue has a block that was never given, or has it twice")?;
            from = block + 1;
            // It goes into the store again: meanwhile its points may hide later ones.
            self.blocks[block].is_settled = false;
            self.blocks[block].position = *position;
            queued.push_back(block);
        }
        for block in &self.queued {
            let given = &mut self.blocks[*block];
            given.is_torn = true;
            if queued.binary_search(block).is_err() {
                if !power || given.is_safe {
                    return Err(format!("block {block} is lost"));
                }
                given.is_lost = true;
            }
        }
        (self.queued, self.taken) = (queued, 0);
        Ok(())
    }

    /// The slots of a series that were given.
    pub(super) fn slots(&self, series: usize) -> impl Iterator<Item = Slot> {
        self.slots.range((series, 0)..(series + 1, 0)).map(|(slot, _)| *slot)
    }

    /// Whether a slot was given.
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.slots.contains_key(&slot)
    }

    /// Compares what a slot has with what it may have.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn check(&self, slot: Slot, has: Option<f64>) -> Result<(), String> {
        let values = self.slots.get(&slot).map_or(&[][..], Vec::as_slice);
        let in_memory: Vec<usize> = self.queued.iter().take(self.taken).copied().collect();
        let is_there =
            |block: usize| self.blocks[block].is_settled || in_memory.binary_search(&block).is_ok();
        let sure = values.iter().rposition(|(block, _)| is_there(*block));
        let may_be = &values[sure.unwrap_or(0)..];
        if sure.is_none_or(|sure| sure + 1 < values.len())
            && may_be.iter().any(|(block, _)| self.blocks[*block].is_torn)
        {
            return Ok(());
        }
        let fits = match has {
            None => sure.is_none(),
            Some(has) => may_be.iter().any(|(_, value)| *value == has),
        };
        if fits {
            return Ok(());
        }
        let given: Vec<f64> = may_be.iter().map(|(_, value)| *value).collect();
        Err(format!("series s{} has {has:?} at {}, and not one of {given:?}", slot.0, slot.1))
    }

    /// The value of a slot, unless a lost block makes it uncertain.
    pub(super) fn certain(&self, slot: Slot) -> Option<f64> {
        let values = self.slots.get(&slot)?;
        let (block, value) = values.last()?;
        let is_certain =
            !self.blocks[*block].is_lost && values.iter().all(|(block, _)| !self.blocks[*block].is_lost);
        is_certain.then_some(*value)
    }
}

#[test]
fn a_slot_has_the_last_sure_value_or_a_later_one() {
    let mut ledger = Ledger::default();
    for value in 0..3 {
        ledger.gave(vec![value], u64::from(value), &[((0, 10), f64::from(value))]);
    }
    assert!(ledger.check((0, 10), None).is_ok() && ledger.check((0, 10), Some(2.0)).is_ok());
    ledger.took();
    ledger.took();
    assert!(ledger.check((0, 10), None).is_err() && ledger.check((0, 10), Some(0.0)).is_err());
    assert!(ledger.check((0, 10), Some(1.0)).is_ok() && ledger.check((0, 10), Some(2.0)).is_ok());
    ledger.settled(1);
    assert!(ledger.died(&[(2, vec![2])], true).is_ok(), "block 1 was not safe");
    assert!(ledger.check((0, 10), Some(0.0)).is_ok() && ledger.check((0, 10), Some(1.0)).is_ok());
    assert!(ledger.check((0, 10), None).is_ok(), "it may be torn");
    assert_eq!(ledger.certain((0, 10)), None);
    assert!(ledger.died(&[], false).is_err());
}
