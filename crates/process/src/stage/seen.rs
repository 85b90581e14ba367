//! Set of recently seen series, by hash, limited in number.
//!
//! The set has two generations. A series that appears is added to the young one, and removed from the old one if it
//! is there. After each `idle_ns` the old one is dropped and the young one becomes the old one. So a series is
//! forgotten after one to two `idle_ns` without a line, and nothing is stored for a series but its hash.

use hashbrown::HashTable;

#[derive(Clone, Debug)]
pub(super) struct Seen {
    series_max: u32,
    idle_ns: u64,
    young: HashTable<u64>,
    old: HashTable<u64>,
    /// When the generations changed last; None before the first call with a time.
    turned_ns: Option<u64>,
}

impl Seen {
    pub(super) fn new(series_max: u32, idle_ns: u64) -> Seen {
        Seen { series_max, idle_ns, young: HashTable::new(), old: HashTable::new(), turned_ns: None }
    }

    /// True when the series is known or was added; false at the limit.
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

    /// Changes the generations when it is time, and returns the number of series forgotten.
    pub(super) fn forget(&mut self, now_ns: u64) -> u64 {
        let turned_ns = *self.turned_ns.get_or_insert(now_ns);
        let since_ns = now_ns.saturating_sub(turned_ns);
        if self.idle_ns == 0 || since_ns < self.idle_ns {
            return 0;
        }
        self.turned_ns = Some(now_ns);
        let forgotten = self.old.len() as u64;
        // A table that grew in an explosion of series is shrunk.
        if self.old.capacity() > 64 && self.old.len() < self.old.capacity() / 4 {
            self.old = HashTable::new();
        }
        self.old.clear();
        std::mem::swap(&mut self.young, &mut self.old);
        forgotten
    }

    /// Number of known series.
    pub(super) fn len(&self) -> u32 {
        // Both together are at most `series_max`.
        (self.young.len() + self.old.len()) as u32
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.young.allocation_size() + self.old.allocation_size()
    }
}
