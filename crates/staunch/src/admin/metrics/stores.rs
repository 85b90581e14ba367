//! Self-metrics of stores of whisper files, and of queries to other nodes.

use super::family::family;
use crate::admin::graphite::PeerCounts;
use crate::admin::stores::{self, StoreRow};
use crate::daemon::shared::Shared;

pub(super) fn all(out: &mut String, shared: &Shared) {
    type Read = fn(&StoreRow) -> u64;
    let families: [(&'static str, &str, &str, Read); 15] = [
        ("staunch_store_series", "gauge", "Series of a store, in files or in memory.", |row| row.series),
        ("staunch_store_name_bytes", "gauge", "Memory of the names of series.", |row| row.name_bytes),
        ("staunch_store_points_in_memory", "gauge", "Points that are not in their files yet.", |row| {
            row.points_in_memory
        }),
        ("staunch_store_point_bytes", "gauge", "Memory of these points.", |row| row.point_bytes),
        ("staunch_store_max_point_bytes", "gauge", "Most memory of points.", |row| row.max_point_bytes),
        ("staunch_store_updates_total", "counter", "Files that were written.", |row| row.updates),
        ("staunch_store_creates_total", "counter", "Files that were created.", |row| row.creates),
        ("staunch_store_files_migrated_total", "counter", "Files that got other archives.", |row| {
            row.migrated
        }),
        (
            "staunch_store_files_expired_total",
            "counter",
            "Files that were removed because of max_bytes.",
            |row| row.expired,
        ),
        ("staunch_store_file_bytes", "gauge", "Size of all files, with max_bytes.", |row| row.file_bytes),
        ("staunch_store_points_written_total", "counter", "Points that came into files.", |row| {
            row.points_written
        }),
        ("staunch_store_points_propagated_total", "counter", "Coarser points that were written.", |row| {
            row.points_propagated
        }),
        ("staunch_store_errors_total", "counter", "Writes and syncs that failed.", |row| row.errors),
        ("staunch_store_syncs_total", "counter", "Syncs of the files.", |row| row.syncs),
        ("staunch_store_walk_done", "gauge", "1 once all folders have been looked at.", |row| {
            u64::from(row.walk_done)
        }),
    ];
    let page = stores::page(shared);
    for (name, kind, help, read) in families {
        let mut rows = family(out, name, kind, help);
        for row in &page.stores {
            rows.row(&[("output", &row.name)], read(row) as f64);
        }
    }
}

pub(super) fn peers(out: &mut String, counts: &[PeerCounts]) {
    let name = "staunch_graphite_peer_requests_total";
    let mut rows = family(out, name, "counter", "Requests to other nodes for queries, by result.");
    for one in counts {
        rows.row(&[("peer", &one.peer), ("result", "answered")], one.answered as f64);
        rows.row(&[("peer", &one.peer), ("result", "failed")], one.failed as f64);
    }
}
