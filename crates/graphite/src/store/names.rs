//! The catalog of a store: names of files and of series in memory, found for queries, and removed.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};

use model::{DiskError, EntryKind, FileTree, FolderId};

use super::part::Part;
use super::{Names, Refusal, Store, locked};
use crate::catalog::saved::{Journal, Snapshot};
use crate::catalog::{Catalog, Inserted, Refused, SeriesId};
use crate::whisper::FileError;
use crate::whisper::names::{NameOfPath, name_of, path_of};

/// Entries of folders that one step of a walk looks at, about.
const WALK_ENTRIES: usize = 4096;

/// The catalog of a store, locked for reading.
#[derive(Debug)]
pub struct CatalogGuard<'s>(RwLockReadGuard<'s, Names>);

impl Deref for CatalogGuard<'_> {
    type Target = Catalog;

    fn deref(&self) -> &Catalog {
        &self.0.catalog
    }
}

/// Why a series is as it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChangeError {
    /// It is written at this moment: try again.
    Busy,
    /// Its new name is not one of a series.
    BadName,
    /// Another series has the new name.
    Taken,
    /// The limits of names are reached.
    Full,
    /// What is wrong with it, or with the disk.
    File(FileError),
}

impl From<DiskError> for ChangeError {
    fn from(error: DiskError) -> ChangeError {
        ChangeError::File(FileError::Disk(error))
    }
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::Busy => f.write_str("it is being written: try again"),
            ChangeError::BadName => f.write_str("the new name is not one of a series"),
            ChangeError::Taken => f.write_str("there is a series of the new name already"),
            ChangeError::Full => f.write_str("the limits of names are reached"),
            ChangeError::File(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ChangeError {}

impl Store {
    /// The catalog, for a slice of a search: nothing is added meanwhile.
    pub fn catalog(&self) -> CatalogGuard<'_> {
        CatalogGuard(self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn names_mut(&self) -> RwLockWriteGuard<'_, Names> {
        self.catalog.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a name.
    pub(super) fn add_name(&self, name: &[u8]) -> Result<Inserted, Refused> {
        if let Some(id) = self.catalog().find(name) {
            return Ok(Inserted::Known(id));
        }
        let mut names = self.names_mut();
        let Names { catalog, journal } = &mut *names;
        let inserted = catalog.insert(name)?;
        if let (Inserted::New(id), Some(journal)) = (inserted, journal) {
            journal.put(id, name);
        }
        Ok(inserted)
    }

    /// Adds a name in its normal form before points of it come. Without any, it is forgotten at the next start.
    ///
    /// # Errors
    /// It is not valid, or a limit of names is reached.
    pub fn put_name(&self, name: &[u8]) -> Result<(), Refused> {
        self.add_name(name).map(drop)
    }

    /// Takes a name out of the catalog, and leaves its file: with its next point it is back. One with points in memory stays. True when it
    /// was removed.
    pub fn forget_name(&self, name: &[u8]) -> bool {
        let (part, hash) = self.part_of(name);
        let mut part = locked(part);
        let has_points = part.find(hash, name).is_some_and(|series| !part.points(series).is_empty());
        if has_points {
            return false;
        }
        let Some((_none, freed)) = part.remove(hash, name) else { return false };
        self.points_bytes.fetch_sub(freed, Relaxed);
        self.remove_name(name, &part)
    }

    /// Removes the name of a series that has no file, and had no points since the start. True when it was removed.
    pub(super) fn remove_if_gone<T: FileTree>(&self, tree: &T, name: &[u8]) -> bool {
        let Ok(located) = path_of(name, self.options.names) else { return false };
        let (part, hash) = self.part_of(name);
        // No point can come while the part is locked, and no series can get this name.
        let part = locked(part);
        // What cannot be looked at may be there.
        let is_there = located.paths().any(|path| tree.exists(path) != Ok(false));
        let is_active = part.find(hash, name).is_some();
        !is_there && !is_active && self.remove_name(name, &part)
    }

    /// Removes a name. Its part is locked, as it is when [`push`](Store::push) adds one: a point that came in between would find the name known,
    /// and its series would then have points without a name.
    pub(super) fn remove_name(&self, name: &[u8], _locked: &Part) -> bool {
        let mut names = self.names_mut();
        let Names { catalog, journal } = &mut *names;
        let removed = catalog.remove(name);
        if let (Some(id), Some(journal)) = (removed, journal) {
            journal.gone(id);
        }
        removed.is_some()
    }

    /// Begins to save the names: all of them as a snapshot, and changes from now on in a journal of the same generation.
    pub fn begin_saving(&self, generation: u64) -> Snapshot {
        self.names_mut().journal = Some(Journal::new(generation));
        Snapshot::new(generation)
    }

    /// Appends the changes of names since the last call to `out`.
    pub fn take_changes(&self, out: &mut Vec<u8>) {
        let mut names = self.names_mut();
        if let Some(journal) = names.journal.as_mut().filter(|journal| journal.pending_bytes() > 0) {
            journal.take(out);
        }
    }

    /// Deletes a series: its file, its name and its points in memory. False when it has neither.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn delete<T: FileTree>(&self, tree: &T, name: &[u8]) -> Result<bool, ChangeError> {
        self.remove_series(tree, name, Refusal::Deleted)
    }

    /// Deletes a series because of the limit of the files, unless its file was written after `modified`, in Unix seconds.
    pub(super) fn expire<T: FileTree>(
        &self,
        tree: &T,
        name: &[u8],
        modified: i64,
    ) -> Result<bool, ChangeError> {
        let Ok(located) = path_of(name, self.options.names) else { return Ok(false) };
        let is_newer = |path: &String| tree.facts(path).is_ok_and(|facts| facts.modified > modified);
        if located.paths().any(is_newer) {
            return Ok(false);
        }
        self.remove_series(tree, name, Refusal::Expired)
    }

    /// `why` is the outcome of its points in memory.
    fn remove_series<T: FileTree>(&self, tree: &T, name: &[u8], why: Refusal) -> Result<bool, ChangeError> {
        let Ok(located) = path_of(name, self.options.names) else { return Ok(false) };
        let (part, hash) = self.part_of(name);
        let mut part = locked(part);
        // The lock is held while the file is removed: no job can begin to write it anew in between.
        if self.is_migrating(name) {
            return Err(ChangeError::Busy);
        }
        if part.find(hash, name).is_some_and(|series| part.is_writing(series)) {
            return Err(ChangeError::Busy);
        }
        let mut found = false;
        for path in located.paths() {
            match tree.remove(path) {
                Ok(()) => found = true,
                Err(DiskError::NotFound) => {}
                // Its points stay, and are written.
                Err(error) => return Err(error.into()),
            }
        }
        let (points, freed) = part.remove(hash, name).expect("no job writes it while its part is locked");
        self.points_bytes.fetch_sub(freed, Relaxed);
        self.refuse(why, points);
        let known = self.remove_name(name, &part);
        Ok(found || points > 0 || known)
    }
}

/// What a walk has found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WalkReport {
    /// Folders that were listed.
    pub folders: u64,
    /// Files with a name of a series.
    pub files: u64,
    /// Names that were not known before.
    pub new: u64,
    /// Files of series with tags whose name is not known: their path has only its hash.
    pub hashed: u64,
    /// Files that are none of whisper.
    pub foreign: u64,
    /// Names that do not fit the limits of the store.
    pub refused: u64,
    /// Names without a file, which were removed.
    pub gone: u64,
    /// Folders that could not be listed, with the last one and its error.
    pub failed: u64,
    /// The last of them.
    pub last_error: Option<(String, DiskError)>,
}

/// A look at all files of a tree, in steps, that adds their names to the store, and then removes names without a file.
#[derive(Debug)]
pub struct Walk {
    folders: Vec<String>,
    /// Series whose file was seen: a bit for each id.
    seen: Vec<u64>,
    /// Folders that a link has led to.
    linked: BTreeSet<FolderId>,
    /// The next id whose file is looked for.
    next: u32,
    report: WalkReport,
}

impl Default for Walk {
    fn default() -> Walk {
        Walk {
            folders: vec![String::new()],
            seen: Vec::new(),
            linked: BTreeSet::new(),
            next: 0,
            report: WalkReport::default(),
        }
    }
}

impl Walk {
    /// Takes a step: some folders. False when the walk has ended.
    pub fn step<T: FileTree>(&mut self, store: &Store, tree: &T) -> bool {
        let mut seen = 0;
        while seen < WALK_ENTRIES {
            let Some(folder) = self.folders.pop() else { return self.remove_gone(store, tree) };
            seen += 1 + self.list(store, tree, &folder);
        }
        true
    }

    /// Looks for the files of some names that the walk has not seen. False when all have been looked for.
    fn remove_gone<T: FileTree>(&mut self, store: &Store, tree: &T) -> bool {
        // A folder that could not be listed may have any of them.
        if self.report.failed > 0 {
            return false;
        }
        let mut name = Vec::new();
        for _ in 0..WALK_ENTRIES {
            let Some(id) = store.catalog().next(self.next) else { return false };
            self.next = id.0 + 1;
            let is_seen = self.seen.get(id.0 as usize / 64).is_some_and(|bits| bits >> (id.0 % 64) & 1 == 1);
            name.clear();
            if !is_seen && store.catalog().name(id, &mut name) && store.remove_if_gone(tree, &name) {
                self.report.gone += 1;
            }
        }
        true
    }

    fn note_seen(&mut self, id: SeriesId) {
        let word = id.0 as usize / 64;
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        self.seen[word] |= 1 << (id.0 % 64);
    }

    /// What it has found so far.
    pub fn report(&self) -> &WalkReport {
        &self.report
    }

    fn list<T: FileTree>(&mut self, store: &Store, tree: &T, folder: &str) -> usize {
        let mut names = Vec::new();
        let mut entries = 0;
        let listed = tree.list(folder, &mut |name, kind| {
            entries += 1;
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            match kind {
                EntryKind::Folder => self.folders.push(path),
                // Links can lead in circles: each folder is listed once by a link.
                EntryKind::FolderLink(id) if self.linked.insert(id) => self.folders.push(path),
                EntryKind::FolderLink(_) | EntryKind::Other => {}
                EntryKind::File => match name_of(&path) {
                    NameOfPath::Name(name) => names.push(name),
                    NameOfPath::Hash(_) => self.report.hashed += 1,
                    NameOfPath::Foreign => self.report.foreign += 1,
                },
            }
            true
        });
        self.report.folders += 1;
        match listed {
            // It became empty and was removed since its name was read.
            Err(DiskError::NotFound) if !folder.is_empty() => {}
            Err(error) => {
                self.report.failed += 1;
                self.report.last_error = Some((folder.to_owned(), error));
            }
            Ok(()) => {}
        }
        for name in names {
            self.report.files += 1;
            match store.add_name(name.as_bytes()) {
                Ok(inserted) => {
                    self.report.new += u64::from(matches!(inserted, Inserted::New(_)));
                    self.note_seen(inserted.id());
                }
                Err(_limit) => self.report.refused += 1,
            }
        }
        entries
    }
}
