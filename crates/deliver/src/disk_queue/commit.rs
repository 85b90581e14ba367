//! Group commit: which bytes are safe, which wait for a sync, and which nobody can answer for.
//!
//! The queue says when a sync is due and what to sync; the caller does it on whatever thread it likes and reports back.
//! Appending goes on meanwhile. A failed sync is final: the system may have dropped the pages and call them clean, so a
//! second sync that succeeds would prove nothing. The segment is closed and its records since the last good sync are in
//! doubt: they are still read and delivered if they can be, but never called safe.

use std::collections::VecDeque;
use std::ops::Range;

use model::{Disk, DiskError};

use super::Position;
use super::format::segment_name;

/// Most ranges of doubt that are told apart. Past it two neighbours become one, and what lies between them counts as
/// doubtful, too.
pub(super) const IN_DOUBT_RANGES_MAX: usize = 1024;

/// What is known about a block that was appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// It waits for a sync.
    Accepted,
    /// A sync came back good, or every copy has its outcome.
    Safe,
    /// A sync failed, or an earlier run wrote it: it may or may not be there after a loss of power.
    InDoubt,
}

/// What has to be synced now. Nothing else changes on disk until [`super::DiskQueue::on_synced`] is told.
#[must_use = "the queue waits for the result of each sync"]
#[derive(Debug)]
pub struct SyncJob<F> {
    /// (sequence number of the segment, file; none for one that an earlier run wrote).
    pub(super) segments: Vec<(u64, Option<F>)>,
    /// A name is new.
    pub(super) directory: bool,
    pub(super) cursor: Option<F>,
}

/// Why a segment was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSynced {
    /// It could not be opened now: nothing was tried.
    NotOpened(DiskError),
    /// The sync failed, which is final.
    Failed(DiskError),
}

/// How each part of a [`SyncJob`] ended.
#[must_use = "the queue waits for the result of each sync"]
#[derive(Debug)]
pub struct SyncDone {
    pub(super) segments: Vec<(u64, Result<(), NotSynced>)>,
    pub(super) directory: Result<(), DiskError>,
    pub(super) cursor: Result<(), DiskError>,
}

impl<F: Clone> SyncJob<F> {
    /// Does it. May take long; needs no lock on the queue.
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

/// What a sync settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synced {
    /// Everything before it is safe or in doubt: ask [`crate::queue::Queue::promise`].
    pub safe_up_to: Position,
    /// Records that came to be in doubt.
    pub in_doubt_records: u64,
    /// The cursor that is safe since now: no record before it comes back, whatever happens. None when no cursor was
    /// synced, or its sync failed.
    pub cursor: Option<Position>,
    /// The first thing that failed, to be told to the user.
    pub error: Option<DiskError>,
}

/// Records of a segment that are not synced.
#[derive(Clone, Debug)]
struct Dirty<F> {
    sequence: u64,
    /// None for a segment of an earlier run, which may have died before its last sync.
    file: Option<F>,
    records: Range<u64>,
    /// Its name is not synced, either.
    new: bool,
}

/// See the module's header.
#[derive(Debug)]
pub(super) struct Commit<F> {
    dirty: Vec<Dirty<F>>,
    /// When the oldest of them was appended.
    since_ns: Option<u64>,
    /// What the job that runs covers.
    running: Option<Vec<Dirty<F>>>,
    /// Some of them could not be opened and are tried again after a pause.
    pub(super) waits: bool,
    /// Sorted, apart from each other.
    in_doubt: VecDeque<Range<u64>>,
    end: u64,
}

impl<F: Clone> Commit<F> {
    /// What recovery found, (sequence number, records) of each segment, is synced with the first job: the run before
    /// may have been killed before it was.
    pub(super) fn new(found: impl Iterator<Item = (u64, Range<u64>)>, end: u64, now_ns: u64) -> Commit<F> {
        let dirty = |(sequence, records)| Dirty { sequence, file: None, records, new: true };
        let dirty: Vec<Dirty<F>> = found.map(dirty).collect();
        let since_ns = (!dirty.is_empty()).then_some(now_ns);
        Commit { dirty, since_ns, running: None, waits: false, in_doubt: VecDeque::new(), end }
    }

    /// A segment was begun; its first record comes next.
    pub(super) fn begun(&mut self, sequence: u64, file: &F) {
        let records = self.end..self.end;
        self.dirty.push(Dirty { sequence, file: Some(file.clone()), records, new: true });
    }

    /// One more record was written to the segment.
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

    /// When the oldest record that is not synced came. None while a job runs, or when there is none.
    pub(super) fn since_ns(&self) -> Option<u64> {
        if self.running.is_some() { None } else { self.since_ns }
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// What to sync: (segments, whether one has a new name).
    pub(super) fn begin(&mut self) -> (Vec<(u64, Option<F>)>, bool) {
        debug_assert!(self.running.is_none(), "one job at a time");
        let dirty = std::mem::take(&mut self.dirty);
        self.since_ns = None;
        let files = dirty.iter().map(|dirty| (dirty.sequence, dirty.file.clone())).collect();
        let directory = dirty.iter().any(|dirty| dirty.new);
        self.running = Some(dirty);
        (files, directory)
    }

    /// There was nothing to do after all.
    pub(super) fn cancel(&mut self) {
        self.running = None;
    }

    /// The job ended. Returns the segments that must be closed, with their files, and how many records came to be in
    /// doubt.
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
            // What came to the segment since then has the same fate.
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

    /// What could not be opened is due at `at_ns` as if it had come then.
    pub(super) fn again(&mut self, at_ns: u64) {
        self.waits = false;
        self.since_ns.get_or_insert(at_ns);
    }

    fn doubt(&mut self, records: Range<u64>) {
        if records.is_empty() {
            return;
        }
        // Not always the last: a segment that could not be opened at first fails after younger ones.
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

    /// Everything before it is safe or in doubt.
    pub(super) fn safe_up_to(&self) -> u64 {
        let waiting = self.running.iter().flatten().chain(&self.dirty);
        waiting
            .filter(|dirty| !dirty.records.is_empty())
            .map(|dirty| dirty.records.start)
            .min()
            .unwrap_or(self.end)
    }

    /// What is known about record `number`, when all before `settled` have their outcome.
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

    /// Forgets doubts about records that have their outcome.
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

    /// Two records in segment 1 and one in segment 2 are synced, a fourth came to segment 2 meanwhile.
    #[test]
    fn a_failed_sync_is_final_for_its_segment_only() {
        use Promise::{Accepted, InDoubt, Safe};
        // (segment 1, segment 2, directory, promises of the four, safe up to, closed)
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
    fn doubts_may_come_in_any_order() {
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
    fn doubts_are_bounded_merged_and_forgotten() {
        let mut commit = Commit::<u8>::new(std::iter::empty(), 0, 0);
        for sequence in 0..2 * (IN_DOUBT_RANGES_MAX as u64 + 10) {
            commit.begun(sequence, &0);
            commit.appended(sequence, &0, 0);
            let _files = commit.begin();
            let _failed = commit.finish(&done(&[(sequence, sequence % 2 == 0)], true));
            assert!(commit.in_doubt.len() <= IN_DOUBT_RANGES_MAX);
        }
        assert_eq!(commit.in_doubt.len(), IN_DOUBT_RANGES_MAX);
        assert_eq!(commit.in_doubt[0], 1..22, "neighbours became one");
        commit.forget(22);
        assert_eq!((commit.in_doubt[0].clone(), commit.promise(5, 22)), (23..24, Promise::Safe));
    }
}
