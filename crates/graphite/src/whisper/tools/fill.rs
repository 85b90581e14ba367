//! Copies points of a file into another one, only where that one has none.

use model::TreeFile;

use super::timeline::timeline;
use crate::whisper::file::{FileError, Point, Scratch, WhisperFile, Written};
use crate::whisper::format::Fold;

/// Fills the gaps of `target` after `from` up to `until` with the points of `source`, whose archives may be others: of
/// several points in one step the aggregate is stored, by the method of `target`. Points of `target` stay, except
/// coarser ones, which are computed again where gaps below them were filled.
///
/// # Errors
/// The disk failed.
pub fn fill(
    source: &WhisperFile<impl TreeFile>,
    target: &mut WhisperFile<impl TreeFile>,
    from: i64,
    until: i64,
    now: i64,
    scratch: &mut Scratch,
) -> Result<Written, FileError> {
    let points = timeline(source, from, until, now)?;
    let header = target.header().clone();
    let mut end = until.min(now);
    let mut written = Written::default();
    for (index, archive) in header.archives().iter().enumerate() {
        let start = from.max(now.saturating_sub(archive.retention()));
        if start >= end {
            continue;
        }
        let held = target.fetch_archive(index, start, end)?;
        let mut filling = Vec::new();
        let mut rest = &points[..];
        let times = (held.start..).step_by(archive.step as usize);
        for (interval, _) in times.zip(&held.values).filter(|(_, value)| value.is_none()) {
            rest = &rest[rest.partition_point(|point| point.time < interval)..];
            let count = rest.partition_point(|point| point.time < interval + i64::from(archive.step));
            let mut fold = Fold::new(header.method);
            rest[..count].iter().for_each(|point| fold.add(point.value));
            filling.extend(fold.value(fold.known()).map(|value| Point { time: interval, value }));
        }
        target.update_archive(index, &filling, scratch, &mut written)?;
        end = start;
    }
    Ok(written)
}
