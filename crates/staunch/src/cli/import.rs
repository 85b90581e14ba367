//! `staunch import`: the native file on stdout, what there is to say on stderr. The exit code is 1 when a line of the original
//! is missing from it.

use std::path::Path;
use std::process::ExitCode;

use config::diagnostic::has_errors;

use super::args::{ImportArgs, ImportKind};
use super::kind::FileKind;
use super::load::{Imported, Loaded};
use super::{MISTAKES, load, relay};
use client::stdio;

/// `staunch import`
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let of_loaded = |loaded: Loaded| {
        let said = loaded.rendered();
        let loses_a_line = loaded.diagnostics.iter().any(|diagnostic| diagnostic.code.loses_a_line());
        let plan = loaded.plan.filter(|_| !has_errors(&loaded.diagnostics));
        Imported { plan, said, loses_a_line }
    };
    let file = &args.original.file;
    let Imported { plan, said, loses_a_line } = match args.kind {
        ImportKind::Statsd => of_loaded(load::statsd(&args.original)?),
        ImportKind::StatsdProxy => of_loaded(load::statsd_proxy(file)?),
        ImportKind::Relay => relay::import(file, &args.flags)?,
        ImportKind::Carbon => match &args.instance {
            Some(instance) => load::carbon(file, &format!("{}:{instance}", args.section))?,
            None => load::carbon(file, &args.section)?,
        },
    };
    stdio::say(&said);
    if plan.is_none()
        && let Some(instead) = of_another(args.kind, file)
    {
        stdio::say(&format!("staunch: {instead}\n"));
    }
    let is_whole = plan.is_some() && !loses_a_line;
    if let Some(plan) = plan {
        stdio::data(config::print(&plan).as_bytes())?;
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(MISTAKES) })
}

/// What to do with a file that is no config of `kind`, as far as it shows whose it is.
fn of_another(kind: ImportKind, file: &Path) -> Option<String> {
    // A pipe was read, and has nothing more to say.
    let is = if load::is_special(file) { return None } else { load::kind(file).ok()? };
    let wanted = match kind {
        ImportKind::Statsd | ImportKind::StatsdProxy => FileKind::Statsd,
        ImportKind::Relay => FileKind::Relay,
        ImportKind::Carbon => FileKind::Carbon,
    };
    is.instead_of_native(&file.display().to_string()).filter(|_| is != wanted)
}
