//! Creation of series, and of aliases: other raw keys of the same series.

use model::limits::QUOTED_BYTES_MAX;
use model::{Canonical, Kind, RawKey};

use super::counters::Counter;
use super::entry::{CLEAN, Entry, INDEXED, KEPT, Key, SELF_METRIC};
use super::gauges::Gauge;
use super::hint::Hint;
use super::index::{Place, short};
use super::keys::{Known, SLOT_BYTES};
use super::sets::Set;
use super::table::Stored;
use super::timers::Timer;
use super::{Added, Aggregator};

impl Aggregator {
    /// The series of a raw key that the first probe did not find: by a full search, by its canonical key, or a new
    /// series. None when a limit forbids a new series.
    #[inline(never)]
    pub(super) fn locate<S: Stored>(
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
                let target = (id, S::table(&self.tables).slab.get(id).generation());
                self.remember::<S>(found, hash, raw, target);
            }
            id
        };
        self.canonical = buffer;
        id
    }

    /// Adds an alias from a raw key to its series, if there is room for one.
    fn remember<S: Stored>(&mut self, found: Known, hash: u64, raw: RawKey<'_>, target: (u32, u32)) {
        if let Known::Stale(alias) = found {
            self.keys.repoint_alias(alias, target);
        } else if !self.context.has_room()
            || !self.keys.add_alias(S::KIND, hash, raw, target, self.plan.series_max)
        {
            self.totals.aliases_refused += 1;
        }
        self.note_keys();
    }

    /// Entries of all kinds, including tombstones and self-metrics.
    pub(super) fn entries(&self) -> u32 {
        Kind::ALL.iter().map(|kind| self.tables.entries(*kind)).sum()
    }

    /// Creates a series unless `series_max` is reached. Counts a conflict when the name exists under another kind.
    fn create<S: Stored>(
        &mut self,
        hash: u64,
        key: RawKey<'_>,
        clean: bool,
        raw: RawKey<'_>,
        canonical: &mut impl FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
        added: &mut Added,
    ) -> Option<u32> {
        let id = self.create_indexed::<S>(hash, key, clean)?;
        if self.is_conflict::<S>(raw, canonical) {
            added.conflicts += 1;
            self.totals.conflicts += 1;
        }
        Some(id)
    }

    /// True below both `series_max` and `bytes_max`. Self-metrics do not count.
    pub(super) fn has_room(&self) -> bool {
        self.has_numbers() && self.context.has_room()
    }

    /// True below `series_max`.
    fn has_numbers(&self) -> bool {
        self.entries() - self.self_metrics.len() < self.plan.series_max
    }

    /// Counts a sample whose series could not be created.
    #[cold]
    pub(super) fn count_refused(&mut self, raw: RawKey<'_>, added: &mut Added) {
        if self.has_numbers() {
            added.dropped_bytes_max += 1;
        } else {
            if added.dropped_series_max == 0 {
                self.first_dropped.clear();
                let space: &[u8] = if raw.tags.is_empty() { b"" } else { b" " };
                let bytes = raw.name.iter().chain(space).chain(raw.tags);
                self.first_dropped.extend(bytes.take(QUOTED_BYTES_MAX + 1));
            }
            added.dropped_series_max += 1;
        }
    }

    /// Updates the number of bytes that keys and entries use.
    pub(super) fn note_keys(&mut self) {
        let entries = self.entries() as usize * (size_of::<Entry<Timer>>() + SLOT_BYTES);
        self.context.note_keys((self.keys.held_bytes() + entries) as u64);
    }

    /// Creates a series and indexes it. None when `series_max` is reached.
    pub(super) fn create_indexed<S: Stored>(
        &mut self,
        hash: u64,
        key: RawKey<'_>,
        clean: bool,
    ) -> Option<u32> {
        if !self.has_room() {
            return None;
        }
        let id = self.create_entry::<S>(key, clean)?;
        let entry = S::table_mut(&mut self.tables).slab.get_mut(id);
        entry.hash = short(hash);
        entry.set(INDEXED);
        if self.self_metrics.link(S::KIND, key, id) {
            entry.set(SELF_METRIC);
        }
        self.keys.index.insert(short(hash), Place::series(S::KIND, id));
        Some(id)
    }

    /// Creates an entry in the current window without indexing it. None when no number or address is left.
    pub(super) fn create_entry<S: Stored>(&mut self, key: RawKey<'_>, clean: bool) -> Option<u32> {
        let table = S::table_mut(&mut self.tables);
        let id = table.slab.take(Place::IDS_MAX)?;
        let Some(stored) = Key::store(&mut self.keys.arena, key) else {
            table.slab.free(id);
            return None;
        };
        let entry = table.slab.get_mut(id);
        entry.key = stored;
        entry.seen = self.beat;
        entry.set_generation(self.keys.generation());
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

    /// True when a name that is new under one kind exists under another.
    fn is_conflict<S: Stored>(
        &mut self,
        raw: RawKey<'_>,
        canonical: &mut impl FnMut(Kind, RawKey<'_>, &mut Vec<u8>) -> Canonical,
    ) -> bool {
        let mut buffer = Vec::new();
        Kind::ALL.iter().filter(|kind| **kind != S::KIND).any(|kind| {
            if self.tables.entries(*kind) == 0 {
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

/// True when the name of a counter exempts it from deletion (spec statsd §7.2).
pub(super) fn is_exempt(name: &[u8], keep_contains: &[String]) -> bool {
    keep_contains.iter().any(|text| memchr::memmem::find(name, text.as_bytes()).is_some())
}
