//! Outputs: each has a task or thread that drives its sender (`deliver`) with a real socket or file.

pub mod addresses;
pub mod check;
pub mod datagram;
pub mod errors;
pub mod failures;
pub mod file;
pub mod key_flush;
mod progress;
pub mod requests;
pub mod runtime;
pub mod socket;
pub mod store;
pub mod stream;
pub mod telling;

use std::path::PathBuf;
use std::sync::Arc;

use config::plan::{Addresses, Destination, Link, StreamLink, WhisperPlan};
use deliver::plan::{BatchPlan, FilePlan, SenderPlan};
use model::OutputId;
use tokio::task::JoinSet;

use crate::daemon::outlet::Outlet;
use crate::daemon::shared::Shared;
use crate::outputs::addresses::locator::{Directory, Locator};
use crate::outputs::stream::Dialing;
use sys::clock::Clock;

/// Starts the task or thread of the output `id`.
///
/// # Errors
/// When the system has no thread left.
pub fn spawn(tasks: &mut JoinSet<()>, shared: &Arc<Shared>, id: OutputId) -> std::io::Result<()> {
    let wiring = shared.wiring.load();
    let plan = &wiring.plan.outputs[id.index()];
    let outlet = Arc::clone(&wiring.outlets[id.index()]);
    let seed = Clock::mono_ns() ^ u64::from(id.0);
    let directory = || Arc::clone(&shared.directory);
    match plan.kind.facts().link {
        Link::Stream(StreamLink { to, sender, addresses, compression, tls, .. }) => {
            for number in 0..outlet.connections() {
                let seed = seed.wrapping_add((number as u64) << 32);
                let slot = (Arc::clone(&outlet), number);
                let tls = tls.map(|_| (Arc::clone(shared), id));
                let dialing = Dialing { addresses, compression, tls };
                let is_plain = dialing.is_plain();
                let sends = stream_output(to.clone(), sender, dialing, slot, directory(), seed);
                if is_plain {
                    tasks.spawn(sends);
                } else {
                    tasks.spawn_on(sends, &shared.side_threads.senders.runtime()?);
                }
            }
        }
        Link::Datagrams { to, sender, addresses } => {
            tasks.spawn(datagram_output(to, sender, addresses, outlet, directory(), seed));
        }
        Link::Requests { to, sender, form } => {
            let peer = requests::Peer::new(form, (Arc::clone(shared), id));
            let sends = request_output(to, sender, (peer, form.batch()), outlet, directory(), seed);
            // Long bodies and encryption take their time.
            tasks.spawn_on(sends, &shared.side_threads.senders.runtime()?);
        }
        Link::File { path, file_bytes_max, files_max, closes_when_idle: close_when_idle } => {
            let limits = FilePlan { file_bytes_max, files_max, close_when_idle, ..FilePlan::default() };
            spawn_file(tasks, file::Place::File(path.to_owned()), limits, outlet, seed)?;
        }
        Link::Store(plan) => spawn_store(tasks, plan.clone(), wiring.plan.data_dir.clone(), outlet, shared)?,
        Link::Stdout => spawn_file(tasks, file::Place::Stdout, FilePlan::default(), outlet, seed)?,
        Link::Stderr => spawn_file(tasks, file::Place::Stderr, FilePlan::default(), outlet, seed)?,
    }
    Ok(())
}

/// Runs the sender of a stream, again when it was parked and continues.
async fn stream_output(
    to: Destination,
    sender: SenderPlan,
    dialing: Dialing,
    (outlet, number): (Arc<Outlet>, usize),
    directory: Arc<Directory>,
    seed: u64,
) {
    loop {
        let locator = Locator::new(to.clone(), Arc::clone(&directory));
        stream::run(locator, sender, dialing.clone(), (Arc::clone(&outlet), number), seed).await;
        if !outlet.goes_on(number).await {
            return;
        }
    }
}

/// Runs the sender of datagrams, again when it was parked and continues.
async fn datagram_output(
    to: Destination,
    sender: SenderPlan,
    addresses: Addresses,
    outlet: Arc<Outlet>,
    directory: Arc<Directory>,
    seed: u64,
) {
    loop {
        let locator = Locator::new(to.clone(), Arc::clone(&directory));
        datagram::run(locator, sender, addresses, Arc::clone(&outlet), seed).await;
        if !outlet.goes_on(0).await {
            return;
        }
    }
}

/// Runs the sender of requests, again when it was parked and continues.
async fn request_output(
    to: Destination,
    sender: SenderPlan,
    (mut peer, batch): (requests::Peer, BatchPlan),
    outlet: Arc<Outlet>,
    directory: Arc<Directory>,
    seed: u64,
) {
    loop {
        let locator = Locator::new(to.clone(), Arc::clone(&directory));
        requests::run(locator, (sender, batch), &mut peer, Arc::clone(&outlet), seed).await;
        if !outlet.goes_on(0).await {
            return;
        }
    }
}

/// The same for an output that continues the queue on disk of an earlier one with its name: it starts after the earlier
/// one has ended.
pub fn spawn_after(tasks: &mut JoinSet<()>, shared: &Arc<Shared>, id: OutputId, earlier: &Arc<Outlet>) {
    let (shared, earlier) = (Arc::clone(shared), Arc::clone(earlier));
    earlier.hand_over();
    tasks.spawn(async move {
        earlier.ended().await;
        let mut own = JoinSet::new();
        if let Err(error) = spawn(&mut own, &shared, id) {
            let name = &earlier.name;
            tracing::error!(
                "output `{name}`: cannot start its thread ({error}); records stay in its queue on disk"
            );
        }
        while own.join_next().await.is_some() {}
    });
}

/// Files are written by a thread, because a disk may block.
fn spawn_file(
    tasks: &mut JoinSet<()>,
    place: file::Place,
    plan: FilePlan,
    outlet: Arc<Outlet>,
    seed: u64,
) -> std::io::Result<()> {
    let of_thread = Arc::clone(&outlet);
    let name = format!("file {}", outlet.name);
    spawn_thread(tasks, name, outlet, move || file::run(&place, plan, &of_thread, seed))
}

/// So is a store.
fn spawn_store(
    tasks: &mut JoinSet<()>,
    plan: WhisperPlan,
    data_dir: PathBuf,
    outlet: Arc<Outlet>,
    shared: &Arc<Shared>,
) -> std::io::Result<()> {
    let (of_thread, stores) = (Arc::clone(&outlet), Arc::clone(&shared.stores));
    let name = format!("store {}", outlet.name);
    spawn_thread(tasks, name, outlet, move || store::run(&plan, &data_dir, &of_thread, &stores))
}

/// Runs an output on a thread, again when it was parked and continues. The task only waits for the thread.
fn spawn_thread(
    tasks: &mut JoinSet<()>,
    name: String,
    outlet: Arc<Outlet>,
    run: impl Fn() + Send + Sync + 'static,
) -> std::io::Result<()> {
    let run = Arc::new(run);
    let begin = move || {
        let (ended, end) = tokio::sync::oneshot::channel::<()>();
        let run = Arc::clone(&run);
        std::thread::Builder::new().name(name.clone()).spawn(move || {
            run();
            drop(ended);
        })?;
        std::io::Result::Ok(end)
    };
    let mut end = begin()?;
    tasks.spawn(async move {
        loop {
            // Dropping the sender is the signal.
            let _ended = end.await;
            if !outlet.goes_on(0).await {
                return;
            }
            match begin() {
                Ok(again) => end = again,
                Err(error) => {
                    return tracing::error!("output `{}`: cannot restart its thread: {error}", outlet.name);
                }
            }
        }
    });
    Ok(())
}

/// Reports a skipped test of outputs in the summary of `make test`. The test runner would hide the output of passed
/// tests.
#[cfg(test)]
fn skip(why: &str) {
    use std::io::Write as _;
    let _unread = writeln!(std::io::stderr(), "SKIPPED outputs: {why}");
}
