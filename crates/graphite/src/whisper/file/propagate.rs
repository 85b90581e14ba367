//! Fine points to coarse ones (spec graphite §5.6): all coarse intervals that an update touches, together.

use model::{DiskError, TreeFile};

use super::open::WhisperFile;
use super::ring::{self, aligned};
use super::set_order;
use crate::whisper::format::{Archive, Fold, Header};

/// Memory of propagations, for use again.
#[derive(Debug, Default)]
pub(super) struct Level {
    /// The coarse intervals that are touched, ascending, with the aggregates to write.
    aggregates: Vec<(i64, Option<f64>)>,
    run: Vec<u8>,
    chunk: Vec<u8>,
}

impl<F: TreeFile> WhisperFile<F> {
    /// Propagates from an archive to the coarser ones, until one gets no value. `times` are the times of the written
    /// points, ascending. Returns the number of coarse points written.
    pub(super) fn propagate(
        &mut self,
        written: usize,
        times: impl Iterator<Item = i64> + Clone,
        level: &mut Level,
    ) -> Result<u64, DiskError> {
        let mut all = 0;
        for coarse in written + 1..self.header().archives().len() {
            let archive = self.archive(coarse);
            level.aggregates.clear();
            for time in times.clone() {
                let interval = aligned(time, archive.step);
                // Interval 0 is what an empty slot has.
                if interval > 0 && level.aggregates.last().is_none_or(|(last, _)| *last != interval) {
                    level.aggregates.push((interval, None));
                }
            }
            self.aggregate(coarse, level)?;
            let points = self.write_aggregates(coarse, level)?;
            if points == 0 {
                break;
            }
            all += points;
        }
        Ok(all)
    }

    /// Aggregates the points of the finer archive; neighbouring intervals are read together.
    fn aggregate(&mut self, coarse: usize, level: &mut Level) -> Result<(), DiskError> {
        let header = self.header().clone();
        let (archive, fine) = (self.archive(coarse), self.archive(coarse - 1));
        let step = i64::from(archive.step);
        let base = self.base(coarse - 1)?;
        let Level { aggregates, chunk, .. } = level;
        let mut rest = &mut aggregates[..];
        while let Some((start, _)) = rest.first().copied() {
            let neighbours = (start..).step_by(archive.step as usize);
            let length =
                rest.iter().zip(neighbours).take_while(|((interval, _), next)| interval == next).count();
            let (run, behind) = rest.split_at_mut(length);
            debug_assert_eq!(run.last().map(|(last, _)| *last), Some(start + (length as i64 - 1) * step));
            // In an archive without a base the first slot is taken, as the original does.
            let slot = if base == 0 { 0 } else { ring::slot(fine, base, start) };
            aggregate_run(&self.file, &header, fine, archive, slot, run, chunk)?;
            rest = behind;
        }
        Ok(())
    }

    /// Writes the aggregates; neighbouring ones together. Returns their number.
    fn write_aggregates(&mut self, coarse: usize, level: &mut Level) -> Result<u64, DiskError> {
        let Level { aggregates, run, .. } = level;
        let (Some((first, _)), Some((last, _))) = (aggregates.first(), aggregates.last()) else {
            return Ok(0);
        };
        if aggregates.iter().all(|(_, value)| value.is_none()) {
            return Ok(0);
        }
        let points = aggregates.iter().filter(|(_, value)| value.is_some()).count();
        let archive = self.archive(coarse);
        let mut base = self.base(coarse)?;
        let laps = last - first >= archive.retention();
        if base == 0 || laps {
            base = ordered_as_the_original(archive, base, aggregates);
        }
        run.clear();
        let mut start = 0;
        let mut next = None;
        for (interval, value) in aggregates.iter() {
            let Some(value) = value else { continue };
            if next != Some(*interval) {
                if next.is_some() {
                    ring::write(&self.file, archive, ring::slot(archive, base, start), run)?;
                    run.clear();
                }
                start = *interval;
            }
            ring::push_point(run, *interval, *value);
            next = Some(interval + i64::from(archive.step));
        }
        ring::write(&self.file, archive, ring::slot(archive, base, start), run)?;
        self.remember(coarse, base);
        Ok(points as u64)
    }
}

/// Aggregates a run of neighbouring coarse intervals, whose fine points begin at `slot`.
fn aggregate_run(
    file: &impl TreeFile,
    header: &Header,
    fine: Archive,
    coarse: Archive,
    slot: u32,
    run: &mut [(i64, Option<f64>)],
    chunk: &mut Vec<u8>,
) -> Result<(), DiskError> {
    let Some((start, _)) = run.first().copied() else { return Ok(()) };
    let each = coarse.step / fine.step;
    let mut expected = start;
    let mut fold = Fold::new(header.method);
    let (mut left, mut place) = (each, 0);
    let count = u64::from(each) * run.len() as u64;
    ring::read(file, fine, slot, count, chunk, |time, value| {
        if i64::from(time) == expected {
            fold.add(value);
        }
        expected += i64::from(fine.step);
        left -= 1;
        if left == 0 {
            run[place].1 = fold.value_if_enough(each, header.x_files_factor);
            (left, place, fold) = (each, place + 1, Fold::new(header.method));
        }
    })
}

/// Where the order of the writes matters: in an archive without points the first one decides about all slots, and of
/// several intervals with one slot the last one stays. Removes the others, and returns the base.
fn ordered_as_the_original(archive: Archive, base: u32, aggregates: &mut [(i64, Option<f64>)]) -> u32 {
    let order = set_order::of(aggregates.iter().map(|(interval, _)| interval.unsigned_abs()));
    let index = |interval: u64| {
        let found = aggregates.binary_search_by_key(&interval, |(interval, _)| interval.unsigned_abs());
        found.expect("the set has these intervals")
    };
    let order: Vec<usize> = order.into_iter().map(index).filter(|at| aggregates[*at].1.is_some()).collect();
    let first = order.first().map_or(0, |at| aggregates[*at].0);
    let base = if base == 0 { u32::try_from(first).expect("touched by times of 32 bits") } else { base };
    let slot_of = |at: usize| ring::slot(archive, base, aggregates[at].0);
    let mut by_slot: Vec<(u32, usize, usize)> =
        order.iter().enumerate().map(|(turn, at)| (slot_of(*at), turn, *at)).collect();
    by_slot.sort_unstable();
    for pair in by_slot.windows(2) {
        let ((slot, _, at), (next_slot, _, _)) = (pair[0], pair[1]);
        if slot == next_slot {
            aggregates[at].1 = None;
        }
    }
    base
}
