//! The tree with real files: its operations, and what others do to its folder meanwhile.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn tree() -> (tempfile::TempDir, Tree) {
    let held = tempfile::tempdir().expect("a folder");
    let tree = Tree::open(held.path().join("storage/whisper")).expect("made with its parents");
    (held, tree)
}

fn listed(tree: &Tree, folder: &str) -> Result<Vec<(String, EntryKind)>, DiskError> {
    let mut names = Vec::new();
    tree.list(folder, &mut |name, kind| {
        names.push((name.to_owned(), kind));
        true
    })?;
    names.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(names)
}

#[test]
fn files_support_all_operations_of_a_store() {
    let (_held, tree) = tree();
    let file = tree.create("a/b/c.wsp").expect("made with its folders");
    assert_eq!(tree.create("a/b/c.wsp").err(), Some(DiskError::Exists));
    assert_eq!(tree.create("a/b").err(), Some(DiskError::Exists), "it is a folder");
    file.write_at(3, b"abc").expect("written past the end");
    assert_eq!((file.size(), file.allocate(9), file.size()), (Ok(6), Ok(Reserved::Allocated), Ok(9)));
    let mut bytes = [7; 9];
    assert_eq!((file.read_at(0, &mut bytes), &bytes), (Ok(()), b"\0\0\0abc\0\0\0"));
    assert_eq!(file.read_at(1, &mut bytes), Err(DiskError::Short));
    assert_eq!((file.sync(), tree.sync_folder("a/b"), tree.sync_all()), (Ok(()), Ok(()), Ok(())));
    let facts = tree.facts("a/b/c.wsp").expect("it is there");
    assert!(facts.bytes == 9 && facts.modified > 1_700_000_000, "{facts:?}");
    tree.create("d.wsp").expect("made");
    tree.rename("a/b/c.wsp", "x/y.wsp").expect("into a new folder");
    tree.rename("d.wsp", "x/y.wsp").expect("a file is replaced");
    assert_eq!(tree.rename("d.wsp", "e.wsp"), Err(DiskError::NotFound));
    assert_eq!(
        (tree.exists("x/y.wsp"), tree.exists("x"), tree.exists("x/y.wsp/z")),
        (Ok(true), Ok(false), Ok(false))
    );
    let all = vec![("x".to_owned(), EntryKind::Folder)];
    assert_eq!((listed(&tree, ""), listed(&tree, "no")), (Ok(all), Err(DiskError::NotFound)));
    assert_eq!((tree.remove("x/y.wsp"), tree.remove("x/y.wsp")), (Ok(()), Err(DiskError::NotFound)));
    assert_eq!(file.write_at(0, b"1"), Ok(()), "an open file stays usable");
}

#[test]
fn folders_go_with_the_last_file_in_them() {
    let (held, tree) = tree();
    for path in ["a/b/c/one.wsp", "a/b/two.wsp", "d/e/three.wsp"] {
        tree.create(path).expect("made with its folders");
    }
    let elsewhere = held.path().join("other");
    fs::create_dir(&elsewhere).expect("made");
    symlink(&elsewhere, tree.root().join("linked")).expect("made");
    tree.create("linked/f/four.wsp").expect("made behind the link");
    let is_there = |path: &str| tree.root().join(path).exists();
    tree.remove("a/b/c/one.wsp").expect("it is there");
    assert_eq!((is_there("a/b/c"), is_there("a/b/two.wsp")), (false, true), "others are not empty");
    tree.rename("a/b/two.wsp", "d/two.wsp").expect("it is there");
    assert!(!is_there("a"), "all of them upwards");
    tree.remove("linked/f/four.wsp").expect("it is there");
    assert_eq!((is_there("linked/f"), is_there("linked"), elsewhere.is_dir()), (false, true, true));
    tree.remove("d/two.wsp").and_then(|()| tree.remove("d/e/three.wsp")).expect("they are there");
    assert!(tree.root().is_dir() && !is_there("d"), "the root stays");
}

#[test]
fn a_file_is_created_and_renamed_while_others_remove_its_folders() {
    let (_held, tree) = tree();
    std::thread::scope(|threads| {
        for thread in 0..3 {
            let tree = &tree;
            threads.spawn(move || {
                let (path, other) = (format!("a/b/{thread}.wsp"), format!("a/c/d/{thread}.wsp"));
                for round in 0..2_000 {
                    let done = tree.create(&path).and_then(|_file| tree.rename(&path, &other));
                    assert_eq!(done.and_then(|()| tree.remove(&other)), Ok(()), "round {round}");
                }
            });
        }
    });
    assert_eq!(listed(&tree, ""), Ok(vec![]));
}

#[test]
fn paths_that_could_leave_the_root_are_rejected() {
    let (held, tree) = tree();
    fs::write(held.path().join("storage/secret"), "x").expect("written");
    for path in ["", "/etc/passwd", "../secret", "a/../../secret", "./a", "a//b", "a/", "a/\0"] {
        assert_eq!(tree.open_to_read(path).err(), Some(DiskError::NotAFile), "{path:?}");
        assert_eq!(tree.create(path).err(), Some(DiskError::NotAFile), "{path:?}");
        assert_eq!(tree.remove(path).err(), Some(DiskError::NotAFile), "{path:?}");
        assert_eq!(tree.rename("a", path).err(), Some(DiskError::NotAFile), "{path:?}");
    }
    assert_eq!(listed(&tree, ".."), Err(DiskError::NotAFile));
}

#[test]
fn links_are_followed_and_other_kinds_of_files_are_rejected_without_blocking() {
    let (held, tree) = tree();
    let elsewhere = held.path().join("other");
    fs::create_dir(&elsewhere).expect("made");
    symlink(&elsewhere, tree.root().join("linked")).expect("made");
    symlink("/dev/null", tree.root().join("device")).expect("made");
    symlink("nothing", tree.root().join("broken")).expect("made");
    let made = std::process::Command::new("mkfifo").arg(tree.root().join("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()), "there is mkfifo");
    tree.create("linked/a.wsp").expect("made behind the link");
    assert!(elsewhere.join("a.wsp").is_file());
    symlink("loop", tree.root().join("loop")).expect("made");
    let long = "x".repeat(300);
    for name in ["device", "pipe", "linked", "loop", "loop/a", &long] {
        assert_eq!(tree.open_to_read(name).err(), Some(DiskError::NotAFile), "{name}");
        assert_eq!(tree.open(name).err(), Some(DiskError::NotAFile), "{name}");
    }
    let kinds: Vec<EntryKind> =
        listed(&tree, "").expect("it lists").into_iter().map(|entry| entry.1).collect();
    assert!(matches!(
        kinds[..],
        [EntryKind::Other, EntryKind::Other, EntryKind::FolderLink(_), EntryKind::Other, EntryKind::Other]
    ));
}

#[test]
fn a_missing_or_replaced_root_is_away_and_nothing_is_created_in_it() {
    let (held, tree) = tree();
    tree.create("a/b.wsp").expect("made");
    let moved = held.path().join("moved");
    fs::rename(tree.root(), &moved).expect("moved");
    for another in [false, true] {
        if another {
            fs::create_dir(tree.root()).expect("the mount point");
        }
        assert_eq!(tree.create("c/d.wsp").err(), Some(DiskError::Away));
        assert_eq!(tree.open("a/b.wsp").err(), Some(DiskError::Away));
        assert_eq!((tree.sync_all(), listed(&tree, "").err()), (Err(DiskError::Away), Some(DiskError::Away)));
    }
    fs::remove_dir(tree.root()).expect("nothing was created in it");
    fs::rename(&moved, tree.root()).expect("moved back");
    assert_eq!((tree.exists("a/b.wsp"), tree.sync_all()), (Ok(true), Ok(())));
}

#[test]
fn a_read_only_tree_rejects_changes() {
    let (_held, tree) = tree();
    tree.create("a.wsp").and_then(|file| file.write_at(0, b"1")).expect("written");
    let looking = Tree::open_read_only(tree.root().to_owned()).expect("it is there");
    let file = looking.open_to_read("a.wsp").expect("it may be read");
    assert_eq!(
        (file.size(), file.write_at(0, b"2"), file.allocate(9)),
        (Ok(1), Err(DiskError::Denied), Err(DiskError::Denied))
    );
    assert_eq!(looking.open("a.wsp").err(), Some(DiskError::Denied));
    assert_eq!(looking.create("b.wsp").err(), Some(DiskError::Denied));
    assert_eq!(
        (looking.remove("a.wsp"), looking.rename("a.wsp", "b")),
        (Err(DiskError::Denied), Err(DiskError::Denied))
    );
}

#[test]
fn a_file_is_current_until_another_one_gets_its_path() {
    let (_held, tree) = tree();
    let first = tree.create("a.wsp").expect("made");
    let second = tree.create("b.wsp").expect("made");
    assert_eq!((tree.is_current("a.wsp", &first), tree.is_current("a.wsp", &second)), (Ok(true), Ok(false)));
    tree.rename("b.wsp", "a.wsp").expect("replaced");
    assert_eq!((tree.is_current("a.wsp", &first), tree.is_current("a.wsp", &second)), (Ok(false), Ok(true)));
    tree.remove("a.wsp").expect("it is there");
    assert_eq!(tree.is_current("a.wsp", &second), Ok(false));
}

#[test]
fn each_change_of_a_file_gives_it_another_version() {
    let (_held, tree) = tree();
    let file = tree.create("a").expect("made");
    let mut last = file.version();
    let mut has_another = |what: &str| {
        let now = file.version();
        assert!(matches!(now, Ok(Some(_))) && now != last, "{what}: {last:?}, {now:?}");
        last = now;
        // Longer than a tick of the clock, for kernels that count changes in ticks.
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    std::thread::sleep(std::time::Duration::from_millis(20));
    file.write_at(0, b"abcd").expect("written");
    has_another("a write");
    file.write_at(0, b"abcd").expect("written");
    has_another("a write of the same bytes");
    file.extend(9).expect("longer");
    has_another("another size");
    fs::set_permissions(tree.root().join("a"), fs::Permissions::from_mode(0o600)).expect("changed");
    has_another("another mode");
    file.file.set_modified(std::time::UNIX_EPOCH).expect("set");
    has_another("a time that a program set");
    file.read_at(0, &mut [0; 4]).expect("read");
    let same = tree.open_to_read("a").expect("it is there").version();
    assert_eq!((file.version(), same), (last, last), "reads change nothing");
    let other = tree.create("b").expect("made").version();
    let id = |version: Result<Option<FileVersion>, DiskError>| version.ok().flatten().map(|found| found.file);
    assert_ne!(id(other), id(last));
}

#[test]
fn a_lock_excludes_other_open_files() {
    let (_held, tree) = tree();
    let first = tree.create("a.wsp").expect("made");
    first.lock().expect("free");
    let second = fs::File::open(tree.root().join("a.wsp")).expect("it is there");
    assert!(second.try_lock().is_err());
    first.unlock().expect("locked");
    assert!(second.try_lock().is_ok());
    second.unlock().expect("locked");
    first.lock().expect("free");
    drop(first);
    assert!(second.try_lock().is_ok(), "the lock ends when the file is closed");
}
