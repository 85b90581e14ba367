//! The folders of a daemon of carbon, and its name in them: what `start`, `stop` and `status` need (spec graphite §4.1).
//!
//! Not here: settings that make a plan (`conf`). A file with mistakes has folders as well, so that a daemon can always be stopped.

use super::instances::{INSTANCE, STORAGE_DIR};
use super::{Invocation, ini};

/// Folders of one daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories {
    /// `STORAGE_DIR`
    pub storage: String,
    /// `PID_DIR`; its files are named after program and instance.
    pub pid: String,
    /// `LOG_DIR`, with a folder for program and instance.
    pub log: String,
}

/// The folders of the daemon of a section in the text of a carbon.conf.
pub fn directories(text: &str, invocation: &Invocation) -> Directories {
    let sections = ini::sections(text, &mut Vec::new());
    let (program, instance) = invocation.section.split_once(':').unwrap_or((&*invocation.section, INSTANCE));
    let get = |key: &str| {
        let names = [format!("{program}:{instance}"), program.to_owned()];
        let found = names.iter().find_map(|name| {
            let section = sections.iter().find(|section| section.name == *name)?;
            section.get(&key.to_ascii_lowercase()).map(|entry| entry.value.clone())
        });
        found.filter(|value| !value.is_empty())
    };
    let given = invocation.storage_dir.as_deref().unwrap_or(STORAGE_DIR);
    let storage = trimmed(get("STORAGE_DIR").unwrap_or_else(|| given.to_owned()));
    let daemon = format!("carbon-{program}");
    let log = get("LOG_DIR").map_or_else(|| format!("{storage}/log/{daemon}"), trimmed);
    Directories {
        pid: get("PID_DIR").map_or_else(|| storage.clone(), trimmed),
        log: format!("{log}/{daemon}-{instance}"),
        storage,
    }
}

fn trimmed(folder: String) -> String {
    match folder.trim_end_matches('/') {
        "" => folder,
        text => text.to_owned(),
    }
}

#[test]
fn folders_follow_from_the_file_and_the_environment() {
    let of = |text: &str, section: &str, storage_dir: Option<&str>| {
        let storage_dir = storage_dir.map(str::to_owned);
        let Directories { storage, pid, log } =
            directories(text, &Invocation { storage_dir, ..Invocation::of_section(section) });
        [storage, pid, log].join(" ")
    };
    let root =
        "/opt/graphite/storage /opt/graphite/storage /opt/graphite/storage/log/carbon-cache/carbon-cache-a";
    assert_eq!(of("[cache]\n", "cache", None), root);
    assert_eq!(of("[nothing]\nx", "cache", None), root, "mistakes do not matter");
    assert_eq!(of("", "relay:b", Some("/s/")), "/s /s /s/log/carbon-relay/carbon-relay-b");
    let text = "[cache]\nSTORAGE_DIR = /a/\nPID_DIR = /run\n[cache:b]\nLOG_DIR = /log\nSTORAGE_DIR = /b\n";
    assert_eq!(of(text, "cache", Some("/s")), "/a /run /a/log/carbon-cache/carbon-cache-a");
    assert_eq!(of(text, "cache:b", Some("/s")), "/b /run /log/carbon-cache-b");
}
