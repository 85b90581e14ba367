//! Which event expires first: a heap of slots by the time at which each has to be looked at.
//!
//! Most events are replaced long before they expire. A later deadline therefore changes nothing here: when the old one
//! comes, the event is looked at and filed again. So a replaced event costs nothing, and each event is looked at about
//! once in its ttl.
//! Invariant: an event's `due` is never after its deadline, and infinite if it is absent here.

use super::entries::Entries;
use super::pages::Pages;

/// `Entry::due_at` of an event that is absent.
pub(super) const ABSENT: u32 = u32::MAX;

/// The heap. The keys are in the entries.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: Pages<u32>,
}

impl Deadlines {
    /// Files an event under a time, or moves it there.
    pub(super) fn file(&mut self, entries: &mut Entries, slot: u32, due: f64) {
        debug_assert!(due < f64::INFINITY, "what never expires is not filed");
        let entry = entries.at_mut(slot);
        let earlier = due < entry.due;
        entry.due = due;
        let at = entry.due_at;
        if at == ABSENT {
            let at = self.heap.len();
            self.heap.push(slot);
            self.up(entries, at);
        } else if earlier {
            self.up(entries, at as usize);
        } else {
            self.down(entries, at as usize);
        }
    }

    /// Takes an event out, if it is filed.
    pub(super) fn remove(&mut self, entries: &mut Entries, slot: u32) {
        let entry = entries.at_mut(slot);
        entry.due = f64::INFINITY;
        let at = std::mem::replace(&mut entry.due_at, ABSENT);
        let Some(last) = (at != ABSENT).then(|| self.heap.pop()).flatten() else {
            return;
        };
        let at = at as usize;
        if last != slot {
            self.put(entries, at, last);
            self.up(entries, at);
            let at = entries.at(last).due_at as usize;
            self.down(entries, at);
        }
    }

    /// The event that is due first.
    pub(super) fn first(&self) -> Option<u32> {
        self.heap.get(0).copied()
    }

    fn up(&mut self, entries: &mut Entries, mut at: usize) {
        let slot = self.at(at);
        let due = entries.at(slot).due;
        while at > 0 {
            let above = (at - 1) / 2;
            let other = self.at(above);
            if entries.at(other).due <= due {
                break;
            }
            self.put(entries, at, other);
            at = above;
        }
        self.put(entries, at, slot);
    }

    fn down(&mut self, entries: &mut Entries, mut at: usize) {
        let slot = self.at(at);
        let due = entries.at(slot).due;
        loop {
            let left = 2 * at + 1;
            if left >= self.heap.len() {
                break;
            }
            let earlier = |a: usize, b: usize| entries.at(self.at(a)).due < entries.at(self.at(b)).due;
            let below = if left + 1 < self.heap.len() && earlier(left + 1, left) { left + 1 } else { left };
            let other = self.at(below);
            if entries.at(other).due >= due {
                break;
            }
            self.put(entries, at, other);
            at = below;
        }
        self.put(entries, at, slot);
    }

    fn at(&self, at: usize) -> u32 {
        *self.heap.get(at).expect("parents and children are within the heap")
    }

    fn put(&mut self, entries: &mut Entries, at: usize, slot: u32) {
        *self.heap.get_mut(at).expect("places are within the heap") = slot;
        entries.at_mut(slot).due_at = u32::try_from(at).expect("at most as many places as slots");
    }
}
