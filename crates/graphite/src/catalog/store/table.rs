//! A hash table of numbers, in parts: only one part grows at a time, so that no insertion takes long.

use hashbrown::HashTable;

/// The largest step of growth is this part of the whole.
const PARTS: usize = 64;
/// A smaller part is not shrunk.
const SHRINK_FROM: usize = 64;

/// Numbers by a hash that the caller computes.
#[derive(Debug)]
pub(super) struct Table {
    parts: Vec<HashTable<u32>>,
    bytes: usize,
}

impl Table {
    pub(super) fn new() -> Table {
        Table {
            parts: (0..PARTS).map(|_| HashTable::new()).collect(),
            bytes: PARTS * size_of::<HashTable<u32>>(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(HashTable::len).sum()
    }

    /// Makes room for so many numbers, so that the parts need not grow later.
    pub(super) fn reserve(&mut self, count: usize, hash_of: impl Fn(u32) -> u64) {
        // Parts differ by a few square roots of their size.
        let mean = count / PARTS;
        let each = mean + 4 * mean.isqrt();
        for part in &mut self.parts {
            let before = part.allocation_size();
            part.reserve(each.saturating_sub(part.len()), |number| hash_of(*number));
            self.bytes = self.bytes - before + part.allocation_size();
        }
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.parts[part(hash)].find(hash, |number| is_it(*number)).copied()
    }

    /// Adds a number that is not in the table. `hash_of` gives the hash of any number in it.
    pub(super) fn insert(&mut self, hash: u64, number: u32, hash_of: impl Fn(u32) -> u64) {
        let part = &mut self.parts[part(hash)];
        let before = part.allocation_size();
        part.insert_unique(hash, number, |number| hash_of(*number));
        self.bytes = self.bytes - before + part.allocation_size();
    }

    /// Removes a number. The table becomes smaller when most of it is unused.
    pub(super) fn remove(&mut self, hash: u64, number: u32, hash_of: impl Fn(u32) -> u64) {
        let part = &mut self.parts[part(hash)];
        let before = part.allocation_size();
        if let Ok(entry) = part.find_entry(hash, |other| *other == number) {
            let _removed = entry.remove();
        }
        if part.capacity() > SHRINK_FROM && part.len() * 8 < part.capacity() {
            part.shrink_to(part.len() * 2, |number| hash_of(*number));
        }
        self.bytes = self.bytes - before + part.allocation_size();
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

/// Bits that the table itself uses least.
#[inline]
fn part(hash: u64) -> usize {
    (hash >> 40) as usize % PARTS
}

#[test]
fn a_table_with_room_does_not_grow() {
    let hash = |number: u32| u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut table = Table::new();
    table.reserve(100_000, hash);
    let bytes = table.memory_bytes();
    assert!((100_000 * 5..100_000 * 15).contains(&bytes), "{bytes}");
    (0..100_000).for_each(|number| table.insert(hash(number), number, hash));
    assert_eq!((table.memory_bytes(), table.find(hash(77), |number| number == 77)), (bytes, Some(77)));
}

#[test]
fn a_table_shrinks_when_its_numbers_are_removed() {
    let hash = |number: u32| u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut table = Table::new();
    let empty = table.memory_bytes();
    (0..100_000).for_each(|number| table.insert(hash(number), number, hash));
    let full = table.memory_bytes();
    assert_eq!(table.find(hash(77), |number| number == 77), Some(77));
    (0..100_000).for_each(|number| table.remove(hash(number), number, hash));
    assert_eq!(table.find(hash(77), |number| number == 77), None);
    assert!(
        full > 400_000 && table.memory_bytes() < empty + 64 * 1024,
        "{empty} {full} {}",
        table.memory_bytes()
    );
}
