//! The old process: sends its state, keeps it until `Taken` arrives, and continues if it does not.
//!
//! The daemon's main task does this, so no reload or stop can interfere; each step has a timeout. Not here: the control
//! socket (`control`), pausing a connection (`sources::parked`), senders (`deliver`).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use config::plan::Listen;
use deliver::Status;
use deliver::disk_queue::Unsettled;
use deliver::queue::{Block, Queue, QueuedBlock};
use model::{
    AckWhen, DiskError, Figure, Losses, OutputId, Reject, SECOND_NS, SourceAccount, SourceId, Unacked,
};
use pipeline::{IntakeMaker, Kept, SavedState, Unfinished};

use super::control::Asked;
use super::link::{Link, LinkError};
use super::message::{Connection, Message, OutputName, Owner, Place, Role};
use super::output_name::name_of;
use crate::admin::port_kind::PortKind;
use crate::daemon::listeners::Passable;
use crate::daemon::outlet::{Outlet, is_retired};
use crate::daemon::queues::syncs;
use crate::daemon::running::Running;
use crate::daemon::shared::Shared;
use crate::daemon::shared::names::shown;
use crate::daemon::worker::{HandedOver, PassedOn};
use crate::daemon::{listeners, supervisor};
use crate::sources::parked::Parked;
use sys::clock::Clock;
use sys::pass::{self, DESCRIPTORS_MAX};
use sys::{AsFd, BorrowedFd, OwnedFd};

/// Timeout for connections to pass on their data.
const CONNECTIONS_REST_MAX: Duration = Duration::from_secs(2);

/// Pause for the readers to notice new data on their connections.
const LOOK_AROUND: Duration = Duration::from_millis(1);

/// Longest time that outputs may deliver during the pause. The rest is passed to the new process.
pub const DRAIN_MAX: Duration = Duration::from_millis(250);

/// Timeout for a flush in progress, while everything is still read.
const FLUSH_END_MAX: Duration = Duration::from_secs(1);

/// Timeout for a checkpoint in progress.
const CHECKPOINT_END_MAX: Duration = Duration::from_secs(2);

/// Timeout for the note of the last flush, after the outputs have paused.
const NOTE_END_MAX: Duration = Duration::from_secs(2);

/// Additional time for an output to stop: a write to a disk may hang.
const OUTPUTS_END_MAX: Duration = Duration::from_secs(2);

/// How long a rejected process may keep its received sockets, if `hot_restart_timeout` is not shorter.
const GONE_WITHIN_NS: u64 = 2 * SECOND_NS;

/// How long accepting connections is retried after a failed hot restart, and the pause between.
const SERVE_AGAIN_WITHIN_NS: u64 = 30 * SECOND_NS;
const SERVE_AGAIN_PAUSE: Duration = Duration::from_millis(20);

/// An offered socket, and its use here.
#[derive(Debug)]
struct Offered {
    place: Place,
    fd: OwnedFd,
    /// The source and its place, of a socket of a source, and which of those there it is.
    listens: Option<(SourceId, Listen, usize)>,
}

/// Offered outputs.
type Outputs = Vec<(OutputId, OutputName)>;

/// The parts that the new process continues, by name.
#[derive(Debug)]
struct Passed {
    /// Sockets of listeners.
    listens: Vec<PassedSocket>,
    /// Outputs with their offered numbers.
    outputs: Vec<(u32, OutputId)>,
    /// Aggregations and relays.
    kept: Kept,
}

/// A socket of a listener that the new process continues.
#[derive(Debug)]
struct PassedSocket {
    /// The number that it was offered under.
    offer: u32,
    source: String,
    id: SourceId,
    listen: Listen,
    /// Which of the sockets of the listener it is.
    number: usize,
}

impl Passed {
    fn has(&self, source: &str, listen: &Listen) -> bool {
        self.first(source, listen).is_some()
    }

    fn first(&self, source: &str, listen: &Listen) -> Option<&PassedSocket> {
        self.listens.iter().find(|passed| passed.source == source && passed.listen == *listen)
    }
}

/// The reply of the new process.
#[derive(Debug)]
struct Chosen {
    sockets: Vec<u32>,
    outputs: Vec<u32>,
    kept: Kept,
}

/// The whole state for the new process.
#[derive(Debug)]
struct State {
    messages: Vec<Message>,
    states: Vec<SavedState>,
    left: Vec<(u32, Vec<QueuedBlock>)>,
    unsettled: Vec<(String, Unsettled)>,
    connections: Vec<AtRest>,
    ending: Ending,
}

/// The parts that end with this process when the new one continues.
#[derive(Debug, Default)]
struct Ending {
    outputs: Vec<EndsHere>,
    /// Last blocks for them, of aggregations and relays that also end.
    blocks: Vec<(OutputId, Block)>,
}

/// A paused connection.
#[derive(Debug)]
struct AtRest {
    /// Index of its listener.
    place: usize,
    connection: Parked,
    /// The state for the new process. `None`: it ends here.
    goes: Option<Going>,
}

/// State of a connection that continues in the new process.
#[derive(Debug)]
struct Going {
    /// Number of its listening socket.
    socket: u32,
    unfinished: Unfinished,
    /// Numbers of the outputs for which its lines wait.
    outputs: Vec<u32>,
}

/// Passes everything to the requesting process. After success, this process must end, and the parts that end with it
/// are returned; `None` when it continues.
pub(crate) async fn hand_over(running: &mut Running, asked: Asked) -> Option<Vec<EndsHere>> {
    let Asked { link, program } = asked;
    let peer = link.peer();
    let timeout_ns = running.shared.wiring.load().plan.hot_restart_timeout_ms * 1_000_000;
    tracing::info!("process {} (staunch {program}) requests a hot restart", peer.pid);
    let (link, passed) = match agree(running, link, timeout_ns).await {
        (link, Ok(passed)) => (link, passed),
        (link, Err(error)) => {
            let why = format!("{:#}", anyhow::Error::from(error));
            tracing::warn!("hot restart by process {} failed: {why}; continuing", peer.pid);
            // Whatever it sends now, it owns nothing yet.
            let (_link, _late) = on_thread(link, move |link| refuse(link, why, timeout_ns)).await;
            return None;
        }
    };
    let begun_ns = Clock::mono_ns();
    let (state, paused_ns) = prepare(running, &passed).await;
    let (link, (result, connections, ending)) = match state {
        Ok(state) => {
            let since_ns = paused_ns.unwrap_or(begun_ns);
            let tell = move |link: &mut Link| {
                (send(link, &state, since_ns, timeout_ns), state.connections, state.ending)
            };
            on_thread(link, tell).await
        }
        Err(why) => (link, (Err(Failure::Own(why)), Vec::new(), Ending::default())),
    };
    let result = match result {
        Ok(()) => Ok(()),
        Err(error) => {
            let why = error.to_string();
            // Its confirmation may already be on its way.
            let (_link, late) = on_thread(link, move |link| refuse(link, why, timeout_ns)).await;
            if late { Ok(()) } else { Err(error) }
        }
    };
    let ms = |since_ns: u64| (Clock::mono_ns() - since_ns) / 1_000_000;
    let paused_ms = paused_ns.map_or(0, ms);
    match result {
        Ok(()) => {
            supervisor::succeeded_by(peer.pid);
            let all_ms = ms(begun_ns);
            tracing::info!("hot restart done: process {} replaces this one after {all_ms} ms", peer.pid);
            Some(leave(running, &passed, connections, ending))
        }
        Err(why) => {
            resume(running, connections).await;
            tracing::warn!(
                "hot restart by process {} failed: {why}; continuing, nothing was read for {paused_ms} ms",
                peer.pid
            );
            None
        }
    }
}

/// Sends the offer, and receives the new process's reply. Everything continues meanwhile.
async fn agree(running: &Running, link: Link, timeout_ns: u64) -> (Link, Result<Passed, Failure>) {
    let (offered, outputs) = match on_offer(running) {
        Ok(offer) => offer,
        Err(error) => return (link, Err(Failure::Offer(error))),
    };
    if let Err(failure) = queues_are_there(&running.shared, timeout_ns).await {
        return (link, Err(failure));
    }
    let names = outputs.iter().map(|(_, name)| name.clone()).collect();
    let places: Vec<_> = offered.iter().map(|offered| offered.listens.clone()).collect();
    let (link, answer) = on_thread(link, move |link| offer(link, &offered, names, timeout_ns)).await;
    let passed = answer.and_then(|chosen| chosen_of(running, &places, &outputs, chosen));
    (link, passed.map_err(Failure::Link))
}

/// Why the hot restart failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Own(&'static str),
    #[error("the queue of output `{output}` cannot be handed over: {why} ({folder})")]
    Queue { output: String, folder: String, why: DiskError },
    #[error("a queue's disk hangs")]
    Hangs,
    #[error("cannot offer the sockets")]
    Offer(#[source] std::io::Error),
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// A new process could not continue a queue whose folder is missing, whose files were deleted, or whose disk accepts
/// nothing: its records would be lost, including those in memory and those that wait for room.
async fn queues_are_there(shared: &Shared, at_most_ns: u64) -> Result<(), Failure> {
    let wiring = shared.wiring.load_full();
    // It accesses the disks.
    let looked = tokio::task::spawn_blocking(move || {
        wiring.outlets.iter().try_for_each(|outlet| queue_is_there(outlet))
    });
    match tokio::time::timeout(Duration::from_nanos(at_most_ns), looked).await {
        Ok(looked) => looked.expect("looking at a folder does not panic"),
        Err(_late) => Err(Failure::Hangs),
    }
}

fn queue_is_there(outlet: &Outlet) -> Result<(), Failure> {
    let Some(disk) = outlet.disk() else { return Ok(()) };
    let folder = disk.folder().path();
    // Files deleted since the last check would only be noticed by the next process, which does not have them open.
    syncs::look(outlet, &disk);
    let (behind, copies) = {
        let mut queue = outlet.queue();
        (queue.on_disk().and_then(|queue| queue.handover_error(Clock::now())), queue.copies())
    };
    let away = (copies > 0 && !folder.is_dir()).then_some(DiskError::Away);
    match behind.or(away) {
        None => Ok(()),
        Some(why) => {
            let (output, folder) = (outlet.name.clone(), folder.display().to_string());
            Err(Failure::Queue { output, folder, why })
        }
    }
}

/// Runs the blocking protocol on another thread than the runtime's.
async fn on_thread<R: Send + 'static>(
    mut link: Link,
    say: impl FnOnce(&mut Link) -> R + Send + 'static,
) -> (Link, R) {
    let spoken = tokio::task::spawn_blocking(move || {
        let result = say(&mut link);
        (link, result)
    });
    spoken.await.expect("the conversation does not panic")
}

/// Every socket and output that another process could continue.
fn on_offer(running: &Running) -> std::io::Result<(Vec<Offered>, Outputs)> {
    let plan = Arc::clone(&running.shared.wiring.load().plan);
    let mut offered = Vec::new();
    for Passable { source: name, listen, at, bound, siblings } in running.listeners.passable() {
        let Some(id) = plan.sources.iter().position(|source| source.name == name) else { continue };
        let siblings = siblings.iter().map(|fd| fd.try_clone());
        // The places are the same: their order says which is which.
        for (number, fd) in std::iter::once(bound.try_clone_to_owned()).chain(siblings).enumerate() {
            offered.push(Offered {
                place: Place {
                    role: Role::Source,
                    source: name.to_owned(),
                    listen: shown(listen),
                    at: shown(at),
                },
                fd: fd?,
                listens: Some((SourceId(id as u16), listen.clone(), number)),
            });
        }
    }
    for (kind, configured, listener) in &running.ports.listeners {
        let role = match kind {
            PortKind::Http => Role::Http,
            PortKind::Management => Role::Management,
            PortKind::CarbonLink => Role::CarbonLink,
        };
        let at = listener.local_addr()?.to_string();
        let place = Place { role, source: String::new(), listen: configured.to_string(), at };
        offered.push(Offered { place, fd: listener.as_fd().try_clone_to_owned()?, listens: None });
    }
    if let Some(control) = &running.control {
        let nowhere = String::new;
        let place = Place { role: Role::Control, source: nowhere(), listen: nowhere(), at: nowhere() };
        offered.push(Offered { place, fd: control.listener.as_fd().try_clone_to_owned()?, listens: None });
    }
    if let Some(data_dir) = &running.data_dir {
        let nowhere = String::new;
        let place = Place { role: Role::Lock, source: nowhere(), listen: nowhere(), at: nowhere() };
        offered.push(Offered {
            place,
            fd: data_dir.lock_file().as_fd().try_clone_to_owned()?,
            listens: None,
        });
    }
    let outputs = plan.outputs.iter().enumerate().filter(|(_, output)| !is_retired(output));
    Ok((offered, outputs.map(|(at, output)| (OutputId(at as u16), name_of(output))).collect()))
}

/// Sends the offer, and receives the reply.
fn offer(
    link: &mut Link,
    offered: &[Offered],
    outputs: Vec<OutputName>,
    timeout_ns: u64,
) -> Result<Chosen, LinkError> {
    let deadline_ns = Clock::mono_ns() + timeout_ns;
    for some in offered.chunks(DESCRIPTORS_MAX) {
        let places = some.iter().map(|offered| offered.place.clone()).collect();
        let descriptors: Vec<BorrowedFd<'_>> = some.iter().map(|offered| offered.fd.as_fd()).collect();
        link.send_with(&Message::Sockets(places), &descriptors, deadline_ns)?;
    }
    let watchdog_us = supervisor::watchdog().map_or(0, |within| within.as_micros() as u64);
    let program = env!("CARGO_PKG_VERSION").to_owned();
    let pid = std::process::id();
    link.send(&Message::Offered { program, pid, outputs, watchdog_us }, deadline_ns)?;
    match link.receive(deadline_ns)? {
        Message::Ready { sockets, outputs, kept } => Ok(Chosen { sockets, outputs, kept }),
        _ => Err(LinkError::OutOfTurn),
    }
}

/// The parts with the numbers that the new process sent.
fn chosen_of(
    running: &Running,
    places: &[Option<(SourceId, Listen, usize)>],
    outputs: &[(OutputId, OutputName)],
    chosen: Chosen,
) -> Result<Passed, LinkError> {
    let plan = Arc::clone(&running.shared.wiring.load().plan);
    let mut passed = Passed { listens: Vec::new(), outputs: Vec::new(), kept: chosen.kept };
    for number in chosen.sockets {
        let place = places.get(number as usize).ok_or(LinkError::OutOfTurn)?;
        if let Some((id, listen, at)) = place {
            let source = plan.sources[id.index()].name.clone();
            let (listen, offer) = (listen.clone(), number);
            passed.listens.push(PassedSocket { offer, source, id: *id, listen, number: *at });
        }
    }
    for number in chosen.outputs {
        let (id, _) = outputs.get(number as usize).ok_or(LinkError::OutOfTurn)?;
        passed.outputs.push((number, *id));
    }
    Ok(passed)
}

/// Pauses, and collects the state for the new process. Also returns the start of the pause. After any result,
/// [`resume`] can continue.
async fn prepare(running: &mut Running, passed: &Passed) -> (Result<State, &'static str>, Option<u64>) {
    let shared = Arc::clone(&running.shared);
    shared.handing_over.store(true, Relaxed);
    supervisor::handing_over();
    let wiring = shared.wiring.load_full();
    let shard_max = Duration::from_millis(wiring.plan.hot_restart_timeout_ms);
    let makers = match settle_down(&shared, shard_max).await {
        Ok(makers) => makers,
        Err(why) => return (Err(why), None),
    };
    let has = |source: &str, listen: &Listen| passed.has(source, listen);
    running.makers = makers;
    // Data of connections that end here still counts, once the readers have seen it.
    shared.readers.look_around(LOOK_AROUND).await;
    if !running.listeners.come_to_rest(&has, CONNECTIONS_REST_MAX).await {
        return (Err("a connection did not stop in time"), None);
    }
    let paused_ns = Clock::mono_ns();
    let sockets = passed.listens.iter().map(|socket| (socket.id, socket.listen.clone())).collect();
    let passed_on = PassedOn { sockets, kept: passed.kept.clone(), state_id: sys::random_seed() };
    let handed = shared.shard.call(move |worker| worker.hand_over(&passed_on));
    let mut handed = match tokio::time::timeout(shard_max, handed).await {
        Ok(Ok(Ok(handed))) => handed,
        Ok(Ok(Err(why))) => return (Err(why), Some(paused_ns)),
        Ok(Err(_gone)) => return (Err("the shard's thread has ended"), Some(paused_ns)),
        Err(_late) => return (Err("the shard's thread did not stop in time: a disk hangs"), Some(paused_ns)),
    };
    note("the shard is at rest, its state saved", paused_ns);
    let handover = Arc::clone(&shared.handover);
    // Concurrently with the outputs: it is synced, and written by no one afterwards. At worst, an older note lets a
    // window be emitted twice.
    let noted = handover.write_on_thread();
    // Also outputs on disk that the new process does not have: it may use their data by name.
    let is_passed = |at: usize| passed.outputs.iter().any(|(_, id)| id.index() == at);
    let outlets = wiring.outlets.iter().enumerate();
    let outlets = outlets.filter(|(at, outlet)| is_passed(*at) || outlet.disk().is_some());
    let outlets: Vec<_> = outlets.map(|(_, outlet)| outlet).collect();
    for outlet in &outlets {
        // An output that is down cannot deliver.
        let down = outlet.state().is_some_and(|state| state.status == Status::Down);
        let drain_ns = if down { 0 } else { DRAIN_MAX.as_nanos() as u64 };
        outlet.park(Clock::mono_ns() + drain_ns);
    }
    if let Err(why) = come_to_rest(&shared, &outlets).await {
        return (Err(why), Some(paused_ns));
    }
    note("outputs are at rest", paused_ns);
    // A late write could replace a note of the new process.
    match tokio::time::timeout(NOTE_END_MAX, noted).await {
        Err(_late) => return (Err("the disk is too busy to record the last flush"), Some(paused_ns)),
        Ok(Ok(Err(error))) => tracing::warn!("cannot write the handover note for the next start: {error}"),
        Ok(_noted) => {}
    }
    note("the last flush is noted", paused_ns);
    let last = std::mem::take(&mut handed.last);
    let (mut ending, mut left) = (Ending::default(), Vec::new());
    for (number, id) in &passed.outputs {
        left.push((*number, wiring.outlets[id.index()].left()));
    }
    for (id, block) in last {
        match passed.outputs.iter().position(|(_, passed)| *passed == id) {
            Some(at) => left[at].1.push(QueuedBlock::whole(block)),
            None => ending.blocks.push((id, block)),
        }
    }
    let unsettled = outlets.iter().filter_map(|outlet| Some((outlet.name.clone(), outlet.unsettled()?)));
    let unsettled = unsettled.collect();
    // Clients get their acknowledgements here; the new process counts from there on.
    shared.acks.resolve(&wiring.outlets);
    let connections = at_rest(running, passed);
    let messages = messages(running, passed, &handed, &connections);
    ending.outputs = ends_here(&wiring.outlets);
    note("everything is gathered", paused_ns);
    (Ok(State { messages, states: handed.states, left, unsettled, connections, ending }), Some(paused_ns))
}

/// Waits until the outputs have stopped. A disk may have failed since the first check, with newer records in memory.
/// memory.
async fn come_to_rest(shared: &Shared, outlets: &[&Arc<Outlet>]) -> Result<(), &'static str> {
    let parked = async {
        while !outlets.iter().all(|outlet| outlet.is_at_rest()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let parked = tokio::time::timeout(DRAIN_MAX + OUTPUTS_END_MAX, parked).await;
    parked.map_err(|_late| "an output did not stop in time")?;
    let looked = queues_are_there(shared, OUTPUTS_END_MAX.as_nanos() as u64).await;
    looked.map_err(|_why| "the disk of a queue has failed meanwhile, or its files are gone")
}

/// Steps that are possible while everything is read: blocked batches are accepted, and checkpoints and a flush in
/// progress are finished. Returns the intake makers, to continue connections after a failure.
async fn settle_down(shared: &Shared, shard_max: Duration) -> Result<Vec<IntakeMaker>, &'static str> {
    let wiring = shared.wiring.load_full();
    let (plan, accounts) = (Arc::clone(&wiring.plan), wiring.accounts.clone());
    let at_work = shared.shard.call(move |worker| {
        worker.take_all_in();
        (worker.end_checkpoints(), listeners::makers(&plan, &worker.turn.shard, &accounts))
    });
    // It may be appending to a queue on a disk that hangs.
    let (under_way, makers) = match tokio::time::timeout(shard_max, at_work).await {
        Ok(Ok(at_work)) => at_work,
        Ok(Err(_gone)) => return Err("the shard's thread has ended"),
        Err(_late) => return Err("the shard's thread does not answer: a disk hangs"),
    };
    if let Some(under_way) = under_way
        && tokio::time::timeout(CHECKPOINT_END_MAX, under_way.write_on_thread()).await.is_err()
    {
        return Err("the disk is too busy to end a checkpoint");
    }
    // A flush done now is not needed during the pause. A longer one, or a new one, is finished there.
    let flushed = async {
        while let Ok(true) = shared.shard.call(|worker| worker.turn.shard.is_flushing()).await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let _late = tokio::time::timeout(FLUSH_END_MAX, flushed).await;
    Ok(makers)
}

/// Logs the duration of steps at level debug.
fn note(what: &str, paused_ns: u64) {
    tracing::debug!("{what} after {} µs without reading", (Clock::mono_ns() - paused_ns) / 1000);
}

/// The connections, and the state for those that continue.
fn at_rest(running: &mut Running, passed: &Passed) -> Vec<AtRest> {
    let places = running.listeners.places();
    let waiting = running.shared.acks.waiting();
    let number_of = |output: &OutputId| {
        let passed = passed.outputs.iter().find(|(_, id)| id == output);
        passed.map(|(number, _)| *number)
    };
    let goes = |place: usize, connection: &mut Parked| {
        let (source, listen) = &places[place];
        let number = &passed.first(source, listen)?.offer;
        let unfinished = connection.unfinished()?;
        let outputs = connection.id().and_then(|id| waiting.get(&id)).map_or(&[][..], Vec::as_slice);
        // Lines that wait for an output that ends here are acknowledged here, as far as possible.
        let outputs: Vec<u32> = outputs.iter().map(number_of).collect::<Option<_>>()?;
        let waits = unfinished.acks.is_some_and(|acks| acks.acked < acks.lines);
        let can_wait = unfinished.acks.is_some_and(|acks| acks.when == AckWhen::Delivered);
        (waits != outputs.is_empty() && (can_wait || !waits)).then_some(Going {
            socket: *number,
            unfinished,
            outputs,
        })
    };
    let all = running.listeners.take_parked().into_iter();
    all.map(|(place, mut connection)| AtRest { place, goes: goes(place, &mut connection), connection })
        .collect()
}

/// Accounts and drops.
fn messages(running: &Running, passed: &Passed, handed: &HandedOver, connections: &[AtRest]) -> Vec<Message> {
    let wiring = running.shared.wiring.load();
    let account = |owner, name: &str, figures| Message::Account { owner, name: name.to_owned(), figures };
    let sources = wiring.accounts.sources();
    let places = running.listeners.places();
    // Their clients get this reply when our account is not read any more.
    let ending = |name: &str| {
        let stopped = |at_rest: &&AtRest| {
            at_rest.goes.is_none() && at_rest.connection.waits() && places[at_rest.place].0 == name
        };
        let count = connections.iter().filter(stopped).count() as u64;
        Figure::new("acks_failed", Unacked::Stopped.word(), count, 0)
    };
    // Incomplete lines end with their connections.
    let tails = |name: &str| {
        let cut = |at_rest: &&AtRest| {
            at_rest.goes.is_none() && at_rest.connection.has_tail() && places[at_rest.place].0 == name
        };
        let count = connections.iter().filter(cut).count() as u64;
        Figure::new("rejected", Reject::TailLost.word(), count, 0)
    };
    let figures = |name: &str, of: &SourceAccount| [of.figures(), vec![ending(name), tails(name)]].concat();
    let sources = sources.map(|(_, name, of)| account(Owner::Source, name, figures(name, of)));
    let outputs = wiring.accounts.outputs_once();
    let outputs = outputs.map(|(_, name, of)| account(Owner::Output, name, of.figures()));
    let relays = handed.relays.iter();
    let relays = relays.map(|(name, counted)| account(Owner::Relay, name, counted.clone()));
    let reports = running.shared.reports.all().into_iter();
    let reports = reports.map(|(name, figures)| account(Owner::Reports, &name, figures));
    let edges = wiring.accounts.edges();
    let edges = edges.map(|(to, from, of)| account(Owner::Edge, &format!("{to}\n{from}"), of.figures()));
    let mut messages: Vec<Message> =
        sources.chain(outputs).chain(edges).chain(relays).chain(reports).collect();
    for PassedSocket { offer, id, listen, number, source: _ } in &passed.listens {
        let mut all = handed.drops.iter();
        let found = all.find(|(source, place, at, _)| source == id && place == listen && at == number);
        if let Some((.., drops)) = found {
            let message = Message::Drops { socket: *offer, seen: drops.seen, dropped: drops.counted };
            messages.push(message);
        }
    }
    messages
}

/// Sends everything, and waits for the confirmation.
fn send(link: &mut Link, state: &State, paused_ns: u64, timeout_ns: u64) -> Result<(), Failure> {
    let deadline_ns = paused_ns + timeout_ns;
    for message in &state.messages {
        link.send(message, deadline_ns)?;
    }
    for SavedState { name, bytes } in &state.states {
        let state = Message::State { transform: name.clone(), len: bytes.len() as u64 };
        link.send(&state, deadline_ns)?;
        link.send_parts(bytes, deadline_ns)?;
    }
    for (output, left) in &state.left {
        for left in left {
            let bytes = left.encode(Clock::mono_ns());
            link.send(&Message::Left { output: *output, len: bytes.len() as u64 }, deadline_ns)?;
            link.send_parts(&bytes, deadline_ns)?;
        }
    }
    for (output, unsettled) in &state.unsettled {
        let bytes = unsettled.encode();
        link.send(&Message::Unsettled { output: output.clone(), len: bytes.len() as u64 }, deadline_ns)?;
        link.send_parts(&bytes, deadline_ns)?;
    }
    send_connections(link, &state.connections, deadline_ns)?;
    link.send(&Message::Yours { paused_ns }, deadline_ns)?;
    note("everything is sent", paused_ns);
    match link.receive(deadline_ns)? {
        Message::Taken => Ok(()),
        Message::Refused { why } => Err(LinkError::Refused { why }.into()),
        _ => Err(LinkError::OutOfTurn.into()),
    }
}

/// Sends the connections that continue. They also stay ours.
fn send_connections(link: &mut Link, connections: &[AtRest], deadline_ns: u64) -> Result<(), LinkError> {
    let going: Vec<_> =
        connections.iter().filter_map(|at_rest| Some((at_rest, at_rest.goes.as_ref()?))).collect();
    for some in going.chunks(DESCRIPTORS_MAX) {
        let message = |(_, going): &(&AtRest, &Going)| Connection {
            socket: going.socket,
            len: going.unfinished.bytes.len() as u64,
            discarding: going.unfinished.discarding,
            acks: going.unfinished.acks,
            outputs: going.outputs.clone(),
        };
        let descriptors: Vec<BorrowedFd<'_>> =
            some.iter().map(|(at_rest, _)| at_rest.connection.fd()).collect();
        let message = Message::Connections(some.iter().map(message).collect());
        link.send_with(&message, &descriptors, deadline_ns)?;
        let bytes: Vec<u8> =
            some.iter().flat_map(|(_, going)| going.unfinished.bytes.iter().copied()).collect();
        link.send_parts(&bytes, deadline_ns)?;
    }
    Ok(())
}

/// Withdraws the offer. True when the new process had already confirmed: then it continues.
///
/// Afterwards it cannot confirm any more. This waits for its end, because it may hold sockets that must not be used
/// twice. If it does not release them, it hangs, and is killed.
fn refuse(link: &mut Link, why: String, timeout_ns: u64) -> bool {
    link.stop_listening();
    let gone_within_ns = timeout_ns.min(GONE_WITHIN_NS);
    let heard_until_ns = Clock::mono_ns() + gone_within_ns;
    while let Ok(message) = link.receive(heard_until_ns) {
        if message == Message::Taken {
            return true;
        }
    }
    let deadline_ns = Clock::mono_ns() + gone_within_ns;
    // It may have ended, which is the goal.
    let _gone = link.send(&Message::Refused { why }, deadline_ns);
    if !link.closed_before(deadline_ns) {
        let pid = link.peer().pid;
        tracing::warn!("process {pid} hangs in the hot restart, and is killed");
        if let Err(error) = pass::kill(pid) {
            tracing::error!("cannot kill process {pid}: {error}");
        }
    }
    false
}

/// Continues unchanged.
async fn resume(running: &mut Running, connections: Vec<AtRest>) {
    let shared = Arc::clone(&running.shared);
    let wiring = shared.wiring.load_full();
    for (outlet, output) in wiring.outlets.iter().zip(&wiring.plan.outputs) {
        if outlet.go_on()
            && let Err(error) = syncs::spawn(&mut running.syncs, outlet)
        {
            tracing::error!("output `{}`: its queue on disk is not synced: {error}", output.name);
        }
    }
    let plan = Arc::clone(&wiring.plan);
    // Without waiting: a disk may hang in an earlier call to the thread, and everything else must continue.
    let _answer = shared.shard.call(move |worker| worker.go_back(&plan));
    let taken = connections.into_iter().map(|at_rest| (at_rest.place, at_rest.connection));
    running.listeners.put_back(taken.collect());
    let makers = std::mem::take(&mut running.makers);
    // There are none when the connections were not paused.
    if !makers.is_empty() {
        serve_again(running, &wiring.plan, &makers).await;
    }
    shared.handing_over.store(false, Relaxed);
    supervisor::ready(&shared, None);
}

/// Accepts and reads connections again. Without free descriptors, this is retried: connections that end free theirs.
async fn serve_again(running: &mut Running, plan: &config::plan::Plan, makers: &[pipeline::IntakeMaker]) {
    let shared = Arc::clone(&running.shared);
    let until_ns = Clock::mono_ns() + SERVE_AGAIN_WITHIN_NS;
    let mut next = 0;
    while let Err(error) = running.listeners.serve_again(&mut next, plan, makers, &shared) {
        if Clock::mono_ns() > until_ns {
            return tracing::error!("cannot accept connections again: {error}");
        }
        tokio::time::sleep(SERVE_AGAIN_PAUSE).await;
    }
}

/// An output that ends with this process, and its losses when its account was sent.
#[derive(Debug)]
pub(crate) struct EndsHere {
    pub(crate) output: OutputId,
    pub(crate) lost_before: Losses,
}

/// The outputs that are not parked: the new process's accounts do not contain their further losses.
fn ends_here(outlets: &[Arc<Outlet>]) -> Vec<EndsHere> {
    let ending = outlets.iter().enumerate().filter(|(_, outlet)| !outlet.is_parked());
    ending
        .map(|(at, outlet)| EndsHere { output: OutputId(at as u16), lost_before: outlet.account.losses() })
        .collect()
}

/// Ends the parts that do not continue.
fn leave(running: &mut Running, passed: &Passed, connections: Vec<AtRest>, ending: Ending) -> Vec<EndsHere> {
    let shared = Arc::clone(&running.shared);
    let close = connections.into_iter().filter(|at_rest| at_rest.goes.is_none());
    close.for_each(|at_rest| at_rest.connection.end(&shared));
    shared.stopping.store(true, Relaxed);
    let wiring = shared.wiring.load_full();
    let deadline_ns = Clock::mono_ns() + wiring.plan.stop_timeout_ms * 1_000_000;
    let now = Clock::now();
    for (output, block) in ending.blocks {
        wiring.outlets[output.index()].append(block, now);
    }
    // Outputs that the new process lacks deliver as much as they can.
    for outlet in &wiring.outlets {
        if outlet.is_parked() {
            outlet.let_go();
        } else {
            outlet.close(deadline_ns.min(outlet.deadline_ns(0)), now);
        }
    }
    let has = |source: &str, listen: &Listen| passed.has(source, listen);
    std::mem::take(&mut running.listeners).leave(&has);
    if let Some(control) = &mut running.control {
        control.leave();
    }
    running.stop.send_replace(true);
    ending.outputs
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_confirmation_in_flight_is_received_and_later_ones_fail() {
        for said in [true, false] {
            let (here, mut there) = UnixStream::pair().expect("a pair of our own");
            let mut link = Link::new(here).expect("it is connected");
            if said {
                there.write_all(&Message::Taken.encode().expect("it is short")).expect("it has room");
            }
            let late = std::thread::spawn(move || refuse(&mut link, "too late".to_owned(), 30 * SECOND_NS));
            if !said {
                // The other end receives the reason, finds that it cannot confirm any more, and ends.
                let mut there = Link::new(there).expect("it is connected");
                let deadline_ns = Clock::mono_ns() + 30 * SECOND_NS;
                let heard = there.receive(deadline_ns).expect("a word");
                assert_eq!(heard, Message::Refused { why: "too late".to_owned() });
                let said = there.send(&Message::Taken, deadline_ns);
                assert!(matches!(said, Err(LinkError::Closed)), "{said:?}");
            }
            assert_eq!(late.join().expect("no panic"), said);
        }
    }
}
