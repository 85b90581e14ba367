//! A store of series: points in memory until they are written to whisper files, and reads of both together.
//!
//! Path of a point: a block of lines from the output's queue -> [`Store::push`] -> memory of its series (`part`) -> [`Store::next`],
//! when it is old enough or memory is short -> [`Store::write`], with all other points of its series -> its file ->
//! [`Store::written_up_to`]: the caller syncs the tree and settles the blocks in the queue.
//! Path of a query: [`Reader`] (a [`query::Fetch`](crate::query::Fetch)) -> names by glob or tags in the catalog -> points in memory,
//! copied -> the file -> values of both (`overlay`).
//!
//! **The log of the store is the output's queue on disk.** Blocks stay in it until their points are in synced files, so that a crash loses
//! nothing: the queue replays the blocks that were not settled. A replay is harmless, as the last value of a timestamp wins. Not here: that
//! queue (`deliver`), lines (`wire`), threads and the sync (the binary), rules of layouts (`whisper::rules`).
//!
//! Several threads call a store at once. Series are in [`PARTS`] parts with a lock each; the catalog has one of its own, which queries
//! hold for slices of a search only. A part is locked while the file of one of its series is removed, renamed or gets another header; no lock is held
//! during other I/O.
//! Invariants: memory of points, names and series are limited ([`StoreOptions`]); a point that was taken is in memory or in its file,
//! also for readers, at each moment; [`Store::written_up_to`] never passes a point that is only in memory.
//!
//! | file | job |
//! |---|---|
//! | `options` | limits, rules and their defaults |
//! | `part` | series of a part: points in memory, in the order in which they have to be written |
//! | `push` | points in; refusals |
//! | `example` | a refused point of each reason, for the log |
//! | `write` | which series is written next, and writing it |
//! | `rate` | limits of updates and new files in time |
//! | `new_file` | a file that is being filled for the first time |
//! | `kept` | what is known of a file between two writes |
//! | `overlay` | a file with the points in memory, as if they were written |
//! | `reader` | series for queries |
//! | `names` | the catalog: names of files, search, removal |
//! | `rename` | another name for a series |
//! | `migrate` | existing files with the archives that new ones get |
//! | `expire` | a limit on the disk space of the files |

mod example;
mod expire;
mod kept;
mod metadata;
mod migrate;
mod names;
mod new_file;
mod options;
mod overlay;
mod part;
mod push;
mod rate;
mod reader;
mod rename;
#[cfg(test)]
mod tests;
mod write;

use std::hash::BuildHasher;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use foldhash::fast::FixedState;

use crate::catalog::Catalog;
use crate::catalog::saved::Journal;

pub use example::{EXAMPLE_BYTES_MAX, Example};
pub use expire::{Expire, ExpiryReport};
pub use migrate::{Migrate, MigrationReport};
pub use names::{CatalogGuard, ChangeError, Walk, WalkReport};
pub use options::{ATTEMPTS_MAX, Rules, StoreOptions};
pub use push::{Pushed, Refusal, When};
pub use reader::{NotRead, Reader, SEARCH_STEPS};
pub use write::{Job, WriteError, WriteReport, Writer};

use self::example::Examples;
use self::part::Part;
use self::rate::Rate;

/// Number of parts of the series: writers and the thread that pushes rarely wait for each other.
pub const PARTS: usize = 16;

/// See the module's header.
#[derive(Debug)]
pub struct Store {
    options: StoreOptions,
    rules: RwLock<Arc<Rules>>,
    hash: FixedState,
    parts: Box<[Mutex<Part>]>,
    /// Names, and the changes of them that are not saved yet, if they are saved at all.
    catalog: RwLock<Names>,
    /// Bytes of points in memory.
    points_bytes: AtomicU64,
    /// The block after the last one that was pushed completely.
    pushed_up_to: AtomicU64,
    /// The part from which the next job comes.
    turn: AtomicUsize,
    draining: AtomicBool,
    /// Held while points move from one part to another, and while somebody looks for points in one part after the other: they would be missed.
    moving: Mutex<()>,
    /// The series whose file is replaced by one with other archives.
    migrating: Mutex<Option<Vec<u8>>>,
    updates: Mutex<Rate>,
    creates: Mutex<Rate>,
    /// Points that were taken and have another outcome than being stored, since the last [`Store::take_refused`].
    refused: [AtomicU64; Refusal::COUNT],
    examples: Examples<{ Refusal::COUNT }>,
}

/// The catalog, and the changes of it since a snapshot began.
#[derive(Debug)]
struct Names {
    catalog: Catalog,
    journal: Option<Journal>,
}

/// A panic elsewhere leaves whole values: no call of this crate panics between two steps of a change.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// An empty store. `seed` is for hashes of names, which come from outside.
    pub fn new(options: StoreOptions, rules: Rules, seed: u64) -> Store {
        let catalog = Catalog::new(options.catalog_limits(), seed);
        Store::with_names(options, rules, seed, catalog)
    }

    /// A store with the names of a catalog that was saved.
    pub fn with_names(options: StoreOptions, rules: Rules, seed: u64, catalog: Catalog) -> Store {
        Store {
            rules: RwLock::new(Arc::new(rules)),
            hash: FixedState::with_seed(seed),
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            catalog: RwLock::new(Names { catalog, journal: None }),
            points_bytes: AtomicU64::new(0),
            pushed_up_to: AtomicU64::new(0),
            turn: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            moving: Mutex::new(()),
            migrating: Mutex::new(None),
            updates: Mutex::new(Rate::new(u64::from(options.updates_per_second_max), 1)),
            creates: Mutex::new(Rate::new(u64::from(options.creates_per_minute_max), 60)),
            refused: Default::default(),
            examples: Examples::new(),
            options,
        }
    }

    /// Its limits.
    pub fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// Sets the rules for files that are created from now on. True when they differ from the ones before.
    pub fn set_rules(&self, rules: Rules) -> bool {
        let mut current = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let differ = **current != rules;
        *current = Arc::new(rules);
        differ
    }

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Bytes of points in memory.
    pub fn points_bytes(&self) -> u64 {
        self.points_bytes.load(Relaxed)
    }

    /// Points in memory, and series that have some.
    pub fn pending(&self) -> (u64, u64) {
        let counts = self.parts.iter().map(|part| locked(part).pending());
        counts.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    }

    /// From now on all points are due at once, or no longer.
    pub fn drain(&self, draining: bool) {
        self.draining.store(draining, Relaxed);
    }

    /// Files that were unusable are looked at again when points of their series come: somebody may have mended them.
    pub fn forget_unusable(&self) {
        self.parts.iter().for_each(|part| locked(part).forget_unusable());
    }

    /// Every point of the blocks before this one is in its file, or was refused. Sync the tree after this call, then settle them.
    pub fn written_up_to(&self) -> u64 {
        let _nothing_moves = locked(&self.moving);
        let pushed = self.pushed_up_to.load(Relaxed);
        let oldest = self.parts.iter().filter_map(|part| locked(part).oldest_block()).min();
        oldest.map_or(pushed, |oldest| oldest.min(pushed))
    }

    /// Points that were taken and had another outcome than being stored, since the last call.
    pub fn take_refused(&self) -> Vec<(Refusal, u64)> {
        let counts = Refusal::ALL.iter().map(|why| (*why, self.refused[why.index()].swap(0, Relaxed)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    fn refuse(&self, why: Refusal, points: u64) {
        self.refused[why.index()].fetch_add(points, Relaxed);
    }

    /// The part of a name, and the hash in it.
    fn part_of(&self, name: &[u8]) -> (&Mutex<Part>, u64) {
        let hash = self.hash.hash_one(name);
        (&self.parts[(hash >> 60) as usize % PARTS], hash)
    }
}
