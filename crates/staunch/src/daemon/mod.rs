//! The daemon: from a checked plan to threads and tasks, and back.
//!
//! [`run`] opens every listener, starts the shard's thread and the tasks around it (`start`), waits for a signal, and
//! stops in the order that loses nothing (`stop`): sources first, then the last flush, then the outputs' queues. Not
//! here: processing of records (`pipeline`), sockets (`sources`, `outputs`).
//! Invariant: a plan is complete and its listeners are open before the previous plan is changed.

pub mod checkpoint;
pub mod hot_restart;
pub mod listeners;
pub mod outlet;
pub mod queues;
pub mod readers;
pub mod reload;
pub mod shared;
pub mod signals;
pub mod start;
mod stop;
pub mod supervisor;
pub mod watch;
pub mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Context;
use config::plan::{Listen, Plan};
use tokio::sync::watch as watch_channel;
use tokio::task::JoinSet;

use crate::admin::ServedPorts;
use crate::carbon_c_relay::original::Original;
use crate::daemon::hot_restart::{Control, Inheritance};
use crate::daemon::listeners::Listeners;
use crate::daemon::readers::GIVE_BACK_EVERY;
use crate::daemon::reload::change::Watched;
use crate::daemon::reload::reread::Rereading;
use crate::daemon::shared::Shared;
use crate::daemon::signals::{Request, Signals};
use crate::daemon::start::startup::Startup;
use crate::daemon::stop::stop_guard::StopGuard;
use crate::outputs::runtime::KEEP_THREADS;
use sys::data_dir::DataDir;

/// Reads the plan again: from the same file, by the same rules. The error is a complete text for people. It may resolve
/// names, so it runs on its own thread.
pub type Reread = Arc<dyn Fn() -> Result<Plan, String> + Send + Sync>;

/// The arguments of a daemon.
pub struct Start {
    /// A checked plan.
    pub plan: Plan,
    /// For SIGHUP; `None` without a file.
    pub reread: Option<Reread>,
    /// The config file: its name is on the banner, its changes are watched. `None` for the built-in plan.
    pub file: Option<PathBuf>,
    /// The files and folders of a config that has more than one.
    pub watched: Watched,
    /// The HTTP address is only a default: if it is in use, the daemon continues without HTTP.
    pub http_optional: bool,
    /// Replace the running process with the same data directory, if there is one.
    pub hot_restart: bool,
    /// Use carbon-c-relay's log texts and signals.
    pub original: Option<Original>,
}

/// The parts of a running daemon for reload and stop.
pub(crate) struct Running {
    pub(crate) shared: Arc<Shared>,
    pub(crate) listeners: Listeners,
    pub(crate) outputs: JoinSet<()>,
    /// Threads that sync queues on disk.
    pub(crate) syncs: JoinSet<()>,
    /// The data directory, if it is needed.
    pub(crate) data_dir: Option<Arc<DataDir>>,
    /// Health checks of endpoints.
    pub(crate) checks: JoinSet<()>,
    pub(crate) stop: watch_channel::Sender<bool>,
    pub(crate) ports: ServedPorts,
    /// Files and sockets that a reload opens on its own thread.
    pub(crate) opening: reload::Opening,
    /// The control socket for hot restarts.
    pub(crate) control: Option<Control>,
    worker: std::thread::JoinHandle<()>,
    /// The intake makers of paused connections; empty while all are served.
    pub(crate) makers: Vec<pipeline::IntakeMaker>,
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// When a listener cannot be opened (and the plan is not the built-in one), or the system has no threads or memory;
/// when a running process rejects a hot restart.
pub fn run(start: Start) -> anyhow::Result<ExitCode> {
    #[cfg(unix)]
    {
        make_room_for_files(&start.plan, start.plan.outputs.len());
        sys::ignore_file_size_signal();
    }
    let inherited = if start.hot_restart { hot_restart::ask(&start.plan.data_dir)? } else { None };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(KEEP_THREADS)
        .build()
        .context("cannot start the runtime for connections")?;
    let giving_back = || {
        loop {
            std::thread::sleep(GIVE_BACK_EVERY);
            sys::release_freed_memory();
        }
    };
    std::thread::Builder::new()
        .name("memory".into())
        .spawn(giving_back)
        .context("cannot start the thread that releases memory")?;
    // Starts one thread for blocking work. If the system has no further ones (`ulimit -u`, the cgroup's pids.max), work
    // is queued for it; without any, the runtime would panic.
    std::thread::Builder::new().spawn(|| ()).context("cannot start a thread for files and names")?;
    runtime.spawn_blocking(|| ());
    let ended = runtime.block_on(run_inside(start, inherited));
    // Tasks that still wait, for a disk that hangs or a name server, do not delay the end.
    runtime.shutdown_background();
    ended
}

/// Raises the limit on open files, divides it (`descriptors`) among the outputs and others, and warns when the
/// connections allowed by the plan exceed the share of sources.
#[cfg(unix)]
pub(crate) fn make_room_for_files(plan: &Plan, outputs: usize) {
    let (listeners, connections) = connections_allowed(plan);
    match sys::raise_open_file_limit() {
        Ok(max) => {
            start::descriptors::divide(max, outputs);
            let share = start::descriptors::max(start::descriptors::Kind::Source);
            if share < connections as u64 {
                tracing::warn!(
                    target: crate::carbon_c_relay::log_targets::NOT_AN_ERROR,
                    "{connections} connections are allowed ({listeners}), but only {max} open files: sources refuse \
                     connections above {share}, to keep files for outputs and queues. Lower `max_connections`, or \
                     raise the limit on open files (LimitNOFILE, `ulimit -Hn`)"
                );
            }
        }
        Err(error) => tracing::debug!("cannot raise the limit on open files: {error}"),
    }
}

/// Most connections that the stream listeners of a plan may have together, and an explanation: "2 listeners with
/// `max_connections` = 10000 each".
fn connections_allowed(plan: &Plan) -> (String, usize) {
    let is_stream = |listen: &&Listen| !matches!(listen, Listen::Udp(_) | Listen::UnixDatagram { .. });
    let most = |source: &config::plan::SourcePlan| {
        let listeners = source.listen.iter().filter(is_stream).count();
        vec![source.connections_max; listeners]
    };
    let each: Vec<usize> = plan.sources.iter().flat_map(most).collect();
    let text = match each.as_slice() {
        [one] => format!("one listener with `max_connections` = {one}"),
        [first, rest @ ..] if rest.iter().all(|most| most == first) => {
            format!("{} listeners with `max_connections` = {first} each", each.len())
        }
        all => format!("`max_connections` of {} listeners", all.len()),
    };
    (text, each.iter().sum())
}

#[test]
fn connections_are_allowed_by_listener() {
    let allowed = |listen: &str, max: usize| {
        let text = format!(
            "[sources.app]\ntype = \"statsd\"\nlisten = {listen}\n[sources.more]\ntype = \"graphite\"\n\
             listen = [\"tcp://127.0.0.1:2004\"]\nmax_connections = {max}\n[outputs.copy]\ntype = \"udp\"\n\
             from = [\"app\"]\nto = [\"udp://127.0.0.1:9\"]\n"
        );
        let source = config::diagnostic::Source { name: "test", text: &text };
        connections_allowed(&config::check(source, config::Format::Toml).0.expect("a good file"))
    };
    let both = "[\"udp://127.0.0.1:8125\", \"tcp://127.0.0.1:8125\"]";
    let udp = "[\"udp://127.0.0.1:8125\"]";
    let text = |text: &str| text.to_owned();
    assert_eq!(allowed(both, 10_000), (text("2 listeners with `max_connections` = 10000 each"), 20_000));
    assert_eq!(allowed(both, 5), (text("`max_connections` of 2 listeners"), 10_005));
    assert_eq!(allowed(udp, 5), (text("one listener with `max_connections` = 5"), 5));
}

/// The signal handlers of this daemon, including signals since the start of the process.
fn signals(of_original: bool) -> std::io::Result<Signals> {
    let mut signals = Signals::take()?;
    if of_original {
        signals = signals.and_the_originals()?;
    }
    #[cfg(unix)]
    sys::unblock_signals();
    Ok(signals)
}

async fn run_inside(start: Start, inherited: Option<Inheritance>) -> anyhow::Result<ExitCode> {
    let config = config::print_shown(&start.plan);
    let Start { plan, reread, file, watched, http_optional, hot_restart: _, mut original } = start;
    // Before slow steps, so that an early signal is not lost.
    let mut signals = signals(original.is_some())?;
    let guard = StopGuard::start(&plan, original.is_some()).context("cannot start the thread for signals")?;
    let main = inherited.as_ref().map(|_| std::process::id());
    let mut startup = Startup::new(&mut signals);
    let launched = start::launch(plan, http_optional, inherited, &mut startup).await;
    let (mut stopped, reload) = startup.asked();
    if let (Err(_unfinished), Some(signal)) = (&launched, stopped) {
        tracing::info!("caught {signal} during the start: exiting before anything was received");
        return Ok(ExitCode::SUCCESS);
    }
    let mut running = launched?;
    guard.follow(&running.shared);
    running.shared.reloads.start(reread.is_some(), config);
    let reloads = Arc::clone(&running.shared);
    announce(&running, main, file.as_deref(), &mut original);
    let (asks, mut asked) = tokio::sync::mpsc::channel(1);
    let served = running.control.iter_mut().try_for_each(|control| control.serve(asks.clone()));
    served.context("cannot serve the control socket")?;
    // Kept so that the channel stays open without a file to watch.
    let (changes, mut changed) = tokio::sync::mpsc::channel(1);
    reload::change::spawn(file, watched, &running.shared, &changes);
    let (mut rereading, mut looks) = (Rereading::default(), listeners::socket_files::Looks::new());
    if reload {
        reload::begin(&running, reread.as_ref(), &mut rereading);
    }
    loop {
        if let Some(signal) = stopped.take() {
            original.iter().for_each(|original| original.tell_stopping(signal));
            break;
        }
        // All branches are cancel-safe: a signal that is not read now is read in the next turn.
        tokio::select! {
            request = signals.next() => match request {
                Request::Stop { signal } => {
                    original.iter().for_each(|original| original.tell_stopping(signal));
                    break;
                }
                Request::Reload => {
                    original.iter().for_each(Original::tell_reload);
                    reload::begin(&running, reread.as_ref(), &mut rereading);
                }
                Request::Debug => original.iter().for_each(Original::tell_debug),
            },
            () = reloads.reloads.asked() => reload::begin(&running, reread.as_ref(), &mut rereading),
            _ = changed.recv() => reload::begin(&running, reread.as_ref(), &mut rereading),
            read = rereading.done() => {
                let done = reload::end(&mut running, read, guard.asked()).await;
                original.iter().for_each(|original| original.tell_reloaded(done));
                if rereading.take_again() {
                    reload::begin(&running, reread.as_ref(), &mut rereading);
                }
            }
            lost = looks.lost(running.listeners.files()) => {
                listeners::socket_files::listen_again(&mut running, &lost, &mut looks).await;
            }
            Some(question) = asked.recv() => {
                if let Some(ends) = hot_restart::hand_over(&mut running, question).await {
                    // Other requests meanwhile are repeated, and find the other process.
                    drop(asked);
                    original.into_iter().for_each(Original::tell_succeeded);
                    return stop::leave(running, &ends).await;
                }
            }
            // Without it nothing is received any more: ending causes a restart, staying would hide the failure.
            () = running.shared.shard.ended() => anyhow::bail!("the shard's thread ended because of a bug"),
        }
    }
    let stopped = stop::stop(running, original.as_ref()).await;
    original.iter().for_each(Original::tell_end);
    stopped
}

/// Announces the start: to probes, to the service manager, to people, and in an `original`'s form.
fn announce(
    running: &Running,
    main: Option<u32>,
    file: Option<&std::path::Path>,
    original: &mut Option<Original>,
) {
    running.shared.ready.store(true, Relaxed);
    supervisor::ready(&running.shared, main);
    if original.as_ref().is_none_or(|original| original.banner) {
        start::banner::print(&running.shared, file);
    }
    start::banner::warn_of_open_ports(&running.shared.wiring.load().plan);
    original.iter_mut().for_each(|original| original.tell_start(&running.shared));
}
