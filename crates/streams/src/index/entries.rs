//! The events of an index, each in a slot with a number. A slot keeps its event until the event is removed, so that a
//! search can walk over slots while events come and go. Slots of removed events are used again.

use std::sync::Arc;

use super::pages::Pages;
use crate::event::Event;

/// An event in its slot.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) event: Arc<Event>,
    /// The entry's place in the queue of deadlines, and when it is due there (`deadlines`).
    pub(super) due: f64,
    pub(super) due_at: u32,
    /// What the event itself takes (`memory`); saturates.
    pub(super) bytes: u32,
}

/// All slots.
#[derive(Debug, Default)]
pub(super) struct Entries {
    slots: Pages<Option<Entry>>,
    free: Vec<u32>,
    len: usize,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// One past the highest slot.
    pub(super) fn end(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("at most `events_max` slots, which is a u32")
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Entry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Entry> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// The entry of a slot that another structure refers to.
    pub(super) fn at(&self, slot: u32) -> &Entry {
        self.get(slot).expect("keys, lists and deadlines refer to used slots only")
    }

    /// Likewise.
    pub(super) fn at_mut(&mut self, slot: u32) -> &mut Entry {
        self.get_mut(slot).expect("keys, lists and deadlines refer to used slots only")
    }

    /// The slot that the next entry gets.
    pub(super) fn next_slot(&self) -> u32 {
        self.free.last().copied().unwrap_or_else(|| self.end())
    }

    /// Puts an entry into a free slot. The caller has compared `len` with `Limits::events_max`, which is a u32.
    pub(super) fn insert(&mut self, entry: Entry) -> u32 {
        self.len += 1;
        if let Some(slot) = self.free.pop() {
            let free = self.slots.get_mut(slot as usize).expect("free slots are within the pages");
            debug_assert!(free.is_none(), "slot {slot} is free");
            *free = Some(entry);
            return slot;
        }
        let slot = self.end();
        self.slots.push(Some(entry));
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) -> Entry {
        let used = self.slots.get_mut(slot as usize).and_then(Option::take);
        self.len -= 1;
        self.free.push(slot);
        used.expect("keys, lists and deadlines refer to used slots only")
    }
}
