//! The files of checkpoints: two generations for each aggregation, and the one that is being written.
//!
//! `NAME-0.checkpoint` and `NAME-1.checkpoint`, `NAME.checkpoint.new`. Names of transforms are file names: config sees
//! to it.

use std::collections::BTreeSet;

use config::plan::TransformPlan;
use model::{Disk, DiskError, Now};
use process::aggregate::checkpoint::{NotRestored, Peeked, Restored, Told, peek};

use super::writer::WriteError;
use crate::Shard;

/// Largest file that is written, or read.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Bytes that tell what a file is.
const PEEK_BYTES: u64 = 4096;

/// One of the two files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its name.
    pub file: String,
    /// What its header says.
    pub peeked: Result<Peeked, NotRestored>,
}

fn file_of(name: &str, generation: usize) -> String {
    format!("{name}-{generation}.checkpoint")
}

fn half_of(name: &str) -> String {
    format!("{name}.checkpoint.new")
}

/// The generations that are there, the youngest first.
pub fn generations<D: Disk>(disk: &D, name: &str) -> Vec<Generation> {
    let mut found: Vec<Generation> = (0..2)
        .filter_map(|generation| {
            let file = file_of(name, generation);
            let begin = read_up_to(disk, &file, PEEK_BYTES).ok()?;
            Some(Generation { file, peeked: peek(&begin) })
        })
        .collect();
    found.sort_by_key(|generation| std::cmp::Reverse(generation.peeked.map_or(0, |peeked| peeked.number)));
    found
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

/// Number of the next checkpoint of an aggregation: past those of all files that can be read, and past those that a
/// `note` calls told.
pub fn next_number<D: Disk>(disk: &D, name: &str, noted: Option<u64>) -> u64 {
    let found = generations(disk, name);
    let numbers = found.iter().filter_map(|generation| Some(generation.peeked.ok()?.number));
    numbers.chain(noted).max().map_or(1, |number| number.saturating_add(1))
}

/// How an aggregation begins in a new process, before the first batch: with what it held, from the youngest file that can
/// be used, whose name comes with what was found in it; otherwise behind the last label. One without checkpoints leaves
/// no files. `ignored` is told each file that cannot be used, and why. `disk` is none when there is nothing to read.
pub fn begin<D: Disk>(
    disk: Option<&D>,
    shard: &mut Shard,
    transform: &TransformPlan,
    told: Told,
    now: Now,
    ignored: impl FnMut(&str, &str),
) -> Option<(String, Restored)> {
    let aggregate = transform.kind.as_aggregate()?;
    let name = transform.name.as_str();
    let restored = match disk {
        Some(disk) if aggregate.checkpoint_ms > 0 => restore(disk, shard, name, told, now, ignored),
        Some(disk) => {
            let _any = remove(disk, name);
            None
        }
        None => None,
    };
    if restored.is_none() {
        told.label_s.into_iter().for_each(|label_s| shard.resume_after(name, label_s, now));
    }
    restored
}

fn restore<D: Disk>(
    disk: &D,
    shard: &mut Shard,
    name: &str,
    told: Told,
    now: Now,
    mut ignored: impl FnMut(&str, &str),
) -> Option<(String, Restored)> {
    for Generation { file, peeked } in generations(disk, name) {
        let read = match peeked {
            Ok(_) => read_whole(disk, &file).map_err(|error| error.to_string()),
            Err(why) => Err(why.why().to_owned()),
        };
        let restored = read.and_then(|bytes| match shard.import(name, &bytes, told, now) {
            Some(Ok(restored)) => Ok(restored),
            Some(Err(why)) => Err(why.why().to_owned()),
            None => Err("nothing feeds the aggregation".to_owned()),
        });
        match restored {
            Ok(restored) => return Some((file, restored)),
            Err(why) => ignored(&file, &why),
        }
    }
    None
}

/// Removes all files of an aggregation, so that no loss of power brings them back: their windows are told by then. True when
/// there were any.
pub fn remove<D: Disk>(disk: &D, name: &str) -> bool {
    let files = [file_of(name, 0), file_of(name, 1), half_of(name)];
    let any = files.iter().filter(|file| disk.remove(file).is_ok()).count() > 0;
    // If it cannot be synced, there is nothing else to be done about them.
    let _synced = any.then(|| disk.sync_directory());
    any
}

fn read_whole<D: Disk>(disk: &D, file: &str) -> Result<Vec<u8>, WriteError> {
    let size = disk.size(&disk.open(file)?)?;
    if size > FILE_BYTES_MAX {
        return Err(WriteError::TooLarge);
    }
    Ok(read_up_to(disk, file, size)?)
}

fn read_up_to<D: Disk>(disk: &D, file: &str, bytes_max: u64) -> Result<Vec<u8>, DiskError> {
    let file = disk.open(file)?;
    let mut bytes = vec![0; disk.size(&file)?.min(bytes_max) as usize];
    disk.read_at(&file, 0, &mut bytes)?;
    Ok(bytes)
}

/// A checkpoint that is being written. Dropped before [`NewFile::finish`] it leaves nothing.
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
                // One that a process left unfinished.
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

    /// Syncs it and puts it in the place of the older generation. Gives its bytes.
    pub(super) fn finish(self, name: &str) -> Result<u64, WriteError> {
        self.disk.sync(&self.file)?;
        let younger = generations(&self.disk, name).into_iter().find(|found| found.peeked.is_ok());
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
        // After a finish it is not there any more.
        let _gone = self.disk.remove(&self.half);
    }
}

#[cfg(test)]
mod tests {
    use deliver::disk_queue::faulty_disk::FaultyDisk;
    use process::aggregate::{AggregatePlan, Aggregator};

    use super::*;

    #[test]
    fn the_older_generation_makes_way_and_what_is_not_finished_leaves_nothing() {
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
            let found = generations(&disk, "a.b");
            numbers.push(found.iter().map(|found| found.peeked.expect("whole").number).collect::<Vec<_>>());
        }
        assert_eq!(numbers, [vec![1], vec![2, 1], vec![3, 2], vec![4, 3]]);
        assert_eq!([None, Some(2), Some(9)].map(|noted| next_number(&disk, "a.b", noted)), [5, 5, 10]);
        // One that cannot be read is the older one.
        let youngest = generations(&disk, "a.b").remove(0).file;
        disk.store(&youngest, b"garbage");
        assert_eq!(generations(&disk, "a.b")[0].peeked.map(|peeked| peeked.number), Ok(3));
        drop(NewFile::create(disk.clone(), "a.b").expect("a file"));
        disk.store(&half_of("a.b"), b"left behind");
        drop(NewFile::create(disk.clone(), "a.b").expect("in its place"));
        disk.store("other-7.checkpoint", b"");
        assert_eq!(names(&disk).into_iter().collect::<Vec<_>>(), ["a.b"]);
        assert_eq!(disk.bytes(&half_of("a.b")), None);
        assert!(remove(&disk, "a.b"));
        disk.lose_power();
        assert!(generations(&disk, "a.b").is_empty() && !remove(&disk, "a.b"));
    }
}
