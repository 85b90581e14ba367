//! `resize`: the points of a file in new archives. The new file is written beside the old one, synced, and then takes its place.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use graphite::whisper::format::is_factor;
use graphite::whisper::tools::{Migration, resize as resize_file};
use graphite::whisper::{Header, Layout, Scratch, Space, create_in};
use model::TreeFile as _;
use sys::tree::Tree;

use super::args::Resize;
use super::change::{layout, method};
use super::files::{Deed, Outcome, each, now, refuse_if_written, split, to_read};
use client::stdio;

/// `staunch whisper resize`
pub(super) fn resize(args: &Resize) -> anyhow::Result<ExitCode> {
    let layout = layout(&args.archives)?;
    if args.x_files_factor.is_some_and(|factor| !is_factor(factor)) {
        bail!("Invalid xFilesFactor, not between 0 and 1");
    }
    args.method.as_deref().map(method).transpose()?;
    if !args.path.is_dir() {
        return match one(args, &layout, &args.path)? {
            Some(said) => {
                stdio::data(said.as_bytes())?;
                Ok(ExitCode::SUCCESS)
            }
            None => {
                stdio::data(format!("{} has these archives already\n", args.path.display()).as_bytes())?;
                Ok(ExitCode::SUCCESS)
            }
        };
    }
    if args.newfile.is_some() {
        bail!("--newfile is for one file, and {} is a folder", args.path.display());
    }
    refuse_if_written(&args.path)?;
    each(&args.path, Deed::Changes("resized"), |file| {
        let resized = one(args, &layout, &args.path.join(file))?;
        Ok(if resized.is_some() { Outcome::Done } else { Outcome::Left })
    })
}

/// What was done, for people; none when the file is as it should be.
fn one(args: &Resize, layout: &Layout, path: &Path) -> anyhow::Result<Option<String>> {
    let old = to_read(path)?;
    refuse_if_written(path)?;
    let had = old.header();
    let method = args.method.as_deref().map(method).transpose()?.unwrap_or(had.method);
    let factor = args.x_files_factor.unwrap_or(had.x_files_factor);
    let header = Arc::new(Header::new(layout, method, factor)?);
    if args.newfile.is_none() && *header == **had {
        return Ok(None);
    }
    let new_path = args.newfile.clone().unwrap_or_else(|| beside(path, "tmp"));
    if args.newfile.is_some() && new_path.exists() {
        bail!("{} exists already", new_path.display());
    }
    // A resize that was interrupted leaves one.
    match fs::remove_file(&new_path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| new_path.display().to_string()),
    }
    let (folder, name) = split(&new_path)?;
    let tree = Tree::open(folder.to_owned())?;
    let migration = if args.aggregate { Migration::Aggregate } else { Migration::Copy };
    let written = || -> anyhow::Result<bool> {
        let mut new = create_in(&tree, name, &header, Space::Zeros)?;
        resize_file(&old, &mut new, migration, now(), &mut Scratch::default())?;
        new.file().sync()?;
        let about = fs::metadata(path)?;
        fs::set_permissions(&new_path, about.permissions())?;
        let replaced = args.newfile.is_none() && swap(path, &new_path, args.nobackup)?;
        Ok(replaced)
    };
    let replaced = written().map_err(|error| {
        // The first error is the one to report.
        let _left = fs::remove_file(&new_path);
        error.context(path.display().to_string())
    })?;
    if replaced {
        stdio::say(&format!("{}: an earlier backup was replaced\n", beside(path, "bak").display()));
    }
    let shown = |header: &Header| {
        let archives = header.archives().iter().map(|one| format!("{}:{}", one.step, one.points));
        archives.collect::<Vec<_>>().join(",")
    };
    let target = if args.newfile.is_some() { new_path.display() } else { path.display() };
    Ok(Some(format!("{target}: {} -> {} ({} bytes)\n", shown(had), shown(&header), header.file_bytes())))
}

/// The new file takes the place of the old one, which stays as a backup if it is wanted. True when it replaced an earlier backup, as
/// with the script.
fn swap(path: &Path, new: &Path, without_backup: bool) -> anyhow::Result<bool> {
    let mut replaced = false;
    if !without_backup {
        let backup = beside(path, "bak");
        match fs::remove_file(&backup) {
            Ok(()) => replaced = true,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| backup.display().to_string()),
        }
        // Another name of the old file: at each moment the path is a complete file.
        fs::hard_link(path, &backup).or_else(|_| fs::copy(path, &backup).map(drop))?;
    }
    fs::rename(new, path)?;
    let (folder, _) = split(path)?;
    fs::File::open(folder)?.sync_all()?;
    Ok(replaced)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}
