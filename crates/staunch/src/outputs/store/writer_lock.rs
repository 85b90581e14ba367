//! The lock of the daemon that writes to a tree.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use config::plan::WhisperPlan;
use model::SECOND_NS;

/// Locked by the daemon that writes to a tree.
const LOCK_FILE: &str = ".staunch-writer";

/// Time between two attempts to lock a tree that was read-only.
const TRY_EVERY_NS: u64 = 5 * SECOND_NS;

/// Whether this daemon may write to a tree. It ends when it is dropped.
#[derive(Debug)]
pub(super) enum WriterLock {
    /// Each file is locked instead.
    OfFiles,
    /// Held as long as the file is open.
    Held { _file: File },
    /// The file system is read-only, so nobody writes. It is locked before the first write after that.
    ReadOnly { tried_ns: Option<u64> },
}

impl WriterLock {
    /// Locks the folder of a plan.
    ///
    /// # Errors
    /// Another daemon has it, or what the system reports.
    pub(super) fn take(plan: &WhisperPlan) -> io::Result<WriterLock> {
        if plan.lock {
            return Ok(WriterLock::OfFiles);
        }
        match lock(&plan.path) {
            Ok(file) => Ok(WriterLock::Held { _file: file }),
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                Ok(WriterLock::ReadOnly { tried_ns: None })
            }
            Err(error) => Err(error),
        }
    }

    /// True when files may be written. A folder that was read-only is tried again from time to time.
    pub(super) fn is_held(&self) -> bool {
        match self {
            WriterLock::OfFiles | WriterLock::Held { .. } => true,
            WriterLock::ReadOnly { .. } => false,
        }
    }

    /// Tries again to lock a folder that was read-only. `None` when it is not time for that.
    pub(super) fn try_again(&mut self, folder: &Path, now_ns: u64) -> Option<io::Result<()>> {
        let WriterLock::ReadOnly { tried_ns } = self else { return None };
        if tried_ns.is_some_and(|at| now_ns.saturating_sub(at) < TRY_EVERY_NS) {
            return None;
        }
        *tried_ns = Some(now_ns);
        Some(lock(folder).map(|file| *self = WriterLock::Held { _file: file }))
    }
}

fn lock(folder: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK_FILE))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(error),
        Err(TryLockError::WouldBlock) => {
            let message = "another Staunch writes to this folder: give each its own, or set `lock = true` in both (carbon.conf: \
                           `WHISPER_LOCK_WRITES = True`)";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, message))
        }
    }
}
