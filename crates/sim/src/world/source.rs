//! One source in the simulator: its datagram socket and its connections, each with a real intake.
//!
//! Path of a packet: bytes -> `Intake` -> batch. Batches of datagrams go to the shard at once, those of connections
//! through the exchange. A connection whose batch has no room there is not read until it has.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use config::plan::{Listen, SourcePlan};
use model::{Batches, ConnectionId, Now, Outcome, PeerKey, SourceAccount, SourceId, Unacked};
use pipeline::{Acks, Answer, Exchange, Intake, IntakeMaker, MARKS_MAX, Scratch};

/// Bytes of one read, as in the daemon.
const READ_BYTES: usize = 64 * 1024;

/// A source with its connections.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) id: SourceId,
    pub(crate) plan: SourcePlan,
    pub(crate) account: Arc<SourceAccount>,
    maker: IntakeMaker,
    pub(crate) datagrams: Intake,
    /// As in the reading thread.
    pub(crate) scratch: Scratch,
    connections: BTreeMap<String, Connection>,
    /// Replies to clients that no check has read yet, by connection; closed connections are included.
    replies: BTreeMap<String, Vec<String>>,
}

#[derive(Debug)]
struct Connection {
    intake: Intake,
    /// Each name is a separate client.
    from: PeerKey,
    /// Set if its client gets acknowledgements.
    answered: Option<ConnectionId>,
    /// The form of the acknowledgements.
    answer: Answer,
    framed: bool,
    heard_ns: u64,
    idle_timeout_ms: u64,
    /// Sent by the peer, not read yet.
    unread: Vec<u8>,
    /// How the peer ended the connection.
    end: Option<End>,
    /// Its intake is closed; only a last batch may still be blocked.
    over: bool,
    /// Batches without room in the exchange.
    stalled: Option<Box<Batches<'static>>>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The peer closed it: a last line without a line feed is complete.
    Orderly,
    /// The daemon stopped first.
    Stopped,
    Broken,
    /// Its client was notified that some lines cannot be acknowledged.
    Failed,
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
            scratch: Scratch::default(),
            maker,
            connections: BTreeMap::new(),
            replies: BTreeMap::new(),
        }
    }

    /// Applies a new plan: at once for datagrams, and for new connections. Connections are closed if the source has no
    /// listener for them any more.
    pub(crate) fn reconfigure(&mut self, plan: &SourcePlan, maker: IntakeMaker) {
        self.plan = plan.clone();
        self.datagrams = maker.make();
        self.maker = maker;
        if self.plan.listen.is_empty() {
            self.end_all(End::Stopped);
        }
    }

    /// Whether it has a listener for datagrams, connections of lines, or connections of frames.
    pub(crate) fn listens(&self, wanted: Way) -> bool {
        self.plan.listen.iter().any(|listen| Way::of(listen) == wanted)
    }

    /// The peer of a connection sends bytes; the first ones open it.
    ///
    /// # Errors
    /// When it is rejected, or is of the other kind.
    pub(crate) fn send(
        &mut self,
        name: &str,
        framed: bool,
        bytes: &[u8],
        now: Now,
        acks: &mut Acks,
    ) -> Result<(), String> {
        if !self.connections.contains_key(name) {
            self.accept(name, framed, now, acks)?;
        }
        let connection = self.connections.get_mut(name).ok_or("the connection was just made")?;
        if framed && !connection.framed {
            return Err(format!("connection `{name}` carries lines, not frames"));
        }
        connection.unread.extend_from_slice(bytes);
        connection.heard_ns = now.mono_ns;
        Ok(())
    }

    fn accept(&mut self, name: &str, framed: bool, now: Now, acks: &mut Acks) -> Result<(), String> {
        if self.connections.len() >= self.plan.connections_max {
            self.account.connections_refused.fetch_add(1, Relaxed);
            return Err(format!(
                "source `{}` has {} connections and rejects more (`max_connections`)",
                self.plan.name,
                self.connections.len()
            ));
        }
        self.account.connections_accepted.fetch_add(1, Relaxed);
        self.account.connections_open.fetch_add(1, Relaxed);
        let mut intake = if framed { self.maker.make_framed() } else { self.maker.make() };
        let mut answered = None;
        if let Some(when) = self.plan.ack_when {
            let id = acks.open();
            intake = intake.answering(id, when);
            answered = Some(id);
            self.replies.remove(name);
        }
        let connection = Connection {
            intake,
            from: PeerKey::V4(name.bytes().fold(0, |sum, byte| 31_u32.wrapping_mul(sum) + u32::from(byte))),
            answered,
            answer: Answer::default(),
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

    /// The peer ends a connection; false for an unknown name.
    pub(crate) fn end(&mut self, name: &str, end: End) -> bool {
        let Some(connection) = self.connections.get_mut(name) else { return false };
        connection.end = Some(end);
        true
    }

    /// Ends all connections, because the daemon stops or the source was removed.
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
    pub(crate) fn read(&mut self, exchange: &Exchange, acks: &mut Acks, now: Now) {
        let Source { account, scratch, .. } = self;
        self.connections.retain(|_, connection| {
            let open = connection.read(exchange, account, acks, now, scratch);
            if !open {
                account.connections_open.fetch_sub(1, Relaxed);
                connection.answered.into_iter().for_each(|id| acks.close(id));
            }
            open
        });
    }

    /// Sends acknowledgements to clients. If the source `stops`, it also reports lines whose result is unknown.
    pub(crate) fn reply(&mut self, acks: &mut Acks, stops: bool) {
        for (name, connection) in &mut self.connections {
            if stops && connection.waits() {
                connection.answered.into_iter().for_each(|id| acks.fail(id, Unacked::Stopped));
            }
            let lines = connection.reply(acks, &self.account);
            if !lines.is_empty() {
                self.replies.entry(name.clone()).or_default().extend(lines.lines().map(str::to_owned));
            }
        }
    }

    /// All replies to clients since the previous call, by connection.
    pub(crate) fn take_all_replies(&mut self) -> BTreeMap<String, Vec<String>> {
        std::mem::take(&mut self.replies)
    }

    /// The replies to a client since the previous call.
    pub(crate) fn take_replies(&mut self, connection: &str) -> Vec<String> {
        self.replies.remove(connection).unwrap_or_default()
    }

    /// Records in batches without room in the exchange.
    pub(crate) fn stalled(&self) -> u64 {
        let stalled = self.connections.values().filter_map(|connection| connection.stalled.as_ref());
        stalled.map(|batch| batch.records()).sum()
    }

    /// True when the source has read everything that clients have sent.
    pub(crate) fn has_read_all(&self) -> bool {
        self.connections.values().all(|connection| connection.unread.is_empty())
    }

    /// Settles blocked batches, because no room will be made.
    pub(crate) fn abandon(&mut self, outcome: Outcome) {
        let stalled = self.connections.values_mut().filter_map(|connection| connection.stalled.take());
        stalled.for_each(|batch| batch.settle(outcome));
    }

    /// When the first idle connection times out.
    pub(crate) fn wake_ns(&self) -> u64 {
        self.connections.values().map(Connection::idle_ns).min().unwrap_or(u64::MAX)
    }
}

impl Connection {
    fn idle_ns(&self) -> u64 {
        match self.idle_timeout_ms {
            // A connection that is waiting for us is not idle.
            _ if self.over || self.stalled.is_some() || self.waits() => u64::MAX,
            0 => u64::MAX,
            ms => self.heard_ns.saturating_add(ms.saturating_mul(1_000_000)),
        }
    }

    /// False when the connection has ended and all its data is in the exchange.
    fn read(
        &mut self,
        exchange: &Exchange,
        account: &SourceAccount,
        acks: &mut Acks,
        now: Now,
        scratch: &mut Scratch,
    ) -> bool {
        if let Some(batch) = self.stalled.take()
            && !self.hand_on(exchange, *batch)
        {
            return true;
        }
        if self.over {
            return self.owes(acks);
        }
        while self.intake.has_more() || (!self.unread.is_empty() && self.marks_waiting() < MARKS_MAX) {
            let mut batch = if self.intake.has_more() {
                self.intake.more(now, scratch).into_owned()
            } else {
                let len = self.unread.len().min(READ_BYTES);
                let bytes: Vec<u8> = self.unread.drain(..len).collect();
                self.intake.stream(&bytes, now, scratch).into_owned()
            };
            self.intake.settle_too_long();
            batch.ack = self.intake.mark();
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
            self.answered.into_iter().for_each(|id| acks.fail(id, Unacked::IdleTimeout));
        }
        if !self.unread.is_empty() {
            return true;
        }
        let Some(end) = self.end else { return true };
        if end == End::Broken {
            account.connections_broken.fetch_add(1, Relaxed);
        }
        self.over = true;
        let mut last = self.intake.close(end == End::Orderly, now, scratch).into_owned();
        last.ack = self.intake.mark();
        !self.hand_on(exchange, last) || self.owes(acks)
    }

    fn marks_waiting(&self) -> u64 {
        self.intake.marks_unanswered(&self.answer)
    }

    /// True while some line has neither an acknowledgement nor a failure.
    fn waits(&self) -> bool {
        self.answered.is_some() && self.end != Some(End::Failed) && self.marks_waiting() > 0
    }

    /// True while replies to the client are due, or will be.
    fn owes(&self, acks: &Acks) -> bool {
        let Some(id) = self.answered else { return false };
        let fails = self.intake.is_broken() || acks.answer(id).failed.is_some();
        self.waits() || (fails && self.end != Some(End::Failed))
    }

    /// The due replies, one per line.
    fn reply(&mut self, acks: &mut Acks, account: &SourceAccount) -> String {
        let Some(id) = self.answered else { return String::new() };
        self.answer = acks.answer(id);
        if self.over && self.intake.is_broken() && !self.waits() && self.answer.failed.is_none() {
            acks.fail(id, Unacked::BadFrame);
            self.answer = acks.answer(id);
        }
        let mut lines = Vec::new();
        let acked = self.intake.replies(&self.answer, &mut lines);
        account.lines_acked.fetch_add(acked, Relaxed);
        if let Some(why) = self.answer.failed.filter(|_| self.end != Some(End::Failed)) {
            account.fail_acks(why);
            self.end = Some(End::Failed);
            self.unread.clear();
        }
        String::from_utf8_lossy(&lines).into_owned()
    }

    /// False without room in the exchange: the batch is kept.
    fn hand_on(&mut self, exchange: &Exchange, batch: Batches<'static>) -> bool {
        if batch.is_empty() {
            return true;
        }
        match exchange.try_send(self.from, batch) {
            Ok(()) => true,
            Err(batch) => {
                self.stalled = Some(Box::new(batch));
                false
            }
        }
    }
}

/// A kind of listener.
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
