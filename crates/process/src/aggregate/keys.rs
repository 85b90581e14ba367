//! From a raw key to its series: index, key bytes, and aliases.
//!
//! An alias is a raw key that is not canonical, with the number of its series, so that the dialect is asked
//! once per spelling. It may outlive its series for at most one sweep: the series' birth number tells.
//! Invariant: every indexed entry and every alias has exactly one slot in the index.

use model::{Kind, RawKey};

use super::arena::Arena;
use super::index::{Index, Place, short};
use super::slab::Slab;
use super::table::{Key, State, Tables};

/// Windows that an alias outlives without being used: spellings that came once do not fill the table for ever.
const ALIAS_WINDOWS_MAX: u8 = 60;

/// What an entry takes in the index, free room included.
pub(super) const SLOT_BYTES: usize = 16;

/// Birth numbers are 24 bits wide.
const BIRTH_MASK: u32 = (1 << 24) - 1;

#[derive(Clone, Debug, Default)]
struct Alias {
    key: Key,
    hash: u32,
    target: u32,
    birth: u32,
    kind: Option<Kind>,
    /// Windows since it was used.
    idle: u8,
}

/// What the index knows of a raw key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Series(u32),
    /// An alias whose series is gone.
    Stale(u32),
    No,
}

/// Index, key bytes and aliases of one aggregation.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) index: Index,
    pub(super) arena: Arena,
    aliases: Slab<Alias>,
    births: u32,
}

impl Keys {
    pub(super) fn new() -> Keys {
        Keys { index: Index::new(), arena: Arena::new(), aliases: Slab::new(), births: 0 }
    }

    /// The series of a raw key if `place`, found by hash alone, is the right one.
    #[inline]
    pub(super) fn confirm<S: State>(
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

    fn confirm_alias<S: State>(&mut self, tables: &Tables, id: u32, raw: RawKey<'_>) -> Option<u32> {
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

    /// What a raw key stands for, all hash collisions considered.
    pub(super) fn find<S: State>(&mut self, tables: &Tables, hash: u64, raw: RawKey<'_>) -> Known {
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

    /// The number of the next birth.
    pub(super) fn birth(&mut self) -> u32 {
        self.births = (self.births + 1) & BIRTH_MASK;
        self.births
    }

    pub(super) fn aliases(&self) -> u32 {
        self.aliases.len()
    }

    /// Remembers that `raw` stands for the series `target`. At `aliases_max` it does not, and false is returned.
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
            self.aliases.give(id);
            return false;
        };
        let (target, birth) = target;
        *self.aliases.get_mut(id) =
            Alias { key, hash: short(hash), target, birth, kind: Some(kind), idle: 0 };
        self.index.insert(short(hash), Place::alias(kind, id));
        true
    }

    /// Points an alias at the series that took the place of its old one.
    pub(super) fn turn_alias(&mut self, id: u32, target: (u32, u32)) {
        let alias = self.aliases.get_mut(id);
        (alias.target, alias.birth) = target;
    }

    /// Visits aliases from number `from` on, at most `budget` of them, and ends those that are stale or unused.
    /// Returns where to go on; None at the end.
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

    /// Ends all aliases whose series is gone.
    pub(super) fn purge_aliases(&mut self, tables: &Tables) {
        let mut from = 0;
        while let Some(id) = self.aliases.next_taken(from) {
            if !is_alive_any(tables, self.aliases.get(id)) {
                self.remove_alias(id);
            }
            from = id + 1;
        }
    }

    /// Ends all aliases: names are read by other rules from now on.
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
        self.arena.give(alias.key.at);
        self.aliases.give(id);
    }

    /// Bytes of keys and aliases, at once, and with a usual share of the index.
    pub(super) fn held_bytes(&self) -> usize {
        self.arena.held_bytes() + self.aliases.len() as usize * (size_of::<Alias>() + SLOT_BYTES)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.index.memory_bytes() + self.arena.memory_bytes() + self.aliases.memory_bytes()
    }
}

fn is_alive<S: State>(tables: &Tables, alias: &Alias) -> bool {
    let slab = &S::table(tables).slab;
    slab.is_taken(alias.target) && slab.get(alias.target).birth() == alias.birth
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
