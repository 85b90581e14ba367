//! Copies the points of a file into another one with the same archives, as the original's `merge`.

use std::fmt;

use model::TreeFile;

use crate::whisper::file::{FileError, Point, Scratch, WhisperFile, Written};

/// Why files were not merged or compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MergeError {
    /// Their archives differ: one of them has to be resized first.
    OtherArchives,
    /// The range ends before it begins.
    Backwards {
        /// Its begin.
        from: i64,
        /// Its end.
        until: i64,
    },
    /// A file cannot be used.
    File(FileError),
}

impl From<FileError> for MergeError {
    fn from(error: FileError) -> MergeError {
        MergeError::File(error)
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::OtherArchives => {
                f.write_str("the files have different archives: resize one of them first")
            }
            MergeError::Backwards { from, until } => {
                write!(f, "the range begins at {from}, after its end {until}")
            }
            MergeError::File(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for MergeError {}

/// Copies the points after `from` up to `until` into `target`, archive by archive from the finest one. Points of
/// `target` at the same times are replaced, others stay; coarser points are computed again where fine ones were copied,
/// and then replaced by those of `source`.
///
/// # Errors
/// The files do not match, the range is backwards, or the disk failed.
pub fn merge(
    source: &WhisperFile<impl TreeFile>,
    target: &mut WhisperFile<impl TreeFile>,
    from: Option<i64>,
    until: Option<i64>,
    now: i64,
    scratch: &mut Scratch,
) -> Result<Written, MergeError> {
    if !source.header().has_archives_of(target.header()) {
        return Err(MergeError::OtherArchives);
    }
    let until = until.map_or(now, |until| until.min(now));
    let from = from.unwrap_or(0);
    if from > until {
        return Err(MergeError::Backwards { from, until });
    }
    let mut written = Written::default();
    for (index, archive) in source.header().archives().iter().enumerate() {
        let start = from.max(now.saturating_sub(archive.retention()));
        if start > until {
            continue;
        }
        let fetched = source.fetch_archive(index, start, until)?;
        let points: Vec<Point> = fetched.points().map(|(time, value)| Point { time, value }).collect();
        target.update_archive(index, &points, scratch, &mut written)?;
    }
    Ok(written)
}
