//! The files of checkpoints: two generations for each aggregation, and the one that is being written.
//!
//! `NAME-0.checkpoint` and `NAME-1.checkpoint`, `NAME.checkpoint.new`. Names of transforms are file names: config sees
//! to it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use process::aggregate::checkpoint::{NotRestored, Peeked, peek};

/// Largest file that is written, or read.
pub(super) const FILE_BYTES_MAX: u64 = 4 << 30;

/// Bytes that tell what a file is.
const PEEK_BYTES: u64 = 4096;

/// One of the two files.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) path: PathBuf,
    pub(super) peeked: Result<Peeked, NotRestored>,
}

fn path_of(folder: &Path, name: &str, generation: usize) -> PathBuf {
    folder.join(format!("{name}-{generation}.checkpoint"))
}

fn half_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.checkpoint.new"))
}

/// The generations that are there, the youngest first.
pub(super) fn generations(folder: &Path, name: &str) -> Vec<Generation> {
    let mut found: Vec<Generation> = (0..2)
        .filter_map(|generation| {
            let path = path_of(folder, name, generation);
            let mut begin = Vec::new();
            File::open(&path).ok()?.take(PEEK_BYTES).read_to_end(&mut begin).ok()?;
            Some(Generation { path, peeked: peek(&begin) })
        })
        .collect();
    found.sort_by_key(|generation| std::cmp::Reverse(generation.peeked.map_or(0, |peeked| peeked.number)));
    found
}

/// Names of aggregations that have a checkpoint here.
pub(super) fn names(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeSet::new() };
    let names = entries.filter_map(|entry| {
        let file = entry.ok()?.file_name();
        let (name, generation) = file.to_str()?.strip_suffix(".checkpoint")?.rsplit_once('-')?;
        matches!(generation, "0" | "1").then(|| name.to_owned())
    });
    names.collect()
}

/// The whole file.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than any checkpoint"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Removes all files of an aggregation. True when there were any.
pub(super) fn remove(folder: &Path, name: &str) -> bool {
    let paths = [path_of(folder, name, 0), path_of(folder, name, 1), half_path(folder, name)];
    paths.iter().filter(|path| fs::remove_file(path).is_ok()).count() > 0
}

/// A checkpoint that is being written. Dropped before [`NewFile::finish`] it leaves nothing.
#[derive(Debug)]
pub(super) struct NewFile {
    file: File,
    half: PathBuf,
    bytes: u64,
}

impl NewFile {
    pub(super) fn create(folder: &Path, name: &str) -> io::Result<NewFile> {
        fs::create_dir_all(folder)?;
        let half = half_path(folder, name);
        Ok(NewFile { file: File::create(&half)?, half, bytes: 0 })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        if self.bytes > FILE_BYTES_MAX {
            let why = "a checkpoint is larger than 4 GiB";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        self.file.write_all(bytes)
    }

    /// Syncs it and puts it in the place of the older generation. Gives its bytes.
    pub(super) fn finish(self, folder: &Path, name: &str) -> io::Result<u64> {
        self.file.sync_data()?;
        let younger = generations(folder, name).into_iter().find(|found| found.peeked.is_ok());
        let first = path_of(folder, name, 0);
        let place = if younger.is_some_and(|younger| younger.path == first) {
            path_of(folder, name, 1)
        } else {
            first
        };
        fs::rename(&self.half, place)?;
        sync_folder(folder)?;
        Ok(self.bytes)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After a finish it is not there any more.
        let _gone = fs::remove_file(&self.half);
    }
}

/// Makes names in the folder last.
fn sync_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened, and its names last by other means.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[test]
fn the_older_generation_makes_way_and_what_is_not_finished_leaves_nothing() {
    use model::Now;
    use process::aggregate::{AggregatePlan, Aggregator};
    let folder = tempfile::tempdir().expect("a folder");
    let mut aggregator = Aggregator::new(AggregatePlan::default(), Now::default());
    let mut numbers = Vec::new();
    for number in 1..=4 {
        let mut bytes = Vec::new();
        assert!(aggregator.save_begin(7, number, Now::default(), &mut bytes));
        let mut file = NewFile::create(folder.path(), "a.b").expect("a file");
        file.write(&bytes).expect("written");
        assert_eq!(file.finish(folder.path(), "a.b").expect("finished"), bytes.len() as u64);
        let found = generations(folder.path(), "a.b");
        numbers.push(found.iter().map(|found| found.peeked.expect("whole").number).collect::<Vec<_>>());
    }
    assert_eq!(numbers, [vec![1], vec![2, 1], vec![3, 2], vec![4, 3]]);
    // One that cannot be read is the older one.
    let youngest = generations(folder.path(), "a.b").remove(0).path;
    fs::write(youngest, "garbage").expect("written");
    let found = generations(folder.path(), "a.b");
    assert_eq!(found[0].peeked.map(|peeked| peeked.number), Ok(3));
    drop(NewFile::create(folder.path(), "a.b").expect("a file"));
    fs::write(folder.path().join("other-7.checkpoint"), "").expect("written");
    assert_eq!(names(folder.path()).into_iter().collect::<Vec<_>>(), ["a.b"]);
    assert!(!half_path(folder.path(), "a.b").exists());
    assert!(remove(folder.path(), "a.b"));
    assert!(generations(folder.path(), "a.b").is_empty() && !remove(folder.path(), "a.b"));
}
