//! Existing files with the archives that new ones would get.

use std::sync::Arc;

use model::{DiskError, FileTree};

use super::{Store, locked};
use crate::catalog::SeriesId;
use crate::whisper::names::path_of;
use crate::whisper::rules::header_of;
use crate::whisper::tools::{Migration, ResizeError, resize_in};
use crate::whisper::{FileError, Header, WhisperFile};

/// Files that a step looks at, and those that it changes, at most.
const LOOKS: usize = 512;
const CHANGES: u64 = 8;

/// What a migration has done so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MigrationReport {
    /// Files that were looked at.
    pub looked_at: u64,
    /// Files that have other archives now.
    pub changed: u64,
    /// Files that could not be changed: damaged, foreign, or the disk failed. They are as they were.
    pub failed: u64,
    /// Path and error of the last of them.
    pub last_error: Option<(String, ResizeError)>,
    /// It ended before it had looked at all files, because new files cannot be written.
    pub is_given_up: bool,
}

/// A look at the files of all series, in steps, that gives those with other archives than the rules say the right ones. Each new point is the
/// aggregate of the old ones in its step. Method and xFilesFactor become those of the rules too.
///
/// The thread that writes to the files takes the steps. Requests to change a file that is migrated are [`Busy`](super::ChangeError::Busy).
#[derive(Debug, Default)]
pub struct Migrate {
    next: u32,
    name: Vec<u8>,
    report: MigrationReport,
}

impl Migrate {
    /// What it has done so far.
    pub fn report(&self) -> &MigrationReport {
        &self.report
    }

    /// Takes a step: some files. False when the migration has ended.
    pub fn step<T: FileTree>(&mut self, store: &Store, tree: &T, now: i64) -> bool {
        let enough = self.report.changed + CHANGES;
        for _ in 0..LOOKS {
            let Some(id) = store.catalog().next(self.next) else { return false };
            self.next = id.0 + 1;
            self.look(store, tree, id, now);
            if self.report.is_given_up || self.report.changed >= enough {
                return !self.report.is_given_up;
            }
        }
        true
    }

    fn look<T: FileTree>(&mut self, store: &Store, tree: &T, id: SeriesId, now: i64) {
        self.name.clear();
        if !store.catalog().name(id, &mut self.name) {
            return;
        }
        match store.migrate(tree, &self.name, now) {
            // The series has no file yet.
            Err((_, ResizeError::Source(FileError::Disk(DiskError::NotFound)))) => return,
            Ok(changed) => self.report.changed += u64::from(changed),
            Err(error) => {
                self.report.failed += 1;
                self.report.is_given_up = matches!(error.1, ResizeError::Target(_));
                self.report.last_error = Some(error);
            }
        }
        self.report.looked_at += 1;
    }
}

impl Store {
    /// True while the file of this series is replaced. Asked with the part of the series locked.
    pub(super) fn is_migrating(&self, name: &[u8]) -> bool {
        locked(&self.migrating).as_deref() == Some(name)
    }

    /// Gives the file of a series the archives of the rules. False when it has them.
    fn migrate<T: FileTree>(&self, tree: &T, name: &[u8], now: i64) -> Result<bool, (String, ResizeError)> {
        let Ok(located) = path_of(name, self.options.names) else { return Ok(false) };
        let rules = self.rules();
        let Ok(header) = header_of(&rules.schemas, &rules.aggregations, name) else { return Ok(false) };
        let header = Arc::new(header);
        let path = match &located.other {
            Some(other) if tree.exists(&located.path) == Ok(false) => other,
            _ => &located.path,
        };
        {
            let (part, _) = self.part_of(name);
            // Requests that delete it or give it another name look for this under the same lock.
            let _part = locked(part);
            *locked(&self.migrating) = Some(name.to_vec());
        }
        let changed = changed(tree, path, &header, now, self.options.space);
        *locked(&self.migrating) = None;
        if changed.map_err(|error| (path.clone(), error))? {
            let (part, hash) = self.part_of(name);
            let mut part = locked(part);
            if let Some(series) = part.find(hash, name) {
                part.of(series).covered = self.covered(&header);
            }
            return Ok(true);
        }
        Ok(false)
    }
}

fn changed<T: FileTree>(
    tree: &T,
    path: &str,
    header: &Arc<Header>,
    now: i64,
    space: crate::whisper::Space,
) -> Result<bool, ResizeError> {
    let file = tree.open_to_read(path).map_err(|error| ResizeError::Source(FileError::Disk(error)))?;
    let file = WhisperFile::open(file).map_err(ResizeError::Source)?;
    let archives =
        |header: &Header| header.archives().iter().map(|one| (one.step, one.points)).collect::<Vec<_>>();
    if archives(file.header()) == archives(header) {
        return Ok(false);
    }
    drop(file);
    resize_in(tree, path, header, space, Migration::Aggregate, now).map(|_written| true)
}
