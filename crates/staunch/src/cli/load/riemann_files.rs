//! The files that a Riemann config loads, from the folder of its main file.
//!
//! A config reads what it loads (`include`, `require`, `slurp`), environment variables and the name of the machine; nothing else, and
//! only while it is evaluated. Not here: what it means (`config::streams`, `import::riemann`).
//! Limits: a folder has at most [`FILES_MAX`] files and [`FOLDERS_DEEP_MAX`] folders within each other.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use ::streams::riemann::files::Reader;
use config::streams::{self, Evaluated};

use sys::clock::Clock;
use sys::random_seed;

/// Files of a folder that is included, at most.
const FILES_MAX: usize = 1_000;
/// Folders within each other, at most: links may lead in a circle.
const FOLDERS_DEEP_MAX: usize = 16;

/// Reads the text of a file, or says why not.
pub(super) type ReadText = fn(&Path) -> Result<String, String>;

/// Evaluates the config of a file. `read` reads a file, `hostname` is the name of the machine unless the environment has another one.
pub(super) fn evaluate(file: &Path, read: ReadText, hostname: String) -> Evaluated {
    let (main, folder) = main_of(file);
    streams::evaluate(&main, Box::new(Folder { folder, read, hostname }), now_us(), random_seed())
}

/// The clock at which a config is evaluated, in microseconds since 1970.
pub(super) fn now_us() -> i64 {
    i64::try_from(Clock::now().wall_ns / 1_000).unwrap_or(i64::MAX)
}

/// Evaluates the config of a file for its tests.
pub(super) fn evaluate_tests(file: &Path, read: ReadText, hostname: String) -> Evaluated {
    let (main, folder) = main_of(file);
    streams::evaluate_tests(&main, Box::new(Folder { folder, read, hostname }))
}

/// The name of a file in its folder, and the folder.
fn main_of(file: &Path) -> (String, PathBuf) {
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    (file.file_name().unwrap_or_default().to_string_lossy().into_owned(), folder)
}

/// The address of a host name; `localhost` without a search.
pub(super) fn address_of(host: &str) -> Result<IpAddr, String> {
    if let Ok(ip) = host.parse() {
        return Ok(ip);
    }
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let mut found = (host, 0).to_socket_addrs().map_err(|error| format!("`{host}`: {error}"))?;
    found.next().map(|address| address.ip()).ok_or_else(|| format!("`{host}` has none"))
}

/// The folder of a config.
struct Folder {
    folder: PathBuf,
    read: ReadText,
    hostname: String,
}

impl Reader for Folder {
    fn read_file(&mut self, path: &str) -> Result<String, String> {
        (self.read)(&self.folder.join(path))
    }

    fn files_below(&mut self, path: &str) -> Result<Option<Vec<String>>, String> {
        let root = self.folder.join(path);
        if !root.is_dir() {
            return Ok(None);
        }
        let mut files = Vec::new();
        below(&root, path.trim_end_matches('/'), FOLDERS_DEEP_MAX, &mut files)?;
        files.sort();
        Ok(Some(files))
    }

    fn environment(&mut self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn host_name(&mut self) -> String {
        match std::env::var("HOSTNAME") {
            Ok(name) if !name.is_empty() => name,
            _ => self.hostname.clone(),
        }
    }
}

/// Adds the *.clj and *.config files below a folder, whose name in the config is `name`.
fn below(folder: &Path, name: &str, deep: usize, files: &mut Vec<String>) -> Result<(), String> {
    let deep =
        deep.checked_sub(1).ok_or_else(|| format!("{name}: more than {FOLDERS_DEEP_MAX} folders deep"))?;
    for entry in std::fs::read_dir(folder).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let Some(own) = path.file_name().and_then(|own| own.to_str()) else { continue };
        let full = format!("{name}/{own}");
        if path.is_dir() {
            below(&path, &full, deep, files)?;
        } else if own.ends_with(".clj") || own.ends_with(".config") {
            files.push(full);
        }
        if files.len() > FILES_MAX {
            return Err(format!("{name}: more than {FILES_MAX} files"));
        }
    }
    Ok(())
}
