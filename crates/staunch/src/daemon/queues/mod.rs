//! Opens the outputs' queues: in memory, or on disk with the records of an earlier run.
//!
//! Not here: the recovery of a queue on disk (`deliver::disk_queue`), the data directory's lock (`data_dir`).
//! Invariant: a folder is open once at a time; see `reload` for outputs that are added again. A start that lacks
//! descriptors, memory or the folder waits (`startup`) and is then refused: to continue without the records on disk
//! would count them as lost.

pub mod known_queues;
pub mod syncs;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::plan::{OutputPlan, Plan};
use deliver::disk_queue::{self, DiskQueue, DiskQueuePlan, Recovery, Unreadable, Unsettled};
use deliver::plan::QueueKind;
use model::{DiskError, OutputAccount};

use crate::daemon::outlet::Outlet;
use crate::daemon::start::startup::Startup;
use sys::clock::Clock;
use sys::data_dir::{self, DataDir};
use sys::disk::Folder;

/// The queue of one output, with its waiting records, for a start, which may wait for it.
///
/// # Errors
/// When its folder cannot be read or written: its records could not be kept.
pub async fn open(
    output: &OutputPlan,
    account: &Arc<OutputAccount>,
    data_dir: Option<&DataDir>,
    startup: &mut Startup<'_>,
) -> anyhow::Result<Arc<Outlet>> {
    let Some(place) = Place::of(output, data_dir) else { return Ok(Arc::new(in_memory(output, account))) };
    let opened = opened_in_time(&output.name, startup, |unreadable| place.open(account, unreadable)).await;
    let (queue, folder) = place.logged(opened)?;
    Ok(Arc::new(on_disk(output, queue, folder)))
}

/// The same for a reload, which never waits: it is refused, and changes nothing.
///
/// # Errors
/// The same.
pub fn open_at_once(
    output: &OutputPlan,
    account: &Arc<OutputAccount>,
    data_dir: Option<&DataDir>,
) -> anyhow::Result<Arc<Outlet>> {
    Ok(Arc::new(opened_at_once(output, account, data_dir)?))
}

fn opened_at_once(
    output: &OutputPlan,
    account: &Arc<OutputAccount>,
    data_dir: Option<&DataDir>,
) -> anyhow::Result<Outlet> {
    let Some(place) = Place::of(output, data_dir) else { return Ok(in_memory(output, account)) };
    let (queue, folder) = place.logged(place.open(account, Unreadable::Fail))?;
    Ok(on_disk(output, queue, folder))
}

/// A queue on disk that was read and is not open yet: another process still has its folder, and may continue with it.
pub struct Prepared<'a> {
    place: Place<'a>,
    queue: disk_queue::Prepared<Folder>,
    folder: Folder,
    /// The descriptor that its cursor will need.
    spare: Folder,
}

/// Tries everything that can prevent opening a queue, for an outlet that was made while another process has the folder.
/// None when the queue is in memory.
///
/// # Errors
/// When it could not be opened now.
pub fn prepare<'a>(
    output: &'a OutputPlan,
    data_dir: Option<&'a DataDir>,
) -> anyhow::Result<Option<Prepared<'a>>> {
    let Some(place) = Place::of(output, data_dir) else { return Ok(None) };
    let prepared = place.prepare(Unreadable::Fail).and_then(|(queue, folder)| {
        let spare =
            sys::may_change(folder.path()).and_then(|()| Folder::open_read_only(folder.path().to_owned()));
        Ok((queue, folder, spare.map_err(OpenError::of_folder)?))
    });
    match prepared {
        Ok((queue, folder, spare)) => Ok(Some(Prepared { place, queue, folder, spare })),
        Err(cause) => Err(place.cannot_open(&cause)),
    }
}

impl Prepared<'_> {
    /// Opens it, at the position that the old process may have handed over: no other process has the folder any more.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(self, outlet: &Outlet, unsettled: Option<Unsettled>) -> anyhow::Result<()> {
        let Prepared { place, queue, folder, spare } = self;
        drop(spare);
        let account = Arc::clone(&outlet.account);
        let opened = queue.open_after(unsettled, account, (sys::random_seed(), Clock::now()));
        let opened = opened.map(|opened| (opened, folder)).map_err(OpenError::of_queue);
        let (queue, folder) = place.logged(opened)?;
        outlet.put_on_disk(queue, folder);
        Ok(())
    }
}

fn in_memory(output: &OutputPlan, account: &Arc<OutputAccount>) -> Outlet {
    Outlet::new(&output.name, output.queue, account).with_connections(connections(output))
}

fn on_disk(output: &OutputPlan, queue: DiskQueue<Folder>, folder: Folder) -> Outlet {
    Outlet::on_disk(&output.name, queue, folder).with_connections(connections(output))
}

/// The path and options of an output's queue on disk.
struct Place<'a> {
    output: &'a str,
    data_dir: &'a DataDir,
    path: PathBuf,
    plan: DiskQueuePlan,
}

/// A queue, what was recovered, and its folder.
type Found = ((DiskQueue<Folder>, Recovery), Folder);

impl<'a> Place<'a> {
    /// None when the queue is in memory.
    fn of(output: &'a OutputPlan, data_dir: Option<&'a DataDir>) -> Option<Place<'a>> {
        let (QueueKind::Disk { sync_window_ms }, Some(data_dir)) = (output.queue_kind, data_dir) else {
            return None;
        };
        let path = data_dir.queues_dir().join(data_dir::queue_folder(&output.name));
        Some(Place {
            output: &output.name,
            data_dir,
            path,
            plan: DiskQueuePlan::within(output.queue, sync_window_ms),
        })
    }

    /// Reads what opening needs, and creates a missing folder.
    fn prepare(&self, unreadable: Unreadable) -> Result<(disk_queue::Prepared<Folder>, Folder), OpenError> {
        if known_queues::is_away(self.data_dir.path(), &self.path).map_err(OpenError::of_folder)? {
            return Err(OpenError::away(&self.path));
        }
        let folder = match self.data_dir.opened() {
            Some(opened) => Folder::open_in(self.data_dir.path(), opened, self.path.clone()),
            None => Folder::open(self.path.clone()),
        };
        let folder = folder.map_err(OpenError::of_folder)?;
        let prepared = DiskQueue::prepare(folder.clone(), self.plan, unreadable);
        Ok((prepared.map_err(OpenError::of_queue)?, folder))
    }

    fn open(&self, account: &Arc<OutputAccount>, unreadable: Unreadable) -> Result<Found, OpenError> {
        let (prepared, folder) = self.prepare(unreadable)?;
        let opened = prepared.open(Arc::clone(account), sys::random_seed(), Clock::now());
        Ok((opened.map_err(OpenError::of_queue)?, folder))
    }

    fn cannot_open(&self, cause: &OpenError) -> anyhow::Error {
        anyhow::anyhow!(
            "cannot open the queue on disk of output `{}` in {}: {cause}\n  hint: make the folder readable and \
             writable for this user, or set kind = \"memory\"; the records on disk then stay there",
            self.output,
            self.path.display()
        )
    }

    /// Logs what was recovered, or returns why there is no queue.
    fn logged(&self, opened: Result<Found, OpenError>) -> anyhow::Result<(DiskQueue<Folder>, Folder)> {
        let ((queue, found), folder) = opened.map_err(|cause| self.cannot_open(&cause))?;
        log_recovered(self.output, &self.path, &found);
        if let Err(error) = known_queues::note(self.data_dir.path(), &self.path) {
            tracing::warn!(
                "output `{}`: cannot record its queue on disk in the data directory ({error}): a later start that does not \
                 find the folder would create an empty queue",
                self.output
            );
        }
        Ok((queue, folder))
    }
}

/// Why a queue was not opened.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
struct OpenError {
    why: String,
    waits: bool,
    /// The disk failed to read something that may be skipped.
    may_pass_over: bool,
}

impl OpenError {
    fn of_folder(error: io::Error) -> OpenError {
        OpenError { why: error.to_string(), waits: sys::is_scarce(&error), may_pass_over: false }
    }

    /// It existed before: creating a new one would leave its records behind.
    fn away(folder: &Path) -> OpenError {
        let why = format!(
            "the folder existed before and is missing now: it was moved, or its file system is not mounted. Restore it; \
             or, to start with an empty queue, create it: mkdir {}",
            folder.display()
        );
        OpenError { why, waits: true, may_pass_over: false }
    }

    fn of_queue(error: DiskError) -> OpenError {
        let failed = matches!(error, DiskError::Io { .. });
        // The operator has to fix a missing permission: a start reports it at once.
        let waits = failed || error.passes() && error != DiskError::Denied;
        // Waiting does not turn a pipe into a file.
        let may_pass_over = failed || error == DiskError::NotAFile;
        OpenError { why: error.to_string(), waits, may_pass_over }
    }
}

/// Opens, repeatedly if that may help, and after the time limit without the parts that the disk fails to read.
async fn opened_in_time<T>(
    output: &str,
    startup: &mut Startup<'_>,
    open: impl Fn(Unreadable) -> Result<T, OpenError>,
) -> Result<T, OpenError> {
    let what = format!("output `{output}`: its queue on disk cannot be opened yet");
    let opened = startup.retry(what, |error: &OpenError| error.waits, || open(Unreadable::Fail)).await;
    match opened {
        // Not at a stop: the next start tries it again.
        Err(error) if error.may_pass_over && !startup.is_stopped() => open(Unreadable::Skip),
        opened => opened,
    }
}

/// An outlet for an output that continues the queue on disk of an earlier one of its name, see `reload`. A queue whose
/// files were closed is opened again.
///
/// # Errors
/// As [`open_at_once`].
pub fn successor(
    output: &OutputPlan,
    earlier: &Outlet,
    data_dir: Option<&DataDir>,
) -> anyhow::Result<Arc<Outlet>> {
    if let Some(outlet) = earlier.successor() {
        let outlet = Arc::new(outlet.with_connections(connections(output)));
        earlier.disk().into_iter().for_each(|disk| disk.followed_by(&outlet));
        return Ok(outlet);
    }
    Ok(Arc::new(opened_at_once(output, &earlier.account, data_dir)?.with_errors_of(earlier)))
}

fn connections(output: &OutputPlan) -> usize {
    output.kind.facts().link.connections()
}

/// Most misplaced segments that a log line names.
const MISPLACED_SHOWN: usize = 10;

/// Logs what was recovered, if there was anything.
fn log_recovered(output: &str, path: &Path, found: &Recovery) {
    let text = recovered(found);
    let path = path.display();
    let odd = found.segments_damaged + found.segments_unreadable + found.segments_oversized;
    let damaged = odd + found.copies_gone > 0;
    if damaged || !found.misplaced.is_empty() || found.cursor_lost || found.unsettled_lost {
        tracing::warn!("output `{output}`: {text}; damaged parts are moved to quarantine in {path}");
    } else if found.copies_queued > 0 {
        tracing::info!("output `{output}`: {text}");
    }
}

fn recovered(found: &Recovery) -> String {
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let (copies, segments) = (found.copies_queued, found.segments);
    let mut text = format!(
        "recovered {copies} record{} ({} bytes, {segments} segment{}) from the queue on disk",
        plural(copies),
        found.queued_bytes,
        plural(segments)
    );
    for (count, what) in [
        (found.segments_damaged, "with a damaged header"),
        (found.segments_unreadable, "that the disk fails to open"),
        (found.segments_oversized, "larger than any of a queue, read in part"),
    ] {
        if count > 0 {
            text.push_str(&format!("; {count} segment{} {what}", plural(count)));
        }
    }
    for segment in found.misplaced.iter().take(MISPLACED_SHOWN) {
        text.push_str(&format!("; {}", segment.text()));
    }
    if found.misplaced.len() > MISPLACED_SHOWN {
        text.push_str(&format!("; and {} more such segments", found.misplaced.len() - MISPLACED_SHOWN));
    }
    if found.copies_gone > 0 {
        text.push_str(&format!(
            "; {} of them {} missing at the end, with the last segment or a part of it",
            found.copies_gone,
            if found.copies_gone == 1 { "is" } else { "are" }
        ));
    }
    if found.unsettled_lost {
        text.push_str(
            "; the position from the previous process does not match, so some records are sent and counted again",
        );
    }
    if found.cursor_lost {
        text.push_str("; the read position is lost, so some records may be sent again");
    }
    text
}

/// Logs queues on disk that belong to no output of the plan.
pub fn log_orphans(plan: &Plan, data_dir: &DataDir) {
    let owned: BTreeSet<String> = plan
        .outputs
        .iter()
        .filter(|output| output.queue_kind.is_disk())
        .map(|output| data_dir::queue_folder(&output.name))
        .collect();
    let Ok(entries) = std::fs::read_dir(data_dir.queues_dir()) else { return };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let orphans: BTreeSet<String> = names.filter(|name| !owned.contains(name)).collect();
    for orphan in orphans {
        let Some(output) = data_dir::output_of(&orphan) else { continue };
        let path = data_dir.queues_dir().join(&orphan);
        tracing::warn!(
            "{} is the queue of output `{output}`, which is not in the config; its records stay there until an output of \
             that name has a queue on disk again, or you remove the folder",
            path.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use deliver::disk_queue::{QuarantineReason, QuarantinedSegment};

    use super::*;

    #[test]
    fn the_recovery_is_logged_as_one_line() {
        let mut found = Recovery { segments: 1, copies_queued: 3, queued_bytes: 512, ..Recovery::default() };
        assert_eq!(recovered(&found), "recovered 3 records (512 bytes, 1 segment) from the queue on disk");
        found.segments_oversized = 2;
        let want = "recovered 3 records (512 bytes, 1 segment) from the queue on disk; 2 segments larger than any of a queue, \
                    read in part";
        assert_eq!(recovered(&found), want);
        found.segments_oversized = 0;
        found.segments_damaged = 1;
        found.cursor_lost = true;
        found.copies_gone = 2;
        found.misplaced = (0..12)
            .map(|sequence| QuarantinedSegment {
                sequence,
                bytes: 500,
                why: QuarantineReason::Misnamed(0x13),
            })
            .collect();
        let misplaced: String = (0..10)
            .map(|sequence| {
                format!("; {sequence:016x}.segment: its header is that of 0000000000000013.segment")
            })
            .collect();
        assert_eq!(
            recovered(&found),
            "recovered 3 records (512 bytes, 1 segment) from the queue on disk; 1 segment with a damaged header"
                .to_owned()
                + &misplaced
                + "; and 2 more such segments; 2 of \
             them are missing at the end, with the last segment or a part of it; the read position is lost, so some records may be sent again"
        );
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_start_waits_for_transient_errors() {
        let failing = |left: u32, error: DiskError| {
            let left = std::cell::Cell::new(left);
            move |_: Unreadable| match left.get() {
                0 => Ok(()),
                more => {
                    left.set(more - 1);
                    Err(OpenError::of_queue(error))
                }
            }
        };
        let scarce = DiskError::Scarce { code: 24 };
        let mut signals = crate::daemon::signals::Signals::take().expect("there is room");
        let mut startup = Startup::new(&mut signals);
        for (error, opens) in [
            (scarce, true),
            (DiskError::Io { code: 5 }, true),
            (DiskError::NotAFile, true),
            (DiskError::Denied, false),
        ] {
            let opened = opened_in_time("o", &mut startup, failing(1, error)).await;
            assert_eq!(opened.is_ok(), opens, "{error}");
        }
    }

    #[test]
    fn a_queue_whose_folder_is_missing_is_not_created_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let data_dir = DataDir::lock(folder.path(), None).expect("nobody has it");
        let mut output = config::defaults(Path::new(".")).outputs.remove(0);
        (output.name, output.queue_kind) = ("d".to_owned(), QueueKind::Disk { sync_window_ms: 10 });
        let open = || open_at_once(&output, &Arc::default(), Some(&data_dir)).map(drop);
        open().expect("it is made");
        let (path, elsewhere) = (data_dir.queues_dir().join("d"), folder.path().join("elsewhere"));
        std::fs::rename(&path, &elsewhere).expect("nobody has it open");
        let refused = format!("{:#}", open().expect_err("what waits in it would stay behind"));
        assert!(refused.contains("not mounted") && refused.contains("mkdir"), "{refused}");
        assert!(!path.exists());
        std::fs::rename(&elsewhere, &path).expect("it is free");
        open().expect("it is there again");
        std::fs::remove_dir_all(&path).and_then(|()| std::fs::create_dir(&path)).expect("it is ours");
        open().expect("somebody wants to begin anew");
    }
}
