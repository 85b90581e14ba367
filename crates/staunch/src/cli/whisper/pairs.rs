//! `merge` and `fill`: points of a file into another one, or of all files of a folder into those of the same names.

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use graphite::whisper::{Scratch, tools};
use model::TreeFile as _;

use super::args::{Fill, Merge};
use super::files::{Deed, Outcome, Whisper, each, now, refuse_if_written, to_change, to_read};

/// `staunch whisper merge`
pub(super) fn merge(args: &Merge) -> anyhow::Result<ExitCode> {
    let now = now();
    both(&args.source, &args.target, "merged", |source, target| {
        tools::merge(source, target, args.from, args.until, now, &mut Scratch::default())?;
        Ok(())
    })
}

/// `staunch whisper fill`
pub(super) fn fill(args: &Fill) -> anyhow::Result<ExitCode> {
    let now = now();
    both(&args.source, &args.target, "filled", |source, target| {
        tools::fill(source, target, 0, now, now, &mut Scratch::default())?;
        Ok(())
    })
}

fn both(
    source: &Path,
    target: &Path,
    done: &'static str,
    copy: impl Fn(&Whisper, &mut Whisper) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let one = |source: &Path, target: &Path| -> anyhow::Result<()> {
        let (from, mut to) = (to_read(source)?, to_change(target)?);
        let copied = copy(&from, &mut to).and_then(|()| Ok(to.file().sync()?));
        copied.map_err(|error| anyhow::anyhow!("{}: {error:#}", target.display()))
    };
    match (source.is_dir(), target.is_dir()) {
        (true, true) => {
            refuse_if_written(target)?;
            each(source, Deed::Changes(done), |file| {
                let target = target.join(file);
                if !target.exists() {
                    return Ok(Outcome::Left);
                }
                one(&source.join(file), &target).map(|()| Outcome::Done)
            })
        }
        (false, false) => one(source, target).map(|()| ExitCode::SUCCESS),
        _ => bail!("give two files or two folders, not one of each"),
    }
}
