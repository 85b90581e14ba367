//! One table per kind: what every series has in common, and what a kind must tell about its own state.
//!
//! Not here: finding a series by its raw key (`keys`), the arithmetic of a kind (`counters`, `gauges`, …).
//! Invariant: between two flushes every entry carries the current parity; while a sweep is under way, an
//! entry of the other parity still holds the closed window.

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

/// Where a key's bytes lie in the arena.
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

    /// True when it is spelled as `raw`.
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

/// What is known of a series beside its state. The low byte of `mark` holds flags, the rest its birth number.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry<S> {
    pub(super) state: S,
    pub(super) key: Key,
    /// Kept bits of the canonical key's hash, when the entry is indexed.
    pub(super) hash: u32,
    /// Beat of the last sample.
    pub(super) seen: u32,
    mark: u32,
}

/// Which of two neighbouring windows the state belongs to.
pub(super) const PARITY: u32 = 1;
/// Saw a sample in its window.
pub(super) const ACTIVE: u32 = 2;
/// Deleted for everyone who asks; kept for one window because most deleted series come back.
pub(super) const GHOST: u32 = 4;
/// One of our own.
pub(super) const OWN: u32 = 8;
/// See [`model::Canonical::clean`].
pub(super) const CLEAN: u32 = 16;
/// Its name exempts it from deletion.
pub(super) const KEPT: u32 = 32;
/// The index knows it.
pub(super) const INDEXED: u32 = 64;
const BIRTH_SHIFT: u32 = 8;

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

    /// True when a sample of the window with `parity` may be added at once.
    #[inline]
    pub(super) fn is_open(&self, parity: u32) -> bool {
        self.mark & (PARITY | GHOST) == parity
    }

    #[inline]
    pub(super) fn parity(&self) -> u32 {
        self.mark & PARITY
    }

    pub(super) fn set_parity(&mut self, parity: u32) {
        self.mark = self.mark & !PARITY | parity;
    }

    pub(super) fn birth(&self) -> u32 {
        self.mark >> BIRTH_SHIFT
    }

    pub(super) fn set_birth(&mut self, birth: u32) {
        self.mark = self.mark & ((1 << BIRTH_SHIFT) - 1) | birth << BIRTH_SHIFT;
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
    pub(super) ghosts: u32,
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
            Table { slab: Slab::new(), ghosts: 0 }
        }
        Tables { counters: empty(), gauges: empty(), timers: empty(), sets: empty() }
    }

    /// Entries of one kind, ghosts included.
    pub(super) fn held(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Counter => self.counters.slab.len(),
            Kind::Gauge => self.gauges.slab.len(),
            Kind::Timer => self.timers.slab.len(),
            Kind::Set => self.sets.slab.len(),
        }
    }

    /// Series of one kind that exist for those who ask.
    pub(super) fn len(&self, kind: Kind) -> usize {
        let ghosts = match kind {
            Kind::Counter => self.counters.ghosts,
            Kind::Gauge => self.gauges.ghosts,
            Kind::Timer => self.timers.ghosts,
            Kind::Set => self.sets.ghosts,
        };
        (self.held(kind) - ghosts) as usize
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.counters.slab.memory_bytes()
            + self.gauges.slab.memory_bytes()
            + self.timers.slab.memory_bytes()
            + self.sets.slab.memory_bytes()
    }
}

/// The window that was closed last, while its series are being emitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closing {
    pub(super) info: FlushInfo,
    /// What sums are divided by to give rates, in seconds.
    pub(super) divisor: f64,
    /// When it was closed.
    pub(super) started: Now,
    /// The same as a beat.
    pub(super) beat: u32,
    /// Series emitted so far.
    pub(super) emitted: u64,
}

/// What a kind keeps per series.
pub(super) trait State: Default {
    const KIND: Kind;

    fn table(tables: &Tables) -> &Table<Self>;

    fn table_mut(tables: &mut Tables) -> &mut Table<Self>;

    /// What the plan says about idle series of this kind.
    fn idle(plan: &ExpiryPlan) -> SeriesExpiry;

    /// Emits the closed window. `active`: it saw a sample.
    fn emit(
        &mut self,
        series: SeriesRef<'_>,
        active: bool,
        closing: &Closing,
        context: &mut Context,
        emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
    );

    /// Makes ready for the next window.
    fn clear(&mut self, tally: &mut Tally);

    /// Returns to the state of a new series; what it held on the heap is given back.
    fn forget(&mut self, tally: &mut Tally);

    /// Becomes a ghost after [`State::clear`]: keeps its heap, but nothing that a new series would not have.
    fn fade(&mut self) {}

    /// Whether, under `SeriesExpiry::Delete`, the series outlives the flush that just emitted it.
    fn outlives(&mut self, _ttl_windows: u32, _active: bool) -> bool {
        false
    }

    /// Appends the state, see `checkpoint`.
    fn save(&self, to: &mut Vec<u8>);

    /// Takes over a state that was saved; it must be that of a new series. None when the bytes are no such state: what
    /// it is then may only be forgotten. `seed` is that of [`Entry::hash`].
    fn load(&mut self, from: &mut Bytes<'_>, seed: u32, context: &mut Context) -> Option<()>;

    /// Work of one flush, in series: large timers count for more than one.
    fn work(&self) -> usize {
        1
    }
}

/// What becomes of an entry after its flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    /// Goes on.
    Keep,
    /// Has become a ghost.
    Drain,
    /// Goes away.
    Remove,
}

/// Ends the closed window for one entry: emits it unless it has expired, and opens the current window.
///
/// On [`Disposition::Remove`] the state is that of a new series: the caller removes the entry, or goes on with it as
/// with a new one when a sample has just come.
pub(super) fn flush<S: State>(
    entry: &mut Entry<S>,
    arena: &Arena,
    idle: SeriesExpiry,
    closing: &mut Closing,
    context: &mut Context,
    emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
) -> Disposition {
    entry.set_parity(entry.parity() ^ PARITY);
    if entry.has(GHOST) {
        return Disposition::Remove;
    }
    let active = entry.has(ACTIVE);
    entry.unset(ACTIVE);
    let exempt = entry.has(KEPT) || (S::KIND == Kind::Gauge && entry.has(OWN));
    if let SeriesExpiry::After { seconds } = idle
        && !active
        && !exempt
        && u64::from(closing.beat.wrapping_sub(entry.seen)) >= seconds.saturating_mul(BEATS_PER_SECOND)
    {
        entry.state.forget(&mut context.tally);
        return Disposition::Remove;
    }
    entry.state.emit(entry.series(arena), active, closing, context, emit);
    closing.emitted += 1;
    entry.state.clear(&mut context.tally);
    if let SeriesExpiry::Delete { ttl_windows } = idle
        && !exempt
        && !entry.state.outlives(ttl_windows.max(1), active)
    {
        entry.set(GHOST);
        entry.state.fade();
        return Disposition::Drain;
    }
    Disposition::Keep
}

/// Beats are what ages are counted in: sixteenths of a second on the monotonic clock, modulo 2^32 (8 years).
pub(super) const BEATS_PER_SECOND: u64 = 16;

pub(super) fn beat(now: Now) -> u32 {
    (now.mono_ns / (model::SECOND_NS / BEATS_PER_SECOND)) as u32
}
