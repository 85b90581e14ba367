//! What one instance leaves for the next: the label of each aggregation's last window that was told whole.
//!
//! SIGTERM closes a window before its time, and the point carries the label of its slot. An instance that starts
//! within the same slot must not tell that label again, or Graphite would keep only one of the two points. And a
//! checkpoint of a window that was told must not be counted again.
//!
//! So the labels are written when the blocks of a flush have been appended to the outputs' queues, in time for a
//! `kill -9`, by a thread of its own; and at the stop. They are not synced: after a loss of power an older label at worst
//! lets a window be told twice, under the same label.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use config::plan::Plan;

use crate::daemon::data_dir;

/// The file in the data folder: a line `LABEL NAME` for each aggregation.
const FILE: &str = "last-flush";

/// Longest file that is believed.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The labels, and how to make them last. The default one knows none and leaves none.
#[derive(Debug, Default)]
pub struct Handover {
    /// None when nothing is to be left: another daemon does that there.
    data_dir: Mutex<Option<PathBuf>>,
    labels: Mutex<Labels>,
    changed: Condvar,
    /// Held by whoever writes.
    writing: Mutex<()>,
    /// A thread writes labels as they come.
    kept: AtomicBool,
}

#[derive(Debug, Default)]
struct Labels {
    /// Of every aggregation that was ever told here: those that the plan does not have now may come back.
    by_name: BTreeMap<String, u64>,
    unwritten: bool,
}

impl Handover {
    /// Takes up what the instance before has left in the data folder.
    pub fn read(data_dir: &Path) -> Handover {
        let path = data_dir.join(FILE);
        let mut handover =
            Handover { data_dir: Mutex::new(Some(data_dir.to_owned())), ..Handover::default() };
        let mut by_name = BTreeMap::new();
        if fs::metadata(&path).is_ok_and(|found| found.len() > FILE_BYTES_MAX) {
            tracing::warn!("{} is no file of ours: left alone", path.display());
        } else {
            match fs::read_to_string(&path) {
                Ok(text) => by_name = labels(&text).collect(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::warn!("cannot read {}: {error}", path.display()),
            }
        }
        handover.labels = Mutex::new(Labels { by_name, unwritten: false });
        handover
    }

    fn labels(&self) -> MutexGuard<'_, Labels> {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn data_dir(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.data_dir.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on labels are left in this data folder, where the next instance looks for them.
    pub fn keep_in(&self, data_dir: &Path) {
        if self.data_dir().replace(data_dir.to_owned()).as_deref() != Some(data_dir) {
            self.labels().unwritten = true;
            self.changed.notify_one();
        }
    }

    /// Label of the last window of an aggregation that was told.
    pub fn label_of(&self, name: &str) -> Option<u64> {
        self.labels().by_name.get(name).copied()
    }

    /// The window `label_s` of an aggregation has been told. Never waits for the disk.
    pub fn told(&self, name: &str, label_s: u64) {
        let mut labels = self.labels();
        if labels.by_name.get(name) == Some(&label_s) {
            return;
        }
        labels.by_name.insert(name.to_owned(), label_s);
        labels.unwritten = true;
        self.changed.notify_one();
    }

    /// Sees that there is a thread that writes labels as they come, when the plan has checkpoints: only they need it.
    /// It ends with the process.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn keep(self: &Arc<Handover>, plan: &Plan) -> io::Result<()> {
        if !data_dir::is_wanted(plan) || self.kept.swap(true, Relaxed) {
            return Ok(());
        }
        let handover = Arc::clone(self);
        std::thread::Builder::new().name("labels".into()).spawn(move || handover.write_for_ever())?;
        Ok(())
    }

    fn write_for_ever(&self) {
        let mut failed = false;
        loop {
            let labels = self.labels();
            let woken = self.changed.wait_while(labels, |labels| !labels.unwritten);
            drop(woken.unwrap_or_else(PoisonError::into_inner));
            match self.leave() {
                Ok(()) => failed = false,
                Err(error) if !failed => {
                    failed = true;
                    tracing::error!(
                        "cannot write `{FILE}` in the data directory: {error}. After a crash the last window would be \
                         told twice, under one label"
                    );
                }
                Err(_told) => {}
            }
        }
    }

    /// Leaves the labels for the next instance, now.
    ///
    /// # Errors
    /// When the file cannot be written; the worst that follows is a point that is told twice.
    pub fn leave(&self) -> io::Result<()> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let text: String = {
            let mut labels = self.labels();
            labels.unwritten = false;
            labels.by_name.iter().map(|(name, label_s)| format!("{label_s} {name}\n")).collect()
        };
        let Some(data_dir) = self.data_dir().clone().filter(|_| !text.is_empty()) else { return Ok(()) };
        fs::create_dir_all(&data_dir)?;
        let half = data_dir.join(format!("{FILE}.new"));
        fs::write(&half, text)?;
        fs::rename(&half, data_dir.join(FILE))
    }
}

fn labels(text: &str) -> impl Iterator<Item = (String, u64)> {
    text.lines().filter_map(|line| {
        let (label, name) = line.split_once(' ')?;
        Some((name.to_owned(), label.parse().ok()?))
    })
}

#[test]
fn what_is_left_is_taken_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let handover = Handover::read(folder.path());
    handover.told("stats", 1060);
    handover.told("a b", 5);
    handover.leave().expect("written");
    // One that this instance does not know stays.
    let handover = Handover::read(folder.path());
    handover.told("stats", 1070);
    handover.leave().expect("written");
    let handover = Handover::read(folder.path());
    let found = ["stats", "a b", "c"].map(|name| handover.label_of(name));
    assert_eq!(found, [Some(1070), Some(5), None]);
    let elsewhere = tempfile::tempdir().expect("a folder");
    handover.keep_in(elsewhere.path());
    handover.leave().expect("written");
    assert_eq!(Handover::read(elsewhere.path()).label_of("stats"), Some(1070));
    let known: Vec<(String, u64)> = labels("no number\n\n12\n7 x\n").collect();
    assert_eq!(known, [("x".to_owned(), 7)]);
}
