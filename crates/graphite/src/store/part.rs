//! Some of the series: those with points in memory, in the order in which they have to be written.
//!
//! A series has points that nobody writes yet (`points[writing..]`) and those of a job (`points[..writing]`), which stay readable until
//! they are in the file. While it has points it is in one of four places: `order` (oldest first), `creates` (no file yet, waits for a
//! limit of new files), `failed` (its file could not be written) or `jobs`. Newer points than those of its job put it into `order` as well;
//! such an entry is skipped when the points have been written with others meanwhile.
//! Invariant: [`Part::oldest_block`] is at most the number of the oldest block with a point in memory.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashTable;

use super::kept::{Headers, Kept};
use super::options::ATTEMPTS_MAX;

/// Bytes of a point in memory.
pub(super) const POINT_BYTES: u64 = size_of::<Packed>() as u64;

/// Longest pause between two attempts to write a file, in seconds.
const FAILED_PAUSE_MAX_S: i64 = 60;

/// A time and a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    pub(super) time: u32,
    value: [u8; 8],
}

impl Packed {
    pub(super) fn new(time: u32, value: f64) -> Packed {
        Packed { time, value: value.to_ne_bytes() }
    }

    pub(super) fn value(self) -> f64 {
        f64::from_ne_bytes(self.value)
    }
}

/// What is known of the file of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileState {
    /// Nobody has looked.
    Unknown,
    /// Nobody has looked, and its name was not known before: there is hardly one.
    New,
    /// It has none yet.
    Absent,
    /// It was written.
    Exists,
    /// It is damaged or foreign, and was left alone.
    Unusable,
}

/// Which times a file covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    /// Seconds in the past.
    pub(super) retention: u32,
    /// Seconds in the future.
    pub(super) future: u32,
}

impl Covered {
    /// All times.
    pub(super) const ALL: Covered = Covered { retention: u32::MAX, future: u32::MAX };
}

/// A series that had points since the start.
#[derive(Debug)]
pub(super) struct Series {
    /// Its name: place in the arena.
    at: u32,
    length: u16,
    pub(super) file: FileState,
    /// It is in `creates` or `failed`, with all of its points.
    waits: bool,
    /// Points of the last job: the next ones are about as many.
    last_count: u16,
    pub(super) covered: Covered,
    /// The job writes these first points.
    writing: u32,
    points: Vec<Packed>,
    /// What the next job need not read. A job takes it, and puts it back when all went well.
    pub(super) kept: Option<Box<Kept>>,
}

/// A series that has to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) series: u32,
    /// The block of its oldest point.
    pub(super) block: u64,
    /// When that one came, Unix seconds.
    pub(super) since: i64,
    /// How often its file could not be written.
    attempts: u32,
}

impl Due {
    /// No further attempt follows for a file that alone cannot be opened.
    pub(super) fn is_last_attempt(self) -> bool {
        self.attempts + 1 >= ATTEMPTS_MAX
    }
}

/// Where a series waits.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In `creates`, with its turn.
    Creates(u64),
    /// In `failed`, with the time of the next attempt.
    Failed(i64),
}

/// A series that was taken out of its part.
#[derive(Debug)]
pub(super) struct TakenOut {
    points: Vec<Packed>,
    file: FileState,
    covered: Covered,
}

/// See the module's header.
#[derive(Debug, Default)]
pub(super) struct Part {
    index: HashTable<u32>,
    series: Vec<Series>,
    /// Numbers of series that were removed. An entry of `order` can still have one: its next series is then written early.
    free: Vec<u32>,
    names: Vec<u8>,
    /// Bytes of `names` that belong to removed series.
    unused_names: usize,
    order: VecDeque<Due>,
    /// By the turn in which they came.
    creates: BTreeMap<u64, Due>,
    /// By the time of the next attempt.
    failed: BTreeMap<(i64, u32), Due>,
    /// Where each series is that waits.
    waiting: BTreeMap<u32, Place>,
    /// The turn of the next one in `creates`.
    turn: u64,
    jobs: Vec<Due>,
    /// Headers of the files of which something is kept.
    headers: Headers,
    /// Points in memory, and series that have some.
    held: (u64, u64),
}

impl Part {
    pub(super) fn find(&self, hash: u64, name: &[u8]) -> Option<u32> {
        self.index.find(hash, |at| self.name(*at) == name).copied()
    }

    pub(super) fn name(&self, series: u32) -> &[u8] {
        let Series { at, length, .. } = &self.series[series as usize];
        &self.names[*at as usize..][..usize::from(*length)]
    }

    pub(super) fn of(&mut self, series: u32) -> &mut Series {
        &mut self.series[series as usize]
    }

    /// Adds a series; its name is at most 65,535 bytes long. None when the part is full: it has 2^32 bytes of names.
    pub(super) fn add(&mut self, hash: u64, name: &[u8], rehash: impl Fn(&[u8]) -> u64) -> Option<u32> {
        let (at, length) = (u32::try_from(self.names.len()).ok()?, u16::try_from(name.len()).ok()?);
        at.checked_add(u32::from(length))?;
        let number = match self.free.pop() {
            Some(number) => number,
            None => u32::try_from(self.series.len()).ok()?,
        };
        self.names.extend_from_slice(name);
        let new = Series {
            at,
            length,
            file: FileState::Unknown,
            waits: false,
            last_count: 0,
            covered: Covered::ALL,
            writing: 0,
            points: Vec::new(),
            kept: None,
        };
        match self.series.get_mut(number as usize) {
            Some(freed) => *freed = new,
            None => self.series.push(new),
        }
        let (series, names) = (&self.series, &self.names);
        let name_of = |number: &u32| {
            let Series { at, length, .. } = &series[*number as usize];
            &names[*at as usize..][..usize::from(*length)]
        };
        self.index.insert_unique(hash, number, |number| rehash(name_of(number)));
        Some(number)
    }

    /// Adds a point; with `replaces`, in place of the last one if that has its time. Returns by how many bytes the memory of points grew.
    pub(super) fn push(&mut self, number: u32, point: Packed, block: u64, now: i64, replaces: bool) -> u64 {
        let series = &mut self.series[number as usize];
        let is_first = series.points.len() == series.writing as usize;
        if replaces
            && !is_first
            && let Some(last) = series.points.last_mut()
            && last.time == point.time
        {
            // The last value of a timestamp counts.
            *last = point;
            return 0;
        }
        let before = series.points.capacity();
        if before == series.points.len() {
            let more = if before == 0 { usize::from(series.last_count).max(4) } else { before.min(4096) };
            series.points.reserve_exact(more);
        }
        self.held.0 += 1;
        self.held.1 += u64::from(series.points.is_empty());
        series.points.push(point);
        let grown = (series.points.capacity() - before) as u64 * POINT_BYTES;
        if is_first {
            self.order.push_back(Due { series: number, block, since: now, attempts: 0 });
        }
        grown
    }

    /// Takes the next series whose points are older than `before`, or one that failed and may be tried again. `may_create` says whether
    /// a file may be created now.
    pub(super) fn take(&mut self, before: i64, now: i64, may_create: bool) -> Option<Due> {
        // A time that no pause leads to: the clock was set back.
        let is_due = |at: i64| at <= now || at > now.saturating_add(FAILED_PAUSE_MAX_S);
        if let Some(entry) = self.failed.first_entry().filter(|entry| is_due(entry.key().0)) {
            let due = entry.remove();
            return Some(self.begin(due));
        }
        if may_create && let Some((_turn, due)) = self.creates.pop_first() {
            return Some(self.begin(due));
        }
        // Points that came later than now came before the clock was set back.
        while let Some(due) = self.order.pop_front_if(|due| due.since <= before || due.since > now) {
            let series = &self.series[due.series as usize];
            if series.waits || series.points.is_empty() {
                continue;
            }
            if series.writing > 0 {
                // Its newer points are due, but a job writes the others: they are next when it has ended.
                self.order.push_front(due);
                return None;
            }
            return Some(self.begin(due));
        }
        None
    }

    fn begin(&mut self, due: Due) -> Due {
        let series = &mut self.series[due.series as usize];
        series.writing = series.points.len() as u32;
        if std::mem::take(&mut series.waits) {
            self.waiting.remove(&due.series);
        }
        self.jobs.push(due);
        due
    }

    /// Keeps what is known of the file of a series.
    pub(super) fn keep(&mut self, series: u32, kept: Option<Box<Kept>>) {
        self.series[series as usize].kept =
            kept.and_then(|mut kept| self.headers.share(&mut kept).then_some(kept));
    }

    /// The points of a job.
    pub(super) fn points_of_job(&self, due: Due) -> &[Packed] {
        let series = &self.series[due.series as usize];
        &series.points[..series.writing as usize]
    }

    /// All points of a series in memory, in the order in which they came.
    pub(super) fn points(&self, series: u32) -> &[Packed] {
        &self.series[series as usize].points
    }

    fn end(&mut self, due: Due) {
        if let Some(at) = self.jobs.iter().position(|job| job.series == due.series) {
            self.jobs.swap_remove(at);
        }
    }

    /// The points of a job are in the file, or have another outcome. Returns the bytes that are free.
    pub(super) fn done(&mut self, due: Due, file: FileState) -> u64 {
        self.end(due);
        let series = &mut self.series[due.series as usize];
        let count = std::mem::take(&mut series.writing) as usize;
        series.last_count = u16::try_from(count).unwrap_or(u16::MAX);
        series.file = file;
        let before = series.points.capacity();
        self.held.0 -= count as u64;
        if series.points.len() == count {
            self.held.1 -= u64::from(count > 0);
            series.points = Vec::new();
        } else {
            series.points.drain(..count);
        }
        (before - series.points.capacity()) as u64 * POINT_BYTES
    }

    /// The file could not be written: its points stay, and are tried again after a pause that doubles up to a minute.
    pub(super) fn failed(&mut self, due: Due, now: i64) {
        self.wait(due);
        let pause = (1_i64 << due.attempts.min(6)).min(FAILED_PAUSE_MAX_S);
        let due = Due { attempts: due.attempts.saturating_add(1), ..due };
        self.try_again(due, now.saturating_add(pause));
    }

    fn try_again(&mut self, due: Due, at: i64) {
        self.failed.insert((at, due.series), due);
        self.waiting.insert(due.series, Place::Failed(at));
    }

    /// The series has no file, and no file may be created now.
    pub(super) fn wait_for_create(&mut self, due: Due) {
        self.wait(due);
        self.series[due.series as usize].file = FileState::Absent;
        self.creates.insert(self.turn, due);
        self.waiting.insert(due.series, Place::Creates(self.turn));
        self.turn += 1;
    }

    fn wait(&mut self, due: Due) {
        self.end(due);
        let series = &mut self.series[due.series as usize];
        (series.writing, series.waits) = (0, true);
    }

    /// Forgets a series. Returns its points and the bytes that are free; none while a job writes it.
    pub(super) fn remove(&mut self, hash: u64, name: &[u8]) -> Option<(u64, u64)> {
        if self.find(hash, name).is_none() {
            return Some((0, 0));
        }
        let TakenOut { points, .. } = self.take_out(hash, name)?;
        Some((points.len() as u64, points.capacity() as u64 * POINT_BYTES))
    }

    /// Takes a series out, with its points. None if there is none, or while a job writes it.
    pub(super) fn take_out(&mut self, hash: u64, name: &[u8]) -> Option<TakenOut> {
        let number = self.find(hash, name)?;
        let series = &mut self.series[number as usize];
        if series.writing > 0 {
            return None;
        }
        let points = std::mem::take(&mut series.points);
        series.kept = None;
        let taken = TakenOut { points, file: series.file, covered: series.covered };
        self.held.0 -= taken.points.len() as u64;
        self.held.1 -= u64::from(!taken.points.is_empty());
        if std::mem::take(&mut series.waits) {
            let _due = match self.waiting.remove(&number) {
                Some(Place::Creates(turn)) => self.creates.remove(&turn),
                Some(Place::Failed(at)) => self.failed.remove(&(at, number)),
                None => None,
            };
        }
        if let Ok(entry) = self.index.find_entry(hash, |at| *at == number) {
            entry.remove();
        }
        self.free.push(number);
        self.unused_names += usize::from(std::mem::take(&mut self.series[number as usize].length));
        // It costs as much as there are places: not for a few bytes of names among many free places.
        if self.unused_names > self.names.len() / 2 && self.unused_names >= self.series.len() {
            self.compact_names();
        }
        Some(taken)
    }

    /// Gives a new series the points and the file of another one. They are due at once, and stay those of `due`'s block.
    pub(super) fn put_in(&mut self, number: u32, taken: TakenOut, due: Option<Due>) {
        let TakenOut { points, file, covered } = taken;
        let series = &mut self.series[number as usize];
        (series.file, series.covered) = (file, covered);
        let Some(due) = due.filter(|_| !points.is_empty()) else { return };
        self.held.0 += points.len() as u64;
        self.held.1 += 1;
        (series.points, series.waits) = (points, true);
        self.try_again(Due { series: number, attempts: 0, ..due }, due.since);
    }

    /// A block that is not younger than the oldest one of a series, and when it came. None without points. No job writes the series.
    pub(super) fn due_of(&self, number: u32) -> Option<Due> {
        if self.series[number as usize].points.is_empty() {
            return None;
        }
        match self.waiting.get(&number) {
            Some(Place::Creates(turn)) => self.creates.get(turn).copied(),
            Some(Place::Failed(at)) => self.failed.get(&(*at, number)).copied(),
            // It is in `order`, which is sorted: looking for it would cost as much as there are series.
            None => self.order.front().map(|first| Due { series: number, ..*first }),
        }
    }

    /// A job writes the series.
    pub(super) fn is_writing(&self, number: u32) -> bool {
        self.series[number as usize].writing > 0
    }

    fn compact_names(&mut self) {
        let mut names = Vec::with_capacity(self.names.len() - self.unused_names);
        for series in &mut self.series {
            let name = &self.names[series.at as usize..][..usize::from(series.length)];
            series.at = names.len() as u32;
            names.extend_from_slice(name);
        }
        (self.names, self.unused_names) = (names, 0);
    }

    /// The oldest block with points in memory.
    pub(super) fn oldest_block(&mut self) -> Option<u64> {
        // What is left of series that were removed, or written with others, does not hold up the queue.
        let series = &self.series;
        let is_over = |due: &Due| {
            let series = &series[due.series as usize];
            series.points.is_empty() || series.waits
        };
        while self.order.pop_front_if(|due| is_over(due)).is_some() {}
        let first = self.order.front().map(|due| due.block);
        // Only `order` is sorted: a series that failed, and then waits for a limit, comes behind newer ones.
        let others =
            self.jobs.iter().chain(self.creates.values()).chain(self.failed.values()).map(|due| due.block);
        first.into_iter().chain(others).min()
    }

    /// Looks again at files that could not be used when points of their series come.
    pub(super) fn forget_unusable(&mut self) {
        let unusable = self.series.iter_mut().filter(|series| series.file == FileState::Unusable);
        unusable.for_each(|series| series.file = FileState::Unknown);
    }

    /// Points in memory, and series that have some.
    pub(super) fn pending(&self) -> (u64, u64) {
        self.held
    }

    /// Places of series and bytes of names, in use or not.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.series.len(), self.names.len())
    }
}
