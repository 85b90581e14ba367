//! All known points of a file, without their copies in coarser archives.

use model::TreeFile;

use crate::whisper::file::{FileError, Point, WhisperFile};

/// The known points after `from` up to `until`, sorted: each stretch of time from the finest archive that covers it.
/// At most as many as the file has slots.
///
/// # Errors
/// The disk failed.
pub fn timeline(
    file: &WhisperFile<impl TreeFile>,
    from: i64,
    until: i64,
    now: i64,
) -> Result<Vec<Point>, FileError> {
    let mut end = until.min(now);
    let mut parts = Vec::new();
    for (index, archive) in file.header().archives().iter().enumerate() {
        let start = from.max(now.saturating_sub(archive.retention()));
        if start >= end {
            continue;
        }
        let fetched = file.fetch_archive(index, start, end)?;
        parts.push(fetched.points().map(|(time, value)| Point { time, value }).collect::<Vec<_>>());
        end = start;
    }
    let mut points: Vec<Point> = parts.into_iter().rev().flatten().collect();
    points.sort_by_key(|point| point.time);
    Ok(points)
}
