//! The daemon that owns a data directory, and where its HTTP API is. Its lock says both (`sys::data_dir`).

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context;
use config::plan::Plan;
use sys::data_dir::LOCK_FILE;

/// Most bytes of a lock's text that are read.
const LOCK_TEXT_BYTES_MAX: u64 = 256;

/// A daemon that has a data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) pid: Option<u32>,
    /// Its HTTP API.
    pub(crate) http: Option<SocketAddr>,
}

impl Owner {
    /// What its lock says: `process N` and `http ADDR`, one on each line.
    fn of(text: &str) -> Owner {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        Owner {
            pid: value("process ").and_then(|pid| pid.parse().ok()),
            http: value("http ").and_then(|at| at.parse().ok()),
        }
    }

    /// As people read it.
    pub(crate) fn text(&self) -> String {
        self.pid.map_or_else(|| "a daemon".to_owned(), |pid| format!("pid {pid}"))
    }
}

/// Where the HTTP API of a plan's daemon is: as that daemon says in its data directory, else as the plan does.
///
/// # Errors
/// When the plan has none.
pub(crate) fn http_of(plan: &Plan) -> anyhow::Result<SocketAddr> {
    let owner = owner_of(&plan.data_dir).unwrap_or_default();
    let at = owner.and_then(|owner| owner.http).or(plan.http);
    at.map(within_reach).context("the config has no HTTP API (http.enabled): set its address with --api ADDR")
}

/// A listener on all addresses is reached by loopback.
pub(crate) fn within_reach(at: SocketAddr) -> SocketAddr {
    match at {
        SocketAddr::V4(at) if at.ip().is_unspecified() => SocketAddr::from(([127, 0, 0, 1], at.port())),
        SocketAddr::V6(at) if at.ip().is_unspecified() => {
            SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], at.port()))
        }
        at => at,
    }
}

/// Who has the directory. A lock that nobody holds was left behind.
pub(crate) fn owner_of(data_dir: &Path) -> anyhow::Result<Option<Owner>> {
    let path = data_dir.join(LOCK_FILE);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error, &path)),
    };
    match file.try_lock_shared() {
        // Given back when the file is closed.
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // Without a text it is a daemon that is just starting.
            let _unread = file.by_ref().take(LOCK_TEXT_BYTES_MAX).read_to_string(&mut text);
            Ok(Some(Owner::of(&text)))
        }
        Err(TryLockError::Error(error)) => Err(unreadable(error, &path)),
    }
}

pub(crate) fn unreadable(error: io::Error, path: &Path) -> anyhow::Error {
    let denied = error.kind() == io::ErrorKind::PermissionDenied;
    let hint = if denied { "\n  hint: run it as the user that the daemon runs as" } else { "" };
    anyhow::anyhow!("cannot read {}: {error}{hint}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locks_text_names_the_process_and_its_http_api() {
        let http = "127.0.0.1:8680".parse().ok();
        for (text, want) in [
            ("process 17\nhttp 127.0.0.1:8680\n", Owner { pid: Some(17), http }),
            ("process 17\n", Owner { pid: Some(17), http: None }),
            ("http 127.0.0.1:8680\nprocess 17", Owner { pid: Some(17), http }),
            ("process many\nhttp here\n", Owner::default()),
            ("", Owner::default()),
        ] {
            assert_eq!(Owner::of(text), want, "{text:?}");
        }
        assert_eq!(Owner { pid: Some(17), http }.text(), "pid 17");
        assert_eq!(Owner::default().text(), "a daemon");
    }

    #[test]
    fn a_lock_has_an_owner_while_it_is_held() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(owner_of(folder.path()).expect("readable"), None);
        let path = folder.path().join(LOCK_FILE);
        std::fs::write(&path, "process 17\n").expect("written");
        assert_eq!(owner_of(folder.path()).expect("readable"), None, "left behind");
        let held = File::open(&path).expect("it is there");
        held.lock().expect("nobody else has it");
        let owner = Owner { pid: Some(17), http: None };
        assert_eq!(owner_of(folder.path()).expect("readable"), Some(owner));
    }
}
