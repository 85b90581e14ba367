//! The end of the shard's thread: the sockets and the exchange are emptied, windows flushed, and everything handed on.
//!
//! Not here: the order of a stop (`daemon::stop`), the last flush itself (`pipeline::Turn`).

use std::sync::Arc;

use config::plan::Listen;
use model::SourceId;
use pipeline::{Exchange, Host};

use super::limits::LAST_READ_MAX_NS;
use super::socket::To;
use super::{DatagramSocket, SEARCH_MAX_NS, Stopped, Worker};
use sys::clock::Clock;

impl Worker {
    /// Empties the sockets. A flood into those that stay open does not keep us. What a turn gave is in the queues before the
    /// next one: all that waits in the kernel, unfolded at once, could be gigabytes.
    fn last_read(&mut self) {
        let until_ns = Clock::mono_ns() + LAST_READ_MAX_NS;
        while self.receive(SEARCH_MAX_NS).brought() && Clock::mono_ns() < until_ns {
            self.deliver(Clock::now());
        }
    }

    /// Reads what is still in the sockets although there is no time for it, so that it is counted.
    fn read_to_count(&mut self) {
        let until_ns = Clock::mono_ns() + LAST_READ_MAX_NS;
        while self.receive(0).brought() && Clock::mono_ns() < until_ns {
            self.drop_left();
            self.deliver(Clock::now());
        }
        self.drop_left();
    }

    /// Everything that was read: by sockets and in the exchange. Says whether that was all: it ends at `until_ns` (monotonic),
    /// when a relay has to search long.
    pub(super) fn take_all_until(&mut self, until_ns: u64) -> bool {
        let Worker { turn, exchange, sockets, .. } = self;
        let mut to = To { shard: &mut turn.shard, routed: &mut turn.routed, exchange, until_ns };
        for socket in sockets {
            let _done = socket.push_left(&mut to);
        }
        let left_ns = || until_ns.saturating_sub(Clock::mono_ns());
        while self.take_packets(left_ns()).brought() && left_ns() > 0 {}
        let (turn, mut host, exchange) = self.parts();
        let all = turn.take_all(exchange, &mut host, Clock::now(), until_ns);
        all && !self.exchange.has_packets() && self.sockets.iter().all(|socket| socket.left.is_empty())
    }

    /// Gives what is left its end: what needs no long search is taken, the rest is dropped.
    fn drop_left(&mut self) {
        self.finish_sockets(|_| true);
        self.drop_packets();
        let (turn, mut host, exchange) = self.parts();
        turn.drop_left(exchange, &mut host, Clock::now());
    }

    fn finish_sockets(&mut self, which: impl Fn(&DatagramSocket) -> bool) {
        let Worker { turn, exchange, sockets, .. } = self;
        let exchange: &Arc<Exchange> = exchange;
        let mut to = To { shard: &mut turn.shard, routed: &mut turn.routed, exchange, until_ns: 0 };
        sockets.iter_mut().filter(|socket| which(socket)).for_each(|socket| socket.finish_left(&mut to));
    }

    /// Closes the datagram sockets at these places of sources; what they have received still counts.
    pub fn close_sockets(&mut self, gone: &[(SourceId, Listen)]) {
        self.close_elsewhere(gone);
        let goes = |socket: &DatagramSocket| socket.is_at(gone);
        self.sockets.iter().filter(|socket| goes(socket)).for_each(DatagramSocket::refuse_more);
        if self.readers.is_none() {
            self.last_read();
        }
        self.finish_sockets(goes);
        self.tell_complaints();
        self.sockets.retain(|socket| {
            socket.count_drops();
            !goes(socket)
        });
        self.deliver(Clock::now());
    }

    /// The last flush: empties the sockets and the exchange, closes every window, hands everything on. Relays search for names
    /// that they do not know up to `until_ns` (monotonic): lines that need that later are dropped as `stopped`.
    pub fn stop(&mut self, until_ns: u64) -> Stopped {
        // What waits is still taken. Nothing comes behind it that would be neither read nor counted.
        self.sockets.iter().for_each(DatagramSocket::refuse_more);
        self.refuse_more_elsewhere(None);
        if self.readers.is_none() {
            self.last_read();
        }
        self.call_readers(|thread| thread.empty(|_| true));
        let now = Clock::now();
        self.exchange.close();
        self.deliver(now);
        self.turn.keep_past_limits();
        self.take_all_until(until_ns);
        self.drop_left();
        self.deliver(Clock::now());
        let (turn, mut host, _) = self.parts();
        turn.keep_past_limits_on_disk(host.outputs());
        // Who waits for room need not.
        self.room.notify_waiters();
        self.read_to_count();
        self.call_readers(|thread| {
            thread.empty(|_| true);
            thread.end();
        });
        self.tell_complaints();
        self.count_drops();
        let (turn, mut host, _) = self.parts();
        let pieces = turn.stop(&mut host, now, until_ns);
        self.log_lines();
        self.end();
        Stopped { checkpoints: self.saver.last(pieces) }
    }
}
