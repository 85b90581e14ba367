//! The end of the process: batches that are left, the last flush, the last checkpoints.

use model::{Dropped, Now, Outcome, OutputId};

use super::{Host, MovingQueues, Turn};
use crate::Exchange;
use crate::checkpoints::Piece;

impl Turn {
    /// From now on, queues that sources wait for keep blocks past their limits, as long as the disk takes them: the process stops,
    /// and the clients would not send these records again. What waits is in memory already, and bounded by the exchange.
    pub fn keep_past_limits(&mut self) {
        self.unbounded = self.shard.waited_for().collect();
    }

    /// From now on only those on disk do: what is still read in memory would be lost in any case.
    pub fn keep_past_limits_on_disk(&mut self, queues: &mut impl MovingQueues) {
        self.unbounded = self.shard.waited_for().filter(|id: &OutputId| queues.is_on_disk(*id)).collect();
    }

    /// Ends the batches that are left: records that need no long search are taken, the others are dropped as `stopped`.
    pub fn drop_left(&mut self, exchange: &Exchange, host: &mut impl Host, now: Now) {
        while let Some((_, batch)) = exchange.take_oldest() {
            if let Some(left) = self.take_batch(batch, &[], host, now, 0) {
                left.settle(Outcome::Dropped(Dropped::Stopped));
            }
        }
    }

    /// The last flush: closes every window and appends all blocks. Relays search for unknown names up to `until_ns`
    /// (monotonic): lines that need it later are dropped as `stopped`. Returns the last checkpoints, to be written.
    pub fn stop(&mut self, host: &mut impl Host, now: Now, until_ns: u64) -> Vec<Piece> {
        self.shard.stop_while(now, &mut self.routed, &mut || host.mono_ns() < until_ns);
        self.append(host.outputs(), now);
        self.note_flushes(host);
        self.end_moves(host.outputs());
        self.last_checkpoints(host.keep(), now)
    }
}
