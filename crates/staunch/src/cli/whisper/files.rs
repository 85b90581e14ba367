//! Opens whisper files by their paths, and finds those of a folder.

use std::fs::{self, File};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use graphite::whisper::WhisperFile;
use model::{FileTree as _, SECOND_NS, TreeFile as _};
use sys::clock::Clock;
use sys::tree::{RealFile, Tree};

use crate::cli::MISTAKES;
use client::stdio;

/// Locked by the daemon that writes to a tree.
const WRITER_FILE: &str = ".staunch-writer";

/// Most folders in folders.
const DEPTH_MAX: usize = 100;

/// An open file.
pub(super) type Whisper = WhisperFile<RealFile>;

/// Unix seconds.
pub(super) fn now() -> i64 {
    Clock::now().unix_seconds()
}

/// The folder of a file as a tree, and the name of the file in it.
pub(super) fn split(path: &Path) -> anyhow::Result<(&Path, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} is not the name of a file", path.display()))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok((folder.unwrap_or(Path::new(".")), name))
}

fn check_is_file(path: &Path) -> anyhow::Result<()> {
    match fs::metadata(path) {
        Ok(about) if about.is_file() => Ok(()),
        Ok(_) => bail!("{} is not a file", path.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("File '{}' does not exist!", path.display())
        }
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// Opens a file to read it.
pub(super) fn to_read(path: &Path) -> anyhow::Result<Whisper> {
    check_is_file(path)?;
    let (folder, name) = split(path)?;
    let tree = Tree::open_read_only(folder.to_owned())?;
    let opened = tree.open_to_read(name).map_err(Into::into).and_then(WhisperFile::open);
    opened.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
}

/// Opens a file to change it, and locks it against other programs that lock.
pub(super) fn to_change(path: &Path) -> anyhow::Result<Whisper> {
    check_is_file(path)?;
    refuse_if_written(path)?;
    let (folder, name) = split(path)?;
    let tree = Tree::open(folder.to_owned())?;
    let opened = tree.open(name).map_err(Into::into).and_then(WhisperFile::open);
    let opened = opened.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    opened.file().lock().map_err(|error| anyhow::anyhow!("{}: cannot be locked: {error}", path.display()))?;
    Ok(opened)
}

/// An error if a running daemon writes to the tree that the path is in.
pub(super) fn refuse_if_written(path: &Path) -> anyhow::Result<()> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for folder in path.ancestors() {
        let Ok(file) = File::open(folder.join(WRITER_FILE)) else { continue };
        if matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)) {
            bail!(
                "a running Staunch writes to {}: stop it first, or use its options (`online_migration` for other archives)",
                folder.display()
            );
        }
    }
    Ok(())
}

/// The whisper files of a folder, as paths from it, sorted.
pub(super) fn below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((at, depth)) = folders.pop() {
        let entries = fs::read_dir(folder.join(&at));
        let entries = entries.with_context(|| format!("cannot list {}", folder.join(&at).display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list {}", folder.join(&at).display()))?;
            let path = at.join(entry.file_name());
            // Links to folders are not followed: they could lead back.
            let kind = entry.file_type()?;
            if kind.is_dir() && depth < DEPTH_MAX {
                folders.push((path, depth + 1));
            } else if path.extension().is_some_and(|ending| ending == "wsp") && !kind.is_dir() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Does something with each file of a folder: one that fails is named, and the others are done. The last line says how many.
pub(super) fn each(
    folder: &Path,
    deed: Deed,
    mut with: impl FnMut(&Path) -> anyhow::Result<Outcome>,
) -> anyhow::Result<ExitCode> {
    let files = below(folder)?;
    let (mut changed, mut left, mut failed) = (0_u64, 0_u64, 0_u64);
    let mut progress = Progress::new(files.len());
    for (at, file) in files.iter().enumerate() {
        progress.at(at);
        match with(file) {
            Ok(Outcome::Done) => changed += 1,
            Ok(Outcome::Left) => left += 1,
            Err(error) => {
                failed += 1;
                progress.clear();
                stdio::say(&format!("[ERROR] {error:#}\n"));
            }
        }
    }
    progress.clear();
    let counts = match deed {
        Deed::Shows => format!("{changed} files shown"),
        Deed::Changes(done) => format!("{changed} files {done}, {left} left as they were"),
    };
    stdio::data(format!("{counts}, {failed} failed\n").as_bytes())?;
    Ok(if failed > 0 { ExitCode::from(MISTAKES) } else { ExitCode::SUCCESS })
}

/// What a command does to the files of a folder.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deed {
    /// It shows them.
    Shows,
    /// It changes them, in this word, or leaves them as they are.
    Changes(&'static str),
}

/// What was done to a file of a folder.
pub(super) enum Outcome {
    /// It was changed.
    Done,
    /// It is as it was: nothing had to be changed, or the other folder does not have it.
    Left,
}

/// A line on stderr for people, after two seconds.
struct Progress {
    files: usize,
    /// When the next line is due, monotonic.
    due_ns: u64,
    shown: bool,
    is_terminal: bool,
}

impl Progress {
    fn new(files: usize) -> Progress {
        let is_terminal = std::io::stderr().is_terminal();
        Progress { files, due_ns: Clock::mono_ns() + 2 * SECOND_NS, shown: false, is_terminal }
    }

    fn at(&mut self, file: usize) {
        let now_ns = Clock::mono_ns();
        if self.is_terminal && now_ns >= self.due_ns {
            stdio::say(&format!("\r{file} of {} files", self.files));
            (self.due_ns, self.shown) = (now_ns + SECOND_NS / 5, true);
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            stdio::say("\r\x1b[K");
        }
    }
}
