//! Checkpoints in `/api/v1/accounts` and `/metrics`.

use model::{Now, SECOND_NS};
use serde::Serialize;

use crate::daemon::shared::Shared;

/// The checkpoints of one aggregation.
#[derive(Debug, Default, Serialize)]
pub struct CheckpointRow {
    /// Name of the aggregation.
    pub transform: String,
    /// Interval in seconds.
    pub every_s: f64,
    /// Written since the start.
    pub written: u64,
    /// Failed attempts to write.
    pub failed: u64,
    /// Age in seconds of the state on disk; `None` before the first checkpoint.
    pub age_s: Option<f64>,
    /// Bytes of the last one.
    pub bytes: u64,
    /// Series in the last one.
    pub series: u64,
    /// Series restored at the start.
    pub restored_series: u64,
    /// Age of the restored checkpoint.
    pub restored_age_s: f64,
    /// Unreadable series in it.
    pub restored_damaged: u64,
    /// Series in it above `series_max`.
    pub restored_dropped: u64,
    /// Completely unreadable files at the start.
    pub unreadable: u64,
}

/// A row for each aggregation with checkpoints.
pub fn rows(shared: &Shared, now: Now) -> Vec<CheckpointRow> {
    let figures = shared.checkpoints.all().into_iter();
    let seconds = |ns: u64| ns as f64 / SECOND_NS as f64;
    figures
        .map(|(transform, figures)| CheckpointRow {
            transform,
            every_s: figures.every_ms as f64 / 1000.0,
            written: figures.written,
            failed: figures.failed,
            age_s: figures.as_of_ns.map(|as_of_ns| seconds(now.mono_ns.saturating_sub(as_of_ns))),
            bytes: figures.bytes,
            series: figures.series,
            restored_series: figures.restored_series,
            restored_age_s: figures.restored_age_ms as f64 / 1000.0,
            restored_damaged: figures.restored_damaged,
            restored_dropped: figures.restored_dropped,
            unreadable: figures.unreadable,
        })
        .collect()
}
