//! The relay as a daemon: from settings and a configuration to a plan that runs, and again at each SIGHUP.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use config::import::relay::addresses::{names, with_addresses};
use config::import::relay::flags::Settings;
use config::import::relay::{Mistake, render_mistakes};
use config::plan::Plan;
use config::relay::Relay;

use super::check::plan_of;
use super::pid_file::PidFile;
use super::{RelayArgs, addresses, files, log, rendered, stderr_is_terminal, version};
use crate::cli::args::Port;
use crate::cli::{MISTAKES, wants_colour};
use crate::daemon::original::Original;
use crate::daemon::{self, Reread, Start};
use crate::talk::ORIGINAL;

/// Runs until SIGTERM or SIGINT.
pub(super) fn run(args: &RelayArgs, settings: Settings, log_level: &str) -> anyhow::Result<ExitCode> {
    let http_optional = args.http.is_none();
    let (file, take_over) = (PathBuf::from(&settings.config), args.restart.take_over);
    let (args, start) = (args.clone(), settings.clone());
    let load = move || load(&args, &settings);
    let (plan, said) = load();
    crate::talk::say(&said);
    let Some(plan) = plan else { return Ok(ExitCode::from(MISTAKES)) };
    let reread: Reread = Arc::new(move || {
        let (plan, said) = load();
        let plan = plan.ok_or_else(|| said.trim_end().to_owned())?;
        crate::talk::say(&said);
        Ok(plan)
    });
    // Before anything else has a thread.
    let background = if start.daemonise { Some(into_background()?) } else { None };
    log::start(&start, log_level)?;
    let _pid_file = start.pid_file.as_deref().map(PidFile::write).transpose()?;
    tracing::info!(target: ORIGINAL, "starting {}, pid={}", version::name(), std::process::id());
    let original = Original {
        name: version::name(),
        banner: start.log.is_none(),
        started: Box::new(move || {
            // Whoever waited for it may be gone.
            let _gone = background.as_ref().map(|mut told| told.write_all(b"+"));
        }),
        reopen_log: log::reopen,
        toggle_debug: log::toggle_debug,
    };
    let (reread, file, original) = (Some(reread), Some(file), Some(original));
    let done = daemon::run(Start { plan, reread, file, http_optional, take_over, original });
    if let Err(error) = &done
        && start.log.is_some()
    {
        tracing::error!("{error:#}");
    }
    done
}

#[cfg(target_os = "linux")]
fn into_background() -> anyhow::Result<std::os::unix::net::UnixStream> {
    crate::sys::into_background().context("cannot go into the background (`-D`)")
}

#[cfg(not(target_os = "linux"))]
fn into_background() -> anyhow::Result<std::fs::File> {
    anyhow::bail!("`-D` works on Linux only: let a supervisor run it in the background")
}

/// The plan, when there is one, and what there is to say about it.
pub(super) fn load(args: &RelayArgs, settings: &Settings) -> (Option<Plan>, String) {
    let reading = files::reading(&settings.config);
    let mut said = rendered(&reading);
    let Some(conf) = &reading.conf else { return (None, said) };
    let http = match args.http {
        None => Some(std::net::SocketAddr::from(([127, 0, 0, 1], 8680))),
        Some(Port::Off) => None,
        Some(Port::At(address)) => Some(address),
    };
    let queue_given = args.flags().queue.is_some();
    let queue_dir = args.queue_dir.as_deref();
    let known = addresses::of(&names(conf));
    let of_name =
        |name: &str| known.get(name).cloned().unwrap_or_else(|| Err("nobody asked for it".to_owned()));
    let (conf, of_names) = with_addresses(conf, &of_name);
    let mut wrong: Vec<Mistake> = of_names.into_iter().map(|wrong| Mistake::ours(0, wrong)).collect();
    let (plan, more) = plan_of(&Relay { conf: &conf, settings, queue_given, queue_dir, http });
    wrong.extend(more);
    if !wrong.is_empty() {
        said.push_str(&render_mistakes(&reading.files, &wrong, wants_colour(stderr_is_terminal())));
    }
    (plan, said)
}
