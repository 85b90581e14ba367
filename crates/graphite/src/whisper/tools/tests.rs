use std::sync::Arc;

use model::{DiskError, FileTree as _};

use super::*;
use crate::memory_tree::{Faults, MemoryFile, MemoryTree};
use crate::whisper::file::{Point, Scratch, Space, UpdateOptions, WhisperFile, create_in};
use crate::whisper::format::{AggregationMethod, ArchivePlan, Header, Layout};

const NOW: i64 = 1_700_000_040;

fn header(archives: &[(u32, u32)], method: AggregationMethod) -> Arc<Header> {
    let plans: Vec<_> =
        archives.iter().map(|(step, points)| ArchivePlan { step: *step, points: *points }).collect();
    let layout = Layout::new(&plans).expect("valid archives");
    Arc::new(Header::new(&layout, method, 0.5).expect("a valid factor"))
}

/// A file with these points: (age, value).
fn file(
    tree: &MemoryTree,
    path: &str,
    archives: &[(u32, u32)],
    points: &[(i64, f64)],
) -> WhisperFile<MemoryFile> {
    let header = header(archives, AggregationMethod::Sum);
    let mut file = create_in(tree, path, &header, Space::Zeros).expect("no fault");
    let mut points: Vec<_> =
        points.iter().map(|(age, value)| Point { time: NOW - age, value: *value }).collect();
    file.update_many(&mut points, NOW, &UpdateOptions::default(), &mut Scratch::default()).expect("no fault");
    file
}

/// The known points of an archive: (age, value).
fn held(file: &WhisperFile<MemoryFile>, index: usize) -> Vec<(i64, f64)> {
    let mut points = Vec::new();
    let each = |_, time, value| {
        points.push((NOW - i64::from(time), value));
        true
    };
    file.each_slot(index, each).expect("no fault");
    let mut seen = 0;
    let first = |_, _, _| {
        seen += 1;
        false
    };
    file.each_slot(index, first).expect("no fault");
    assert_eq!(seen, 1, "it ends when nobody wants more");
    points.retain(|(age, _)| *age < NOW);
    points.sort_by(|left, right| left.0.cmp(&right.0).reverse());
    points
}

const ARCHIVES: &[(u32, u32)] = &[(1, 6), (3, 6)];

#[test]
fn a_merge_replaces_points_and_keeps_others() {
    let tree = MemoryTree::new();
    let source = file(&tree, "a", ARCHIVES, &[(4, 1.0), (3, 2.0), (1, 4.0)]);
    let mut target = file(&tree, "b", ARCHIVES, &[(4, 10.0), (2, 20.0)]);
    let mut scratch = Scratch::default();
    merge(&source, &mut target, Some(NOW - 4), Some(NOW - 1), NOW, &mut scratch).expect("the same archives");
    assert_eq!(held(&target, 0), [(4, 10.0), (3, 2.0), (2, 20.0), (1, 4.0)]);
    merge(&source, &mut target, None, Some(NOW + 9), NOW, &mut scratch).expect("the same archives");
    assert_eq!(held(&target, 0), [(4, 1.0), (3, 2.0), (2, 20.0), (1, 4.0)]);
    // The coarse point of the source, not the sum of what is below it now.
    assert_eq!(held(&target, 1), [(3, 6.0)]);
    let backwards = merge(&source, &mut target, Some(NOW + 1), None, NOW, &mut scratch);
    assert_eq!(backwards, Err(MergeError::Backwards { from: NOW + 1, until: NOW }));
    let mut other = file(&tree, "c", &[(1, 6)], &[]);
    assert_eq!(merge(&source, &mut other, None, None, NOW, &mut scratch), Err(MergeError::OtherArchives));
}

#[test]
fn differences_are_counted_per_archive() {
    let tree = MemoryTree::new();
    let left = file(&tree, "a", ARCHIVES, &[(4, 1.0), (3, 2.0), (1, 4.0)]);
    let right = file(&tree, "b", ARCHIVES, &[(4, 10.0), (2, 20.0), (1, 4.0), (12, 5.0)]);
    let all = diff(&left, &right, DiffOptions::default(), NOW).expect("the same archives");
    let found = |age, left, right| Difference { time: NOW - age, left, right };
    let (one, two, ten, twenty) = (Some(1.0), Some(2.0), Some(10.0), Some(20.0));
    assert_eq!(all[0].differences, [found(4, one, ten), found(3, two, None), found(2, None, twenty)]);
    assert_eq!((all[0].compared, all[1].compared), (4, 1));
    assert_eq!(all[1].differences, [found(12, None, Some(5.0))]);
    let both = DiffOptions { ignore_empty: true, until: Some(NOW - 2) };
    let both = diff(&left, &right, both, NOW).expect("the same archives");
    assert_eq!((both[0].differences.as_slice(), both[0].compared), (&[found(4, one, ten)][..], 1));
}

#[test]
fn a_fill_keeps_what_is_there() {
    let tree = MemoryTree::new();
    let source = file(&tree, "a", &[(1, 12)], &[(5, 1.0), (4, 2.0), (3, 3.0), (1, 4.0), (10, 6.0), (9, 7.0)]);
    let mut target = file(&tree, "b", ARCHIVES, &[(4, 10.0), (2, 20.0)]);
    fill(&source, &mut target, 0, NOW, NOW, &mut Scratch::default()).expect("no fault");
    assert_eq!(held(&target, 0), [(5, 1.0), (4, 10.0), (3, 3.0), (2, 20.0), (1, 4.0)]);
    // Where only the coarse archive covers the time: the sum of the source's points in its step.
    assert!(held(&target, 1).contains(&(9, 7.0)), "{:?}", held(&target, 1));
    assert!(held(&target, 1).contains(&(12, 6.0)), "{:?}", held(&target, 1));
}

#[test]
fn a_timeline_has_each_stretch_from_the_finest_archive() {
    let tree = MemoryTree::new();
    let file = file(&tree, "a", ARCHIVES, &[(1, 4.0), (5, 1.0), (12, 7.0), (17, 8.0)]);
    let points: Vec<_> = timeline(&file, 0, NOW, NOW).expect("no fault");
    let points: Vec<_> = points.iter().map(|point| (NOW - point.time, point.value)).collect();
    assert_eq!(points, [(12, 7.0), (5, 1.0), (1, 4.0)], "the point of age 18 is not covered");
}

#[test]
fn a_resized_file_has_the_points_in_other_archives() {
    let points: Vec<_> = (0..12).map(|age| (age, 1.0)).collect();
    let wants = [
        // Points of one step: the newest one, or their sum.
        (Migration::Copy, 1.0, 2.0),
        (Migration::Aggregate, 2.0, 4.0),
    ];
    for (migration, fine, coarse) in wants {
        let tree = MemoryTree::new();
        file(&tree, "a.wsp", &[(1, 20)], &points);
        // What an interrupted resize left.
        tree.create("a.tmp").expect("a path");
        let new = header(&[(2, 4), (4, 4)], AggregationMethod::Sum);
        resize_in(&tree, "a.wsp", &new, Space::Zeros, migration, NOW).expect("no fault");
        assert_eq!(tree.exists("a.tmp"), Ok(false));
        let file = WhisperFile::open(tree.open("a.wsp").expect("it exists")).expect("a good file");
        assert_eq!(file.header(), &new);
        assert!(held(&file, 0).contains(&(2, fine)), "{migration:?}: {:?}", held(&file, 0));
        assert!(held(&file, 1).contains(&(4, coarse)), "{migration:?}: {:?}", held(&file, 1));
    }
}

#[test]
fn a_failed_resize_leaves_the_file_as_it_was() {
    let tree = MemoryTree::new();
    file(&tree, "a.wsp", ARCHIVES, &[(1, 1.0)]);
    let before = tree.bytes("a.wsp").expect("it exists");
    let new = header(&[(2, 400)], AggregationMethod::Sum);
    tree.set_faults(Faults { bytes_max: Some(1000), ..Faults::default() });
    let result = resize_in(&tree, "a.wsp", &new, Space::Zeros, Migration::Copy, NOW);
    assert_eq!(result, Err(ResizeError::Target(DiskError::Full.into())));
    assert_eq!((tree.bytes("a.wsp"), tree.exists("a.tmp")), (Ok(before), Ok(false)));
}

#[test]
fn unused_bytes_are_shown() {
    let tree = MemoryTree::new();
    let file = file(&tree, "a", ARCHIVES, &[]);
    let bytes = file.header().file_bytes();
    assert_eq!(info(&file).expect("no fault").unused_bytes, 0);
    model::TreeFile::write_at(file.file(), bytes, &[0; 5]).expect("no fault");
    let found = info(&file).expect("no fault");
    assert_eq!((found.bytes, found.unused_bytes, &found.header), (bytes + 5, 5, file.header()));
}
