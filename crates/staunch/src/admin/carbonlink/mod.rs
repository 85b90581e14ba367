//! carbon-cache's query port, CarbonLink: a graphite-web that reads the whisper files asks here for points that are not in them
//! yet (spec graphite §1.5).
//!
//! Path of a request: [`accept`](mod@accept) -> [`Client::run`] (a frame) -> `wire::carbonlink` -> [`answers`] on a thread for queries -> a frame.
//! Not here: pickles (`wire`), points in memory (`graphite::store`).
//! Invariant: requests of all clients together have at most [`FRAMES_BYTES_MAX`] of memory, and so have replies, beside [`SMALL_BYTES`] for
//! each client. A request takes its room as its bytes arrive, and no client keeps others from small requests.

mod answers;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use config::plan::CarbonLinkPlan;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use wire::carbonlink::{BadRequest, REQUEST_BYTES_MAX, Reply};

use self::answers::Asked;
use super::accept::{self, Port};
use super::clients::{ClientAccount, ClientEnd};
use crate::admission::{ConnectionSlot, Limits};
use crate::daemon::shared::Shared;
use sys::clock::Clock;

/// Timeout for the next byte of a request that has begun, and for a piece of a reply to be taken.
const PATIENCE: Duration = Duration::from_secs(30);

/// Timeout for the next request: graphite-web keeps connections.
const IDLE: Duration = Duration::from_secs(3600);

/// Longest time of a request from its first to its last byte, and likewise of a reply: a byte now and then must not keep memory for ever.
const FRAME_TIME: Duration = Duration::from_secs(60);

/// Longest wait of a large reply for memory: other requests wait behind it.
const REPLY_ROOM_TIME: Duration = Duration::from_secs(1);

/// Frames up to this size need none of [`FRAMES_BYTES_MAX`].
const SMALL_BYTES: usize = 64 << 10;

/// Most bytes of larger requests of all clients together, and of larger replies.
const FRAMES_BYTES_MAX: usize = 2 * REQUEST_BYTES_MAX;

/// Most requests that are answered at once.
const ANSWERING_MAX: usize = 2;

/// What the clients share.
struct Opened {
    plan: CarbonLinkPlan,
    shared: Arc<Shared>,
    rooms: Rooms,
    answering: Arc<Semaphore>,
}

/// Memory of large frames.
#[derive(Clone)]
struct Rooms {
    requests: Arc<Semaphore>,
    replies: Arc<Semaphore>,
}

type Room = Option<OwnedSemaphorePermit>;

/// Serves until `stop` turns true.
pub(super) async fn serve(
    listener: TcpListener,
    plan: CarbonLinkPlan,
    shared: Arc<Shared>,
    stop: watch::Receiver<bool>,
) {
    let room = || Arc::new(Semaphore::new(FRAMES_BYTES_MAX));
    let rooms = Rooms { requests: room(), replies: room() };
    let answering = Arc::new(Semaphore::new(ANSWERING_MAX));
    accept::accept(listener, Opened { plan, shared, rooms, answering }, stop).await;
}

impl Port for Opened {
    fn name(&self) -> String {
        format!("CarbonLink {}", self.plan.listen)
    }

    fn limits(&self) -> Limits {
        let all = self.plan.connections_max.min(accept::descriptors_of_port(&self.shared)).max(2);
        Limits { all, per_peer: (all / 2).max(1) }
    }

    fn account(&self) -> &Arc<ClientAccount> {
        &self.shared.carbonlink.clients
    }

    fn serve(
        &self,
        stream: TcpStream,
        from: IpAddr,
        slot: Arc<ConnectionSlot>,
    ) -> impl Future<Output = ClientEnd> + Send + 'static {
        // Replies are small, and graphite-web waits for each.
        let _slower = stream.set_nodelay(true);
        let client = Client {
            shared: Arc::clone(&self.shared),
            is_local: from.to_canonical().is_loopback(),
            stream,
            slot,
            rooms: self.rooms.clone(),
            answering: Arc::clone(&self.answering),
        };
        client.serve()
    }
}

struct Client {
    shared: Arc<Shared>,
    /// It is on this machine, and may change files.
    is_local: bool,
    stream: TcpStream,
    slot: Arc<ConnectionSlot>,
    rooms: Rooms,
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
            let message = tokio::time::timeout(FRAME_TIME, self.message(len)).await;
            let (message, room) = message.map_err(|_elapsed| ClientEnd::Silent)??;
            let (reply, _room) = self.answer(message, room).await?;
            let sent = tokio::time::timeout(FRAME_TIME, self.send(&reply)).await;
            sent.map_err(|_elapsed| ClientEnd::Unread)??;
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

    /// A request and its room, which grow as bytes arrive: a length alone takes nothing from others.
    async fn message(&mut self, len: usize) -> Result<(Vec<u8>, Room), ClientEnd> {
        let (mut message, mut room, mut bytes_max) = (Vec::new(), Room::None, SMALL_BYTES);
        while message.len() < len {
            let had = message.len();
            if had == bytes_max {
                let more = bytes_max.min(len - bytes_max);
                let more_room = take_room(&self.rooms.requests, more, PATIENCE).await?;
                match &mut room {
                    Some(room) => room.merge(more_room),
                    None => room = Some(more_room),
                }
                bytes_max += more;
            }
            message.resize(len.min(bytes_max).min(had + SMALL_BYTES), 0);
            let read = self.read(&mut message[had..], PATIENCE).await?;
            if read == 0 {
                return Err(ClientEnd::Broken);
            }
            message.truncate(had + read);
        }
        Ok((message, room))
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

    /// The reply, with its room. The request and its room are given up before that one is asked for.
    async fn answer(&self, message: Vec<u8>, room: Room) -> Result<(Vec<u8>, Room), ClientEnd> {
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
                let room = if reply.len() <= SMALL_BYTES {
                    None
                } else {
                    Some(take_room(&self.rooms.replies, reply.len(), REPLY_ROOM_TIME).await?)
                };
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

/// Memory for a large frame. Waits for it, but not longer than `patience`.
async fn take_room(
    rooms: &Arc<Semaphore>,
    bytes: usize,
    patience: Duration,
) -> Result<OwnedSemaphorePermit, ClientEnd> {
    let bytes = u32::try_from(bytes.min(FRAMES_BYTES_MAX)).unwrap_or(u32::MAX);
    let room = Arc::clone(rooms).acquire_many_owned(bytes);
    match tokio::time::timeout(patience, room).await {
        Ok(Ok(room)) => Ok(room),
        _ => Err(ClientEnd::Refused),
    }
}
