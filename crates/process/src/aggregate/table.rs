//! One table of series per kind, and the end of a window for one of its entries.
//!
//! Not here: finding a series by its raw key (`keys`), the fields of an entry (`entry`), the arithmetic of a kind
//! (`counters`, `gauges`, …).
//! Invariant: between two flushes every entry has the current parity; during a sweep, an entry of the other parity
//! still holds values of the closed window.

use model::{FlushInfo, Flushed, Kind};

use super::arena::Arena;
use super::context::Context;
use super::counters::Counter;
use super::entry::{ACTIVE, BEATS_PER_SECOND, Entry, KEPT, PARITY, SELF_METRIC, TOMBSTONE};
use super::gauges::Gauge;
use super::plan::SeriesExpiry;
use super::sets::Set;
use super::slab::Slab;
use super::state::{Closing, State};
use super::timers::Timer;

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

/// A kind of series, and the table that has its series.
pub(super) trait Stored: State {
    fn table(tables: &Tables) -> &Table<Self>;

    fn table_mut(tables: &mut Tables) -> &mut Table<Self>;
}

impl Stored for Counter {
    fn table(tables: &Tables) -> &Table<Counter> {
        &tables.counters
    }

    fn table_mut(tables: &mut Tables) -> &mut Table<Counter> {
        &mut tables.counters
    }
}

impl Stored for Gauge {
    fn table(tables: &Tables) -> &Table<Gauge> {
        &tables.gauges
    }

    fn table_mut(tables: &mut Tables) -> &mut Table<Gauge> {
        &mut tables.gauges
    }
}

impl Stored for Timer {
    fn table(tables: &Tables) -> &Table<Timer> {
        &tables.timers
    }

    fn table_mut(tables: &mut Tables) -> &mut Table<Timer> {
        &mut tables.timers
    }
}

impl Stored for Set {
    fn table(tables: &Tables) -> &Table<Set> {
        &tables.sets
    }

    fn table_mut(tables: &mut Tables) -> &mut Table<Set> {
        &mut tables.sets
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
