//! Reading checkpoints at the start.

use std::path::Path;

use config::plan::{Plan, TransformKind};
use model::{Now, SECOND_NS};
use pipeline::Shard;
use process::aggregate::checkpoint::{Restored, Window};

use super::board::Board;
use super::files;
use crate::daemon::handover::Handover;

/// Brings back what the aggregations of the plan held, before the first record. Those without checkpoints go on behind
/// the last label only, and leave no files. Those that are `handed` have their state from another process, which may still
/// need its files.
pub fn restore(
    plan: &Plan,
    shard: &mut Shard,
    handover: &Handover,
    board: &Board,
    handed: &dyn Fn(&str) -> bool,
    now: Now,
) {
    let mut orphans = board.folder().map(files::names).unwrap_or_default();
    plan.transforms.iter().for_each(|transform| {
        orphans.remove(&transform.name);
    });
    for transform in plan.transforms.iter().filter(|transform| !handed(&transform.name)) {
        let TransformKind::Aggregate(aggregate) = &transform.kind;
        let (name, label_s) = (transform.name.as_str(), handover.label_of(&transform.name));
        let restored = match board.folder() {
            Some(folder) if aggregate.checkpoint_ms > 0 => {
                restore_one(folder, name, label_s, shard, board, now)
            }
            Some(folder) => {
                let _any = files::remove(folder, name);
                false
            }
            None => false,
        };
        if !restored {
            label_s.into_iter().for_each(|label_s| shard.resume_after(name, label_s, now));
        }
    }
    for name in orphans {
        tracing::warn!(
            "there is a checkpoint of `{name}`, which this configuration does not have: it is left alone"
        );
    }
}

/// Removes the files of aggregations that want no checkpoints, for a process that has just taken over.
pub fn remove_unwanted(plan: &Plan, board: &Board) {
    let Some(folder) = board.folder() else { return };
    for transform in &plan.transforms {
        let TransformKind::Aggregate(aggregate) = &transform.kind;
        if aggregate.checkpoint_ms == 0 {
            let _any = files::remove(folder, &transform.name);
        }
    }
}

/// True when a checkpoint was taken over.
fn restore_one(
    folder: &Path,
    name: &str,
    label_s: Option<u64>,
    shard: &mut Shard,
    board: &Board,
    now: Now,
) -> bool {
    for generation in files::generations(folder, name) {
        let path = generation.path.display();
        let read = match generation.peeked {
            Ok(_) => files::read(&generation.path).map_err(|error| error.to_string()),
            Err(why) => Err(why.why().to_owned()),
        };
        let restored = read.and_then(|bytes| match shard.import(name, &bytes, label_s, now) {
            Some(Ok(restored)) => Ok(restored),
            Some(Err(why)) => Err(why.why().to_owned()),
            None => Err("nothing feeds the aggregation".to_owned()),
        });
        match restored {
            Ok(restored) => {
                tell(name, &generation.path, &restored, board, now);
                return true;
            }
            Err(why) => {
                board.change(name, |row| row.unreadable += 1);
                tracing::warn!("cannot use the checkpoint {path}: {why}. It is ignored");
            }
        }
    }
    false
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

/// Number of the next checkpoint of an aggregation: past those of all files that can be read.
pub(super) fn next_number(folder: &Path, name: &str) -> u64 {
    let found = files::generations(folder, name);
    let numbers = found.iter().filter_map(|generation| Some(generation.peeked.ok()?.number));
    numbers.max().map_or(1, |number| number.saturating_add(1))
}
