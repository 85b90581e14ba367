//! `staunch service FILE`: the daemon as a Windows service. Not for a shell: the service manager starts it.

use std::process::ExitCode;

use anyhow::Context;

use super::args::RunArgs;
use super::run;
use crate::daemon::signals;
use sys::service;

/// `staunch service`
pub(crate) fn service(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let args = args.clone();
    let main = move || match run::run(&args) {
        Ok(code) => code == ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            false
        }
    };
    service::run(main, signals::stop_service).context(
        "only the service manager can start this: `sc create` it, and in a shell use `staunch run`",
    )?;
    Ok(ExitCode::SUCCESS)
}
