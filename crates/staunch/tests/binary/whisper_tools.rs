//! `staunch whisper` on files, folders and what is neither. compat/whisper_tools.py compares it with the scripts.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::Builder;
use crate::support::daemon::STAUNCH;

/// Exit code, stdout and stderr.
fn whisper(folder: &Path, words: &str) -> (i32, String, String) {
    let words = words.split_whitespace();
    let output =
        Command::new(STAUNCH).arg("whisper").args(words).current_dir(folder).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn good(folder: &Path, words: &str) -> String {
    let (code, said, wrong) = whisper(folder, words);
    assert_eq!(code, 0, "{words}: {said}{wrong}");
    said
}

#[test]
fn a_folder_is_changed_file_by_file_and_bad_files_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    fs::create_dir_all(at.join("tree/a/b")).expect("a new folder");
    for file in ["tree/x.wsp", "tree/a/y.wsp", "tree/a/b/z.wsp"] {
        good(at, &format!("create {file} 60:60"));
        good(at, &format!("update {file} N:7"));
    }
    fs::write(at.join("tree/a/bad.wsp"), "nothing").expect("the folder is there");
    fs::write(at.join("tree/a/notes.txt"), "nothing").expect("the folder is there");
    let (code, said, wrong) = whisper(at, "resize tree 60:120 5m:1d --nobackup --aggregate");
    assert_eq!((code, &*said), (1, "3 files resized, 0 left as they were, 1 failed\n"), "{wrong}");
    assert!(wrong.contains("bad.wsp") && wrong.lines().count() == 1, "{wrong}");
    let (_, said, _) = whisper(at, "resize tree 60:120 5m:1d --nobackup");
    assert_eq!(said, "0 files resized, 3 left as they were, 1 failed\n");
    let (_, said, _) = whisper(at, "info tree");
    assert!(said.contains("a/b/z.wsp average 0.5 60:120,300:288 4936\n"), "{said}");
    assert!(said.ends_with("\n3 files shown, 1 failed\n"), "{said}");
    assert!(good(at, "fetch tree/a/y.wsp --drop nulls").contains("\t7.000000\n"));
    let (_, said, _) = whisper(at, "set-aggregation tree max");
    assert_eq!(said, "3 files changed, 0 left as they were, 1 failed\n");
    let (_, said, _) = whisper(at, "set-xff tree 0.5");
    assert_eq!(said, "0 files changed, 3 left as they were, 1 failed\n");
    // Nothing is left beside the files.
    let names: Vec<_> =
        fs::read_dir(at.join("tree/a")).expect("a folder").flatten().map(|one| one.file_name()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    // Another folder has some of the files.
    fs::create_dir_all(at.join("other/a")).expect("a new folder");
    good(at, "create other/x.wsp 60:120 5m:1d");
    assert_eq!(whisper(at, "merge tree other").1, "1 files merged, 3 left as they were, 0 failed\n");
    assert!(good(at, "fetch other/x.wsp --drop nulls").contains("\t7.000000\n"));
    assert_eq!(whisper(at, "fill tree x.wsp").0, 1);
}

#[test]
fn a_second_resize_says_that_it_replaces_the_backup() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    good(at, "create a.wsp 60:60");
    good(at, "update a.wsp N:7");
    let replaced = "a.wsp.bak: an earlier backup was replaced\n";
    for (archives, want) in [("60:120", ""), ("60:180", replaced), ("60:240 --nobackup", "")] {
        let (code, _, wrong) = whisper(at, &format!("resize a.wsp {archives}"));
        assert_eq!((code, &*wrong), (0, want), "{archives}");
    }
    assert!(good(at, "info a.wsp.bak").contains("points: 120\n"), "the file before the second one");
    // Times of /render, also as a word of its own.
    for words in ["fetch a.wsp --from=-1h", "fetch a.wsp --from -1h --until now", "fetch a.wsp --from=-2min"]
    {
        assert!(good(at, words).contains("\t7.000000\n"), "{words}");
    }
    assert!(whisper(at, "fetch a.wsp --from=nonsense").2.contains("nonsense"));
}

#[test]
fn mistakes_have_code_1_and_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    good(at, "create a.wsp 60:60");
    fs::write(at.join("bad.wsp"), vec![0xff; 100]).expect("the folder is there");
    fs::write(at.join("empty.wsp"), "").expect("the folder is there");
    let before = fs::read(at.join("a.wsp")).expect("a file");
    for (words, want) in [
        ("info none.wsp", "does not exist"),
        ("info bad.wsp", "not a usable whisper file"),
        ("dump empty.wsp", "the file is empty"),
        ("fetch a.wsp --from=10 --until=5", "a.wsp"),
        ("fetch a.wsp --from=5 --until=10", "No data"),
        ("create a.wsp 60:60", "already exists"),
        ("create none/a.wsp 60:60", "there is no folder"),
        ("create b.wsp", "archives are missing"),
        ("create b.wsp 60:60 90:60", "not a multiple"),
        ("create b.wsp 1s:100000y", "1s:100000y"),
        ("create b.wsp 60:60 --aggregationMethod=no", "Unrecognized aggregation method: no"),
        ("create b.wsp 60:60 --xFilesFactor=2", "0"),
        ("update a.wsp 5", "`5` is not a point"),
        ("update a.wsp 1:1", "a.wsp"),
        ("update a.wsp N:x", "is not a point"),
        ("resize a.wsp nonsense", "Invalid retention definition"),
        ("resize a.wsp 60:60 --newfile=bad.wsp", "exists already"),
        ("set-xff a.wsp 7", "not between 0 and 1"),
        ("set-aggregation a.wsp no", "Unrecognized"),
        ("merge a.wsp none.wsp", "does not exist"),
    ] {
        let (code, said, wrong) = whisper(at, words);
        assert!(
            code == 1 && wrong.starts_with("[ERROR] ") && wrong.contains(want),
            "{words}: {code} {said}{wrong}"
        );
        assert_eq!(fs::read(at.join("a.wsp")).expect("a file"), before, "{words}");
    }
    assert!(!at.join("b.wsp").exists() && !at.join("a.wsp.tmp").exists());
}

#[test]
fn the_tree_of_a_running_daemon_is_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("tree");
    fs::create_dir_all(tree.join("a")).expect("a new folder");
    good(folder.path(), "create tree/a/x.wsp 60:60");
    let config = format!(
        "[sources.lines]\ntype = \"graphite\"\nlisten = [\"tcp://127.0.0.1:0\"]\n\
         [outputs.store]\ntype = \"whisper\"\nfrom = [\"lines\"]\npath = \"{}\"\n",
        tree.display()
    );
    let mut daemon = Builder::native(&config).start();
    daemon.wait_logged("1 whisper file");
    for words in
        ["resize tree 60:120", "resize tree/a/x.wsp 60:120", "update tree/a/x.wsp N:1", "set-xff tree 0"]
    {
        let (code, _, wrong) = whisper(folder.path(), words);
        assert!(code == 1 && wrong.contains("a running Staunch writes to"), "{words}: {wrong}");
    }
    assert!(good(folder.path(), "info tree/a/x.wsp").contains("maxRetention: 3600"));
    daemon.stop();
    good(folder.path(), "resize tree/a/x.wsp 60:120");
    assert!(tree.join("a/x.wsp.bak").is_file());
}

#[test]
fn a_reader_that_closes_early_is_no_error() {
    let folder = tempfile::tempdir().expect("a folder");
    good(folder.path(), "create a.wsp 1s:1d");
    let mut dump = Command::new(STAUNCH)
        .args(["whisper", "dump", "a.wsp"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(dump.stdout.take());
    let output = dump.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
