//! Connections of a source: read, hand whole lines to the shard, wait when it is full.
//!
//! Path of a line: `accept` -> [`Plain::serve`] -> `Intake::stream` -> `Exchange` -> the shard's thread.
//! Not here: who is accepted (`accept`), framing and parsing (`pipeline`), datagrams (`daemon::worker`), acknowledgements (`answered`),
//! connections between two processes (`parked`).
//! Invariants: a connection waits for room in the exchange before it reads, which makes its peer wait, and so holds its
//! unfinished line while it waits and nothing else; what a read becomes is in memory of the thread, and handed on before the
//! next await. Messages may unfold to more than one batch: their connections have turns ([`Shared::turns`]). All connections have
//! when reads take long ([`Shared::floor`]).

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
use crate::daemon::worker::{Complaints, shown};
use crate::sources::turns::Place;
use crate::sources::unfinished::tell_full;
use crate::sources::wrapping::{Wrapping, tell_closed, tell_failed};
use sys::UnixStream;
use sys::clock::Clock;

/// Bytes that one read takes at most.
const READ_BYTES: usize = 64 * 1024;

/// A client that takes nothing of its replies for so long is closed, however long it may be silent.
pub(super) const UNREAD_MAX: Duration = Duration::from_secs(30);

/// What a read leaves unfinished of ordinary lines is less.
const MUCH_UNFINISHED_BYTES: usize = 4096;

/// Most bytes that a connection may still give while stopping: what its peer had sent before. A peer that goes on
/// sending does not keep us from ending.
const LAST_READ_BYTES_MAX: u64 = 8 << 20;

thread_local! {
    // One buffer for all connections of the runtime's thread: it is in use only between two awaits.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
    // The same for what a read becomes.
    static PARSED: RefCell<Scratch> = RefCell::new(Scratch::default());
}

/// What a listener's tasks need to know.
#[derive(Clone, Debug)]
pub struct StreamSource {
    /// Its plan.
    pub plan: Arc<SourcePlan>,
    /// Where it listens.
    pub listen: Listen,
    /// Its account.
    pub account: Arc<SourceAccount>,
    /// What its connections are encrypted with, if they are.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Makes the intake of a connection.
    pub intake: IntakeMaker,
    /// Where complaints go.
    pub complaints: Complaints,
}

/// What a listener and its connections are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Take connections and read them.
    Serve,
    /// End: what has come already still counts.
    Stop,
    /// Come to rest: this process or another one goes on with what is connected. Who comes from now on waits for it.
    HandOver,
    /// Come to rest when what has come already is read, and with who has come already: the other process does not have
    /// the place, and it ends here unless that process does not go on.
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
    /// When this process may open no further descriptor, or the runtime cannot take it. It stays where it was.
    pub(super) fn move_to(&mut self, runtime: &Handle) -> io::Result<()> {
        // What is registered is registered in this context.
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

    /// A connection that was accepted at `listen` by another process.
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

    /// Address of its client; none at a unix socket, or when the client has gone.
    #[cfg(target_os = "linux")]
    pub(super) fn peer_ip(&self) -> Option<IpAddr> {
        match self {
            Stream::Tcp(stream) => Some(stream.peer_addr().ok()?.ip()),
            Stream::Unix(_) => None,
        }
    }

    /// The process that its client is at a unix socket.
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

    /// The client, for the log: one that has gone is known by less.
    pub(super) fn shown_peer(&self, from: PeerKey) -> String {
        let address = match self {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            Stream::Unix(_) => None,
        };
        let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        address.map_or_else(|| from.to_string(), |address| canonical(address).to_string())
    }

    /// Replies do not wait for more to come.
    pub(super) fn send_at_once(&self) {
        if let Stream::Tcp(stream) = self {
            // Without it they come a little later.
            let _refused = stream.set_nodelay(true);
        }
    }

    /// The client reads the end behind the last reply. A unix socket needs no such thing: what was written is there.
    pub(super) fn end_writing(&self) {
        if let Stream::Tcp(stream) = self {
            // It fails when the client is gone, who reads nothing anyway.
            let _gone = socket2::SockRef::from(stream).shutdown(std::net::Shutdown::Write);
        }
    }
}

/// A connection whose client is told nothing.
pub(super) struct Plain {
    pub(super) stream: Stream,
    pub(super) from: PeerKey,
    pub(super) intake: Intake,
    pub(super) source: StreamSource,
    /// None where its bytes are lines as they come.
    pub(super) wrapping: Option<Box<Wrapping>>,
}

impl Plain {
    /// Serves it to its end, or until it is to come to rest.
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
        // It has just had its turn to read. With room it has no other one, for which thousands that have ended would wait, each
        // with half a line.
        if !shared.exchange.has_room(self.intake.source()) {
            shared.floor().turn(self.intake.source(), self.from).await;
        }
        let last = shared.floor().run(|| close(&mut self.intake, matches!(end, End::Orderly)));
        complain(&mut self.intake, &self.source, (&self.stream, self.from));
        let _taken = hand_on(last, self.from, shared).await;
        None
    }

    /// What comes before the first byte of an encrypted connection.
    async fn shake_hands(&mut self, orders: &mut watch::Receiver<Order>) -> Result<(), End> {
        let Plain { stream, from, source, wrapping, .. } = self;
        let Some(wrapping) = wrapping.as_mut().filter(|wrapping| wrapping.is_handshaking()) else {
            return Ok(());
        };
        // A connection that is left in the middle of it is closed: nothing has come on it.
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
            // What was read and is not unpacked yet comes first: for that the socket need not be readable.
            let has_more = wrapping.as_ref().is_some_and(|wrapping| wrapping.has_more());
            slot.wait_begins(Clock::mono_ns());
            // All branches are cancel-safe: nothing has been read when another one wins. What has come before its place was needed is
            // read first.
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
                // What lies between the socket and the lines can be given to nobody: such a connection ends here.
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
                // It has said something at the moment at which it was asked, and there is no room for that: it is not read.
                _leave = slot.asked_to_leave() => return End::Replaced,
            };
            follow(intake, updates);
            // What leaves much unfinished is read a second time at once: a peer that has gone meanwhile, of which there may be
            // thousands, holds nothing until its next turn.
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
            // A socket that always has more is always readable, and asking it never waits: without this, one busy peer
            // would keep the thread from every other connection, from the outputs and from signals.
            tokio::task::yield_now().await;
        }
    }

    /// When we stop: what the peer has already sent still counts, up to its last whole line.
    async fn last_read(&mut self, shared: &Shared) -> End {
        let Plain { stream, from, intake, wrapping, source } = self;
        let mut reads = 0;
        let until_ns = last_read_until_ns(shared);
        loop {
            let has_more = wrapping.as_ref().is_some_and(|wrapping| wrapping.has_more());
            // What was read of a packed stream is bounded by what was read, and counts unless it takes too long.
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
                // Nobody takes it any more: what is not read is not lost here, and its client sees the connection reset.
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
            // Others have their turn, the timer of the stop among them.
            tokio::task::yield_now().await;
        }
    }
}

/// Writes what the source's protocol replies to the last read. The client is not read while it does not take that.
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
                // All branches are cancel-safe: nothing has been written when another one wins. A client that does not read
                // gets no more while we stop.
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

/// One read, of what stands in between if something does.
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

/// Resolves when the daemon stops. Cancel-safe.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A channel whose sender is gone means the same.
    let _stopped = stop.wait_for(|stop| *stop).await;
}

/// Resolves when there is another order than to serve. Cancel-safe.
pub(super) async fn ordered(orders: &mut watch::Receiver<Order>) -> Order {
    // A channel whose sender is gone means the end as well.
    orders.wait_for(|order| *order != Order::Serve).await.map_or(Order::Stop, |order| *order)
}

/// How a connection ended.
pub(super) enum End {
    /// It has not: whoever goes on finds everything as it is.
    AtRest,
    /// The peer closed it: a last line without its line feed is whole.
    Orderly,
    /// It is closed, and nothing says that its peer had no more to send: encryption would have said so.
    CutOff,
    /// We stop before it has: the rest of its last line may be on the way.
    Stopped,
    /// It was silent for long, and its place is another one's.
    Replaced,
    /// Reset, or time-out.
    Broken(String),
    /// Nothing more of it can be read as what its source carries.
    Unreadable(Broken),
    /// A packed stream that could not be followed.
    Unpackable(&'static str),
    /// The client was told that something cannot be acknowledged.
    Failed,
}

impl End {
    /// After the last read of a connection that comes to rest: its peer may have ended it meanwhile.
    pub(super) fn at_rest(self) -> End {
        match self {
            End::Stopped => End::AtRest,
            ended => ended,
        }
    }
}

/// How long a connection may be silent.
pub(super) fn idle_timeout(plan: &SourcePlan) -> Duration {
    match plan.idle_timeout_ms {
        0 => Duration::from_secs(u64::from(u32::MAX)),
        ms => Duration::from_millis(ms),
    }
}

/// What a reload has changed of how the source is read holds from the next read on.
pub(super) fn follow(intake: &mut Intake, updates: &mut watch::Receiver<StreamSource>) {
    // A listener that is gone changes nothing any more.
    if updates.has_changed().unwrap_or(false) {
        intake.follow(&updates.borrow_and_update().intake);
    }
}

/// When a connection that is stopping begins no further read.
pub(super) fn last_read_until_ns(shared: &Shared) -> u64 {
    Clock::mono_ns() + shared.last_read_max().as_nanos() as u64
}

/// Reads that a connection may still give while stopping.
pub(super) fn last_reads() -> u64 {
    LAST_READ_BYTES_MAX / READ_BYTES as u64
}

/// One read. `None` when there was nothing to read after all.
pub(super) fn read_once(stream: &Stream, intake: &mut Intake) -> Result<Option<Batches<'static>>, End> {
    SCRATCH.with_borrow_mut(|scratch| {
        let Some(len) = read_bytes(stream, scratch)? else { return Ok(None) };
        let mut batch = take_apart(&scratch[..len], intake);
        batch.ack = intake.mark();
        Ok(Some(batch))
    })
}

/// What `bytes`, which stood in the connection's lines or messages next, hold.
pub(super) fn take_apart(bytes: &[u8], intake: &mut Intake) -> Batches<'static> {
    let batch = PARSED.with_borrow_mut(|parsed| intake.stream(bytes, Clock::now(), parsed).into_owned());
    intake.settle_too_long();
    batch
}

/// Counts and logs a connection that cannot be read any further, whether or not its client is told something.
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

/// Waits until what the connection sends can be handed on at once, and it is its turn. Hold what it gives until that has been
/// done. Cancel-safe.
pub(super) async fn turn_to_read(intake: &Intake, from: PeerKey, shared: &Shared) -> Option<Place> {
    let turn = match intake.takes_messages() {
        true => Some(shared.turns.wait(intake.source(), from).await),
        false => None,
    };
    shared.floor().turn(intake.source(), from).await;
    turn
}

/// Hands on what one read holds, of messages piece by piece. False when nobody takes it any more.
async fn hand_on_all(
    batch: Batches<'static>,
    intake: &mut Intake,
    (source, stream, from): (&StreamSource, &Stream, PeerKey),
    shared: &Shared,
) -> bool {
    let mut taken = hand_on(batch, from, shared).await;
    while intake.has_more() {
        // One message may make many pieces, and others have their turn.
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

/// The same of bytes that are no lines yet.
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

/// Hands a batch of the peer `from` to the shard; waits while there is no room, in turn with those that want to read. False
/// when nobody takes it any more: it was dropped.
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
    // It may be long until there is room, and the source's sum holds all the time.
    let _outside = shared.exchange.outside(source, batch.records());
    while !shared.exchange.is_closed() {
        // Cancel-safe: the batch is ours until it is taken.
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
