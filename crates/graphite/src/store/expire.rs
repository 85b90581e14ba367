//! A limit on the disk space of the files: those that were written least recently are removed.

use std::collections::BinaryHeap;

use model::FileTree;

use super::{ChangeError, Store};
use crate::catalog::SeriesId;
use crate::whisper::names::path_of;

/// Files that a step looks at or removes.
const FILES: usize = 512;

/// After a removal, the files use at most this share of the limit, so that the next one is not due at once.
const SHARE_PERCENT: u64 = 90;

/// What an [`Expire`] has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExpiryReport {
    /// Size of all files that were looked at, in bytes, without those that were removed. A sparse file counts whole.
    pub bytes: u64,
    /// Files that were removed.
    pub removed: u64,
    /// Files that could not be removed, with the last error.
    pub failed: u64,
    /// The last error of them.
    pub last_error: Option<ChangeError>,
}

/// A file that may be removed: the one that was written last is the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    modified: i64,
    bytes: u64,
    id: u32,
}

/// A look at the files of all series, in steps, that then removes as many as are above the limit, least recently written first. Files without
/// a known series are not counted, and never removed.
#[derive(Debug)]
pub struct Expire {
    bytes_max: u64,
    stage: Stage,
    next: u32,
    report: ExpiryReport,
}

#[derive(Debug)]
enum Stage {
    /// The size of all files is not known yet.
    Count,
    /// Of the files that were looked at again, the ones that were written least recently, as many as have to go.
    Choose { oldest: BinaryHeap<Candidate>, bytes: u64, excess: u64 },
    /// The file that is next is the last one.
    Remove(Vec<Candidate>),
}

impl Expire {
    /// With the limit in bytes.
    pub fn new(bytes_max: u64) -> Expire {
        Expire { bytes_max, stage: Stage::Count, next: 0, report: ExpiryReport::default() }
    }

    /// What it has done so far.
    pub fn report(&self) -> &ExpiryReport {
        &self.report
    }

    /// Takes a step: some files. False when all is done.
    pub fn step<T: FileTree>(&mut self, store: &Store, tree: &T) -> bool {
        if let Stage::Remove(due) = &mut self.stage {
            return remove(due, &mut self.report, store, tree);
        }
        for _ in 0..FILES {
            let Some(id) = store.catalog().next(self.next) else { return self.next_stage() };
            self.next = id.0 + 1;
            self.look(store, tree, id);
        }
        true
    }

    fn look<T: FileTree>(&mut self, store: &Store, tree: &T, id: SeriesId) {
        let Some(name) = name_of(store, id) else { return };
        let Ok(located) = path_of(&name, store.options.names) else { return };
        for path in located.paths() {
            let Ok(facts) = tree.facts(path) else { continue };
            match &mut self.stage {
                Stage::Choose { oldest, bytes, excess } => {
                    *bytes += facts.bytes;
                    oldest.push(Candidate { modified: facts.modified, bytes: facts.bytes, id: id.0 });
                    while let Some(newest) = oldest.peek()
                        && *bytes - newest.bytes >= *excess
                    {
                        *bytes -= newest.bytes;
                        oldest.pop();
                    }
                }
                _ => self.report.bytes += facts.bytes,
            }
        }
    }

    /// All files were looked at. False when none has to go.
    fn next_stage(&mut self) -> bool {
        self.next = 0;
        match std::mem::replace(&mut self.stage, Stage::Remove(Vec::new())) {
            Stage::Count if self.report.bytes > self.bytes_max => {
                let excess = self.report.bytes - self.bytes_max / 100 * SHARE_PERCENT;
                self.stage = Stage::Choose { oldest: BinaryHeap::new(), bytes: 0, excess };
                true
            }
            Stage::Choose { oldest, .. } => {
                let mut due = oldest.into_sorted_vec();
                due.reverse();
                self.stage = Stage::Remove(due);
                true
            }
            Stage::Count | Stage::Remove(_) => false,
        }
    }
}

/// Removes some files. False when all were.
fn remove<T: FileTree>(due: &mut Vec<Candidate>, report: &mut ExpiryReport, store: &Store, tree: &T) -> bool {
    for _ in 0..FILES {
        let Some(candidate) = due.pop() else { return false };
        // The id can belong to another series by now: that one's file is newer, and stays.
        let Some(name) = name_of(store, SeriesId(candidate.id)) else { continue };
        match store.expire(tree, &name, candidate.modified) {
            Ok(true) => {
                report.removed += 1;
                report.bytes = report.bytes.saturating_sub(candidate.bytes);
            }
            // It is written just now.
            Ok(false) | Err(ChangeError::Busy) => {}
            Err(error) => {
                report.failed += 1;
                report.last_error = Some(error);
            }
        }
    }
    true
}

fn name_of(store: &Store, id: SeriesId) -> Option<Vec<u8>> {
    let mut name = Vec::new();
    store.catalog().name(id, &mut name).then_some(name)
}
