//! Outputs: a task or thread for each, driving its sender (`deliver`) with a real socket or file.

pub mod check;
pub mod datagram;
pub mod errors;
pub mod file;
pub mod key_flush;
pub mod lanes;
pub mod locator;
pub mod names;
pub mod socket;
pub mod stream;

use std::sync::Arc;

use config::plan::{Addresses, ConsoleForm, Destination, OutputKind, OutputPlan};
use deliver::plan::FilePlan;
use deliver::{EndpointState, News};
use model::{OutputId, SECOND_NS};
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::daemon::outlet::Outlet;
use crate::daemon::shared::Shared;
use crate::outputs::locator::Locator;

/// Starts the task or thread of the output `id`.
///
/// # Errors
/// When the system has no thread for it.
pub fn spawn(tasks: &mut JoinSet<()>, shared: &Arc<Shared>, id: OutputId) -> std::io::Result<()> {
    let wiring = shared.wiring.load();
    let plan = &wiring.plan.outputs[id.index()];
    let outlet = Arc::clone(&wiring.outlets[id.index()]);
    let seed = Clock::mono_ns() ^ u64::from(id.0);
    let locator = |to: &Destination| Locator::new(to.clone(), Arc::clone(&shared.directory));
    match &plan.kind {
        OutputKind::Graphite { to, sender, .. } => {
            for number in 0..outlet.connections() {
                let to = locator(&Destination::Tcp(to.clone()));
                let seed = seed.wrapping_add((number as u64) << 32);
                tasks.spawn(stream::run(to, *sender, Addresses::First, (Arc::clone(&outlet), number), seed));
            }
        }
        OutputKind::Packets(packets) if packets.to.is_datagram() => {
            tasks.spawn(datagram::run(locator(&packets.to), packets.sender, packets.addresses, outlet, seed));
        }
        OutputKind::Packets(packets) => {
            tasks.spawn(stream::run(
                locator(&packets.to),
                packets.sender,
                packets.addresses,
                (outlet, 0),
                seed,
            ));
        }
        OutputKind::GraphiteFile { path, file_bytes_max, files_max, .. }
        | OutputKind::EventFile { path, file_bytes_max, files_max } => {
            let limits =
                FilePlan { file_bytes_max: *file_bytes_max, files_max: *files_max, ..FilePlan::default() };
            spawn_file(tasks, file::Place::File(path.clone()), limits, outlet, seed)?;
        }
        OutputKind::PerlFile { path, .. } => {
            let limits = FilePlan { file_bytes_max: 0, close_when_idle: true, ..FilePlan::default() };
            spawn_file(tasks, file::Place::File(path.clone()), limits, outlet, seed)?;
        }
        OutputKind::Console { form, .. } => {
            let place = match form {
                ConsoleForm::Node => file::Place::Stdout,
                ConsoleForm::Perl => file::Place::Stderr,
            };
            let limits = FilePlan { file_bytes_max: 0, ..FilePlan::default() };
            spawn_file(tasks, place, limits, outlet, seed)?;
        }
    }
    Ok(())
}

/// The same for an output that goes on with the queue on disk of an earlier one of its name: that one is told to leave,
/// and when it has, this one begins.
pub fn spawn_after(tasks: &mut JoinSet<()>, shared: &Arc<Shared>, id: OutputId, earlier: &Arc<Outlet>) {
    let (shared, earlier) = (Arc::clone(shared), Arc::clone(earlier));
    earlier.hand_over();
    tasks.spawn(async move {
        earlier.ended().await;
        let mut own = JoinSet::new();
        if let Err(error) = spawn(&mut own, &shared, id) {
            let name = &earlier.name;
            tracing::error!("output `{name}`: no thread for it ({error}); records wait in its queue on disk");
        }
        while own.join_next().await.is_some() {}
    });
}

/// Files are written by a thread: a disk may make it wait. The task only waits for the thread.
fn spawn_file(
    tasks: &mut JoinSet<()>,
    place: file::Place,
    plan: FilePlan,
    outlet: Arc<Outlet>,
    seed: u64,
) -> std::io::Result<()> {
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    std::thread::Builder::new().name(format!("file {}", outlet.name)).spawn(move || {
        file::run(&place, plan, &outlet, seed);
        drop(ended);
    })?;
    tasks.spawn(async move {
        // The sender is dropped, not used: that is the news.
        let _ended = end.await;
    });
    Ok(())
}

/// True when nothing feeds the output any more: a reload has retired it.
pub fn is_retired(plan: &OutputPlan) -> bool {
    plan.from.is_empty()
}

/// One log line for a change of an endpoint's state.
fn tell(outlet: &Outlet, place: &str, news: News, error: Option<&str>) {
    let name = &outlet.name;
    match news {
        News::Up => tracing::info!("output `{name}`: {place} is up"),
        News::Down { failure } => {
            let why = error.unwrap_or_else(|| failure.word());
            tracing::warn!("output `{name}`: {place} is down ({why}); records wait in its queue");
        }
        News::Back { down_ns, attempts, waiting_copies } => {
            let seconds = down_ns as f64 / SECOND_NS as f64;
            let plural = if attempts == 1 { "" } else { "s" };
            tracing::info!(
                "output `{name}`: {place} is back after {seconds:.1} s and {attempts} attempt{plural}; {waiting_copies} records waited"
            );
        }
    }
}

/// The last act of the task of connection `number`.
fn end(outlet: &Outlet, number: usize, state: EndpointState) {
    publish(outlet, number, 0, 0, state);
    if outlet.ends_with(number)
        && let Some((disk, copies)) = outlet.left_on_disk()
    {
        tracing::warn!(
            "output `{}` has gone with its time for draining; {copies} records stay in {} until an output of that \
             name has its queue on disk again",
            outlet.name,
            disk.folder().path().display()
        );
    }
    outlet.set_ended(number);
}

fn publish(outlet: &Outlet, number: usize, copies: u64, bytes: u64, state: EndpointState) {
    if let Some((_, at)) = state.last_failure {
        outlet.account.last_error_s.store(at.wall_seconds(), std::sync::atomic::Ordering::Relaxed);
    }
    outlet.publish(number, copies, bytes, state);
}
