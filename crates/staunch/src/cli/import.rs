//! `staunch import`: the native file on stdout, every line that could not be carried over on stderr.

use std::process::ExitCode;

use config::diagnostic::has_errors;

use super::args::{ImportArgs, ImportKind};
use super::load::Loaded;
use super::{MISTAKES, load, relay};
use crate::talk;

/// `staunch import`
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let of_loaded = |loaded: Loaded| {
        let said = loaded.rendered();
        (loaded.plan.filter(|_| !has_errors(&loaded.diagnostics)), said)
    };
    let file = &args.original.file;
    let (plan, said) = match args.kind {
        ImportKind::Statsd => of_loaded(load::statsd(&args.original)?),
        ImportKind::StatsdProxy => of_loaded(load::statsd_proxy(file)?),
        ImportKind::Relay => relay::import(file, &args.flags)?,
        ImportKind::Carbon => match &args.instance {
            Some(instance) => load::carbon(file, &format!("{}:{instance}", args.section))?,
            None => load::carbon(file, &args.section)?,
        },
    };
    talk::say(&said);
    if let Some(plan) = plan {
        talk::data(config::print(&plan).as_bytes())?;
    }
    // Whatever there is to say is about a line that the native file does not hold as it stood.
    Ok(if said.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(MISTAKES) })
}
