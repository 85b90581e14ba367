//! One series in a table: its key, and the metadata that all kinds share.
//!
//! Not here: the state of a kind (`state`), the tables (`table`).

use model::{Now, RawKey, SeriesRef};

use super::arena::Arena;

/// Location of a key in the arena.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Key {
    pub(super) at: u32,
    pub(super) name_len: u32,
    pub(super) tags_len: u32,
}

impl Key {
    /// Copies `key` into the arena.
    pub(super) fn store(arena: &mut Arena, key: RawKey<'_>) -> Option<Key> {
        let at = arena.store(key.name, key.tags)?;
        Some(Key { at, name_len: key.name.len() as u32, tags_len: key.tags.len() as u32 })
    }

    /// True when it equals `raw`, byte for byte.
    #[inline]
    pub(super) fn is(self, raw: RawKey<'_>, arena: &Arena) -> bool {
        if self.name_len as usize != raw.name.len() || self.tags_len as usize != raw.tags.len() {
            return false;
        }
        let bytes = arena.get(self.at, raw.name.len() + raw.tags.len());
        let (name, tags) = bytes.split_at(raw.name.len());
        name == raw.name && (tags.is_empty() || tags == raw.tags)
    }

    pub(super) fn of(self, arena: &Arena) -> RawKey<'_> {
        let bytes = arena.get(self.at, (self.name_len + self.tags_len) as usize);
        let (name, tags) = bytes.split_at(self.name_len as usize);
        RawKey { name, tags }
    }
}

/// A series: its state, its key, and metadata. The low byte of `mark` holds flags, the rest the generation.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry<S> {
    pub(super) state: S,
    pub(super) key: Key,
    /// Stored bits of the canonical key's hash, when the entry is indexed.
    pub(super) hash: u32,
    /// Time of the last sample, in beats.
    pub(super) seen: u32,
    mark: u32,
}

/// Which of two neighbouring windows the state belongs to.
pub(super) const PARITY: u32 = 1;
/// Received a sample in its window.
pub(super) const ACTIVE: u32 = 2;
/// A tombstone: hidden from requests, and kept for one window because most deleted series come back.
pub(super) const TOMBSTONE: u32 = 4;
/// A self-metric.
pub(super) const SELF_METRIC: u32 = 8;
/// See [`model::Canonical::clean`].
pub(super) const CLEAN: u32 = 16;
/// Its name exempts it from deletion.
pub(super) const KEPT: u32 = 32;
/// Has a slot in the index.
pub(super) const INDEXED: u32 = 64;
const GENERATION_SHIFT: u32 = 8;

impl<S> Entry<S> {
    #[inline]
    pub(super) fn has(&self, flag: u32) -> bool {
        self.mark & flag != 0
    }

    #[inline]
    pub(super) fn set(&mut self, flag: u32) {
        self.mark |= flag;
    }

    #[inline]
    pub(super) fn unset(&mut self, flag: u32) {
        self.mark &= !flag;
    }

    /// True when a sample of the window with `parity` may be added directly.
    #[inline]
    pub(super) fn is_open(&self, parity: u32) -> bool {
        self.mark & (PARITY | TOMBSTONE) == parity
    }

    #[inline]
    pub(super) fn parity(&self) -> u32 {
        self.mark & PARITY
    }

    pub(super) fn set_parity(&mut self, parity: u32) {
        self.mark = self.mark & !PARITY | parity;
    }

    pub(super) fn generation(&self) -> u32 {
        self.mark >> GENERATION_SHIFT
    }

    pub(super) fn set_generation(&mut self, generation: u32) {
        self.mark = self.mark & ((1 << GENERATION_SHIFT) - 1) | generation << GENERATION_SHIFT;
    }

    pub(super) fn series<'a>(&self, arena: &'a Arena) -> SeriesRef<'a> {
        let RawKey { name, tags } = self.key.of(arena);
        SeriesRef { name, tags, clean: self.has(CLEAN) }
    }
}

/// Ages are counted in beats: sixteenths of a second on the monotonic clock, modulo 2^32 (8 years).
pub(super) const BEATS_PER_SECOND: u64 = 16;

pub(super) fn beat(now: Now) -> u32 {
    (now.mono_ns / (model::SECOND_NS / BEATS_PER_SECOND)) as u32
}
