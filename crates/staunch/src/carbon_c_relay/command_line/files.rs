//! Reads configuration files from disk, and expands file patterns.
//!
//! Paths are relative to the working directory, as in the original. The reader of `import::relay::Files` limits sizes
//! and depth; the number of names from a pattern is limited here.

use std::io;

use crate::cli::load::{STDIN, is_special, read_stdin};
use import::relay::{FILES_MAX, Files, Reading, TEXT_BYTES_MAX, read};

/// Reads the configuration and all included files.
pub(crate) fn reading(name: &str) -> Reading {
    let bytes = |path: &str| if path == name { bytes(path) } else { included(path) };
    read(name, &Files { read: &bytes, matching: &matching })
}

/// The bytes of an included file, which may be a pipe from the shell.
fn included(path: &str) -> Result<Vec<u8>, String> {
    if is_special(path.as_ref()) {
        return Err("it is a pipe or a device, and only files are included".into());
    }
    bytes(path)
}

/// The bytes of a file, or an error. A file too large for any configuration is not read to its end.
fn bytes(path: &str) -> Result<Vec<u8>, String> {
    use io::Read;
    if path == STDIN {
        return read_stdin().map_err(|error| words(&error));
    }
    let file = std::fs::File::open(path).map_err(|error| words(&error))?;
    if file.metadata().is_ok_and(|about| about.is_dir()) {
        return Err("Is a directory".into());
    }
    let mut bytes = Vec::new();
    let limit = TEXT_BYTES_MAX as u64 + 1;
    file.take(limit).read_to_end(&mut bytes).map_err(|error| words(&error))?;
    Ok(bytes)
}

/// Names that match a pattern, in the order of the shell: without hidden files, unless the pattern has the dot.
fn matching(pattern: &str) -> Vec<String> {
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    // In the shell, `**` means the same as `*`.
    let mut plain = String::with_capacity(pattern.len());
    for c in pattern.chars() {
        if c != '*' || !plain.ends_with('*') {
            plain.push(c);
        }
    }
    let Ok(paths) = glob::glob_with(&plain, options) else { return Vec::new() };
    let names = paths.filter_map(|path| path.ok()?.into_os_string().into_string().ok());
    // One more than the maximum, so that it is reported.
    let mut names: Vec<String> = names.take(FILES_MAX + 1).collect();
    names.sort();
    names
}

/// The system's message without its number.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(words, _)| words.to_owned())
}
