//! `staunch import`: the native file on stdout, what there is to say on stderr. The exit code is 1 when a line of the original
//! is missing from it.

use std::process::ExitCode;

use config::diagnostic::has_errors;

use super::args::{ImportArgs, ImportKind};
use super::load::{Imported, Loaded};
use super::{MISTAKES, load, relay};
use crate::talk;

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
    talk::say(&said);
    let is_whole = plan.is_some() && !loses_a_line;
    if let Some(plan) = plan {
        talk::data(config::print(&plan).as_bytes())?;
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(MISTAKES) })
}
