//! The daemon: from a checked plan to threads and tasks, and back.
//!
//! [`run`] opens every listener, starts the shard's thread and the tasks around it (`start`), waits for a signal, and
//! stops in the order that loses nothing (`stop`): sources first, then the last flush, then the outputs' queues. Not
//! here: processing of records (`pipeline`), sockets (`sources`, `outputs`).
//! Invariant: a plan is complete and its listeners are open before the previous plan is changed.

pub mod checkpoint;
pub mod hot_restart;
pub mod listeners;
pub mod original;
pub mod outlet;
pub mod pid_file;
pub mod queues;
pub mod readers;
pub mod reload;
mod running;
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
use config::plan::Plan;

use crate::admin::HttpOption;
use crate::daemon::hot_restart::Inheritance;
use crate::daemon::original::Original;
use crate::daemon::readers::GIVE_BACK_EVERY;
use crate::daemon::reload::change::Watched;
use crate::daemon::reload::reread::Rereading;
use crate::daemon::running::Running;
use crate::daemon::signals::{Request, Signals};
use crate::daemon::start::startup::Startup;
use crate::daemon::stop::stop_guard::StopGuard;
use crate::outputs::runtime::KEEP_THREADS;

pub use crate::daemon::reload::reread::Reread;

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
    /// The option that moves HTTP.
    pub http: HttpOption,
    /// Replace the running process with the same data directory, if there is one.
    pub hot_restart: bool,
    /// Of a compatibility mode.
    pub original: Option<Box<dyn Original>>,
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// When a listener cannot be opened (and the plan is not the built-in one), or the system has no threads or memory;
/// when a running process rejects a hot restart.
pub fn run(start: Start) -> anyhow::Result<ExitCode> {
    #[cfg(unix)]
    {
        start::open_files::make_room(&start.plan, start.plan.outputs.len());
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

/// The signal handlers of this daemon, including signals since the start of the process, and the thread that ends it when a stop
/// does not.
fn handle_signals(plan: &Plan, original: Option<&dyn Original>) -> anyhow::Result<(Signals, StopGuard)> {
    let has_own = original.is_some_and(Original::has_own_signals);
    let mut signals = Signals::take()?;
    if has_own {
        signals = signals.and_the_originals()?;
    }
    #[cfg(unix)]
    sys::unblock_signals();
    let guard = StopGuard::start(plan, has_own).context("cannot start the thread for signals")?;
    Ok((signals, guard))
}

async fn run_inside(start: Start, inherited: Option<Inheritance>) -> anyhow::Result<ExitCode> {
    let config = config::print_shown(&start.plan);
    let Start { plan, reread, file, watched, http, hot_restart: _, mut original } = start;
    // Before slow steps, so that an early signal is not lost.
    let (mut signals, guard) = handle_signals(&plan, original.as_deref())?;
    let main = inherited.as_ref().map(|_| std::process::id());
    let mut startup = Startup::new(&mut signals);
    let launched = start::launch(plan, http, inherited, &mut startup).await;
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
            original.iter().for_each(|original| original.stopping(signal));
            break;
        }
        // All branches are cancel-safe: a signal that is not read now is read in the next turn.
        tokio::select! {
            request = signals.next() => match request {
                Request::Stop { signal } => {
                    original.iter().for_each(|original| original.stopping(signal));
                    break;
                }
                Request::Reload => {
                    original.iter().for_each(|original| original.reload_asked());
                    reload::begin(&running, reread.as_ref(), &mut rereading);
                }
                Request::Debug => original.iter().for_each(|original| original.debug_asked()),
            },
            () = reloads.reloads.asked() => reload::begin(&running, reread.as_ref(), &mut rereading),
            _ = changed.recv() => reload::begin(&running, reread.as_ref(), &mut rereading),
            read = rereading.done() => {
                let done = reload::end(&mut running, read, guard.asked()).await;
                original.iter().for_each(|original| original.reload_ended(done));
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
                    original.into_iter().for_each(Original::succeeded);
                    return stop::leave(running, &ends).await;
                }
            }
            // Without it nothing is received any more: ending causes a restart, staying would hide the failure.
            () = running.shared.shard.ended() => anyhow::bail!("the shard's thread ended because of a bug"),
        }
    }
    let stopped = stop::stop(running, original.as_deref()).await;
    original.iter().for_each(|original| original.ended());
    stopped
}

/// Announces the start: to probes, to the service manager, to people, and in an `original`'s form.
fn announce(
    running: &Running,
    main: Option<u32>,
    file: Option<&std::path::Path>,
    original: &mut Option<Box<dyn Original>>,
) {
    running.shared.ready.store(true, Relaxed);
    supervisor::ready(&running.shared, main);
    if original.as_ref().is_none_or(|original| original.has_banner()) {
        start::banner::print(&running.shared, file);
    }
    start::banner::warn_of_open_ports(&running.shared.wiring.load().plan);
    original.iter_mut().for_each(|original| original.started(&running.shared));
}
