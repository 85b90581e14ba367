//! The data directory of the queues, and the queue of a name.
//!
//! Not here: the daemon that owns the directory (`crate::owner`), what is in a queue (`deliver::disk_queue::inspect`), taking the data directory (`sys::data_dir`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use config::diagnostic::nearest;
use config::plan::{OutputPlan, Plan};

use crate::ReadPlan;
use crate::args::Whose;
use crate::owner::{Owner, owner_of, unreadable};
use crate::stdio::shown;
use sys::data_dir;
use sys::disk::Folder;

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
