//! The queues on disk that existed before: a start that does not find a folder must not silently create a new one.
//!
//! `<data_dir>/known-queues` has the name of each folder, one per line, from the first opening of its queue. A folder
//! that is in the list but missing was moved away, or its file system is not mounted: its records would be left behind
//! unnoticed. To start with an empty queue, create the folder. Not here: waiting for it, and refusing (`queues`). A
//! data directory that is missing as a whole has lost this file, too.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use sys::disk;

/// The file in the data directory.
pub const FILE: &str = "known-queues";

/// True when the queue in `folder` of the data directory existed before and is missing now.
///
/// # Errors
/// When that cannot be determined now.
pub fn is_away(data_dir: &Path, folder: &Path) -> io::Result<bool> {
    match fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        // Opening it reports what is there instead.
        _ => return Ok(false),
    }
    Ok(names(data_dir)?.contains(&name_of(folder)))
}

/// The queue in `folder` exists from now on.
///
/// # Errors
/// When the file cannot be written.
pub fn note(data_dir: &Path, folder: &Path) -> io::Result<()> {
    let (mut names, name) = (names(data_dir)?, name_of(folder));
    if names.contains(&name) {
        return Ok(());
    }
    names.push(name);
    names.sort_unstable();
    disk::replace_durably(data_dir, FILE, (names.join("\n") + "\n").as_bytes())
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn names(data_dir: &Path) -> io::Result<Vec<String>> {
    match fs::read_to_string(data_dir.join(FILE)) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        // Another program's file: it has no names of ours.
        Err(error) if error.kind() == ErrorKind::InvalidData => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

#[test]
fn a_known_folder_that_is_missing_is_away() {
    let data_dir = tempfile::tempdir().expect("a folder");
    let folder = |name: &str| data_dir.path().join("queues").join(name);
    let is_away = |name: &str| is_away(data_dir.path(), &folder(name)).expect("it can be read");
    assert!(!is_away("a"), "it never was there");
    for name in ["b", "a", "b"] {
        fs::create_dir_all(folder(name)).expect("it can be made");
        note(data_dir.path(), &folder(name)).expect("it can be written");
    }
    assert_eq!(fs::read_to_string(data_dir.path().join(FILE)).expect("it is there"), "a\nb\n");
    assert!(!is_away("a") && !is_away("b"));
    fs::remove_dir(folder("a")).expect("it is empty");
    assert!(is_away("a") && !is_away("b") && !is_away("c"));
    fs::create_dir(folder("a")).expect("it is free");
    assert!(!is_away("a"), "somebody has made it");
}
