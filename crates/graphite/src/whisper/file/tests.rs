//! Vectors of spec graphite §5.8, the account of each point, system calls, and faults of the disk.
//!
//! Path of a point: a table of a test -> [`WhisperFile::update_many`] on a file in memory -> its bytes or a fetch.
//! Not here: random calls beside the original (`compat/whisper.py`), any bytes as a file (`promises`).

use std::sync::Arc;

use model::{DiskError, FileTree};

use super::*;
use crate::memory_tree::{Calls, Faults, MemoryFile, MemoryTree};
use crate::whisper::format::{AggregationMethod, ArchivePlan, FetchRange, Header, Layout, RangeError};

const NOW: i64 = 1_700_000_040;

fn header(archives: &[(u32, u32)], method: AggregationMethod, factor: f32) -> Arc<Header> {
    let archives: Vec<_> =
        archives.iter().map(|(step, points)| ArchivePlan { step: *step, points: *points }).collect();
    let layout = Layout::new(&archives).expect("valid archives");
    Arc::new(Header::new(&layout, method, factor).expect("a valid factor"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A new file, with the tree that it is in as `f`.
fn new_file(
    archives: &[(u32, u32)],
    method: AggregationMethod,
    factor: f32,
) -> (MemoryTree, WhisperFile<MemoryFile>) {
    let tree = MemoryTree::new();
    let file = create_in(&tree, "f", &header(archives, method, factor), Space::Zeros).expect("no fault");
    (tree, file)
}

fn points(list: &[(i64, f64)]) -> Vec<Point> {
    list.iter().map(|(time, value)| Point { time: *time, value: *value }).collect()
}

fn store(
    file: &mut WhisperFile<MemoryFile>,
    list: &[(i64, f64)],
    now: i64,
    options: &UpdateOptions,
) -> Written {
    file.update_many(&mut points(list), now, options, &mut Scratch::default()).expect("no fault")
}

/// The file of the specification's vector A, and then of B.
fn vector_b() -> (MemoryTree, WhisperFile<MemoryFile>) {
    let (tree, mut file) = new_file(&[(1, 6), (3, 4)], AggregationMethod::Average, 0.5);
    let list = [(NOW - 4, 10.0), (NOW - 3, 20.0), (NOW - 1, 40.0)];
    let written = store(&mut file, &list, NOW, &UpdateOptions::default());
    assert_eq!(written, Written { written: 3, propagated: 1, ..Written::default() });
    (tree, file)
}

fn assert_bytes(tree: &MemoryTree, begin: &str) {
    let bytes = hex(&tree.bytes("f").expect("it exists"));
    assert_eq!(bytes.len(), 320);
    assert_eq!(bytes, format!("{begin:0<320}"));
}

#[test]
fn a_new_file_has_the_bytes_of_vector_a() {
    for space in [Space::Zeros, Space::Sparse, Space::Allocate] {
        let tree = MemoryTree::new();
        let header = header(&[(1, 6), (3, 4)], AggregationMethod::Average, 0.5);
        create_in(&tree, "f", &header, space).expect("no fault");
        assert_bytes(
            &tree,
            "000000010000000c3f00000000000002000000280000000100000006000000700000000300000004",
        );
    }
}

#[test]
fn an_update_has_the_bytes_of_vector_b() {
    let (tree, _) = vector_b();
    assert_bytes(
        &tree,
        "000000010000000c3f0000000000000200000028000000010000000600000070000000030000000\
         46553f12440240000000000006553f12540340000000000000000000000000000000000006553f1\
         2740440000000000000000000000000000000000000000000000000000000000006553f125403e0\
         00000000000",
    );
}

#[test]
fn fetches_return_vector_c() {
    let (_, file) = vector_b();
    let base = 1_700_000_000;
    let (none, ten, twenty, thirty, forty) = (None, Some(10.0), Some(20.0), Some(30.0), Some(40.0));
    type Want<'w> = (i64, i64, u32, &'w [Option<f64>]);
    let table: &[(i64, i64, Want<'_>)] = &[
        (34, 40, (35, 41, 1, &[none, ten, twenty, none, forty, none])),
        (36, 40, (37, 41, 1, &[twenty, none, forty, none])),
        (33, 40, (34, 43, 3, &[none, thirty, none])),
        (38, 38, (39, 40, 1, &[forty])),
        (27, 40, (31, 43, 3, &[none, none, thirty, none])),
        (-base, 40, (31, 43, 3, &[none, none, thirty, none])),
    ];
    for (from, until, (start, end, step, values)) in table {
        let want = Fetched { start: base + start, end: base + end, step: *step, values: values.to_vec() };
        assert_eq!(file.fetch(base + from, base + until, NOW), Ok(Some(want)), "{from}..{until}");
    }
    assert_eq!(file.fetch(base + 41, base + 50, NOW), Ok(None), "after now");
    assert_eq!(file.fetch(base, base + 27, NOW), Ok(None), "too old");
    assert_eq!(
        file.fetch(NOW, NOW - 1, NOW),
        Err(FetchError::Range(RangeError::Backwards { from: NOW, until: NOW - 1 }))
    );
    for (from, until, now) in
        [(i64::MIN, i64::MAX, i64::MAX), (i64::MIN, i64::MIN, i64::MIN), (0, i64::MAX, 0)]
    {
        let fetched = file.fetch(from, until, now).expect("no fault");
        assert!(fetched.is_none_or(|fetched| fetched.values.iter().all(Option::is_none)));
    }
}

#[test]
fn an_archive_can_be_chosen_by_its_step() {
    let (_, file) = vector_b();
    let fetched = file.fetch_step(3, NOW - 5, NOW, NOW).expect("no fault").expect("in range");
    assert_eq!((fetched.step, fetched.values), (3, vec![Some(30.0), None]));
    let fetched = file.fetch_step(1, 0, NOW, NOW).expect("no fault").expect("in range");
    assert_eq!(fetched.values.len(), 6, "no more than the archive covers");
    assert_eq!(file.fetch_step(1, 0, NOW - 7, NOW), Ok(None));
    assert_eq!(file.fetch_step(2, 0, NOW, NOW), Err(FetchError::Range(RangeError::NoSuchStep { step: 2 })));
}

#[test]
fn of_equal_times_the_first_is_stored_as_in_vector_d_or_the_last() {
    let list =
        [(40, 50.0), (41, 60.0), (43, 70.0), (43, 71.0)].map(|(time, value)| (1_700_000_000 + time, value));
    let now = 1_700_000_043;
    let (tree, mut file) = vector_b();
    let written = store(&mut file, &list, now, &UpdateOptions::ORIGINAL);
    assert_eq!((written.written, written.duplicate), (3, 1));
    assert_bytes(
        &tree,
        "000000010000000c3f0000000000000200000028000000010000000600000070000000030000000\
         46553f12440240000000000006553f12b40518000000000000000000000000000000000006553f1\
         2740440000000000006553f12840490000000000006553f129404e0000000000006553f125403e0\
         000000000006553f128404b800000000000",
    );
    let values = |from: i64| {
        let fetched = file.fetch(1_700_000_000 + from, now, now).expect("no fault").expect("in range");
        (fetched.start - 1_700_000_000, fetched.values)
    };
    assert_eq!(values(37), (38, vec![None, Some(40.0), Some(50.0), Some(60.0), None, Some(70.0)]));
    assert_eq!(values(31), (34, vec![None, Some(30.0), Some(55.0), None]));

    let (_, mut file) = vector_b();
    let written = store(&mut file, &list, now, &UpdateOptions::default());
    assert_eq!((written.written, written.duplicate), (3, 1));
    let fetched = file.fetch(now - 1, now, now).expect("no fault").expect("in range");
    assert_eq!(fetched.values, [Some(71.0)]);
}

#[test]
fn single_updates_propagate_as_in_vector_f() {
    let (_, mut file) = new_file(&[(60, 10), (300, 10)], AggregationMethod::Sum, 0.6);
    let start = 1_700_000_100;
    let wants = [None, None, None, Some(10.0), Some(15.0)];
    for (index, want) in (0i32..).zip(wants) {
        let time = start + i64::from(index) * 60;
        let point = Point { time, value: f64::from(index + 1) };
        file.update(point, time, &mut Scratch::default()).expect("covered");
        let fetched = file.fetch_step(300, start - 1, time, time).expect("no fault").expect("in range");
        assert_eq!(fetched.points().next(), want.map(|value| (start, value)), "after {}", index + 1);
    }
}

#[test]
fn a_single_update_covers_ages_from_zero_to_below_the_retention() {
    let (_, mut file) = new_file(&[(1, 6), (3, 4)], AggregationMethod::Average, 0.5);
    for (age, covered) in
        [(-1, false), (0, true), (6, true), (7, true), (11, true), (12, false), (NOW, false)]
    {
        let result = file.update(Point { time: NOW - age, value: 1.0 }, NOW, &mut Scratch::default());
        assert_eq!(result.is_ok(), covered, "age {age}");
        if let Err(error) = result {
            assert_eq!(error, UpdateError::NotCovered(NotCovered { age, retention: 12 }));
        }
    }
}

#[test]
fn every_point_of_a_call_is_counted_once() {
    let (_, mut file) = new_file(&[(10, 6), (60, 10)], AggregationMethod::Last, 0.0);
    let list = [
        (NOW - 601, 1.0),
        (NOW - 600, 2.0),
        (-5, 0.0),
        (0, 0.0),
        (i64::MIN, 0.0),
        (NOW, 3.0),
        (NOW, 4.0),
        (NOW + 5, 5.0),
        (NOW + 600, 6.0),
        (NOW + 601, 7.0),
        (i64::MAX, 8.0),
    ];
    let written = store(&mut file, &list, NOW, &UpdateOptions::default());
    // NOW + 600 is ten turns of the ring later than NOW.
    let want = Written { written: 2, duplicate: 1, same_slot: 2, too_old: 4, in_future: 2, propagated: 1 };
    assert_eq!(written, want);
    let near = UpdateOptions { max_future: Some(0), ..UpdateOptions::default() };
    assert_eq!(store(&mut file, &[(NOW, 1.0), (NOW + 1, 1.0)], NOW, &near).in_future, 1);
    let far = [(i64::from(u32::MAX), 1.0), (1 << 32, 1.0)];
    let written = store(&mut file, &far, NOW, &UpdateOptions::ORIGINAL);
    assert_eq!((written.written, written.in_future), (1, 1));
    let slow = &[(3600, 10)];
    let (_, mut file) = new_file(slow, AggregationMethod::Last, 0.0);
    let written = store(&mut file, &[(NOW + 3600, 1.0), (NOW + 3601, 1.0)], NOW, &UpdateOptions::default());
    assert_eq!((written.written, written.in_future), (1, 1), "a step is longer than ten minutes");
}

#[test]
fn neighbouring_points_are_read_and_written_together() {
    let (tree, mut file) = new_file(&[(10, 360), (60, 100), (300, 100)], AggregationMethod::Average, 0.5);
    let mut call = |count: i64, now: i64| {
        let list: Vec<_> = (0..count).rev().map(|index| (now - index * 10, 1.0)).collect();
        tree.take_calls();
        let written = store(&mut file, &list, now, &UpdateOptions::default());
        assert_eq!(written.written, count.unsigned_abs());
        tree.take_calls()
    };
    // The first call also reads the base of each archive.
    let first = call(30, 1_699_999_490);
    assert_eq!(first, Calls { reads: 5, writes: 3, ..Calls::default() });
    let second = call(1, 1_699_999_500);
    assert_eq!(second.writes, 1, "one of six points is less than half");
    let third = call(60, 1_700_000_090);
    assert_eq!(third, Calls { reads: 2, writes: 3, ..Calls::default() });
    let known = file.known();
    drop(file);
    tree.take_calls();
    let mut file = WhisperFile::open_known(tree.open("f").expect("it exists"), known);
    store(&mut file, &[(1_700_000_100, 1.0)], 1_700_000_100, &UpdateOptions::default());
    assert_eq!(tree.take_calls(), Calls { opens: 1, reads: 1, writes: 1, ..Calls::default() });
    tree.take_calls();
    WhisperFile::open(tree.open("f").expect("it exists")).expect("a good file");
    assert_eq!(tree.take_calls(), Calls { opens: 1, reads: 1, sizes: 1, ..Calls::default() });
}

#[test]
fn a_failed_write_is_reported_and_repeated() {
    let list: Vec<_> = (0..12).map(|index| (NOW - index, index as f64)).collect();
    let archives = [(1, 6), (3, 8)];
    let (good, mut file) = new_file(&archives, AggregationMethod::Sum, 0.0);
    store(&mut file, &list, NOW, &UpdateOptions::default());
    for fault in 0..6 {
        let (tree, mut file) = new_file(&archives, AggregationMethod::Sum, 0.0);
        tree.set_faults(Faults { write_error_in: Some(fault), ..Faults::default() });
        let mut scratch = Scratch::default();
        let result = file.update_many(&mut points(&list), NOW, &UpdateOptions::default(), &mut scratch);
        let failed = result.is_err();
        assert!(failed || fault > 3, "write {fault}");
        tree.set_faults(Faults::default());
        store(&mut file, &list, NOW, &UpdateOptions::default());
        assert_eq!(tree.bytes("f"), good.bytes("f"), "after write {fault} failed");
    }
}

#[test]
fn a_file_that_cannot_be_created_is_removed() {
    let tree = MemoryTree::new();
    let header = header(&[(1, 6), (3, 4)], AggregationMethod::Average, 0.5);
    tree.set_faults(Faults { bytes_max: Some(159), ..Faults::default() });
    for space in [Space::Zeros, Space::Sparse, Space::Allocate] {
        assert_eq!(create_in(&tree, "a/f", &header, space).err(), Some(DiskError::Full), "{space:?}");
        assert_eq!(tree.exists("a/f"), Ok(false));
    }
    tree.set_faults(Faults::default());
    create_in(&tree, "a/f", &header, Space::Zeros).expect("there is room");
    assert_eq!(create_in(&tree, "a/f", &header, Space::Zeros).err(), Some(DiskError::Exists));
    assert_eq!(tree.exists("a/f"), Ok(true), "a file that was there stays");
}

#[test]
fn header_changes_keep_everything_else() {
    let (tree, mut file) = vector_b();
    let before = tree.bytes("f").expect("it exists");
    assert_eq!(file.set_method(AggregationMethod::Max), Ok(AggregationMethod::Average));
    assert_eq!(file.set_x_files_factor(0.25), Ok(Some(0.5)));
    assert_eq!(file.set_x_files_factor(1.25), Ok(None));
    let after = tree.bytes("f").expect("it exists");
    assert_eq!((&after[..4], &after[8..12]), (&[0, 0, 0, 4][..], &0.25f32.to_be_bytes()[..]));
    assert_eq!((&after[4..8], &after[12..]), (&before[4..8], &before[12..]));
    let opened = WhisperFile::open(tree.open("f").expect("it exists")).expect("a good file");
    assert_eq!(opened.header(), file.header());
}

#[test]
fn files_of_the_first_and_the_last_times_work() {
    let (_, mut file) = new_file(&[(1, 6), (3, 4)], AggregationMethod::Average, 0.0);
    let written = store(&mut file, &[(0, 1.0), (1, 2.0), (2, 3.0)], 5, &UpdateOptions::ORIGINAL);
    assert_eq!((written.written, written.too_old), (2, 1));
    let last = i64::from(u32::MAX);
    let written =
        store(&mut file, &[(last - 1, 1.0), (last, 2.0), (last + 1, 3.0)], last, &UpdateOptions::ORIGINAL);
    assert_eq!((written.written, written.in_future), (2, 1));
    let fetched = file.fetch(last - 2, last, last).expect("no fault").expect("in range");
    assert_eq!(fetched.values, [Some(1.0), Some(2.0)]);
}

#[test]
fn a_range_is_known_before_it_is_read() {
    let (_, file) = vector_b();
    let range = file.header().range(NOW - 6, NOW, NOW).expect("not backwards").expect("covered");
    assert_eq!(range, FetchRange { archive: 0, start: NOW - 5, end: NOW + 1, step: 1 });
    assert_eq!(range.points(), 6);
    assert_eq!(file.fetch_range(range).expect("its own range").values.len(), 6);
    let foreign = [
        FetchRange { archive: 2, ..range },
        FetchRange { archive: 1, ..range },
        FetchRange { end: range.end + 1, ..range },
        FetchRange { end: range.start, ..range },
    ];
    for range in foreign {
        let refused = Err(FetchError::Range(RangeError::NoSuchStep { step: 1 }));
        assert_eq!(file.fetch_range(range), refused, "{range:?}");
    }
}

#[test]
fn a_file_that_was_replaced_before_its_lock_came_is_opened_again() {
    let (tree, old) = new_file(&[(1, 6)], AggregationMethod::Sum, 0.5);
    let new = create_in(&tree, "g", &header(&[(1, 9)], AggregationMethod::Sum, 0.5), Space::Zeros);
    new.expect("no fault");
    tree.rename("g", "f").expect("no fault");
    assert_eq!(tree.is_current("f", old.file()), Ok(false));
    let locked = lock_in(&tree, "f", tree.open("f").expect("it is there")).expect("no fault");
    assert_eq!(tree.is_current("f", &locked), Ok(true));
    let WhisperFile { file, .. } = old;
    let locked = WhisperFile::open(lock_in(&tree, "f", file).expect("no fault")).expect("a good file");
    assert_eq!(locked.header().archives()[0].points, 9);
}
