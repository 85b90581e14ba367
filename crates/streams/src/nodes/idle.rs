//! Which fork of a `by` had no event for the longest time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Forks that one eviction looks at, at most: so many whose events came in between cost no pause.
pub(super) const LOOKED_AT_MAX: usize = 32;

/// The forks by a time that is not after their last event. An event changes nothing here: its fork is filed again when it comes first.
/// Invariant: each fork that is there is filed once.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// Microseconds, and places.
    heap: BinaryHeap<Reverse<(i64, u32)>>,
    /// Whether a place is in the heap; those of forks that are gone stay there.
    filed: Vec<bool>,
}

impl Idle {
    /// A new fork has a place. One that was filed for a fork before it stays where it is: this is not after the new one's event.
    pub(super) fn file(&mut self, place: u32, seen_us: i64) {
        let at = place as usize;
        if self.filed.len() <= at {
            self.filed.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.filed[at], true) {
            self.heap.push(Reverse((seen_us, place)));
        }
    }

    /// Takes the place of the fork whose last event is the oldest one, or, if [`LOOKED_AT_MAX`] forks that might be it had events
    /// meanwhile, the oldest one of these. `seen_us` says when the last event of a place's fork came; none if the fork is gone.
    pub(super) fn take_oldest(&mut self, seen_us: impl Fn(u32) -> Option<i64>) -> Option<u32> {
        let mut looked_at = 0;
        let mut oldest: Option<(i64, u32)> = None;
        while let Some(mut first) = self.heap.peek_mut() {
            let Reverse((filed_us, place)) = *first;
            let Some(seen_us) = seen_us(place) else {
                self.filed[place as usize] = false;
                PeekMut::pop(first);
                continue;
            };
            looked_at += 1;
            // Every other fork is filed at this time or later, and had its last event not before that.
            if seen_us <= filed_us {
                PeekMut::pop(first);
                self.filed[place as usize] = false;
                return Some(place);
            }
            oldest = Some(oldest.map_or((seen_us, place), |oldest| oldest.min((seen_us, place))));
            first.0.0 = seen_us;
            drop(first);
            if looked_at == LOOKED_AT_MAX {
                break;
            }
        }
        // It stays filed, as the place of a fork that is gone.
        oldest.map(|(_, place)| place)
    }

    /// Forgets all: there are no forks.
    pub(super) fn clear(&mut self) {
        *self = Idle::default();
    }
}

#[test]
fn the_oldest_one_is_taken_in_the_order_of_the_last_events() {
    let mut seen = vec![Some(1), Some(2), Some(3), Some(4)];
    let mut idle = Idle::default();
    (0..4).for_each(|place| idle.file(place, i64::from(place) + 1));
    seen[0] = Some(9);
    let mut take = |seen: &mut Vec<Option<i64>>| {
        let place = idle.take_oldest(|place| seen[place as usize])?;
        seen[place as usize] = None;
        Some(place)
    };
    assert_eq!(take(&mut seen), Some(1));
    // One that went otherwise is passed over.
    seen[2] = None;
    assert_eq!([take(&mut seen), take(&mut seen), take(&mut seen)], [Some(3), Some(0), None]);
}

#[test]
fn forks_that_all_had_events_cost_one_eviction_no_more_than_its_bound() {
    use std::cell::Cell;
    const FORKS: u32 = 10_000;
    let mut idle = Idle::default();
    (0..FORKS).for_each(|place| idle.file(place, i64::from(place)));
    // All had an event since, the last one first.
    let seen_us = |place: u32| i64::from(2 * FORKS - place);
    let looked_at = Cell::new(0);
    let look = |place: u32| {
        looked_at.set(looked_at.get() + 1);
        Some(seen_us(place))
    };
    let place = idle.take_oldest(look).expect("there are forks");
    assert_eq!(looked_at.get(), LOOKED_AT_MAX);
    assert_eq!(place, LOOKED_AT_MAX as u32 - 1, "the oldest of those that were looked at");
    // Its place is taken by a new one: it is filed still, and not twice.
    idle.file(place, seen_us(0));
    assert_eq!(idle.heap.len(), FORKS as usize);
}
