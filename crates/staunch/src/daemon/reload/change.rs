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

/// The files and folders of a config. Each reload may name others.
#[derive(Clone, Debug, Default)]
pub struct Watched(Arc<Mutex<Vec<PathBuf>>>);

impl Watched {
    /// Watches these.
    pub fn of(paths: Vec<PathBuf>) -> Watched {
        Watched(Arc::new(Mutex::new(paths)))
    }

    /// From now on these, unless the list is empty.
    pub fn set(&self, paths: Vec<PathBuf>) {
        if !paths.is_empty() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = paths;
        }
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same, with `file` when there is no other.
    fn beside(self, file: PathBuf) -> Watched {
        if self.paths().is_empty() {
            self.set(vec![file]);
        }
        self
    }
}

/// What differs between two states of a file or folder.
type Mark = (u64, u64, i64, i64);

/// The state of all files; `None` while one of them is missing.
type Look = Option<Vec<Mark>>;

fn look(files: &[PathBuf]) -> Look {
    let mark = |file: &PathBuf| Path::metadata(file).ok().map(|found| sys::file_mark(&found));
    files.iter().map(mark).collect()
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
    let mut files = watched.paths();
    let mut looks = Looks::new(look(&files));
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = watched.paths();
        if now != files {
            // They were read just now.
            files = now;
            looks = Looks::new(look(&files));
        }
        if looks.see(look(&files))
            && shared.wiring.load().plan.reload_on_change
            && changes.send(()).await.is_err()
        {
            return;
        }
    }
}

#[test]
fn a_change_is_reported_once_when_the_file_is_stable() {
    let file = |version: u64| Some(vec![(version, 0, 0, 0)]);
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

#[test]
fn a_change_of_one_of_several_files_is_detected() {
    let folder = tempfile::tempdir().expect("a folder");
    let paths: Vec<PathBuf> = ["a.toml", "b.toml"].iter().map(|name| folder.path().join(name)).collect();
    paths.iter().for_each(|path| std::fs::write(path, "a").expect("a file"));
    let mut looks = Looks::new(look(&paths));
    assert!(!looks.see(look(&paths)));
    std::fs::write(&paths[1], "longer").expect("a file");
    assert!(!looks.see(look(&paths)) && looks.see(look(&paths)));
    std::fs::remove_file(&paths[0]).expect("it was there");
    assert!(!looks.see(look(&paths)) && !looks.see(look(&paths)), "one is missing");
}
