//! Endpoints that others stand in for, in the simulator: the decisions are those of the daemon, made after each turn.
//!
//! Not here: when one is given up (`deliver::standing`), what moves where (`pipeline::Moves`).

use deliver::disk_queue::{Position, Promise};
use deliver::failover::Failover;
use deliver::queue::{Block, Entry, Queue};
use model::{Now, OutputId};
use pipeline::MovingQueues;

use super::outlet::Outlet;
use super::{Outlets, World};

impl World {
    /// Takes notice of endpoints that went down or came back, and moves some of what waits. Gives the monotonic nanosecond at
    /// which there is more to move.
    pub(super) fn turn_moves(&mut self) -> u64 {
        for at in 0..self.outlets.len() {
            self.look_at_failover(OutputId(at as u16));
        }
        if self.is_dead() {
            return u64::MAX;
        }
        self.moves.turn(&self.shard, &mut Outlets(&mut self.outlets), self.now)
    }

    fn look_at_failover(&mut self, output: OutputId) {
        let Some(patience) = self.shard.failover_delay(output) else { return };
        let outlet = &mut self.outlets[output.index()];
        outlet.probe();
        let failover = self.failovers.entry(output).or_insert_with(|| Failover::new(patience));
        let was_live = failover.is_live();
        failover.update(Some(outlet.state()), false, self.now);
        failover.update_room(&outlet.queue);
        outlet.given_up = failover.has_failed();
        if outlet.given_up && outlet.waiting() > 0 {
            self.moves.look_at(output);
        }
        let live = failover.is_live();
        if live != was_live && self.shard.set_member_live(output, live) && live {
            self.shard.down().iter().for_each(|down| self.moves.look_at(*down));
        }
    }
}

impl MovingQueues for Outlets<'_> {
    fn take(&mut self, from: OutputId, now: Now) -> Option<Entry> {
        let outlet = self.of(from);
        let entry = if outlet.given_up && !outlet.retired { outlet.queue.pop(now) } else { None };
        outlet.moving += entry.as_ref().map_or(0, Entry::copies);
        entry
    }

    fn put_back(&mut self, from: OutputId, entry: Entry) {
        let outlet = self.of(from);
        outlet.moving -= entry.copies();
        outlet.queue.put_back(entry);
    }

    fn has_room(&mut self, to: OutputId, block: &Block, now: Now) -> bool {
        let (bytes, copies) = (block.memory_bytes(), u64::from(block.copies));
        let Outlet { queue, retired, .. } = self.of(to);
        !*retired && queue.has_room(bytes, copies) && queue.takes(bytes, copies, now)
    }

    fn append(&mut self, to: OutputId, block: Block, now: Now) -> Option<Position> {
        let outlet = self.of(to);
        outlet.taken_over += 1;
        let place = outlet.queue.accepted_up_to();
        // A canary may hold the block back, which it is to be caught at.
        outlet.append(block, true, now).is_none_or(|(_, kept)| kept).then_some(place)
    }

    fn promise(&mut self, output: OutputId, of: Position) -> Promise {
        self.of(output).promise(of)
    }

    fn is_on_disk(&mut self, output: OutputId) -> bool {
        self.of(output).queue.on_disk().is_some()
    }

    fn settled(&mut self, output: OutputId, copies: u64) {
        self.of(output).moving -= copies;
    }
}
