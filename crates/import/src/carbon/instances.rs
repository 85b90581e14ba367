//! The daemons of a carbon.conf: which sections are daemons, which one an import means, and which of them store points in the same
//! files.
//!
//! Not here: the settings of a daemon (`conf`), its folders for pid file and log (`directories`).
//! Invariant: any text has daemons or none. Mistakes in it are found by `conf`.

use super::ini::{self, Section};
use crate::report::{Reports, all_of, did_you_mean};
use config::diagnostic::{Code, Diagnostic};

/// Section of carbon-cache.py.
pub(super) const CACHE: &str = "cache";

/// Section of carbon-aggregator-cache.py, an aggregator with a store instead of destinations.
pub(super) const AGGREGATOR_CACHE: &str = "aggregator-cache";

/// Section of carbon-relay.py.
const RELAY: &str = "relay";

/// Sections of carbon's programs.
const PROGRAMS: [&str; 4] = [CACHE, RELAY, "aggregator", AGGREGATOR_CACHE];

/// STORAGE_DIR without the key: that of the root where carbon is installed.
pub(super) const STORAGE_DIR: &str = "/opt/graphite/storage";

/// Default instance name.
pub(super) const INSTANCE: &str = "a";

/// Program and instance of a section's name.
pub(super) fn program_and_instance(section: &str) -> (&str, &str) {
    section.split_once(':').unwrap_or((section, INSTANCE))
}

/// The section of an instance, and that of its program, which has the keys that are missing in the first one.
pub(super) fn layers<'a, 'b>(sections: &'a [Section<'b>], wanted: &str) -> Vec<&'a Section<'b>> {
    let (program, instance) = program_and_instance(wanted);
    let own = format!("{program}:{instance}");
    let find = |name: &str| sections.iter().find(|section| section.name == name);
    find(&own).into_iter().chain(find(program)).collect()
}

/// Whether a section is one of a daemon of carbon.
fn is_daemon(section: &str) -> bool {
    PROGRAMS.contains(&program_and_instance(section).0)
}

/// The sections of daemons in the text of a carbon.conf, such as `cache` and `relay:b`, in the order of the file.
pub fn daemon_sections(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for section in ini::sections(text, &mut Vec::new()) {
        if is_daemon(section.name) && !names.iter().any(|name| name == section.name) {
            names.push(section.name.to_owned());
        }
    }
    names
}

/// The section that an import means when it names none: that of the only daemon in the file, `relay` where there is no daemon.
///
/// # Errors
/// The sections to choose from, if there are several daemons.
pub fn only_section(text: &str, instance: Option<&str>) -> Result<String, Vec<String>> {
    let names = daemon_sections(text);
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    let mut wanted: Vec<String> = Vec::new();
    for name in &names {
        let (program, _) = program_and_instance(name);
        let one = match instance {
            Some(instance) => format!("{program}:{instance}"),
            // An instance alone is a daemon; otherwise it is found by the section of its program.
            None if has(program) => program.to_owned(),
            None => name.clone(),
        };
        if !wanted.contains(&one) {
            wanted.push(one);
        }
    }
    // Of several programs, the one that has this instance.
    if instance.is_some() && wanted.iter().any(|one| has(one)) {
        wanted.retain(|one| has(one));
    }
    match wanted.len() {
        0 => Ok(RELAY.to_owned()),
        1 => Ok(wanted.remove(0)),
        _ if instance.is_none() => Err(names),
        _ => Err(wanted),
    }
}

/// A sentence about the daemons of the file that an import of `wanted` leaves out; none if there is no other one.
pub fn other_daemons(text: &str, wanted: &str) -> Option<String> {
    let sections = ini::sections(text, &mut Vec::new());
    let layers = layers(&sections, wanted);
    let name = layers.first()?.name;
    let mut others: Vec<String> = daemon_sections(text);
    others.retain(|other| layers.iter().all(|layer| layer.name != other));
    let others: Vec<String> = others.iter().map(|other| format!("[{other}]")).collect();
    let are = match others.len() {
        0 => return None,
        1 => "is another daemon",
        _ => "are other daemons",
    };
    let others = all_of(&others);
    Some(format!("only [{name}] was imported; {others} {are}, which `--section NAME` imports"))
}

/// Warns about sections that no daemon of carbon reads.
pub(super) fn warn_unknown(sections: &[Section<'_>], wrong: &mut Vec<Diagnostic>) {
    for section in sections.iter().filter(|section| !is_daemon(section.name)) {
        let message = format!("[{}] is not the section of a daemon", section.name);
        let report = wrong.warning(Code::ImportNoEffect, section.place, message).label("ignored by carbon");
        let (program, _) = program_and_instance(section.name);
        report.hint(did_you_mean(program, PROGRAMS.into_iter(), "sections of daemons"));
    }
}

/// The section that a daemon is known by: `[cache]` for instance `a`, if there is no `[cache:a]`.
pub(super) fn shown(layers: &[&Section<'_>], wanted: &str) -> String {
    let first = layers.first().map_or(wanted, |first| first.name);
    let is_own = program_and_instance(first) == program_and_instance(wanted);
    format!("[{}]", if is_own { first } else { wanted })
}

/// Warns if the daemon of `wanted`, which has a store, writes to the files of other daemons without locks: of several Staunch, only one
/// writes to a folder then. `storage_dir` is used where the file has no STORAGE_DIR.
pub(super) fn warn_shared_files(
    sections: &[Section<'_>],
    wanted: &str,
    storage_dir: &str,
    wrong: &mut Vec<Diagnostic>,
) {
    let own = layers(sections, wanted);
    let Some(place) = own.first().map(|first| first.place) else { return };
    let (folder, is_locked) = store_of(&own, storage_dir);
    let mut seen = vec![program_and_instance(wanted)];
    let mut others = Vec::new();
    for section in sections {
        let daemon = program_and_instance(section.name);
        if !matches!(daemon.0, CACHE | AGGREGATOR_CACHE) || seen.contains(&daemon) {
            continue;
        }
        seen.push(daemon);
        let (other, other_is_locked) = store_of(&layers(sections, section.name), storage_dir);
        if other == folder && !(is_locked && other_is_locked) {
            others.push(format!("[{}]", section.name));
        }
    }
    if others.is_empty() {
        return;
    }
    others.insert(0, shown(&own, wanted));
    let message = format!(
        "{} write to the same files, in {folder}, without locks: only the first one that is started writes, and the points of \
         another one wait in its queue",
        all_of(&others)
    );
    let report = wrong.warning(Code::SharedFiles, place, message);
    report.hint(
        "set `WHISPER_LOCK_WRITES = True` for all of them, or run one instance, which uses several cores",
    );
}

/// LOCAL_DATA_DIR of a daemon, and whether it locks files.
fn store_of(layers: &[&Section<'_>], storage_dir: &str) -> (String, bool) {
    let folder = storage_folder(layers, "LOCAL_DATA_DIR", storage_dir, "whisper");
    let lock = layers.iter().find(|section| section.get("whisper_lock_writes").is_some());
    let is_locked = lock.is_some_and(|section| section.flag("whisper_lock_writes", &mut Vec::new()));
    (folder.trim_end_matches('/').to_owned(), is_locked)
}

/// A folder below STORAGE_DIR, unless a key of its own names it.
pub(super) fn storage_folder(layers: &[&Section<'_>], key: &str, storage_dir: &str, below: &str) -> String {
    let given = |key: &str| {
        let key = key.to_ascii_lowercase();
        let found = layers.iter().find_map(|section| section.get(&key));
        found.map(|entry| entry.value.clone()).filter(|value| !value.is_empty())
    };
    let folder = || {
        let storage = given("STORAGE_DIR").unwrap_or_else(|| storage_dir.to_owned());
        format!("{}/{below}", storage.trim_end_matches('/'))
    };
    given(key).unwrap_or_else(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_of_the_only_daemon_is_taken_and_of_several_none() {
        let several = |names: &[&str]| Err(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        for (text, instance, want) in [
            ("[cache]\nX = 1\n", None, Ok("cache".to_owned())),
            ("[cache]\n[cache:b]\n", None, Ok("cache".to_owned())),
            ("[cache:b]\n", None, Ok("cache:b".to_owned())),
            ("[aggregator]\n[other]\n", None, Ok("aggregator".to_owned())),
            ("", None, Ok("relay".to_owned())),
            ("[cache:a]\n[cache:b]\n", None, several(&["cache:a", "cache:b"])),
            ("[cache]\n[relay]\n[relay:b]\n", None, several(&["cache", "relay", "relay:b"])),
            ("[cache]\n[relay]\n[relay:b]\n", Some("b"), Ok("relay:b".to_owned())),
            ("[cache]\n[relay]\n", Some("b"), several(&["cache:b", "relay:b"])),
            ("[cache]\n", Some("b"), Ok("cache:b".to_owned())),
        ] {
            assert_eq!(only_section(text, instance), want, "{text} {instance:?}");
        }
    }

    #[test]
    fn daemons_that_are_not_imported_are_named() {
        for (text, wanted, want) in [
            ("[cache]\n", "cache", None),
            ("[cache]\n[other]\n", "cache", None),
            ("[cache]\n[cache:b]\n", "cache:b", None),
            ("[cache]\n[cache:b]\n", "cache", Some("only [cache] was imported; [cache:b] is another daemon")),
            (
                "[cache]\n[relay]\n[cache:b]\n[relay:b]\n",
                "relay:b",
                Some("only [relay:b] was imported; [cache] and [cache:b] are other daemons"),
            ),
            ("[relay]\n", "cache", None),
        ] {
            let said = other_daemons(text, wanted);
            let said = said.as_deref().map(|said| said.split(", which").next().unwrap_or(said));
            assert_eq!(said, want, "{text} {wanted}");
        }
    }

    #[test]
    fn daemons_that_write_to_the_same_files_without_locks_are_a_warning() {
        let locked = "[cache]\nWHISPER_LOCK_WRITES = True\n[cache:b]\n";
        let one_locked = "[cache]\n[cache:b]\nWHISPER_LOCK_WRITES = True\n";
        for (text, wanted, want) in [
            ("[cache]\n", "cache:a", None),
            ("[cache]\n[cache:a]\n", "cache", None),
            ("[cache]\n[relay]\n[relay:b]\n", "cache", None),
            ("[cache]\n[cache:b]\n", "cache", Some("[cache] and [cache:b]")),
            ("[cache]\n[cache:b]\n", "cache:a", Some("[cache] and [cache:b]")),
            ("[cache]\n[cache:b]\n", "cache:b", Some("[cache:b] and [cache]")),
            ("[cache]\n", "cache:zz", Some("[cache:zz] and [cache]")),
            ("[cache:a]\n[cache:b]\n[cache:c]\n", "cache:b", Some("[cache:b], [cache:a] and [cache:c]")),
            ("[cache]\n[aggregator-cache]\n", "aggregator-cache", Some("[aggregator-cache] and [cache]")),
            ("[cache]\n[cache:b]\nLOCAL_DATA_DIR = /srv/b\n", "cache:b", None),
            (
                "[cache]\nSTORAGE_DIR = /s/\n[cache:b]\nLOCAL_DATA_DIR = /s/whisper/\n",
                "cache:b",
                Some("[cache:b] and [cache]"),
            ),
            (locked, "cache:b", None),
            (one_locked, "cache:b", Some("[cache:b] and [cache]")),
            (one_locked, "cache", Some("[cache] and [cache:b]")),
        ] {
            let mut wrong = Vec::new();
            warn_shared_files(&ini::sections(text, &mut Vec::new()), wanted, "/storage", &mut wrong);
            let said = wrong.first().map(|one| one.message.split(" write to").next().unwrap_or_default());
            assert_eq!(said, want, "{text} {wanted}");
            let hinted = wrong
                .iter()
                .all(|one| one.hint.as_ref().is_some_and(|hint| hint.contains("WHISPER_LOCK_WRITES = True")));
            assert!(hinted && wrong.len() <= 1, "{wrong:?}");
        }
    }
}
