//! The points of a file in a new file with other archives, another method or another xFilesFactor.

use std::fmt;
use std::sync::Arc;

use model::{DiskError, FileTree, TreeFile};

use super::timeline::timeline;
use crate::whisper::file::{
    FetchError, Fetched, FileError, Point, Scratch, Space, UpdateOptions, WhisperFile, Written, create_in,
};
use crate::whisper::format::{Fold, Header};

/// Ends of the names of whisper files, and of a new one while it is written: equally long, so that each name that can be
/// stored can be resized.
const FINISHED: &str = ".wsp";
const UNFINISHED: &str = ".tmp";

/// How points find their place in other archives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Migration {
    /// The points of each archive are stored as if they came now, from the coarsest archive to the finest: of several in
    /// one step the newest stays, and coarser ones are computed with the xFilesFactor. What the original does.
    #[default]
    Copy,
    /// Each point of each new archive is the aggregate of the old points in its step, however few.
    Aggregate,
}

/// Why a file was not resized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResizeError {
    /// The old file cannot be used, or cannot be read.
    Source(FileError),
    /// The new file cannot be written.
    Target(FileError),
}

impl fmt::Display for ResizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResizeError::Source(error) => write!(f, "{error}"),
            ResizeError::Target(error) => write!(f, "cannot write the new file: {error}"),
        }
    }
}

impl std::error::Error for ResizeError {}

/// Stores the points of `source` in `target`, which is new. Uses memory for the points of the largest archive, or with
/// [`Migration::Aggregate`] for all points.
///
/// # Errors
/// The disk failed.
pub fn resize(
    source: &WhisperFile<impl TreeFile>,
    target: &mut WhisperFile<impl TreeFile>,
    migration: Migration,
    now: i64,
    scratch: &mut Scratch,
) -> Result<Written, ResizeError> {
    match migration {
        Migration::Copy => copied(source, target, now, scratch),
        Migration::Aggregate => aggregated(source, target, now, scratch),
    }
}

/// Resizes a file of a tree: the new file is written beside it, synced, and then takes its path. At each moment the path
/// has either of them complete. Nobody may write to the file meanwhile.
///
/// # Errors
/// As [`resize`]. The old file is unchanged then.
pub fn resize_in<T: FileTree>(
    tree: &T,
    path: &str,
    header: &Arc<Header>,
    space: Space,
    migration: Migration,
    now: i64,
) -> Result<Written, ResizeError> {
    let new_path = format!("{}{UNFINISHED}", path.strip_suffix(FINISHED).unwrap_or(path));
    let target = |error: DiskError| ResizeError::Target(FileError::Disk(error));
    let old = tree.open_to_read(path).map_err(|error| ResizeError::Source(error.into()))?;
    let old = WhisperFile::open(old).map_err(ResizeError::Source)?;
    // A resize that was interrupted leaves one.
    match tree.remove(&new_path) {
        Ok(()) | Err(DiskError::NotFound) => {}
        Err(error) => return Err(target(error)),
    }
    let mut new = create_in(tree, &new_path, header, space).map_err(target)?;
    let resized = resize(&old, &mut new, migration, now, &mut Scratch::default());
    let finished = resized.and_then(|written| {
        new.file().sync().map_err(target)?;
        tree.rename(&new_path, path).map_err(target)?;
        Ok(written)
    });
    finished.inspect_err(|_| {
        // The first error is the one to report; the next resize removes the file.
        let _ = tree.remove(&new_path);
    })
}

fn copied(
    source: &WhisperFile<impl TreeFile>,
    target: &mut WhisperFile<impl TreeFile>,
    now: i64,
    scratch: &mut Scratch,
) -> Result<Written, ResizeError> {
    let mut all = Written::default();
    for archive in source.header().archives().iter().rev() {
        // Without its oldest step, as the original does: a finer archive that covers the rest gives its points instead.
        let from = now.saturating_sub(archive.retention()).saturating_add(i64::from(archive.step));
        let Some(fetched) = fetched(source, from.min(now), now)? else { continue };
        let mut points: Vec<Point> = fetched.points().map(|(time, value)| Point { time, value }).collect();
        let stored = target.update_many(&mut points, now, &UpdateOptions::default(), scratch);
        let stored = stored.map_err(ResizeError::Target)?;
        all.written += stored.written;
        all.duplicate += stored.duplicate;
        all.same_slot += stored.same_slot;
        all.too_old += stored.too_old;
        all.in_future += stored.in_future;
        all.propagated += stored.propagated;
    }
    Ok(all)
}

fn fetched(source: &WhisperFile<impl TreeFile>, from: i64, now: i64) -> Result<Option<Fetched>, ResizeError> {
    source.fetch(from, now, now).map_err(|error| match error {
        FetchError::File(error) => ResizeError::Source(error),
        FetchError::Range(_) => unreachable!("from is not after now"),
    })
}

fn aggregated(
    source: &WhisperFile<impl TreeFile>,
    target: &mut WhisperFile<impl TreeFile>,
    now: i64,
    scratch: &mut Scratch,
) -> Result<Written, ResizeError> {
    let points = timeline(source, i64::MIN, now, now).map_err(ResizeError::Source)?;
    let header = target.header().clone();
    let mut written = Written::default();
    // From the finest archive on, so that what it propagates is replaced by the aggregate of all points.
    for (index, archive) in header.archives().iter().enumerate() {
        let step = i64::from(archive.step);
        let oldest = now.saturating_sub(archive.retention());
        // The interval that `oldest` is in has the slot of the newest one.
        let first = points.partition_point(|point| point.time < oldest - oldest.rem_euclid(step) + step);
        let interval = |point: &Point| point.time - point.time.rem_euclid(step);
        let steps = points[first..].chunk_by(|left, right| interval(left) == interval(right));
        let aggregates = steps.filter_map(|step| {
            let mut fold = Fold::new(header.method);
            step.iter().for_each(|point| fold.add(point.value));
            Some(Point { time: interval(step.first()?), value: fold.value(fold.known())? })
        });
        let aggregates: Vec<Point> = aggregates.collect();
        target.update_archive(index, &aggregates, scratch, &mut written).map_err(ResizeError::Target)?;
    }
    Ok(written)
}
