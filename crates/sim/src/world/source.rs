//! One source in the simulator: its datagram socket and its connections, each with an intake of the real pipeline.
//!
//! Path of a packet: bytes -> `Intake` -> batch; batches of datagrams go to the shard at once, those of connections
//! through the exchange, and a connection whose batch finds no room there is not read until it does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use config::plan::{Listen, SourcePlan};
use model::{Now, Outcome, SampleBatch, SourceAccount, SourceId};
use pipeline::{Exchange, Intake, IntakeMaker};

/// Bytes of one read, as in the daemon.
const READ_BYTES: usize = 64 * 1024;

/// A source with what is connected to it.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) id: SourceId,
    pub(crate) plan: SourcePlan,
    pub(crate) account: Arc<SourceAccount>,
    maker: IntakeMaker,
    pub(crate) datagrams: Intake,
    connections: BTreeMap<String, Connection>,
}

#[derive(Debug)]
struct Connection {
    intake: Intake,
    framed: bool,
    heard_ns: u64,
    idle_timeout_ms: u64,
    /// Sent by the peer, not read yet.
    unread: Vec<u8>,
    /// How the peer has ended it.
    end: Option<End>,
    /// Its intake is closed; only a last batch may still wait.
    over: bool,
    /// Found no room in the exchange.
    stalled: Option<Box<SampleBatch>>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Orderly,
    Broken,
}

impl Source {
    pub(crate) fn new(
        id: SourceId,
        plan: &SourcePlan,
        account: &Arc<SourceAccount>,
        maker: IntakeMaker,
    ) -> Source {
        Source {
            id,
            plan: plan.clone(),
            account: Arc::clone(account),
            datagrams: maker.make(),
            maker,
            connections: BTreeMap::new(),
        }
    }

    /// A new plan: it holds for datagrams at once and for the connections that come from now on. Connections of a
    /// source that listens no more are ended.
    pub(crate) fn reconfigure(&mut self, plan: &SourcePlan, maker: IntakeMaker) {
        self.plan = plan.clone();
        self.datagrams = maker.make();
        self.maker = maker;
        if self.plan.listen.is_empty() {
            self.end_all(End::Orderly);
        }
    }

    /// Whether it listens for datagrams, connections of lines, or connections of frames.
    pub(crate) fn listens(&self, wanted: Way) -> bool {
        self.plan.listen.iter().any(|listen| Way::of(listen) == wanted)
    }

    /// The peer of a connection sends bytes; a connection that is not there is made.
    ///
    /// # Errors
    /// When it is turned away, or is of the other kind.
    pub(crate) fn send(&mut self, name: &str, framed: bool, bytes: &[u8], now: Now) -> Result<(), String> {
        if !self.connections.contains_key(name) {
            self.accept(name, framed, now)?;
        }
        let connection = self.connections.get_mut(name).ok_or("the connection was just made")?;
        if framed && !connection.framed {
            return Err(format!("connection `{name}` carries lines, not frames"));
        }
        connection.unread.extend_from_slice(bytes);
        connection.heard_ns = now.mono_ns;
        Ok(())
    }

    fn accept(&mut self, name: &str, framed: bool, now: Now) -> Result<(), String> {
        if self.connections.len() >= self.plan.connections_max {
            self.account.connections_refused.fetch_add(1, Relaxed);
            return Err(format!(
                "source `{}` has {} connections and refuses more (`connections_max`)",
                self.plan.name,
                self.connections.len()
            ));
        }
        self.account.connections_accepted.fetch_add(1, Relaxed);
        self.account.connections_open.fetch_add(1, Relaxed);
        let intake = if framed { self.maker.make_framed() } else { self.maker.make() };
        let connection = Connection {
            intake,
            framed,
            heard_ns: now.mono_ns,
            idle_timeout_ms: self.plan.idle_timeout_ms,
            unread: Vec::new(),
            end: None,
            over: false,
            stalled: None,
        };
        self.connections.insert(name.to_owned(), connection);
        Ok(())
    }

    /// The peer ends a connection: false when there is none of that name.
    pub(crate) fn end(&mut self, name: &str, end: End) -> bool {
        let Some(connection) = self.connections.get_mut(name) else { return false };
        connection.end = Some(end);
        true
    }

    /// All connections are ended, because the daemon stops or the source is gone.
    pub(crate) fn end_all(&mut self, end: End) {
        self.connections.values_mut().for_each(|connection| {
            connection.end.get_or_insert(end);
        });
    }

    /// Names of the open connections.
    pub(crate) fn connections(&self) -> impl Iterator<Item = &String> {
        self.connections.keys()
    }

    /// Reads every connection as far as the exchange has room.
    pub(crate) fn read(&mut self, exchange: &Exchange, now: Now) {
        let account = &self.account;
        self.connections.retain(|_, connection| {
            let open = connection.read(exchange, account, now);
            if !open {
                account.connections_open.fetch_sub(1, Relaxed);
            }
            open
        });
    }

    /// Records in batches that wait for room in the exchange.
    pub(crate) fn stalled(&self) -> u64 {
        let stalled = self.connections.values().filter_map(|connection| connection.stalled.as_ref());
        stalled.map(|batch| batch.receipt.records()).sum()
    }

    /// Settles what waits for room, because nobody makes any more.
    pub(crate) fn abandon(&mut self, outcome: Outcome) {
        let stalled = self.connections.values_mut().filter_map(|connection| connection.stalled.take());
        stalled.for_each(|batch| batch.receipt.settle(outcome));
    }

    /// When the first connection has been silent for too long.
    pub(crate) fn wake_ns(&self) -> u64 {
        self.connections.values().map(Connection::idle_ns).min().unwrap_or(u64::MAX)
    }
}

impl Connection {
    fn idle_ns(&self) -> u64 {
        match self.idle_timeout_ms {
            // Who waits for us is not idle.
            _ if self.over || self.stalled.is_some() => u64::MAX,
            0 => u64::MAX,
            ms => self.heard_ns.saturating_add(ms.saturating_mul(1_000_000)),
        }
    }

    /// False when the connection is over and everything of it is handed on.
    fn read(&mut self, exchange: &Exchange, account: &SourceAccount, now: Now) -> bool {
        if let Some(batch) = self.stalled.take()
            && !self.hand_on(exchange, *batch)
        {
            return true;
        }
        if self.over {
            return false;
        }
        while !self.unread.is_empty() {
            let len = self.unread.len().min(READ_BYTES);
            let bytes: Vec<u8> = self.unread.drain(..len).collect();
            let batch = self.intake.stream(&bytes, now).into_owned();
            self.intake.settle_too_long();
            if self.intake.is_broken() {
                self.unread.clear();
                self.end = Some(End::Broken);
            }
            if !self.hand_on(exchange, batch) {
                return true;
            }
        }
        if now.mono_ns >= self.idle_ns() {
            self.end.get_or_insert(End::Broken);
        }
        let Some(end) = self.end else { return true };
        if end == End::Broken {
            account.connections_broken.fetch_add(1, Relaxed);
        }
        self.over = true;
        let last = self.intake.close(end == End::Orderly, now).into_owned();
        !self.hand_on(exchange, last)
    }

    /// False when there was no room: the batch waits.
    fn hand_on(&mut self, exchange: &Exchange, batch: SampleBatch) -> bool {
        if batch.receipt.records() == 0 && batch.tally == model::Tally::default() {
            batch.receipt.settle(Outcome::Routed);
            return true;
        }
        match exchange.try_send(batch) {
            Ok(()) => true,
            Err(batch) => {
                self.stalled = Some(Box::new(batch));
                false
            }
        }
    }
}

/// A way to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Datagrams,
    Lines,
    Frames,
}

impl Way {
    fn of(listen: &Listen) -> Way {
        match listen {
            Listen::Udp(_) | Listen::UnixDatagram { .. } => Way::Datagrams,
            Listen::Tcp(_) | Listen::UnixStream { .. } => Way::Lines,
            Listen::UnixFrames { .. } => Way::Frames,
        }
    }
}
