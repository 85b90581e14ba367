//! Names that are removed while points of them come.

use std::sync::TryLockError;
use std::time::Duration;

use super::part::Packed;
use super::*;

/// Points in memory without a name in the catalog: no query would find them.
fn is_invisible(store: &Store, name: &[u8]) -> bool {
    let (part, hash) = store.part_of(name);
    let part = locked(part);
    part.find(hash, name).is_some() && store.catalog().find(name).is_none()
}

#[test]
fn a_deletion_holds_its_series_until_its_name_is_gone() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    store.push(b"a", point(NOW, 1.0), 0, NOW);
    store.drain(true);
    write_due(&store, &tree, NOW);
    let search = store.catalog();
    std::thread::scope(|threads| {
        threads.spawn(|| assert_eq!(store.delete(&tree, b"a"), Ok(true)));
        while tree.exists("a.wsp") == Ok(true) {
            std::thread::yield_now();
        }
        // A point that came now would find the name that is about to go.
        for _ in 0..100 {
            assert!(matches!(store.part_of(b"a").0.try_lock(), Err(TryLockError::WouldBlock)));
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(search);
    });
    assert!(store.catalog().find(b"a").is_none());
}

#[test]
fn series_with_points_have_a_name_while_they_are_deleted_and_renamed() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    let names: [&[u8]; 3] = [b"a", b"b", b"c"];
    let push = |name: &[u8]| store.push(name, point(NOW, 1.0), 0, NOW);
    let ends = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                while !ends.load(Relaxed) {
                    names.iter().for_each(|name| assert_eq!(push(name), Pushed::Taken));
                }
            });
        }
        threads.spawn(|| {
            while !ends.load(Relaxed) {
                assert!(store.catalog().len() <= 3);
            }
        });
        for round in 0..20_000 {
            let (from, to) = (names[round % 3], names[(round + 1) % 3]);
            let _it_may_be_gone = store.delete(&tree, to);
            let _it_may_be_taken = store.rename(&tree, from, to);
            let invisible = names.iter().find(|name| is_invisible(&store, name));
            if invisible.is_some() || round + 1 == 20_000 {
                ends.store(true, Relaxed);
                assert_eq!(invisible, None, "round {round}");
            }
        }
    });
}

#[test]
fn a_series_whose_file_cannot_be_removed_keeps_its_points() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    store.push(b"a", point(NOW - 10, 1.0), 0, NOW);
    store.drain(true);
    write_due(&store, &tree, NOW);
    store.push(b"a", point(NOW, 1.0), 1, NOW);
    tree.set_faults(Faults { read_only: true, ..Faults::default() });
    assert_eq!(
        store.delete(&tree, b"a"),
        Err(ChangeError::File(whisper::FileError::Disk(DiskError::Denied)))
    );
    assert_eq!((store.pending(), store.take_refused()), ((1, 1), vec![]));
    assert!(store.catalog().find(b"a").is_some());
}

#[test]
fn renamed_series_keep_their_block_and_leave_nothing_behind_when_they_are_deleted() {
    const SERIES: usize = 2_000;
    let options = StoreOptions { creates_per_minute_max: 1, ..StoreOptions::default() };
    let (store, tree) = (store(options), MemoryTree::new());
    let name = |branch: &str, number: usize| format!("{branch}.s{number}").into_bytes();
    for number in 0..SERIES {
        store.push(&name("a", number), point(NOW, 1.0), number as u64, NOW);
    }
    store.pushed_up_to(SERIES as u64);
    for (from, to) in [("a", "b"), ("b", "c")] {
        for number in 0..SERIES {
            assert_eq!(store.rename(&tree, &name(from, number), &name(to, number)), Ok(true));
        }
        assert_eq!((store.written_up_to(), store.pending().1), (0, SERIES as u64));
    }
    store.drain(true);
    let waiting = write_due(&store, &tree, NOW).iter().filter(|report| report.waits).count();
    assert!(waiting > SERIES / 2, "{waiting}");
    for number in 0..SERIES {
        assert_eq!(store.delete(&tree, &name("c", number)), Ok(true));
    }
    assert_eq!((store.written_up_to(), store.pending()), (SERIES as u64, (0, 0)));
}

#[test]
fn taking_a_series_out_does_not_look_at_all_others() {
    const SERIES: u64 = 200_000;
    let mut part = Part::default();
    let hash = |name: &[u8]| FixedState::with_seed(1).hash_one(name);
    let add = |part: &mut Part, name: &[u8]| part.add(hash(name), name, hash).expect("there is room");
    for number in 0..SERIES {
        let series = add(&mut part, format!("a{number}").as_bytes());
        part.push(series, Packed::new(1, 1.0), number, NOW, true);
    }
    // With a look at all series in memory for each one, this would go on for an hour.
    for (from, to) in [("a", "b"), ("b", "c")] {
        for number in 0..SERIES {
            let (from, to) = (format!("{from}{number}"), format!("{to}{number}"));
            let old = part.find(hash(from.as_bytes()), from.as_bytes()).expect("it was added");
            let new = add(&mut part, to.as_bytes());
            let due = part.due_of(old);
            let taken = part.take_out(hash(from.as_bytes()), from.as_bytes()).expect("nobody writes it");
            part.put_in(new, taken, due);
        }
        assert_eq!((part.oldest_block(), part.pending()), (Some(0), (SERIES, SERIES)));
    }
    for number in 0..SERIES {
        let name = format!("c{number}");
        assert!(part.remove(hash(name.as_bytes()), name.as_bytes()).is_some_and(|(points, _)| points == 1));
    }
    assert_eq!((part.oldest_block(), part.pending()), (None, (0, 0)));
}

#[test]
fn a_folder_that_goes_during_a_walk_is_no_failure() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    store.add_name(b"gone").expect("a valid name");
    for number in 0..5000 {
        tree.create(&format!("f{number}/a.wsp")).expect("made");
    }
    let mut walk = Walk::default();
    assert!(walk.step(&store, &tree), "the root has been listed");
    // With its last file, a folder goes.
    assert_eq!(store.delete(&tree, b"f0.a"), Ok(true));
    while walk.step(&store, &tree) {}
    let report = walk.report();
    assert_eq!((report.failed, report.files, report.gone), (0, 4999, 1));
}

#[test]
fn points_are_not_missed_while_their_series_gets_another_name() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    store.push(b"a", point(NOW, 1.0), 5, NOW);
    store.pushed_up_to(9);
    std::thread::scope(|scope| {
        let renames = scope.spawn(|| {
            let names: Vec<Vec<u8>> = (0..40).map(|at| format!("a{at}").into_bytes()).collect();
            let mut last = b"a".to_vec();
            for name in names.iter().cycle().take(20_000) {
                assert_eq!(store.rename(&tree, &last, name), Ok(true));
                last.clone_from(name);
            }
        });
        while !renames.is_finished() {
            assert_eq!(store.written_up_to(), 5, "its point is in memory");
        }
    });
}

#[test]
fn the_name_of_a_file_stays_while_it_is_looked_for_and_renamed() {
    let (store, tree) = (store(StoreOptions::default()), MemoryTree::new());
    written(&store, &tree, &["a"], NOW);
    // Without a place in memory, as after a start.
    let store = {
        let options = StoreOptions::default();
        let again = Store::new(options, rules("10s:1h", AggregationMethod::Sum, 0.0), 9);
        again.add_name(b"a").expect("valid");
        again
    };
    std::thread::scope(|scope| {
        let renames = scope.spawn(|| {
            for turn in 0..20_000 {
                let (from, to) = if turn % 2 == 0 { (b"a", b"b") } else { (b"b", b"a") };
                assert_eq!(store.rename(&tree, from, to), Ok(true));
                assert!(store.catalog().find(to).is_some(), "{turn}");
            }
        });
        while !renames.is_finished() {
            for name in [b"a", b"b"] {
                store.remove_if_gone(&tree, name);
            }
        }
    });
    let names = [b"a", b"b"].map(|name| store.catalog().find(name).is_some());
    assert_eq!(names, [true, false]);
}
