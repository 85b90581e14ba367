//! The notes that an instance leaves for the next: the last completely emitted window of each aggregation.
//!
//! SIGTERM closes a window early, with the label of its interval. If the next instance starts within the same interval,
//! it must not emit that label again, or Graphite would keep only one of the two points. A checkpoint of an emitted
//! window must not be counted again, either.
//!
//! So notes (`pipeline::checkpoints`) are written when the blocks of a flush are in the outputs' queues, early enough
//! for a `kill -9`, by a separate thread; and at the stop. The file is written under another name and synced before it
//! replaces the old one, and so is the folder: a power loss leaves the last note or the one before, never a part of
//! one. If a note cannot be read for lack of a resource, the start waits for it and never overwrites it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::plan::Plan;
use pipeline::checkpoints::{Note, Notes, set_back_ns, written_line};
use process::aggregate::checkpoint::LastFlush;
use tokio::sync::oneshot;

use crate::daemon::start::kept;
use crate::daemon::start::startup::Startup;
use sys::clock::Clock;
use sys::disk;

/// The file in the data directory.
const FILE: &str = "last-flush";

/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Pause before notes are written again after a failure.
const WRITE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The notes, and where to write them. The default has no notes and writes none.
#[derive(Debug, Default)]
pub struct Handover {
    /// `None` when no notes are written, because another daemon does so.
    data_dir: Mutex<Option<PathBuf>>,
    notes: Mutex<Unwritten>,
    changed: Condvar,
    /// Locked while writing.
    writing: Mutex<()>,
    /// A thread writes notes as they come.
    kept: AtomicBool,
    /// How far the wall clock is behind the clock at the last notes of the predecessor.
    set_back_ns: u64,
}

#[derive(Debug, Default)]
struct Unwritten {
    notes: Notes,
    unwritten: bool,
}

impl Handover {
    /// Reads the notes of the predecessor from the data directory.
    ///
    /// # Errors
    /// When the file exists but cannot be opened for a reason that may pass or that the operator can fix: without it a
    /// window could be emitted twice, and the unread notes would be overwritten.
    pub async fn read(data_dir: &Path, startup: &mut Startup<'_>) -> io::Result<Handover> {
        let path = data_dir.join(FILE);
        let mut handover =
            Handover { data_dir: Mutex::new(Some(data_dir.to_owned())), ..Handover::default() };
        let mut notes = Notes::default();
        if fs::metadata(&path).is_ok_and(|found| found.len() > FILE_BYTES_MAX) {
            tracing::warn!("{} is not a handover note: ignored", path.display());
        } else {
            let what = format!("{} cannot be read yet", path.display());
            match startup.retry(what, waits, || fs::read_to_string(&path)).await {
                Ok(text) => {
                    notes = Notes::of_text(&text);
                    handover.set_back_ns = set_back_ns(&text, Clock::now());
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if waits(&error) || error.kind() == io::ErrorKind::PermissionDenied => {
                    return Err(error);
                }
                Err(error) => tracing::warn!("cannot read {}: {error}", path.display()),
            }
        }
        handover.notes = Mutex::new(Unwritten { notes, unwritten: false });
        Ok(handover)
    }

    fn notes(&self) -> MutexGuard<'_, Unwritten> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn data_dir(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.data_dir.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, notes are written to this data directory, where the next instance reads them.
    pub fn keep_in(&self, data_dir: &Path) {
        if self.data_dir().replace(data_dir.to_owned()).as_deref() != Some(data_dir) {
            self.notes().unwritten = true;
            self.changed.notify_one();
        }
    }

    /// The last known flush of an aggregation.
    pub fn last_of(&self, name: &str) -> LastFlush {
        self.notes().notes.of(name)
    }

    /// The latest label of the predecessor's aggregations that `plan` does not have.
    pub fn last_of_others(&self, plan: &Plan) -> Option<u64> {
        let known = |name: &str| plan.aggregates().any(|(_, transform, _)| transform.name == name);
        self.notes().notes.latest_of_others(known)
    }

    /// True when the previous plan did not have the aggregation, see [`Notes::is_new`].
    pub fn is_new(&self, name: &str) -> bool {
        self.notes().notes.is_new(name)
    }

    /// From now on, the aggregations are those of `plan`.
    pub fn in_force(&self, plan: &Plan) {
        let names = plan.aggregates().map(|(_, transform, _)| transform.name.as_str());
        let mut notes = self.notes();
        if notes.notes.in_force(names) {
            notes.unwritten = true;
            self.changed.notify_one();
        }
    }

    /// How far the wall clock was set back since the predecessor, at least. The predecessor's labels follow the earlier
    /// clock.
    pub fn set_back_ns(&self) -> u64 {
        self.set_back_ns
    }

    /// A window of an aggregation has been emitted. Never waits for the disk.
    pub fn note(&self, name: &str, note: Note) {
        let mut notes = self.notes();
        if notes.notes.flushed(name, note) {
            notes.unwritten = true;
            self.changed.notify_one();
        }
    }

    /// All notes.
    pub fn known(&self) -> Notes {
        self.notes().notes.clone()
    }

    /// Undoes all notes since [`Self::known`] returned these.
    pub fn put_back(&self, known: Notes) {
        let mut notes = self.notes();
        if notes.notes != known {
            (notes.notes, notes.unwritten) = (known, true);
            self.changed.notify_one();
        }
    }

    /// Starts a thread that writes notes as they come, if the plan has checkpoints: only they need it. It ends with the
    /// process.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn keep(self: &Arc<Handover>, plan: &Plan) -> io::Result<()> {
        if !kept::is_wanted(plan) || self.kept.swap(true, Relaxed) {
            return Ok(());
        }
        let handover = Arc::clone(self);
        std::thread::Builder::new().name("notes".into()).spawn(move || handover.write_for_ever())?;
        Ok(())
    }

    fn write_for_ever(&self) {
        let mut failed = false;
        loop {
            let woken = self.changed.wait_while(self.notes(), |notes| !notes.unwritten);
            drop(woken.unwrap_or_else(PoisonError::into_inner));
            match self.leave() {
                Ok(()) => failed = false,
                Err(error) if !failed => {
                    failed = true;
                    tracing::error!(
                        "cannot write `{FILE}` in the data directory: {error}. After a crash the last window may be sent \
                         twice, with the same timestamp"
                    );
                }
                Err(_logged) => {}
            }
            if failed {
                std::thread::sleep(WRITE_AGAIN_AFTER);
            }
        }
    }

    /// Writes the notes for the next instance now. Waits for the disk. After a failure they count as unwritten.
    ///
    /// # Errors
    /// When the file cannot be written; the worst result is a point that is emitted twice.
    pub fn leave(&self) -> io::Result<()> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let text: String = {
            let mut notes = self.notes();
            notes.unwritten = false;
            notes.notes.to_text()
        };
        let text = if text.is_empty() { text } else { format!("{text}{}", written_line(Clock::now())) };
        let Some(data_dir) = self.data_dir().clone().filter(|_| !text.is_empty()) else { return Ok(()) };
        let written = fs::create_dir_all(&data_dir)
            .and_then(|()| disk::replace_durably(&data_dir, FILE, text.as_bytes()));
        if written.is_err() {
            self.notes().unwritten = true;
        }
        written
    }

    /// The same on another thread, for callers that must not wait for the disk. Resolves when it is done. A disk that
    /// hangs does not prevent the end of the process.
    pub fn write_on_thread(self: &Arc<Handover>) -> oneshot::Receiver<io::Result<()>> {
        let (left, resolved) = oneshot::channel();
        let handover = Arc::clone(self);
        let leaving = std::thread::Builder::new().name("last notes".into()).spawn(move || {
            // The receiver may have stopped waiting.
            let _gone = left.send(handover.leave());
        });
        if let Err(error) = leaving {
            tracing::error!(
                "cannot start the thread that writes the handover note for the next start: {error}"
            );
        }
        resolved
    }
}

/// Descriptors or memory are scarce.
fn waits(error: &io::Error) -> bool {
    sys::is_scarce(error)
}

#[cfg(unix)]
#[tokio::test]
async fn notes_are_read_by_the_next_instance() {
    let mut signals = crate::daemon::signals::Signals::take().expect("there is room");
    let mut startup = Startup::new(&mut signals);
    let folder = tempfile::tempdir().expect("a folder");
    let note = |label_s, number| Note { label_s, number };
    let handover = Handover::read(folder.path(), &mut startup).await.expect("it can be read");
    handover.note("stats", note(1060, Some(3)));
    handover.note("a b", note(5, None));
    handover.leave().expect("written");
    // Notes of unknown aggregations are kept.
    let handover = Handover::read(folder.path(), &mut startup).await.expect("it can be read");
    handover.note("stats", note(1070, Some(4)));
    handover.leave().expect("written");
    let handover = Handover::read(folder.path(), &mut startup).await.expect("it can be read");
    let found = ["stats", "a b", "c"].map(|name| handover.last_of(name));
    let last = |label_s, number| LastFlush { label_s, number };
    assert_eq!(found, [last(Some(1070), Some(4)), last(Some(5), None), LastFlush::default()]);
    let elsewhere = tempfile::tempdir().expect("a folder");
    handover.keep_in(elsewhere.path());
    handover.leave().expect("written");
    let found = Handover::read(elsewhere.path(), &mut startup).await.expect("it can be read");
    assert_eq!(found.last_of("stats"), last(Some(1070), Some(4)));
}

#[cfg(unix)]
#[tokio::test]
async fn failed_notes_are_written_when_the_disk_works_again() {
    let mut signals = crate::daemon::signals::Signals::take().expect("there is room");
    let folder = tempfile::tempdir().expect("a folder");
    let read = Handover::read(folder.path(), &mut Startup::new(&mut signals)).await;
    let handover = Arc::new(read.expect("it can be read"));
    // A file cannot replace a folder.
    let half = folder.path().join(format!("{FILE}.new"));
    fs::create_dir(&half).expect("it is free");
    handover.note("stats", Note { label_s: 1060, number: None });
    handover.leave().expect_err("a folder is in its place");
    fs::remove_dir(&half).expect("it is empty");
    let thread = Arc::clone(&handover);
    std::thread::spawn(move || thread.write_for_ever());
    // No window ends any more.
    let is_written = || folder.path().join(FILE).exists();
    for _ in 0..3000 {
        if is_written() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(is_written(), "nothing new was noted");
}
