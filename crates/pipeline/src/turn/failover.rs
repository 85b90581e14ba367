//! Outputs whose endpoints have failed: the shard is updated, and queued blocks move on, some in each turn.
//!
//! Not here: which block moves where ([`Moves`](crate::Moves)), and when an endpoint has failed (`deliver::failover`).

use model::{Now, OutputId};

use super::{MovingQueues, Turn};

impl Turn {
    /// An output's endpoint went down or came back, or its queue has no room, or has some again. The queued blocks of a
    /// `failed` one move on.
    pub fn set_live(&mut self, output: OutputId, live: bool, failed: bool) {
        if self.shard.set_member_live(output, live) {
            // Sources need not wait for it, or need to again.
            self.look_for_room();
            if live {
                // It may be the failover member of others.
                self.shard.down().iter().for_each(|down| self.moving.moves.look_at(*down));
            }
        }
        if failed {
            self.moving.moves.look_at(output);
        }
        self.moving.due_ns = 0;
    }

    /// Moves some of the queued blocks.
    pub(super) fn move_queued(&mut self, queues: &mut impl MovingQueues, now: Now) {
        if self.moving.due_ns <= now.mono_ns {
            self.moving.due_ns = self.moving.moves.turn(&self.shard, queues, now);
        }
    }

    /// Moves nothing more: blocks that are on two disks stay on both.
    pub fn end_moves(&mut self, queues: &mut impl MovingQueues) {
        self.moving.moves.let_go(queues);
    }
}
