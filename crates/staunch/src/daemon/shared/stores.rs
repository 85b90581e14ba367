//! The open stores of the daemon: outputs add them, queries and figures read them.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use graphite::store::{Store, WalkReport};
use sys::tree::Tree;

/// A store in use, for queries and figures.
#[derive(Debug)]
pub struct OpenStore {
    /// Name of its output.
    pub name: String,
    /// Points and names.
    pub store: Store,
    /// The files.
    pub tree: Tree,
    /// What has been found in the folder so far, and whether all of it has been looked at.
    pub walk: Mutex<(WalkReport, bool)>,
    /// What was done since it was opened.
    pub figures: StoreFigures,
    /// Files that could not be written.
    pub bad_files: Mutex<BadFiles>,
    /// Requests that wait until all points are in their files.
    pub drains: AtomicUsize,
    /// False while the lock of the folder is not held: its file system was read-only at the start, or another daemon writes there since.
    /// See [`OpenStore::check_may_write`].
    pub may_write: AtomicBool,
}

impl OpenStore {
    /// Whether files may be changed; if not, why.
    ///
    /// # Errors
    /// A sentence: the lock of the folder is not held.
    pub fn check_may_write(&self) -> Result<(), String> {
        match self.may_write.load(Relaxed) {
            true => Ok(()),
            false => Err("the folder is read-only, or another Staunch writes to it".to_owned()),
        }
    }

    /// All points are written at once, as long as the guard lives.
    pub fn drain(self: &Arc<OpenStore>) -> Draining {
        self.drains.fetch_add(1, Relaxed);
        Draining(Arc::clone(self))
    }
}

/// See [`OpenStore::drain`].
#[derive(Debug)]
pub struct Draining(Arc<OpenStore>);

impl Drop for Draining {
    fn drop(&mut self) {
        self.0.drains.fetch_sub(1, Relaxed);
    }
}

/// Most files of [`BadFiles`] with their names.
pub const BAD_FILES_NAMED_MAX: usize = 20;

/// Files that could not be written since all of them were last tried again.
#[derive(Clone, Debug, Default)]
pub struct BadFiles {
    /// How many.
    pub count: u64,
    /// The first ones: the path of each in the tree, and why.
    pub named: Vec<(String, String)>,
}

impl BadFiles {
    /// One more. True when it is named.
    pub fn add(&mut self, path: &str, why: String) -> bool {
        self.count += 1;
        let is_named = self.named.len() < BAD_FILES_NAMED_MAX;
        if is_named {
            self.named.push((path.to_owned(), why));
        }
        is_named
    }
}

/// What a store has done.
#[derive(Debug, Default)]
pub struct StoreFigures {
    /// Files that were written.
    pub updates: AtomicU64,
    /// Time spent on these writes, in nanoseconds.
    pub write_ns: AtomicU64,
    /// Files that were created, among them.
    pub creates: AtomicU64,
    /// Their size, in bytes.
    pub created_bytes: AtomicU64,
    /// Files that got other archives.
    pub migrated: AtomicU64,
    /// Files that were removed because of the limit on disk space.
    pub expired: AtomicU64,
    /// Size of all files when they were last looked at, in bytes; 0 without such a limit.
    pub files_bytes: AtomicU64,
    /// Points that came into files, without those that were computed for coarser archives.
    pub points: AtomicU64,
    /// Coarser points that were computed and written.
    pub propagated: AtomicU64,
    /// Files that could not be written, and syncs that failed.
    pub errors: AtomicU64,
    /// Syncs of the tree.
    pub syncs: AtomicU64,
}

/// The open stores of the daemon, by the names of their outputs.
#[derive(Debug, Default)]
pub struct Stores {
    open: ArcSwap<Vec<Arc<OpenStore>>>,
    /// The last store that could not be opened, and why, until one is.
    not_open: Mutex<Option<(String, String)>>,
}

impl Stores {
    /// All of them, sorted by name.
    pub fn all(&self) -> Arc<Vec<Arc<OpenStore>>> {
        self.open.load_full()
    }

    /// Adds one, in place of an earlier one of its name.
    pub fn add(&self, store: &Arc<OpenStore>) {
        *self.why_not() = None;
        self.open.rcu(|all| {
            let mut all: Vec<_> = all.iter().filter(|other| other.name != store.name).cloned().collect();
            all.push(Arc::clone(store));
            all.sort_by(|a, b| a.name.cmp(&b.name));
            all
        });
    }

    /// Removes it.
    pub fn remove(&self, store: &Arc<OpenStore>) {
        self.open
            .rcu(|all| all.iter().filter(|other| !Arc::ptr_eq(other, store)).cloned().collect::<Vec<_>>());
    }

    /// A store could not be opened.
    pub fn not_open(&self, name: &str, why: &std::io::Error) {
        *self.why_not() = Some((name.to_owned(), why.to_string()));
    }

    /// The last store that could not be opened, and why, if none was opened since.
    pub fn last_not_open(&self) -> Option<(String, String)> {
        self.why_not().clone()
    }

    fn why_not(&self) -> MutexGuard<'_, Option<(String, String)>> {
        self.not_open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
