//! Accepts connections of a source: a connection gets a slot, or is closed.
//!
//! Path of a connection: [`accept`] -> `Admission::admit_or_replace_silent` -> `Parked::begin` -> its own task. Not
//! here: reading (`stream`), limits (`admission`).
//! Invariant: a connection has its slot as long as its task lives, or until another one needs it.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use config::plan::SourcePlan;
use model::PeerKey;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use crate::admission::{Admission, ConnectionSlot, Full, Limits, Refusals};
use crate::daemon::shared::Shared;
use crate::daemon::shared::bind::{ACCEPT_PAUSE, BACKLOG, Bound, listen_again};
use crate::daemon::shared::names::shown;
use crate::daemon::start::descriptors::{self, Permit};
use crate::sources::listener::{Order, StreamSource, idle_timeout, ordered};
use crate::sources::parked::{Client, Parked};
use crate::sources::shares::{self, Share, Short};
use crate::sources::stream::Stream;

use sys::clock::Clock;
use sys::{self, UnixListener};

/// Most connections that are still accepted during a stop: the kernel's backlog.
const BACKLOG_MAX: usize = 1024;

/// How often a listener checks for rejections that were not logged: a line appears once a minute.
const TELL_REST_EVERY: Duration = Duration::from_secs(5);

/// A connection that has been silent for this long, or for half of `idle_timeout` if that is shorter, may be replaced:
/// clients usually buffer their samples for less.
const SILENT: Duration = Duration::from_secs(60);

/// Most replaced connections that are not closed yet: their remaining data may have to wait for room.
const LEAVING_MAX: usize = 256;

/// Longest pause between two attempts to listen again; the first one is [`ACCEPT_PAUSE`], and each doubles.
const LISTEN_AGAIN_PAUSE_MAX: Duration = Duration::from_secs(5);

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn new(bound: Bound) -> io::Result<Listener> {
        match bound {
            Bound::Tcp(listener) => Ok(Listener::Tcp(TcpListener::from_std(listener)?)),
            Bound::Unix(listener) => Ok(Listener::Unix(UnixListener::from_std(listener)?)),
            Bound::Datagram(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// See [`listen_again`].
    fn again(&self) -> io::Result<Listener> {
        match self {
            Listener::Tcp(listener) => listen_again(listener).map(Listener::Tcp),
            #[cfg(unix)]
            Listener::Unix(listener) => {
                let socket = socket2::SockRef::from(listener);
                socket.listen(BACKLOG)?;
                Listener::new(Bound::Unix(sys::unix_listener(socket.try_clone()?)?))
            }
            #[cfg(not(unix))]
            Listener::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// A connection and its address: a client that has gone again is still known by its address.
    async fn accept(&self) -> io::Result<(Stream, Option<IpAddr>)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                Ok((Stream::Tcp(stream), Some(from.ip())))
            }
            Listener::Unix(listener) => Ok((Stream::Unix(listener.accept().await?.0), None)),
        }
    }
}

/// Paused connections.
#[derive(Default)]
pub struct Before {
    /// To continue.
    pub parked: Vec<Parked>,
    /// Returns those that were not in time.
    pub busy: Option<JoinHandle<Vec<Parked>>>,
}

impl Before {
    /// The next late ones; never resolves without any. Cancel-safe.
    async fn late(&mut self) -> Vec<Parked> {
        let Some(busy) = &mut self.busy else { return std::future::pending().await };
        let late = busy.await;
        self.busy = None;
        // A task that panicked has logged it.
        late.unwrap_or_default()
    }
}

/// The shared state of a listener's connections.
struct Door {
    shared: Arc<Shared>,
    updates: watch::Receiver<StreamSource>,
    orders: watch::Receiver<Order>,
    places: Arc<Admission>,
    refusals: Refusals,
    replaced: Refusals,
    failures: Refusals,
    connections: JoinSet<Option<Parked>>,
}

impl Door {
    /// Continues a connection that has a slot.
    fn go_on(&mut self, parked: Parked) {
        let slot = self.places.admit_anyway(slot_key(parked.peer_key()));
        let source = self.updates.borrow().intake.source();
        let share = shares::take(source, parked.peer_key());
        self.serve(parked, (slot, share));
    }

    fn serve(&mut self, mut parked: Parked, place: (ConnectionSlot, (Share, Permit))) {
        let (slot, share) = place;
        if parked.is_of_subscribers() {
            return self.serve_subscriber(parked, (slot, share));
        }
        let reader = self.shared.readers.deal();
        let moved = reader.elsewhere().map_or(Ok(()), |runtime| parked.move_to(runtime));
        if let Err(error) = moved {
            return self.closed_instead_of_moved(&error);
        }
        let served = parked.go_on(Arc::clone(&self.shared), self.updates.clone(), self.orders.clone(), slot);
        let runtime = reader.runtime().clone();
        let task = async move {
            let at_rest = served.await;
            drop((share, reader));
            at_rest
        };
        self.connections.spawn_on(task, &runtime);
    }

    /// The same for a connection of the thread of subscribers.
    fn serve_subscriber(&mut self, mut parked: Parked, (slot, share): (ConnectionSlot, (Share, Permit))) {
        let runtime = self.shared.side_threads.subscribers.runtime();
        let moved = runtime.and_then(|runtime| parked.move_to(&runtime).map(|()| runtime));
        let runtime = match moved {
            Ok(runtime) => runtime,
            Err(error) => return self.closed_instead_of_moved(&error),
        };
        let served = parked.go_on(Arc::clone(&self.shared), self.updates.clone(), self.orders.clone(), slot);
        let task = async move {
            let at_rest = served.await;
            drop(share);
            at_rest
        };
        self.connections.spawn_on(task, &runtime);
    }

    fn closed_instead_of_moved(&self, error: &io::Error) {
        let source = self.updates.borrow();
        source.account.connections_broken.fetch_add(1, Relaxed);
        if let Some(times) = self.failures.note(Clock::mono_ns()) {
            tracing::warn!(
                "{}: a connection was closed, because its reader thread cannot take it: {error} ({times} times). {}",
                shown(&source.listen),
                descriptors::advice()
            );
        }
    }

    /// Serves a new connection, if there is a slot for it.
    fn take(&mut self, (stream, from): (Stream, Option<IpAddr>)) {
        // Read now: it may have changed since the last connection.
        let source = self.updates.borrow().clone();
        let plan = &source.plan;
        let limits = Limits { all: plan.connections_max, per_peer: plan.connections_per_peer_max() };
        let client = Client::of(&stream, from);
        let peer = client.key;
        let of_all = Arc::clone(&self.shared.wiring.load().plan);
        // Before the slot: no connection is replaced for one without a descriptor.
        let share = shares::try_take(source.intake.source(), peer, &of_all);
        let key = slot_key(peer);
        let slot = if share.is_ok() && self.leaving() < LEAVING_MAX {
            self.places.admit_or_replace_silent(key, limits, Clock::mono_ns(), silent_ns(plan))
        } else {
            self.places.admit(key, limits).map(|slot| (slot, None))
        };
        match (slot, share) {
            (Ok((slot, replaced)), Ok(share)) => {
                if let Some(most) = replaced {
                    self.log_replaced(&source, most, peer);
                }
                source.account.connections_accepted.fetch_add(1, Relaxed);
                let parked = Parked::begin(stream, client, source, &self.shared);
                self.serve(parked, (slot, share));
            }
            (Ok(_slot), Err(short)) => self.refuse_at_descriptors(&source, short, peer),
            (Err(full), _) => self.refuse(&source, from, full),
        }
    }

    /// Replaced connections that are not closed yet.
    fn leaving(&self) -> usize {
        self.connections.len().saturating_sub(self.places.open())
    }

    fn log_replaced(&self, source: &StreamSource, (most, had): (PeerKey, usize), by: PeerKey) {
        let Some(replaced) = self.replaced.note(Clock::mono_ns()) else { return };
        tracing::warn!(
            "source `{}` has {} connections; {most} has most, {had}, and one that was idle was closed in favour of {by}; \
             raise `max_connections` if you need all of them ({replaced} replaced since the last message)",
            source.plan.name,
            source.plan.connections_max
        );
    }

    fn refuse(&self, source: &StreamSource, from: Option<IpAddr>, full: Full) {
        let StreamSource { plan, account, .. } = source;
        let count = match full {
            Full::All => &account.connections_refused,
            Full::PerPeer => &account.connections_refused_per_peer,
        };
        count.fetch_add(1, Relaxed);
        let Some(refused) = self.refusals.note(Clock::mono_ns()) else { return };
        let (name, all, of_peer) = (&plan.name, plan.connections_max, plan.connections_per_peer_max());
        match (full, from) {
            (Full::PerPeer, Some(from)) => tracing::warn!(
                "source `{name}` has {of_peer} connections of {} and refuses more: raise `max_connections_per_peer` \
                 if you need more ({refused} refused since the last message)",
                from.to_canonical()
            ),
            _ => tracing::warn!(
                "source `{name}` has {all} connections and refuses more: raise `max_connections`{} \
                 ({refused} refused since the last message)",
                self.places.most_as_text()
            ),
        }
    }

    fn refuse_at_descriptors(&self, source: &StreamSource, short: Short, peer: PeerKey) {
        let StreamSource { plan, account, .. } = source;
        let count = match short {
            Short::All => &account.connections_refused,
            Short::PerPeer => &account.connections_refused_per_peer,
        };
        count.fetch_add(1, Relaxed);
        let Some(refused) = self.refusals.note(Clock::mono_ns()) else { return };
        let (name, advice) = (&plan.name, descriptors::advice());
        match short {
            Short::All => {
                let most = shares::most().map(|(peer, count)| format!("; {peer} has most, {count}"));
                tracing::warn!(
                    "source `{name}` refuses connections: all file descriptors for connections of sources are in use{}. \
                     {advice} ({refused} refused since the last message)",
                    most.unwrap_or_default()
                );
            }
            Short::PerPeer => tracing::warn!(
                "source `{name}` refuses connections of {peer}, which has {}, half of the limit for all sources. {advice} \
                 ({refused} refused since the last message)",
                shares::of_peer_max()
            ),
        }
    }

    /// Logs rejections that were not logged yet, after a minute or at the end.
    fn tell_rest(&self, is_end: bool) {
        if let Some(refused) = self.refusals.rest(Clock::mono_ns(), is_end) {
            let name = &self.updates.borrow().plan.name;
            tracing::warn!("source `{name}` refused {refused} more connections since the last message");
        }
        if let Some(replaced) = self.replaced.rest(Clock::mono_ns(), is_end) {
            let name = &self.updates.borrow().plan.name;
            tracing::warn!(
                "source `{name}` replaced {replaced} more idle connections since the last message"
            );
        }
    }

    /// No connection is accepted here any more, unless the socket listens again.
    fn closed(&self, error: &io::Error, pause: Duration) {
        let source = self.updates.borrow();
        source.account.read_errors.fetch_add(1, Relaxed);
        if let Some(times) = self.failures.note(Clock::mono_ns()) {
            tracing::error!(
                "{} is closed: {error} ({times} attempts); listening again in {} ms",
                shown(&source.listen),
                pause.as_millis()
            );
        }
    }

    /// Accepting has failed: returns whether to pause before the next attempt.
    fn failed(&self, error: &io::Error) -> bool {
        let source = self.updates.borrow();
        if !sys::is_out_of_resources(error) {
            // The client disconnected before it was accepted.
            source.account.connections_broken.fetch_add(1, Relaxed);
            tracing::debug!("accept on {}: {error}", shown(&source.listen));
            return !matches!(
                error.kind(),
                io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
            );
        }
        if let Some(times) = self.failures.note(Clock::mono_ns()) {
            let at = shown(&source.listen);
            tracing::warn!(
                "cannot accept connections on {at}: {error} ({times} attempts); they wait in the kernel. {}",
                descriptors::advice()
            );
        }
        true
    }
}

/// Accepts connections until another order comes; then lets the open ones end, or returns them paused. Changed limits
/// and acknowledgements in `updates` apply to later connections, changed parsing applies to all.
///
/// # Errors
/// When the listener cannot be used at all.
pub async fn accept(
    bound: Bound,
    updates: watch::Receiver<StreamSource>,
    shared: Arc<Shared>,
    mut orders: watch::Receiver<Order>,
    mut before: Before,
) -> io::Result<Vec<Parked>> {
    let mut listener = Listener::new(bound)?;
    let mut again_in = ACCEPT_PAUSE;
    let mut door = Door {
        shared,
        updates,
        orders: orders.clone(),
        places: Arc::default(),
        refusals: Refusals::default(),
        replaced: Refusals::default(),
        failures: Refusals::default(),
        connections: JoinSet::new(),
    };
    before.parked.drain(..).for_each(|parked| door.go_on(parked));
    let mut rest = tokio::time::interval(TELL_REST_EVERY);
    rest.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let order = loop {
        // All branches are cancel-safe: nothing is accepted when another one wins.
        let stream = tokio::select! {
            biased;
            order = ordered(&mut orders) => break order,
            Some(_ended) = door.connections.join_next(), if !door.connections.is_empty() => continue,
            late = before.late() => {
                late.into_iter().for_each(|parked| door.go_on(parked));
                continue;
            }
            _ = rest.tick() => {
                door.tell_rest(false);
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match stream {
            Ok(stream) => {
                again_in = ACCEPT_PAUSE;
                door.take(stream);
            }
            Err(error) if sys::is_final_for_reading(&error) => {
                door.closed(&error, again_in);
                // Cancel-safe: nothing has been done when the other one wins.
                tokio::select! {
                    biased;
                    order = ordered(&mut orders) => break order,
                    () = tokio::time::sleep(again_in) => {}
                }
                again_in = LISTEN_AGAIN_PAUSE_MAX.min(2 * again_in);
                // This failure would repeat at the next accept.
                if let Ok(again) = listener.again() {
                    tracing::info!("{} listens again", shown(&door.updates.borrow().listen));
                    listener = again;
                }
            }
            Err(error) if door.failed(&error) => tokio::time::sleep(ACCEPT_PAUSE).await,
            Err(_gone) => {}
        }
    };
    // Connections in the kernel's backlog: their data counts, too.
    let waiting_max = if order == Order::HandOver { 0 } else { BACKLOG_MAX };
    for _waiting in 0..waiting_max {
        // Cancel-safe; without a connection in the backlog it does not wait.
        let accepted = tokio::time::timeout(Duration::ZERO, listener.accept());
        let Ok(Ok(stream)) = accepted.await else { break };
        door.take(stream);
    }
    door.tell_rest(true);
    while before.busy.is_some() {
        before.late().await.into_iter().for_each(|parked| door.go_on(parked));
    }
    let mut at_rest = Vec::new();
    while let Some(ended) = door.connections.join_next().await {
        at_rest.extend(ended.ok().flatten());
    }
    Ok(at_rest)
}

/// The key for a connection's slot: clients of a unix socket share only the total limit.
fn slot_key(peer: PeerKey) -> PeerKey {
    match peer {
        PeerKey::V4(_) | PeerKey::V6(_) => peer,
        PeerKey::Local | PeerKey::Process { .. } => PeerKey::Local,
    }
}

fn silent_ns(plan: &SourcePlan) -> u64 {
    SILENT.min(idle_timeout(plan) / 2).as_nanos() as u64
}

impl StreamSource {
    /// Counts and logs connections from another process that are above the limits here.
    pub fn refuse_handed_over(&self, refused: usize) {
        if refused == 0 {
            return;
        }
        self.account.connections_refused.fetch_add(refused as u64, Relaxed);
        tracing::warn!(
            "source `{}` keeps {} connections in the hot restart and refuses {refused} more: raise `max_connections`",
            self.plan.name,
            self.plan.connections_max
        );
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpStream;

    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_client_that_disconnected_before_accept_has_its_own_key() {
        let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let bound = crate::daemon::shared::bind::listen_tcp(any).expect("a port is free");
        let at = bound.local_addr().expect("it is bound");
        let listener = Listener::new(Bound::Tcp(bound)).expect("it is a listener");
        let client = std::net::TcpStream::connect(at).expect("it listens");
        socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("it is a socket");
        drop(client);
        let (stream, from) = listener.accept().await.expect("somebody came");
        // The reset has arrived when the socket is readable.
        stream.readable().await.expect("it is registered");
        assert_eq!(stream.peer_ip(), None, "the socket does not know it any more");
        assert_eq!(Client::of(&stream, from).key, PeerKey::V4(0x7f00_0001));
    }

    #[test]
    fn clients_of_a_unix_socket_share_their_slots() {
        let process = PeerKey::Process { uid: 1, pid: 2 };
        let table = [
            (PeerKey::V4(1), PeerKey::V4(1)),
            (PeerKey::V6(1), PeerKey::V6(1)),
            (process, PeerKey::Local),
            (PeerKey::Local, PeerKey::Local),
        ];
        for (peer, key) in table {
            assert_eq!(slot_key(peer), key);
        }
    }

    #[tokio::test]
    async fn a_listener_that_was_closed_from_outside_listens_again() {
        // An explicit port stays the socket's; one chosen by the system would not.
        let any = std::net::TcpListener::bind("127.0.0.77:0").expect("a free port");
        let at = any.local_addr().expect("it is bound");
        drop(any);
        let bound = crate::daemon::shared::bind::listen_tcp(at).expect("it was free just now");
        let outside = bound.try_clone().expect("a descriptor is free");
        let listener = Listener::new(Bound::Tcp(bound)).expect("it is a listener");
        for _ in 0..2 {
            let client = TcpStream::connect(at).await.expect("it listens");
            drop((client, listener.accept().await.expect("somebody came")));
        }
        socket2::SockRef::from(&outside).shutdown(std::net::Shutdown::Both).expect("it is a socket");
        let error = listener.accept().await.err().expect("it is closed");
        assert!(sys::is_final_for_reading(&error), "{error}");
        assert!(TcpStream::connect(at).await.is_err(), "nobody is there");
        let again = listener.again().expect("it is the same socket");
        drop(listener);
        for _ in 0..2 {
            let mut client = TcpStream::connect(at).await.expect("it listens again");
            client.write_all(b"a:1|c\n").await.expect("it is open");
            let (stream, from) = again.accept().await.expect("somebody came");
            assert!(from.is_some_and(|from| from.is_loopback()));
            stream.readable().await.expect("it is open");
            assert_eq!(stream.try_read(&mut [0; 9]).expect("something is there"), 6);
        }
        // It waits for the next connection, without a busy loop.
        let mut next = std::pin::pin!(again.accept());
        let poll = next.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        assert!(poll.is_pending());
    }
}
