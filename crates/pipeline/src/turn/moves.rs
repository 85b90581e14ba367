//! Blocks that are queued for a failed endpoint move to its failover members.
//!
//! Path of a line: the queue of an output that is down -> **[`Moves::turn`]** -> `process::relay` says who takes it over -> the
//! queue of that output, where it is a copy of its own; the first is then settled as `moved`.
//! Not here: when an endpoint has failed (`deliver::failover`), its failover members (`process::relay`), threads and locks.
//! Invariants: nothing is dropped to make room for what moves; a line that is on disk has its outcome there only when it is safe
//! on the other disk, so that a crash between the two gives it twice; a turn does a bounded amount of work.

use std::collections::VecDeque;

use deliver::disk_queue::{Position, Promise};
use deliver::queue::{Block, Entry};
use model::{CopyOutcome, Now, OutputId};
use process::relay::Successors;

use super::MovingQueues;
use crate::Shard;

/// Most blocks that one turn moves: about a millisecond.
const BLOCKS_MAX: usize = 4;

/// Most blocks that may be on two disks at one time.
const UNSYNCED_MAX: usize = 64;

/// Pause between two looks whether they are safe there.
const SYNC_PAUSE_NS: u64 = model::SECOND_NS / 500;

/// What is moving.
#[derive(Debug, Default)]
pub struct Moves {
    /// Outputs whose queues are to be looked at.
    from: VecDeque<OutputId>,
    unsynced: VecDeque<Unsynced>,
    /// Counts lines: `lb` goes by it.
    turn: u64,
}

/// A block on disk whose lines are on their way to other disks.
#[derive(Debug)]
struct Unsynced {
    from: OutputId,
    entry: Entry,
    places: Vec<(OutputId, Position)>,
}

/// Lines for one output.
struct Lines {
    to: OutputId,
    bytes: Vec<u8>,
    copies: u32,
}

impl Moves {
    /// The output is down, or one that may stand in for it came back: what waits for it is looked at in the next turns.
    pub fn look_at(&mut self, output: OutputId) {
        if !self.from.contains(&output) {
            self.from.push_back(output);
        }
    }

    /// Moves some blocks. Gives the monotonic nanosecond at which there is something to do again; `u64::MAX` for when
    /// [`Moves::look_at`] says so.
    pub fn turn(&mut self, shard: &Shard, queues: &mut impl MovingQueues, now: Now) -> u64 {
        self.settle(queues);
        let mut moved = 0;
        while moved < BLOCKS_MAX {
            let Some(from) = self.from.front().copied() else { break };
            if self.unsynced.len() >= UNSYNCED_MAX {
                return now.mono_ns + SYNC_PAUSE_NS;
            }
            if self.move_block(from, shard, queues, now) {
                moved += 1;
            } else {
                // Whoever finds something out says so.
                self.from.pop_front();
            }
        }
        match (self.from.is_empty(), self.unsynced.is_empty()) {
            (false, _) => now.mono_ns,
            (true, false) => now.mono_ns + SYNC_PAUSE_NS,
            (true, true) => u64::MAX,
        }
    }

    /// Lets go of everything: what is on two disks stays on both.
    pub fn let_go(&mut self, queues: &mut impl MovingQueues) {
        self.from.clear();
        self.unsynced.drain(..).for_each(|Unsynced { from, entry, .. }| queues.put_back(from, entry));
    }

    /// Settles what is safe where it has gone.
    fn settle(&mut self, queues: &mut impl MovingQueues) {
        while let Some(first) = self.unsynced.front() {
            // A disk that failed to sync it will not do so later: it is there, and no safer here.
            let mut places = first.places.iter();
            if places.any(|(to, place)| queues.promise(*to, *place) == Promise::Accepted) {
                return;
            }
            let Some(Unsynced { from, entry, .. }) = self.unsynced.pop_front() else { return };
            settle_moved(from, entry, queues);
        }
    }

    /// Moves the oldest block of the output. False when there is nothing to move, or nowhere.
    fn move_block(
        &mut self,
        from: OutputId,
        shard: &Shard,
        queues: &mut impl MovingQueues,
        now: Now,
    ) -> bool {
        let Some(successors) = shard.successors(from) else { return false };
        let Some(entry) = queues.take(from, now) else { return false };
        let (on_disk, own) = (queues.is_on_disk(from), &shard.outputs[from.index()]);
        let shared_out = entry
            .lines_left()
            .and_then(|lines| self.share_out(lines, &successors, |line| own.without_lead(line)));
        let blocks: Vec<(OutputId, Block)> = (shared_out.into_iter().flatten())
            .map(|Lines { to, bytes, copies }| (to, Block::lines(bytes, copies, entry.block().at_ns)))
            .collect();
        let fits = |(to, block): &(OutputId, Block)| {
            // What a restart was not to lose must not come to depend on one.
            let kept = queues.is_on_disk(*to) || !on_disk;
            let same_form = own.writes_lines_as(&shard.outputs[to.index()]);
            kept && same_form && *to != from && queues.has_room(*to, block, now)
        };
        if blocks.is_empty() || !blocks.iter().all(fits) {
            queues.put_back(from, entry);
            return false;
        }
        // One that was dropped has its outcome: nothing that comes to its place later says anything of it.
        let append = |(to, block)| Some((to, queues.append_moved(to, block, now)?));
        let places: Vec<(OutputId, Position)> = blocks.into_iter().filter_map(append).collect();
        if on_disk {
            self.unsynced.push_back(Unsynced { from, entry, places });
        } else {
            settle_moved(from, entry, queues);
        }
        true
    }

    /// Lines by who takes them over, each in the order in which they waited; none when one of them has to wait. `begin` gives
    /// a line from its name on.
    fn share_out<'l>(
        &mut self,
        lines: &'l [u8],
        successors: &Successors<'_>,
        begin: impl Fn(&'l [u8]) -> &'l [u8],
    ) -> Option<Vec<Lines>> {
        let mut shared: Vec<Lines> = Vec::new();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let named = begin(line);
            let name_len = named.iter().position(|byte| matches!(byte, b';' | b' ' | b'\t' | b'\n'));
            let takers = successors.of(&named[..name_len.unwrap_or(named.len())], self.turn);
            if takers.is_empty() {
                return None;
            }
            self.turn += 1;
            for to in takers {
                let at = shared.iter().position(|known| known.to == to).unwrap_or_else(|| {
                    shared.push(Lines { to, bytes: Vec::with_capacity(lines.len()), copies: 0 });
                    shared.len() - 1
                });
                shared[at].bytes.extend_from_slice(line);
                shared[at].copies += 1;
            }
        }
        // What a queue holds counts with the room that it has.
        shared.iter_mut().for_each(|lines| lines.bytes.shrink_to_fit());
        Some(shared)
    }
}

fn settle_moved(from: OutputId, entry: Entry, queues: &mut impl MovingQueues) {
    let copies = entry.copies();
    entry.settle(CopyOutcome::Moved);
    queues.settled(from, copies);
}
