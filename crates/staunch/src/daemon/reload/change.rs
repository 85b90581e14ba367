//! Watches the config files: a change is reported once, when the files have stopped changing.
//!
//! By polling, not by notifications: a check per second costs nothing, works on every file system, and detects renamed
//! and overwritten files.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::daemon::shared::Shared;

/// Interval between two checks.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A file or folder of a config, with its state just before it was read.
#[derive(Clone, Debug)]
pub struct WatchedFile {
    path: PathBuf,
    mark: Option<Mark>,
}

impl WatchedFile {
    /// To be called before the file is read: a change after this is found.
    pub fn now(path: PathBuf) -> WatchedFile {
        let mark = mark(&path);
        WatchedFile { path, mark }
    }
}

/// The files and folders of a config. Each reading may name others.
#[derive(Clone, Debug, Default)]
pub struct Watched(Arc<Mutex<Reading>>);

/// The last reading of a config: its number, and its files.
#[derive(Clone, Debug, Default)]
struct Reading {
    number: u64,
    files: Vec<WatchedFile>,
}

impl Watched {
    /// Watches these.
    pub fn of(files: Vec<WatchedFile>) -> Watched {
        Watched(Arc::new(Mutex::new(Reading { number: 0, files })))
    }

    /// From now on these, unless the list is empty.
    pub fn set(&self, files: Vec<WatchedFile>) {
        if !files.is_empty() {
            let mut reading = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *reading = Reading { number: reading.number + 1, files };
        }
    }

    fn reading(&self) -> Reading {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same, with `file` when there is no other.
    fn beside(self, file: PathBuf) -> Watched {
        if self.reading().files.is_empty() {
            self.set(vec![WatchedFile::now(file)]);
        }
        self
    }
}

/// What differs between two states of a file or folder.
type Mark = (u64, u64, i64, i64);

fn mark(path: &Path) -> Option<Mark> {
    Path::metadata(path).ok().map(|found| sys::file_mark(&found))
}

/// The state of all files; `None` while one of them is missing that is not a file of a folder.
type Look = Option<Vec<Option<Mark>>>;

impl Reading {
    /// The state of the files when they were read.
    fn read(&self) -> Look {
        self.state(|file| file.mark)
    }

    /// Their state now.
    fn look(&self) -> Look {
        self.state(|file| mark(&file.path))
    }

    fn state(&self, of: impl Fn(&WatchedFile) -> Option<Mark>) -> Look {
        let state = |file| {
            let mark = of(file);
            // An editor moves a file away and back. One of a folder may be removed for good.
            (mark.is_some() || self.is_of_a_folder(file)).then_some(mark)
        };
        self.files.iter().map(state).collect()
    }

    fn is_of_a_folder(&self, file: &WatchedFile) -> bool {
        file.path.parent().is_some_and(|folder| self.files.iter().any(|other| other.path == folder))
    }
}

/// Decides when a change is reported.
#[derive(Debug)]
struct Looks {
    reported: Look,
    last: Look,
}

impl Looks {
    fn new(now: Look) -> Looks {
        Looks { reported: now.clone(), last: now }
    }

    /// True when the files differ from the reported state, exist, and were equal in two checks.
    fn see(&mut self, now: Look) -> bool {
        let settled = std::mem::replace(&mut self.last, now.clone()) == now;
        let changed = settled && now.is_some() && now != self.reported;
        if changed {
            self.reported = now;
        }
        changed
    }
}

/// Starts the task that watches a config, if there is one.
pub(in crate::daemon) fn spawn(
    file: Option<PathBuf>,
    watched: Watched,
    shared: &Arc<Shared>,
    changes: &mpsc::Sender<()>,
) {
    let Some(file) = file else { return };
    tokio::spawn(watch(watched.beside(file), Arc::clone(shared), changes.clone()));
}

/// Checks the files as long as the daemon runs, and reports changes if the current plan has `reload_on_change`.
async fn watch(watched: Watched, shared: Arc<Shared>, changes: mpsc::Sender<()>) {
    let mut reading = watched.reading();
    let mut looks = Looks::new(reading.read());
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = watched.reading();
        if now.number != reading.number {
            reading = now;
            looks = Looks::new(reading.read());
        }
        if looks.see(reading.look())
            && shared.wiring.load().plan.reload_on_change
            && changes.send(()).await.is_err()
        {
            return;
        }
    }
}

#[test]
fn a_change_is_reported_once_when_the_file_is_stable() {
    let file = |version: u64| Some(vec![Some((version, 0, 0, 0))]);
    let mut watched = Looks::new(file(1));
    let looks = [
        (file(1), false),
        (file(2), false), // Being written.
        (file(3), false),
        (file(3), true),
        (file(3), false),
        (None, false), // An editor moves it away and back.
        (None, false),
        (file(4), false),
        (file(4), true),
        (file(3), false),
        (file(4), false), // Back to what was reported.
        (file(4), false),
    ];
    for (at, (look, want)) in looks.into_iter().enumerate() {
        assert_eq!(watched.see(look), want, "look {at}");
    }
}

#[cfg(test)]
fn files(folder: &Path, names: &[&str]) -> Watched {
    names.iter().for_each(|name| std::fs::write(folder.join(name), "a").expect("a file"));
    Watched::of(names.iter().map(|name| WatchedFile::now(folder.join(name))).collect())
}

#[test]
fn a_change_of_one_of_several_files_is_detected() {
    let folder = tempfile::tempdir().expect("a folder");
    let reading = files(folder.path(), &["a.toml", "b.toml"]).reading();
    let mut looks = Looks::new(reading.read());
    assert!(!looks.see(reading.look()));
    std::fs::write(folder.path().join("b.toml"), "longer").expect("a file");
    assert!(!looks.see(reading.look()) && looks.see(reading.look()));
    std::fs::remove_file(folder.path().join("a.toml")).expect("it was there");
    assert!(!looks.see(reading.look()) && !looks.see(reading.look()), "one is missing");
}

#[test]
fn a_change_between_reading_and_the_first_look_is_detected() {
    let folder = tempfile::tempdir().expect("a folder");
    let watched = files(folder.path(), &["a.toml"]);
    std::fs::write(folder.path().join("a.toml"), "longer").expect("a file");
    let reading = watched.reading();
    let mut looks = Looks::new(reading.read());
    assert!(!looks.see(reading.look()) && looks.see(reading.look()));
}

#[test]
fn a_removed_file_of_a_folder_is_a_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let watched = files(folder.path(), &["a.toml", "b.toml"]);
    let mut files = watched.reading().files;
    files.push(WatchedFile::now(folder.path().to_owned()));
    watched.set(files);
    let reading = watched.reading();
    let mut looks = Looks::new(reading.read());
    std::fs::remove_file(folder.path().join("a.toml")).expect("it was there");
    assert!(!looks.see(reading.look()) && looks.see(reading.look()));
    assert!(!looks.see(reading.look()), "once");
}
