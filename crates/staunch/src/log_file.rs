//! A log file that can be opened again, because another program has renamed it.
//!
//! Path of a line: a compatibility mode's writer -> [`LogFile::write`] -> `log_stream`, which never waits for the disk.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;

use crate::log_stream;

/// See the module's header.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: Mutex<Arc<File>>,
}

impl LogFile {
    /// Opens or creates it; lines are appended.
    ///
    /// # Errors
    /// When it cannot be opened, or is a pipe that is not under `/dev`.
    pub(crate) fn open(path: &Path) -> anyhow::Result<LogFile> {
        Ok(LogFile { path: path.to_owned(), file: Mutex::new(Arc::new(opened(path)?)) })
    }

    /// Opens it again. After an error lines go to the file that was open.
    ///
    /// # Errors
    /// As [`LogFile::open`].
    pub(crate) fn reopen(&self) -> anyhow::Result<()> {
        let file = Arc::new(opened(&self.path)?);
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
        Ok(())
    }

    /// Writes whole lines, or drops them when the disk is too slow.
    pub(crate) fn write(&self, lines: &[u8]) {
        let file = Arc::clone(&self.file.lock().unwrap_or_else(PoisonError::into_inner));
        log_stream::to_file(&file, lines);
    }
}

fn opened(path: &Path) -> anyhow::Result<File> {
    let file = open_file(OpenOptions::new().append(true).create(true), path);
    file.with_context(|| format!("failed to open log file '{}'", path.display()))
}

/// A pipe is rejected, unless it is stdout or stderr under `/dev`: a write to it would wait for its reader.
fn open_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    if path.starts_with("/dev") {
        return options.open(path);
    }
    let is_pipe = || io::Error::other("it is a pipe");
    let is_there = std::fs::metadata(path).is_ok_and(|about| sys::is_pipe(&about));
    if is_there {
        return Err(is_pipe());
    }
    // The file may be replaced by a pipe at this moment.
    let file = sys::open_at_once(options, path)?;
    if sys::is_pipe(&file.metadata()?) { Err(is_pipe()) } else { Ok(file) }
}
