//! The queues on disk that there were: a start that does not find the folder of one must not make another in its place.
//!
//! `<data_dir>/known-queues` has the name of each folder, a line each, from the moment on that its queue was opened. A
//! folder that is in the list and not there was moved away, or its file system is not mounted: what waits in it would stay
//! behind, unnoticed. Somebody who wants to begin anew makes the folder.
//! Not here: waiting for it, and refusing (`queues`). A data directory that is away as a whole takes this file with it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use sys::disk;

/// The file in the data directory.
pub const FILE: &str = "known-queues";

/// True when the queue in `folder` of the data directory was there before and is not there now.
///
/// # Errors
/// When nobody can know now.
pub fn is_away(data_dir: &Path, folder: &Path) -> io::Result<bool> {
    match fs::metadata(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        // Opening it reports what is in its place.
        _ => return Ok(false),
    }
    Ok(names(data_dir)?.contains(&name_of(folder)))
}

/// The queue in `folder` is there from now on.
///
/// # Errors
/// When that cannot be written.
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
        // Somebody else's: it knows none of ours.
        Err(error) if error.kind() == ErrorKind::InvalidData => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

#[test]
fn a_folder_that_was_there_and_is_not_is_away() {
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
