//! Series that an endpoint has got lately, known by their hashes, bounded in number.
//!
//! Two generations: what comes is put into the young one, and taken out of the old one if it is there. After each
//! `idle_ns` the old one is forgotten and the young one becomes old: a series is forgotten after one to two of these
//! without a line. So nothing need be kept for a series but its hash.

use hashbrown::HashTable;

#[derive(Clone, Debug)]
pub(super) struct Seen {
    series_max: u32,
    idle_ns: u64,
    young: HashTable<u64>,
    old: HashTable<u64>,
    /// When the generations changed last; none before the first word on the time.
    turned_ns: Option<u64>,
}

impl Seen {
    pub(super) fn new(series_max: u32, idle_ns: u64) -> Seen {
        Seen { series_max, idle_ns, young: HashTable::new(), old: HashTable::new(), turned_ns: None }
    }

    /// True when the series is known, or becomes known; false at the limit.
    #[inline]
    pub(super) fn admit(&mut self, hash: u64) -> bool {
        let same = |known: &u64| *known == hash;
        if self.young.find(hash, same).is_some() {
            return true;
        }
        let full = self.len() >= self.series_max;
        match self.old.find_entry(hash, same) {
            Ok(entry) => drop(entry.remove()),
            Err(_) if full => return false,
            Err(_) => {}
        }
        self.young.insert_unique(hash, hash, |known| *known);
        debug_assert!(self.len() <= self.series_max);
        true
    }

    /// Changes the generations when it is time, and gives the number of series that were forgotten.
    pub(super) fn forget(&mut self, now_ns: u64) -> u64 {
        let turned_ns = *self.turned_ns.get_or_insert(now_ns);
        let since_ns = now_ns.saturating_sub(turned_ns);
        if self.idle_ns == 0 || since_ns < self.idle_ns {
            return 0;
        }
        self.turned_ns = Some(now_ns);
        let forgotten = self.old.len() as u64;
        // A table that was needed once, in an explosion of series, is not kept for ever.
        if self.old.capacity() > 64 && self.old.len() < self.old.capacity() / 4 {
            self.old = HashTable::new();
        }
        self.old.clear();
        std::mem::swap(&mut self.young, &mut self.old);
        forgotten
    }

    /// Series known.
    pub(super) fn len(&self) -> u32 {
        // Both together are at most `series_max`.
        (self.young.len() + self.old.len()) as u32
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.young.allocation_size() + self.old.allocation_size()
    }
}
