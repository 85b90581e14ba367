//! `staunch import`: the native file on stdout, every line that could not be carried over on stderr.

use std::process::ExitCode;

use super::args::{ImportArgs, ImportKind};
use super::{MISTAKES, load};
use crate::talk;

/// `staunch import`
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<ExitCode> {
    let loaded = match args.kind {
        ImportKind::Statsd => load::statsd(&args.original)?,
        ImportKind::StatsdProxy => load::statsd_proxy(&args.original.file)?,
    };
    talk::say(&loaded.rendered());
    if let Some(plan) = loaded.plan.as_ref().filter(|_| !loaded.has_errors()) {
        talk::data(config::print(plan).as_bytes())?;
    }
    // Whatever there is to say is about a line that the native file does not hold as it stood.
    Ok(if loaded.diagnostics.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(MISTAKES) })
}
