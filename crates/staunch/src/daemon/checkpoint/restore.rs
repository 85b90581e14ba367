//! Reading checkpoints at the start.

use std::path::Path;

use config::plan::Plan;
use model::{DiskError, Now, SECOND_NS};
use pipeline::{Shard, checkpoints};
use process::aggregate::checkpoint::{Restored, Told, Window};

use super::board::Board;
use crate::daemon::handover::Handover;
use crate::daemon::startup::Startup;
use crate::disk::{Folder, reason};

/// Brings back what the aggregations of the plan held, before the first record. Those without checkpoints go on behind
/// the last label only, and leave no files. Those that are `handed` have their state from another process, which may still
/// need its files.
///
/// # Errors
/// When what is there cannot be looked at, and still cannot when the start has waited for it (`startup`): going on without it would replace it.
pub async fn restore(
    plan: &Plan,
    shard: &mut Shard,
    handover: &Handover,
    board: &Board,
    handed: &dyn Fn(&str) -> bool,
    now: Now,
    startup: &mut Startup<'_>,
) -> anyhow::Result<()> {
    let disk = match board.folder() {
        Some(folder) => in_time(startup, folder, || existing(folder)).await?,
        None => None,
    };
    let mut orphans = disk.as_ref().map(checkpoints::names).unwrap_or_default();
    plan.transforms.iter().for_each(|transform| {
        orphans.remove(&transform.name);
    });
    for transform in plan.transforms.iter().filter(|transform| !handed(&transform.name)) {
        let (name, told) = (transform.name.as_str(), handover.told_of(&transform.name));
        let shown = |file: &str| board.folder().map(|folder| folder.join(file)).unwrap_or_default();
        let ignored = |file: &str, why: &str| {
            board.change(name, |row| row.unreadable += 1);
            tracing::warn!("cannot use the checkpoint {}: {why}. It is ignored", shown(file).display());
        };
        let begin = || checkpoints::begin(disk.as_ref(), shard, transform, told, now, ignored);
        let restored = in_time(startup, &shown(name), begin).await?;
        if let Some((file, restored)) = restored {
            tell(name, &shown(&file), &restored, board, now);
        }
    }
    for state in shard.figures().iter().filter(|state| state.figures.clock.labels_dropped > 0) {
        tracing::warn!(
            "the timestamp that the process before left for `{}` is far ahead of the clock: it is dropped, and the next \
             window may have one that was used before",
            state.transform
        );
    }
    for name in orphans {
        tracing::warn!(
            "there is a checkpoint of `{name}`, which this configuration does not have: it is left alone"
        );
    }
    Ok(())
}

/// Looks again and again where that may help, as for queues on disk. Missing permission is the operator's to mend: a start
/// says so at once.
async fn in_time<T>(
    startup: &mut Startup<'_>,
    path: &Path,
    look: impl FnMut() -> Result<T, DiskError>,
) -> anyhow::Result<T> {
    let what = format!("the checkpoints in {} cannot be read yet", path.display());
    let passes = |error: &DiskError| error.passes() && *error != DiskError::Denied;
    startup.retry(what, passes, look).await.map_err(|error| {
        anyhow::anyhow!(
            "cannot read the checkpoints in {}: {error}\n  hint: make them readable for this user, or remove them: \
             what they hold is then lost",
            path.display()
        )
    })
}

/// Removes the files of aggregations that want no checkpoints, for a process that has just taken over.
pub fn remove_unwanted(plan: &Plan, board: &Board) {
    let Some(disk) = board.folder().and_then(|folder| existing(folder).ok().flatten()) else { return };
    for (_, transform, aggregate) in plan.aggregates() {
        if aggregate.checkpoint_ms == 0 {
            let _any = checkpoints::remove(&disk, &transform.name);
        }
    }
}

/// The folder, when it is there. `Folder::open` would make it. Where something else has its name there is nothing to read,
/// and nothing that a checkpoint could replace: saving says that it fails.
fn existing(folder: &Path) -> Result<Option<Folder>, DiskError> {
    match std::fs::metadata(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(reason(error)),
        Ok(found) if !found.is_dir() => Ok(None),
        Ok(_) => Folder::open(folder.to_owned()).map(Some).map_err(reason),
    }
}

fn tell(name: &str, path: &Path, restored: &Restored, board: &Board, now: Now) {
    let age_ns = now.wall_ns.saturating_sub(restored.begun_wall_ns);
    let Restored { series, damaged, shed_series_max, cut_short, .. } = *restored;
    board.change(name, |row| {
        row.restored_series = series;
        row.restored_age_ms = age_ns / 1_000_000;
        row.restored_damaged = damaged;
        row.restored_shed = shed_series_max;
    });
    let window = match restored.window {
        Window::GoesOn => String::new(),
        Window::Closed(info) => {
            format!("; their window had ended and is flushed now, labelled {}", info.time_s)
        }
        Window::Over => "; their window had been flushed before".to_owned(),
    };
    tracing::info!(
        "restored {series} series of `{name}` from {:.1} s ago{window}",
        age_ns as f64 / SECOND_NS as f64
    );
    if damaged > 0 || cut_short {
        let end = if cut_short { ", and its end is missing" } else { "" };
        tracing::warn!("checkpoint {}: {damaged} series are damaged and were left out{end}", path.display());
    }
    if shed_series_max > 0 {
        tracing::warn!("checkpoint {}: {shed_series_max} series are past `series_max`", path.display());
    }
}

/// Number of the next checkpoint of an aggregation, see [`checkpoints::next_number`].
pub(super) fn next_number(folder: &Path, name: &str, told: Told) -> u64 {
    match existing(folder) {
        Ok(Some(disk)) => checkpoints::next_number(&disk, name, told.number),
        Ok(None) | Err(_) => told.number.map_or(1, |number| number.saturating_add(1)),
    }
}
