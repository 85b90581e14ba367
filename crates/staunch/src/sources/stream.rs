//! Connections of a source: read, pass whole lines to the shard, wait when it is full.
//!
//! Path of a line: `accept` -> [`Plain::serve`] -> `Intake::stream` -> `Exchange` -> the shard's thread. Not here:
//! accepting (`accept`), framing and parsing (`pipeline`), datagrams (`daemon::worker`), acknowledgements (`answered`),
//! connections between two processes (`parked`).
//! Invariants: a connection waits for room in the exchange before it reads, so its peer has to wait, and meanwhile it
//! holds only its incomplete line. The results of a read are in memory of the thread, and are passed on before the next
//! await. Messages may decode to more than one batch, so their connections take turns ([`Shared::turns`]). All
//! connections take turns when reads are slow ([`Shared::floor`]).

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use config::plan::{Listen, SourcePlan};
use model::{Batches, Dropped, Outcome, PeerKey, SourceAccount};
use pipeline::{Broken, Intake, IntakeMaker, Scratch};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::admission::ConnectionSlot;
use crate::daemon::shared::Shared;
use crate::daemon::shared::complaints::Complaints;
use crate::daemon::shared::names::shown;
use crate::daemon::shared::turns::Place;
use crate::sources::unfinished::tell_full;
use crate::sources::wrapping::{Wrapping, tell_closed, tell_failed};
use sys::UnixStream;
use sys::clock::Clock;

/// Most bytes of one read.
const READ_BYTES: usize = 64 * 1024;

/// A client that reads none of its replies for this long is closed, with any `idle_timeout`.
pub(super) const UNREAD_MAX: Duration = Duration::from_secs(30);

/// Ordinary lines leave less unfinished after a read.
const MUCH_UNFINISHED_BYTES: usize = 4096;

/// Most bytes of a connection during a stop: data that its peer had already sent. A peer that continues to send does
/// not delay the end.
const LAST_READ_BYTES_MAX: u64 = 8 << 20;

thread_local! {
    // One buffer for all connections of the runtime's thread: it is only used between two awaits.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
    // The same for the results of a read.
    static PARSED: RefCell<Scratch> = RefCell::new(Scratch::default());
}

/// The data of a listener's tasks.
#[derive(Clone, Debug)]
pub struct StreamSource {
    /// Its plan.
    pub plan: Arc<SourcePlan>,
    /// Its address.
    pub listen: Listen,
    /// Its account.
    pub account: Arc<SourceAccount>,
    /// TLS settings of its connections, if any.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Creates the intake of a connection.
    pub intake: IntakeMaker,
    /// The receiver of log messages about bad lines.
    pub complaints: Complaints,
}

/// The order for a listener and its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Accept connections and read them.
    Serve,
    /// End: received data still counts.
    Stop,
    /// Pause: this process or another one continues the connections. New ones wait in the backlog.
    HandOver,
    /// Pause after reading received data, including new connections in the backlog: the other process does not have
    /// this listener, and it ends here unless that process fails.
    Empty,
}

pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.readable().await,
            Stream::Unix(stream) => stream.readable().await,
        }
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_read(buffer),
            Stream::Unix(stream) => stream.try_read(buffer),
        }
    }

    pub(super) async fn writable(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.writable().await,
            Stream::Unix(stream) => stream.writable().await,
        }
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.try_write(bytes),
            Stream::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Registers it with another runtime, whose tasks read it from now on.
    ///
    /// # Errors
    /// When this process may not open another descriptor, or the runtime cannot register it. It is unchanged then.
    pub(super) fn move_to(&mut self, runtime: &Handle) -> io::Result<()> {
        // Registration uses the current context.
        let _context = runtime.enter();
        *self = match self {
            Stream::Tcp(stream) => {
                let socket = socket2::SockRef::from(&*stream).try_clone()?;
                Stream::Tcp(TcpStream::from_std(socket.into())?)
            }
            #[cfg(unix)]
            Stream::Unix(stream) => {
                let socket = socket2::SockRef::from(&*stream).try_clone()?;
                Stream::Unix(UnixStream::from_std(socket.into())?)
            }
            #[cfg(not(unix))]
            Stream::Unix(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(())
    }

    /// A connection that another process accepted at `listen`.
    #[cfg(target_os = "linux")]
    pub(super) fn adopted(fd: sys::OwnedFd, listen: &Listen) -> io::Result<Stream> {
        Ok(match listen {
            Listen::Tcp(_) => {
                let stream = std::net::TcpStream::from(fd);
                stream.set_nonblocking(true)?;
                Stream::Tcp(TcpStream::from_std(stream)?)
            }
            _ => {
                let stream = std::os::unix::net::UnixStream::from(fd);
                stream.set_nonblocking(true)?;
                Stream::Unix(UnixStream::from_std(stream)?)
            }
        })
    }

    /// Its socket.
    #[cfg(target_os = "linux")]
    pub(super) fn as_fd(&self) -> sys::BorrowedFd<'_> {
        use sys::AsFd;
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }

    /// Address of its client; `None` at a unix socket, or when the client has gone.
    #[cfg(target_os = "linux")]
    pub(super) fn peer_ip(&self) -> Option<IpAddr> {
        match self {
            Stream::Tcp(stream) => Some(stream.peer_addr().ok()?.ip()),
            Stream::Unix(_) => None,
        }
    }

    /// The client's process at a unix socket.
    pub(super) fn process_key(&self) -> PeerKey {
        match self {
            Stream::Tcp(_) => PeerKey::Local,
            #[cfg(unix)]
            Stream::Unix(stream) => stream.peer_cred().map_or(PeerKey::Local, |peer| PeerKey::Process {
                uid: peer.uid(),
                pid: peer.pid().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0),
            }),
            #[cfg(not(unix))]
            Stream::Unix(_) => PeerKey::Local,
        }
    }

    /// The client for the log; less is known of one that has gone.
    pub(super) fn shown_peer(&self, from: PeerKey) -> String {
        let address = match self {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            Stream::Unix(_) => None,
        };
        let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        address.map_or_else(|| from.to_string(), |address| canonical(address).to_string())
    }

    /// Sends replies without delay.
    pub(super) fn send_at_once(&self) {
        if let Stream::Tcp(stream) = self {
            // Otherwise they arrive a little later.
            let _refused = stream.set_nodelay(true);
        }
    }

    /// Makes the client read the end after the last reply. A unix socket needs no such call.
    pub(super) fn end_writing(&self) {
        if let Stream::Tcp(stream) = self {
            // It fails only when the client is gone.
            let _gone = socket2::SockRef::from(stream).shutdown(std::net::Shutdown::Write);
        }
    }
}

/// A connection without acknowledgements.
pub(super) struct Plain {
    pub(super) stream: Stream,
    pub(super) from: PeerKey,
    pub(super) intake: Intake,
    pub(super) source: StreamSource,
    /// `None` without TLS and compression.
    pub(super) wrapping: Option<Box<Wrapping>>,
}

impl Plain {
    /// Serves it until its end, or until it must pause.
    pub(super) async fn serve(
        mut self: Box<Self>,
        shared: &Shared,
        updates: &mut watch::Receiver<StreamSource>,
        orders: &mut watch::Receiver<Order>,
        slot: &ConnectionSlot,
    ) -> Option<Box<Plain>> {
        let end = match self.shake_hands(orders).await {
            Ok(()) => self.read_to_end(shared, updates, orders, slot).await,
            Err(end) => end,
        };
        slot.wait_ends();
        if matches!(end, End::AtRest) {
            return Some(self);
        }
        note_end(&end, &self.source, (&self.stream, self.from));
        // It has just had its turn to read. With room in the exchange, it needs no other turn, for which thousands of
        // ended connections would wait, each with an incomplete line.
        if !shared.exchange.has_room(self.intake.source()) {
            shared.floor().turn(self.intake.source(), self.from).await;
        }
        let last = shared.floor().run(|| close(&mut self.intake, matches!(end, End::Orderly)));
        complain(&mut self.intake, &self.source, (&self.stream, self.from));
        let _taken = hand_on(last, self.from, shared).await;
        None
    }

    /// The TLS handshake of an encrypted connection.
    async fn shake_hands(&mut self, orders: &mut watch::Receiver<Order>) -> Result<(), End> {
        let Plain { stream, from, source, wrapping, .. } = self;
        let Some(wrapping) = wrapping.as_mut().filter(|wrapping| wrapping.is_handshaking()) else {
            return Ok(());
        };
        // A connection that leaves its handshake is closed: it has no data yet.
        let done = tokio::select! {
            biased;
            _order = ordered(orders) => return Err(End::Stopped),
            done = wrapping.shake_hands((stream, *from)) => done,
        };
        done.map_err(|why| {
            let failed = 1 + source.account.handshakes_failed.fetch_add(1, Relaxed);
            tell_failed(&source.plan.name, &stream.shown_peer(*from), &why, failed);
            End::Broken(why)
        })
    }

    async fn read_to_end(
        &mut self,
        shared: &Shared,
        updates: &mut watch::Receiver<StreamSource>,
        orders: &mut watch::Receiver<Order>,
        slot: &ConnectionSlot,
    ) -> End {
        let Plain { stream, from, intake, source, wrapping } = self;
        let idle = idle_timeout(&source.plan);
        loop {
            // Data that was read but not decompressed comes first: the socket need not be readable for it.
            let has_more = wrapping.as_ref().is_some_and(|wrapping| wrapping.has_more());
            slot.wait_begins(Clock::mono_ns());
            // All branches are cancel-safe: nothing has been read when another one wins. Data that arrived before its
            // slot was needed is read first.
            let ready = tokio::select! {
                biased;
                order = ordered(orders) => Err(order),
                () = std::future::ready(()), if has_more => Ok(Ok(Ok(()))),
                ready = tokio::time::timeout(idle, stream.readable()) => Ok(ready),
                _leave = slot.asked_to_leave() => return End::Replaced,
            };
            slot.wait_ends();
            let ready = match ready {
                Ok(ready) => ready,
                // Data between the socket and the lines cannot be passed on: such a connection ends here.
                Err(Order::HandOver) if wrapping.is_none() => return End::AtRest,
                Err(Order::Empty) if wrapping.is_none() => return self.last_read(shared).await.at_rest(),
                Err(_stop) => return self.last_read(shared).await,
            };
            match ready {
                Err(_elapsed) => {
                    return End::Broken(format!("nothing received for {} ms", source.plan.idle_timeout_ms));
                }
                Ok(Err(error)) => return End::Broken(error.to_string()),
                Ok(Ok(())) => {}
            }
            // Cancel-safe: nothing is read while it waits.
            let _turn = tokio::select! {
                biased;
                order = ordered(orders) => match order {
                    Order::HandOver if wrapping.is_none() => return End::AtRest,
                    Order::Empty if wrapping.is_none() => return self.last_read(shared).await.at_rest(),
                    _stop => return self.last_read(shared).await,
                },
                turn = turn_to_read(intake, *from, shared) => turn,
                // Data arrived just when it was asked to leave, and there is no room for it: it is not read.
                _leave = slot.asked_to_leave() => return End::Replaced,
            };
            follow(intake, updates);
            // After a large unfinished part, it reads again at once: if the peer has gone meanwhile, as thousands may,
            // the connection holds nothing until its next turn.
            for _ in 0..2 {
                let batch = match shared.floor().run(|| read_some(stream, wrapping.as_deref_mut(), intake)) {
                    Ok(Some(batch)) => batch,
                    Ok(None) => break,
                    Err(end) => {
                        if let (End::Broken(why), true) =
                            (&end, wrapping.as_ref().is_some_and(|wrapping| wrapping.is_tls_broken()))
                        {
                            tell_closed(&source.plan.name, &stream.shown_peer(*from), why);
                        }
                        return end;
                    }
                };
                complain(intake, source, (stream, *from));
                let _taken = hand_on_all(batch, intake, (source, stream, *from), shared).await;
                if let Some(broken) = intake.broken() {
                    return End::Unreadable(broken);
                }
                if let Err(end) = reply(stream, intake, orders, slot).await {
                    return end;
                }
                if wrapping.is_some() || intake.memory_bytes() < MUCH_UNFINISHED_BYTES {
                    break;
                }
            }
            if slot.is_to_leave() {
                return End::Replaced;
            }
            // A socket with steady input is always readable, and checking it never waits: without this, one busy peer
            // would keep the thread from every other connection, from the outputs and from signals.
            tokio::task::yield_now().await;
        }
    }

    /// At a stop: received data still counts, up to its last whole line.
    async fn last_read(&mut self, shared: &Shared) -> End {
        let Plain { stream, from, intake, wrapping, source } = self;
        let mut reads = 0;
        let until_ns = last_read_until_ns(shared);
        loop {
            let has_more = wrapping.as_ref().is_some_and(|wrapping| wrapping.has_more());
            // Data of a compressed stream is limited by the bytes read, and counts unless it takes too long.
            if reads > 0 && Clock::mono_ns() >= until_ns {
                if has_more {
                    intake.reject_compression("the stop left no time to decompress the rest");
                }
                return End::Stopped;
            }
            if reads == last_reads() && !has_more {
                return End::Stopped;
            }
            reads += u64::from(!has_more || reads == 0);
            let _turn = turn_to_read(intake, *from, shared).await;
            if shared.exchange.is_closed() && !has_more {
                // Nobody accepts it any more: unread data is not lost here, because its client sees a reset.
                return End::Stopped;
            }
            let batch = match shared.floor().run(|| read_some(stream, wrapping.as_deref_mut(), intake)) {
                Ok(Some(batch)) => batch,
                Ok(None) => return End::Stopped,
                Err(end) => return end,
            };
            let _taken = hand_on_all(batch, intake, (source, stream, *from), shared).await;
            if shared.exchange.is_closed() {
                return End::Stopped;
            }
            // Other tasks have their turn, including the timer of the stop.
            tokio::task::yield_now().await;
        }
    }
}

/// Writes the reply of the source's protocol to the last read. The client is not read until it has taken the reply.
async fn reply(
    stream: &Stream,
    intake: &mut Intake,
    orders: &mut watch::Receiver<Order>,
    slot: &ConnectionSlot,
) -> Result<(), End> {
    let replies = intake.take_protocol_replies();
    let mut rest = &replies[..];
    while !rest.is_empty() {
        match stream.try_write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // All branches are cancel-safe: nothing has been written when another one wins. A client that does not
                // read gets no more during a stop.
                let ready = tokio::select! {
                    biased;
                    _order = ordered(orders) => return Ok(()),
                    ready = tokio::time::timeout(UNREAD_MAX, stream.writable()) => ready,
                    _leave = slot.asked_to_leave() => return Err(End::Replaced),
                };
                match ready {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => return Err(End::Broken(error.to_string())),
                    Err(_elapsed) => {
                        return Err(End::Broken(format!("it read no reply for {} s", UNREAD_MAX.as_secs())));
                    }
                }
            }
            Err(error) => return Err(End::Broken(error.to_string())),
        }
    }
    Ok(())
}

/// One read, through TLS and compression if there are any.
fn read_some(
    stream: &Stream,
    wrapping: Option<&mut Wrapping>,
    intake: &mut Intake,
) -> Result<Option<Batches<'static>>, End> {
    match wrapping {
        None => read_once(stream, intake),
        Some(wrapping) => wrapping.read_once(stream, intake),
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.source.account.connections_open.fetch_sub(1, Relaxed);
    }
}

/// Resolves when the order is no longer to serve. Cancel-safe.
pub(super) async fn ordered(orders: &mut watch::Receiver<Order>) -> Order {
    // A closed channel also means the end.
    orders.wait_for(|order| *order != Order::Serve).await.map_or(Order::Stop, |order| *order)
}

/// How a connection ended.
pub(super) enum End {
    /// It has not ended: it is paused and unchanged.
    AtRest,
    /// The peer closed it: a last line without a line feed is complete.
    Orderly,
    /// It was closed without TLS's close message, so its peer may have had more to send.
    CutOff,
    /// We stopped first: the rest of its last line may be in flight.
    Stopped,
    /// It was silent for long, and its slot was given to another connection.
    Replaced,
    /// Reset, or a timeout.
    Broken(String),
    /// The rest cannot be parsed in its source's format.
    Unreadable(Broken),
    /// A compressed stream that cannot be decompressed.
    Unpackable(&'static str),
    /// The client got `err`.
    Failed,
}

impl End {
    /// After the last read of a paused connection: its peer may have ended it meanwhile.
    pub(super) fn at_rest(self) -> End {
        match self {
            End::Stopped => End::AtRest,
            ended => ended,
        }
    }
}

/// The idle timeout of a connection.
pub(super) fn idle_timeout(plan: &SourcePlan) -> Duration {
    match plan.idle_timeout_ms {
        0 => Duration::from_secs(u64::from(u32::MAX)),
        ms => Duration::from_millis(ms),
    }
}

/// Changed parsing options of a reload apply from the next read on.
pub(super) fn follow(intake: &mut Intake, updates: &mut watch::Receiver<StreamSource>) {
    // A removed listener sends no changes.
    if updates.has_changed().unwrap_or(false) {
        intake.follow(&updates.borrow_and_update().intake);
    }
}

/// When a stopping connection begins no further read.
pub(super) fn last_read_until_ns(shared: &Shared) -> u64 {
    Clock::mono_ns() + shared.last_read_max().as_nanos() as u64
}

/// Most reads of a stopping connection.
pub(super) fn last_reads() -> u64 {
    LAST_READ_BYTES_MAX / READ_BYTES as u64
}

/// One read. `None` when there was nothing to read.
pub(super) fn read_once(stream: &Stream, intake: &mut Intake) -> Result<Option<Batches<'static>>, End> {
    SCRATCH.with_borrow_mut(|scratch| {
        let Some(len) = read_bytes(stream, scratch)? else { return Ok(None) };
        let mut batch = take_apart(&scratch[..len], intake);
        batch.ack = intake.mark();
        Ok(Some(batch))
    })
}

/// Parses the next `bytes` of the connection.
pub(super) fn take_apart(bytes: &[u8], intake: &mut Intake) -> Batches<'static> {
    let batch = PARSED.with_borrow_mut(|parsed| intake.stream(bytes, Clock::now(), parsed).into_owned());
    intake.settle_too_long();
    batch
}

/// Counts and logs a connection whose data cannot be processed any further, with or without acknowledgements.
pub(super) fn note_end(end: &End, source: &StreamSource, (stream, from): (&Stream, PeerKey)) {
    let why = match end {
        End::Broken(why) => why,
        End::Unreadable(broken) => {
            if let Broken::NoRoom(full) = broken {
                tell_full(source, (stream, from), *full);
            }
            broken.why()
        }
        End::Unpackable(why) => why,
        End::Replaced => {
            source.account.connections_replaced.fetch_add(1, Relaxed);
            return;
        }
        End::AtRest | End::Orderly | End::CutOff | End::Stopped | End::Failed => return,
    };
    source.account.connections_broken.fetch_add(1, Relaxed);
    tracing::debug!("connection of {} to {}: {why}", stream.shown_peer(from), shown(&source.listen));
}

/// The last batch of a connection, see [`Intake::close`].
pub(super) fn close(intake: &mut Intake, orderly: bool) -> Batches<'static> {
    PARSED.with_borrow_mut(|parsed| intake.close(orderly, Clock::now(), parsed).into_owned())
}

/// Waits until it is the connection's turn and its data can be passed on at once. The data must be passed on before the
/// next await. Cancel-safe.
pub(super) async fn turn_to_read(intake: &Intake, from: PeerKey, shared: &Shared) -> Option<Place> {
    let turn = match intake.takes_messages() {
        true => Some(shared.turns.wait(intake.source(), from).await),
        false => None,
    };
    shared.floor().turn(intake.source(), from).await;
    turn
}

/// Passes on the results of one read; messages piece by piece. False when nobody accepts them any more.
async fn hand_on_all(
    batch: Batches<'static>,
    intake: &mut Intake,
    (source, stream, from): (&StreamSource, &Stream, PeerKey),
    shared: &Shared,
) -> bool {
    let mut taken = hand_on(batch, from, shared).await;
    while intake.has_more() {
        // One message may have many pieces, and other tasks have their turn.
        tokio::task::yield_now().await;
        shared.floor().turn(intake.source(), from).await;
        let batch = shared
            .floor()
            .run(|| PARSED.with_borrow_mut(|parsed| intake.more(Clock::now(), parsed).into_owned()));
        complain(intake, source, (stream, from));
        taken = hand_on(batch, from, shared).await;
    }
    taken
}

/// The same for bytes that are not lines yet.
pub(super) fn read_scratch<R>(
    stream: &Stream,
    take: impl FnOnce(&[u8]) -> Result<R, End>,
) -> Result<Option<R>, End> {
    SCRATCH.with_borrow_mut(|scratch| match read_bytes(stream, scratch)? {
        Some(len) => take(&scratch[..len]).map(Some),
        None => Ok(None),
    })
}

fn read_bytes(stream: &Stream, into: &mut [u8]) -> Result<Option<usize>, End> {
    match stream.try_read(into) {
        Ok(0) => Err(End::Orderly),
        Ok(len) => Ok(Some(len)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(End::Broken(error.to_string())),
    }
}

/// Passes a batch of the peer `from` to the shard; waits for room, in turn with connections that want to read. False
/// when nobody accepts it any more: it was dropped.
pub(super) async fn hand_on(batch: Batches<'static>, from: PeerKey, shared: &Shared) -> bool {
    let mut batch = batch;
    if batch.is_empty() {
        return true;
    }
    match shared.floor().send(from, batch) {
        Ok(()) => {
            shared.shard.wake();
            return true;
        }
        Err(back) => batch = back,
    }
    let source = batch.source;
    // It may take long until there is room, and the source's account must be balanced all the time.
    let _outside = shared.exchange.outside(source, batch.records());
    while !shared.exchange.is_closed() {
        // Cancel-safe: the batch is ours until it is accepted.
        shared.floor().turn(source, from).await;
        let sent = shared.floor().send(from, batch);
        shared.floor().pass();
        match sent {
            Ok(()) => {
                shared.shard.wake();
                return true;
            }
            Err(back) => batch = back,
        }
    }
    batch.settle(Outcome::Dropped(Dropped::Stopped));
    false
}

pub(super) fn complain(intake: &mut Intake, source: &StreamSource, (stream, from): (&Stream, PeerKey)) {
    while let Some(complaint) = intake.take_complaint() {
        let from = format!("{} at {}", stream.shown_peer(from), shown(&source.listen));
        (source.complaints)(&complaint, &from);
    }
}
