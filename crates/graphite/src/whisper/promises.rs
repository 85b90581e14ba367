//! What holds of any bytes as a whisper file, checked for one input: by tests and by the fuzz target `whisper_file`.
//! Never part of a point's path.
//!
//! Every operation ends in a value or a named error; each point is counted once; a point that was stored is fetched;
//! what is kept of a file between two calls changes nothing; nothing outside the archives is written.

use std::sync::Arc;

use model::FileTree as _;

use super::file::{
    FetchError, FileError, Point, Scratch, Space, UpdateOptions, WhisperFile, Written, create_in,
};
use super::format::{AggregationMethod, ArchivePlan, Header, Layout, RangeError};
use super::tools::{self, DiffOptions, Migration};
use crate::codec::u32_be;
use crate::memory_tree::{MemoryFile, MemoryTree};

const PATH: &str = "a.wsp";

/// Checks one file, and panics where something does not hold. True when the bytes are a usable file.
pub fn check_one(bytes: &[u8]) -> bool {
    let tree = tree_of(bytes);
    let header = match opened(&tree) {
        Ok(file) => Arc::clone(file.header()),
        Err(FileError::Damaged(damage)) => {
            assert!(!damage.to_string().is_empty());
            assert_eq!(tree.bytes(PATH).expect("it exists"), bytes, "a damaged file is left alone");
            return false;
        }
        Err(FileError::Disk(error)) => panic!("memory has no faults: {error}"),
    };
    let head = header.to_bytes();
    assert_eq!(head, bytes[..head.len()], "the header is printed as it was read");
    assert!(header.file_bytes() <= bytes.len() as u64);
    for now in nows(bytes, &header) {
        fetches(bytes, now);
        updates(bytes, &header, now);
        copies(bytes, now);
    }
    true
}

fn tree_of(bytes: &[u8]) -> MemoryTree {
    MemoryTree::with_file(PATH, bytes).expect("a valid path")
}

fn opened(tree: &MemoryTree) -> Result<WhisperFile<MemoryFile>, FileError> {
    WhisperFile::open(tree.open(PATH).expect("it exists"))
}

fn good(tree: &MemoryTree) -> WhisperFile<MemoryFile> {
    opened(tree).expect("it was usable before")
}

/// Times to try: near those of the file, and the ends of what 32 bits can hold.
fn nows(bytes: &[u8], header: &Header) -> [i64; 4] {
    let at = header.archives()[0].offset as usize;
    let stored = i64::from(u32_be(bytes, at).unwrap_or(1));
    [stored, stored + header.retention() / 2, 1_700_000_000, i64::from(u32::MAX)]
}

fn fetches(bytes: &[u8], now: i64) {
    let tree = tree_of(bytes);
    let file = good(&tree);
    let retention = file.header().retention();
    let ages = [(0, 0), (1, 0), (retention, 0), (retention * 2, retention / 2), (i64::MAX / 2, -retention)];
    for (from, until) in ages {
        let Some(found) = file.fetch(now - from, now - until, now).expect("no fault") else { continue };
        assert!(found.end > found.start && found.step > 0);
        assert_eq!(found.values.len() as i64 * i64::from(found.step), found.end - found.start);
        assert!(found.values.len() * 12 <= bytes.len(), "no more values than slots");
        let chosen = file.fetch_step(found.step, now - from, now - until, now).expect("it has the step");
        assert!(chosen.is_some());
    }
    let backwards = file.fetch(now, now - 1, now);
    assert_eq!(backwards, Err(FetchError::Range(RangeError::Backwards { from: now, until: now - 1 })));
    let mut slots = 0;
    for (index, archive) in file.header().archives().iter().enumerate() {
        file.each_slot(index, |_, _, _| {
            slots += 1;
            true
        })
        .expect("no fault");
        assert!(slots >= u64::from(archive.points));
    }
    assert!(slots * 12 <= bytes.len() as u64);
}

fn updates(bytes: &[u8], header: &Header, now: i64) {
    let (kept, reopened) = (tree_of(bytes), tree_of(bytes));
    let mut file = good(&kept);
    let mut scratch = Scratch::default();
    let step = i64::from(header.archives()[0].step);
    let oldest = header.archives().iter().map(|archive| archive.retention()).max().unwrap_or(0);
    let run: Vec<i64> = (0..20).map(|index| now - index * step).collect();
    let spread: Vec<i64> = (0..20).map(|index| now - oldest * index / 18).collect();
    let odd = vec![now, now, now - 1, now + 1, now + 700, i64::MIN, i64::MAX, 0, -1, 1 << 32];
    for options in [UpdateOptions::default(), UpdateOptions::ORIGINAL] {
        for times in [&run, &spread, &odd] {
            let points: Vec<Point> =
                times.iter().enumerate().map(|(at, time)| Point { time: *time, value: at as f64 }).collect();
            let many = |file: &mut WhisperFile<MemoryFile>, scratch: &mut Scratch| {
                file.update_many(&mut points.clone(), now, &options, scratch).expect("no fault")
            };
            let written = many(&mut file, &mut scratch);
            assert_eq!(counted(written), points.len() as u64);
            assert_eq!(many(&mut good(&reopened), &mut Scratch::default()), written);
        }
    }
    let point = Point { time: now, value: 0.125 };
    let stored = file.update(point, now, &mut scratch);
    assert_eq!(stored.is_ok(), good(&reopened).update(point, now, &mut scratch).is_ok());
    let interval = now - now.rem_euclid(step);
    if stored.is_ok() && interval == now {
        let found = file.fetch(now - 1, now, now).expect("no fault").expect("it covers now");
        assert_eq!(found.values, [Some(0.125)], "what was stored is fetched");
    }
    let (kept, reopened) = (kept.bytes(PATH).expect("it exists"), reopened.bytes(PATH).expect("it exists"));
    assert!(kept == reopened, "what is kept of a file changes nothing");
    let (start, end) = (header.to_bytes().len(), header.file_bytes() as usize);
    assert_eq!((&kept[..start], &kept[end..]), (&bytes[..start], &bytes[end..]), "only points are written");
    assert_eq!(kept.len(), bytes.len());
}

fn counted(written: Written) -> u64 {
    let Written { written, duplicate, same_slot, too_old, in_future, propagated: _ } = written;
    written + duplicate + same_slot + too_old + in_future
}

fn copies(bytes: &[u8], now: i64) {
    let (left, right) = (tree_of(bytes), tree_of(bytes));
    let (source, mut target) = (good(&left), good(&right));
    let mut scratch = Scratch::default();
    let differences =
        |left, right| tools::diff(left, right, DiffOptions::default(), now).expect("the same archives");
    let same = differences(&source, &target);
    // NaN differs from itself, as in the original.
    assert!(
        same.iter().flat_map(|archive| &archive.differences).all(|found| found.left.is_some_and(f64::is_nan))
    );
    tools::merge(&source, &mut target, None, None, now, &mut scratch).expect("the same archives");
    tools::fill(&source, &mut target, 0, now, now, &mut scratch).expect("no fault");
    let points = tools::timeline(&source, i64::MIN, i64::MAX, now).expect("no fault");
    assert!(points.is_sorted_by_key(|point| point.time) && points.len() * 12 <= bytes.len());
    let plans = [ArchivePlan { step: 2, points: 9 }, ArchivePlan { step: 6, points: 30 }];
    let layout = Layout::new(&plans).expect("valid archives");
    let header = Arc::new(Header::new(&layout, AggregationMethod::Sum, 0.0).expect("a valid factor"));
    for migration in [Migration::Copy, Migration::Aggregate] {
        let tree = tree_of(bytes);
        tools::resize_in(&tree, PATH, &header, Space::Sparse, migration, now).expect("no fault");
        assert_eq!(good(&tree).header(), &header);
    }
    let mut other = create_in(&left, "b.wsp", &header, Space::Zeros).expect("no fault");
    tools::fill(&source, &mut other, 0, now, now, &mut scratch).expect("no fault");
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    /// The files of a folder of the corpus, with their names.
    fn corpus(folder: &str) -> Vec<(String, Vec<u8>)> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/whisper").join(folder);
        let entries = std::fs::read_dir(&path).expect("the folder is in the repository");
        let paths = entries.map(|entry| entry.expect("it can be listed").path());
        let mut files: Vec<_> = paths
            .map(|path| {
                let name = path.file_name().expect("a file").to_string_lossy().into_owned();
                (name, std::fs::read(&path).expect("it can be read"))
            })
            .collect();
        files.sort();
        files
    }

    #[test]
    fn files_of_the_corpus_are_usable_or_damaged() {
        for (folder, usable) in [("good", true), ("bad", false)] {
            let files = corpus(folder);
            assert!(files.len() >= 8, "{folder}");
            for (name, bytes) in files {
                assert_eq!(check_one(&bytes), usable, "{folder}/{name}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn any_mutation_of_a_file_is_handled(
            file in any::<prop::sample::Index>(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut files = corpus("good");
            files.extend(corpus("bad"));
            let mut bytes = file.get(&files).1.clone();
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len() + 1));
            }
            for (at, byte) in changes {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            check_one(&bytes);
        }
    }
}
