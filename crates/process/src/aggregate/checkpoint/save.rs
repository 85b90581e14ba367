//! Saving: a header, then a block of some series in each call.

use model::{Kind, Now};

use super::format::{BlockHeader, Form, Header};
use crate::aggregate::Aggregator;
use crate::aggregate::counters::Counter;
use crate::aggregate::gauges::Gauge;
use crate::aggregate::sets::Set;
use crate::aggregate::table::{self, ACTIVE, GHOST, State};
use crate::aggregate::timers::Timer;
use crate::bytes::put_varint;

/// A slice ends when it has so many bytes, however few series they are.
const SLICE_BYTES_MAX: usize = 256 * 1024;

/// Work of one slice when all is saved at once.
const WHOLE_SERIES: usize = 65_536;

/// Says that a series saw a sample in the open window; the other bits of the byte are its kind.
pub(super) const MARK_ACTIVE: u8 = 4;

/// How far saving has come.
#[derive(Clone, Copy, Debug)]
pub(in crate::aggregate) struct Saving {
    id: u64,
    /// Place in [`Kind::ALL`]; past it the busy names, then the end.
    stage: usize,
    /// First entry of the stage that has not been visited.
    from: u32,
    /// When it began.
    beat: u32,
    series: u64,
}

/// What a call of [`Aggregator::save_slice`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// Wrote some series; there are more.
    More,
    /// Wrote the last ones and the end.
    Done {
        /// Series in all slices.
        series: u64,
    },
    /// Nothing: the window ended, or the plan changed, since saving began. What was written is void.
    Void,
}

impl Aggregator {
    /// Begins to save all state and appends the header. False, and nothing is written, while a sweep is under way.
    ///
    /// `id` is a number that nobody outside knows; `number` is higher than that of any earlier save.
    pub fn save_begin(&mut self, id: u64, number: u64, now: Now, to: &mut Vec<u8>) -> bool {
        if self.closing.is_some() {
            return false;
        }
        let window = self.clock.open_window(now);
        Header { id, number, begun_wall_ns: now.wall_ns, window }.encode(to);
        self.saving = Some(Saving { id, stage: 0, from: 0, beat: table::beat(now), series: 0 });
        self.changed = false;
        true
    }

    /// Appends the next `series_max` series, less of large ones. A large timer counts for several.
    pub fn save_slice(&mut self, series_max: usize, to: &mut Vec<u8>) -> Slice {
        let Some(mut saving) = self.saving.take() else { return Slice::Void };
        let start = BlockHeader::reserve(to);
        if saving.stage == Kind::ALL.len() {
            let names = self.busy.save(to);
            BlockHeader::fill(Form::BusyNames, names, saving.id, start, to);
            let start = BlockHeader::reserve(to);
            to.extend_from_slice(&saving.series.to_le_bytes());
            BlockHeader::fill(Form::End, 1, saving.id, start, to);
            return Slice::Done { series: saving.series };
        }
        let before = saving.series;
        let mut budget = series_max.max(1);
        while budget > 0 && to.len() - start < SLICE_BYTES_MAX {
            let ended = match Kind::ALL.get(saving.stage) {
                Some(Kind::Counter) => self.save_kind::<Counter>(&mut saving, &mut budget, start, to),
                Some(Kind::Gauge) => self.save_kind::<Gauge>(&mut saving, &mut budget, start, to),
                Some(Kind::Timer) => self.save_kind::<Timer>(&mut saving, &mut budget, start, to),
                Some(Kind::Set) => self.save_kind::<Set>(&mut saving, &mut budget, start, to),
                None => break,
            };
            if ended {
                (saving.stage, saving.from) = (saving.stage + 1, 0);
            }
        }
        BlockHeader::fill(Form::Series, (saving.series - before) as u32, saving.id, start, to);
        self.saving = Some(saving);
        Slice::More
    }

    /// All state at once, for another process. Checkpoints go on as if there had been no such save: what
    /// [`Self::is_changed`] says stays. False, and nothing is written, while a sweep is under way.
    pub fn save_whole(&mut self, id: u64, now: Now, to: &mut Vec<u8>) -> bool {
        let changed = self.is_changed();
        let begun = self.save_begin(id, 0, now, to);
        while begun && self.save_slice(WHOLE_SERIES, to) == Slice::More {}
        self.changed = changed;
        begun
    }

    /// True when something came or was deleted since the last save that came to its end began: saving would give
    /// something else.
    pub fn is_changed(&self) -> bool {
        self.changed || self.saving.is_some()
    }

    /// The last save has not reached the disk, or nobody knows: there is something to save.
    pub fn save_again(&mut self) {
        self.changed = true;
    }

    /// Appends entries of one kind. True when there are no more.
    fn save_kind<S: State>(
        &self,
        saving: &mut Saving,
        budget: &mut usize,
        start: usize,
        to: &mut Vec<u8>,
    ) -> bool {
        let slab = &S::table(&self.tables).slab;
        while *budget > 0 && to.len() - start < SLICE_BYTES_MAX {
            let Some(id) = slab.next_taken(saving.from) else { return true };
            saving.from = id + 1;
            let entry = slab.get(id);
            *budget = budget.saturating_sub(entry.state.work());
            if entry.has(GHOST) {
                continue;
            }
            let active = if entry.has(ACTIVE) { MARK_ACTIVE } else { 0 };
            to.push(S::KIND as u8 | active);
            // A sample that came while saving is younger than the save.
            let age = (saving.beat.wrapping_sub(entry.seen) as i32).max(0);
            put_varint(age as u64, to);
            let key = entry.key.of(&self.keys.arena);
            put_varint(key.name.len() as u64, to);
            put_varint(key.tags.len() as u64, to);
            to.extend_from_slice(key.name);
            to.extend_from_slice(key.tags);
            entry.state.save(to);
            saving.series += 1;
        }
        false
    }
}
