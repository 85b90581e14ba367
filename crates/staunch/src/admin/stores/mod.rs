//! `/api/v1/stores`: the stores of whisper files, with their memory and what they have done. `changes` deletes and renames series.

pub(super) mod changes;

use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use serde::Serialize;

use crate::daemon::shared::Shared;
use crate::daemon::shared::stores::{BadFiles, OpenStore};

/// The page.
#[derive(Debug, Serialize)]
pub struct StoresPage {
    /// The open stores, sorted by name.
    pub stores: Vec<StoreRow>,
}

/// A store.
#[derive(Debug, Serialize)]
pub struct StoreRow {
    /// Name of its output.
    pub name: String,
    /// The folder with its files.
    pub path: String,
    /// Series, in files or in memory.
    pub series: u64,
    /// Memory of their names, in bytes.
    pub name_bytes: u64,
    /// Points in memory.
    pub points_in_memory: u64,
    /// Series that have some.
    pub series_in_memory: u64,
    /// Memory of these points, in bytes.
    pub point_bytes: u64,
    /// Most memory of points, in bytes.
    pub max_point_bytes: u64,
    /// Files that were written since the start.
    pub updates: u64,
    /// Files that were created, among them.
    pub creates: u64,
    /// Files that got other archives (`online_migration`).
    pub migrated: u64,
    /// Files that were removed because of `max_bytes`.
    pub expired: u64,
    /// Size of all files when they were last looked at, in bytes; 0 without `max_bytes`.
    pub file_bytes: u64,
    /// Points that came into files.
    pub points_written: u64,
    /// Coarser points that were computed and written.
    pub points_propagated: u64,
    /// Files that could not be written, and syncs that failed.
    pub errors: u64,
    /// Syncs of the tree.
    pub syncs: u64,
    /// Whether all folders have been looked at since the start.
    pub walk_done: bool,
    /// Files of series that were found so far.
    pub files_found: u64,
    /// Files of tagged series among the others: their path has only the hash of the name.
    pub files_hashed: u64,
    /// Files that are none of whisper.
    pub files_foreign: u64,
    /// Files that could not be written since all of them were last tried again, which happens every ten minutes. One that was tried several
    /// times counts several times.
    pub files_bad: u64,
    /// The first 20 of them.
    pub bad_files: Vec<BadFile>,
}

/// A file that could not be written.
#[derive(Debug, Serialize)]
pub struct BadFile {
    /// Its path in the store.
    pub path: String,
    /// What is wrong with it.
    pub error: String,
}

/// All stores.
pub fn page(shared: &Shared) -> StoresPage {
    StoresPage { stores: shared.stores.all().iter().map(|open| row(open)).collect() }
}

fn row(open: &OpenStore) -> StoreRow {
    let (points, series) = open.store.pending();
    let (walk, walk_done) = open.walk.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let BadFiles { count, named } = open.bad_files.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let figures = &open.figures;
    // One look at the catalog, which ends here. A second one within it would wait for a writer that waits for the first.
    let (all_series, name_bytes) = {
        let catalog = open.store.catalog();
        (u64::from(catalog.len()), catalog.memory_bytes() as u64)
    };
    StoreRow {
        name: open.name.clone(),
        path: open.tree.root().display().to_string(),
        series: all_series,
        name_bytes,
        points_in_memory: points,
        series_in_memory: series,
        point_bytes: open.store.points_bytes(),
        max_point_bytes: open.store.options().points_bytes_max,
        updates: figures.updates.load(Relaxed),
        creates: figures.creates.load(Relaxed),
        migrated: figures.migrated.load(Relaxed),
        expired: figures.expired.load(Relaxed),
        file_bytes: figures.files_bytes.load(Relaxed),
        points_written: figures.points.load(Relaxed),
        points_propagated: figures.propagated.load(Relaxed),
        errors: figures.errors.load(Relaxed),
        syncs: figures.syncs.load(Relaxed),
        walk_done,
        files_found: walk.files,
        files_hashed: walk.hashed,
        files_foreign: walk.foreign,
        files_bad: count,
        bad_files: named.into_iter().map(|(path, error)| BadFile { path, error }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::sync::{Arc, Mutex, mpsc};
    use std::time::Duration;

    use graphite::store::{Pushed, Rules, Store, StoreOptions};
    use graphite::whisper::Point;
    use graphite::whisper::rules::{Aggregations, Schemas};
    use sys::tree::Tree;

    use super::*;

    /// A thread that waits for the catalog twice, and another one that wants to add to it in between, would wait forever.
    #[test]
    fn figures_are_read_while_names_are_added() {
        let schemas = Schemas::new(Vec::new()).expect("no rules are valid");
        let rules = Rules { schemas, aggregations: Aggregations::new(Vec::new()).expect("valid") };
        let folder = tempfile::tempdir().expect("a folder");
        let open = Arc::new(OpenStore {
            name: "store".to_owned(),
            store: Store::new(StoreOptions::default(), rules, 7),
            tree: Tree::open(folder.path().to_owned()).expect("it is there"),
            walk: Mutex::default(),
            figures: crate::daemon::shared::stores::StoreFigures::default(),
            bad_files: Mutex::default(),
            drains: AtomicUsize::new(0),
            may_write: AtomicBool::new(true),
        });
        let (ended, all_ended) = mpsc::channel();
        let adds = |part: u32| {
            let (open, ended) = (Arc::clone(&open), ended.clone());
            move || {
                let point = Point { time: 1_800_000_000, value: 1.0 };
                for number in 0..10_000 {
                    let pushed =
                        open.store.push(format!("a.b{part}.c{number}").as_bytes(), point, 0, point.time);
                    assert_eq!(pushed, Pushed::Taken);
                }
                ended.send(()).expect("somebody waits");
            }
        };
        let reads = || {
            let (open, ended) = (Arc::clone(&open), ended.clone());
            move || {
                while row(&open).series < 20_000 {}
                ended.send(()).expect("somebody waits");
            }
        };
        // Threads that wait for each other are left behind.
        (0..2).for_each(|part| drop(std::thread::spawn(adds(part))));
        (0..4).for_each(|_| drop(std::thread::spawn(reads())));
        for _ in 0..6 {
            assert_eq!(all_ended.recv_timeout(Duration::from_secs(60)), Ok(()));
        }
    }
}
