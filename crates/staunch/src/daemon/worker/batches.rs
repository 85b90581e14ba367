//! Batches of connections: taken out of the exchange, each only when the outputs that must not lose it have room.
//!
//! Path of a batch: `sources::stream` -> `Exchange` -> [`Worker::take_exchange`] -> `Shard::push` -> the outlets.
//! Invariant: a batch that finds no room stays in the exchange, and its source with it; nobody is waited for.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use deliver::queue::Room;
use model::{Batches, Dropped, Now, Outcome, OutputId, PeerKey};
use pipeline::Look;
use sys::clock::Clock;

use super::socket::To;
use super::{SEARCH_MAX_NS, Worker};
use crate::daemon::acks::AckRegistry;
use crate::daemon::outlet::Outlet;

/// First pause between two looks at a queue that a source waits for; it doubles while there is no room.
pub(super) const BLOCKED_PAUSE_NS: u64 = model::SECOND_NS / 500;

/// Longest such pause: an endpoint that takes nothing for hours costs next to nothing.
const BLOCKED_PAUSE_MAX_NS: u64 = 32 * BLOCKED_PAUSE_NS;

/// So long a source waits for a queue before a line is logged: an endpoint that is slow makes it wait for moments all the time.
const STALL_TOLD_AFTER_NS: u64 = 5 * model::SECOND_NS;

/// Memory of batches that one turn takes, over by one batch at most: about as much work as the datagram sockets make in a
/// turn. What is left waits with its connections.
const TURN_BYTES: usize = 1 << 20;

impl Worker {
    /// Takes a turn's share of what connections brought: says whether more is left that nobody need wait for.
    pub(super) fn take_exchange(&mut self, now: Now) -> bool {
        if self.shard.blocks() && !self.exchange.is_empty() {
            // What this turn's packets gave is in the queues before anybody asks them for room.
            self.deliver(now);
            if !self.has_ample_room() {
                return self.take_unblocked(now);
            }
        }
        self.take_share(now)
    }

    /// True when every output that somebody may wait for has room for whatever becomes of all that is in the exchange.
    fn has_ample_room(&self) -> bool {
        let (bytes, records) = self.exchange.held();
        let waits = |outlet: &Arc<Outlet>| outlet.has_ample_room(2 * bytes, records);
        self.shard.waited_for().all(|id| waits(&self.outlets[id.index()]))
    }

    /// Batch by batch, each only when the outputs that must not lose it have room. Sources and their peers take turns.
    fn take_unblocked(&mut self, now: Now) -> bool {
        // Batches of sources that wait for nobody do not make it look more often: a look reads whole batches.
        let looks = now.mono_ns >= self.blocked_until_ns;
        let (mut taken, mut waited) = (false, false);
        self.stalled.resize(self.outlets.len(), false);
        let (mut bytes, mut look) = (0, Look::default());
        let until_ns = Clock::mono_ns() + SEARCH_MAX_NS;
        let mut in_time = true;
        while bytes < TURN_BYTES && in_time {
            let Worker { shard, outlets, exchange, stalled, .. } = self;
            let next = exchange.take_in_turn(&mut look, |batch| {
                let blocking = shard.blocking(batch.source);
                let has_room = |id: &OutputId| {
                    let (bytes, records) = shard.room_for(*id, batch);
                    let outlet = &outlets[id.index()];
                    let takes = shard.has_failover(*id) || outlet.room(bytes, records, now) > Room::None;
                    if std::mem::replace(&mut stalled[id.index()], !takes) == takes {
                        let account = &outlet.account;
                        account.stalls.fetch_add(u64::from(!takes), Relaxed);
                        let since_ns = if takes { 0 } else { now.mono_ns.max(1) };
                        account.stalled_since_ns.store(since_ns, Relaxed);
                    }
                    takes
                };
                blocking.is_empty() || (looks && blocking.iter().all(has_room))
            });
            let Some((from, batch)) = next else { break };
            taken = true;
            bytes += batch.memory_bytes();
            waited |= !self.shard.blocking(batch.source).is_empty();
            self.take_admitted((from, batch), now, until_ns);
            in_time = Clock::mono_ns() < until_ns;
        }
        let more = (bytes >= TURN_BYTES || !in_time) && !self.exchange.is_empty();
        self.blocked = !more && !self.exchange.is_empty();
        if !self.blocked {
            // The next turn looks at once.
            self.blocked_until_ns = 0;
        } else if looks {
            let longer_ns = (2 * self.blocked_pause_ns).min(BLOCKED_PAUSE_MAX_NS);
            self.blocked_pause_ns = if waited { BLOCKED_PAUSE_NS } else { longer_ns };
            self.blocked_until_ns = now.mono_ns + self.blocked_pause_ns;
        }
        if taken {
            self.room.notify_waiters();
        }
        more
    }

    /// As much as one turn takes, oldest first.
    fn take_share(&mut self, now: Now) -> bool {
        self.nobody_waits();
        let until_ns = Clock::mono_ns() + SEARCH_MAX_NS;
        let mut bytes = 0;
        let mut in_time = true;
        while bytes < TURN_BYTES && in_time {
            let Some((from, batch)) = self.exchange.take_oldest() else { break };
            bytes += batch.memory_bytes();
            self.take_and_set_back((from, batch), &[], now, until_ns);
            in_time = Clock::mono_ns() < until_ns;
        }
        if bytes > 0 {
            self.room.notify_waiters();
        }
        bytes > 0 && !self.exchange.is_empty()
    }

    /// True when batches wait that must not be lost, and a queue on disk that they lead to has no room for them: who takes
    /// them now drops them.
    pub(super) fn waits_for_a_disk(&mut self, now: Now) -> bool {
        let (bytes, records) = self.exchange.held();
        if records == 0 {
            return false;
        }
        self.deliver(now);
        let full = |outlet: &Arc<Outlet>| {
            outlet.disk().is_some() && outlet.room(2 * bytes, records, now) == Room::None
        };
        self.shard.waited_for().any(|id| full(&self.outlets[id.index()]))
    }

    /// Everything, for the end: what sockets have read, too. Says whether that was all: it ends at `until_ns` (monotonic), when
    /// a relay has to search long.
    pub(super) fn take_all_until(&mut self, until_ns: u64) -> bool {
        self.nobody_waits();
        let Worker { shard, routed, exchange, scratch, sockets, .. } = self;
        let mut to = To { shard, routed, exchange, scratch, until_ns };
        for socket in sockets {
            let _done = socket.push_left(&mut to);
        }
        while let Some((from, batch)) = self.exchange.take_oldest() {
            if let Some(left) = self.take_batch(batch, &[], Clock::now(), until_ns) {
                self.exchange.set_back(from, left);
                break;
            }
        }
        self.exchange.is_empty() && self.sockets.iter().all(|socket| socket.left.is_empty())
    }

    /// Gives what is left its end: what needs no long search is taken, the rest is dropped.
    pub(super) fn drop_left(&mut self) {
        let Worker { shard, routed, exchange, scratch, sockets, .. } = self;
        let mut to = To { shard, routed, exchange, scratch, until_ns: 0 };
        for socket in sockets {
            socket.finish_left(&mut to);
        }
        while let Some((_, batch)) = self.exchange.take_oldest() {
            if let Some(left) = self.take_batch(batch, &[], Clock::now(), 0) {
                left.settle(Outcome::Dropped(Dropped::Stopped));
            }
        }
    }

    /// All queues have room for whatever there is.
    fn nobody_waits(&mut self) {
        self.blocked = false;
        // Emptied, so that this is looked at once for each wait.
        for (at, stalled) in self.stalled.drain(..).enumerate() {
            if stalled && let Some(outlet) = self.outlets.get(at) {
                outlet.account.stalled_since_ns.store(0, Relaxed);
            }
        }
    }

    /// Says of outputs that sources have waited for them for a while, and that they do no more: once for each wait.
    pub(super) fn tell_stalls(&mut self, now: Now) {
        if self.stalled.is_empty() && self.stalls_told.is_empty() {
            return;
        }
        for (at, outlet) in self.outlets.iter().enumerate() {
            let since_ns = outlet.account.stalled_since_ns.load(Relaxed);
            let told = self.stalls_told.iter().position(|told| *told == at);
            match (told, since_ns) {
                (None, 1..) if now.mono_ns.saturating_sub(since_ns) >= STALL_TOLD_AFTER_NS => {
                    tracing::warn!(
                        "output `{}`: its queue is full, and the connections of its sources are not read until it has \
                         room (when_full = \"block\")",
                        outlet.name
                    );
                    self.stalls_told.push(at);
                }
                (Some(told), 0) => {
                    tracing::info!(
                        "output `{}`: its queue has room again, and connections are read again",
                        outlet.name
                    );
                    self.stalls_told.swap_remove(told);
                }
                _ => {}
            }
        }
    }

    /// Takes a batch that there is room for. More may become of it than there is room for: then it has blocks of its own,
    /// which are kept.
    fn take_admitted(&mut self, (from, batch): (PeerKey, Batches<'static>), now: Now, until_ns: u64) {
        let Worker { shard, outlets, .. } = self;
        let source = batch.source;
        let is_tight = |id: &OutputId| {
            let (bytes, records) = shard.room_for(*id, &batch);
            outlets[id.index()].room(bytes, records, now) == Room::Tight
        };
        let blocking = if shard.multiplies(source) { shard.blocking(source) } else { &[] };
        let tight: Vec<OutputId> = blocking.iter().copied().filter(is_tight).collect();
        if tight.is_empty() {
            self.take_and_set_back((from, batch), &[], now, until_ns);
            return self.deliver(now);
        }
        // What cannot wait has no share in it.
        self.shard.close_reached(source, now, &mut self.routed);
        self.deliver(now);
        self.take_and_set_back((from, batch), &tight, now, until_ns);
        self.shard.close_reached(source, now, &mut self.routed);
        self.deliver_admitted(&tight, now);
    }

    /// Takes a batch, or the part of it that there is time for; the rest is the next batch of its peer.
    fn take_and_set_back(
        &mut self,
        (from, batch): (PeerKey, Batches<'static>),
        admitted: &[OutputId],
        now: Now,
        until_ns: u64,
    ) {
        if let Some(left) = self.take_batch(batch, admitted, now, until_ns) {
            self.exchange.set_back(from, left);
        }
    }

    /// Takes a batch of a connection. If its client wants to be told, its lines are in the queues afterwards. `admitted` are
    /// outputs that had room for it. Gives what is left at `until_ns` (monotonic), if a relay has to search long: of batches
    /// that nobody is told of.
    fn take_batch(
        &mut self,
        batch: Batches<'static>,
        admitted: &[OutputId],
        now: Now,
        until_ns: u64,
    ) -> Option<Batches<'static>> {
        if batch.ack.is_none() {
            let go_on = &mut || Clock::mono_ns() < until_ns;
            return self.shard.push_while(batch, now, &mut self.routed, go_on);
        }
        // What came before it has its place in the queues, and its losses are counted.
        self.deliver(now);
        let source = batch.source;
        let taking = AckRegistry::begin(&batch, &self.shard, &self.outlets);
        self.shard.push(batch, now, &mut self.routed);
        self.shard.close_reached(source, now, &mut self.routed);
        self.deliver_admitted(admitted, now);
        if let Some(taking) = taking {
            self.acks.taken(taking, &self.outlets);
        }
        None
    }

    /// Looks at queues that had no room at once.
    pub fn look_for_room(&mut self) {
        self.blocked_until_ns = 0;
    }
}
