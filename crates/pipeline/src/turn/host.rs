//! What a turn needs from its surroundings: the queues of the outputs, clients that wait for replies, files of
//! checkpoints, and the clock.
//!
//! `staunch` implements these over locked queues and threads, `sim` over a simulated world. Calls are per block or per batch,
//! never per record.

use deliver::disk_queue::Position;
use deliver::queue::{Admission, Block, Entry, Room};
use model::{Now, OutputId, SourceId};

use crate::acks::{Queues, Taking};
use crate::checkpoints::{Keep, Note};

/// The queues, as [`super::Moves`] uses them.
pub trait MovingQueues: Queues {
    /// Takes the oldest block out of the queue of an output whose endpoint has failed. None when it has not failed, when the
    /// queue is empty, or when nothing of the queue may change now. Its copies wait outside the queue from now on.
    fn take(&mut self, from: OutputId, now: Now) -> Option<Entry>;

    /// Puts it back where it was.
    fn put_back(&mut self, from: OutputId, entry: Entry);

    /// Whether the queue has room for a block.
    fn has_room(&mut self, to: OutputId, block: &Block, now: Now) -> bool;

    /// Appends a block that it has room for; gives its place. None when it was dropped nevertheless, and counted there.
    fn append_moved(&mut self, to: OutputId, block: Block, now: Now) -> Option<Position>;

    /// Whether the queue is on disk.
    fn is_on_disk(&mut self, output: OutputId) -> bool;

    /// Called when so many copies were settled that had been taken out of the queue.
    fn settled(&mut self, output: OutputId, copies: u64);
}

/// The queues of all outputs.
pub trait Outputs: MovingQueues {
    /// Appends a block. A full queue drops it, and counts it. Gives its place, if it was kept.
    fn append(&mut self, to: OutputId, block: Block, admission: Admission, now: Now) -> Option<Position>;

    /// Room for a batch of `bytes` and `records` from a source that can wait.
    fn room(&mut self, output: OutputId, bytes: u64, records: u64, now: Now) -> Room;

    /// Whether there is room for a batch of `bytes` and `records` from a source that can wait. Without room, no wait begins.
    fn takes(&mut self, output: OutputId, bytes: u64, records: u64, now: Now) -> bool;

    /// True when the queue is on a disk that did not take the last write or reservation.
    fn disk_fails(&mut self, output: OutputId) -> bool;

    /// True for a queue in memory with room for everything that `bytes` and `records` may turn into, and for open blocks.
    fn has_room_for_all(&mut self, output: OutputId, bytes: u64, records: u64) -> bool;

    /// Latest time of the next [`Outputs::room`] while a source waits, monotonic nanoseconds; `u64::MAX` while none does.
    fn look_again_ns(&mut self, output: OutputId) -> u64;

    /// Notes that `source` waits since `since_ns` (monotonic), now for room in the queue of an output, or that it does not
    /// wait for this one.
    fn note_wait(&mut self, output: OutputId, source: SourceId, since_ns: Option<u64>);

    /// No source waits for an output any more.
    fn end_waits(&mut self, output: OutputId);

    /// Bytes that are queued, those of the senders included.
    fn queued_bytes(&mut self, output: OutputId) -> u64;
}

/// Everything around a turn.
pub trait Host {
    /// The queues of all outputs.
    type Outputs: Outputs;

    /// The queues of all outputs.
    fn outputs(&mut self) -> &mut Self::Outputs;

    /// Where checkpoints go.
    type Keep: Keep;

    /// Where checkpoints go.
    fn keep(&mut self) -> &mut Self::Keep;

    /// The monotonic clock, which limits the time of one step.
    fn mono_ns(&self) -> u64;

    /// A batch was pushed whose client waits for an acknowledgement, and its blocks are in the queues or were dropped.
    fn taken(&mut self, taking: Taking);

    /// An aggregation has flushed, and the blocks are in the queues: the next process is to know that.
    fn note(&mut self, aggregation: &str, note: Note);
}
