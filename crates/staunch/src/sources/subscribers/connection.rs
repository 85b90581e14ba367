//! A connection of a client that subscribes or puts events: what its requests share, and how a subscription begins.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use pipeline::{IndexQuery, Subscribed, Subscriber, Subscription};
use tokio::sync::{Mutex, watch};

use super::request::Wish;
use crate::admission::ConnectionSlot;
use crate::daemon::shared::Shared;
use crate::daemon::shared::snapshots::{self, Room};
use crate::sources::listener::StreamSource;
use crate::sources::parked::Client;
use crate::sources::queries;

/// Largest head of a request, and most bytes of a body that are read at once.
pub(super) const BUFFER_BYTES: usize = 64 * 1024;
/// Bytes of messages that are written at once, about.
pub(super) const PIECE_BYTES: usize = 64 * 1024;
/// How often a subscriber gets a ping, or a comment, so that connections whose client is gone end.
pub(super) const PING_EVERY: Duration = Duration::from_secs(15);

/// What the requests of a connection share.
pub(super) struct Connection<'a> {
    pub(super) client: Client,
    /// The client and the listener, for the log.
    pub(super) from: &'a str,
    pub(super) shared: &'a Shared,
    pub(super) updates: &'a watch::Receiver<StreamSource>,
    pub(super) slot: &'a ConnectionSlot,
    /// Locked while events of a body or of a frame are with nobody else.
    pub(super) handing: Mutex<()>,
    /// It sends events to a subscriber, which has no end of its own.
    pub(super) is_streaming: AtomicBool,
    /// The WebSocket that it becomes.
    pub(super) upgrade: std::sync::Mutex<Option<(OnUpgrade, Wish)>>,
}

/// A subscription that has begun.
pub(super) struct Begun {
    /// The events of the index, with their room in memory.
    pub(super) found: Option<(IndexQuery, Room)>,
    /// What comes later.
    pub(super) later: Option<Subscriber>,
}

impl Connection<'_> {
    /// Begins a subscription.
    ///
    /// # Errors
    /// Why not, for the client.
    pub(super) async fn begin(&self, of: &Subscription) -> Result<Begun, String> {
        const STOPS: &str = "the daemon stops";
        let source = self.updates.borrow().intake.source();
        let compiled = self.shared.queries.compiled(&of.query).await?;
        let mut asking = self.shared.shard.ask_in_line(self.client.key).await;
        let begins = of.clone();
        let begun =
            asking.call(move |worker| worker.turn.shard.subscribe(source, (&begins, &compiled))).await;
        let Subscribed { query, later, pump } = begun.map_err(|_ended| STOPS)??;
        // It ends with the last subscriber of its query.
        pump.map(tokio::spawn);
        let Some(query) = query else { return Ok(Begun { found: None, later }) };
        let query = queries::finished(&mut asking, query).await.ok_or(STOPS)?;
        let room = snapshots::room(query.found()?)?;
        Ok(Begun { found: Some((query, room)), later })
    }
}
