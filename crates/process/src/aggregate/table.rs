//! One table of series per kind: the fields that all series share, and the trait that each kind implements.
//!
//! Not here: finding a series by its raw key (`keys`), the arithmetic of a kind (`counters`, `gauges`, …).
//! Invariant: between two flushes every entry has the current parity; during a sweep, an entry of the other parity
//! still holds values of the closed window.

use model::{FlushInfo, Flushed, Kind, Now, RawKey, SeriesRef};

use super::arena::Arena;
use super::checkpoint::Bytes;
use super::context::{Context, Tally};
use super::counters::Counter;
use super::gauges::Gauge;
use super::plan::{ExpiryPlan, SeriesExpiry};
use super::sets::Set;
use super::slab::Slab;
use super::timers::Timer;

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

/// The series of one kind.
#[derive(Clone, Debug)]
pub(super) struct Table<S> {
    pub(super) slab: Slab<Entry<S>>,
    pub(super) tombstones: u32,
}

/// The series of all kinds.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    pub(super) counters: Table<Counter>,
    pub(super) gauges: Table<Gauge>,
    pub(super) timers: Table<Timer>,
    pub(super) sets: Table<Set>,
}

impl Tables {
    pub(super) fn new() -> Tables {
        fn empty<S: Default>() -> Table<S> {
            Table { slab: Slab::new(), tombstones: 0 }
        }
        Tables { counters: empty(), gauges: empty(), timers: empty(), sets: empty() }
    }

    /// Entries of one kind, including tombstones.
    pub(super) fn entries(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Counter => self.counters.slab.len(),
            Kind::Gauge => self.gauges.slab.len(),
            Kind::Timer => self.timers.slab.len(),
            Kind::Set => self.sets.slab.len(),
        }
    }

    /// Series of one kind, without tombstones.
    pub(super) fn len(&self, kind: Kind) -> usize {
        let tombstones = match kind {
            Kind::Counter => self.counters.tombstones,
            Kind::Gauge => self.gauges.tombstones,
            Kind::Timer => self.timers.tombstones,
            Kind::Set => self.sets.tombstones,
        };
        (self.entries(kind) - tombstones) as usize
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.counters.slab.memory_bytes()
            + self.gauges.slab.memory_bytes()
            + self.timers.slab.memory_bytes()
            + self.sets.slab.memory_bytes()
    }
}

/// The window that was closed last, while its series are emitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    pub(super) info: FlushInfo,
    /// Divisor that turns sums into rates, in seconds.
    pub(super) divisor: f64,
    /// When it was closed.
    pub(super) started: Now,
    /// When it was closed, in beats.
    pub(super) beat: u32,
    /// Series emitted so far.
    pub(super) emitted: u64,
}

/// The state of one series, implemented by each kind.
pub(super) trait State: Default {
    const KIND: Kind;

    fn table(tables: &Tables) -> &Table<Self>;

    fn table_mut(tables: &mut Tables) -> &mut Table<Self>;

    /// The expiry option for this kind.
    fn idle(plan: &ExpiryPlan) -> SeriesExpiry;

    /// Emits the closed window. `active` is true when the series received a sample in it.
    fn emit(
        &mut self,
        series: SeriesRef<'_>,
        active: bool,
        closing: &Closing,
        context: &mut Context,
        emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
    );

    /// Resets the state for the next window.
    fn clear(&mut self, tally: &mut Tally);

    /// Resets to the state of a new series and frees its heap memory.
    fn reset(&mut self, tally: &mut Tally);

    /// Makes the state that of a tombstone, after [`State::clear`]: equal to a new series, but keeps its heap
    /// memory.
    fn make_tombstone(&mut self) {}

    /// True when, under `SeriesExpiry::Delete`, the series survives the flush that just emitted it.
    fn outlives(&mut self, _ttl_windows: u32, _active: bool) -> bool {
        false
    }

    /// Appends the state to a checkpoint.
    fn save(&self, to: &mut Vec<u8>);

    /// Restores a state from a checkpoint into a new series. None when the bytes are invalid: the state may then
    /// only be reset with [`State::reset`]. `seed` is that of [`Entry::hash`].
    fn load(&mut self, from: &mut Bytes<'_>, seed: u32, context: &mut Context) -> Option<()>;

    /// Cost of flushing this series; 1 for an ordinary one, more for a large timer.
    fn work(&self) -> usize {
        1
    }
}

/// What happens to an entry after its flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    /// It stays.
    Keep,
    /// It became a tombstone.
    Drain,
    /// It is removed.
    Remove,
}

/// Ends the closed window for one entry: emits it unless it has expired, and opens the current window.
///
/// On [`Disposition::Remove`] the state is that of a new series. The caller removes the entry, or reuses it as a
/// new series when a sample has just arrived.
pub(super) fn flush<S: State>(
    entry: &mut Entry<S>,
    arena: &Arena,
    idle: SeriesExpiry,
    closing: &mut Closing,
    context: &mut Context,
    emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
) -> Disposition {
    entry.set_parity(entry.parity() ^ PARITY);
    if entry.has(TOMBSTONE) {
        return Disposition::Remove;
    }
    let active = entry.has(ACTIVE);
    entry.unset(ACTIVE);
    let exempt = entry.has(KEPT) || (S::KIND == Kind::Gauge && entry.has(SELF_METRIC));
    if let SeriesExpiry::After { seconds } = idle
        && !active
        && !exempt
        && u64::from(closing.beat.wrapping_sub(entry.seen)) >= seconds.saturating_mul(BEATS_PER_SECOND)
    {
        entry.state.reset(&mut context.tally);
        return Disposition::Remove;
    }
    entry.state.emit(entry.series(arena), active, closing, context, emit);
    closing.emitted += 1;
    entry.state.clear(&mut context.tally);
    if let SeriesExpiry::Delete { ttl_windows } = idle
        && !exempt
        && !entry.state.outlives(ttl_windows.max(1), active)
    {
        entry.set(TOMBSTONE);
        entry.state.make_tombstone();
        return Disposition::Drain;
    }
    Disposition::Keep
}

/// Ages are counted in beats: sixteenths of a second on the monotonic clock, modulo 2^32 (8 years).
pub(super) const BEATS_PER_SECOND: u64 = 16;

pub(super) fn beat(now: Now) -> u32 {
    (now.mono_ns / (model::SECOND_NS / BEATS_PER_SECOND)) as u32
}
