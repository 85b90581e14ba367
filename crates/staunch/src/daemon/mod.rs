//! The daemon: from a checked plan to threads and tasks, and back down again.
//!
//! [`run`] opens every listener, starts the shard's thread and the tasks around it, waits for a signal, and stops in
//! the order that loses nothing: sources first, then the last flush, then the outputs' queues.
//! Not here: what a record becomes (`pipeline`), what a socket does (`sources`, `outputs`).
//! Invariant: a plan is whole and its listeners are open before anything of the plan before is touched.

pub mod acks;
pub mod banner;
pub mod change;
pub mod checkpoint;
pub mod data_dir;
pub mod handover;
pub mod listeners;
pub mod outlet;
pub mod queues;
pub mod reload;
pub mod shared;
pub mod signals;
pub mod supervisor;
pub mod syncs;
pub mod take_over;
pub mod watch;
pub mod worker;

use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::Context;
use arc_swap::ArcSwap;
use config::plan::{Listen, Plan};
use model::{Now, SECOND_NS};
use pipeline::{Accounts, Complaint, Exchange, IntakeMaker, Shard};
use tokio::sync::{Notify, watch as watch_channel};
use tokio::task::JoinSet;

use crate::admin::accounts::AccountsPage;
use crate::admin::{Ports, ServedPorts};
use crate::clock::Clock;
use crate::daemon::acks::AckDesk;
use crate::daemon::checkpoint::LastCheckpoints;
use crate::daemon::data_dir::DataDir;
use crate::daemon::handover::Handover;
use crate::daemon::listeners::{Listeners, Opened};
use crate::daemon::outlet::Outlet;
use crate::daemon::shared::{EXCHANGE_BYTES_MAX, Heartbeat, Reloads, SOURCES_MAX, Shared, Wiring};
use crate::daemon::signals::{Request, Signals};
use crate::daemon::take_over::{Control, Handed, Inheritance};
use crate::daemon::worker::{KeyFlushReport, ShardHandle, Worker, WorkerParts};
use crate::kernel::{self, Kernel};
use crate::outputs::locator::Directory;
use crate::{admin, outputs, sources};

/// Share of `stop_timeout` that sources may take to read what has come already, in percent; the rest is for the last
/// flush and the outputs. Only a machine that is very busy needs it.
const SOURCES_STOP_PERCENT: u64 = 50;

/// How long clients may take to read their last acknowledgement.
const LAST_WORD_MAX: Duration = Duration::from_millis(250);
/// Least time that the last checkpoint may take, however long the outputs took.
const CHECKPOINT_STOP_MIN: Duration = Duration::from_millis(500);

/// Longest wait for requests that are being answered when another process has taken over.
const ANSWERS_MAX: Duration = Duration::from_secs(1);

/// Pause between two looks whether what waits for room was taken.
const ROOM_LOOK: Duration = Duration::from_millis(20);

/// Files that the daemon opens besides connections of sources: listeners, endpoints, queues on disk, HTTP.
#[cfg(unix)]
const FILES_BESIDES: u64 = 200;

/// Reads the plan anew: from the same file, by the same rules. The error is a text for people, whole.
pub type Reread = Box<dyn Fn() -> Result<Plan, String>>;

/// What a daemon is started with.
pub struct Start {
    /// A checked plan.
    pub plan: Plan,
    /// For SIGHUP; none when there is no file.
    pub reread: Option<Reread>,
    /// The config file: its name is on the banner, its changes are watched. None for the built-in plan.
    pub file: Option<PathBuf>,
    /// Nobody asked for the HTTP address: when it is taken the daemon goes on without it.
    pub http_optional: bool,
    /// Take over from the process that runs with the same data directory, if there is one.
    pub take_over: bool,
}

/// A running daemon's parts that reload and stop work on.
pub(crate) struct Running {
    pub(crate) shared: Arc<Shared>,
    pub(crate) listeners: Listeners,
    pub(crate) outputs: JoinSet<()>,
    /// Threads that sync queues on disk.
    pub(crate) syncs: JoinSet<()>,
    /// The data directory, when something is kept there.
    pub(crate) data_dir: Option<DataDir>,
    /// Checks of endpoints.
    pub(crate) checks: JoinSet<()>,
    pub(crate) stop: watch_channel::Sender<bool>,
    pub(crate) ports: ServedPorts,
    /// Where another process asks to take over.
    pub(crate) control: Option<Control>,
    worker: std::thread::JoinHandle<()>,
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// When a listener cannot be opened (and the plan is not the built-in one), or the system has no threads or memory; when a
/// process that runs does not let us take over.
pub fn run(start: Start) -> anyhow::Result<ExitCode> {
    #[cfg(unix)]
    make_room_for_files(&start.plan);
    let inherited = if start.take_over { take_over::ask(&start.plan.data_dir)? } else { None };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for connections")?;
    runtime.block_on(run_inside(start, inherited))
}

/// Raises the limit on open files, and tells when the connections that the plan allows could use it up all the same:
/// then outputs and queues on disk would find no file either.
#[cfg(unix)]
fn make_room_for_files(plan: &Plan) {
    let streams = |source: &config::plan::SourcePlan| {
        let is_stream = |listen: &&Listen| !matches!(listen, Listen::Udp(_) | Listen::UnixDatagram { .. });
        source.listen.iter().filter(is_stream).count() * source.connections_max
    };
    let connections: usize = plan.sources.iter().map(streams).sum();
    match crate::sys::raise_files_max() {
        Ok(max) if max < connections as u64 + FILES_BESIDES => tracing::warn!(
            "{connections} connections are allowed (`connections_max`) and only {max} files may be open: lower the one or \
             raise the other (LimitNOFILE, `ulimit -Hn`), or outputs and queues may find none left"
        ),
        Ok(_) => {}
        Err(error) => tracing::debug!("the limit on open files stays as it is: {error}"),
    }
}

async fn run_inside(start: Start, inherited: Option<Inheritance>) -> anyhow::Result<ExitCode> {
    let Start { plan, reread, file, http_optional, .. } = start;
    // Before anything that takes time: a signal that comes early is not lost.
    let mut signals = Signals::take()?;
    let main = inherited.as_ref().map(|_| std::process::id());
    let mut running = launch(plan, http_optional, inherited)?;
    banner::print(&running.shared, file.as_deref());
    running.shared.ready.store(true, Relaxed);
    supervisor::ready(&running.shared, main);
    let (asks, mut asked) = tokio::sync::mpsc::channel(1);
    if let Some(control) = &mut running.control {
        control.serve(asks.clone()).context("cannot serve the control socket")?;
    }
    let (changes, mut changed) = tokio::sync::mpsc::channel(1);
    // Kept so that the channel stays open without a file to watch.
    let _unused = changes.clone();
    if let Some(file) = file {
        tokio::spawn(change::watch(file, Arc::clone(&running.shared), changes));
    }
    loop {
        // All branches are cancel-safe: a signal that is not taken now is taken in the next turn.
        tokio::select! {
            request = signals.next() => match request {
                Request::Stop => break,
                Request::Reload => reload::reload(&mut running, reread.as_ref()).await,
            },
            _ = changed.recv() => reload::reload(&mut running, reread.as_ref()).await,
            Some(question) = asked.recv() => {
                if take_over::hand_over(&mut running, question).await {
                    // Who has asked meanwhile asks again, and finds the other process.
                    drop(asked);
                    return leave(running).await;
                }
            }
            // Without it nothing is received any more: ending is louder than staying, and gets us started again.
            () = running.shared.shard.ended() => anyhow::bail!("the shard's thread ended by a bug of ours"),
        }
    }
    stop(running).await
}

/// Opens the plan's listeners and starts everything.
fn launch(plan: Plan, http_optional: bool, mut inherited: Option<Inheritance>) -> anyhow::Result<Running> {
    let (opened, mut failures) = listeners::open(&plan, &[], inherited.as_mut());
    let (ports, closed_ports) = admin::open(&plan, http_optional, inherited.as_mut());
    failures.extend(closed_ports);
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\nstaunch: "));
    let data_dir = take_data_dir(&plan, ports.http_at, inherited.as_mut())?;
    let control = Control::open(&plan.data_dir, inherited.as_mut());
    let mut handed = match &mut inherited {
        Some(inherited) => inherited.hand_over(&plan)?,
        None => Handed::nothing(),
    };
    let Assembled { shared, makers, mut worker, key_flush_reports } =
        assemble(plan, &opened, &ports, data_dir.as_ref(), &handed)?;
    // Whatever fails from here to `taken`, nothing has been read that another process does not go on with.
    if inherited.is_some() {
        worker.freeze();
    }
    let worker = start(worker).context("cannot start the shard's thread")?;
    let (stop, stopped) = watch_channel::channel(false);
    let (outputs, mut syncs) = spawn_outputs(&shared)?;
    let plan = Arc::clone(&shared.wiring.load().plan);
    let adopt = |number, source: &_| handed.adopt(number, source, &shared);
    let listeners = Listeners::serve(opened, &plan, &makers, &shared, adopt)?;
    let ports = ports.serve(&plan, &shared, &stopped)?;
    let watchdog = inherited.as_ref().and_then(Inheritance::watchdog);
    let before = inherited.as_ref().map(|_| Arc::new(admin::accounts::page(&shared, Clock::now())));
    spawn_watches(&shared, &stopped, key_flush_reports, watchdog, before.as_ref());
    let mut checks = JoinSet::new();
    outputs::check::spawn(&mut checks, &shared);
    if let Some(inherited) = inherited {
        inherited.taken()?;
        let paused_ns = handed.paused_ns;
        handed.go_on(&shared, data_dir.as_ref(), &mut syncs);
        // It answers nobody: the thread goes on by itself.
        let _answer = shared.shard.call(move |worker| {
            worker.thaw();
            if let Some(since_ns) = paused_ns {
                let paused_ms = (Clock::mono_ns() - since_ns) / 1_000_000;
                tracing::info!("nothing was read for {paused_ms} ms");
            }
        });
    }
    Ok(Running { shared, listeners, outputs, syncs, data_dir, checks, stop, ports, control, worker })
}

/// What a plan has become, before any thread or task of it runs.
struct Assembled {
    shared: Arc<Shared>,
    makers: Vec<IntakeMaker>,
    worker: Worker,
    key_flush_reports: tokio::sync::mpsc::Receiver<KeyFlushReport>,
}

/// Puts a plan's parts together, with what another process has handed over.
fn assemble(
    plan: Plan,
    opened: &[Opened],
    ports: &Ports,
    data_dir: Option<&DataDir>,
    handed: &Handed,
) -> anyhow::Result<Assembled> {
    let now = Clock::now();
    let accounts = Accounts::default().carried_to(&plan);
    handed.take_up_accounts(&accounts);
    let mut shard = Shard::new(&plan, &accounts, random_seed(), now);
    let State { handover, checkpoints, saver } = State::restored(&plan, &mut shard, data_dir, handed, now)?;
    let outlets = outlets(&plan, &accounts, data_dir.filter(|_| handed.owns_queues))?;
    let exchange = Arc::new(Exchange::new(EXCHANGE_BYTES_MAX, SOURCES_MAX));
    let (room, acks) = (Arc::new(Notify::new()), Arc::new(AckDesk::default()));
    let handle = ShardHandle::new().context("cannot make the shard's waker")?;
    let (key_flushes, key_flush_reports) = tokio::sync::mpsc::channel(4);
    let makers = listeners::makers(&plan, &shard, &accounts);
    let kernel_view = Kernel::default();
    let drops = |number| handed.drops_of(number);
    let sockets = listeners::datagram_sockets(&plan, opened, &makers, &accounts, &kernel_view, &drops)?;
    let worker = Worker::new(WorkerParts {
        shard,
        sockets,
        outlets: outlets.clone(),
        complaints: complain,
        exchange: Arc::clone(&exchange),
        room: Arc::clone(&room),
        acks: Arc::clone(&acks),
        handle: handle.clone(),
        key_flushes,
        saver,
        handover: Arc::clone(&handover),
    })
    .context("cannot make room for packets")?;
    let plan = Arc::new(plan);
    let directory = Directory::of_system();
    directory.own.set(Listeners::default().really_at(opened));
    let listening = Listeners::default().listening(&plan, opened);
    let wiring = Wiring { plan: Arc::clone(&plan), accounts, outlets, generation: 0, listening };
    let shared = Arc::new(Shared {
        wiring: ArcSwap::from_pointee(wiring),
        exchange,
        shard: handle,
        http: ports.http_at,
        management: ports.management_at.clone(),
        started: now,
        healthy: AtomicBool::new(plan.management.iter().all(|management| management.healthy)),
        ready: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        handing_over: AtomicBool::new(false),
        heartbeat: Heartbeat::default(),
        directory: Arc::new(directory),
        room,
        acks,
        kernel: kernel_view,
        handover,
        checkpoints,
        reloads: Reloads { done: AtomicU64::new(0), refused: AtomicU64::new(0) },
    });
    Ok(Assembled { shared, makers, worker, key_flush_reports })
}

fn start(worker: Worker) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name("shard-0".into()).spawn(move || worker.run())
}

/// What outlives the process: checkpoints and labels.
struct State {
    handover: Arc<Handover>,
    checkpoints: Arc<checkpoint::Board>,
    saver: checkpoint::Saver,
}

impl State {
    /// Gives the shard what the instance before has left, and sees that this one leaves as much. A data directory that
    /// is wanted and not ours is left alone.
    fn restored(
        plan: &Plan,
        shard: &mut Shard,
        data_dir: Option<&DataDir>,
        handed: &Handed,
        now: Now,
    ) -> anyhow::Result<State> {
        let checkpoints = Arc::new(checkpoint::Board::default());
        let handover = Arc::new(match data_dir {
            None if data_dir::is_wanted(plan) => Handover::default(),
            _ => Handover::read(&plan.data_dir),
        });
        if let Some(data_dir) = data_dir {
            checkpoints.keep_in(data_dir.state_dir());
            handover.keep(plan).context("cannot start the thread that keeps labels")?;
        }
        handed.take_up_states(shard, &handover, now)?;
        checkpoint::restore(plan, shard, &handover, &checkpoints, &|name| handed.has_state(name), now);
        let mut saver = checkpoint::Saver::new(Arc::clone(&checkpoints));
        saver.follow(plan, now);
        Ok(State { handover, checkpoints, saver })
    }
}

/// Starts what sends to endpoints, and what syncs queues on disk.
fn spawn_outputs(shared: &Arc<Shared>) -> anyhow::Result<(JoinSet<()>, JoinSet<()>)> {
    let (mut outputs, mut syncs) = (JoinSet::new(), JoinSet::new());
    for (at, outlet) in shared.wiring.load().outlets.iter().enumerate() {
        syncs::spawn(&mut syncs, outlet).context("cannot start a thread for a queue on disk")?;
        outputs::spawn(&mut outputs, shared, model::OutputId(at as u16))?;
    }
    Ok((outputs, syncs))
}

/// Takes the data directory, if anything is to be kept there. Its lock may come from another process, which so never lets
/// go of it.
fn take_data_dir(
    plan: &Plan,
    http: Option<SocketAddr>,
    from: Option<&mut Inheritance>,
) -> anyhow::Result<Option<DataDir>> {
    let (needed, wanted) = (data_dir::is_needed(plan), data_dir::is_wanted(plan));
    if !needed && !wanted && !data_dir::has_state(&plan.data_dir) {
        return Ok(None);
    }
    if let Some(lock) = from.and_then(Inheritance::take_lock) {
        return Ok(Some(DataDir::inherit(&plan.data_dir, lock)));
    }
    match DataDir::lock(&plan.data_dir, http) {
        Ok(data_dir) => Ok(Some(data_dir)),
        Err(error) if needed => Err(error.into()),
        Err(error) => {
            if wanted {
                tracing::warn!("there are no checkpoints: {:#}", anyhow::Error::from(error));
            }
            Ok(None)
        }
    }
}

/// The queue of each output, with what waits in it.
fn outlets(plan: &Plan, accounts: &Accounts, data_dir: Option<&DataDir>) -> anyhow::Result<Vec<Arc<Outlet>>> {
    let with_account = plan.outputs.iter().zip(accounts.outputs());
    let opened = with_account.map(|(output, (_, _, account))| queues::open(output, account, data_dir));
    let outlets = opened.collect::<anyhow::Result<Vec<_>>>()?;
    if let Some(data_dir) = data_dir {
        queues::tell_orphans(plan, data_dir);
    }
    Ok(outlets)
}

/// The tasks that only look on and tell; they end with the daemon.
fn spawn_watches(
    shared: &Arc<Shared>,
    stopped: &watch_channel::Receiver<bool>,
    key_flush_reports: tokio::sync::mpsc::Receiver<KeyFlushReport>,
    watchdog: Option<Duration>,
    before: Option<&Arc<AccountsPage>>,
) {
    tokio::spawn(watch::losses(Arc::clone(shared), stopped.clone(), before.cloned()));
    tokio::spawn(acks::resolve_as_told(Arc::clone(shared), stopped.clone()));
    tokio::spawn(supervisor::tend(Arc::clone(shared), stopped.clone(), watchdog));
    tokio::spawn(kernel::follow_tables(Arc::clone(shared), stopped.clone()));
    tokio::spawn(sources::own::run(Arc::clone(shared), stopped.clone(), before.cloned()));
    tokio::spawn(key_flush_writer(key_flush_reports, Arc::clone(shared)));
}

/// Stops: sources, last flush, outputs, and a word on what could not be delivered.
async fn stop(running: Running) -> anyhow::Result<ExitCode> {
    let Running {
        shared,
        mut listeners,
        mut outputs,
        mut syncs,
        data_dir,
        mut checks,
        stop,
        control,
        worker,
        ..
    } = running;
    if let Some(control) = &control {
        control.remove();
    }
    shared.stopping.store(true, Relaxed);
    supervisor::stopping();
    let timeout_ns = shared.wiring.load().plan.stop_timeout_ms * 1_000_000;
    let deadline_ns = Clock::now().mono_ns + timeout_ns;
    tracing::info!("stopping: last flush, then at most {} for the outputs", seconds(timeout_ns));
    let sources_max_ns = timeout_ns / 100 * SOURCES_STOP_PERCENT;
    let sources_max = Duration::from_nanos(sources_max_ns);
    let sources_until_ns = Clock::mono_ns() + sources_max_ns;
    listeners.stop(sources_max).await;
    wait_until_taken(&shared, sources_until_ns).await;
    // The worker answers after it has handed its last blocks to the outlets.
    let mut last_checkpoints = None;
    match shared.shard.call(Worker::stop).await {
        Ok(stopped) => {
            if let Err(error) = shared.handover.leave() {
                tracing::warn!("cannot leave a note for the next start: {error}");
            }
            // Beside the outputs, which wait for others and not for the disk.
            last_checkpoints = stopped.checkpoints.map(LastCheckpoints::write_aside);
        }
        Err(_gone) => tracing::error!("the shard's thread ended before the last flush"),
    }
    // Connections that were still handing on find that nobody takes anything any more, and say so in the account.
    listeners.stop(sources_max / 5).await;
    let now = Clock::now();
    for outlet in &shared.wiring.load().outlets {
        outlet.close(deadline_ns, now);
    }
    let left =
        Duration::from_nanos(deadline_ns.saturating_sub(Clock::now().mono_ns)) + Duration::from_millis(250);
    let drained = tokio::time::timeout(left, async {
        while outputs.join_next().await.is_some() {}
        while syncs.join_next().await.is_some() {}
    });
    let drained = drained.await;
    if drained.is_err() {
        tracing::warn!("an output did not end in time");
    }
    shared.acks.finish(&shared.wiring.load().outlets, LAST_WORD_MAX).await;
    let left = Duration::from_nanos(deadline_ns.saturating_sub(Clock::now().mono_ns));
    if let Some(written) = last_checkpoints
        && tokio::time::timeout(left.max(CHECKPOINT_STOP_MIN), written).await.is_err()
    {
        tracing::warn!("the last checkpoint was not written in time: the one before it is what is left");
    }
    checks.shutdown().await;
    stop.send_replace(true);
    if worker.join().is_err() {
        tracing::error!("the shard's thread panicked");
    }
    tell_what_is_left(&shared);
    drop(data_dir);
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// A word on what came too late, what could not be delivered, and what waits for the next start.
fn tell_what_is_left(shared: &Shared) {
    let page = admin::accounts::page(shared, Clock::now());
    for row in &page.sources {
        let lost = row.losses.get("shed").and_then(|shed| shed.get("stopped")).copied().unwrap_or(0);
        if lost > 0 {
            tracing::warn!(
                "source `{}`: {lost} records came too late to be part of the last flush",
                row.name
            );
        }
    }
    for row in &page.outputs {
        let stopped = row.losses.get("shed").and_then(|shed| shed.get("stopped")).copied().unwrap_or(0);
        let lost = if row.disk.is_some() { stopped } else { stopped + row.waiting };
        if lost > 0 {
            tracing::warn!("output `{}`: {lost} records could not be delivered before the stop", row.name);
        }
        if row.disk.is_some() && row.waiting > 0 {
            tracing::info!("output `{}`: {} records wait on disk for the next start", row.name, row.waiting);
        }
    }
    watch::last_words(&page);
}

/// Lets the shard take what waits in the exchange for room in a queue, as long as there is time for it: behind the last
/// flush nothing can wait any more.
async fn wait_until_taken(shared: &Shared, until_ns: u64) {
    let taken = async {
        while !shared.exchange.is_empty() {
            // Cancel-safe: room that came just before is seen at the next look.
            let _room = tokio::time::timeout(ROOM_LOOK, shared.room.notified()).await;
        }
    };
    // Out of time: the rest is shed, and counted.
    let _late =
        tokio::time::timeout(Duration::from_nanos(until_ns.saturating_sub(Clock::mono_ns())), taken).await;
}

/// Ends after another process has taken over: what that one does not have is delivered, as at a stop.
async fn leave(running: Running) -> anyhow::Result<ExitCode> {
    let Running { shared, mut outputs, mut syncs, mut checks, mut ports, worker, .. } = running;
    // Nothing is settled here any more: who waits for that asks the other process.
    shared.acks.finish(&shared.wiring.load().outlets, LAST_WORD_MAX).await;
    let timeout =
        Duration::from_millis(shared.wiring.load().plan.stop_timeout_ms) + Duration::from_millis(250);
    let drained = tokio::time::timeout(timeout, async {
        while outputs.join_next().await.is_some() {}
        while syncs.join_next().await.is_some() {}
    });
    if drained.await.is_err() {
        tracing::warn!("an output did not end in time");
    }
    let answered = async { while ports.tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(ANSWERS_MAX, answered).await.is_err() {
        tracing::debug!("requests were still open");
    }
    checks.shutdown().await;
    let _gone = shared.shard.call(Worker::end).await;
    if worker.join().is_err() {
        tracing::error!("the shard's thread panicked");
    }
    tracing::info!("ended: another process goes on");
    Ok(ExitCode::SUCCESS)
}

fn seconds(ns: u64) -> String {
    format!("{} s", ns as f64 / SECOND_NS as f64)
}

/// A seed that an outsider cannot guess, from the system by way of the standard library's hasher.
pub(crate) fn random_seed() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// The one message about a kind of bad line; the account counts the rest.
fn complain(complaint: &Complaint) {
    let Complaint { source, reason, line } = complaint;
    tracing::warn!(
        "source `{source}`: a line was rejected as `{}`: {} It reads: {line}   Further ones are only counted.",
        reason.word(),
        reason.why(),
    );
}

async fn key_flush_writer(mut reports: tokio::sync::mpsc::Receiver<KeyFlushReport>, shared: Arc<Shared>) {
    while let Some(report) = reports.recv().await {
        let plan = Arc::clone(&shared.wiring.load().plan);
        if let Err(error) = outputs::key_flush::write(&plan, &report) {
            tracing::error!("cannot write the report of busy names: {error}");
        }
    }
}
