//! Connections of a source: read, pass whole lines to the shard, wait when it is full.
//!
//! Path of a line: `accept` -> [`Plain::serve`] -> `Intake::stream` -> `Exchange` -> the shard's thread. Not here:
//! accepting (`accept`), framing and parsing (`pipeline`), datagrams (`daemon::worker`), acknowledgements (`answered`),
//! connections between two processes (`parked`).
//! Invariants: a connection waits for room in the exchange before it reads, so its peer has to wait, and meanwhile it
//! holds only its incomplete line. The results of a read are in memory of the thread, and are passed on before the next
//! await. Messages may decode to more than one batch, so their connections take turns ([`Shared::turns`]). All
//! connections take turns when reads are slow ([`Shared::floor`]).

mod handshakes;
mod reading;
mod socket;
mod unfinished;
mod wrapping;

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::{Batches, Dropped, Outcome, PeerKey, SourceId};
use pipeline::{Broken, Intake, ProtocolReplies};
use tokio::sync::watch;
use tokio::task::yield_now;

pub(super) use self::reading::{End, close, last_reads, more, read_once, take_apart};
pub(super) use self::socket::Stream;
use self::unfinished::tell_full;
pub(super) use self::wrapping::Wrapping;
use self::wrapping::{tell_closed, tell_failed};

use crate::admission::ConnectionSlot;
use crate::daemon::shared::Shared;
use crate::daemon::shared::names::shown;
use crate::daemon::shared::turns::Place;
use crate::sources::listener::{Order, StreamSource, idle_timeout, ordered};
use crate::sources::queries::answer;
use sys::clock::Clock;

/// A client that reads none of its replies for this long is closed, with any `idle_timeout`.
pub(super) const UNREAD_MAX: Duration = Duration::from_secs(30);

/// Ordinary lines leave less unfinished after a read.
const MUCH_UNFINISHED_BYTES: usize = 4096;

/// A connection without acknowledgements.
pub(super) struct Plain {
    pub(super) stream: Stream,
    pub(super) from: PeerKey,
    pub(super) intake: Intake,
    pub(super) source: StreamSource,
    /// `None` without TLS and compression.
    pub(super) wrapping: Option<Box<Wrapping>>,
}

impl Plain {
    /// Serves it until its end, or until it must pause.
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
        // It has just had its turn to read. With room in the exchange, it needs no other turn, for which thousands of
        // ended connections would wait, each with an incomplete line.
        if !shared.exchange.has_room(self.intake.source()) {
            shared.floor().turn(self.intake.source(), self.from).await;
        }
        let last = shared.floor().run(|| close(&mut self.intake, matches!(end, End::Orderly)));
        complain(&mut self.intake, &self.source, (&self.stream, self.from));
        let _taken = hand_on(last, self.from, shared).await;
        if matches!(end, End::Unreadable(_)) && self.intake.replies_to_messages() {
            self.stream.linger().await;
        }
        None
    }

    /// The TLS handshake of an encrypted connection.
    async fn shake_hands(&mut self, orders: &mut watch::Receiver<Order>) -> Result<(), End> {
        let Plain { stream, from, source, wrapping, .. } = self;
        let Some(wrapping) = wrapping.as_mut().filter(|wrapping| wrapping.is_handshaking()) else {
            return Ok(());
        };
        // A connection that leaves its handshake is closed: it has no data yet.
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
            // Data that was read but not decompressed comes first: the socket need not be readable for it.
            let has_more = wrapping.as_ref().is_some_and(|wrapping| wrapping.has_more());
            slot.wait_begins(Clock::mono_ns());
            // All branches are cancel-safe: nothing has been read when another one wins. Data that arrived before its
            // slot was needed is read first.
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
                // Data between the socket and the lines cannot be passed on: such a connection ends here.
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
            let mut turn = tokio::select! {
                biased;
                order = ordered(orders) => match order {
                    Order::HandOver if wrapping.is_none() => return End::AtRest,
                    Order::Empty if wrapping.is_none() => return self.last_read(shared).await.at_rest(),
                    _stop => return self.last_read(shared).await,
                },
                turn = turn_to_read(intake, *from, shared) => turn,
                // Data arrived just when it was asked to leave, and there is no room for it: it is not read.
                _leave = slot.asked_to_leave() => return End::Replaced,
            };
            follow(intake, updates);
            // After a large unfinished part, it reads again at once: if the peer has gone meanwhile, as thousands may,
            // the connection holds nothing until its next turn.
            for _ in 0..2 {
                let batch = match shared.floor().run(|| read_some(stream, wrapping.as_deref_mut(), intake)) {
                    Ok(Some(batch)) => batch,
                    Ok(None) => break,
                    Err(end) => {
                        note_tls_end(&end, wrapping.as_deref(), source, (stream, *from));
                        return end;
                    }
                };
                complain(intake, source, (stream, *from));
                let is_taken = hand_on_all(batch, intake, (source, stream, *from), shared).await;
                let replies = intake.take_protocol_replies();
                let has_replies = !replies.is_empty();
                let (to, of) = ((&*stream, wrapping.as_deref_mut()), (intake.source(), *from));
                let replied = reply_all(to, (replies, is_taken), of, shared, &mut turn, (orders, slot)).await;
                if let Err(end) = intake.broken().map_or(replied, |broken| Err(End::Unreadable(broken))) {
                    return end;
                }
                let is_done = wrapping.is_some() || has_replies;
                if is_done || intake.memory_bytes() < MUCH_UNFINISHED_BYTES {
                    break;
                }
            }
            if slot.is_to_leave() {
                return End::Replaced;
            }
            // A socket with steady input is always readable, and checking it never waits: without this, one busy peer
            // would keep the thread from every other connection, from the outputs and from signals.
            tokio::task::yield_now().await;
        }
    }

    /// At a stop: received data still counts, up to its last whole line.
    async fn last_read(&mut self, shared: &Shared) -> End {
        let Plain { stream, from, intake, wrapping, source } = self;
        let mut reads = 0;
        let until_ns = last_read_until_ns(shared);
        loop {
            let has_more = wrapping.as_ref().is_some_and(|wrapping| wrapping.has_more());
            // Data of a compressed stream is limited by the bytes read, and counts unless it takes too long.
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
                // Nobody accepts it any more: unread data is not lost here, because its client sees a reset.
                return End::Stopped;
            }
            let batch = match shared.floor().run(|| read_some(stream, wrapping.as_deref_mut(), intake)) {
                Ok(Some(batch)) => batch,
                Ok(None) => return End::Stopped,
                Err(end) => return end,
            };
            let is_taken = hand_on_all(batch, intake, (source, stream, *from), shared).await;
            let replies = intake.take_protocol_replies();
            // At a stop nothing is searched any more: a client that asked is disconnected.
            let is_written = replies.is_empty()
                || is_taken
                    && replies.queries.is_empty()
                    && write_some(stream, wrapping.as_deref_mut(), &mut &replies.bytes[..]).unwrap_or(false);
            if !is_written {
                return unread_replies();
            }
            if let Some(broken) = intake.broken() {
                return End::Unreadable(broken);
            }
            if shared.exchange.is_closed() {
                return End::Stopped;
            }
            // Other tasks have their turn, including the timer of the stop.
            tokio::task::yield_now().await;
        }
    }
}

/// Logs the end of a connection because of a TLS error.
fn note_tls_end(
    end: &End,
    wrapping: Option<&Wrapping>,
    source: &StreamSource,
    (stream, from): (&Stream, PeerKey),
) {
    if let (End::Broken(why), true) = (end, wrapping.is_some_and(Wrapping::is_tls_broken)) {
        tell_closed(&source.plan.name, &stream.shown_peer(from), why);
    }
}

/// Answers the queries of the last read, and writes all replies to it. Others have their turn meanwhile.
async fn reply_all(
    to: (&Stream, Option<&mut Wrapping>),
    (replies, is_taken): (ProtocolReplies, bool),
    of: (SourceId, PeerKey),
    shared: &Shared,
    turn: &mut Option<Place>,
    (orders, slot): (&mut watch::Receiver<Order>, &ConnectionSlot),
) -> Result<(), End> {
    match replies.is_empty() {
        true => return Ok(()),
        // A reply promises that the records were accepted.
        false if !is_taken => return Err(End::Stopped),
        false => drop(turn.take()),
    }
    let (stream, mut wrapping) = to;
    let ProtocolReplies { bytes, queries } = replies;
    let mut written = 0;
    for (at, text) in queries {
        reply((stream, wrapping.as_deref_mut()), &bytes[written..at], turn, orders, slot).await?;
        written = at;
        let mut query = answer(text, of, shared, orders).await.ok_or_else(unread_replies)?;
        let mut out = Vec::new();
        while !query.measure() {
            yield_now().await;
        }
        query.begin_reply(&mut out);
        loop {
            let has_more = query.more(&mut out);
            reply((stream, wrapping.as_deref_mut()), &out, turn, orders, slot).await?;
            out.clear();
            if !has_more {
                break;
            }
            // The socket may take one piece after the other.
            yield_now().await;
        }
    }
    reply((stream, wrapping), &bytes[written..], turn, orders, slot).await
}

/// Writes the replies of the source's protocol to the last read. The client is not read until it has taken them; the turn ends before.
async fn reply(
    (stream, mut wrapping): (&Stream, Option<&mut Wrapping>),
    replies: &[u8],
    turn: &mut Option<Place>,
    orders: &mut watch::Receiver<Order>,
    slot: &ConnectionSlot,
) -> Result<(), End> {
    if replies.is_empty() {
        return Ok(());
    }
    drop(turn.take());
    let mut rest = replies;
    loop {
        match write_some(stream, wrapping.as_deref_mut(), &mut rest) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => return Err(End::Broken(error.to_string())),
        }
        // All branches are cancel-safe: nothing has been written when another one wins.
        let ready = tokio::select! {
            biased;
            _order = ordered(orders) => return Err(unread_replies()),
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
}

/// A client that does not read gets no more replies during a stop. Its connection ends here even in a hot restart: the rest of a reply
/// cannot be passed on.
fn unread_replies() -> End {
    End::Broken("it did not read its replies before the stop".to_owned())
}

fn write_some(stream: &Stream, wrapping: Option<&mut Wrapping>, bytes: &mut &[u8]) -> io::Result<bool> {
    match wrapping {
        None => stream.write_some(bytes),
        Some(wrapping) => wrapping.write(stream, bytes),
    }
}

/// One read, through TLS and compression if there are any.
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

/// Changed parsing options of a reload apply from the next read on.
pub(super) fn follow(intake: &mut Intake, updates: &mut watch::Receiver<StreamSource>) {
    // A removed listener sends no changes.
    if updates.has_changed().unwrap_or(false) {
        intake.follow(&updates.borrow_and_update().intake);
    }
}

/// When a stopping connection begins no further read.
pub(super) fn last_read_until_ns(shared: &Shared) -> u64 {
    Clock::mono_ns() + shared.last_read_max().as_nanos() as u64
}

/// Counts and logs a connection whose data cannot be processed any further, with or without acknowledgements.
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

/// Waits until it is the connection's turn and its data can be passed on at once. The data must be passed on before the
/// next await. Cancel-safe.
pub(super) async fn turn_to_read(intake: &Intake, from: PeerKey, shared: &Shared) -> Option<Place> {
    let turn = match intake.takes_messages() {
        true => Some(shared.turns.wait(intake.source(), from).await),
        false => None,
    };
    shared.floor().turn(intake.source(), from).await;
    turn
}

/// Passes on the results of one read; messages piece by piece. False when nobody accepts them any more.
async fn hand_on_all(
    batch: Batches<'static>,
    intake: &mut Intake,
    (source, stream, from): (&StreamSource, &Stream, PeerKey),
    shared: &Shared,
) -> bool {
    let mut taken = hand_on(batch, from, shared).await;
    while intake.has_more() {
        // One message may have many pieces, and other tasks have their turn.
        tokio::task::yield_now().await;
        shared.floor().turn(intake.source(), from).await;
        let batch = shared.floor().run(|| more(intake));
        complain(intake, source, (stream, from));
        taken = hand_on(batch, from, shared).await;
    }
    taken
}

/// Passes a batch of the peer `from` to the shard; waits for room, in turn with connections that want to read. False
/// when nobody accepts it any more: it was dropped.
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
    // It may take long until there is room, and the source's account must be balanced all the time.
    let _outside = shared.exchange.outside(source, batch.records());
    while !shared.exchange.is_closed() {
        // Cancel-safe: the batch is ours until it is accepted.
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
