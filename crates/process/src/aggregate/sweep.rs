//! End of a window: closes it at once, and emits its series in slices.

use model::{FlushInfo, Flushed, Kind, Now};

use super::Aggregator;
use super::counters::Counter;
use super::cursor::{Cursor, STAGES};
use super::entry::{self, INDEXED, PARITY, SELF_METRIC, TOMBSTONE};
use super::gauges::Gauge;
use super::index::Place;
use super::sets::Set;
use super::state::Closing;
use super::table::{self, Disposition, Stored};
use super::timers::Timer;

/// Result of [`Aggregator::tick`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tick {
    /// Nothing to do: no window is due and no sweep is under way.
    Idle,
    /// The window was closed. None of its series has been emitted yet.
    Started(FlushInfo),
    /// A slice of the closed window was emitted; more follows.
    Sweeping,
    /// The last slice was emitted.
    Ended(FlushEnd),
}

/// A window whose series have all been emitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlushEnd {
    /// The window.
    pub info: FlushInfo,
    /// Series emitted, all kinds (`numStats`).
    pub series: u64,
    /// When the window was closed.
    pub started: Now,
}

impl Aggregator {
    /// Monotonic nanoseconds at which `tick` is due next. 0, which is always past, while a sweep is under way.
    pub fn due_ns(&self) -> u64 {
        if self.closing.is_some() { 0 } else { self.clock.due_ns() }
    }

    /// Closes the window when it is due, otherwise sweeps at most `budget` series of the closed window. A large
    /// timer counts as several series. A window that falls due during a sweep is closed after it.
    pub fn tick(&mut self, now: Now, budget: usize, mut emit: impl FnMut(&FlushInfo, Flushed<'_>)) -> Tick {
        self.beat = entry::beat(now);
        if self.closing.is_some() {
            return self.sweep(budget, &mut emit).map_or(Tick::Sweeping, Tick::Ended);
        }
        if now.mono_ns < self.clock.due_ns() {
            return Tick::Idle;
        }
        Tick::Started(self.close(now))
    }

    /// Closes the window now, regardless of the grid, and emits all of it. The rest of an unfinished sweep is
    /// emitted first.
    pub fn flush_all(&mut self, now: Now, mut emit: impl FnMut(&FlushInfo, Flushed<'_>)) -> FlushEnd {
        while self.closing.is_some() {
            self.sweep(usize::MAX, &mut emit);
        }
        self.beat = entry::beat(now);
        self.close(now);
        loop {
            if let Some(end) = self.sweep(usize::MAX, &mut emit) {
                return end;
            }
        }
    }

    fn close(&mut self, now: Now) -> FlushInfo {
        debug_assert!(self.closing.is_none());
        let info = self.clock.close(now);
        self.begin_sweep(info, now);
        info
    }

    /// Starts the next window: the current values of all series belong to the closed window, labelled by `info`.
    pub(super) fn begin_sweep(&mut self, info: FlushInfo, now: Now) {
        // The checkpoint that was being written is void.
        self.changed |= self.saving.take().is_some();
        let measured = self.plan.measured_rates && info.elapsed_s > 0.0;
        // As node divides: the interval in milliseconds by 1000.
        let divisor = if measured { info.elapsed_s } else { self.plan.window_ms as f64 / 1000.0 };
        self.closing = Some(Closing { info, divisor, started: now, beat: entry::beat(now), emitted: 0 });
        self.cursor = Cursor::default();
        self.parity ^= PARITY;
    }

    /// Visits at most `budget` entries. Returns the end of the flush when all have been visited.
    fn sweep(&mut self, budget: usize, emit: &mut impl FnMut(&FlushInfo, Flushed<'_>)) -> Option<FlushEnd> {
        let mut budget = budget.max(1);
        // Series removed by the previous slice make room.
        self.note_keys();
        while self.cursor.stage < STAGES {
            let next = match Kind::ALL.get(self.cursor.stage) {
                Some(Kind::Counter) => self.sweep_kind::<Counter>(&mut budget, emit),
                Some(Kind::Gauge) => self.sweep_kind::<Gauge>(&mut budget, emit),
                Some(Kind::Timer) => self.sweep_kind::<Timer>(&mut budget, emit),
                Some(Kind::Set) => self.sweep_kind::<Set>(&mut budget, emit),
                None => self.keys.sweep_aliases(&self.tables, self.cursor.from, &mut budget),
            };
            match next {
                Some(from) => {
                    self.cursor.from = from;
                    return None;
                }
                None => self.cursor = Cursor { stage: self.cursor.stage + 1, from: 0 },
            }
        }
        self.note_keys();
        let closing = self.closing.take()?;
        Some(FlushEnd { info: closing.info, series: closing.emitted, started: closing.started })
    }

    /// Visits entries of one kind. Returns the place to continue at when the budget is used up.
    fn sweep_kind<S: Stored>(
        &mut self,
        budget: &mut usize,
        emit: &mut impl FnMut(&FlushInfo, Flushed<'_>),
    ) -> Option<u32> {
        let idle = S::idle(&self.plan.idle);
        let mut from = self.cursor.from;
        while *budget > 0 {
            let table = S::table_mut(&mut self.tables);
            let id = table.slab.next_taken(from)?;
            let entry = table.slab.get_mut(id);
            from = id + 1;
            if entry.parity() == self.parity {
                *budget -= 1;
                continue;
            }
            *budget = budget.saturating_sub(entry.state.work());
            let closing = self.closing.as_mut().expect("a sweep has a closed window");
            match table::flush(entry, &self.keys.arena, idle, closing, &mut self.context, emit) {
                Disposition::Keep => {}
                Disposition::Drain => table.tombstones += 1,
                Disposition::Remove => {
                    self.remove::<S>(id);
                    self.totals.expired += 1;
                }
            }
        }
        Some(from)
    }

    /// Removes an entry: its key, its index slot, its memory. Its aliases are stale from now on.
    pub(super) fn remove<S: Stored>(&mut self, id: u32) {
        let table = S::table_mut(&mut self.tables);
        let entry = table.slab.get_mut(id);
        entry.state.reset(&mut self.context.tally);
        if entry.has(INDEXED) {
            self.keys.index.remove(entry.hash, Place::series(S::KIND, id));
        }
        if entry.has(TOMBSTONE) {
            table.tombstones -= 1;
        }
        if entry.has(SELF_METRIC) {
            self.self_metrics.unlink(S::KIND, id);
        }
        self.keys.arena.free(entry.key.at);
        table.slab.free(id);
    }
}
