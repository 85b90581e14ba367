//! A connection between two reads: the task that has just accepted it begins here, and where it comes to rest, this
//! process or another one goes on from here (hot restart). Nothing of it is under way.
//!
//! Not here: how it is read (`stream`, `answered`), what two processes say about it (`daemon::hot_restart`).

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
use crate::daemon::worker::peer;
use crate::sources::answered::Answered;
use crate::sources::stream::{Order, Plain, Stream, StreamSource};
use crate::sources::wrapping::Wrapping;

/// Whose a connection is, as it was when it was accepted: of a client that has gone again the socket does not say it any more.
#[derive(Clone, Copy)]
pub(super) struct Client {
    /// None at a unix socket.
    pub(super) address: Option<IpAddr>,
    /// Whose turn it is when it is read.
    pub(super) key: PeerKey,
}

impl Client {
    /// Of a connection from `address`; of a process of this machine where there is none.
    pub(super) fn of(stream: &Stream, address: Option<IpAddr>) -> Client {
        let key = address.map_or_else(|| stream.process_key(), |_| peer_key(address));
        Client { address, key }
    }
}

/// A connection that nobody reads at the moment. One that is dropped is closed.
pub struct Parked(Kind);

enum Kind {
    Plain(Box<Plain>),
    Answered(Box<Answered>),
}

impl std::fmt::Debug for Parked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Parked")
    }
}

impl Parked {
    /// A connection that has just been accepted, and whose it is.
    pub(super) fn begin(stream: Stream, from: Client, source: StreamSource, shared: &Shared) -> Parked {
        Parked::made(stream, from, source, shared, None)
    }

    /// With what another process knows of it, if it is from one.
    fn made(
        stream: Stream,
        Client { address, key: from }: Client,
        source: StreamSource,
        shared: &Shared,
        unfinished: Option<&Unfinished>,
    ) -> Parked {
        source.account.connections_open.fetch_add(1, Relaxed);
        let mut intake = match source.listen {
            Listen::UnixFrames { .. } => source.intake.make_framed(),
            _ => source.intake.make(),
        };
        intake.set_peer(peer(address));
        // Of a process of this machine, where there is no address: one of them does not use up what all may hold.
        intake.set_peer_key(from);
        // What holds for a connection holds to its end.
        let when = match unfinished {
            Some(unfinished) => unfinished.acks.map(|told| told.when),
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

    /// Whose turn it is when it is read.
    pub(super) fn peer_key(&self) -> PeerKey {
        match &self.0 {
            Kind::Plain(plain) => plain.from,
            Kind::Answered(answered) => answered.from(),
        }
    }

    /// Registers it with the runtime that is to go on with it.
    ///
    /// # Errors
    /// As [`Stream::move_to`].
    pub(super) fn move_to(&mut self, runtime: &Handle) -> io::Result<()> {
        match &mut self.0 {
            Kind::Plain(plain) => plain.stream.move_to(runtime),
            Kind::Answered(answered) => answered.stream_mut().move_to(runtime),
        }
    }

    /// Goes on until it ends, comes to rest again, or its place is needed.
    pub(super) async fn go_on(
        self,
        shared: Arc<Shared>,
        mut updates: watch::Receiver<StreamSource>,
        mut orders: watch::Receiver<Order>,
        slot: ConnectionSlot,
    ) -> Option<Parked> {
        // A reload may have come since it was made.
        updates.mark_changed();
        Some(Parked(match self.0 {
            Kind::Plain(plain) => Kind::Plain(plain.serve(&shared, &mut updates, &mut orders, &slot).await?),
            Kind::Answered(answered) => {
                Kind::Answered(answered.serve(&shared, &mut updates, &mut orders, &slot).await?)
            }
        }))
    }
}

#[cfg(target_os = "linux")]
mod passing {
    use std::io;

    use super::{Client, Kind, Parked};
    use crate::daemon::shared::Shared;
    use crate::sources::stream::{Stream, StreamSource};
    use model::ConnectionId;
    use pipeline::Unfinished;
    use sys::{BorrowedFd, OwnedFd};

    impl Parked {
        /// What another process needs to go on with it; none when this one has to end it. What is due to its client is
        /// written first.
        pub fn unfinished(&mut self) -> Option<Unfinished> {
            match &mut self.0 {
                // One that is wrapped has come to its end instead of to rest, unless it was never served.
                Kind::Plain(plain) if plain.wrapping.is_some() => None,
                Kind::Plain(plain) => plain.intake.unfinished(),
                Kind::Answered(answered) => answered.unfinished(),
            }
        }

        /// Who it is among those that wait for an answer, if its client is told something.
        pub fn id(&self) -> Option<ConnectionId> {
            match &self.0 {
                Kind::Plain(_) => None,
                Kind::Answered(answered) => Some(answered.id()),
            }
        }

        /// True when its client waits for an answer, or for more than it has read.
        pub fn waits(&self) -> bool {
            match &self.0 {
                Kind::Plain(_) => false,
                Kind::Answered(answered) => answered.waits(),
            }
        }

        /// True when the beginning of a line has come: it is lost where the connection ends here.
        pub fn has_tail(&self) -> bool {
            match &self.0 {
                Kind::Plain(plain) => plain.intake.has_tail(),
                Kind::Answered(answered) => answered.has_tail(),
            }
        }

        /// Its socket.
        pub fn fd(&self) -> BorrowedFd<'_> {
            match &self.0 {
                Kind::Plain(plain) => plain.stream.as_fd(),
                Kind::Answered(answered) => answered.stream().as_fd(),
            }
        }

        /// A connection of another process, to be gone on with in this one.
        ///
        /// # Errors
        /// When it is no such socket, or the runtime cannot take it.
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

        /// Ends it here. Its client is told what can be, in time that the daemon gives to all of them.
        pub fn end(self, shared: &Shared) {
            if let Kind::Answered(answered) = self.0 {
                shared.acks.wait_on(answered.answer_to_the_end());
            }
        }
    }
}
