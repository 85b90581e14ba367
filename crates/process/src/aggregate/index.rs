//! Index from the hash of a raw key to its series or alias.
//!
//! A slot stores 32 bits of the hash next to the place. They rule out nearly every mismatch without reading a key,
//! and they are enough to rebuild a table when it grows. The index is split into 64 tables that grow independently:
//! a growth copies at most 1/64 of the index, and the index is never in memory twice.

use hashbrown::HashTable;
use model::Kind;

const TABLES: usize = 64;

/// Location of an entry: a series of some kind, or an alias of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

const ALIAS: u32 = 1 << 29;
const KIND_SHIFT: u32 = 30;

impl Place {
    /// Limit of the ids that a place can store.
    pub(super) const IDS_MAX: u32 = 1 << 29;

    #[inline]
    pub(super) fn series(kind: Kind, id: u32) -> Place {
        debug_assert!(id < Place::IDS_MAX);
        Place((kind as u32) << KIND_SHIFT | id)
    }

    pub(super) fn alias(kind: Kind, id: u32) -> Place {
        debug_assert!(id < Place::IDS_MAX);
        Place((kind as u32) << KIND_SHIFT | ALIAS | id)
    }

    #[inline]
    pub(super) fn id(self) -> u32 {
        self.0 & (ALIAS - 1)
    }

    #[inline]
    pub(super) fn is_alias(self) -> bool {
        self.0 & ALIAS != 0
    }

    #[inline]
    pub(super) fn kind(self) -> Kind {
        const KINDS: [Kind; 4] = [Kind::Counter, Kind::Gauge, Kind::Timer, Kind::Set];
        KINDS[(self.0 >> KIND_SHIFT) as usize]
    }

    /// True for series and aliases of this kind.
    #[inline]
    pub(super) fn is_kind(self, kind: Kind) -> bool {
        self.0 >> KIND_SHIFT == kind as u32
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    place: Place,
}

/// The index of an aggregation's raw keys.
#[derive(Clone, Debug)]
pub(super) struct Index {
    tables: Box<[HashTable<Slot>]>,
}

/// The 32 bits of a hash that the index stores.
#[inline]
pub(super) fn short(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Spreads the stored bits over 64 bits for the tables, which take the position from the low bits and the tag from
/// the top seven.
#[inline]
fn spread(short: u32) -> u64 {
    u64::from(short).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

#[inline]
fn table_of(short: u32) -> usize {
    short as usize % TABLES
}

impl Index {
    pub(super) fn new() -> Index {
        Index { tables: (0..TABLES).map(|_| HashTable::new()).collect() }
    }

    /// A place with this hash, nearly always the right one. The caller compares the key.
    #[inline]
    pub(super) fn probe(&self, short: u32) -> Option<Place> {
        let slot = self.tables[table_of(short)].find(spread(short), |slot| slot.hash == short)?;
        Some(slot.place)
    }

    /// The place with this hash for which `is` returns true.
    #[inline]
    pub(super) fn find(&self, short: u32, mut is: impl FnMut(Place) -> bool) -> Option<Place> {
        let slot =
            self.tables[table_of(short)].find(spread(short), |slot| slot.hash == short && is(slot.place))?;
        Some(slot.place)
    }

    pub(super) fn insert(&mut self, short: u32, place: Place) {
        let table = &mut self.tables[table_of(short)];
        table.insert_unique(spread(short), Slot { hash: short, place }, |slot| spread(slot.hash));
    }

    pub(super) fn remove(&mut self, short: u32, place: Place) {
        let table = &mut self.tables[table_of(short)];
        let found = table.find_entry(spread(short), |slot| slot.place == place);
        debug_assert!(found.is_ok(), "{place:?} is not in the index");
        if let Ok(found) = found {
            found.remove();
        }
        // Shrinks to twice the size that is needed, so that a table does not grow and shrink in turn.
        if table.capacity() > 256 && table.len() < table.capacity() / 8 {
            let len = table.len();
            table.shrink_to(len * 2, |slot| spread(slot.hash));
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.tables) + self.tables.iter().map(HashTable::allocation_size).sum::<usize>()
    }
}

#[test]
fn places_store_kind_id_and_alias_flag() {
    for kind in Kind::ALL {
        for id in [0, 1, Place::IDS_MAX - 1] {
            let (series, alias) = (Place::series(kind, id), Place::alias(kind, id));
            assert_eq!((series.id(), alias.id()), (id, id));
            assert!(!series.is_alias() && alias.is_alias());
            assert_eq!((series.kind(), alias.kind()), (kind, kind));
            assert!(Kind::ALL.iter().all(|k| series.is_kind(*k) == (*k == kind)));
        }
    }
}

#[test]
fn equal_hashes_are_distinguished_and_removed_one_by_one() {
    let mut index = Index::new();
    for id in 0..1000 {
        index.insert(7, Place::series(Kind::Counter, id));
        index.insert(id * 64 + 8, Place::series(Kind::Gauge, id));
    }
    for id in 0..1000 {
        let want = Place::series(Kind::Counter, id);
        assert_eq!(index.find(7, |place| place == want), Some(want));
        index.remove(7, want);
        assert_eq!(index.find(7, |place| place == want), None);
        assert_eq!(index.probe(id * 64 + 8), Some(Place::series(Kind::Gauge, id)));
    }
    assert_eq!(index.probe(7), None);
}
