//! The files of checkpoints: two generations for each aggregation, and the one that is being written.
//!
//! `NAME-0.checkpoint`, `NAME-1.checkpoint` and `NAME.checkpoint.new`. Names of transforms are valid file names: config
//! checks that.

use std::collections::BTreeSet;

use config::plan::TransformPlan;
use model::{Disk, DiskError, Now};
use process::aggregate::checkpoint::{LastFlush, NotRestored, Peeked, Restored, peek};

use super::streams;
use super::writer::WriteError;
use crate::{RestoredStreams, Shard};

/// Largest file that is written, or read.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Bytes that are enough to identify a file.
const PEEK_BYTES: u64 = 4096;

/// How often a read is tried before its error counts: a transient error is not damage.
const READ_TRIES: usize = 3;

/// More checkpoints than any aggregation makes: added to the last known number where a file that may have a higher one
/// cannot be opened.
const NUMBER_LEAP: u64 = 1 << 32;

/// One of the two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its name.
    pub file: String,
    /// Its header. A file that cannot be read counts as one with a damaged header.
    pub peeked: Result<Peeked, NotRestored>,
}

fn file_of(name: &str, generation: usize) -> String {
    format!("{name}-{generation}.checkpoint")
}

fn half_of(name: &str) -> String {
    format!("{name}.checkpoint.new")
}

/// The existing generations, the youngest first.
///
/// # Errors
/// When a file's state cannot be known now, see [`DiskError::passes`]: it may be the youngest.
pub fn generations<D: Disk>(disk: &D, name: &str) -> Result<Vec<Generation>, DiskError> {
    let mut found = Vec::new();
    for file in [file_of(name, 0), file_of(name, 1)] {
        let peeked = match tried(|| read_up_to(disk, &file, PEEK_BYTES)) {
            Ok(begin) => peeked(&begin),
            Err(DiskError::NotFound) => continue,
            Err(error) if error.passes() => return Err(error),
            Err(_) => Err(NotRestored::Header),
        };
        found.push(Generation { file, peeked });
    }
    found.sort_by_key(|generation| std::cmp::Reverse(generation.peeked.map_or(0, |peeked| peeked.number)));
    Ok(found)
}

/// The header of either kind of checkpoint.
fn peeked(begin: &[u8]) -> Result<Peeked, NotRestored> {
    match peek(begin) {
        Err(NotRestored::NotSavedState) => streams::Header::decode(begin).map(streams::Header::peeked),
        peeked => peeked,
    }
}

/// The result after retries: a failed read is tried again.
fn tried<T>(read: impl Fn() -> Result<T, DiskError>) -> Result<T, DiskError> {
    let failed = |result: &Result<T, DiskError>| matches!(result, Err(DiskError::Io { .. }));
    (1..READ_TRIES).map(|_| read()).find(|result| !failed(result)).unwrap_or_else(&read)
}

/// Names of aggregations that have a checkpoint here.
pub fn names<D: Disk>(disk: &D) -> BTreeSet<String> {
    let files = disk.list().unwrap_or_default();
    let names = files.iter().filter_map(|file| {
        let (name, generation) = file.strip_suffix(".checkpoint")?.rsplit_once('-')?;
        matches!(generation, "0" | "1").then(|| name.to_owned())
    });
    names.collect()
}

/// Number of the next checkpoint of an aggregation: greater than those of all readable files and than the one in its
/// `noted` note. Where a file cannot be opened, greater than any number that it may have.
pub fn next_number<D: Disk>(disk: &D, name: &str, noted: Option<u64>) -> u64 {
    let Ok(found) = generations(disk, name) else { return noted.unwrap_or(0).saturating_add(NUMBER_LEAP) };
    let numbers = found.iter().filter_map(|generation| Some(generation.peeked.ok()?.number));
    numbers.chain(noted).max().map_or(1, |number| number.saturating_add(1))
}

/// Starts an aggregation in a new process, before the first batch: from the youngest usable file, whose name is
/// returned with what it held; otherwise after the last label. An aggregation without checkpoints leaves no files.
/// `ignored` is called with each unusable file and the reason. `disk` is none when there is nothing to read.
///
/// # Errors
/// When a file's state cannot be known now, see [`generations()`]: nothing has started, and the caller tries again.
pub fn begin<D: Disk>(
    disk: Option<&D>,
    shard: &mut Shard,
    transform: &TransformPlan,
    last: LastFlush,
    now: Now,
    ignored: impl FnMut(&str, &str),
) -> Result<Option<(String, Restored)>, DiskError> {
    let Some(aggregate) = transform.kind.as_aggregate() else { return Ok(None) };
    let name = transform.name.as_str();
    let restored = match disk {
        Some(disk) if aggregate.checkpoint_ms > 0 => restore(disk, shard, name, last, now, ignored)?,
        Some(disk) => {
            let _any = remove(disk, name);
            None
        }
        None => None,
    };
    if restored.is_none() {
        last.label_s.into_iter().for_each(|label_s| shard.resume_after(name, label_s, now));
    }
    Ok(restored)
}

/// As [`begin`], for a Riemann config.
///
/// # Errors
/// As [`begin`].
pub fn begin_streams<D: Disk>(
    disk: Option<&D>,
    shard: &mut Shard,
    transform: &TransformPlan,
    ignored: impl FnMut(&str, &str),
) -> Result<Option<(String, RestoredStreams)>, DiskError> {
    let Some(disk) = disk else { return Ok(None) };
    let name = transform.name.as_str();
    if transform.kind.checkpoint_ms() == 0 {
        let _any = remove(disk, name);
        return Ok(None);
    }
    let import = |bytes: &[u8]| match shard.import_streams(name, bytes) {
        Some(restored) => restored.map_err(|why| why.why().to_owned()),
        None => Err("the config cannot be evaluated".to_owned()),
    };
    youngest(disk, name, import, ignored)
}

fn restore<D: Disk>(
    disk: &D,
    shard: &mut Shard,
    name: &str,
    last: LastFlush,
    now: Now,
    ignored: impl FnMut(&str, &str),
) -> Result<Option<(String, Restored)>, DiskError> {
    let import = |bytes: &[u8]| match shard.import(name, bytes, last, now) {
        Some(Ok(restored)) => Ok(restored),
        Some(Err(why)) => Err(why.why().to_owned()),
        None => Err("nothing feeds the aggregation".to_owned()),
    };
    youngest(disk, name, import, ignored)
}

/// What `import` makes of the youngest file that it accepts.
fn youngest<D: Disk, T>(
    disk: &D,
    name: &str,
    mut import: impl FnMut(&[u8]) -> Result<T, String>,
    mut ignored: impl FnMut(&str, &str),
) -> Result<Option<(String, T)>, DiskError> {
    for Generation { file, peeked } in generations(disk, name)? {
        let read = match peeked.map(|_| read_whole(disk, &file)) {
            Ok(Err(WriteError::Disk(error))) if error.passes() => return Err(error),
            Ok(read) => read.map_err(|error| error.to_string()),
            Err(why) => Err(why.why().to_owned()),
        };
        match read.and_then(|bytes| import(&bytes)) {
            Ok(restored) => return Ok(Some((file, restored))),
            Err(why) => ignored(&file, &why),
        }
    }
    Ok(None)
}

/// Removes all files of an aggregation, so that a power loss does not bring them back: their windows have been emitted
/// by then. True when there were any.
pub fn remove<D: Disk>(disk: &D, name: &str) -> bool {
    let files = [file_of(name, 0), file_of(name, 1), half_of(name)];
    let any = files.iter().filter(|file| disk.remove(file).is_ok()).count() > 0;
    // If the sync fails, nothing more can be done about them.
    let _synced = any.then(|| disk.sync_directory());
    any
}

fn read_whole<D: Disk>(disk: &D, file: &str) -> Result<Vec<u8>, WriteError> {
    let size = tried(|| disk.size(&disk.open(file)?))?;
    if size > FILE_BYTES_MAX {
        return Err(WriteError::TooLarge);
    }
    Ok(tried(|| read_up_to(disk, file, size))?)
}

fn read_up_to<D: Disk>(disk: &D, file: &str, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
    let file = disk.open(file)?;
    let mut bytes = vec![0; disk.size(&file)?.min(bytes_max) as usize];
    disk.read_at(&file, 0, &mut bytes)?;
    Ok(bytes)
}

/// A checkpoint that is being written. Dropping it before [`NewFile::finish`] removes it.
#[derive(Debug)]
pub(super) struct NewFile<D: Disk> {
    disk: D,
    file: D::File,
    half: String,
    bytes: u64,
}

impl<D: Disk> NewFile<D> {
    pub(super) fn create(disk: D, name: &str) -> Result<NewFile<D>, DiskError> {
        let half = half_of(name);
        let file = match disk.create(&half) {
            Err(DiskError::Exists) => {
                // Left by a process that ended in between.
                disk.remove(&half)?;
                disk.create(&half)?
            }
            created => created?,
        };
        Ok(NewFile { disk, file, half, bytes: 0 })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        if self.bytes + bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(WriteError::TooLarge);
        }
        self.disk.write_at(&self.file, self.bytes, &[bytes])?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Syncs it and replaces the older generation; while it is unknown which that is, nothing is replaced. Returns its
    /// size in bytes.
    pub(super) fn finish(self, name: &str) -> Result<u64, WriteError> {
        self.disk.sync(&self.file)?;
        let younger = generations(&self.disk, name)?.into_iter().find(|found| found.peeked.is_ok());
        let first = file_of(name, 0);
        let place =
            if younger.is_some_and(|younger| younger.file == first) { file_of(name, 1) } else { first };
        self.disk.replace(&self.half, &place)?;
        self.disk.sync_directory()?;
        Ok(self.bytes)
    }
}

impl<D: Disk> Drop for NewFile<D> {
    fn drop(&mut self) {
        // After `finish` it no longer exists.
        let _gone = self.disk.remove(&self.half);
    }
}

#[cfg(test)]
mod tests {
    use deliver::disk_queue::faulty_disk::FaultyDisk;
    use process::aggregate::{AggregatePlan, Aggregator};

    use super::*;

    #[test]
    fn the_older_generation_is_replaced_and_an_unfinished_file_is_removed() {
        let disk = FaultyDisk::new(1);
        let mut aggregator = Aggregator::new(AggregatePlan::default(), Now::default());
        let mut numbers = Vec::new();
        for number in 1..=4 {
            let mut bytes = Vec::new();
            assert!(aggregator.save_begin(7, number, Now::default(), &mut bytes));
            let mut file = NewFile::create(disk.clone(), "a.b").expect("a file");
            file.write(&bytes).expect("written");
            assert_eq!(file.finish("a.b").expect("finished"), bytes.len() as u64);
            disk.lose_power();
            let found = generations(&disk, "a.b").expect("they can be read");
            numbers.push(found.iter().map(|found| found.peeked.expect("whole").number).collect::<Vec<_>>());
        }
        assert_eq!(numbers, [vec![1], vec![2, 1], vec![3, 2], vec![4, 3]]);
        assert_eq!([None, Some(2), Some(9)].map(|noted| next_number(&disk, "a.b", noted)), [5, 5, 10]);
        // An unreadable one counts as the older.
        let there = || generations(&disk, "a.b").expect("they can be read");
        disk.store(&there()[0].file, b"garbage");
        assert_eq!(there()[0].peeked.map(|peeked| peeked.number), Ok(3));
        drop(NewFile::create(disk.clone(), "a.b").expect("a file"));
        disk.store(&half_of("a.b"), b"left behind");
        drop(NewFile::create(disk.clone(), "a.b").expect("in its place"));
        disk.store("other-7.checkpoint", b"");
        assert_eq!(names(&disk).into_iter().collect::<Vec<_>>(), ["a.b"]);
        assert_eq!(disk.bytes(&half_of("a.b")), None);
        assert!(remove(&disk, "a.b"));
        disk.lose_power();
        assert!(there().is_empty() && !remove(&disk, "a.b"));
    }
    /// Writes a checkpoint; opening fails with `then` when it is about to replace a file.
    fn written(disk: &FaultyDisk, number: u64, then: Option<DiskError>) -> Result<u64, WriteError> {
        let mut aggregator = Aggregator::new(AggregatePlan::default(), Now::default());
        let mut bytes = Vec::new();
        assert!(aggregator.save_begin(7, number, Now::default(), &mut bytes));
        let mut file = NewFile::create(disk.clone(), "a").expect("a file");
        file.write(&bytes).expect("written");
        disk.change_faults(|faults| faults.opens_fail = then);
        file.finish("a")
    }

    #[test]
    fn a_file_that_cannot_be_opened_does_not_count_as_absent() {
        for error in [DiskError::Scarce { code: 24 }, DiskError::Denied] {
            let disk = FaultyDisk::new(1);
            for number in 5..=6 {
                written(&disk, number, None).expect("finished");
            }
            assert_eq!(
                written(&disk, 7, Some(error)),
                Err(WriteError::Disk(error)),
                "it would replace the younger one"
            );
            assert_eq!(generations(&disk, "a"), Err(error));
            assert!(next_number(&disk, "a", Some(2)) > 7, "past those that cannot be looked at");
            disk.change_faults(|faults| faults.opens_fail = None);
            let numbers = |found: Vec<Generation>| -> Vec<u64> {
                found.iter().map(|found| found.peeked.expect("whole").number).collect()
            };
            assert_eq!(generations(&disk, "a").map(numbers), Ok(vec![6, 5]));
            disk.change_faults(|faults| faults.read_error_in = Some(0));
            assert_eq!(generations(&disk, "a").map(numbers), Ok(vec![6, 5]), "what fails once is read again");
        }
    }
}
