//! Group commit: which records are synced, which wait for a sync, and which are in doubt.
//!
//! The queue says when a sync is due and what to sync; the caller performs it on a thread of its own and reports the
//! result. Appending continues meanwhile. A failed sync is final: the kernel may have dropped the dirty pages and
//! marked them clean, so a second sync that succeeds would prove nothing. The segment is closed, and its records
//! since the last good sync are in doubt: they are delivered if they can be read, but never reported as safe.

use std::collections::VecDeque;
use std::ops::Range;

use model::{Disk, DiskError};

use super::format::segment_name;
use super::settle::Position;

/// Most ranges in doubt that are tracked one by one. Past it two neighbours are merged, and the records between them
/// count as in doubt, too.
pub(super) const IN_DOUBT_RANGES_MAX: usize = 1024;

/// Durability of a block that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// It waits for a sync.
    Accepted,
    /// It was synced, or every copy has its outcome.
    Safe,
    /// A sync failed, or an earlier run wrote it: a loss of power may lose it.
    InDoubt,
}

/// A sync to perform now. Nothing else changes on disk until the result is reported to [`super::DiskQueue::on_synced`].
#[must_use = "the result of each sync must be reported to the queue"]
#[derive(Debug)]
pub struct SyncJob<F> {
    /// (sequence number of the segment, file; none for a segment of an earlier run).
    pub(super) segments: Vec<(u64, Option<F>)>,
    /// Sync the directory as well: it has a new file.
    pub(super) directory: bool,
    pub(super) cursor: Option<F>,
}

/// Why a segment was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSynced {
    /// It could not be opened now; no sync was tried.
    NotOpened(DiskError),
    /// The sync failed, which is final.
    Failed(DiskError),
}

/// Result of each part of a [`SyncJob`].
#[must_use = "the result of each sync must be reported to the queue"]
#[derive(Debug)]
pub struct SyncDone {
    pub(super) segments: Vec<(u64, Result<(), NotSynced>)>,
    pub(super) directory: Result<(), DiskError>,
    pub(super) cursor: Result<(), DiskError>,
}

impl<F: Clone> SyncJob<F> {
    /// Performs the sync. It may take long and needs no lock on the queue.
    pub fn perform<D: Disk<File = F>>(self, disk: &D) -> SyncDone {
        let sync = |(sequence, file): (u64, Option<F>)| {
            let file = file.map_or_else(|| disk.open(&segment_name(sequence)), Ok);
            let file = file.map_err(|error| match error.passes() {
                true => NotSynced::NotOpened(error),
                false => NotSynced::Failed(error),
            });
            (sequence, file.and_then(|file| disk.sync(&file).map_err(NotSynced::Failed)))
        };
        let segments = self.segments.into_iter().map(sync).collect();
        let cursor = self.cursor.map_or(Ok(()), |file| disk.sync(&file));
        let directory = if self.directory { disk.sync_directory() } else { Ok(()) };
        SyncDone { segments, directory, cursor }
    }
}

/// Result of a sync for the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synced {
    /// Every record before it is safe or in doubt: ask [`crate::queue::Queue::promise`].
    pub safe_up_to: Position,
    /// Number of records that are in doubt since this sync.
    pub in_doubt_records: u64,
    /// The cursor synced now: no record before it is delivered again after a loss of power. None when no cursor was
    /// synced, or its sync failed.
    pub cursor: Option<Position>,
    /// The first error, to be logged.
    pub error: Option<DiskError>,
}

/// Records of a segment that are not synced.
#[derive(Clone, Debug)]
struct Dirty<F> {
    sequence: u64,
    /// None for a segment of an earlier run, which may have died before its last sync.
    file: Option<F>,
    records: Range<u64>,
    /// Its name in the directory is not synced, either.
    new: bool,
}

/// See the module's header.
#[derive(Debug)]
pub(super) struct Commit<F> {
    dirty: Vec<Dirty<F>>,
    /// When the oldest dirty record was appended.
    since_ns: Option<u64>,
    /// The records that the running job covers.
    running: Option<Vec<Dirty<F>>>,
    /// Some segments could not be opened and are tried again after a pause.
    pub(super) waits: bool,
    /// Sorted, without overlaps or neighbours.
    in_doubt: VecDeque<Range<u64>>,
    end: u64,
}

impl<F: Clone> Commit<F> {
    /// The segments found at recovery, (sequence number, records) of each, are synced with the first job: the earlier
    /// run may have been killed before it synced them.
    pub(super) fn new(found: impl Iterator<Item = (u64, Range<u64>)>, end: u64, now_ns: u64) -> Commit<F> {
        let dirty = |(sequence, records)| Dirty { sequence, file: None, records, new: true };
        let dirty: Vec<Dirty<F>> = found.map(dirty).collect();
        let since_ns = (!dirty.is_empty()).then_some(now_ns);
        Commit { dirty, since_ns, running: None, waits: false, in_doubt: VecDeque::new(), end }
    }

    /// A segment was created; its first record comes next.
    pub(super) fn begun(&mut self, sequence: u64, file: &F) {
        let records = self.end..self.end;
        self.dirty.push(Dirty { sequence, file: Some(file.clone()), records, new: true });
    }

    /// A record was written to the segment.
    pub(super) fn appended(&mut self, sequence: u64, file: &F, now_ns: u64) {
        let first = self.end;
        self.end += 1;
        self.since_ns.get_or_insert(now_ns);
        match self.dirty.last_mut() {
            Some(last) if last.sequence == sequence => last.records.end = self.end,
            _ => self.dirty.push(Dirty {
                sequence,
                file: Some(file.clone()),
                records: first..self.end,
                new: false,
            }),
        }
    }

    /// When the oldest dirty record was appended. None while a job runs, or without dirty records.
    pub(super) fn since_ns(&self) -> Option<u64> {
        if self.running.is_some() { None } else { self.since_ns }
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// What to sync: (segments, whether one of them has a new name).
    pub(super) fn begin(&mut self) -> (Vec<(u64, Option<F>)>, bool) {
        debug_assert!(self.running.is_none(), "one job at a time");
        let dirty = std::mem::take(&mut self.dirty);
        self.since_ns = None;
        let files = dirty.iter().map(|dirty| (dirty.sequence, dirty.file.clone())).collect();
        let directory = dirty.iter().any(|dirty| dirty.new);
        self.running = Some(dirty);
        (files, directory)
    }

    /// There was nothing to sync after all.
    pub(super) fn cancel(&mut self) {
        self.running = None;
    }

    /// The job ended. Returns the segments to close, with their files, and the number of records that are in doubt now.
    pub(super) fn finish(&mut self, done: &SyncDone) -> (Vec<(u64, Option<F>)>, u64) {
        let (mut failed, mut doubtful) = (Vec::new(), 0);
        let mut again = Vec::new();
        for ran in self.running.take().unwrap_or_default() {
            let own = done.segments.iter().find(|(sequence, _)| *sequence == ran.sequence);
            if matches!(own, Some((_, Err(NotSynced::NotOpened(_))))) {
                again.push(ran);
                continue;
            }
            let good = own.is_some_and(|(_, result)| result.is_ok()) && (!ran.new || done.directory.is_ok());
            if good {
                continue;
            }
            let mut records = ran.records;
            // Records written to the segment since then are in doubt as well.
            self.dirty.retain(|dirty| {
                let same = dirty.sequence == ran.sequence;
                if same {
                    records.end = records.end.max(dirty.records.end);
                }
                !same
            });
            doubtful += records.end - records.start;
            self.doubt(records);
            failed.push((ran.sequence, ran.file));
        }
        if self.dirty.is_empty() {
            self.since_ns = None;
        }
        self.waits = !again.is_empty();
        again.append(&mut self.dirty);
        self.dirty = again;
        (failed, doubtful)
    }

    /// Segments that could not be opened are due again at `at_ns`.
    pub(super) fn again(&mut self, at_ns: u64) {
        self.waits = false;
        self.since_ns.get_or_insert(at_ns);
    }

    fn doubt(&mut self, records: Range<u64>) {
        if records.is_empty() {
            return;
        }
        // Not always the last range: a segment that could not be opened at first fails after younger ones.
        let first = self.in_doubt.partition_point(|range| range.end < records.start);
        let after = self.in_doubt.partition_point(|range| range.start <= records.end);
        let joined = self
            .in_doubt
            .drain(first..after)
            .fold(records, |joined, range| joined.start.min(range.start)..joined.end.max(range.end));
        self.in_doubt.insert(first, joined);
        if self.in_doubt.len() > IN_DOUBT_RANGES_MAX
            && let Some(first) = self.in_doubt.pop_front()
        {
            self.in_doubt[0].start = first.start;
        }
    }

    /// Every record before it is safe or in doubt.
    pub(super) fn safe_up_to(&self) -> u64 {
        let waiting = self.running.iter().flatten().chain(&self.dirty);
        waiting
            .filter(|dirty| !dirty.records.is_empty())
            .map(|dirty| dirty.records.start)
            .min()
            .unwrap_or(self.end)
    }

    /// Durability of record `number`, when all before `settled` have their outcome.
    pub(super) fn promise(&self, number: u64, settled: u64) -> Promise {
        if number < settled {
            return Promise::Safe;
        }
        let after = self.in_doubt.partition_point(|range| range.end <= number);
        if self.in_doubt.get(after).is_some_and(|range| range.contains(&number)) {
            return Promise::InDoubt;
        }
        if number < self.safe_up_to() { Promise::Safe } else { Promise::Accepted }
    }

    /// Forgets ranges in doubt whose records have their outcome.
    pub(super) fn forget(&mut self, settled: u64) {
        while self.in_doubt.pop_front_if(|range| range.end <= settled).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(segments: &[(u64, bool)], directory: bool) -> SyncDone {
        let error = DiskError::Io { code: 5 };
        let result = |good: bool| if good { Ok(()) } else { Err(error) };
        SyncDone {
            segments: segments
                .iter()
                .map(|(sequence, good)| (*sequence, result(*good).map_err(NotSynced::Failed)))
                .collect(),
            directory: result(directory),
            cursor: Ok(()),
        }
    }

    /// Two records in segment 1 and one in segment 2 are synced; a fourth was appended to segment 2 meanwhile.
    #[test]
    fn a_failed_sync_is_final_for_its_segment_only() {
        use Promise::{Accepted, InDoubt, Safe};
        // (segment 1, segment 2, directory, durability of the four, safe up to, closed)
        let table = [
            (true, true, true, [Safe, Safe, Safe, Accepted], 3, vec![]),
            (false, true, true, [InDoubt, InDoubt, Safe, Accepted], 3, vec![1]),
            (true, false, true, [Safe, Safe, InDoubt, InDoubt], 4, vec![2]),
            (true, true, false, [InDoubt; 4], 4, vec![1, 2]),
            (false, false, true, [InDoubt; 4], 4, vec![1, 2]),
        ];
        for (first, second, directory, promises, safe, closed) in table {
            let mut commit = Commit::<u8>::new(std::iter::empty(), 0, 0);
            commit.begun(1, &1);
            commit.appended(1, &1, 10);
            commit.appended(1, &1, 11);
            commit.begun(2, &2);
            commit.appended(2, &2, 12);
            assert_eq!((commit.since_ns(), commit.safe_up_to()), (Some(10), 0));
            let (files, new_names) = commit.begin();
            assert_eq!((files.len(), new_names), (2, true));
            commit.appended(2, &2, 13);
            assert_eq!((commit.since_ns(), commit.safe_up_to()), (None, 0), "while the job runs");
            let (failed, _) = commit.finish(&done(&[(1, first), (2, second)], directory));
            let failed: Vec<u64> = failed.iter().map(|(sequence, _)| *sequence).collect();
            assert_eq!(failed, closed);
            let found: Vec<Promise> = (0..4).map(|number| commit.promise(number, 0)).collect();
            assert_eq!((found, commit.safe_up_to()), (promises.to_vec(), safe));
            assert_eq!(commit.since_ns(), (safe == 3).then_some(13));
        }
    }

    #[test]
    fn ranges_in_doubt_may_be_added_in_any_order() {
        let ranges = [0..2, 2..3, 5..6, 8..9, 0..9, 4..8];
        for first in 0..ranges.len() {
            for second in 0..ranges.len() {
                for third in 0..ranges.len() {
                    let order = [first, second, third].map(|at| ranges[at].clone());
                    let mut commit = Commit::<u8>::new(std::iter::empty(), 10, 0);
                    order.iter().for_each(|range| commit.doubt(range.clone()));
                    for number in 0..10 {
                        let is_in_doubt = order.iter().any(|range| range.contains(&number));
                        let want = if is_in_doubt { Promise::InDoubt } else { Promise::Safe };
                        assert_eq!(commit.promise(number, 0), want, "{number} of {order:?}");
                    }
                    let mut gaps = commit.in_doubt.iter().zip(commit.in_doubt.iter().skip(1));
                    assert!(gaps.all(|(one, next)| one.end < next.start), "{:?}", commit.in_doubt);
                }
            }
        }
    }

    #[test]
    fn ranges_in_doubt_are_bounded_merged_and_forgotten() {
        let mut commit = Commit::<u8>::new(std::iter::empty(), 0, 0);
        for sequence in 0..2 * (IN_DOUBT_RANGES_MAX as u64 + 10) {
            commit.begun(sequence, &0);
            commit.appended(sequence, &0, 0);
            let _files = commit.begin();
            let _failed = commit.finish(&done(&[(sequence, sequence % 2 == 0)], true));
            assert!(commit.in_doubt.len() <= IN_DOUBT_RANGES_MAX);
        }
        assert_eq!(commit.in_doubt.len(), IN_DOUBT_RANGES_MAX);
        assert_eq!(commit.in_doubt[0], 1..22, "neighbours are merged");
        commit.forget(22);
        assert_eq!((commit.in_doubt[0].clone(), commit.promise(5, 22)), (23..24, Promise::Safe));
    }
}
