//! `staunch run`, `statsd`, `statsd-proxy` and `fanout`: the same daemon, with a native file, an original's, or a
//! command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use config::plan::Plan;

use super::args::{FanoutArgs, HotRestart, RiemannArgs, RiemannVerb, RunArgs, StatsdArgs, StatsdProxyArgs};
use super::load::{self, Loaded, set_ports};
use super::{MISTAKES, riemann_replay, riemann_test};
use crate::admin::HttpOption;
use crate::daemon::reload::change::Watched;
use crate::daemon::{self, Reread, Start};

/// `staunch run`
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let ports = args.ports.clone();
    let files: Vec<PathBuf> = args.files.iter().chain(&args.config).cloned().collect();
    if files.is_empty() {
        let mut plan = config::defaults(&args.data_dir);
        set_ports(&mut plan, &ports);
        if args.print {
            return print(&plan);
        }
        return daemon::run(Start {
            plan,
            reread: None,
            file: None,
            watched: Watched::default(),
            http: HttpOption::http(true),
            hot_restart: args.restart.hot_restart,
            original: None,
        });
    }
    let load = move || Ok(load::native(&files)?.with_ports(&ports));
    if args.print {
        let loaded = load()?;
        client::stdio::say(&loaded.rendered());
        return plan_of(loaded).map_or(Ok(ExitCode::from(MISTAKES)), |plan| print(&plan));
    }
    start(load, HttpOption::http(false), args.restart)
}

fn print(plan: &Plan) -> anyhow::Result<ExitCode> {
    client::stdio::data(config::print_shown(plan).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// `staunch statsd`
pub(crate) fn statsd(args: &StatsdArgs) -> anyhow::Result<ExitCode> {
    let (original, ports) = (args.original.clone(), args.ports.clone());
    let http = HttpOption::http(ports.http.is_none());
    let load = move || Ok(load::statsd(&original)?.with_open_ports().with_ports(&ports));
    start(load, http, args.restart)
}

/// `staunch statsd-proxy`
pub(crate) fn statsd_proxy(args: &StatsdProxyArgs) -> anyhow::Result<ExitCode> {
    let (file, ports) = (args.file.clone(), args.ports.clone());
    let http = HttpOption::http(ports.http.is_none());
    let load = move || Ok(load::statsd_proxy(&file)?.with_open_ports().with_ports(&ports));
    start(load, http, args.restart)
}

/// `staunch riemann`
pub(crate) fn riemann(args: &RiemannArgs) -> anyhow::Result<ExitCode> {
    let file = match args.verb().map_err(|error| anyhow::anyhow!(error))? {
        RiemannVerb::Start(file) => file,
        RiemannVerb::Test(file, namespaces) => {
            return riemann_test::test(&file, namespaces.as_deref(), args.junit.as_ref());
        }
        RiemannVerb::Replay(file) => return riemann_replay::replay(&file, args),
    };
    let ports = args.ports.clone();
    let http = HttpOption::http(ports.http.is_none());
    let load = move || Ok(load::riemann(&file)?.with_ports(&ports));
    start(load, http, args.restart)
}

/// `staunch fanout`
pub(crate) fn fanout(args: &FanoutArgs) -> anyhow::Result<ExitCode> {
    let loaded = load::fanout(args);
    say_of(&loaded, !args.print);
    let text = loaded.text.clone();
    let Some(plan) = plan_of(loaded) else { return Ok(ExitCode::from(MISTAKES)) };
    if args.print {
        client::stdio::data(text.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.buffer.is_some() {
        tracing::info!("--buffer changes nothing: datagrams of every size up to 65535 bytes are taken whole");
    }
    daemon::run(Start {
        plan,
        reread: None,
        file: None,
        watched: Watched::default(),
        http: HttpOption { name: "--health", is_unset: args.health.is_none() },
        hot_restart: args.restart.hot_restart,
        original: None,
    })
}

/// Loads the config, prints diagnostics, and runs; reloads use the same loader.
fn start(
    load: impl Fn() -> anyhow::Result<Loaded> + Send + Sync + 'static,
    http: HttpOption,
    restart: HotRestart,
) -> anyhow::Result<ExitCode> {
    let loaded = load()?;
    say_of(&loaded, true);
    let file = PathBuf::from(&loaded.name);
    let again = file.clone();
    let watched = Watched::of(loaded.watched.clone());
    let reread_watched = watched.clone();
    let said = Mutex::new(loaded.diagnostics.clone());
    let Some(plan) = plan_of(loaded) else { return Ok(ExitCode::from(MISTAKES)) };
    let reread: Reread = Arc::new(move || {
        load::may_be_reread(&again)?;
        let loaded = load().map_err(|error| format!("{error:#}"))?;
        reread_watched.set(loaded.watched.clone());
        if loaded.has_errors() {
            return Err(loaded.rendered().trim_end().to_owned());
        }
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        // Where a program reloads every minute, the same warnings would hide a new one.
        crate::log_stream::notice(&loaded.rendered_new(&said));
        said.clone_from(&loaded.diagnostics);
        plan_of(loaded).ok_or_else(|| "it has no plan".to_owned())
    });
    daemon::run(Start {
        plan,
        reread: Some(reread),
        file: Some(file),
        watched,
        http,
        hot_restart: restart.hot_restart,
        original: None,
    })
}

/// Prints the diagnostics of a config. A daemon that starts does not wait for a reader.
fn say_of(loaded: &Loaded, starts: bool) {
    if starts && !loaded.has_errors() {
        crate::log_stream::notice(&loaded.rendered_at_start());
    } else {
        client::stdio::say(&loaded.rendered());
    }
}

fn plan_of(loaded: Loaded) -> Option<Plan> {
    if loaded.has_errors() { None } else { loaded.plan }
}
