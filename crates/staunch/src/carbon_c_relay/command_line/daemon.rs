//! The relay as a daemon: from settings and a configuration to a running plan, at the start and at each SIGHUP.
//!
//! Errors and changes of the configuration are logged in the original's format, and also in ours. Not here: the log's
//! format (`log`), the reload itself (`daemon::reload`).

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use config::plan::Plan;
use import::relay::addresses::{names, with_addresses};
use import::relay::flags::Settings;
use import::relay::plan::Relay;
use import::relay::{Form, Mistake, Surroundings, changes, print, render_mistakes, upstream_lines};

use super::args::{HTTP, RelayArgs};
use super::check::plan_of;
use super::diagnostics::{colour, rendered};
use super::{addresses, files, version};
use crate::admin::HttpOption;
use crate::carbon_c_relay::log;
use crate::carbon_c_relay::log_targets::ORIGINAL;
use crate::carbon_c_relay::original::CarbonCRelay;
use crate::carbon_c_relay::test_mode::preamble::{configuration_text, settings_text, starting};
use crate::cli::MISTAKES;
use crate::cli::args::Port;
use crate::daemon::pid_file::PidFile;
use crate::daemon::reload::change::Watched;
use crate::daemon::{self, Reread, Start};
use crate::log_stream;
#[cfg(target_os = "linux")]
use sys::Background;

/// Most lines of a logged configuration change.
const CHANGES_MAX: usize = 1_000;

/// Runs until SIGTERM or SIGINT. `said`: the diagnostics of the flags.
pub(super) fn run(
    args: &RelayArgs,
    settings: Settings,
    said: &str,
    log_level: &str,
) -> anyhow::Result<ExitCode> {
    // Before there are threads, which the log and the resolver start.
    let into_background = || if settings.daemonise { into_background().map(Some) } else { Ok(None) };
    let background = log::start(&settings, log_level).and_then(|()| into_background());
    log_stream::to_stderr(said.as_bytes());
    serve(args, settings, background?)
}

fn serve(args: &RelayArgs, settings: Settings, background: Option<Background>) -> anyhow::Result<ExitCode> {
    let http = HttpOption::http(args.http.is_none());
    let (file, hot_restart) = (PathBuf::from(&settings.config), args.restart.hot_restart);
    let (args, start) = (args.clone(), settings.clone());
    tracing::info!(target: ORIGINAL, "{}", starting());
    log::text(&settings_text(&args.flags(), &settings));
    let load = move || load(&args, &settings);
    let loaded = load();
    log_stream::to_stderr(loaded.said.as_bytes());
    let Some(plan) = loaded.plan else {
        refused(&loaded.original);
        background.iter().for_each(|background| background.exit_parent(MISTAKES));
        return Ok(ExitCode::from(MISTAKES));
    };
    let pid_file = start.pid_file.as_deref().map(PidFile::reserve).transpose()?;
    log::text(&loaded.printed);
    let in_force = Arc::new(InForce::new(loaded.canonical));
    let original = CarbonCRelay {
        name: version::name(),
        banner: start.log.is_none(),
        pid_file,
        started: Box::new(move || {
            let Some(background) = &background else { return };
            // The messages so far are for the terminal.
            log_stream::finish();
            if let Err(error) = background.up() {
                tracing::warn!("cannot detach from the terminal: {error}");
            }
        }),
        reopen_log: log::reopen,
        reloaded: Box::new({
            let in_force = Arc::clone(&in_force);
            move || in_force.take_read()
        }),
        toggle_debug: log::toggle_debug,
    };
    let reread: Reread = Arc::new(move || reread(&start.config, &load, &in_force));
    let has_log = log::has_file();
    let (reread, file, original) = (Some(reread), Some(file), Some(Box::new(original) as Box<_>));
    let watched = Watched::default();
    let done = daemon::run(Start { plan, reread, file, watched, http, hot_restart, original });
    if let Err(error) = &done
        && has_log
    {
        tracing::error!("{error:#}");
    }
    done
}

/// The original's messages about a rejected configuration, in the log. A user at a terminal also sees them, below ours.
fn refused(lines: &str) {
    if log::has_file() {
        log_stream::to_stderr(log::stamped(lines).as_bytes());
    }
    lines.lines().for_each(|line| tracing::error!(target: ORIGINAL, "{line}"));
}

/// Reads the configuration again and logs the differences to the current one.
fn reread(name: &str, load: &dyn Fn() -> Loaded, in_force: &InForce) -> Result<Plan, String> {
    tracing::info!(target: ORIGINAL, "reloading config from '{name}'");
    crate::cli::load::may_be_reread(name.as_ref())?;
    let loaded = load();
    let said = loaded.said.trim_end();
    let Some(plan) = loaded.plan else {
        for line in loaded.original.lines() {
            let end =
                if line.starts_with("failed to read configuration ") { ", aborting reload" } else { "" };
            tracing::error!(target: ORIGINAL, "{line}{end}");
        }
        return Err(said.trim_end().to_owned());
    };
    if !said.is_empty() {
        tracing::warn!("{said}");
    }
    in_force.tell_changes(loaded.canonical);
    Ok(plan)
}

/// The canonical form of the current configuration, and of one that was read and may become current.
#[derive(Debug)]
struct InForce(Mutex<(String, Option<String>)>);

impl InForce {
    fn new(canonical: String) -> InForce {
        InForce(Mutex::new((canonical, None)))
    }

    fn tell_changes(&self, canonical: String) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = changes(&texts.0, &canonical);
        if changes.is_empty() {
            tracing::info!(target: ORIGINAL, "no config changes found");
        } else {
            log::text(&shown(&changes));
        }
        texts.1 = Some(canonical);
    }

    /// The configuration that was read is now current.
    fn take_read(&self) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = texts.1.take() {
            texts.0 = read;
        }
    }
}

/// In the format of `diff -u`. Very long differences are cut, with the number of omitted lines.
fn shown(changes: &str) -> String {
    let mut text = "--- in force\n+++ read anew\n".to_owned();
    let mut lines = changes.lines();
    lines.by_ref().take(CHANGES_MAX).for_each(|line| text.extend([line, "\n"]));
    match lines.count() {
        0 => text,
        more => format!("{text}... and {more} lines more\n"),
    }
}

#[cfg(target_os = "linux")]
fn into_background() -> anyhow::Result<Background> {
    sys::into_background().context("cannot run in the background (`-D`)")
}

#[cfg(not(target_os = "linux"))]
fn into_background() -> anyhow::Result<Background> {
    anyhow::bail!("`-D` works on Linux only: use a service manager instead")
}

/// Not available on this system.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
enum Background {}

#[cfg(not(target_os = "linux"))]
impl Background {
    fn up(&self) -> std::io::Result<()> {
        match *self {}
    }

    fn exit_parent(&self, _code: u8) {
        match *self {}
    }
}

/// A parsed configuration.
pub(super) struct Loaded {
    /// Its plan; `None` after an error.
    pub(super) plan: Option<Plan>,
    /// The diagnostics for people.
    pub(super) said: String,
    /// A line of it is not in the plan.
    pub(super) loses_a_line: bool,
    /// The same in the original's messages, without a plan.
    original: String,
    /// Its canonical form, if it can be parsed.
    canonical: String,
    /// The same in the format for the start.
    printed: String,
}

/// Reads the configuration, and resolves the names of its servers.
pub(super) fn load(args: &RelayArgs, settings: &Settings) -> Loaded {
    let reading = files::reading(&settings.config);
    let colour = settings.log.is_none() && colour();
    let mut said = rendered(&reading, colour);
    let mut original = upstream_lines(&reading.files, &reading.mistakes);
    let loses = |mistakes: &[Mistake]| {
        mistakes.iter().any(|mistake| crate::cli::load::loses_a_line(mistake.diagnostic.code))
    };
    let mut loses_a_line = loses(&reading.mistakes);
    let Some(conf) = &reading.conf else {
        let (canonical, printed) = Default::default();
        return Loaded { plan: None, said, loses_a_line, original, canonical, printed };
    };
    let http = match args.http {
        None => Some(HTTP),
        Some(Port::Off) => None,
        Some(Port::At(address)) => Some(address),
    };
    let queue_given = args.flags().queue.is_some();
    let queue_dir = args.queue_dir.as_deref();
    let known = addresses::of(&names(conf));
    let (conf, of_names) = with_addresses(conf, &|name| addresses::among(&known, name));
    let prefix = conf.statistics.prefix_for(&settings.hostname);
    let surroundings = Surroundings { port: settings.port, prefix: Some(&prefix), form: Form::Original };
    let (canonical, printed) = (print(&conf, &surroundings), configuration_text(&conf, settings));
    let mut wrong: Vec<Mistake> = of_names.into_iter().map(|wrong| Mistake::ours(0, wrong)).collect();
    let (plan, more) = plan_of(&Relay { conf: &conf, settings, queue_given, queue_dir, http });
    wrong.extend(more);
    if !wrong.is_empty() {
        said.push_str(&render_mistakes(&reading.files, &wrong, colour));
        loses_a_line |= loses(&wrong);
    }
    if plan.is_none() {
        // None of the original's messages about a readable file.
        original = format!("failed to read configuration '{}'\n", settings.config);
    }
    Loaded { plan, said, loses_a_line, original, canonical, printed }
}
