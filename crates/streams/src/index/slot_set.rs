//! A set of slots, iterated in their order: the events of a host, of a service, with a tag.

use roaring::RoaringBitmap;
use smallvec::SmallVec;

/// Slots of a set that is a sorted array. A larger one is a bitmap.
const FEW_MAX: usize = 128;

/// A set of slots. Small for one slot, and about two bytes a slot, or one bit, for many.
#[derive(Debug)]
pub(super) enum SlotSet {
    Few(SmallVec<[u32; 4]>),
    Many(Box<RoaringBitmap>),
}

impl Default for SlotSet {
    fn default() -> SlotSet {
        SlotSet::Few(SmallVec::new())
    }
}

impl SlotSet {
    pub(super) fn len(&self) -> usize {
        match self {
            SlotSet::Few(slots) => slots.len(),
            SlotSet::Many(slots) => usize::try_from(slots.len()).unwrap_or(usize::MAX),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            SlotSet::Few(slots) => slots.is_empty(),
            SlotSet::Many(slots) => slots.is_empty(),
        }
    }

    pub(super) fn insert(&mut self, slot: u32) {
        match self {
            SlotSet::Many(slots) => {
                slots.insert(slot);
            }
            SlotSet::Few(slots) => {
                if let Err(at) = slots.binary_search(&slot) {
                    slots.insert(at, slot);
                }
                if slots.len() > FEW_MAX {
                    *self = SlotSet::Many(Box::new(slots.iter().copied().collect()));
                }
            }
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        match self {
            SlotSet::Few(slots) => {
                if let Ok(at) = slots.binary_search(&slot) {
                    slots.remove(at);
                }
            }
            SlotSet::Many(slots) => {
                slots.remove(slot);
                // Not at the border itself, where each change would convert it.
                if slots.len() < FEW_MAX as u64 / 2 {
                    *self = SlotSet::Few(slots.iter().collect());
                }
            }
        }
    }

    /// The slots from a number on, in their order.
    pub(super) fn from(&self, first: u32) -> Slots<'_> {
        match self {
            SlotSet::Few(slots) => {
                let at = slots.partition_point(|&slot| slot < first);
                Slots::Few(slots[at..].iter())
            }
            SlotSet::Many(slots) => Slots::Many(Box::new(slots.range(first..))),
        }
    }
}

/// Iterates over a set.
pub(super) enum Slots<'s> {
    Few(std::slice::Iter<'s, u32>),
    Many(Box<roaring::bitmap::Iter<'s>>),
}

impl Iterator for Slots<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match self {
            Slots::Few(slots) => slots.next().copied(),
            Slots::Many(slots) => slots.next(),
        }
    }
}

#[test]
fn set_is_the_same_as_array_and_as_bitmap() {
    let mut set = SlotSet::default();
    let slot = |at: u32| at.wrapping_mul(2_654_435_761) % 1_000_003;
    let count = 3 * FEW_MAX as u32;
    let mut want: Vec<u32> = (0..count).map(slot).collect();
    for at in 0..count {
        set.insert(slot(at));
        set.insert(slot(at));
        assert_eq!(set.len(), at as usize + 1);
    }
    assert!(matches!(set, SlotSet::Many(_)));
    want.sort_unstable();
    assert_eq!(set.from(0).collect::<Vec<_>>(), want);
    let middle = want[100];
    assert_eq!(set.from(middle).collect::<Vec<_>>(), want[100..]);
    assert_eq!(set.from(middle + 1).next(), Some(want[101]));
    for at in 0..count {
        set.remove(slot(at));
        assert_eq!(set.len(), (count - at - 1) as usize);
        assert!(set.from(0).all(|left| left != slot(at)));
    }
    assert!(matches!(set, SlotSet::Few(_)) && set.is_empty());
}
