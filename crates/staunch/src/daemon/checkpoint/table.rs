//! Figures of checkpoints, written by several threads and read by the API.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Figures of the checkpoints of one aggregation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointFigures {
    /// Milliseconds between two; 0 when they are off.
    pub every_ms: u64,
    /// Written since the start.
    pub written: u64,
    /// Could not be written.
    pub failed: u64,
    /// The last one could not be written.
    pub is_failing: bool,
    /// Bytes of the last one.
    pub bytes: u64,
    /// Series in the last one.
    pub series: u64,
    /// Monotonic nanosecond at which what is on disk was what the aggregation held; none before the first.
    pub as_of_ns: Option<u64>,
    /// Series that were restored at the start.
    pub restored_series: u64,
    /// Age of the checkpoint that they came from, in milliseconds.
    pub restored_age_ms: u64,
    /// Series of it that could not be read.
    pub restored_damaged: u64,
    /// Series of it that were past `series_max`.
    pub restored_dropped: u64,
    /// Files that could not be read at all.
    pub unreadable: u64,
}

/// The figures of all aggregations that have checkpoints, by name; and where checkpoints are.
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

    /// From now on checkpoints may be kept in `folder`, which is ours. Only the first one counts.
    pub fn keep_in(&self, folder: PathBuf) {
        // A data directory changes at a start only.
        let _known = self.folder.set(folder);
    }

    /// Where checkpoints are; none while they cannot be kept.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.get().map(PathBuf::as_path)
    }

    /// Held by the thread that writes checkpoints, to its end: one that is slow to end and its successor would write to
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

    /// Takes the row of `name` away.
    pub fn remove(&self, name: &str) {
        self.rows().remove(name);
    }

    /// All rows.
    pub fn all(&self) -> Vec<(String, CheckpointFigures)> {
        self.rows().iter().map(|(name, row)| (name.clone(), row.clone())).collect()
    }
}
