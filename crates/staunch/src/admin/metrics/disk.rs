//! Self-metrics of queues on disk: one row for each output with such a queue.

use super::family::family;
use crate::admin::accounts::{AccountsPage, DiskRow};

pub(super) fn queues(out: &mut String, page: &AccountsPage) {
    type Read = fn(&DiskRow) -> u64;
    let rows: [(&'static str, &str, &str, Read); 14] = [
        ("staunch_queue_segments", "gauge", "Files of a queue on disk that contain records.", |row| {
            row.segments
        }),
        ("staunch_queue_blocks_unsynced", "gauge", "Blocks accepted and not synced yet.", |row| {
            row.blocks_unsynced
        }),
        ("staunch_queue_blocks_in_doubt_total", "counter", "Blocks whose sync failed.", |row| {
            row.blocks_in_doubt
        }),
        ("staunch_queue_damaged_ranges_total", "counter", "Damaged ranges of queue files.", |row| {
            row.damaged_ranges
        }),
        ("staunch_queue_blocks_damaged_total", "counter", "Blocks in damaged ranges.", |row| {
            row.blocks_damaged
        }),
        (
            "staunch_queue_quarantined_bytes_total",
            "counter",
            "Bytes of damaged ranges that were moved to quarantine.",
            |row| row.quarantined_bytes,
        ),
        (
            "staunch_queue_quarantine_full_total",
            "counter",
            "Damaged ranges that were not moved to quarantine because it was full.",
            |row| row.quarantine_full,
        ),
        ("staunch_queue_write_errors_total", "counter", "Writes that failed.", |row| row.write_errors),
        ("staunch_queue_write_waits", "gauge", "1 while writes to the queue on disk fail.", |row| {
            u64::from(row.write_error.is_some())
        }),
        ("staunch_queue_read_errors_total", "counter", "Reads that failed and were retried.", |row| {
            row.read_errors
        }),
        ("staunch_queue_read_waits", "gauge", "1 while queued records cannot be read.", |row| {
            u64::from(row.read_error.is_some())
        }),
        (
            "staunch_queue_records_missing",
            "gauge",
            "Records in missing queue files, which a stop loses.",
            |row| row.records_missing,
        ),
        ("staunch_queue_sync_errors_total", "counter", "Syncs that failed.", |row| row.sync_errors),
        ("staunch_queue_remove_errors_total", "counter", "Files that could not be removed.", |row| {
            row.remove_errors
        }),
    ];
    for (name, kind, help, read) in rows {
        let mut rows = family(out, name, kind, help);
        for row in &page.outputs {
            if let Some(disk) = &row.disk {
                rows.row(&[("output", &row.name)], read(disk) as f64);
            }
        }
    }
}
