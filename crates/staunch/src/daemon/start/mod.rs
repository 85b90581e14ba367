//! From a checked plan to a running daemon: listeners, the shard with the restored state, queues, threads and tasks.
//!
//! Invariant: if anything fails here, this process has read nothing, so the old process of a hot restart can continue.

pub mod banner;
pub mod data_dir;
pub mod descriptors;
pub mod kept;
#[cfg(unix)]
pub mod open_files;
pub mod startup;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use arc_swap::ArcSwap;
use config::plan::Plan;
use model::Now;
use pipeline::{Accounts, Exchange, IntakeMaker, Shard};
use tokio::sync::{Notify, watch as watch_channel};
use tokio::task::JoinSet;

use crate::admin::accounts::AccountsPage;
use crate::admin::clients::CarbonLinkAccount;
use crate::admin::{HttpOption, Ports};
use crate::daemon::checkpoint::handover::Handover;
use crate::daemon::hot_restart::{Control, Handed, Inheritance};
use crate::daemon::listeners::{Listeners, Opened};
use crate::daemon::outlet::Outlet;
use crate::daemon::queues::syncs;
use crate::daemon::readers::{self, Readers};
use crate::daemon::reload::opening::Opening;
use crate::daemon::running::Running;
use crate::daemon::shared::acks::AckRegistry;
use crate::daemon::shared::complaints::complain;
use crate::daemon::shared::heartbeat::Heartbeat;
use crate::daemon::shared::reloads::Reloads;
use crate::daemon::shared::turns::Floor;
use crate::daemon::shared::{EXCHANGE_BYTES_MAX, PACKET_LANE_BYTES_MAX, SOURCES_MAX, Shared, Turns, Wiring};
use crate::daemon::start::data_dir::take_data_dir;
use crate::daemon::start::startup::Startup;
use crate::daemon::worker::{KeyFlushReport, PacketReaders, ShardHandle, Worker, WorkerParts};
use crate::daemon::{checkpoint, listeners, queues, supervisor, watch};
use crate::kernel::{self, Kernel};
use crate::outputs::addresses::locator::Directory;
use crate::{admin, outputs, sources};
use sys::clock::Clock;
use sys::data_dir::DataDir;
use tls::Certificates;

/// Opens the plan's listeners and starts everything.
pub(in crate::daemon) async fn launch(
    plan: Plan,
    http: HttpOption,
    mut inherited: Option<Inheritance>,
    startup: &mut Startup<'_>,
) -> anyhow::Result<Running> {
    // Reported first, because its ports are then in use as well.
    let held = if inherited.is_none() { sys::data_dir::held(&plan.data_dir) } else { None };
    if let Some(held) = held.as_ref().filter(|_| kept::is_needed(&plan) || plan.built_in) {
        anyhow::bail!("{held}");
    }
    let (opened, mut failures) = listeners::open(&plan, &[], inherited.as_mut(), readers_of(&plan));
    let (ports, closed_ports) = admin::open(&plan, http, inherited.as_mut());
    failures.extend(closed_ports);
    if let Some(held) = held.filter(|_| !failures.is_empty()) {
        failures.insert(0, held.to_string());
    }
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\nstaunch: "));
    let data_dir = take_data_dir(&plan, ports.http_at, inherited.as_mut())?;
    let control = Control::open(&plan.data_dir, inherited.as_mut());
    let mut handed = match &mut inherited {
        Some(inherited) => inherited.hand_over(&plan)?,
        None => Handed::nothing(),
    };
    let Assembled { shared, makers, mut worker, key_flush_reports } =
        assemble(plan, &opened, &ports, data_dir.as_ref(), &handed, startup).await?;
    // If anything fails from here to `taken`, this process has read nothing, and the other one continues.
    if inherited.is_some() {
        worker.freeze();
    }
    let worker = start(worker).context("cannot start the shard's thread")?;
    let (stop, stopped) = watch_channel::channel(false);
    let (outputs, mut syncs) = spawn_outputs(&shared)?;
    let plan = Arc::clone(&shared.wiring.load().plan);
    let adopt = |number, source: &_| handed.adopt(number, source, &shared);
    let mut listeners = Listeners::serve(opened, &plan, &makers, &shared, adopt)?;
    let ports = ports.serve(&plan, &shared, &stopped)?;
    let watchdog = inherited.as_ref().and_then(Inheritance::watchdog);
    let before = inherited.as_ref().map(|_| Arc::new(admin::accounts::page(&shared, Clock::now())));
    spawn_watches(&shared, &stopped, key_flush_reports, watchdog, before.as_ref());
    let mut checks = JoinSet::new();
    outputs::check::spawn(&mut checks, &shared);
    if let Some(inherited) = inherited {
        let wiring = shared.wiring.load_full();
        let queues = match handed.prepare_queues(&wiring, data_dir.as_ref(), &mut syncs) {
            Ok(queues) => queues,
            Err(error) => return Err(inherited.give_up(error)),
        };
        inherited.taken()?;
        let paused_ns = handed.paused_ns;
        handed.go_on(&shared, data_dir.as_ref(), queues);
        // A process before this one may have had fewer readers.
        let more =
            listeners.add_siblings(&plan, readers_of(&plan), &makers, &wiring.accounts, &shared.kernel);
        // The result is not needed: the thread continues by itself.
        let _answer = shared.shard.call(move |worker| {
            worker.thaw_with(more);
            if let Some(since_ns) = paused_ns {
                let paused_ms = (Clock::mono_ns() - since_ns) / 1_000_000;
                tracing::info!("nothing was read for {paused_ms} ms");
            }
        });
    }
    let (data_dir, opening, makers) = (data_dir.map(Arc::new), Opening::default(), Vec::new());
    Ok(Running {
        shared,
        listeners,
        outputs,
        syncs,
        data_dir,
        checks,
        stop,
        ports,
        opening,
        control,
        worker,
        makers,
    })
}

/// The objects of a plan, before any thread or task runs.
struct Assembled {
    shared: Arc<Shared>,
    makers: Vec<IntakeMaker>,
    worker: Worker,
    key_flush_reports: tokio::sync::mpsc::Receiver<KeyFlushReport>,
}

fn certificates(plan: &Plan) -> anyhow::Result<Certificates> {
    Certificates::load(plan, None).map_err(|wrong| anyhow::Error::msg(tls::joined(&wrong)))
}

/// Builds the objects of a plan, with the state from another process.
async fn assemble(
    plan: Plan,
    opened: &[Opened],
    ports: &Ports,
    data_dir: Option<&DataDir>,
    handed: &Handed,
    startup: &mut Startup<'_>,
) -> anyhow::Result<Assembled> {
    let now = Clock::now();
    let certificates = certificates(&plan)?;
    let accounts = Accounts::default().carried_to(&plan);
    handed.take_up_accounts(&accounts);
    let mut shard = Shard::new(&plan, &accounts, sys::random_seed(), now);
    let State { handover, checkpoints, saver } =
        State::restored(&plan, &mut shard, data_dir, handed, now, startup).await?;
    let outlets = outlets(&plan, &accounts, data_dir.filter(|_| handed.owns_queues), startup).await?;
    let (exchange, room, acks) = (exchange(&plan), Arc::new(Notify::new()), Arc::<AckRegistry>::default());
    let handle = ShardHandle::new().context("cannot make the shard's waker")?;
    let (key_flushes, key_flush_reports) = tokio::sync::mpsc::channel(4);
    let makers = listeners::makers(&plan, &shard, &accounts);
    let (kernel_view, drops) = (Kernel::default(), |number| handed.drops_of(number));
    let sockets = listeners::datagram_sockets(&plan, opened, &makers, &accounts, &kernel_view, &drops)?;
    let packet_readers = PacketReaders::start(&exchange, handle.waker(), complain).context(NO_READERS)?;
    let mut worker = Worker::new(WorkerParts {
        shard,
        sockets,
        readers: packet_readers,
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
    worker.resume_checkpoints(&plan);
    let (plan, directory) = (Arc::new(plan), directory(opened));
    let listening = Listeners::default().listening(&plan, opened);
    let wiring = Wiring { certificates, plan: plan.clone(), accounts, outlets, generation: 0, listening };
    let (readers, floors) = start_readers(&plan, &exchange, &room).context(NO_READERS)?;
    let shared = Arc::new(Shared {
        wiring: ArcSwap::from_pointee(wiring),
        turns: Turns::new(readers.number()),
        floors,
        readers,
        packet_readers: worker.packet_readers(),
        exchange,
        shard: handle,
        http: ports.http_at,
        http_closed: ports.http_closed.clone(),
        management: ports.management_at.clone(),
        management_account: Default::default(),
        carbonlink: CarbonLinkAccount::of_port(ports.carbonlink_at),
        http_account: Default::default(),
        queries: Default::default(),
        started: now,
        healthy: AtomicBool::new(plan.management.iter().all(|management| management.healthy)),
        ready: AtomicBool::new(false),
        stopping: AtomicBool::new(false),
        handing_over: AtomicBool::new(false),
        heartbeat: Heartbeat::default(),
        side_threads: Default::default(),
        directory,
        room,
        acks,
        kernel: kernel_view,
        handover,
        checkpoints,
        reloads: Reloads::default(),
        reports: handed.reports(),
        stores: Arc::default(),
    });
    Ok(Assembled { shared, makers, worker, key_flush_reports })
}

/// The names of the system, and the addresses that are our own.
fn directory(opened: &[Opened]) -> Arc<Directory> {
    let directory = Directory::of_system();
    directory.own.set(Listeners::default().really_at(opened));
    Arc::new(directory)
}

/// Why there are no reader threads.
const NO_READERS: &str = "cannot start the reader threads";

/// How many readers there are.
fn readers_of(plan: &Plan) -> usize {
    plan.readers_on(readers::cores())
}

/// The way from readers to the shard. With one reader, the shard's thread reads the datagrams.
fn exchange(plan: &Plan) -> Arc<Exchange> {
    let exchange = Exchange::new(EXCHANGE_BYTES_MAX, SOURCES_MAX);
    Arc::new(match readers_of(plan) {
        ..=1 => exchange,
        readers => exchange.with_packet_lanes(readers, PACKET_LANE_BYTES_MAX),
    })
}

/// Starts the threads that read connections, each with its turns.
fn start_readers(
    plan: &Plan,
    exchange: &Arc<Exchange>,
    room: &Arc<Notify>,
) -> std::io::Result<(Readers, Box<[Floor]>)> {
    let readers = Readers::start(readers_of(plan))?;
    let floor = |_| Floor::new(Arc::clone(exchange), Arc::clone(room));
    let floors = (0..readers.number()).map(floor).collect();
    Ok((readers, floors))
}

fn start(worker: Worker) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new().name("shard-0".into()).spawn(move || worker.run())
}

/// The state that survives the process: checkpoints and labels.
struct State {
    handover: Arc<Handover>,
    checkpoints: Arc<checkpoint::CheckpointTable>,
    saver: checkpoint::Saver,
}

impl State {
    /// Restores the shard's state, and prepares storing it for the next instance. A data directory of another daemon is
    /// not used.
    async fn restored(
        plan: &Plan,
        shard: &mut Shard,
        data_dir: Option<&DataDir>,
        handed: &Handed,
        now: Now,
        startup: &mut Startup<'_>,
    ) -> anyhow::Result<State> {
        let checkpoints = Arc::new(checkpoint::CheckpointTable::default());
        let handover = Arc::new(match data_dir {
            None if kept::is_wanted(plan) => Handover::default(),
            _ => Handover::read(&plan.data_dir, startup).await.with_context(|| {
                format!("cannot read the state of the previous process in {}", plan.data_dir.display())
            })?,
        });
        if let Some(data_dir) = data_dir {
            checkpoints.keep_in(data_dir.state_dir());
            handover.keep(plan).context("cannot start the thread that writes handover notes")?;
        }
        handed.take_up_states(shard, &handover, now)?;
        let has_state = |name: &str| handed.has_state(name);
        checkpoint::restore(plan, shard, &handover, &checkpoints, &has_state, now, startup).await?;
        let saver = checkpoint::Saver::new(Arc::clone(&checkpoints), Arc::clone(&handover));
        Ok(State { handover, checkpoints, saver })
    }
}

/// Starts the outputs, and the threads that sync queues on disk.
fn spawn_outputs(shared: &Arc<Shared>) -> anyhow::Result<(JoinSet<()>, JoinSet<()>)> {
    let (mut outputs, mut syncs) = (JoinSet::new(), JoinSet::new());
    for (at, outlet) in shared.wiring.load().outlets.iter().enumerate() {
        syncs::spawn(&mut syncs, outlet).context("cannot start a thread for a queue on disk")?;
        outputs::spawn(&mut outputs, shared, model::OutputId(at as u16))?;
    }
    Ok((outputs, syncs))
}

/// The queue of each output, with its queued records.
async fn outlets(
    plan: &Plan,
    accounts: &Accounts,
    data_dir: Option<&DataDir>,
    startup: &mut Startup<'_>,
) -> anyhow::Result<Vec<Arc<Outlet>>> {
    let mut outlets = Vec::with_capacity(plan.outputs.len());
    for (output, (_, _, account)) in plan.outputs.iter().zip(accounts.outputs()) {
        outlets.push(queues::open(output, account, data_dir, startup).await?);
    }
    if let Some(data_dir) = data_dir {
        queues::log_orphans(plan, data_dir);
    }
    Ok(outlets)
}

/// Starts the tasks that only watch and report; they end with the daemon.
fn spawn_watches(
    shared: &Arc<Shared>,
    stopped: &watch_channel::Receiver<bool>,
    key_flush_reports: tokio::sync::mpsc::Receiver<KeyFlushReport>,
    watchdog: Option<Duration>,
    before: Option<&Arc<AccountsPage>>,
) {
    tokio::spawn(watch::losses(Arc::clone(shared), stopped.clone(), before.cloned()));
    tokio::spawn(Arc::clone(shared).resolve_acks(stopped.clone()));
    for runtime in shared.readers.runtimes() {
        let (connections, stop) = (Arc::clone(shared), stopped.clone());
        runtime.spawn(async move { connections.floor().tend(stop).await });
    }
    tokio::spawn(supervisor::tend(Arc::clone(shared), stopped.clone(), watchdog));
    tokio::spawn(kernel::follow_tables(Arc::clone(shared), stopped.clone()));
    tokio::spawn(sources::own::run(Arc::clone(shared), stopped.clone(), before.cloned()));
    tokio::spawn(crate::carbon_c_relay::statistics::run(Arc::clone(shared), stopped.clone()));
    tokio::spawn(key_flush_writer(key_flush_reports, Arc::clone(shared)));
}

async fn key_flush_writer(mut reports: tokio::sync::mpsc::Receiver<KeyFlushReport>, shared: Arc<Shared>) {
    while let Some(report) = reports.recv().await {
        let plan = Arc::clone(&shared.wiring.load().plan);
        if let Err(error) = outputs::key_flush::write(&plan, &report) {
            tracing::error!("cannot write the report of busy names: {error}");
        }
    }
}
