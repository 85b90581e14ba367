//! The catalog of a store: names of files and of series in memory, found for queries, and removed.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};

use model::{DiskError, EntryKind, FileTree};

use super::{Refusal, Store, locked};
use crate::catalog::{Catalog, Inserted, Refused};
use crate::whisper::names::{NameOfPath, name_of, path_of};

/// Entries of folders that one step of a walk looks at, about.
const WALK_ENTRIES: usize = 4096;

impl Store {
    /// The catalog, for a slice of a search: nothing is added meanwhile.
    pub fn catalog(&self) -> RwLockReadGuard<'_, Catalog> {
        self.catalog.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn catalog_mut(&self) -> RwLockWriteGuard<'_, Catalog> {
        self.catalog.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a name, and says whether it is new.
    pub(super) fn add_name(&self, name: &[u8]) -> Result<bool, Refused> {
        if self.catalog().find(name).is_some() {
            return Ok(false);
        }
        let inserted = self.catalog_mut().insert(name)?;
        Ok(matches!(inserted, Inserted::New(_)))
    }

    /// Deletes a series: its file, its name and its points in memory. False when it has neither; an error when it is written at this
    /// moment, or the disk failed.
    ///
    /// # Errors
    /// What the disk reports; [`DiskError::Scarce`] while the series is written: try again.
    pub fn delete<T: FileTree>(&self, tree: &T, name: &[u8]) -> Result<bool, DiskError> {
        let Ok(located) = path_of(name, self.options.names) else { return Ok(false) };
        let (part, hash) = self.part_of(name);
        let mut part = locked(part);
        // The lock is held while the file is removed: no job can begin to write it anew in between.
        let Some((points, freed)) = part.remove(hash, name) else {
            return Err(DiskError::Scarce { code: 0 });
        };
        self.points_bytes.fetch_sub(freed, Relaxed);
        self.refuse(Refusal::Deleted, points);
        let mut found = points > 0;
        for path in [Some(&located.path), located.other.as_ref()].into_iter().flatten() {
            match tree.remove(path) {
                Ok(()) => found = true,
                Err(DiskError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        drop(part);
        let known = self.catalog_mut().remove(name).is_some();
        Ok(found || known)
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
    /// Folders that could not be listed, with the last one and its error.
    pub failed: u64,
    /// The last of them.
    pub last_error: Option<(String, DiskError)>,
}

/// A look at all files of a tree, in steps, that adds their names to the store.
#[derive(Debug)]
pub struct Walk {
    folders: Vec<String>,
    report: WalkReport,
}

impl Default for Walk {
    fn default() -> Walk {
        Walk { folders: vec![String::new()], report: WalkReport::default() }
    }
}

impl Walk {
    /// Takes a step: some folders. False when the walk has ended.
    pub fn step<T: FileTree>(&mut self, store: &Store, tree: &T) -> bool {
        let mut seen = 0;
        while seen < WALK_ENTRIES {
            let Some(folder) = self.folders.pop() else { return false };
            seen += 1 + self.list(store, tree, &folder);
        }
        !self.folders.is_empty()
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
                // Links can lead in a circle: a path is as deep as a name can be.
                EntryKind::Folder if path.len() < crate::whisper::names::PATH_BYTES_MAX => {
                    self.folders.push(path)
                }
                EntryKind::Folder | EntryKind::Other => {}
                EntryKind::File => match name_of(&path) {
                    NameOfPath::Name(name) => names.push(name),
                    NameOfPath::Hash(_) => self.report.hashed += 1,
                    NameOfPath::Foreign => self.report.foreign += 1,
                },
            }
            true
        });
        self.report.folders += 1;
        if let Err(error) = listed {
            self.report.failed += 1;
            self.report.last_error = Some((folder.to_owned(), error));
        }
        for name in names {
            self.report.files += 1;
            match store.add_name(name.as_bytes()) {
                Ok(new) => self.report.new += u64::from(new),
                Err(_limit) => self.report.refused += 1,
            }
        }
        entries
    }
}
