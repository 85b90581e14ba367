//! What one instance leaves for the next: of each aggregation the last window that was told whole.
//!
//! SIGTERM closes a window before its time, and the point carries the label of its slot. An instance that starts
//! within the same slot must not tell that label again, or Graphite would keep only one of the two points. And a
//! checkpoint of a window that was told must not be counted again.
//!
//! So notes (`pipeline::checkpoints`) are written when the blocks of a flush have been appended to the outputs' queues, in time for a
//! `kill -9`, by a thread of its own; and at the stop. The file is written anew under another name and synced before it
//! takes its place, and so is the folder: after a loss of power there is the last note or the one before, never half of
//! one. A note that cannot be read for want of something is waited for at the start, and never written over.

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

/// The file in the data folder.
const FILE: &str = "last-flush";

/// Longest file that is believed.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Pause before notes that could not be written are tried again.
const WRITE_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The notes, and how to make them last. The default one knows none and leaves none.
#[derive(Debug, Default)]
pub struct Handover {
    /// None when nothing is to be left: another daemon does that there.
    data_dir: Mutex<Option<PathBuf>>,
    notes: Mutex<Unwritten>,
    changed: Condvar,
    /// Held by whoever writes.
    writing: Mutex<()>,
    /// A thread writes notes as they come.
    kept: AtomicBool,
    /// How far the wall clock is behind what it was when the instance before wrote its notes.
    set_back_ns: u64,
}

#[derive(Debug, Default)]
struct Unwritten {
    notes: Notes,
    unwritten: bool,
}

impl Handover {
    /// Takes up what the instance before has left in the data folder.
    ///
    /// # Errors
    /// When it is there and cannot be opened, for a reason that may pass or that the operator can mend: without it a window
    /// could be told twice, and what is not read now would be written over.
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

    /// From now on notes are left in this data folder, where the next instance looks for them.
    pub fn keep_in(&self, data_dir: &Path) {
        if self.data_dir().replace(data_dir.to_owned()).as_deref() != Some(data_dir) {
            self.notes().unwritten = true;
            self.changed.notify_one();
        }
    }

    /// What is known to have been told of an aggregation.
    pub fn last_of(&self, name: &str) -> LastFlush {
        self.notes().notes.of(name)
    }

    /// The latest label of aggregations that the instance before had and `plan` does not have.
    pub fn last_of_others(&self, plan: &Plan) -> Option<u64> {
        let known = |name: &str| plan.aggregates().any(|(_, transform, _)| transform.name == name);
        self.notes().notes.latest_of_others(known)
    }

    /// True when the plan before did not have the aggregation, see [`Notes::is_new`].
    pub fn is_new(&self, name: &str) -> bool {
        self.notes().notes.is_new(name)
    }

    /// The aggregations of `plan` are those that there are from now on.
    pub fn in_force(&self, plan: &Plan) {
        let names = plan.aggregates().map(|(_, transform, _)| transform.name.as_str());
        let mut notes = self.notes();
        if notes.notes.in_force(names) {
            notes.unwritten = true;
            self.changed.notify_one();
        }
    }

    /// How far the wall clock was set back since the instance before, at least. Its labels are those of the clock then.
    pub fn set_back_ns(&self) -> u64 {
        self.set_back_ns
    }

    /// A window of an aggregation has been told. Never waits for the disk.
    pub fn note(&self, name: &str, note: Note) {
        let mut notes = self.notes();
        if notes.notes.flushed(name, note) {
            notes.unwritten = true;
            self.changed.notify_one();
        }
    }

    /// All that is known.
    pub fn known(&self) -> Notes {
        self.notes().notes.clone()
    }

    /// What was noted since these were [`Self::known`] has not happened.
    pub fn put_back(&self, known: Notes) {
        let mut notes = self.notes();
        if notes.notes != known {
            (notes.notes, notes.unwritten) = (known, true);
            self.changed.notify_one();
        }
    }

    /// Sees that there is a thread that writes notes as they come, when the plan has checkpoints: only they need it.
    /// It ends with the process.
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
                Err(_told) => {}
            }
            if failed {
                std::thread::sleep(WRITE_AGAIN_AFTER);
            }
        }
    }

    /// Leaves the notes for the next instance, now. Waits for the disk. What could not be written is unwritten again.
    ///
    /// # Errors
    /// When the file cannot be written; the worst that follows is a point that is told twice.
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

    /// The same on a thread of its own, for somebody who must not wait for the disk. Resolves when it is done; a disk that
    /// hangs keeps nobody from ending the process.
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

/// Descriptors or memory are short.
fn waits(error: &io::Error) -> bool {
    sys::is_scarce(error)
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_left_is_taken_up() {
    let mut signals = crate::daemon::signals::Signals::take().expect("there is room");
    let mut startup = Startup::new(&mut signals);
    let folder = tempfile::tempdir().expect("a folder");
    let note = |label_s, number| Note { label_s, number };
    let handover = Handover::read(folder.path(), &mut startup).await.expect("it can be read");
    handover.note("stats", note(1060, Some(3)));
    handover.note("a b", note(5, None));
    handover.leave().expect("written");
    // One that this instance does not know stays.
    let handover = Handover::read(folder.path(), &mut startup).await.expect("it can be read");
    handover.note("stats", note(1070, Some(4)));
    handover.leave().expect("written");
    let handover = Handover::read(folder.path(), &mut startup).await.expect("it can be read");
    let found = ["stats", "a b", "c"].map(|name| handover.last_of(name));
    let told = |label_s, number| LastFlush { label_s, number };
    assert_eq!(found, [told(Some(1070), Some(4)), told(Some(5), None), LastFlush::default()]);
    let elsewhere = tempfile::tempdir().expect("a folder");
    handover.keep_in(elsewhere.path());
    handover.leave().expect("written");
    let found = Handover::read(elsewhere.path(), &mut startup).await.expect("it can be read");
    assert_eq!(found.last_of("stats"), told(Some(1070), Some(4)));
}

#[cfg(unix)]
#[tokio::test]
async fn what_could_not_be_written_is_written_when_the_disk_can_again() {
    let mut signals = crate::daemon::signals::Signals::take().expect("there is room");
    let folder = tempfile::tempdir().expect("a folder");
    let read = Handover::read(folder.path(), &mut Startup::new(&mut signals)).await;
    let handover = Arc::new(read.expect("it can be read"));
    // A folder in its place cannot be replaced by a file.
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
