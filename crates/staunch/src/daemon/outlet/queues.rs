//! The queues of all outlets, for the turn of the shard (`pipeline::Turn`) and for acknowledgements.
//!
//! Invariant: at most one queue is locked at a time.

use std::sync::Arc;

use deliver::disk_queue::{Position, Promise};
use deliver::queue::{Admission, Block, Entry, Queue, Room};
use model::{Now, OutputAccount, OutputId, SourceId};
use pipeline::{MovingQueues, Outputs, Queues};

use super::Outlet;

/// The outlets, by output.
#[derive(Debug)]
pub struct Outlets<'a>(pub &'a [Arc<Outlet>]);

impl Outlets<'_> {
    fn of(&self, output: OutputId) -> &Outlet {
        &self.0[output.index()]
    }
}

impl Queues for Outlets<'_> {
    fn accepted_up_to(&mut self, output: OutputId) -> Position {
        self.of(output).queue().accepted_up_to()
    }

    fn settled_up_to(&mut self, output: OutputId) -> Position {
        self.of(output).queue().settled_up_to()
    }

    fn promise(&mut self, output: OutputId, of: Position) -> Promise {
        self.of(output).promise(of)
    }

    fn lost_before_start(&mut self, output: OutputId) -> u64 {
        self.of(output).queue().lost_before_start()
    }

    fn account(&self, output: OutputId) -> &OutputAccount {
        &self.0[output.index()].account
    }
}

impl MovingQueues for Outlets<'_> {
    fn take(&mut self, from: OutputId, now: Now) -> Option<Entry> {
        self.of(from).take_to_move(now)
    }

    fn put_back(&mut self, from: OutputId, entry: Entry) {
        self.of(from).take_back(entry);
    }

    fn has_room(&mut self, to: OutputId, block: &Block, now: Now) -> bool {
        self.of(to).has_room_for(block, now)
    }

    fn append_moved(&mut self, to: OutputId, block: Block, now: Now) -> Option<Position> {
        self.of(to).append_as(block, Admission::Granted, now)
    }

    fn is_on_disk(&mut self, output: OutputId) -> bool {
        self.of(output).disk().is_some()
    }

    fn settled(&mut self, output: OutputId, copies: u64) {
        self.of(output).has_moved(copies);
    }
}

impl Outputs for Outlets<'_> {
    fn append(&mut self, to: OutputId, block: Block, admission: Admission, now: Now) -> Option<Position> {
        self.of(to).append_as(block, admission, now)
    }

    fn room(&mut self, output: OutputId, bytes: u64, records: u64, now: Now) -> Room {
        self.of(output).room(bytes, records, now)
    }

    fn takes(&mut self, output: OutputId, bytes: u64, records: u64, now: Now) -> bool {
        self.of(output).takes(bytes, records, now)
    }

    fn disk_fails(&mut self, output: OutputId) -> bool {
        self.of(output).queue().disk_fails()
    }

    fn has_room_for_all(&mut self, output: OutputId, bytes: u64, records: u64) -> bool {
        self.of(output).has_room_for_all(bytes, records)
    }

    fn look_again_ns(&mut self, output: OutputId) -> u64 {
        self.of(output).look_again_ns()
    }

    fn note_wait(&mut self, output: OutputId, source: SourceId, since_ns: Option<u64>) {
        self.of(output).note_wait(source, since_ns);
    }

    fn end_waits(&mut self, output: OutputId) {
        if let Some(outlet) = self.0.get(output.index()) {
            outlet.end_waits();
        }
    }

    fn queued_bytes(&mut self, output: OutputId) -> u64 {
        self.of(output).bytes()
    }
}
