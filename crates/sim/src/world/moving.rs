//! Endpoints with failover in the simulator: the shard is updated after each turn, as the daemon's outlets do it.
//!
//! Not here: when an endpoint has failed (`deliver::failover`), and which blocks move where (`pipeline::Turn`).

use deliver::failover::Failover;
use model::OutputId;

use super::World;

impl World {
    /// Updates the shard about endpoints that failed or came back.
    pub(super) fn turn_failovers(&mut self) {
        for at in 0..self.outlets.len() {
            self.update_failover(OutputId(at as u16));
        }
    }

    fn update_failover(&mut self, output: OutputId) {
        let Some(delay) = self.turn.shard.failover_delay(output) else { return };
        let outlet = &mut self.outlets[output.index()];
        outlet.probe();
        let failover = self.failovers.entry(output).or_insert_with(|| Failover::new(delay));
        let was_live = failover.is_live();
        failover.update(Some(outlet.state()), false, self.now);
        failover.update_room(&outlet.queue);
        let had_failed = std::mem::replace(&mut outlet.failed, failover.has_failed());
        if failover.is_live() != was_live || outlet.failed != had_failed {
            self.turn.set_live(output, failover.is_live(), outlet.failed);
        }
    }

    /// Queued blocks of failed endpoints may move in the next turn: the daemon checks this at each attempt.
    pub(super) fn look_at_failed(&mut self) {
        for (at, outlet) in self.outlets.iter().enumerate() {
            if outlet.failed && outlet.waiting() > 0 {
                let output = OutputId(at as u16);
                let live = self.failovers.get(&output).is_none_or(Failover::is_live);
                self.turn.set_live(output, live, true);
            }
        }
    }
}
