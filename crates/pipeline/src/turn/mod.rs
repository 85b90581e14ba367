//! One turn of the shard's loop, as one type without I/O: the daemon and the simulator run the same code.
//!
//! Path of a packet: a connection -> `Exchange` -> [`Turn::run`] -> `Shard::push` -> [`Routed`] -> [`Outputs::append`]. Datagrams
//! do not pass the exchange: their reader pushes them into [`Turn::shard`] before the turn.
//! In files of their own: `host` (queues, clients and clock behind traits), `taking` (batches), `backpressure` (sources that
//! wait for room), `flushing` (when windows are flushed), `failover` and `moves` (queued blocks of failed endpoints), `saving`
//! (checkpoints and notes of flushes), `state` (what these share), `stop`.
//! Not here: sockets, threads and sleeping (`staunch`), the simulated world (`sim`), decisions about records (`shard`).
//! Invariants: a turn does a bounded amount of work and waits for nothing; records whose outputs have no room stay in the
//! exchange.

mod backpressure;
mod failover;
mod flushing;
mod host;
mod moves;
mod saving;
mod state;
mod stop;
mod taking;
#[cfg(test)]
mod tests;

use config::plan::Plan;
use deliver::queue::Admission;
use model::{Now, OutputId};

use self::backpressure::Backpressure;
use self::state::{Flushing, Moving};
use crate::checkpoints::Saver;
use crate::{Accounts, Exchange, Routed, Shard};
pub use host::{Host, MovingQueues, Outputs};
pub use moves::Moves;
pub use state::Taken;

/// How much work one turn does at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnLimits {
    /// Series of each aggregation that a flush visits in one turn.
    pub flush_series: usize,
    /// Memory of the batches that one turn takes, exceeded by at most one batch. The rest stays in the exchange.
    pub take_bytes: usize,
    /// Series that are saved in one turn.
    pub save_series: usize,
    /// Time in which relays search for unknown names: once for batches, and once for results of aggregations.
    pub search_ns: u64,
}

impl Default for TurnLimits {
    /// Some tens of microseconds each of flushing and saving, about as much work with batches as the datagram sockets make in one turn, and
    /// 5 ms of searches.
    fn default() -> TurnLimits {
        TurnLimits {
            flush_series: 512,
            take_bytes: 1 << 20,
            save_series: 512,
            search_ns: model::SECOND_NS / 200,
        }
    }
}

/// See the module's header.
#[derive(Debug)]
pub struct Turn {
    /// All aggregations, relays and encoders.
    pub shard: Shard,
    /// Blocks of the shard that are in no queue yet.
    pub routed: Routed,
    limits: TurnLimits,
    backpressure: Backpressure,
    flushing: Flushing,
    moving: Moving,
    saver: Saver,
    /// Flushes that have been noted.
    flushes_noted: u64,
    /// Outputs whose queues keep blocks past their limits: the process stops.
    unbounded: Vec<OutputId>,
}

impl Turn {
    /// The first turn of a shard.
    pub fn new(shard: Shard, limits: TurnLimits) -> Turn {
        Turn {
            shard,
            routed: Routed::default(),
            limits,
            backpressure: Backpressure::default(),
            flushing: Flushing::default(),
            moving: Moving::default(),
            saver: Saver::default(),
            flushes_noted: 0,
            unbounded: Vec::new(),
        }
    }

    /// One turn. Returns what it took out of the exchange.
    pub fn run(&mut self, exchange: &Exchange, host: &mut impl Host, now: Now) -> Taken {
        let taken = self.take(exchange, host, now);
        self.flush(host, now);
        self.append(host.outputs(), now);
        self.move_queued(host.outputs(), now);
        self.note_flushes(host);
        self.save(host.keep(), now);
        taken
    }

    /// Appends the blocks of the shard to the queues of their outputs.
    pub fn append(&mut self, outputs: &mut impl Outputs, now: Now) {
        self.append_admitted(&[], outputs, now);
    }

    /// The same for a batch that these outputs had room for: they keep everything that it turned into.
    fn append_admitted(&mut self, admitted: &[OutputId], outputs: &mut impl Outputs, now: Now) {
        for (output, block) in self.routed.blocks.drain(..) {
            let is_granted = admitted.contains(&output) || self.unbounded.contains(&output);
            let admission = if is_granted { Admission::Granted } else { Admission::Bounded };
            let _place = outputs.append(output, block, admission, now);
        }
    }

    /// True when the next turn should follow at once: a flush is under way, or blocks are being moved.
    pub fn continues(&self, now: Now) -> bool {
        self.flushing.next_ns(now) <= now.mono_ns || self.moving.due_ns <= now.mono_ns
    }

    /// Monotonic nanosecond at which the next turn has something to do, beside batches and [`Turn::look_ns`].
    pub fn due_ns(&self, now: Now) -> u64 {
        let flushing_ns = self.flushing.next_ns(now).min(self.flushing.lines_due_ns);
        flushing_ns.min(self.moving.due_ns).min(self.saver.due_ns())
    }

    /// Takes a new plan: aggregations keep their state. The blocks of the old encoders are then appended to the queues of the
    /// new plan ([`Turn::append`]), because ids keep their meaning.
    pub fn reconfigure(&mut self, plan: &Plan, accounts: &Accounts, now: Now) {
        self.shard.reconfigure(plan, accounts, now, &mut self.routed);
        self.look_at_windows();
    }
}
