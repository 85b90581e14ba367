//! Headers of single series, and the points of one that are only in memory: what CarbonLink asks for.

use std::sync::Arc;

use model::{DiskError, FileTree};

use super::part::Packed;
use super::{ChangeError, Store, locked};
use crate::whisper::names::path_of;
use crate::whisper::{AggregationMethod, Header, Point, WhisperFile, lock_in};

impl Store {
    /// The points in memory of a series with this normal name, sorted by time; of equal times the one that counts.
    pub fn points_in_memory(&self, name: &[u8]) -> Vec<Point> {
        let mut points = self.all_points_in_memory(name);
        let first = self.options.update.first_duplicate;
        // `dedup_by` drops its first argument, the later point.
        points.dedup_by(|later, earlier| {
            let same = later.time == earlier.time;
            if same && !first {
                earlier.value = later.value;
            }
            same
        });
        points
    }

    /// How many points [`points_in_memory`](Store::points_in_memory) looks at.
    pub fn count_in_memory(&self, name: &[u8]) -> usize {
        let (part, hash) = self.part_of(name);
        let part = locked(part);
        part.find(hash, name).map_or(0, |series| part.points(series).len())
    }

    /// The points in memory, sorted by time; of equal times in the order in which they came.
    pub(super) fn all_points_in_memory(&self, name: &[u8]) -> Vec<Point> {
        let (part, hash) = self.part_of(name);
        let part = locked(part);
        let Some(series) = part.find(hash, name) else { return Vec::new() };
        let unpacked = |one: &Packed| Point { time: i64::from(one.time), value: one.value() };
        let mut points: Vec<Point> = part.points(series).iter().map(unpacked).collect();
        drop(part);
        if !points.is_sorted_by_key(|point| point.time) {
            points.sort_by_key(|point| point.time);
        }
        points
    }

    /// Changes how points of an existing file are aggregated from now on; the method before it. None without a file.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub fn set_method<T: FileTree>(
        &self,
        tree: &T,
        name: &[u8],
        method: AggregationMethod,
    ) -> Result<Option<AggregationMethod>, ChangeError> {
        let Ok(located) = path_of(name, self.options.names) else { return Ok(None) };
        let (part, hash) = self.part_of(name);
        // No job and no migration can begin while the part is locked.
        let part = locked(part);
        if self.is_migrating(name) || part.find(hash, name).is_some_and(|series| part.is_writing(series)) {
            return Err(ChangeError::Busy);
        }
        for path in located.paths() {
            let file = match tree.open(path) {
                Ok(file) => file,
                Err(DiskError::NotFound) => continue,
                Err(error) => return Err(error.into()),
            };
            // The lock comes first: another program that has it may change the header, or replace the file.
            let file = if self.options.lock { lock_in(tree, path, file)? } else { file };
            let mut file = WhisperFile::open(file).map_err(ChangeError::File)?;
            return Ok(Some(file.set_method(method)?));
        }
        Ok(None)
    }

    /// The header that a new file of this series would get. None when its name has none.
    pub(super) fn header_of_new(&self, name: &[u8]) -> Option<Arc<Header>> {
        let rules = self.rules();
        crate::whisper::rules::header_of(&rules.schemas, &rules.aggregations, name).ok().map(Arc::new)
    }
}
