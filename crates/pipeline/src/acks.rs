//! Decides which lines of which connections may be acknowledged (design §5).
//!
//! Path of a batch with an [`AckMark`]: [`Taking::begin`] -> `Shard::push`, `Shard::close_reached`, the blocks are
//! appended -> **[`Acks::taken`]** -> queues settle or sync -> **[`Acks::resolve`]** -> [`Acks::answer`] ->
//! `Intake::replies` writes the line. Pure: the state of queues comes in through [`Queues`]. Not here: threads and
//! wake-ups (`staunch`, `sim`).
//! Invariant: no answer counts a line before the condition holds for all its copies. When it is unknown whose copy an
//! output has lost, every connection that waits for that output fails.

pub(crate) mod answer;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use deliver::disk_queue::{Position, Promise};
use model::{
    AckMark, AckWhen, Batches, ConnectionId, Dropped, OutputAccount, OutputId, SourceAccount, Unacked,
};

pub use self::answer::Answer;
use crate::Shard;

/// Most marks of one connection that wait for their condition. Beyond it the connection is not read; a read has at most
/// one mark.
pub const MARKS_MAX: u64 = 64;

/// Waits of closed or failed connections that may remain among the others.
const DEAD_MAX: usize = if cfg!(test) { 8 } else { 4096 };

/// Queries about the outputs' queues.
pub trait Queues {
    /// Position of the next block.
    fn accepted_up_to(&mut self, output: OutputId) -> Position;

    /// Every block before it has its outcome. Losses among them are in the account when this returns.
    fn settled_up_to(&mut self, output: OutputId) -> Position;

    /// What is known of an appended block.
    fn promise(&mut self, output: OutputId, of: Position) -> Promise;

    /// Copies of an earlier run that the queue has found and lost. They are in the account when this returns.
    fn lost_before_start(&mut self, output: OutputId) -> u64;

    /// The output's account.
    fn account(&self, output: OutputId) -> &OutputAccount;
}

/// Copies of this run that the output has lost without sending them.
fn lost_here(output: OutputId, queues: &mut impl Queues) -> u64 {
    // In this order: a loss between the two reads counts as one of this run, and never the other way round.
    let of_before = queues.lost_before_start(output);
    queues.account(output).lost_here().saturating_sub(of_before)
}

/// The state before the shard accepts a batch that asks for an acknowledgement. Nothing else may be appended between
/// this and [`Acks::taken`], and earlier lines must already be in the queues.
#[must_use = "the client waits for an answer"]
#[derive(Debug)]
pub struct Taking {
    mark: AckMark,
    source: Arc<SourceAccount>,
    source_lost: u64,
    /// The outputs of the source can keep the condition that was promised when the connection was opened.
    kept: bool,
    outputs: Vec<Before>,
}

/// One output before a batch is accepted.
#[derive(Debug)]
struct Before {
    output: OutputId,
    from: Position,
    turned_away: u64,
    lost_here: u64,
    refused: u64,
}

impl Taking {
    /// To be called before the batch is pushed; none if it asks for no acknowledgement.
    pub fn begin(batches: &Batches<'_>, shard: &Shard, queues: &mut impl Queues) -> Option<Taking> {
        let mark = batches.ack?;
        let source = Arc::clone(shard.account(batches.source)?);
        let before = |output: &OutputId| {
            let from = queues.accepted_up_to(*output);
            let lost_here = lost_here(*output, queues);
            let account = queues.account(*output);
            Before {
                output: *output,
                from,
                turned_away: account.turned_away(),
                lost_here,
                refused: account.refused(),
            }
        };
        let outputs = shard.reached(batches.source).iter().map(before).collect();
        let kept = shard.keeps(batches.source, mark.when);
        Some(Taking { mark, source_lost: source.lost(), source, kept, outputs })
    }
}

/// An output whose queue continues that of another process, before that queue is read.
#[derive(Clone, Copy, Debug)]
pub struct Inherited {
    output: OutputId,
    lost_here: u64,
    refused: u64,
}

impl Inherited {
    /// With its account as the other process has left it.
    pub fn new(output: OutputId, account: &OutputAccount) -> Inherited {
        Inherited { output, lost_here: account.lost_here(), refused: account.refused() }
    }
}

/// All connections that wait for an acknowledgement.
#[derive(Debug, Default)]
pub struct Acks {
    opened: u64,
    connections: HashMap<ConnectionId, Waiting>,
    /// By output, then by condition: a slow one does not delay the others.
    outputs: Vec<[VecDeque<Wait>; 2]>,
    /// Stale waits among them, whose connection has closed or failed.
    dead: usize,
    /// Connections whose answer has changed since they were last read.
    changed: Vec<ConnectionId>,
}

/// One connection.
#[derive(Debug, Default)]
struct Waiting {
    answer: Answer,
    /// Accepted marks, oldest first. At most [`MARKS_MAX`], plus those of lines read during the stop.
    pending: VecDeque<Pending>,
    /// Number of the first of `pending`.
    first: u64,
    is_changed: bool,
}

/// A mark whose condition is not met for all outputs.
#[derive(Debug)]
struct Pending {
    up_to: u64,
    rejected: u64,
    outputs_left: usize,
}

/// The wait of one mark at one output.
#[derive(Debug)]
struct Wait {
    connection: ConnectionId,
    /// Of the connection's mark.
    number: u64,
    from: Position,
    to: Position,
    lost_here: u64,
    refused: u64,
    /// Its copies may belong to the previous process.
    of_before: bool,
}

impl Wait {
    /// Its result, if it has one. The queue's state is read before the losses: a block's losses are counted before it
    /// is reported as settled.
    fn end(&self, output: OutputId, when: AckWhen, queues: &mut impl Queues) -> Option<Result<(), Unacked>> {
        let mut in_doubt = false;
        let reached = match when {
            AckWhen::Accepted => true,
            AckWhen::Safe => (self.from.0..self.to.0).all(|place| {
                let promise = queues.promise(output, Position(place));
                in_doubt |= promise == Promise::InDoubt;
                promise != Promise::Accepted
            }),
            AckWhen::Delivered => queues.settled_up_to(output) >= self.to,
        };
        let lost_here =
            if self.of_before { queues.account(output).lost_here() } else { lost_here(output, queues) };
        let account = queues.account(output);
        if lost_here != self.lost_here {
            let stopped = account.dropped(Dropped::Stopped) > 0;
            return Some(Err(if stopped { Unacked::Stopped } else { Unacked::Dropped }));
        }
        // What an endpoint refused was in its queue until then: safe, but not delivered.
        if when == AckWhen::Delivered && account.refused() != self.refused {
            return Some(Err(Unacked::RejectedByPeer));
        }
        if in_doubt {
            return Some(Err(Unacked::InDoubt));
        }
        reached.then_some(Ok(()))
    }
}

impl Acks {
    /// Opens a connection.
    pub fn open(&mut self) -> ConnectionId {
        let id = ConnectionId(self.opened);
        self.opened += 1;
        self.connections.insert(id, Waiting::default());
        id
    }

    /// A connection has ended, or its client is gone.
    pub fn close(&mut self, id: ConnectionId) {
        if let Some(waiting) = self.connections.remove(&id) {
            self.drop_stale_waits(waiting.waits());
        }
    }

    /// The shard has pushed the batch, and its blocks are in the queues or were dropped. Returns the outputs that it
    /// waits for: call [`Self::resolve`] when one of them has made progress, and once now.
    pub fn taken(&mut self, taking: Taking, queues: &mut impl Queues) -> Vec<OutputId> {
        let Taking { mark, source, source_lost, kept, outputs } = taking;
        let AckMark { connection, up_to, rejected, when } = mark;
        let Some(waiting) = self.connections.get_mut(&connection) else { return Vec::new() };
        if waiting.answer.failed.is_some() {
            return Vec::new();
        }
        if !kept {
            self.fail(connection, Unacked::Reloaded);
            return Vec::new();
        }
        let turned_away = |before: &Before| queues.account(before.output).turned_away() != before.turned_away;
        if source.lost() != source_lost || outputs.iter().any(turned_away) {
            self.fail(connection, Unacked::Dropped);
            return Vec::new();
        }
        let number = waiting.first + waiting.pending.len() as u64;
        let mut waits = Vec::new();
        for Before { output, from, lost_here, refused, .. } in outputs {
            let to = queues.accepted_up_to(output);
            if when == AckWhen::Accepted || from == to {
                continue;
            }
            if self.outputs.len() <= output.index() {
                self.outputs.resize_with(output.index() + 1, Default::default);
            }
            let wait = Wait { connection, number, from, to, lost_here, refused, of_before: false };
            self.outputs[output.index()][place_of(when)].push_back(wait);
            waits.push(output);
        }
        waiting.pending.push_back(Pending { up_to, rejected, outputs_left: waits.len() });
        self.advance(connection);
        waits
    }

    /// Continues, before the first batch, a connection whose lines another process has accepted: they wait until these
    /// outputs have settled everything in their queues. Returns the outputs as [`Self::taken`] does.
    pub fn go_on(
        &mut self,
        mark: AckMark,
        inherited: &[Inherited],
        queues: &mut impl Queues,
    ) -> Vec<OutputId> {
        let AckMark { connection, up_to, rejected, when } = mark;
        debug_assert_eq!(when, AckWhen::Delivered, "nothing else can be waited for in two processes");
        let Some(waiting) = self.connections.get_mut(&connection) else { return Vec::new() };
        let number = waiting.first + waiting.pending.len() as u64;
        waiting.pending.push_back(Pending { up_to, rejected, outputs_left: inherited.len() });
        for Inherited { output, lost_here, refused } in inherited.iter().copied() {
            let to = queues.accepted_up_to(output);
            if self.outputs.len() <= output.index() {
                self.outputs.resize_with(output.index() + 1, Default::default);
            }
            let wait = Wait { connection, number, from: to, to, lost_here, refused, of_before: true };
            self.outputs[output.index()][place_of(when)].push_back(wait);
        }
        self.advance(connection);
        inherited.iter().map(|inherited| inherited.output).collect()
    }

    /// Checks what has been settled and synced since the last call.
    pub fn resolve(&mut self, queues: &mut impl Queues) {
        for at in 0..self.outputs.len() {
            for when in [AckWhen::Safe, AckWhen::Delivered] {
                let output = OutputId(at as u16);
                while let Some(front) = self.outputs[at][place_of(when)].front() {
                    let Some(end) = front.end(output, when, queues) else { break };
                    let Some(wait) = self.outputs[at][place_of(when)].pop_front() else { break };
                    self.end_wait(wait.connection, wait.number, end);
                }
            }
        }
    }

    /// The outputs that each connection waits for. Connections that wait for none are left out.
    pub fn waiting(&self) -> HashMap<ConnectionId, Vec<OutputId>> {
        let mut waiting: HashMap<ConnectionId, Vec<OutputId>> = HashMap::default();
        for (at, waits) in self.outputs.iter().enumerate() {
            for Wait { connection, number, .. } in waits.iter().flatten() {
                let lives = self.connections.get(connection).is_some_and(|one| one.has(*number));
                let known = waiting.entry(*connection).or_default();
                if lives && known.last().is_none_or(|last| last.index() != at) {
                    known.push(OutputId(at as u16));
                }
            }
        }
        waiting.retain(|_, outputs| !outputs.is_empty());
        waiting
    }

    /// Nothing more will be settled or synced, or nothing more of the connection's lines will be accepted.
    pub fn fail(&mut self, id: ConnectionId, why: Unacked) {
        let Some(waiting) = self.connections.get_mut(&id) else { return };
        if waiting.answer.failed.is_none() {
            waiting.answer.failed = Some(why);
            let dead = waiting.waits();
            waiting.pending.clear();
            waiting.note_change(id, &mut self.changed);
            self.drop_stale_waits(dead);
        }
    }

    /// So many waits have become stale. They are removed when they outnumber the others.
    fn drop_stale_waits(&mut self, waits: usize) {
        self.dead += waits;
        let all = || self.outputs.iter().flatten().map(VecDeque::len).sum::<usize>();
        if self.dead > DEAD_MAX && self.dead > all() / 2 {
            let Acks { connections, outputs, .. } = self;
            let lives =
                |wait: &Wait| connections.get(&wait.connection).is_some_and(|one| one.has(wait.number));
            outputs.iter_mut().flatten().for_each(|waits| waits.retain(lives));
            self.dead = 0;
        }
    }

    /// The current answer to the connection.
    pub fn answer(&self, id: ConnectionId) -> Answer {
        self.connections.get(&id).map(|waiting| waiting.answer).unwrap_or_default()
    }

    /// Connections whose answer has changed since the last call.
    pub fn take_changed(&mut self) -> Vec<ConnectionId> {
        let changed = std::mem::take(&mut self.changed);
        for id in &changed {
            if let Some(waiting) = self.connections.get_mut(id) {
                waiting.is_changed = false;
            }
        }
        changed
    }

    fn end_wait(&mut self, id: ConnectionId, number: u64, end: Result<(), Unacked>) {
        let pending = self.connections.get_mut(&id).and_then(|waiting| waiting.pending_at(number));
        let Some(pending) = pending else {
            self.dead = self.dead.saturating_sub(1);
            return;
        };
        debug_assert!(pending.outputs_left > 0, "each output ends one wait");
        pending.outputs_left -= 1;
        match end {
            Ok(()) => self.advance(id),
            Err(why) => self.fail(id, why),
        }
    }

    /// Counts the marks from the front that no longer wait.
    fn advance(&mut self, id: ConnectionId) {
        let Some(waiting) = self.connections.get_mut(&id) else { return };
        while let Some(met) = waiting.pending.pop_front_if(|pending| pending.outputs_left == 0) {
            debug_assert!(met.up_to >= waiting.answer.up_to, "marks of a connection come in order");
            waiting.first += 1;
            waiting.answer.marks += 1;
            waiting.answer.up_to = met.up_to;
            waiting.answer.rejected = met.rejected;
            waiting.note_change(id, &mut self.changed);
        }
    }
}

impl Waiting {
    /// The mark of that number, while it waits.
    fn pending_at(&mut self, number: u64) -> Option<&mut Pending> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.pending.get_mut(at)
    }

    fn has(&self, number: u64) -> bool {
        (self.first..self.first + self.pending.len() as u64).contains(&number)
    }

    /// Waits of its marks.
    fn waits(&self) -> usize {
        self.pending.iter().map(|pending| pending.outputs_left).sum()
    }

    fn note_change(&mut self, id: ConnectionId, changed: &mut Vec<ConnectionId>) {
        if !std::mem::replace(&mut self.is_changed, true) {
            changed.push(id);
        }
    }
}

/// Index of the waits of a condition.
fn place_of(when: AckWhen) -> usize {
    usize::from(when == AckWhen::Delivered)
}
