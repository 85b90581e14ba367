//! carbon-cache's query port, CarbonLink: a graphite-web that reads the whisper files asks here for points that are not in them
//! yet (spec graphite §1.5).
//!
//! Path of a request: [`serve`] -> [`Client::run`] (a frame) -> `wire::carbonlink` -> [`answers`] on a thread for queries -> a frame.
//! Not here: pickles (`wire`), points in memory (`graphite::store`).
//! Invariant: requests and replies of all clients together have at most [`FRAMES_BYTES_MAX`], beside [`SMALL_BYTES`] for each client.

mod answers;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use config::plan::CarbonLinkPlan;
use model::SECOND_NS;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use wire::carbonlink::{BadRequest, REQUEST_BYTES_MAX, Reply};

use self::answers::Asked;
use super::clients::{CarbonLinkAccount, ClientEnd, Counted};
use crate::admission::{Admission, ConnectionSlot, Limits, Refusals};
use crate::daemon::shared::Shared;
use crate::daemon::shared::bind::ACCEPT_PAUSE;
use crate::daemon::start::descriptors::{self, Kind};
use sys::clock::Clock;

/// Timeout for the next byte of a request that has begun, and for a piece of a reply to be taken.
const PATIENCE: Duration = Duration::from_secs(30);

/// Timeout for the next request: graphite-web keeps connections.
const IDLE: Duration = Duration::from_secs(3600);

/// A client that has been idle, or has not read, for this long may be replaced by a new one.
const STALLED_NS: u64 = SECOND_NS;

/// Frames up to this size need no place among [`FRAMES_BYTES_MAX`].
const SMALL_BYTES: usize = 64 << 10;

/// Most bytes of larger frames, of all clients together.
const FRAMES_BYTES_MAX: usize = 2 * REQUEST_BYTES_MAX;

/// Most requests that are answered at once.
const ANSWERING_MAX: usize = 2;

/// What the clients share.
struct Port {
    plan: CarbonLinkPlan,
    shared: Arc<Shared>,
    places: Arc<Admission>,
    refusals: Refusals,
    failures: Refusals,
    frames: Arc<Semaphore>,
    answering: Arc<Semaphore>,
}

/// Serves until `stop` turns true.
pub(super) async fn serve(
    listener: TcpListener,
    plan: CarbonLinkPlan,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    let mut clients = JoinSet::new();
    let port = Port {
        plan,
        shared,
        places: Arc::default(),
        refusals: Refusals::default(),
        failures: Refusals::default(),
        frames: Arc::new(Semaphore::new(FRAMES_BYTES_MAX)),
        answering: Arc::new(Semaphore::new(ANSWERING_MAX)),
    };
    loop {
        // All branches are cancel-safe.
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            Some(_ended) = clients.join_next(), if !clients.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                if let Some((client, counted)) = port.admit(stream, from.ip()) {
                    clients.spawn(async move { counted.end(client.serve().await) });
                }
                tokio::task::yield_now().await;
            }
            Err(error) => {
                if let Some(times) = port.failures.note(Clock::mono_ns()) {
                    let listen = port.plan.listen;
                    tracing::warn!(
                        "cannot accept CarbonLink clients on {listen}: {error} ({times} attempts)"
                    );
                }
                if !port.places.make_room(Clock::mono_ns()) {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

impl Port {
    fn account(&self) -> &CarbonLinkAccount {
        &self.shared.carbonlink
    }

    /// The client, counted as accepted, if there is a slot for it.
    fn admit(&self, stream: TcpStream, from: IpAddr) -> Option<(Client, Counted)> {
        let all = self.plan.connections_max.min(descriptors::max(Kind::Management) as usize).max(2);
        let limits = Limits { all, per_peer: (all / 2).max(1) };
        let (now_ns, peer) = (Clock::mono_ns(), crate::admission::peer_key(Some(from)));
        match self.places.admit_or_replace(peer, limits, now_ns, STALLED_NS) {
            Ok(slot) => {
                // Replies are small, and graphite-web waits for each.
                let _slower = stream.set_nodelay(true);
                let client = Client {
                    shared: Arc::clone(&self.shared),
                    is_local: from.to_canonical().is_loopback(),
                    stream,
                    slot: Arc::new(slot),
                    frames: Arc::clone(&self.frames),
                    answering: Arc::clone(&self.answering),
                };
                Some((client, self.account().clients.accept()))
            }
            Err(full) => {
                self.account().clients.end(full.into());
                if let Some(refused) = self.refusals.note(now_ns) {
                    tracing::warn!(
                        "CarbonLink {} refuses clients at `max_connections`, the last one from {from} ({refused} since the last message)",
                        self.plan.listen
                    );
                }
                None
            }
        }
    }
}

struct Client {
    shared: Arc<Shared>,
    /// It is on this machine, and may change files.
    is_local: bool,
    stream: TcpStream,
    slot: Arc<ConnectionSlot>,
    frames: Arc<Semaphore>,
    answering: Arc<Semaphore>,
}

impl Client {
    async fn serve(self) -> ClientEnd {
        let slot = Arc::clone(&self.slot);
        tokio::select! {
            biased;
            leave = slot.asked_to_leave() => leave.into(),
            ended = self.run() => ended.err().unwrap_or(ClientEnd::Orderly),
        }
    }

    /// Answers one request after the other, until the client ends.
    async fn run(mut self) -> Result<(), ClientEnd> {
        loop {
            let Some(len) = self.length().await? else { return Ok(()) };
            if len > REQUEST_BYTES_MAX {
                tracing::debug!("a CarbonLink request of {len} bytes is too long");
                return Err(ClientEnd::Broken);
            }
            let room = self.room(len).await?;
            let message = self.message(len).await?;
            let (reply, _room) = self.answer(message, room).await?;
            self.send(&reply).await?;
        }
    }

    /// The length of the next request; none at the end of the connection.
    async fn length(&mut self) -> Result<Option<usize>, ClientEnd> {
        let mut head = [0; 4];
        let mut had = 0;
        while had < head.len() {
            let patience = if had == 0 { IDLE } else { PATIENCE };
            match self.read(&mut head[had..], patience).await? {
                0 if had == 0 => return Ok(None),
                0 => return Err(ClientEnd::Broken),
                more => had += more,
            }
        }
        Ok(Some(u32::from_be_bytes(head) as usize))
    }

    /// Grows as bytes arrive: a length alone takes no memory.
    async fn message(&mut self, len: usize) -> Result<Vec<u8>, ClientEnd> {
        let mut message = Vec::new();
        while message.len() < len {
            let had = message.len();
            message.resize(len.min(had + SMALL_BYTES), 0);
            let read = self.read(&mut message[had..], PATIENCE).await?;
            if read == 0 {
                return Err(ClientEnd::Broken);
            }
            message.truncate(had + read);
        }
        Ok(message)
    }

    async fn read(&mut self, into: &mut [u8], patience: Duration) -> Result<usize, ClientEnd> {
        self.slot.wait_begins(Clock::mono_ns());
        let read = tokio::time::timeout(patience, self.stream.read(into)).await;
        self.slot.wait_ends();
        match read {
            Ok(Ok(len)) => Ok(len),
            Ok(Err(_reset)) => Err(ClientEnd::Broken),
            Err(_elapsed) => Err(ClientEnd::Silent),
        }
    }

    /// A place for a large frame. Waits for one, but not longer than a client would.
    async fn room(&self, bytes: usize) -> Result<Option<OwnedSemaphorePermit>, ClientEnd> {
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        let bytes = u32::try_from(bytes.min(FRAMES_BYTES_MAX)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.frames).acquire_many_owned(bytes);
        match tokio::time::timeout(PATIENCE, room).await {
            Ok(Ok(room)) => Ok(Some(room)),
            _ => Err(ClientEnd::Refused),
        }
    }

    /// The reply, with its place. The request and its place are given up before that one is asked for.
    async fn answer(
        &self,
        message: Vec<u8>,
        room: Option<OwnedSemaphorePermit>,
    ) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), ClientEnd> {
        let answering = Arc::clone(&self.answering).acquire_owned().await.map_err(|_| ClientEnd::Broken)?;
        let (shared, is_local) = (Arc::clone(&self.shared), self.is_local);
        let answer = move || {
            let account = &shared.carbonlink;
            let reply = match wire::carbonlink::request(&message) {
                Ok(request) => {
                    account.count(&request);
                    Asked { stores: shared.stores.all(), is_local }.answer(&request)
                }
                Err(BadRequest::Content(why)) => {
                    account.count_bad();
                    Reply::texts(&[("error", &why)])
                }
                Err(BadRequest::Pickle(error)) => {
                    account.count_bad();
                    return Err(format!("{error:?}"));
                }
            };
            Ok(reply)
        };
        let answer = tokio::task::spawn_blocking(answer).await;
        drop(room);
        match answer {
            Ok(Ok(reply)) => {
                let room = self.room(reply.len()).await?;
                drop(answering);
                Ok((reply, room))
            }
            Ok(Err(why)) => {
                tracing::debug!("a CarbonLink client sent no request: {why}");
                Err(ClientEnd::Broken)
            }
            Err(_panicked) => Err(ClientEnd::Broken),
        }
    }

    async fn send(&mut self, reply: &[u8]) -> Result<(), ClientEnd> {
        let mut rest = reply;
        while !rest.is_empty() {
            self.slot.wait_begins(Clock::mono_ns());
            let sent: Result<io::Result<usize>, _> =
                tokio::time::timeout(PATIENCE, self.stream.write(rest)).await;
            self.slot.wait_ends();
            match sent {
                Ok(Ok(0)) | Ok(Err(_)) => return Err(ClientEnd::Broken),
                Ok(Ok(len)) => rest = &rest[len..],
                Err(_elapsed) => return Err(ClientEnd::Unread),
            }
        }
        Ok(())
    }
}
