//! The thread that syncs the queue on disk of one output: group commit.
//!
//! One thread for each queue, so that a hanging sync delays its own queue only. It sleeps until the oldest unsynced
//! record has waited for `sync_window`, and holds no lock while the disk works. Not here: what is due and what a sync
//! does (`deliver::disk_queue`).

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use deliver::disk_queue::{DiskQueue, DiskQueueCounts, Missing};
use deliver::queue::Queue as _;
use model::{DiskError, SECOND_NS};
use tokio::task::JoinSet;

use crate::daemon::outlet::{OnDisk, Outlet};
use sys::clock::Clock;
use sys::disk::Folder;

/// Pause when a sync is due but there is nothing to sync, which disk errors may cause.
const PAUSE: Duration = Duration::from_millis(5);

/// Pause before unused files are closed after a failed sync.
const CLOSE_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Least time between two log lines about a failing disk: the first failure is logged at once, then their count.
const LOG_EVERY_NS: u64 = 60 * SECOND_NS;

/// How often the thread checks whether the files of the queue are where they should be.
const LOOK_EVERY_NS: u64 = 2 * SECOND_NS;

/// Starts the thread of an output whose queue is on disk; nothing for the others.
///
/// # Errors
/// When the system has no thread for it.
pub fn spawn(tasks: &mut JoinSet<()>, outlet: &Arc<Outlet>) -> std::io::Result<()> {
    if outlet.disk().is_some() {
        prepare(tasks, outlet)?.begin();
    }
    Ok(())
}

/// A thread that exists and has nothing to sync yet. Dropping this ends it.
#[derive(Debug)]
pub struct Prepared(SyncSender<()>);

impl Prepared {
    /// The queue on disk is open.
    pub fn begin(self) {
        // It only waits for this.
        let _waits = self.0.send(());
    }
}

/// The same as [`spawn`] for an outlet whose queue on disk is not open yet.
///
/// # Errors
/// The same.
pub fn prepare(tasks: &mut JoinSet<()>, outlet: &Arc<Outlet>) -> std::io::Result<Prepared> {
    let outlet = Arc::clone(outlet);
    let (begin, begun) = std::sync::mpsc::sync_channel(1);
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    std::thread::Builder::new().name(format!("sync {}", outlet.name)).spawn(move || {
        let mut goes_on = begun.recv().is_ok();
        while goes_on {
            run(&outlet);
            goes_on = !outlet.release();
        }
        drop(ended);
    })?;
    tasks.spawn(async move {
        // The sender is dropped, not used: that is the signal.
        let _ended = end.await;
    });
    Ok(Prepared(begin))
}

/// Syncs until the outlet is closed and its output has ended, and then a last time; or until a reload has removed the
/// output and nothing waits for it any more: then the files are closed.
pub fn run(outlet: &Outlet) {
    let Some(disk) = outlet.disk() else { return };
    let disk = &*disk;
    let mut complaints = Complaints::default();
    let mut look_ns = Clock::mono_ns() + LOOK_EVERY_NS;
    while !disk.is_done() {
        let failed = turn(outlet, disk, look_ns);
        complaints.last_error = failed.or(complaints.last_error);
        let lost_name = matches!(failed, Some(DiskError::Deleted | DiskError::Away));
        if lost_name || Clock::mono_ns() >= look_ns {
            look(outlet, disk);
            look_ns = Clock::mono_ns() + LOOK_EVERY_NS;
        }
        complaints.look(outlet, disk);
        if is_done_with(outlet, disk) {
            if last_sync(outlet, disk).is_none() && outlet.close_files(disk) {
                return;
            }
            std::thread::sleep(CLOSE_AGAIN_AFTER);
        }
    }
    let _counted = last_sync(outlet, disk);
    look(outlet, disk);
    complaints.look(outlet, disk);
    let missing = outlet.queue().on_disk().and_then(|queue| queue.missing());
    if missing.is_some_and(|missing| missing.error == DiskError::Deleted) {
        if let Some(queue) = outlet.queue().on_disk() {
            queue.drop_missing();
        }
        outlet.progressed();
    }
    // The cursor's file may be missing as well, or has to advance past missing segments.
    let _counted = last_sync(outlet, disk);
}

/// A reload has removed the output, and nothing waits for it.
fn is_done_with(outlet: &Outlet, disk: &OnDisk) -> bool {
    outlet.is_done_with(disk, &outlet.queue())
}

/// Returns the error, which is counted.
fn last_sync(outlet: &Outlet, disk: &OnDisk) -> Option<DiskError> {
    let last = outlet.queue().on_disk().and_then(|queue| queue.begin_last_sync());
    let done = last?.perform(disk.folder());
    outlet.on_synced(done)
}

/// Checks which files exist.
pub fn look(outlet: &Outlet, disk: &OnDisk) {
    let begun = outlet.queue().on_disk().and_then(|queue| queue.begin_directory_check());
    let Some(looked) = begun.map(|look| look.perform(disk.folder())) else { return };
    if let Some(queue) = outlet.queue().on_disk() {
        queue.on_directory_checked(looked);
    }
}

/// One sync, or one sleep that ends at `look_ns` at the latest. Returns the error of the sync.
fn turn(outlet: &Outlet, disk: &OnDisk, look_ns: u64) -> Option<DiskError> {
    let mut guard = outlet.queue();
    // Before the checks: if something is settled after them, the thread counts as asleep and is woken.
    disk.falls_asleep();
    let now = Clock::now();
    let queue = guard.on_disk()?;
    if disk.take_wants_oldest() && !outlet.is_parked() {
        // Known from now on without reading.
        let _age_ns = queue.oldest_age_ns(now);
    }
    let due_ns = queue.sync_due_ns(now);
    let is_due = due_ns.is_some_and(|due_ns| due_ns <= now.mono_ns);
    let held_copies = queue.held_copies();
    let job = if is_due { queue.begin_sync(now) } else { None };
    if queue.held_copies() != held_copies || queue.read_again(now) {
        // The disk has accepted what it had refused, or may return what it did not: there is something to send.
        outlet.wake_all();
    }
    if let Some(job) = job {
        disk.is_awake();
        drop(guard);
        let done = job.perform(disk.folder());
        return outlet.on_synced(done);
    }
    let due_ns = if queue.begin_directory_check().is_some() {
        Some(due_ns.map_or(look_ns, |due_ns| due_ns.min(look_ns)))
    } else {
        due_ns
    };
    let pause = match due_ns {
        _ if is_due => Some(PAUSE),
        due_ns => due_ns.map(|due_ns| Duration::from_nanos(due_ns.saturating_sub(now.mono_ns))),
    };
    if !disk.is_done() && !outlet.is_done_with(disk, &guard) {
        disk.sleep(guard, now.mono_ns, pause);
    }
    None
}

/// What was logged about the disk.
#[derive(Debug, Default)]
struct Complaints {
    logged: DiskQueueCounts,
    logged_ns: u64,
    /// The last error of a write, a read or a sync since then.
    last_error: Option<DiskError>,
    /// The last missing files that were logged, and when.
    missing: Option<(Missing, u64)>,
}

impl Complaints {
    /// Logs new errors, if the last line is long enough ago.
    fn look(&mut self, outlet: &Outlet, disk: &OnDisk) {
        self.look_for_files(outlet, disk);
        let seen =
            |queue: &mut DiskQueue<Folder>| (queue.counts(), queue.write_error().or(queue.read_error()));
        let Some((counts, error)) = outlet.queue().on_disk().map(seen) else { return };
        self.last_error = error.or(self.last_error);
        let now_ns = Clock::mono_ns();
        let soon = self.logged_ns != 0 && now_ns < self.logged_ns + LOG_EVERY_NS;
        if counts == self.logged || soon && !disk.is_done() {
            return;
        }
        let mut text = new_damage(&self.logged, &counts);
        if let Some(error) = self.last_error.take() {
            let error = if text.is_empty() { error.to_string() } else { format!(" (last error: {error})") };
            text.push_str(&error);
        }
        if !text.is_empty() {
            let path = disk.folder().path().display();
            tracing::warn!("output `{}`: queue on disk in {path}: {text}", outlet.name);
        }
        (self.logged, self.logged_ns) = (counts, now_ns);
    }
}

impl Complaints {
    /// Logs once that files are missing, and again when more of them are, with a minimum interval; and when all of them
    /// are back or no longer needed.
    fn look_for_files(&mut self, outlet: &Outlet, disk: &OnDisk) {
        let missing = outlet.queue().on_disk().and_then(|queue| queue.missing());
        let now_ns = Clock::mono_ns();
        let path = disk.folder().path().display();
        match (missing, self.missing) {
            (Some(now), Some((logged, at_ns)))
                if logged.error == now.error
                    && (now.error == DiskError::Away
                        || now.segments <= logged.segments
                        || now_ns < at_ns + LOG_EVERY_NS) => {}
            (Some(now), _) => {
                tracing::warn!("output `{}`: {}", outlet.name, missing_text(now, &path.to_string()));
                self.missing = Some((now, now_ns));
            }
            (None, Some((logged, at_ns)))
                if now_ns >= at_ns + LOG_EVERY_NS || logged.error == DiskError::Away =>
            {
                if logged.error == DiskError::Away {
                    tracing::info!(
                        "output `{}`: its queue on disk in {path} is available again",
                        outlet.name
                    );
                }
                self.missing = None;
            }
            (None, _) => {}
        }
    }
}

/// What is missing and how to fix it.
fn missing_text(missing: Missing, path: &str) -> String {
    let Missing { error, copies, segments } = missing;
    let (records, files) = (counted(copies, "record"), counted(segments, "file"));
    if error == DiskError::Away {
        return format!(
            "the folder of its queue on disk, {path}, is missing or was replaced; {records} queued in it. Mount it or move \
             it back: no record is lost, and until then none is acknowledged as safe"
        );
    }
    format!(
        "{files} of its queue on disk in {path} deleted, with {records} queued. The daemon delivers from deleted files as \
         long as it runs; a stop loses the rest. Repair the endpoint before you stop the daemon. New records go into new \
         files"
    )
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What `now` has more than `before`, in words.
fn new_damage(before: &DiskQueueCounts, now: &DiskQueueCounts) -> String {
    let counts = |counts: &DiskQueueCounts| {
        [
            counts.damaged_ranges,
            counts.damaged_records,
            counts.quarantined_bytes,
            counts.quarantine_full,
            counts.write_errors,
            counts.read_errors,
            counts.sync_errors,
            counts.in_doubt_records,
            counts.remove_errors,
        ]
    };
    let words = [
        ("damaged range", "damaged ranges"),
        ("damaged block", "damaged blocks"),
        ("byte moved to quarantine", "bytes moved to quarantine"),
        ("range dropped because the quarantine is full", "ranges dropped because the quarantine is full"),
        ("write failed", "writes failed"),
        ("read failed and is retried", "reads failed and are retried"),
        ("sync failed", "syncs failed"),
        ("block in doubt", "blocks in doubt"),
        ("file could not be removed", "files could not be removed"),
    ];
    let news = counts(now).into_iter().zip(counts(before)).map(|(now, before)| now.saturating_sub(before));
    let parts = news.zip(words).filter(|(new, _)| *new > 0);
    parts
        .map(|(new, (one, many))| format!("{new} {}", if new == 1 { one } else { many }))
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn only_new_errors_are_logged() {
    let before = DiskQueueCounts { write_errors: 3, ..DiskQueueCounts::default() };
    let now = DiskQueueCounts { write_errors: 5, damaged_ranges: 1, damaged_records: 2, ..before };
    assert_eq!(new_damage(&before, &before), "");
    assert_eq!(new_damage(&before, &now), "1 damaged range, 2 damaged blocks, 2 writes failed");
}
