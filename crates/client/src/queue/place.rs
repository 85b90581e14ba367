//! The data directory of the queues, the daemon that owns it, and the queue of a name.
//!
//! Not here: what is in a queue (`deliver::disk_queue::inspect`), taking the data directory (`sys::data_dir`).

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use config::diagnostic::nearest;
use config::plan::{OutputPlan, Plan};

use crate::ReadPlan;
use crate::args::Whose;
use crate::stdio::shown;
use sys::data_dir::{self, LOCK_FILE};
use sys::disk::Folder;

/// Most bytes of a lock's text that are read.
const LOCK_TEXT_BYTES_MAX: u64 = 256;

/// Most names that an error lists.
const NAMES_SHOWN: usize = 8;

/// A data directory.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) data_dir: PathBuf,
    /// The config, if one was named.
    pub(super) plan: Option<Plan>,
    /// The daemon that has the directory, if one does.
    pub(super) owner: Option<Owner>,
}

/// A daemon that has a data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) pid: Option<u32>,
    /// Its HTTP API.
    pub(super) http: Option<SocketAddr>,
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
    pub(super) fn text(&self) -> String {
        self.pid.map_or_else(|| "a daemon".to_owned(), |pid| format!("pid {pid}"))
    }
}

/// A queue's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Queue {
    /// The output that it is of.
    pub(super) name: String,
    pub(super) path: PathBuf,
}

impl Place {
    /// The data directory that is meant.
    ///
    /// # Errors
    /// When there is none, it must not be read, or the config has mistakes.
    pub(super) fn find(whose: &Whose, read_plan: ReadPlan<'_>) -> anyhow::Result<Place> {
        let plan = whose.config.as_deref().map(read_plan).transpose()?;
        let named = plan.as_ref().map(|plan| plan.data_dir.clone()).or_else(|| whose.data_dir.clone());
        let data_dir = named.unwrap_or_else(|| PathBuf::from("./staunch-data"));
        match fs::metadata(&data_dir) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => bail!("{} is a file, and no data directory", data_dir.display()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
                "there is no data directory {}\n  hint: name the daemon's config with --config FILE, or its \
                 `data_dir` with --data-dir DIR",
                data_dir.display()
            ),
            Err(error) => return Err(unreadable(error, &data_dir)),
        }
        let owner = owner_of(&data_dir)?;
        Ok(Place { data_dir, plan, owner })
    }

    /// Looks again who has the directory.
    pub(super) fn refresh(&mut self) -> anyhow::Result<()> {
        self.owner = owner_of(&self.data_dir)?;
        Ok(())
    }

    /// Every queue on disk, by name.
    ///
    /// # Errors
    /// When the folder of queues must not be read.
    pub(super) fn queues(&self) -> anyhow::Result<Vec<Queue>> {
        let folder = data_dir::queues_dir(&self.data_dir);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(error, &folder)),
        };
        let mut queues = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| unreadable(error, &folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).and_then(data_dir::output_of);
            if let Some(name) = name.filter(|_| path.is_dir()) {
                queues.push(Queue { name, path });
            }
        }
        queues.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(queues)
    }

    /// The queues of these names; all of them when there are none.
    ///
    /// # Errors
    /// When there is no queue of a name.
    pub(super) fn pick(&self, names: &[String]) -> anyhow::Result<Vec<Queue>> {
        let queues = self.queues()?;
        if names.is_empty() {
            return Ok(queues);
        }
        let find = |name: &String| match queues.iter().find(|queue| queue.name == *name) {
            Some(queue) => Ok(queue.clone()),
            None => bail!("{}", no_queue(name, &queues, &data_dir::queues_dir(&self.data_dir))),
        };
        names.iter().map(find).collect()
    }

    /// The queue of that name.
    pub(super) fn one(&self, name: &str) -> anyhow::Result<Queue> {
        let mut queues = self.pick(&[name.to_owned()])?;
        queues.pop().context("one name is one queue")
    }

    /// The queue of that name, also one that an output of the config will have: there is nothing in it yet.
    pub(super) fn one_to_fill(&self, name: &str) -> anyhow::Result<Queue> {
        let found = self.one(name);
        if found.is_err() && self.output(name).is_some() {
            let path = data_dir::queues_dir(&self.data_dir).join(data_dir::queue_folder(name));
            return Ok(Queue { name: name.to_owned(), path });
        }
        found
    }

    /// The output whose queue this is, by the config.
    pub(super) fn output(&self, name: &str) -> Option<&OutputPlan> {
        let outputs = &self.plan.as_ref()?.outputs;
        outputs.iter().find(|output| output.name == name && output.queue_kind.is_disk())
    }
}

impl Queue {
    /// Its files, to be read only.
    ///
    /// # Errors
    /// When they must not be read.
    pub(super) fn folder(&self) -> anyhow::Result<Folder> {
        Folder::open_read_only(self.path.clone()).map_err(|error| unreadable(error, &self.path))
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
pub(super) fn within_reach(at: SocketAddr) -> SocketAddr {
    match at {
        SocketAddr::V4(at) if at.ip().is_unspecified() => SocketAddr::from(([127, 0, 0, 1], at.port())),
        SocketAddr::V6(at) if at.ip().is_unspecified() => {
            SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], at.port()))
        }
        at => at,
    }
}

/// Who has the directory. A lock that nobody holds was left behind.
fn owner_of(data_dir: &Path) -> anyhow::Result<Option<Owner>> {
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

fn unreadable(error: io::Error, path: &Path) -> anyhow::Error {
    let denied = error.kind() == io::ErrorKind::PermissionDenied;
    let hint = if denied { "\n  hint: run it as the user that the daemon runs as" } else { "" };
    anyhow::anyhow!("cannot read {}: {error}{hint}", path.display())
}

fn no_queue(asked: &str, queues: &[Queue], folder: &Path) -> String {
    let (name, folder) = (shown(asked), folder.display());
    if queues.is_empty() {
        return format!(
            "there is no queue `{name}`: nothing is queued on disk in {folder}\n  hint: outputs with \
             queue.kind = \"disk\" have one"
        );
    }
    let names = || queues.iter().map(|queue| queue.name.as_str());
    if let Some(near) = nearest(asked, names()) {
        let near = shown(near);
        return format!("there is no queue `{name}` in {folder}; did you mean `{near}`?");
    }
    let more = if queues.len() > NAMES_SHOWN { ", …" } else { "" };
    let listed: Vec<String> = names().take(NAMES_SHOWN).map(shown).collect();
    format!("there is no queue `{name}` in {folder}\n  hint: there are: {}{more}", listed.join(", "))
}

/// Refuses files and folders of queues in the place of names.
///
/// # Errors
/// With what to write instead.
pub(super) fn are_no_paths(names: &[String]) -> anyhow::Result<()> {
    let is_path = |name: &&String| name.contains('/') || name.ends_with(".segment");
    match names.iter().filter(is_path).find_map(|name| file_of_queue(name)) {
        Some(instead) => bail!("{instead}"),
        None => Ok(()),
    }
}

/// What to write instead when a file or folder of a queue was named, and not the queue.
fn file_of_queue(name: &str) -> Option<String> {
    let path = Path::new(name);
    let folder = if path.is_dir() { path } else { path.parent().filter(|_| path.is_file())? };
    let place = || {
        let queues = folder.parent().filter(|queues| queues.ends_with("queues"))?;
        let output = folder.file_name().and_then(|name| name.to_str()).and_then(data_dir::output_of)?;
        Some((shown(&output), queues.parent()?))
    };
    let (what, name) = (if path.is_dir() { "a folder" } else { "a file" }, shown(name));
    Some(match place() {
        Some((output, data_dir)) if data_dir.as_os_str().is_empty() => format!(
            "{name} is {what} of a queue, and not its name\n  hint: use the name of its output: `{output}` with --data-dir ."
        ),
        Some((output, data_dir)) => format!(
            "{name} is {what} of a queue, and not its name\n  hint: use the name of its output: `{output}` with --data-dir {}",
            shown(&data_dir.display().to_string())
        ),
        None => format!(
            "{name} is {what}, and no queue of a data directory (DIR/queues/OUTPUT)\n  hint: use the name of its output, with \
             --data-dir DIR or --config FILE"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(names: &[&str]) -> Vec<Queue> {
        names.iter().map(|name| Queue { name: (*name).to_owned(), path: PathBuf::from(name) }).collect()
    }

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
        fs::write(&path, "process 17\n").expect("written");
        assert_eq!(owner_of(folder.path()).expect("readable"), None, "left behind");
        let held = File::open(&path).expect("it is there");
        held.lock().expect("nobody else has it");
        let owner = Owner { pid: Some(17), http: None };
        assert_eq!(owner_of(folder.path()).expect("readable"), Some(owner));
    }

    #[test]
    fn unknown_names_get_the_nearest_or_the_list() {
        let folder = Path::new("d/queues");
        for (name, known, want) in [
            (
                "carbn",
                &["carbon", "web"][..],
                "there is no queue `carbn` in d/queues; did you mean `carbon`?",
            ),
            (
                "xyz",
                &["carbon", "web"],
                "there is no queue `xyz` in d/queues\n  hint: there are: carbon, web",
            ),
            (
                "xyz",
                &["q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9"],
                "there is no queue `xyz` in d/queues\n  hint: there are: q1, q2, q3, q4, q5, q6, q7, q8, …",
            ),
            (
                "xyz",
                &[],
                "there is no queue `xyz`: nothing is queued on disk in d/queues\n  hint: outputs with queue.kind \
                 = \"disk\" have one",
            ),
        ] {
            assert_eq!(no_queue(name, &queues(known), folder), want);
        }
    }
    #[test]
    fn control_characters_in_names_are_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("queues").join("a%1Bb");
        fs::create_dir_all(&path).expect("a folder");
        let text = file_of_queue(path.to_str().expect("text")).expect("it is a folder of a queue");
        assert!(text.contains("of its output: `a\u{fffd}b`") && !text.contains('\x1b'), "{text:?}");
        for (asked, known) in [("a\x1bc", "a\x1bb"), ("a\x1bc", "xyz\x1b"), ("\x1b", "")] {
            let known = if known.is_empty() { Vec::new() } else { queues(&[known]) };
            let text = no_queue(asked, &known, folder.path());
            assert!(text.contains('\u{fffd}') && !text.contains('\x1b'), "{text:?}");
        }
    }
}
