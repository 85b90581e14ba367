//! What is kept of a file between two writes saves reads, and never shows in the bytes of the file.

use model::TreeFile as _;

use super::*;
use crate::memory_tree::Calls;
use crate::store::kept::{self, HEADERS_MAX, Headers, Kept, USES_MAX};
use crate::store::new_file::MaybeNew;

/// Writes 27 points of ten seconds each, as by default. Returns the calls.
fn write_turn(store: &Store, tree: &MemoryTree, turn: i64) -> Calls {
    let now = NOW + turn * 270;
    for at in 0..27 {
        store.push(b"a", point(now - 260 + at * 10, (turn * 27 + at) as f64), 0, now);
    }
    store.drain(true);
    tree.take_calls();
    let reports = write_due(store, tree, now);
    assert_eq!((reports.len(), reports[0].written.written, &reports[0].error), (1, 27, &None));
    tree.take_calls()
}

fn store_of_two_archives() -> Store {
    Store::new(StoreOptions::default(), rules("10s:6h,1m:7d", AggregationMethod::Average, 0.5), 7)
}

#[test]
fn a_file_that_nobody_changed_is_read_for_its_aggregates_only() {
    let (store, tree) = (store_of_two_archives(), MemoryTree::new());
    write_turn(&store, &tree, 0);
    let read_anew = Calls { opens: 1, reads: 3, writes: 2, sizes: 1, versions: 1, ..Calls::default() };
    assert_eq!(write_turn(&store, &tree, 1), read_anew);
    let kept = Calls { opens: 1, reads: 1, writes: 2, versions: 1, ..Calls::default() };
    for turn in 2..i64::from(USES_MAX) + 2 {
        assert_eq!(write_turn(&store, &tree, turn), kept, "{turn}");
    }
    assert_eq!(write_turn(&store, &tree, i64::from(USES_MAX) + 2), read_anew, "once in a while it is read");
    assert_eq!(write_turn(&store, &tree, i64::from(USES_MAX) + 3), kept);
}

/// A file of the same size, but with other slots.
fn other_file() -> Vec<u8> {
    let (store, tree) = (store_of_two_archives(), MemoryTree::new());
    write_turn(&store, &tree, -1);
    tree.bytes("a.wsp").expect("it was written")
}

type Change = fn(&MemoryTree);

#[test]
fn changes_by_others_between_two_writes_are_seen() {
    let changes: [(&str, Change); 6] = [
        ("another method", |tree| {
            let file = WhisperFile::open(tree.open("a.wsp").expect("it exists"));
            file.expect("a good file").set_method(AggregationMethod::Max).expect("no fault");
        }),
        ("other bytes in place", |tree| {
            tree.open("a.wsp").expect("it exists").write_at(0, &other_file()).expect("no fault");
        }),
        ("another file", |tree| {
            tree.create("new").expect("no fault").write_at(0, &other_file()).expect("no fault");
            tree.rename("new", "a.wsp").expect("no fault");
        }),
        ("an empty file", |tree| {
            tree.create("new").expect("no fault");
            tree.rename("new", "a.wsp").expect("no fault");
        }),
        ("zeros", |tree| {
            let file = tree.open("a.wsp").expect("it exists");
            file.write_at(0, &vec![0; other_file().len()]).expect("no fault");
        }),
        ("no file", |tree| tree.remove("a.wsp").expect("it exists")),
    ];
    for (what, change) in changes {
        let (store, tree) = (store_of_two_archives(), MemoryTree::new());
        for turn in 0..4 {
            write_turn(&store, &tree, turn);
        }
        change(&tree);
        let copy = tree.copy();
        let knows_nothing = store_of_two_archives();
        for turn in 4..7 {
            write_turn(&store, &tree, turn);
            write_turn(&knows_nothing, &copy, turn);
            assert!(tree.bytes("a.wsp") == copy.bytes("a.wsp"), "{what}, {turn}");
        }
    }
}

#[test]
fn a_change_by_others_while_the_lock_is_waited_for_is_seen() {
    let (store, tree) = (store_of_two_archives(), MemoryTree::new());
    write_turn(&store, &tree, 0);
    for locked in [true, false] {
        let open = || MaybeNew::known(tree.open("a.wsp").expect("it exists"));
        let mut kept = Kept::of(&WhisperFile::open(open()).expect("good"), None);
        let waits = tree.open("a.wsp").expect("it exists");
        // The owner of the lock writes.
        tree.open("a.wsp").expect("it exists").write_at(40, &[0; 12]).expect("no fault");
        kept::open(waits, &mut kept, (whisper::Space::Sparse, locked), || None).expect("good");
        assert_eq!(kept.is_none(), locked, "what was kept counts only without the wait");
    }
}

#[test]
fn above_the_limit_of_headers_files_are_read_at_each_write() {
    let (store, tree) = (store_of_two_archives(), MemoryTree::new());
    let mut headers = Headers::default();
    let mut kept = |factor: usize| {
        let x_files_factor = factor as f32 / 1000.0;
        let mut file =
            WhisperFile::open(MaybeNew::known(tree.open("a.wsp").expect("it exists"))).expect("good");
        file.set_x_files_factor(x_files_factor).expect("no fault");
        let mut kept = Kept::of(&file, None).expect("it has a version");
        headers.share(&mut kept).then_some(kept)
    };
    write_turn(&store, &tree, 0);
    let mut all: Vec<_> = (0..HEADERS_MAX).map(|at| kept(at).expect("at the limit")).collect();
    assert!(kept(HEADERS_MAX).is_none(), "past the limit");
    assert!(kept(3).is_some(), "an equal one is there");
    all.pop();
    assert!(kept(HEADERS_MAX).is_some(), "one is used no more");
}
