//! Batches of connections: taken out of the exchange, each only when the outputs that must not lose it have room.
//!
//! Path of a batch: `Exchange` -> **[`Turn::take`]** -> `Shard::push` -> the queues.
//! Invariant: a batch that finds no room stays in the exchange, and its source with it; the turn waits for nobody.

use std::sync::atomic::Ordering::Relaxed;

use deliver::queue::Room;
use model::{Batches, Now, OutputAccount, OutputId, PeerKey};

use super::{Host, MovingQueues, Outputs, Turn};
use crate::acks::{Queues, Taking};
use crate::{Exchange, Look};

/// First pause between two looks at a queue that a source waits for; it doubles while there is no room.
const LOOK_PAUSE_NS: u64 = model::SECOND_NS / 500;

/// Longest such pause: an endpoint that takes nothing for hours costs next to nothing.
const LOOK_PAUSE_MAX_NS: u64 = 32 * LOOK_PAUSE_NS;

/// What a turn took out of the exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Something: the exchange has room again.
    pub any: bool,
    /// More is left that no output blocks: the next turn should follow at once.
    pub more: bool,
}

/// Sources that wait for room in the queues of their outputs.
#[derive(Debug)]
pub(super) struct Backpressure {
    /// Batches wait in the exchange for room in a queue.
    is_blocked: bool,
    pause_ns: u64,
    /// When to look for room again, monotonic nanoseconds.
    look_ns: u64,
    /// By output: a source was waiting for it at the last look.
    stalled: Vec<bool>,
}

impl Default for Backpressure {
    fn default() -> Backpressure {
        Backpressure { is_blocked: false, pause_ns: LOOK_PAUSE_NS, look_ns: 0, stalled: Vec::new() }
    }
}

impl Backpressure {
    /// Counts whether an output makes a source wait.
    fn note(&mut self, output: OutputId, waits: bool, account: &OutputAccount, now: Now) {
        let at = output.index();
        if self.stalled.len() <= at {
            self.stalled.resize(at + 1, false);
        }
        if std::mem::replace(&mut self.stalled[at], waits) != waits {
            account.stalls.fetch_add(u64::from(waits), Relaxed);
            account.stalled_since_ns.store(if waits { now.mono_ns.max(1) } else { 0 }, Relaxed);
        }
    }

    /// After a look: `blocked` batches are left, and some batch of a source that can wait was `admitted`.
    fn looked(&mut self, looks: bool, blocked: bool, admitted: bool, look_again_ns: u64, now: Now) {
        self.is_blocked = blocked;
        if !blocked {
            // The next turn looks at once.
            self.look_ns = 0;
        } else if looks {
            let longer_ns = (2 * self.pause_ns).min(LOOK_PAUSE_MAX_NS);
            self.pause_ns = if admitted { LOOK_PAUSE_NS } else { longer_ns };
            self.look_ns = look_again_ns.min(now.mono_ns + self.pause_ns);
        }
    }

    /// All queues have room for everything in the exchange.
    fn end(&mut self, outputs: &mut impl Outputs) {
        self.is_blocked = false;
        // Emptied, so that the accounts are updated once for each wait.
        for (at, stalled) in self.stalled.drain(..).enumerate() {
            outputs.end_waits(OutputId(at as u16));
            if stalled {
                outputs.account(OutputId(at as u16)).stalled_since_ns.store(0, Relaxed);
            }
        }
    }
}

impl Turn {
    /// When to look again for room for the batches that wait for it, monotonic nanoseconds; `u64::MAX` when none does.
    pub fn look_ns(&self) -> u64 {
        if self.backpressure.is_blocked { self.backpressure.look_ns } else { u64::MAX }
    }

    /// The next turn looks again for room, without a pause.
    pub fn look_for_room(&mut self) {
        self.backpressure.look_ns = 0;
    }

    /// Takes the batches of one turn.
    pub(super) fn take(&mut self, exchange: &Exchange, host: &mut impl Host, now: Now) -> Taken {
        if self.shard.blocks() && !exchange.is_empty() {
            // The blocks of this turn's datagrams are in the queues before these are asked for room.
            self.append(host.outputs(), now);
            if !self.has_room_for_all(exchange, host.outputs()) {
                return self.take_in_turn(exchange, host, now);
            }
        }
        self.take_oldest(exchange, host, now)
    }

    /// True when every output that some source may wait for has room for whatever becomes of everything in the exchange.
    fn has_room_for_all(&self, exchange: &Exchange, outputs: &mut impl Outputs) -> bool {
        let (bytes, records) = exchange.held();
        self.shard.waited_for().all(|id| outputs.has_room_for_all(id, 2 * bytes, records))
    }

    /// Batch by batch, each only when the outputs that must not lose it have room. Sources and their peers take turns.
    fn take_in_turn(&mut self, exchange: &Exchange, host: &mut impl Host, now: Now) -> Taken {
        // Batches of sources that wait for no output do not cause more looks: a look reads whole batches.
        let looks = now.mono_ns >= self.backpressure.look_ns;
        let (mut any, mut admitted) = (false, false);
        let (mut bytes, mut look) = (0, Look::default());
        let until_ns = host.mono_ns().saturating_add(self.limits.search_ns);
        let mut in_time = true;
        while bytes < self.limits.take_bytes && in_time {
            let Turn { shard, backpressure, .. } = self;
            let next = exchange.take_in_turn(&mut look, |batch| {
                let blocking = shard.blocking(batch.source);
                let mut has_room = |id: &OutputId| {
                    let (bytes, records) = shard.room_for(*id, batch);
                    let outputs = host.outputs();
                    let takes =
                        shard.has_failover(*id) || outputs.room(*id, bytes, records, now) > Room::None;
                    outputs.note_room(*id, batch.source, takes, now);
                    backpressure.note(*id, !takes, outputs.account(*id), now);
                    takes
                };
                // Each is asked, also behind one without room: a source waits for all of them at the same time.
                blocking.is_empty() || (looks && blocking.iter().filter(|id| !has_room(id)).count() == 0)
            });
            let Some((from, batch)) = next else { break };
            any = true;
            bytes += batch.memory_bytes();
            admitted |= !self.shard.blocking(batch.source).is_empty();
            self.take_admitted(exchange, (from, batch), host, now, until_ns);
            in_time = host.mono_ns() < until_ns;
        }
        let more = (bytes >= self.limits.take_bytes || !in_time) && !exchange.is_empty();
        let waited_for = self.shard.waited_for().map(|id| host.outputs().look_again_ns(id));
        // A time in the past is of a batch that waits no more.
        let look_again_ns = waited_for.filter(|at_ns| *at_ns > now.mono_ns).min().unwrap_or(u64::MAX);
        self.backpressure.looked(looks, !more && !exchange.is_empty(), admitted, look_again_ns, now);
        Taken { any, more }
    }

    /// As much as one turn takes, oldest first.
    fn take_oldest(&mut self, exchange: &Exchange, host: &mut impl Host, now: Now) -> Taken {
        self.backpressure.end(host.outputs());
        let until_ns = host.mono_ns().saturating_add(self.limits.search_ns);
        let mut bytes = 0;
        let mut in_time = true;
        while bytes < self.limits.take_bytes && in_time {
            let Some((from, batch)) = exchange.take_oldest() else { break };
            bytes += batch.memory_bytes();
            self.take_and_set_back(exchange, (from, batch), &[], host, now, until_ns);
            in_time = host.mono_ns() < until_ns;
        }
        Taken { any: bytes > 0, more: bytes > 0 && !exchange.is_empty() }
    }

    /// True when batches wait that must not be lost, and a queue on disk that they lead to has no room for them: taking them
    /// now would drop them.
    pub fn waits_for_disk(&mut self, exchange: &Exchange, host: &mut impl Host, now: Now) -> bool {
        let (bytes, records) = exchange.held();
        if records == 0 {
            return false;
        }
        self.append(host.outputs(), now);
        let outputs = host.outputs();
        let mut is_full =
            |id| outputs.is_on_disk(id) && outputs.room(id, 2 * bytes, records, now) == Room::None;
        self.shard.waited_for().any(&mut is_full)
    }

    /// Everything in the exchange, whether there is room or not. Returns whether that was all: it ends at `until_ns`
    /// (monotonic) when a relay has to search for long.
    pub fn take_all(&mut self, exchange: &Exchange, host: &mut impl Host, now: Now, until_ns: u64) -> bool {
        self.backpressure.end(host.outputs());
        while let Some((from, batch)) = exchange.take_oldest() {
            if let Some(left) = self.take_batch(batch, &[], host, now, until_ns) {
                exchange.set_back(from, left);
                break;
            }
        }
        exchange.is_empty()
    }

    /// Takes a batch that there is room for. A relay may turn it into more copies than there is room for: then it has blocks of
    /// its own, which are kept.
    fn take_admitted(
        &mut self,
        exchange: &Exchange,
        (from, batch): (PeerKey, Batches<'static>),
        host: &mut impl Host,
        now: Now,
        until_ns: u64,
    ) {
        let source = batch.source;
        let shard = &self.shard;
        let is_tight = |id: &OutputId| {
            let (bytes, records) = shard.room_for(*id, &batch);
            host.outputs().room(*id, bytes, records, now) == Room::Tight
        };
        let blocking = if shard.multiplies(source) { shard.blocking(source) } else { &[] };
        let tight: Vec<OutputId> = blocking.iter().copied().filter(is_tight).collect();
        if tight.is_empty() {
            self.take_and_set_back(exchange, (from, batch), &[], host, now, until_ns);
            return self.append(host.outputs(), now);
        }
        // Lines of sources that cannot wait are not in these blocks.
        self.shard.close_reached(source, now, &mut self.routed);
        self.append(host.outputs(), now);
        self.take_and_set_back(exchange, (from, batch), &tight, host, now, until_ns);
        self.shard.close_reached(source, now, &mut self.routed);
        self.append_admitted(&tight, host.outputs(), now);
    }

    /// Takes a batch, or the part of it that there is time for; the rest is the next batch of its peer.
    fn take_and_set_back(
        &mut self,
        exchange: &Exchange,
        (from, batch): (PeerKey, Batches<'static>),
        admitted: &[OutputId],
        host: &mut impl Host,
        now: Now,
        until_ns: u64,
    ) {
        if let Some(left) = self.take_batch(batch, admitted, host, now, until_ns) {
            exchange.set_back(from, left);
        }
    }

    /// Takes a batch of a connection. If its client waits for an acknowledgement, its lines are in the queues afterwards.
    /// `admitted` are outputs that had room for it. Returns the rest at `until_ns` (monotonic), if a relay has to search for
    /// long: of batches without acknowledgement only.
    pub(super) fn take_batch(
        &mut self,
        batch: Batches<'static>,
        admitted: &[OutputId],
        host: &mut impl Host,
        now: Now,
        until_ns: u64,
    ) -> Option<Batches<'static>> {
        if batch.ack.is_none() {
            let go_on = &mut || host.mono_ns() < until_ns;
            return self.shard.push_while(batch, now, &mut self.routed, go_on);
        }
        // Everything before it has its place in the queues, and its losses are counted.
        self.append(host.outputs(), now);
        let source = batch.source;
        let taking = Taking::begin(&batch, &self.shard, host.outputs());
        self.shard.push(batch, now, &mut self.routed);
        self.shard.close_reached(source, now, &mut self.routed);
        self.append_admitted(admitted, host.outputs(), now);
        if let Some(taking) = taking {
            host.taken(taking);
        }
        None
    }
}
