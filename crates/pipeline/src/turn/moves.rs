//! Moves blocks in the queue of a failed endpoint to its failover members.
//!
//! Path of a line: the queue of an output that is down -> **[`Moves::turn`]** -> `process::relay` chooses the output
//! that takes it over -> the queue of that output, as a new copy; the first is then settled as `moved`. Not here: when
//! an endpoint has failed (`deliver::failover`), its failover members (`process::relay`), threads and locks.
//! Invariants: nothing is dropped to make room for moved blocks; a line on disk gets its outcome there only when it is
//! synced on the other disk, so that a crash in between delivers it twice; a turn does a bounded amount of work.

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

/// Pause between two checks whether they are synced there.
const SYNC_PAUSE_NS: u64 = model::SECOND_NS / 500;

/// The moves in progress.
#[derive(Debug, Default)]
pub struct Moves {
    /// Outputs whose queues are to be checked.
    from: VecDeque<OutputId>,
    unsynced: VecDeque<Unsynced>,
    /// Counts lines, for `lb`.
    turn: u64,
}

/// A block on disk whose lines are moving to other disks.
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
    /// The output is down, or one of its failover members came back: its queue is checked in the next turns.
    pub fn look_at(&mut self, output: OutputId) {
        if !self.from.contains(&output) {
            self.from.push_back(output);
        }
    }

    /// Moves some blocks. Returns the monotonic nanosecond of the next work; `u64::MAX` if it waits for
    /// [`Moves::look_at`].
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
                // A change is reported by a call of [`Moves::look_at`].
                self.from.pop_front();
            }
        }
        match (self.from.is_empty(), self.unsynced.is_empty()) {
            (false, _) => now.mono_ns,
            (true, false) => now.mono_ns + SYNC_PAUSE_NS,
            (true, true) => u64::MAX,
        }
    }

    /// Gives up all moves: blocks on two disks stay on both.
    pub fn let_go(&mut self, queues: &mut impl MovingQueues) {
        self.from.clear();
        self.unsynced.drain(..).for_each(|Unsynced { from, entry, .. }| queues.put_back(from, entry));
    }

    /// Settles blocks that are synced at their new place.
    fn settle(&mut self, queues: &mut impl MovingQueues) {
        while let Some(first) = self.unsynced.front() {
            // A disk that failed to sync it will not do so later: it is there, and no safer than here.
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
            // Lines that survive a restart must not be moved to a queue that does not.
            let kept = queues.is_on_disk(*to) || !on_disk;
            let same_form = own.writes_lines_as(&shard.outputs[to.index()]);
            kept && same_form && *to != from && queues.has_room(*to, block, now)
        };
        if blocks.is_empty() || !blocks.iter().all(fits) {
            queues.put_back(from, entry);
            return false;
        }
        // A dropped one has its outcome: later blocks at its position do not count for it.
        let append = |(to, block)| Some((to, queues.append_moved(to, block, now)?));
        let places: Vec<(OutputId, Position)> = blocks.into_iter().filter_map(append).collect();
        if on_disk {
            self.unsynced.push_back(Unsynced { from, entry, places });
        } else {
            settle_moved(from, entry, queues);
        }
        true
    }

    /// Lines by the output that receives them, each in their order; none when one of them has to wait. `begin`
    /// returns a line from its name on.
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
        // The memory of a queued block counts against the queue's room.
        shared.iter_mut().for_each(|lines| lines.bytes.shrink_to_fit());
        Some(shared)
    }
}

fn settle_moved(from: OutputId, entry: Entry, queues: &mut impl MovingQueues) {
    let copies = entry.copies();
    entry.settle(CopyOutcome::Moved);
    queues.settled(from, copies);
}
