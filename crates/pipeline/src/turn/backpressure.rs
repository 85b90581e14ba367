//! Sources that wait for room in the queues of their outputs: what of a batch these take now, and who waits since when.
//!
//! Path of a batch: `Exchange` -> **[`Backpressure::fit`]** -> as much of it as all queues have room for -> `Shard::push`.
//! Pure: queues are asked through [`Outputs`]. Not here: which batch is next (`exchange`), when to look again for the first
//! time (`taking`).
//! Invariant: a source waits only while one of its outputs has no room for its next record.

use std::sync::atomic::Ordering::Relaxed;

use deliver::queue::Room;
use model::{Batches, Now, OutputAccount, OutputId, SourceId};

use super::Outputs;
use crate::Shard;

/// First pause between two looks at a queue that a source waits for; it doubles while there is no room.
const LOOK_PAUSE_NS: u64 = model::SECOND_NS / 500;

/// Longest such pause: an endpoint that takes nothing for hours costs next to nothing.
const LOOK_PAUSE_MAX_NS: u64 = 32 * LOOK_PAUSE_NS;

/// How much of a batch all of its outputs have room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// All of it.
    Whole,
    /// So many records.
    Part(usize),
    /// Not even one record: its source waits.
    Nothing,
}

/// Sources that wait for room in the queues of their outputs.
#[derive(Debug)]
pub(super) struct Backpressure {
    /// Batches wait in the exchange for room in a queue.
    pub(super) is_blocked: bool,
    pause_ns: u64,
    /// When to look for room again, monotonic nanoseconds.
    pub(super) look_ns: u64,
    outputs: Vec<Stall>,
    /// By source: since when it waits, whichever output it waits for.
    waits_since_ns: Vec<Option<u64>>,
}

/// An output that sources wait for, or have waited for.
#[derive(Clone, Copy, Debug, Default)]
struct Stall {
    /// A source was waiting for it at the last look.
    is_stalled: bool,
    /// Some source has asked for room in this look.
    is_asked: bool,
    /// Some source has found none in this look.
    lacks_room: bool,
    /// It took records of a source in this look.
    has_taken: bool,
}

impl Default for Backpressure {
    fn default() -> Backpressure {
        Backpressure {
            is_blocked: false,
            pause_ns: LOOK_PAUSE_NS,
            look_ns: 0,
            outputs: Vec::new(),
            waits_since_ns: Vec::new(),
        }
    }
}

impl Backpressure {
    /// How much of `batch` all outputs have room for that must not lose it. If that is nothing, its source waits from now on.
    pub(super) fn fit(
        &mut self,
        shard: &Shard,
        outputs: &mut impl Outputs,
        batch: &Batches<'_>,
        now: Now,
    ) -> Fit {
        let blocking = shard.blocking(batch.source);
        // The others have failover members to go to.
        let mut asked: Vec<OutputId> =
            blocking.iter().copied().filter(|id| !shard.has_failover(*id)).collect();
        let takes = |outputs: &mut _, asked: &[OutputId], batch: &Batches<'_>| {
            asked.iter().all(|id| takes(shard, outputs, *id, batch, now))
        };
        let fit = if takes(outputs, &asked, batch) {
            Fit::Whole
        } else {
            // A disk that is full, or fails, is waited for with the whole batch.
            let disk_fails = asked.iter().any(|id| outputs.disk_fails(*id));
            let part_max = if disk_fails { 0 } else { batch.part_max() };
            let first = (part_max > 0).then(|| batch.part(1));
            let smallest = first.as_ref().unwrap_or(batch);
            let lacking = lacking(shard, outputs, &mut asked, smallest, now);
            if !lacking.is_empty() {
                self.wait(blocking, &lacking, batch.source, outputs, now);
                return Fit::Nothing;
            }
            // Those that sources do not wait for now are not among them any more.
            if part_max == 0 || takes(outputs, &asked, batch) {
                Fit::Whole
            } else {
                let mut records = part_max;
                while records > 1 && !takes(outputs, &asked, &batch.part(records)) {
                    records /= 2;
                }
                Fit::Part(records)
            }
        };
        self.go_on(blocking, batch.source, outputs);
        fit
    }

    /// A batch of `source` finds no room in the `lacking` outputs. Those of `blocking` that have room do not make it wait.
    fn wait(
        &mut self,
        blocking: &[OutputId],
        lacking: &[OutputId],
        source: SourceId,
        outputs: &mut impl Outputs,
        now: Now,
    ) {
        if self.waits_since_ns.len() <= source.index() {
            self.waits_since_ns.resize(source.index() + 1, None);
        }
        let since_ns = *self.waits_since_ns[source.index()].get_or_insert(now.mono_ns);
        for id in blocking {
            let lacks_room = lacking.contains(id);
            let stall = self.stall(*id);
            (stall.is_asked, stall.lacks_room) = (true, stall.lacks_room | lacks_room);
            outputs.note_wait(*id, source, lacks_room.then_some(since_ns));
        }
    }

    /// Records of `source` are taken: its wait is over.
    fn go_on(&mut self, blocking: &[OutputId], source: SourceId, outputs: &mut impl Outputs) {
        if let Some(since_ns) = self.waits_since_ns.get_mut(source.index()) {
            *since_ns = None;
        }
        for id in blocking {
            let stall = self.stall(*id);
            (stall.is_asked, stall.has_taken) = (true, true);
            outputs.note_wait(*id, source, None);
        }
    }

    fn stall(&mut self, output: OutputId) -> &mut Stall {
        if self.outputs.len() <= output.index() {
            self.outputs.resize(output.index() + 1, Stall::default());
        }
        &mut self.outputs[output.index()]
    }

    /// After a look: `blocked` batches are left, and records of a source that can wait were `admitted`.
    pub(super) fn looked(
        &mut self,
        looks: bool,
        blocked: bool,
        admitted: bool,
        look_again_ns: u64,
        now: Now,
    ) {
        self.is_blocked = blocked;
        if !blocked {
            // The next turn looks at once.
            self.look_ns = 0;
        } else if looks {
            let longer_ns = (2 * self.pause_ns).min(LOOK_PAUSE_MAX_NS);
            self.pause_ns = if admitted { LOOK_PAUSE_NS } else { longer_ns };
            self.look_ns = look_again_ns.min(now.mono_ns + self.pause_ns);
        }
    }

    /// Ends a look: counts whether each output that was asked makes some source wait. With several sources it does as long as
    /// one of them finds no room.
    pub(super) fn count_stalls(&mut self, outputs: &mut impl Outputs, now: Now) {
        for (at, stall) in self.outputs.iter_mut().enumerate().filter(|(_, stall)| stall.is_asked) {
            let Stall { is_stalled, lacks_room, has_taken, .. } = *stall;
            *stall = Stall { is_stalled: lacks_room, ..Stall::default() };
            let account: &OutputAccount = outputs.account(OutputId(at as u16));
            account.stalls.fetch_add(u64::from(lacks_room && !is_stalled), Relaxed);
            if !lacks_room {
                account.stalled_since_ns.store(0, Relaxed);
            } else if !is_stalled || has_taken {
                account.stalled_since_ns.store(now.mono_ns.max(1), Relaxed);
            }
        }
    }

    /// All queues have room for everything in the exchange.
    pub(super) fn end(&mut self, outputs: &mut impl Outputs) {
        self.is_blocked = false;
        self.waits_since_ns.clear();
        // Emptied, so that the accounts are updated once for each wait.
        for (at, stall) in self.outputs.drain(..).enumerate() {
            outputs.end_waits(OutputId(at as u16));
            if stall.is_stalled {
                outputs.account(OutputId(at as u16)).stalled_since_ns.store(0, Relaxed);
            }
        }
    }
}

fn takes(shard: &Shard, outputs: &mut impl Outputs, id: OutputId, batch: &Batches<'_>, now: Now) -> bool {
    let (bytes, records) = shard.room_for(id, batch);
    outputs.takes(id, bytes, records, now)
}

/// Those of the `asked` outputs that have no room for a batch and make its source wait. Each is asked, also behind one without
/// room: a source waits for all of them at the same time. Those that no source waits for now are taken out of `asked`.
fn lacking(
    shard: &Shard,
    outputs: &mut impl Outputs,
    asked: &mut Vec<OutputId>,
    batch: &Batches<'_>,
    now: Now,
) -> Vec<OutputId> {
    let mut lacking = Vec::new();
    asked.retain(|id| {
        let (bytes, records) = shard.room_for(*id, batch);
        match outputs.room(*id, bytes, records, now) {
            Room::None => {
                lacking.push(*id);
                true
            }
            Room::Tight | Room::Ample => true,
            Room::Unneeded => false,
        }
    });
    lacking
}
