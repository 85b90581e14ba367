//! A connection between two reads: a new connection begins here, and where it pauses, this process or another one
//! continues (hot restart). Nothing of it is in progress.
//!
//! Not here: reading (`stream`, `answered`), the protocol between two processes (`daemon::hot_restart`).

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use config::plan::Listen;
use model::PeerKey;
use pipeline::Unfinished;
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::admission::{ConnectionSlot, peer_key};
use crate::daemon::shared::Shared;
use crate::daemon::shared::names::peer;
use crate::sources::answered::Answered;
use crate::sources::listener::{Order, StreamSource};
use crate::sources::post::Post;
use crate::sources::stream::{Plain, Stream, Wrapping};
use crate::sources::subscribers::Web;

/// The client of a connection when it was accepted: after its end, the socket does not show it any more.
#[derive(Clone, Copy)]
pub(super) struct Client {
    /// `None` at a unix socket.
    pub(super) address: Option<IpAddr>,
    /// Its peer, for turns.
    pub(super) key: PeerKey,
}

impl Client {
    /// The client at `address`, or the process of this machine without one.
    pub(super) fn of(stream: &Stream, address: Option<IpAddr>) -> Client {
        let key = address.map_or_else(|| stream.process_key(), |_| peer_key(address));
        Client { address, key }
    }
}

/// A connection that is not read now. Dropping it closes it.
pub struct Parked(Kind);

enum Kind {
    Plain(Box<Plain>),
    Answered(Box<Answered>),
    /// It never pauses: it was accepted just now.
    Post(Box<Post>),
    /// Likewise, on a thread of its own.
    Web(Box<Web>),
}

impl std::fmt::Debug for Parked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Parked")
    }
}

impl Parked {
    /// A new connection of a client.
    pub(super) fn begin(stream: Stream, from: Client, source: StreamSource, shared: &Shared) -> Parked {
        Parked::made(stream, from, source, shared, None)
    }

    /// With its state from another process, if there is one.
    fn made(
        stream: Stream,
        Client { address, key: from }: Client,
        source: StreamSource,
        shared: &Shared,
        unfinished: Option<&Unfinished>,
    ) -> Parked {
        source.account.connections_open.fetch_add(1, Relaxed);
        if source.plan.kind.takes_subscribers() {
            let client = Client { address, key: from };
            return Parked(Kind::Web(Box::new(Web { stream, client, source })));
        }
        if source.plan.kind.carries_http() {
            let client = Client { address, key: from };
            return Parked(Kind::Post(Box::new(Post { stream, client, source })));
        }
        let mut intake = match source.listen {
            Listen::UnixFrames { .. } => source.intake.make_framed(),
            _ => source.intake.make(),
        };
        intake.set_peer(peer(address));
        // Without an address it is a local process: each process has its own share of memory.
        intake.set_peer_key(from);
        if intake.replies_to_messages() {
            // Replies are short, and clients wait for them.
            stream.send_at_once();
        }
        // A connection keeps its condition to its end.
        let when = match unfinished {
            Some(unfinished) => unfinished.acks.map(|acks| acks.when),
            None => source.plan.ack_when,
        };
        let slot = when.map(|when| (when, shared.acks.open()));
        if let Some((when, slot)) = &slot {
            intake = intake.answering(slot.id(), *when);
        }
        if let Some(unfinished) = unfinished {
            intake = intake.going_on(unfinished, slot.as_ref().map(|(_, slot)| slot.id()));
        }
        Parked(match slot {
            None => {
                let wrapping = Wrapping::new(&source, unfinished.is_some()).map(Box::new);
                Kind::Plain(Box::new(Plain { stream, from, intake, source, wrapping }))
            }
            Some((_, slot)) => Kind::Answered(Box::new(Answered::new((stream, from), intake, slot, source))),
        })
    }

    /// Its peer, for turns.
    pub(super) fn peer_key(&self) -> PeerKey {
        match &self.0 {
            Kind::Plain(plain) => plain.from,
            Kind::Answered(answered) => answered.from(),
            Kind::Post(post) => post.client.key,
            Kind::Web(web) => web.client.key,
        }
    }

    /// Registers it with the runtime that continues it.
    ///
    /// # Errors
    /// See [`Stream::move_to`].
    pub(super) fn move_to(&mut self, runtime: &Handle) -> io::Result<()> {
        match &mut self.0 {
            Kind::Plain(plain) => plain.stream.move_to(runtime),
            Kind::Answered(answered) => answered.stream_mut().move_to(runtime),
            Kind::Post(post) => post.stream.move_to(runtime),
            Kind::Web(web) => web.stream.move_to(runtime),
        }
    }

    /// True when it belongs on the thread of subscribers.
    pub(super) fn is_of_subscribers(&self) -> bool {
        match &self.0 {
            Kind::Web(_) => true,
            Kind::Plain(_) | Kind::Answered(_) | Kind::Post(_) => false,
        }
    }

    /// Continues until it ends, pauses again, or its slot is needed.
    pub(super) async fn go_on(
        self,
        shared: Arc<Shared>,
        mut updates: watch::Receiver<StreamSource>,
        mut orders: watch::Receiver<Order>,
        slot: ConnectionSlot,
    ) -> Option<Parked> {
        // A reload may have happened since it was created.
        updates.mark_changed();
        Some(Parked(match self.0 {
            Kind::Plain(plain) => Kind::Plain(plain.serve(&shared, &mut updates, &mut orders, &slot).await?),
            Kind::Answered(answered) => {
                Kind::Answered(answered.serve(&shared, &mut updates, &mut orders, &slot).await?)
            }
            Kind::Post(post) => {
                post.serve(&shared, &updates, &mut orders, &slot).await;
                return None;
            }
            Kind::Web(web) => {
                web.serve(&shared, &updates, &mut orders, &slot).await;
                return None;
            }
        }))
    }
}

#[cfg(target_os = "linux")]
mod passing {
    use std::io;

    use super::{Client, Kind, Parked};
    use crate::daemon::shared::Shared;
    use crate::sources::listener::StreamSource;
    use crate::sources::stream::Stream;
    use model::ConnectionId;
    use pipeline::Unfinished;
    use sys::{BorrowedFd, OwnedFd};

    impl Parked {
        /// The state for another process; `None` when it must end here. Pending replies are written first.
        pub fn unfinished(&mut self) -> Option<Unfinished> {
            match &mut self.0 {
                // A connection with TLS or compression has ended instead of paused, unless it was never served.
                Kind::Plain(plain) if plain.wrapping.is_some() => None,
                Kind::Plain(plain) => plain.intake.unfinished(),
                Kind::Answered(answered) => answered.unfinished(),
                Kind::Post(_) | Kind::Web(_) => None,
            }
        }

        /// Its id, if it has acknowledgements.
        pub fn id(&self) -> Option<ConnectionId> {
            match &self.0 {
                Kind::Plain(_) | Kind::Post(_) | Kind::Web(_) => None,
                Kind::Answered(answered) => Some(answered.id()),
            }
        }

        /// True when its client waits for a reply, or has not read all of it.
        pub fn waits(&self) -> bool {
            match &self.0 {
                Kind::Plain(_) | Kind::Post(_) | Kind::Web(_) => false,
                Kind::Answered(answered) => answered.waits(),
            }
        }

        /// True when a part of a line has arrived, which is lost if the connection ends here.
        pub fn has_tail(&self) -> bool {
            match &self.0 {
                Kind::Plain(plain) => plain.intake.has_tail(),
                Kind::Answered(answered) => answered.has_tail(),
                Kind::Post(_) | Kind::Web(_) => false,
            }
        }

        /// Its socket.
        pub fn fd(&self) -> BorrowedFd<'_> {
            match &self.0 {
                Kind::Plain(plain) => plain.stream.as_fd(),
                Kind::Answered(answered) => answered.stream().as_fd(),
                Kind::Post(post) => post.stream.as_fd(),
                Kind::Web(web) => web.stream.as_fd(),
            }
        }

        /// A connection from another process, to be continued in this one.
        ///
        /// # Errors
        /// When it is not such a socket, or the runtime cannot register it.
        pub fn adopted(
            fd: OwnedFd,
            source: StreamSource,
            shared: &Shared,
            unfinished: &Unfinished,
        ) -> io::Result<Parked> {
            let stream = Stream::adopted(fd, &source.listen)?;
            let from = Client::of(&stream, stream.peer_ip());
            Ok(Parked::made(stream, from, source, shared, Some(unfinished)))
        }

        /// Ends it here. Its client gets the possible replies, within the time for all clients.
        pub fn end(self, shared: &Shared) {
            if let Kind::Answered(answered) = self.0 {
                shared.acks.wait_on(answered.answer_to_the_end());
            }
        }
    }
}
