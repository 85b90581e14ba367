//! `start`: carbon.conf and its rule files as a running daemon.
//!
//! Rule files are read again when they change, as carbon does, and all files at SIGHUP. Rules of the store are read again by the store.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Context;
use client::stdio;
use config::plan::Plan;

use super::args::CarbonArgs;
use super::places::Places;
use super::{control, log};
use crate::admin::HttpOption;
use crate::cli::MISTAKES;
use crate::cli::args::Port;
use crate::cli::load::{self, Imported, may_be_reread};
use crate::daemon::original::Original;
use crate::daemon::pid_file::PidFile;
use crate::daemon::reload::change::{Watched, WatchedFile};
use crate::daemon::shared::Shared;
use crate::daemon::{self, Reread, Start};
use crate::log_stream;
#[cfg(target_os = "linux")]
use sys::Background;

/// Where HTTP listens without `--http`.
const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8680);

/// Runs until SIGTERM or SIGINT, in the background unless the options say otherwise.
pub(super) fn start(args: &CarbonArgs, places: Places, log_level: &str) -> anyhow::Result<ExitCode> {
    if let Some(code) = control::before_start(&places, args.restart.hot_restart)? {
        return Ok(code);
    }
    for option in args.ignored() {
        stdio::say(&format!("warning: {option} changes nothing here\n"));
    }
    sys::set_umask(args.umask);
    let stays = args.nodaemon || args.debug;
    // Before there are threads, which the log starts.
    let background = if stays { None } else { Some(into_background()?) };
    let to_stderr = args.logfile.as_deref() == Some(Path::new("-"));
    let log_file = (!stays || args.logfile.is_some()).then_some(&*places.log_file).filter(|_| !to_stderr);
    let level = if args.debug && log_level == "info" { "debug" } else { log_level };
    let done = log::start(log_file, level).and_then(|()| serve(args, &places, background.clone()));
    if !matches!(&done, Ok(code) if *code == ExitCode::SUCCESS) {
        // Unless it has gone already, because the daemon was up.
        background.iter().for_each(|background| background.exit_parent(MISTAKES));
    }
    done
}

fn serve(args: &CarbonArgs, places: &Places, background: Option<Rc<Background>>) -> anyhow::Result<ExitCode> {
    let loader = Loader { places: places.clone(), http: args.http };
    let Loaded { plan, said, watched } = loader.load()?;
    log_stream::to_stderr(said.as_bytes());
    let Some(plan) = plan else { return Ok(ExitCode::from(MISTAKES)) };
    let watched = Watched::of(watched);
    let pid_file = PidFile::reserve(&places.pid_file)?;
    let reread_watched = watched.clone();
    let reread: Reread = Arc::new(move || {
        may_be_reread(&loader.places.config)?;
        let loaded = loader.load().map_err(|error| format!("{error:#}"))?;
        reread_watched.set(loaded.watched);
        let plan = loaded.plan.ok_or_else(|| loaded.said.trim_end().to_owned())?;
        log_stream::notice(&loaded.said);
        Ok(plan)
    });
    let has_log = background.is_some() || args.logfile.is_some();
    let done = daemon::run(Start {
        plan,
        reread: Some(reread),
        file: Some(places.config.clone()),
        watched,
        http: HttpOption::http(args.http.is_none()),
        hot_restart: args.restart.hot_restart,
        original: Some(Box::new(Carbon { pid_file, background })),
    });
    if let Err(error) = &done
        && has_log
    {
        tracing::error!("{error:#}");
    }
    done
}

/// The daemon's behaviour in this mode.
struct Carbon {
    pid_file: PidFile,
    background: Option<Rc<Background>>,
}

impl Original for Carbon {
    fn started(&mut self, _shared: &Shared) {
        if let Err(error) = self.pid_file.write() {
            tracing::error!("{error:#}");
        }
        let Some(background) = &self.background else { return };
        // The messages so far are for the terminal.
        log_stream::finish();
        if let Err(error) = background.up() {
            tracing::warn!("cannot detach from the terminal: {error}");
        }
    }

    fn reload_asked(&self) {
        log::reopen();
    }

    fn succeeded(self: Box<Self>) {
        self.pid_file.leave();
    }
}

/// Reads carbon.conf and the rule files, at the start and at each reload.
struct Loader {
    places: Places,
    http: Option<Port>,
}

/// What they say.
struct Loaded {
    /// None after a mistake.
    plan: Option<Plan>,
    /// Mistakes and warnings, for people.
    said: String,
    /// The rule files. carbon.conf is read at the start and at SIGHUP only, as it is by carbon.
    watched: Vec<WatchedFile>,
}

impl Loader {
    fn load(&self) -> anyhow::Result<Loaded> {
        let Places { config, invocation, .. } = &self.places;
        let folder = config.parent().filter(|folder| !folder.as_os_str().is_empty());
        let watched = RefCell::new(vec![WatchedFile::now(folder.unwrap_or(Path::new(".")).to_owned())]);
        let reads = |file: &Path| watched.borrow_mut().push(WatchedFile::now(file.to_owned()));
        let Imported { plan, said, .. } = load::carbon(config, invocation, &reads)?;
        let plan = plan.map(|plan| Plan {
            data_dir: self.places.data_dir.clone(),
            reload_on_change: true,
            http: match self.http {
                None => Some(HTTP),
                Some(Port::Off) => None,
                Some(Port::At(address)) => Some(address),
            },
            ..plan
        });
        Ok(Loaded { plan, said, watched: watched.into_inner() })
    }
}

#[cfg(target_os = "linux")]
fn into_background() -> anyhow::Result<Rc<Background>> {
    sys::into_background().map(Rc::new).context("cannot run in the background: try --nodaemon")
}

#[cfg(not(target_os = "linux"))]
fn into_background() -> anyhow::Result<Rc<Background>> {
    anyhow::bail!("only on Linux it runs in the background: use --nodaemon and a service manager")
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
