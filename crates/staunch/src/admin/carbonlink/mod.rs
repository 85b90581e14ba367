//! carbon-cache's query port, CarbonLink: a graphite-web that reads the whisper files asks here for points that are not in them
//! yet (spec graphite §1.5).
//!
//! Path of a request: [`accept`](mod@accept) -> [`Client::run`] (a frame) -> `wire::carbonlink` -> [`answers`] on a thread for queries -> a frame.
//! Not here: pickles (`wire`), points in memory (`graphite::store`).
//! Invariant: requests and replies of all clients together have at most [`FRAMES_BYTES_MAX`], beside [`SMALL_BYTES`] for each client.

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

/// Frames up to this size need no place among [`FRAMES_BYTES_MAX`].
const SMALL_BYTES: usize = 64 << 10;

/// Most bytes of larger frames, of all clients together.
const FRAMES_BYTES_MAX: usize = 2 * REQUEST_BYTES_MAX;

/// Most requests that are answered at once.
const ANSWERING_MAX: usize = 2;

/// What the clients share.
struct Opened {
    plan: CarbonLinkPlan,
    shared: Arc<Shared>,
    frames: Arc<Semaphore>,
    answering: Arc<Semaphore>,
}

/// Serves until `stop` turns true.
pub(super) async fn serve(
    listener: TcpListener,
    plan: CarbonLinkPlan,
    shared: Arc<Shared>,
    stop: watch::Receiver<bool>,
) {
    let frames = Arc::new(Semaphore::new(FRAMES_BYTES_MAX));
    let answering = Arc::new(Semaphore::new(ANSWERING_MAX));
    accept::accept(listener, Opened { plan, shared, frames, answering }, stop).await;
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
            frames: Arc::clone(&self.frames),
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
