//! Outputs whose endpoints are down: the shard is told, and what waits for them moves on.
//!
//! Path: an outlet's call -> [`Worker::set_live`] -> `Shard::set_member_live`; then, a few blocks in each turn,
//! [`Worker::move_on`] -> `pipeline::Moves` -> the outlets.
//! Not here: what moves where (`pipeline`), and who is down (`outlet::standing`).

use std::sync::Arc;

use deliver::disk_queue::{Position, Promise};
use deliver::queue::{Block, Entry};
use model::{Now, OutputId};
use pipeline::MovingQueues;

use super::Worker;
use crate::daemon::outlet::Outlet;

/// The outlets, as whoever moves something sees them.
struct Outlets<'a>(&'a [Arc<Outlet>]);

impl Worker {
    /// Outlets tell what becomes of their endpoints, where others stand in for them.
    pub(super) fn watch(&self) {
        for (at, outlet) in self.outlets.iter().enumerate() {
            let output = OutputId(at as u16);
            outlet.watch(self.shard.failover_delay(output), output, &self.handle);
        }
    }

    /// An output's endpoint went down or came back, or its queue has no room, or has some again. What waits for one that was
    /// given up moves on.
    pub fn set_live(&mut self, output: OutputId, live: bool, given_up: bool) {
        if self.shard.set_member_live(output, live) {
            // Sources need not wait for it, or need to again.
            self.look_for_room();
            if live {
                // It may stand in for others now.
                self.shard.down().iter().for_each(|down| self.moves.look_at(*down));
            }
        }
        if given_up {
            self.moves.look_at(output);
        }
        self.moves_due_ns = 0;
    }

    /// Moves some of what waits.
    pub(super) fn move_on(&mut self, now: Now) {
        if self.moves_due_ns <= now.mono_ns {
            let Worker { moves, shard, outlets, .. } = self;
            self.moves_due_ns = moves.turn(shard, &mut Outlets(outlets), now);
        }
    }
}

impl Worker {
    /// Moves nothing more, and nothing of what is under way.
    pub(super) fn end_moves(&mut self) {
        let Worker { moves, outlets, .. } = self;
        moves.let_go(&mut Outlets(outlets));
    }
}

impl MovingQueues for Outlets<'_> {
    fn take(&mut self, from: OutputId, now: Now) -> Option<Entry> {
        self.0[from.index()].take_to_move(now)
    }

    fn put_back(&mut self, from: OutputId, entry: Entry) {
        self.0[from.index()].take_back(entry);
    }

    fn has_room(&mut self, to: OutputId, block: &Block, now: Now) -> bool {
        self.0[to.index()].has_room_for(block, now)
    }

    fn append(&mut self, to: OutputId, block: Block, now: Now) -> Option<Position> {
        self.0[to.index()].hot_restart(block, now)
    }

    fn promise(&mut self, output: OutputId, of: Position) -> Promise {
        self.0[output.index()].promise(of)
    }

    fn is_on_disk(&mut self, output: OutputId) -> bool {
        self.0[output.index()].disk().is_some()
    }

    fn settled(&mut self, output: OutputId, copies: u64) {
        self.0[output.index()].has_moved(copies);
    }
}
