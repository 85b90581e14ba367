//! Points that differ between two files with the same archives, as the original's `diff`.

use model::TreeFile;

use super::merge::MergeError;
use crate::whisper::file::WhisperFile;

/// A time at which the files differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Unix seconds.
    pub time: i64,
    /// Value of the first file.
    pub left: Option<f64>,
    /// Value of the second one.
    pub right: Option<f64>,
}

/// What differs in one archive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArchiveDifference {
    /// The times, ascending.
    pub differences: Vec<Difference>,
    /// Number of compared times.
    pub compared: usize,
}

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// Only times at which both files have a value.
    pub ignore_empty: bool,
    /// Nothing after this time.
    pub until: Option<i64>,
}

/// Compares the archives one after the other, each over the time that the finer ones do not cover.
///
/// # Errors
/// The files do not match, or the disk failed.
pub fn diff(
    left: &WhisperFile<impl TreeFile>,
    right: &WhisperFile<impl TreeFile>,
    options: DiffOptions,
    now: i64,
) -> Result<Vec<ArchiveDifference>, MergeError> {
    if !left.header().has_archives_of(right.header()) {
        return Err(MergeError::OtherArchives);
    }
    let mut until = options.until.map_or(now, |until| until.min(now));
    let mut archives = Vec::new();
    for (index, archive) in left.header().archives().iter().enumerate() {
        let start = now.saturating_sub(archive.retention());
        let mut found = ArchiveDifference::default();
        if start <= until {
            let (left, right) =
                (left.fetch_archive(index, start, until)?, right.fetch_archive(index, start, until)?);
            let times = (left.start..).step_by(archive.step as usize);
            for (time, (left, right)) in times.zip(left.values.into_iter().zip(right.values)) {
                let counts = match options.ignore_empty {
                    true => left.is_some() && right.is_some(),
                    false => left.is_some() || right.is_some(),
                };
                if !counts {
                    continue;
                }
                found.compared += 1;
                if left != right {
                    found.differences.push(Difference { time, left, right });
                }
            }
        }
        archives.push(found);
        until = until.min(start);
    }
    Ok(archives)
}
