//! Reading checkpoints at the start.

use std::path::Path;

use config::plan::Plan;
use model::{DiskError, Now, SECOND_NS};
use pipeline::{RestoredStreams, Shard, checkpoints};
use process::aggregate::checkpoint::{LastFlush, Restored, Window};

use super::table::CheckpointTable;
use crate::daemon::checkpoint::handover::Handover;
use crate::daemon::start::startup::Startup;
use sys::disk::{Folder, reason};

/// Restores the state of the plan's aggregations, before the first record. Aggregations without checkpoints only
/// continue after the last label, and their files are removed. Those that are `handed` get their state from another
/// process, which may still need its files.
///
/// # Errors
/// When existing files cannot be read, even after the start has waited (`startup`): continuing without them would
/// replace them.
pub async fn restore(
    plan: &Plan,
    shard: &mut Shard,
    handover: &Handover,
    table: &CheckpointTable,
    handed: &dyn Fn(&str) -> bool,
    now: Now,
    startup: &mut Startup<'_>,
) -> anyhow::Result<()> {
    let disk = match table.folder() {
        Some(folder) => in_time(startup, folder, || existing(folder)).await?,
        None => None,
    };
    let mut orphans = disk.as_ref().map(checkpoints::names).unwrap_or_default();
    for transform in plan.transforms.iter().filter(|transform| transform.kind.has_state()) {
        orphans.remove(&transform.name);
    }
    for transform in plan.transforms.iter().filter(|transform| !handed(&transform.name)) {
        let (name, noted) = (transform.name.as_str(), handover.last_of(&transform.name));
        let believed = checkpoints::believed(transform, noted, handover.set_back_ns());
        let shown = |file: &str| table.folder().map(|folder| folder.join(file)).unwrap_or_default();
        let ignored = |file: &str, why: &str| {
            table.change(name, |row| row.unreadable += 1);
            tracing::warn!("cannot use the checkpoint {}: {why}. It is ignored", shown(file).display());
        };
        if transform.kind.as_streams().is_some() {
            let begin = || checkpoints::begin_streams(disk.as_ref(), shard, transform, &ignored);
            let restored = in_time(startup, &shown(name), begin).await?;
            restored
                .iter()
                .for_each(|(file, restored)| tell_streams(name, &shown(file), restored, table, now));
            continue;
        }
        let begin = || checkpoints::begin(disk.as_ref(), shard, transform, believed, now, &ignored);
        let restored = in_time(startup, &shown(name), begin).await?;
        if let Some((file, restored)) = restored {
            tell(name, &shown(&file), &restored, table, now);
        } else if believed != noted {
            shard.drop_label(name);
        }
        if handover.is_new(name) {
            // It may be a removed aggregation under another name.
            let others = LastFlush { label_s: handover.last_of_others(plan), number: None };
            let label_s = checkpoints::believed(transform, others, handover.set_back_ns()).label_s;
            label_s.into_iter().for_each(|label_s| shard.resume_after_other(name, label_s, now));
        }
    }
    handover.in_force(plan);
    for state in shard.figures().iter().filter(|state| state.figures.clock.labels_dropped > 0) {
        tracing::warn!(
            "the timestamp that the process before left for `{}` is far ahead of the clock: it is dropped, and the next \
             window may have one that was used before",
            state.transform
        );
    }
    for name in orphans {
        tracing::warn!("ignoring the checkpoint of `{name}`, which is not in the configuration");
    }
    Ok(())
}

/// Retries where that may help, as for queues on disk. A missing permission fails at once, because the operator must
/// fix it.
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

/// Removes the files of aggregations without checkpoints, for a process that has just replaced another one.
pub fn remove_unwanted(plan: &Plan, table: &CheckpointTable) {
    let Some(disk) = table.folder().and_then(|folder| existing(folder).ok().flatten()) else { return };
    for transform in plan.transforms.iter().filter(|transform| transform.kind.has_state()) {
        if transform.kind.checkpoint_ms() == 0 {
            let _any = checkpoints::remove(&disk, &transform.name);
        }
    }
}

/// The folder, if it exists. `Folder::open` would create it. If something else has its name, there is nothing to read
/// or to replace: saving then reports a failure.
fn existing(folder: &Path) -> Result<Option<Folder>, DiskError> {
    match std::fs::metadata(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(reason(error)),
        Ok(found) if !found.is_dir() => Ok(None),
        Ok(_) => Folder::open(folder.to_owned()).map(Some).map_err(reason),
    }
}

fn tell(name: &str, path: &Path, restored: &Restored, table: &CheckpointTable, now: Now) {
    let age_ns = now.wall_ns.saturating_sub(restored.begun_wall_ns);
    let Restored { series, damaged, dropped_series_max, cut_short, .. } = *restored;
    table.change(name, |row| {
        row.restored_series = series;
        row.restored_age_ms = age_ns / 1_000_000;
        row.restored_damaged = damaged;
        row.restored_dropped = dropped_series_max;
    });
    let window = match restored.window {
        Window::Continued => String::new(),
        Window::Closed(info) => {
            format!("; their window had ended and is flushed now, labelled {}", info.time_s)
        }
        Window::LeftOut => "; their window had been flushed before".to_owned(),
    };
    tracing::info!(
        "restored {series} series of `{name}` from {:.1} s ago{window}",
        age_ns as f64 / SECOND_NS as f64
    );
    if damaged > 0 || cut_short {
        let end = if cut_short { ", and its end is missing" } else { "" };
        tracing::warn!("checkpoint {}: {damaged} series are damaged and were left out{end}", path.display());
    }
    if dropped_series_max > 0 {
        tracing::warn!("checkpoint {}: {dropped_series_max} series are past `max_series`", path.display());
    }
}

fn tell_streams(name: &str, path: &Path, restored: &RestoredStreams, table: &CheckpointTable, now: Now) {
    let RestoredStreams { begun_wall_ns, streams, events, dropped, is_damaged } = *restored;
    let age_ns = now.wall_ns.saturating_sub(begun_wall_ns);
    table.change(name, |row| {
        row.restored_series = streams + events;
        row.restored_age_ms = age_ns / 1_000_000;
        row.restored_dropped = dropped;
    });
    tracing::info!(
        "`{name}` goes on with the state of {streams} streams and {events} events of its index from {:.1} s ago",
        age_ns as f64 / SECOND_NS as f64
    );
    if is_damaged {
        tracing::warn!(
            "checkpoint {}: its end is damaged or missing; what came before was restored",
            path.display()
        );
    }
}

/// Number of the next checkpoint of an aggregation, see [`checkpoints::next_number`].
pub(super) fn next_number(folder: &Path, name: &str, noted: LastFlush) -> u64 {
    match existing(folder) {
        Ok(Some(disk)) => checkpoints::next_number(&disk, name, noted.number),
        Ok(None) | Err(_) => noted.number.map_or(1, |number| number.saturating_add(1)),
    }
}

#[cfg(unix)]
#[tokio::test]
async fn labels_continue_after_the_predecessors_unless_its_clock_was_wrong() {
    let mut signals = crate::daemon::signals::Signals::take().expect("there is room");
    let mut startup = Startup::new(&mut signals);
    let now = sys::clock::Clock::now();
    let (slot_s, now_s) = (now.wall_ns / SECOND_NS / 10 * 10 + 10, now.wall_ns / SECOND_NS);
    let plan = |name: &str| {
        let text = format!(
            "[sources.s]\ntype = \"statsd\"\n\
             [transforms.{name}]\ntype = \"aggregate\"\nfrom = [\"s\"]\nwindow = \"10s\"\ncheckpoint = \"off\"\n\
             [outputs.o]\ntype = \"console\"\nfrom = [\"{name}\"]\n"
        );
        let source = config::diagnostic::Source { name: "t.toml", text: &text };
        config::check(source, config::Format::Toml).0.expect("it is good")
    };
    // (name here, seconds that the note's clock is ahead, its label, label of the first window, labels dropped)
    for (name, ahead_s, label_s, first_s, dropped) in [
        ("stats", 0, slot_s, slot_s + 10, 0),
        ("renamed", 0, slot_s, slot_s + 10, 0),
        ("stats", 15, slot_s + 20, slot_s + 30, 0),
        ("stats", 120, slot_s + 120, slot_s, 1),
        ("renamed", 120, slot_s + 120, slot_s, 0),
        ("renamed", 0, slot_s + 3600, slot_s, 0),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let notes = format!("{label_s} stats\nwritten {}\n", now_s + ahead_s);
        std::fs::write(folder.path().join("last-flush"), notes).expect("written");
        let handover = Handover::read(folder.path(), &mut startup).await.expect("it can be read");
        let plan = plan(name);
        let accounts = pipeline::Accounts::default().carried_to(&plan);
        let mut shard = Shard::new(&plan, &accounts, 1, now);
        let restored =
            restore(&plan, &mut shard, &handover, &CheckpointTable::default(), &|_| false, now, &mut startup)
                .await;
        restored.expect("nothing is there");
        shard.stop(now, &mut pipeline::Routed::default());
        let figures = shard.figures().remove(0);
        let first = figures.last_flush.expect("it was stopped").info.time_s;
        let found = (first, figures.figures.clock.labels_dropped);
        assert_eq!(found, (first_s, dropped), "{name} {ahead_s}");
    }
}
