//! Watching the config file: a change is reported once, when the file has stopped changing.
//!
//! By looking, not by notification: a look a second costs nothing, works on every file system, and sees a file that
//! was renamed into place as well as one that was written over.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::daemon::shared::Shared;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What differs between two states of a file; none while it is not there.
type Look = Option<(u64, u64, i64, i64)>;

fn look(file: &Path) -> Look {
    std::fs::metadata(file).ok().map(|found| sys::file_mark(&found))
}

/// Decides from looks when there is a change to tell.
#[derive(Debug)]
struct Watched {
    reported: Look,
    last: Look,
}

impl Watched {
    /// True when the file differs from what was reported, is there, and has been the same for two looks.
    fn see(&mut self, now: Look) -> bool {
        let settled = std::mem::replace(&mut self.last, now) == now;
        let changed = settled && now.is_some() && now != self.reported;
        if changed {
            self.reported = now;
        }
        changed
    }
}

/// Looks at `file` as long as the daemon runs and reports its changes while the plan in force wants it.
pub async fn watch(file: PathBuf, shared: Arc<Shared>, changes: mpsc::Sender<()>) {
    let first = look(&file);
    let mut watched = Watched { reported: first, last: first };
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if watched.see(look(&file))
            && shared.wiring.load().plan.reload_on_change
            && changes.send(()).await.is_err()
        {
            return;
        }
    }
}

#[test]
fn a_change_is_reported_once_and_only_when_it_has_settled() {
    let file = |version: u64| Some((version, 0, 0, 0));
    let mut watched = Watched { reported: file(1), last: file(1) };
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
        (file(4), false), // Back to what was reported: nothing to report.
        (file(4), false),
    ];
    for (at, (look, reported)) in looks.into_iter().enumerate() {
        assert_eq!(watched.see(look), reported, "look {at}");
    }
}
