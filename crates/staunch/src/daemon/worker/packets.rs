//! The shard's side of the threads that read datagrams: takes what they hand on, and calls them when sockets come and go, a plan
//! changes, or the process ends.
//!
//! Path of a packet: `readers::packet_thread` -> a lane of the exchange -> **[`Worker::take_packets`]** -> `Shard::push_while`.
//! With one reader there are no such threads, and the shard's own thread reads the sockets.
//! Invariant: while a call waits for the threads, their batches are taken, so none of them waits for room in vain.

use std::sync::Arc;

use config::plan::Listen;
use model::{Dropped, Outcome, SourceId};
use pipeline::{IntakeMaker, Turn};

use super::limits::LAST_READ_MAX_NS;
use super::readers::packet_thread::{PacketHandle, PacketThread};
use super::readers::{LOOK_PAUSE, ReadElsewhere, is_answered};
use super::socket::DatagramSocket;
use super::socket::share::Round;
use super::{SEARCH_MAX_NS, Worker};
use crate::kernel::Drops;
use sys::clock::Clock;

/// Memory of the batches that one turn takes, exceeded by at most one batch for each reader.
const TAKE_BYTES: usize = 1 << 20;

/// Longest wait for the threads: what one may take to empty its sockets, and as long again for the shard to take it.
const CALL_MAX_NS: u64 = 2 * LAST_READ_MAX_NS;

impl Worker {
    /// Takes what the threads have handed on, one batch of each in turn. Relays search so long for names that they do not know.
    pub(in crate::daemon::worker) fn take_packets(&mut self, search_max_ns: u64) -> Round {
        let Worker { turn, exchange, .. } = self;
        let until_ns = Clock::mono_ns() + search_max_ns;
        // Lanes whose next batch waits for a search.
        let mut waits = vec![false; exchange.packet_lanes()];
        let (mut records, mut bytes) = (0, 0);
        loop {
            let mut any = false;
            for (lane, waits) in waits.iter_mut().enumerate().filter(|(_, waits)| !**waits) {
                let Some(batch) = exchange.take_packets(lane) else { continue };
                any = true;
                bytes += batch.memory_bytes();
                records += batch.records();
                let Turn { shard, routed, .. } = turn;
                let now = Clock::now();
                if let Some(rest) = shard.push_while(batch, now, routed, &mut || Clock::mono_ns() < until_ns)
                {
                    exchange.set_packets_back(lane, rest);
                    *waits = true;
                }
            }
            if !any || bytes >= TAKE_BYTES {
                let more = any || waits.contains(&true);
                return Round { packets: usize::try_from(records).unwrap_or(usize::MAX), more };
            }
        }
    }

    /// Gives what is left in the lanes its end: what needs no long search goes to the shard, the rest is dropped.
    pub(in crate::daemon::worker) fn drop_packets(&mut self) {
        let Worker { turn, exchange, .. } = self;
        for lane in 0..exchange.packet_lanes() {
            while let Some(batch) = exchange.take_packets(lane) {
                let rest = turn.shard.push_while(batch, Clock::now(), &mut turn.routed, &mut || false);
                rest.into_iter().for_each(|rest| rest.settle(Outcome::Dropped(Dropped::Stopped)));
            }
        }
    }

    /// Runs `job` on each of the threads, and takes what they hand on until all of them have done it and it is all taken.
    pub(in crate::daemon::worker) fn call_readers<R: Send + 'static>(
        &mut self,
        job: impl Fn(&mut PacketThread) -> R + Clone + Send + 'static,
    ) {
        if self.readers.is_none() {
            return;
        }
        let until_ns = Clock::mono_ns() + CALL_MAX_NS;
        let mut answers = self.readers.call(job);
        loop {
            answers.retain_mut(|answer| !is_answered(answer));
            let is_done = answers.is_empty();
            let round = self.take_packets(SEARCH_MAX_NS);
            self.deliver(Clock::now());
            if (is_done && !round.brought()) || Clock::mono_ns() >= until_ns {
                return;
            }
            if !round.brought() {
                std::thread::sleep(LOOK_PAUSE);
            }
        }
    }

    /// Reads datagrams, where threads of their own do.
    pub(in crate::daemon::worker) fn go_on_reading(&mut self) {
        // Not waited for.
        drop(self.readers.call(PacketThread::go_on));
    }

    /// Stops reading datagrams until [`Self::follow`] or [`Self::thaw`], where threads of their own read them: what they have
    /// read is taken before this returns. This thread does not read while it does something else.
    pub fn pause_reading(&mut self) {
        self.call_readers(PacketThread::pause);
    }

    /// Reads by the plan that `makers` are of from now on.
    pub fn follow(&mut self, makers: &[IntakeMaker]) {
        for socket in &mut self.sockets {
            socket.intake = makers[socket.source.index()].make();
        }
        let makers: Arc<[IntakeMaker]> = makers.into();
        drop(self.readers.call(move |thread| {
            thread.follow(&makers);
            thread.go_on();
        }));
    }

    /// Calls into the threads, by number.
    pub fn packet_readers(&self) -> Vec<PacketHandle> {
        self.readers.threads.iter().map(|thread| thread.handle.clone()).collect()
    }

    /// Begins, with more sockets than it was made with.
    pub fn thaw_with(&mut self, more: Vec<DatagramSocket>) {
        self.add_sockets(more);
        self.thaw();
    }

    /// Reads these sockets as well.
    pub fn add_sockets(&mut self, sockets: Vec<DatagramSocket>) {
        if self.readers.is_none() {
            self.sockets.extend(sockets);
        } else {
            self.readers.add(sockets);
        }
    }

    /// Lets nothing more in at the sockets of the threads that are at these places, or at all of them.
    pub(in crate::daemon::worker) fn refuse_more_elsewhere(&self, places: Option<&[(SourceId, Listen)]>) {
        let sockets = self.readers.sockets.iter();
        sockets
            .filter(|socket| places.is_none_or(|places| socket.is_at(places)))
            .for_each(ReadElsewhere::refuse_more);
    }

    /// Closes the sockets of the threads at these places; what they have received still counts.
    pub(in crate::daemon::worker) fn close_elsewhere(&mut self, gone: &[(SourceId, Listen)]) {
        if gone.is_empty() {
            return;
        }
        self.refuse_more_elsewhere(Some(gone));
        let places: Arc<[(SourceId, Listen)]> = gone.into();
        self.call_readers(move |thread| thread.close(&places));
        self.count_drops();
        self.readers.sockets.retain(|socket| !socket.is_at(gone));
    }

    /// Brings the threads to rest. Sockets that are not at the places that are `passed` on are emptied first.
    pub(in crate::daemon::worker) fn rest_elsewhere(&mut self, passed: &[(SourceId, Listen)]) {
        let passed: Arc<[(SourceId, Listen)]> = passed.into();
        self.call_readers(move |thread| {
            thread.empty(|socket| !socket.is_at(&passed));
            thread.pause();
        });
    }

    /// Reads the kernel's counts of the sockets of the threads, of some sources or of all.
    pub(in crate::daemon::worker) fn count_drops_elsewhere(&self, sources: Option<&[SourceId]>) {
        let sockets = self.readers.sockets.iter();
        let theirs = sockets.filter(|socket| sources.is_none_or(|sources| sources.contains(&socket.source)));
        theirs.for_each(|socket| socket.gauge.read(&*socket.fd));
    }

    /// What was counted of the kernel's drops at the sockets of the threads.
    pub(in crate::daemon::worker) fn drops_elsewhere(
        &self,
    ) -> impl Iterator<Item = (SourceId, Listen, usize, Drops)> + '_ {
        let drops = |socket: &ReadElsewhere| {
            (socket.source, socket.listen.clone(), socket.number, socket.gauge.drops())
        };
        self.readers.sockets.iter().map(drops)
    }
}
