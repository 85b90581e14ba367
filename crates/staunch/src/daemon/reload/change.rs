//! Watching the config files: a change is reported once, when the files have stopped changing.
//!
//! By looking, not by notification: a look a second costs nothing, works on every file system, and sees a file that
//! was renamed into place as well as one that was written over.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::daemon::shared::Shared;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The files and folders of a config. Each reload may name others.
#[derive(Clone, Debug, Default)]
pub struct Watched(Arc<Mutex<Vec<PathBuf>>>);

impl Watched {
    /// These.
    pub fn of(paths: Vec<PathBuf>) -> Watched {
        Watched(Arc::new(Mutex::new(paths)))
    }

    /// From now on these, unless there is none.
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

/// The state of all files; none while one of them is not there.
type Look = Option<Vec<Mark>>;

fn look(files: &[PathBuf]) -> Look {
    let mark = |file: &PathBuf| Path::metadata(file).ok().map(|found| sys::file_mark(&found));
    files.iter().map(mark).collect()
}

/// Decides from looks when there is a change to report.
#[derive(Debug)]
struct Looks {
    reported: Look,
    last: Look,
}

impl Looks {
    fn new(now: Look) -> Looks {
        Looks { reported: now.clone(), last: now }
    }

    /// True when the files differ from what was reported, are there, and have been the same for two looks.
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

/// Looks at the files as long as the daemon runs and reports their changes while the plan in force wants it.
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
fn a_change_is_reported_once_and_only_when_it_has_settled() {
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
fn a_change_of_one_of_several_files_is_seen() {
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
