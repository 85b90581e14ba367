//! `staunch status`: one screen of a running daemon, over its HTTP API and nothing else.
//!
//! Path of a figure: `/api/v1/accounts` twice, a second apart, and `/ready` -> [`report::Report::of`] -> JSON, or [`screen::text`].
//! Exit codes: 0 ready and no warnings, 1 not ready or a warning, 2 no answer.

mod report;
mod screen;

use std::process::ExitCode;

use anyhow::Context;

use self::report::Report;
use crate::api_client::Server;
use crate::args::StatusArgs;
use crate::exit_code::MISTAKES;
use crate::top::api_client::{look, ready};
use crate::top::sample::Tracker;
use crate::top::{LOOK_EVERY, no_daemon};
use crate::{ReadPlan, stdio};
use sys::clock::Clock;

/// `staunch status`
///
/// # Errors
/// When the config cannot be used, no daemon answers, or stdout cannot be written to.
pub fn status(args: StatusArgs, read_plan: ReadPlan<'_>) -> anyhow::Result<ExitCode> {
    let hint = args.daemon.hint("status");
    let server = args.daemon.server(read_plan)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for HTTP")?;
    let report = runtime.block_on(ask(&server, args.no_wait));
    let report = report.map_err(|why| no_daemon(&server, &why, &hint))?;
    let text = if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { screen::text(&report) };
    stdio::data(text.as_bytes())?;
    Ok(if report.is_good() { ExitCode::SUCCESS } else { ExitCode::from(MISTAKES) })
}

/// Two looks, because one has no rates; one with `no_wait`.
async fn ask(server: &Server, no_wait: bool) -> Result<Report, String> {
    let mut tracker = Tracker::new(&server.at);
    let mut document = look(server).await?;
    let mut sample = tracker.take(Ok(document.clone()), Clock::now());
    if !no_wait {
        tokio::time::sleep(LOOK_EVERY).await;
        document = look(server).await?;
        sample = tracker.take(Ok(document.clone()), Clock::now());
    }
    Ok(Report::of(&document, &sample, ready(server).await?))
}
