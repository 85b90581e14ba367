//! Batches of connections: taken out of the exchange as far as the outputs that must not lose them have room.
//!
//! Path of a batch: `Exchange` -> **[`Turn::take`]** -> `Shard::push` -> the queues.
//! Not here: how much of a batch there is room for (`backpressure`).
//! Invariant: what finds no room stays in the exchange, and its source with it; the turn waits for nobody.

use deliver::queue::Room;
use model::{Batches, Now, OutputId, PeerKey};

use super::backpressure::Fit;
use super::state::Taken;
use super::{Host, MovingQueues, Outputs, Turn};
use crate::acks::Taking;
use crate::{Exchange, Look};

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

    /// Batch by batch, each as far as the outputs that must not lose it have room. The rest of it stays the next batch of its
    /// peer. Sources and their peers take turns.
    fn take_in_turn(&mut self, exchange: &Exchange, host: &mut impl Host, now: Now) -> Taken {
        // Batches of sources that wait for no output do not cause more looks: a look reads whole batches.
        let looks = now.mono_ns >= self.backpressure.look_ns;
        let (mut any, mut admitted) = (false, false);
        let (mut bytes, mut look) = (0, Look::default());
        let until_ns = host.mono_ns().saturating_add(self.limits.search_ns);
        let mut in_time = true;
        while bytes < self.limits.take_bytes && in_time {
            let Turn { shard, backpressure, .. } = self;
            let mut fit = Fit::Whole;
            let next = exchange.take_in_turn(&mut look, |batch| {
                if shard.blocking(batch.source).is_empty() {
                    return true;
                }
                fit = if looks { backpressure.fit(shard, host.outputs(), batch, now) } else { Fit::Nothing };
                fit != Fit::Nothing
            });
            let Some((from, mut batch)) = next else { break };
            if let Fit::Part(records) = fit
                && !shard.blocking(batch.source).is_empty()
            {
                let part = batch.split_part(records);
                exchange.set_back(from, std::mem::replace(&mut batch, part));
            }
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
        self.backpressure.count_stalls(host.outputs(), now);
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
