//! Finds the series of a raw key: index, key bytes, and aliases.
//!
//! An alias maps a raw key that is not canonical to its series, so that each raw key is canonicalized once. An
//! alias may outlive its series for at most one sweep: the generation of the series shows that it is stale.
//! Invariant: every indexed entry and every alias has exactly one slot in the index.

use model::{Kind, RawKey};

use super::arena::Arena;
use super::entry::Key;
use super::index::{Index, Place, short};
use super::slab::Slab;
use super::table::{Stored, Tables};

/// Windows after which an unused alias is removed, so that one-time raw keys do not fill the table.
const ALIAS_WINDOWS_MAX: u8 = 60;

/// Bytes of one entry in the index, including free capacity.
pub(super) const SLOT_BYTES: usize = 16;

/// Generations are 24 bits wide.
const GENERATION_MASK: u32 = (1 << 24) - 1;

#[derive(Clone, Debug, Default)]
struct Alias {
    key: Key,
    hash: u32,
    target: u32,
    generation: u32,
    kind: Option<Kind>,
    /// Windows since its last use.
    idle: u8,
}

/// Result of looking up a raw key in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Series(u32),
    /// An alias whose series no longer exists.
    Stale(u32),
    No,
}

/// Index, key bytes and aliases of one aggregation.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) index: Index,
    pub(super) arena: Arena,
    aliases: Slab<Alias>,
    generations: u32,
}

impl Keys {
    pub(super) fn new() -> Keys {
        Keys { index: Index::new(), arena: Arena::new(), aliases: Slab::new(), generations: 0 }
    }

    /// The series of a raw key if `place`, found by hash alone, is the right one.
    #[inline]
    pub(super) fn confirm<S: Stored>(
        &mut self,
        tables: &Tables,
        place: Place,
        raw: RawKey<'_>,
    ) -> Option<u32> {
        if !place.is_kind(S::KIND) {
            return None;
        }
        if place.is_alias() {
            return self.confirm_alias::<S>(tables, place.id(), raw);
        }
        S::table(tables).slab.get(place.id()).key.is(raw, &self.arena).then(|| place.id())
    }

    fn confirm_alias<S: Stored>(&mut self, tables: &Tables, id: u32, raw: RawKey<'_>) -> Option<u32> {
        let alias = self.aliases.get_mut(id);
        let right = alias.key.is(raw, &self.arena) && is_alive::<S>(tables, alias);
        if right && alias.idle != 0 {
            alias.idle = 0;
        }
        right.then_some(alias.target)
    }

    /// The key of the series or alias at `place`.
    #[inline]
    pub(super) fn key_at(&self, tables: &Tables, place: Place) -> Key {
        let id = place.id();
        match place.kind() {
            _ if place.is_alias() => self.aliases.get(id).key,
            Kind::Counter => tables.counters.slab.get(id).key,
            Kind::Gauge => tables.gauges.slab.get(id).key,
            Kind::Timer => tables.timers.slab.get(id).key,
            Kind::Set => tables.sets.slab.get(id).key,
        }
    }

    /// Looks up a raw key, with all hash collisions.
    pub(super) fn find<S: Stored>(&mut self, tables: &Tables, hash: u64, raw: RawKey<'_>) -> Known {
        let Keys { index, arena, aliases, .. } = self;
        let found = index.find(short(hash), |place| {
            let key = || match place.is_alias() {
                true => aliases.get(place.id()).key,
                false => S::table(tables).slab.get(place.id()).key,
            };
            place.is_kind(S::KIND) && key().is(raw, arena)
        });
        match found {
            None => Known::No,
            Some(place) if !place.is_alias() => Known::Series(place.id()),
            Some(place) => {
                let alias = aliases.get_mut(place.id());
                alias.idle = 0;
                if is_alive::<S>(tables, alias) {
                    Known::Series(alias.target)
                } else {
                    Known::Stale(place.id())
                }
            }
        }
    }

    /// Allocates the next generation.
    pub(super) fn generation(&mut self) -> u32 {
        self.generations = (self.generations + 1) & GENERATION_MASK;
        self.generations
    }

    pub(super) fn aliases(&self) -> u32 {
        self.aliases.len()
    }

    /// Maps `raw` to the series `target`. Returns false at `aliases_max`, without an alias.
    pub(super) fn add_alias(
        &mut self,
        kind: Kind,
        hash: u64,
        raw: RawKey<'_>,
        target: (u32, u32),
        aliases_max: u32,
    ) -> bool {
        let Some(id) = self.aliases.take(aliases_max.min(Place::IDS_MAX)) else { return false };
        let Some(key) = Key::store(&mut self.arena, raw) else {
            self.aliases.free(id);
            return false;
        };
        let (target, generation) = target;
        *self.aliases.get_mut(id) =
            Alias { key, hash: short(hash), target, generation, kind: Some(kind), idle: 0 };
        self.index.insert(short(hash), Place::alias(kind, id));
        true
    }

    /// Points an alias at the series that replaced its old one.
    pub(super) fn repoint_alias(&mut self, id: u32, target: (u32, u32)) {
        let alias = self.aliases.get_mut(id);
        (alias.target, alias.generation) = target;
    }

    /// Visits at most `budget` aliases from number `from` on, and removes stale and unused ones. Returns the number
    /// to continue at; None at the end.
    pub(super) fn sweep_aliases(
        &mut self,
        tables: &Tables,
        mut from: u32,
        budget: &mut usize,
    ) -> Option<u32> {
        while *budget > 0 {
            let id = self.aliases.next_taken(from)?;
            let alias = self.aliases.get_mut(id);
            alias.idle = alias.idle.saturating_add(1);
            if alias.idle > ALIAS_WINDOWS_MAX || !is_alive_any(tables, alias) {
                self.remove_alias(id);
            }
            *budget -= 1;
            from = id + 1;
        }
        Some(from)
    }

    /// Removes all aliases whose series no longer exists.
    pub(super) fn purge_aliases(&mut self, tables: &Tables) {
        let mut from = 0;
        while let Some(id) = self.aliases.next_taken(from) {
            if !is_alive_any(tables, self.aliases.get(id)) {
                self.remove_alias(id);
            }
            from = id + 1;
        }
    }

    /// Removes all aliases, because the rules for names have changed.
    pub(super) fn forget_aliases(&mut self) {
        let mut from = 0;
        while let Some(id) = self.aliases.next_taken(from) {
            self.remove_alias(id);
            from = id + 1;
        }
    }

    fn remove_alias(&mut self, id: u32) {
        let alias = self.aliases.get(id);
        let kind = alias.kind.expect("a taken alias has a kind");
        self.index.remove(alias.hash, Place::alias(kind, id));
        self.arena.free(alias.key.at);
        self.aliases.free(id);
    }

    /// Bytes of keys and aliases, with an average share of the index. Constant time.
    pub(super) fn held_bytes(&self) -> usize {
        self.arena.held_bytes() + self.aliases.len() as usize * (size_of::<Alias>() + SLOT_BYTES)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.index.memory_bytes() + self.arena.memory_bytes() + self.aliases.memory_bytes()
    }
}

fn is_alive<S: Stored>(tables: &Tables, alias: &Alias) -> bool {
    let slab = &S::table(tables).slab;
    slab.is_taken(alias.target) && slab.get(alias.target).generation() == alias.generation
}

fn is_alive_any(tables: &Tables, alias: &Alias) -> bool {
    match alias.kind {
        Some(Kind::Counter) => is_alive::<super::counters::Counter>(tables, alias),
        Some(Kind::Gauge) => is_alive::<super::gauges::Gauge>(tables, alias),
        Some(Kind::Timer) => is_alive::<super::timers::Timer>(tables, alias),
        Some(Kind::Set) => is_alive::<super::sets::Set>(tables, alias),
        None => false,
    }
}
