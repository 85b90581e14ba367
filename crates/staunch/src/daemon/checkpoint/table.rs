//! Figures of checkpoints, written by several threads and read by the API.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Figures of the checkpoints of one aggregation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointFigures {
    /// Interval in milliseconds; 0 when they are off.
    pub every_ms: u64,
    /// Written since the start.
    pub written: u64,
    /// Failed attempts to write.
    pub failed: u64,
    /// The last one could not be written.
    pub is_failing: bool,
    /// Bytes of the last one.
    pub bytes: u64,
    /// Series in the last one.
    pub series: u64,
    /// When the state on disk was saved, in monotonic nanoseconds; `None` before the first checkpoint.
    pub as_of_ns: Option<u64>,
    /// Series that were restored at the start.
    pub restored_series: u64,
    /// Age of the restored checkpoint, in milliseconds.
    pub restored_age_ms: u64,
    /// Unreadable series in it.
    pub restored_damaged: u64,
    /// Series in it above `series_max`.
    pub restored_dropped: u64,
    /// Completely unreadable files.
    pub unreadable: u64,
}

/// The figures of all aggregations with checkpoints, by name; and the folder of checkpoints.
#[derive(Debug, Default)]
pub struct CheckpointTable {
    rows: Mutex<BTreeMap<String, CheckpointFigures>>,
    folder: OnceLock<PathBuf>,
    writing: Mutex<()>,
}

impl CheckpointTable {
    fn rows(&self) -> MutexGuard<'_, BTreeMap<String, CheckpointFigures>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on checkpoints may be stored in `folder`, which this process owns. Only the first call has an effect.
    pub fn keep_in(&self, folder: PathBuf) {
        // The data directory changes only at a start.
        let _known = self.folder.set(folder);
    }

    /// The folder of checkpoints; `None` while they cannot be stored.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.get().map(PathBuf::as_path)
    }

    /// Locked by the thread that writes checkpoints until its end: otherwise a slow one and its successor would write
    /// the same file.
    pub(super) fn write_alone(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the row of `name`.
    pub fn change(&self, name: &str, change: impl FnOnce(&mut CheckpointFigures)) {
        let mut rows = self.rows();
        if !rows.contains_key(name) {
            rows.insert(name.to_owned(), CheckpointFigures::default());
        }
        if let Some(row) = rows.get_mut(name) {
            change(row);
        }
    }

    /// True when the last checkpoint of `name` could not be written.
    pub fn is_failing(&self, name: &str) -> bool {
        self.rows().get(name).is_some_and(|row| row.is_failing)
    }

    /// Removes the row of `name`.
    pub fn remove(&self, name: &str) {
        self.rows().remove(name);
    }

    /// All rows.
    pub fn all(&self) -> Vec<(String, CheckpointFigures)> {
        self.rows().iter().map(|(name, row)| (name.clone(), row.clone())).collect()
    }
}
