//! The birth of a series, and the other spellings under which it is known.

use model::limits::QUOTED_BYTES_MAX;
use model::{Canonical, Kind, RawKey};

use super::add::Hint;
use super::counters::Counter;
use super::gauges::Gauge;
use super::index::{Place, short};
use super::keys::{Known, SLOT_BYTES};
use super::sets::Set;
use super::table::{CLEAN, Entry, INDEXED, KEPT, Key, OWN, State};
use super::timers::Timer;
use super::{Added, Aggregator};

impl Aggregator {
    /// The series of a raw key that the first probe did not settle: by a full search, by the canonical key, or
    /// a new one. None when the series limit stands against it.
    #[inline(never)]
    pub(super) fn locate<S: State>(
        &mut self,
        hint: Hint<'_>,
        canonical: &mut impl FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
        added: &mut Added,
    ) -> Option<u32> {
        let Hint { hash, raw, .. } = hint;
        let found = self.keys.find::<S>(&self.tables, hash, raw);
        if let Known::Series(id) = found {
            return Some(id);
        }
        let mut buffer = std::mem::take(&mut self.canonical);
        buffer.clear();
        let form = canonical(S::KIND, raw, &mut buffer);
        let (name, tags) = buffer.split_at(form.name_len);
        let key = RawKey { name, tags };
        let id = if key == raw {
            self.adopt::<S>(hash, key)
                .or_else(|| self.create::<S>(hash, key, form.clean, raw, canonical, added))
        } else {
            let id = match self.keys.find::<S>(&self.tables, form.hash, key) {
                Known::Series(id) => Some(id),
                _ => self
                    .adopt::<S>(form.hash, key)
                    .or_else(|| self.create::<S>(form.hash, key, form.clean, raw, canonical, added)),
            };
            if let Some(id) = id {
                let target = (id, S::table(&self.tables).slab.get(id).birth());
                self.remember::<S>(found, hash, raw, target);
            }
            id
        };
        self.canonical = buffer;
        id
    }

    /// Keeps the way from a raw key to its series, as long as there is room for it.
    fn remember<S: State>(&mut self, found: Known, hash: u64, raw: RawKey<'_>, target: (u32, u32)) {
        if let Known::Stale(alias) = found {
            self.keys.turn_alias(alias, target);
        } else if !self.context.has_room()
            || !self.keys.add_alias(S::KIND, hash, raw, target, self.plan.series_max)
        {
            self.totals.aliases_refused += 1;
        }
        self.note_keys();
    }

    /// Entries of all kinds, ghosts and our own included.
    pub(super) fn held(&self) -> u32 {
        Kind::ALL.iter().map(|kind| self.tables.held(*kind)).sum()
    }

    /// Makes a series, unless there are `series_max` already, and sees whether its name is one of another kind.
    fn create<S: State>(
        &mut self,
        hash: u64,
        key: RawKey<'_>,
        clean: bool,
        raw: RawKey<'_>,
        canonical: &mut impl FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
        added: &mut Added,
    ) -> Option<u32> {
        let id = self.enlist::<S>(hash, key, clean)?;
        if self.is_conflict::<S>(raw, canonical) {
            added.conflicts += 1;
            self.totals.conflicts += 1;
        }
        Some(id)
    }

    /// True while there are less than `series_max`, and less bytes than `bytes_max`. Our own series do not count.
    pub(super) fn has_room(&self) -> bool {
        self.has_numbers() && self.context.has_room()
    }

    /// True while there are less than `series_max`.
    fn has_numbers(&self) -> bool {
        self.held() - self.own.held() < self.plan.series_max
    }

    /// Counts a sample that began no series although it would have.
    #[cold]
    pub(super) fn count_refused(&mut self, raw: RawKey<'_>, added: &mut Added) {
        if self.has_numbers() {
            added.dropped_bytes_max += 1;
        } else {
            if added.dropped_series_max == 0 {
                self.refused.clear();
                let space: &[u8] = if raw.tags.is_empty() { b"" } else { b" " };
                let bytes = raw.name.iter().chain(space).chain(raw.tags);
                self.refused.extend(bytes.take(QUOTED_BYTES_MAX + 1));
            }
            added.dropped_series_max += 1;
        }
    }

    /// Sees how many bytes keys and entries take.
    pub(super) fn note_keys(&mut self) {
        let entries = self.held() as usize * (size_of::<Entry<Timer>>() + SLOT_BYTES);
        self.context.note_keys((self.keys.held_bytes() + entries) as u64);
    }

    /// A new series in the index, unless there are `series_max` already.
    pub(super) fn enlist<S: State>(&mut self, hash: u64, key: RawKey<'_>, clean: bool) -> Option<u32> {
        if !self.has_room() {
            return None;
        }
        let id = self.birth::<S>(key, clean)?;
        let entry = S::table_mut(&mut self.tables).slab.get_mut(id);
        entry.hash = short(hash);
        entry.set(INDEXED);
        if self.own.link(S::KIND, key, id) {
            entry.set(OWN);
        }
        self.keys.index.insert(short(hash), Place::series(S::KIND, id));
        Some(id)
    }

    /// A new entry in the current window, not in the index. None when numbers or addresses are used up.
    pub(super) fn birth<S: State>(&mut self, key: RawKey<'_>, clean: bool) -> Option<u32> {
        let table = S::table_mut(&mut self.tables);
        let id = table.slab.take(Place::IDS_MAX)?;
        let Some(stored) = Key::store(&mut self.keys.arena, key) else {
            table.slab.give(id);
            return None;
        };
        let entry = table.slab.get_mut(id);
        entry.key = stored;
        entry.seen = self.beat;
        entry.set_birth(self.keys.birth());
        entry.set_parity(self.parity);
        if clean {
            entry.set(CLEAN);
        }
        if S::KIND == Kind::Counter && is_exempt(key.name, &self.plan.keep_contains) {
            entry.set(KEPT);
        }
        self.totals.created += 1;
        self.note_keys();
        Some(id)
    }

    /// Whether the name that is new under one kind exists under another.
    fn is_conflict<S: State>(
        &mut self,
        raw: RawKey<'_>,
        canonical: &mut impl FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
    ) -> bool {
        let mut buffer = Vec::new();
        Kind::ALL.iter().filter(|kind| **kind != S::KIND).any(|kind| {
            if self.tables.held(*kind) == 0 {
                return false;
            }
            buffer.clear();
            let form = canonical(*kind, raw, &mut buffer);
            let (name, tags) = buffer.split_at(form.name_len);
            let key = RawKey { name, tags };
            let known = match kind {
                Kind::Counter => self.keys.find::<Counter>(&self.tables, form.hash, key),
                Kind::Gauge => self.keys.find::<Gauge>(&self.tables, form.hash, key),
                Kind::Timer => self.keys.find::<Timer>(&self.tables, form.hash, key),
                Kind::Set => self.keys.find::<Set>(&self.tables, form.hash, key),
            };
            matches!(known, Known::Series(_))
        })
    }
}

/// Whether a counter's name exempts it from deletion (spec statsd §7.2).
pub(super) fn is_exempt(name: &[u8], keep_contains: &[String]) -> bool {
    keep_contains.iter().any(|text| memchr::memmem::find(name, text.as_bytes()).is_some())
}
