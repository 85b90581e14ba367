//! Saves the state: a header, then a block of some series in each call.

use model::{Kind, Now};

use super::format::{BlockHeader, BlockKind, Header, MARK_ACTIVE};
use super::saving::Saving;
use crate::aggregate::Aggregator;
use crate::aggregate::counters::Counter;
use crate::aggregate::entry::{self, ACTIVE, TOMBSTONE};
use crate::aggregate::gauges::Gauge;
use crate::aggregate::sets::Set;
use crate::aggregate::table::Stored;
use crate::aggregate::timers::Timer;
use crate::bytes::put_varint;

/// A slice ends at this size, even if it has few series.
const SLICE_BYTES_MAX: usize = 256 * 1024;

/// Series per slice when everything is saved at once.
const WHOLE_SERIES: usize = 65_536;

/// Result of [`Aggregator::save_slice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// Some series were written; more follow.
    More,
    /// The last series and the end block were written.
    Done {
        /// Series in all slices.
        series: u64,
    },
    /// Nothing was written: the window ended, or the plan changed, since saving began. The slices before are void.
    Void,
}

impl Aggregator {
    /// Begins a save and appends the header. Returns false and writes nothing while a sweep is under way.
    ///
    /// `id` is a number unknown to outsiders. `number` is higher than that of any earlier save.
    pub fn save_begin(&mut self, id: u64, number: u64, now: Now, to: &mut Vec<u8>) -> bool {
        if self.closing.is_some() {
            return false;
        }
        let window = self.clock.open_window(now);
        Header { id, number, begun_wall_ns: now.wall_ns, window }.encode(to);
        self.saving = Some(Saving { id, stage: 0, from: 0, beat: entry::beat(now), series: 0 });
        self.changed = false;
        true
    }

    /// Appends the next `series_max` series, or fewer if they are large. A large timer counts as several series.
    pub fn save_slice(&mut self, series_max: usize, to: &mut Vec<u8>) -> Slice {
        let Some(mut saving) = self.saving.take() else { return Slice::Void };
        let start = BlockHeader::reserve(to);
        if saving.stage == Kind::ALL.len() {
            let names = self.busy.save(to);
            BlockHeader::fill(BlockKind::BusyNames, names, saving.id, start, to);
            let start = BlockHeader::reserve(to);
            to.extend_from_slice(&saving.series.to_le_bytes());
            BlockHeader::fill(BlockKind::End, 1, saving.id, start, to);
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
        BlockHeader::fill(BlockKind::Series, (saving.series - before) as u32, saving.id, start, to);
        self.saving = Some(saving);
        Slice::More
    }

    /// Saves everything at once, for another process. It does not affect checkpoints: [`Self::is_changed`] stays as
    /// it is. Returns false and writes nothing while a sweep is under way.
    pub fn save_whole(&mut self, id: u64, now: Now, to: &mut Vec<u8>) -> bool {
        let changed = self.is_changed();
        let begun = self.save_begin(id, 0, now, to);
        while begun && self.save_slice(WHOLE_SERIES, to) == Slice::More {}
        self.changed = changed;
        begun
    }

    /// True when a sample arrived or a series was deleted since the last complete save began: a new save would
    /// differ.
    pub fn is_changed(&self) -> bool {
        self.changed || self.saving.is_some()
    }

    /// Requests another save, because the last one may not have reached the disk.
    pub fn save_again(&mut self) {
        self.changed = true;
    }

    /// Appends entries of one kind. True when no entry is left.
    fn save_kind<S: Stored>(
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
            if entry.has(TOMBSTONE) {
                continue;
            }
            let active = if entry.has(ACTIVE) { MARK_ACTIVE } else { 0 };
            to.push(S::KIND as u8 | active);
            // A sample that arrived during the save is newer than the save.
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
