//! The file with the process id, for compatibility modes: it exists as long as the daemon runs, and is never another daemon's.
//!
//! A start that fails because another process has the ports does not touch that process's file. Neither does a process
//! whose successor continues after a hot restart.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A pipe or a device has no content to compare.
fn is_a_file(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { Ok(()) } else { Err(io::Error::other("it is a pipe or a device")) }
}

/// Removed when this is dropped, if it was written.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    /// Its content, once it is written.
    text: Option<String>,
    /// It did not exist before.
    made: bool,
}

impl PidFile {
    /// Checks that it can be written, and keeps its content.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn reserve(path: &Path) -> anyhow::Result<PidFile> {
        let made = !path.exists();
        let opened = sys::open_at_once(OpenOptions::new().write(true).create(true).truncate(false), path);
        let opened = opened.and_then(|file| is_a_file(&file));
        opened.with_context(|| format!("failed to open pidfile '{}'", path.display()))?;
        Ok(PidFile { path: path.to_owned(), text: None, made })
    }

    /// Writes it, replacing an existing one, as in the original.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self) -> anyhow::Result<()> {
        let text = format!("{}\n", std::process::id());
        let written = fs::write(&self.path, &text);
        written.with_context(|| format!("failed to open pidfile '{}'", self.path.display()))?;
        self.text = Some(text);
        Ok(())
    }

    /// Leaves it to the successor.
    pub fn leave(mut self) {
        (self.text, self.made) = (None, false);
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let ours = match &self.text {
            Some(text) => fs::read_to_string(&self.path).is_ok_and(|found| found == *text),
            None => self.made && fs::metadata(&self.path).is_ok_and(|about| about.len() == 0),
        };
        if ours {
            let _gone = fs::remove_file(&self.path);
        }
    }
}

#[test]
fn the_file_is_removed_with_its_process_but_not_when_it_is_another_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pid");
    let text = || fs::read_to_string(&path).ok();
    let reserved = || PidFile::reserve(&path).expect("the folder takes it");
    let written = || {
        let mut file = reserved();
        file.write().expect("the folder takes it");
        file
    };
    let own = format!("{}\n", std::process::id());
    drop(reserved());
    assert_eq!(text(), None, "a start that fails leaves nothing");
    let file = written();
    assert_eq!(text(), Some(own.clone()));
    drop(reserved());
    assert_eq!(text(), Some(own.clone()), "nor takes anything away");
    drop(file);
    assert_eq!(text(), None);
    let file = written();
    fs::write(&path, "1\n").expect("it can be written");
    drop(file);
    assert_eq!(text().as_deref(), Some("1\n"));
    written().leave();
    assert_eq!(text(), Some(own), "the next process may have the same number in another container");
    assert!(PidFile::reserve(&folder.path().join("none/pid")).is_err());
}
