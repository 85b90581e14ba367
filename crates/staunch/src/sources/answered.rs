//! Connections with acknowledgements (docs/acks.md).
//!
//! Path of a line: as in `stream`; and back: `daemon::shared::acks` -> `Intake::replies` -> [`Answered::answer`] writes it. Not
//! here: the conditions (`pipeline::Acks`), the reply texts (`pipeline`).
//! Invariant: at most one reply is pending for a client, and meanwhile the client is not read; nor is it read while
//! [`MARKS_MAX`] of its reads wait for their condition.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::{Batches, PeerKey, Unacked};
use pipeline::{Broken, Intake, MARKS_MAX};
use tokio::sync::watch;

use crate::admission::ConnectionSlot as Place;
use crate::daemon::shared::Shared;
use crate::daemon::shared::acks::AckSlot;
use crate::sources::listener::{Order, StreamSource, idle_timeout, ordered};
use crate::sources::stream::{
    End, Stream, UNREAD_MAX, close, complain, follow, hand_on, last_read_until_ns, last_reads, note_end,
    read_once,
};
use sys::clock::Clock;

/// One connection.
pub(super) struct Answered {
    stream: Stream,
    from: PeerKey,
    intake: Intake,
    slot: AckSlot,
    source: StreamSource,
    idle: Duration,
    /// The pending reply, and how much of it is written.
    reply: Vec<u8>,
    written: usize,
    /// Its lines in the source's count of unacknowledged ones.
    unacked: u64,
    /// `err` was sent, or will be.
    failed: bool,
    /// How reading it ended, if it has.
    end: Option<End>,
}

impl Answered {
    /// A connection that was not read here yet; `intake` is the slot's.
    pub(super) fn new(
        (stream, from): (Stream, PeerKey),
        intake: Intake,
        slot: AckSlot,
        source: StreamSource,
    ) -> Answered {
        // Replies are short, and clients may wait for them.
        stream.send_at_once();
        Answered {
            intake,
            idle: idle_timeout(&source.plan),
            stream,
            from,
            slot,
            source,
            reply: Vec::new(),
            written: 0,
            unacked: 0,
            failed: false,
            end: None,
        }
    }

    /// Serves it until all possible replies are sent, or until it must pause.
    pub(super) async fn serve(
        mut self: Box<Self>,
        shared: &Shared,
        updates: &mut watch::Receiver<StreamSource>,
        orders: &mut watch::Receiver<Order>,
        place: &Place,
    ) -> Option<Box<Answered>> {
        if self.end.is_none() {
            let end = match self.read_to_end(shared, updates, orders, place).await {
                End::AtRest => return Some(self),
                end => end,
            };
            place.wait_ends();
            note_end(&end, &self.source, (&self.stream, self.from));
            let mut last = close(&mut self.intake, matches!(end, End::Orderly));
            last.ack = self.intake.mark();
            self.hand_on(last, shared).await;
            self.end = Some(end);
        }
        // Cancel-safe: each written part of a reply is noted.
        let order = tokio::select! {
            biased;
            () = self.answer_rest() => return None,
            order = ordered(orders) => order,
        };
        if matches!(order, Order::HandOver | Order::Empty) {
            return Some(self);
        }
        let acks = Arc::clone(&shared.acks);
        acks.wait_on(self.answer_to_the_end());
        None
    }

    /// Nothing more is read, and its acknowledgements are awaited.
    pub(super) async fn answer_to_the_end(mut self: Box<Self>) {
        self.answer_rest().await;
    }

    /// The state for another process. `None` when it must end here: its client got `err`, or does not read.
    #[cfg(target_os = "linux")]
    pub(super) fn unfinished(&mut self) -> Option<pipeline::Unfinished> {
        let can = match self.end {
            // If its peer has closed it, the other process notices that again.
            None | Some(End::Orderly) => self.answer().is_ok() && self.reply.is_empty() && !self.failed,
            Some(_) => false,
        };
        if can { self.intake.unfinished() } else { None }
    }

    /// True when a reply is pending.
    #[cfg(target_os = "linux")]
    pub(super) fn waits(&self) -> bool {
        self.intake.lines_unanswered() > 0 && !self.failed
    }

    /// True when a part of a line has arrived.
    #[cfg(target_os = "linux")]
    pub(super) fn has_tail(&self) -> bool {
        self.end.is_none() && self.intake.has_tail()
    }

    /// Its connection id.
    #[cfg(target_os = "linux")]
    pub(super) fn id(&self) -> model::ConnectionId {
        self.slot.id()
    }

    /// Its connection.
    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The same, for another runtime.
    pub(super) fn stream_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// Its peer, for turns.
    pub(super) fn from(&self) -> PeerKey {
        self.from
    }

    async fn read_to_end(
        &mut self,
        shared: &Shared,
        updates: &mut watch::Receiver<StreamSource>,
        orders: &mut watch::Receiver<Order>,
        place: &Place,
    ) -> End {
        loop {
            if let Err(gone) = self.answer() {
                return End::Broken(gone.to_string());
            }
            if self.failed {
                return End::Failed;
            }
            let waits = self.intake.marks_unanswered(&self.slot.answer());
            let blocked = !self.reply.is_empty();
            let reads = !blocked && waits < MARKS_MAX;
            if waits == 0 && !blocked {
                place.wait_begins(Clock::mono_ns());
            } else {
                // A client that waits for a reply is not silent.
                place.wait_ends();
            }
            // All branches are cancel-safe: nothing has been read or written when another one wins.
            tokio::select! {
                biased;
                order = ordered(orders) => return match order {
                    Order::HandOver => End::AtRest,
                    Order::Empty => self.last_read(shared).await.at_rest(),
                    _stop => self.last_read(shared).await,
                },
                () = self.slot.changed() => continue,
                room = self.stream.writable(), if blocked => match room {
                    Ok(()) => continue,
                    Err(error) => return End::Broken(error.to_string()),
                },
                ready = self.stream.readable(), if reads => if let Err(error) = ready {
                    return End::Broken(error.to_string());
                },
                // A client that waits for a reply is not idle; one that does not read it is.
                () = tokio::time::sleep(self.patience(blocked)), if blocked || waits == 0 => {
                    let why = if blocked { Unacked::Unread } else { Unacked::IdleTimeout };
                    self.slot.fail(why);
                    return End::Broken(why.why().to_owned());
                }
                _leave = place.asked_to_leave() => return self.replaced(),
            }
            place.wait_ends();
            match self.room(shared, orders).await {
                Order::Serve => {}
                Order::HandOver => return End::AtRest,
                Order::Empty => return self.last_read(shared).await.at_rest(),
                Order::Stop => return self.last_read(shared).await,
            }
            follow(&mut self.intake, updates);
            let batch = match shared.floor().run(|| read_once(&self.stream, &mut self.intake)) {
                Ok(Some(batch)) => batch,
                Ok(None) => continue,
                Err(end) => return end,
            };
            self.hand_on(batch, shared).await;
            match self.intake.broken() {
                // The client speaks another protocol and does not understand our replies.
                Some(broken) if self.intake.is_foreign() => return End::Broken(broken.why().to_owned()),
                Some(broken) => return End::Unreadable(broken),
                None => {}
            }
            if place.is_to_leave() {
                return self.replaced();
            }
            // As in `stream`: a busy client lets the others have their turns.
            tokio::task::yield_now().await;
        }
    }

    /// Its slot was given to another connection. Its client gets `err N replaced`, and resends unacknowledged lines.
    fn replaced(&self) -> End {
        self.slot.fail(Unacked::Replaced);
        End::Replaced
    }

    /// The timeout of its client.
    fn patience(&self, blocked: bool) -> Duration {
        if blocked { self.idle.min(UNREAD_MAX) } else { self.idle }
    }

    /// At a stop: received data still counts, up to its last whole line.
    async fn last_read(&mut self, shared: &Shared) -> End {
        let until_ns = last_read_until_ns(shared);
        for read in 0..last_reads() {
            if read > 0 && Clock::mono_ns() >= until_ns {
                break;
            }
            shared.floor().turn(self.intake.source(), self.from).await;
            let batch = match shared.floor().run(|| read_once(&self.stream, &mut self.intake)) {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(end) => return end,
            };
            self.hand_on(batch, shared).await;
            if shared.exchange.is_closed() {
                break;
            }
            // Other tasks have their turn, including the timer of the stop.
            tokio::task::yield_now().await;
        }
        End::Stopped
    }

    /// Waits until it can be read and the data can be passed on, or for another order; replies continue meanwhile.
    async fn room(&mut self, shared: &Shared, orders: &mut watch::Receiver<Order>) -> Order {
        let mut room = std::pin::pin!(shared.floor().turn(self.intake.source(), self.from));
        loop {
            // All branches are cancel-safe: nothing has been read.
            tokio::select! {
                biased;
                order = ordered(orders) => return order,
                () = &mut room => return Order::Serve,
                () = self.slot.changed() => {
                    // A read will show when the client is gone.
                    let _gone = self.answer();
                }
            }
        }
    }

    /// Passes a batch to the shard; replies continue meanwhile.
    async fn hand_on(&mut self, batch: Batches<'static>, shared: &Shared) {
        complain(&mut self.intake, &self.source, (&self.stream, self.from));
        self.count_unacked();
        let mut handing = std::pin::pin!(hand_on(batch, self.from, shared));
        let taken = loop {
            // The first branch is always completed; the other is cancel-safe.
            tokio::select! {
                biased;
                taken = &mut handing => break taken,
                () = self.slot.changed() => {
                    // A read will show when the client is gone.
                    let _gone = self.answer();
                }
            }
        };
        if !taken {
            self.slot.fail(Unacked::Stopped);
        }
    }

    /// Writes pending replies, as far as the client reads them.
    fn answer(&mut self) -> io::Result<()> {
        loop {
            if self.reply.is_empty() {
                let answer = self.slot.answer();
                let acked = self.intake.replies(&answer, &mut self.reply);
                self.source.account.lines_acked.fetch_add(acked, Relaxed);
                self.count_unacked();
                if let Some(why) = answer.failed.filter(|_| !self.failed) {
                    self.source.account.fail_acks(why);
                    self.failed = true;
                }
            }
            if self.reply.is_empty() {
                return Ok(());
            }
            match self.stream.try_write(&self.reply[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            if self.written == self.reply.len() {
                self.reply.clear();
                self.written = 0;
            }
        }
    }

    /// Nothing more is read: waits for the pending acknowledgements, and sends them.
    async fn answer_rest(&mut self) {
        let is_there = !matches!(self.end, Some(End::Broken(_))) || self.slot.answer().failed.is_some();
        while is_there && self.answer().is_ok() {
            let waits = self.intake.marks_unanswered(&self.slot.answer()) > 0 && !self.failed;
            if !waits && self.reply.is_empty() {
                let why = match self.end {
                    Some(End::Unreadable(Broken::NoRoom(_))) => Some(Unacked::UnfinishedFull),
                    Some(End::Unreadable(Broken::Reloaded)) => Some(Unacked::Reloaded),
                    Some(End::Unreadable(Broken::Rejected(_))) => Some(Unacked::BadFrame),
                    _ => None,
                };
                if let Some(why) = why.filter(|_| !self.failed) {
                    self.slot.fail(why);
                    continue;
                }
                if self.failed {
                    self.stream.linger().await;
                }
                break;
            }
            if waits && self.slot.is_over() {
                self.slot.fail(Unacked::Stopped);
                continue;
            }
            let blocked = !self.reply.is_empty();
            if blocked && self.slot.answer().failed == Some(Unacked::Unread) {
                // At the timeout it still reads nothing.
                self.count_unread();
                break;
            }
            // All branches are cancel-safe: they only wait.
            tokio::select! {
                () = self.slot.changed() => {}
                room = self.stream.writable(), if blocked => if room.is_err() {
                    break;
                },
                // The client may be gone: a closed direction says nothing about the other one.
                () = tokio::time::sleep(self.patience(blocked)) => {
                    if blocked {
                        self.count_unread();
                        break;
                    }
                    self.slot.fail(Unacked::IdleTimeout);
                }
            }
        }
    }

    /// The client has not read its replies. If it already counts as failed, that is its reason.
    fn count_unread(&self) {
        if !self.failed {
            self.source.account.fail_acks(Unacked::Unread);
        }
    }

    fn count_unacked(&mut self) {
        let now = self.intake.lines_unanswered();
        // Adding the difference modulo 2^64 also subtracts.
        self.source.account.lines_unacked.fetch_add(now.wrapping_sub(self.unacked), Relaxed);
        self.unacked = now;
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        self.source.account.lines_unacked.fetch_sub(self.unacked, Relaxed);
        self.source.account.connections_open.fetch_sub(1, Relaxed);
    }
}
