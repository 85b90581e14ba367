//! The surroundings of the shard's turn in the simulator: simulated queues, clients and time.
//!
//! The daemon's are in `daemon::worker::host` and `daemon::outlet::queues`. Canaries are in the outlets, so that the
//! turn itself is the daemon's.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use deliver::disk_queue::{Position, Promise};
use deliver::queue::{Admission, Block, Entry, Queue, Room};
use model::{Now, OutputAccount, OutputId, SourceId};
use pipeline::checkpoints::Note;
use pipeline::{Acks, Host, MovingQueues, Outputs, Queues, Taking};

use super::keeping::{Keeping, Kept};
use super::outlet::Outlet;

/// See the module's header.
#[derive(Debug)]
pub(crate) struct SimHost<'a> {
    outlets: Outlets<'a>,
    acks: &'a mut Acks,
    keeping: Kept<'a>,
    now: Now,
    /// Time that each reading of the clock takes, as if work had been done before it.
    pub(super) work_ns: u64,
    worked_ns: Cell<u64>,
}

impl<'a> SimHost<'a> {
    /// A host for these queues. Copies of all blocks are added to `given`.
    pub(crate) fn new(
        outlets: &'a mut [Outlet],
        given: Option<&'a mut Vec<Given>>,
        acks: &'a mut Acks,
        keeping: Option<&'a mut Keeping>,
        now: Now,
    ) -> SimHost<'a> {
        let outlets = Outlets { all: outlets, given };
        SimHost { outlets, acks, keeping: Kept(keeping), now, work_ns: 0, worked_ns: Cell::new(0) }
    }
}

impl<'a> Host for SimHost<'a> {
    type Outputs = Outlets<'a>;
    type Keep = Kept<'a>;

    fn outputs(&mut self) -> &mut Outlets<'a> {
        &mut self.outlets
    }

    fn keep(&mut self) -> &mut Kept<'a> {
        &mut self.keeping
    }

    /// Work takes time only for the limits of a turn. For everything else, a turn takes none.
    fn mono_ns(&self) -> u64 {
        self.worked_ns.set(self.worked_ns.get() + self.work_ns);
        self.now.mono_ns + self.worked_ns.get()
    }

    fn taken(&mut self, taking: Taking) {
        // Acknowledgements are resolved after each turn.
        let _waits_for = self.acks.taken(taking, &mut self.outlets);
    }

    fn note(&mut self, aggregation: &str, note: Note) {
        let gave = self.outlets.given.as_ref().map_or(0, |given| given.len());
        if let Some(keeping) = &mut self.keeping.0 {
            keeping.note(aggregation, note, gave, self.now);
        }
    }
}

/// A block given to an output.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) output: OutputId,
    pub(crate) block: Block,
    /// Its position on disk, and whether the disk accepted it.
    pub(crate) place: Option<(Position, bool)>,
}

/// The queues of all outlets.
#[derive(Debug)]
pub(crate) struct Outlets<'a> {
    all: &'a mut [Outlet],
    given: Option<&'a mut Vec<Given>>,
}

impl<'a> Outlets<'a> {
    pub(super) fn new(all: &'a mut [Outlet]) -> Outlets<'a> {
        Outlets { all, given: None }
    }

    fn of(&mut self, output: OutputId) -> &mut Outlet {
        let holder = self.holder(output);
        &mut self.all[holder.index()]
    }

    /// The outlet that has the output's queue now.
    fn holder(&self, output: OutputId) -> OutputId {
        match self.all[output.index()].successor {
            Some(next) => self.holder(OutputId(next as u16)),
            None => output,
        }
    }
}

impl Queues for Outlets<'_> {
    fn accepted_up_to(&mut self, output: OutputId) -> Position {
        self.of(output).queue.accepted_up_to()
    }

    fn settled_up_to(&mut self, output: OutputId) -> Position {
        self.of(output).queue.settled_up_to()
    }

    fn promise(&mut self, output: OutputId, of: Position) -> Promise {
        self.of(output).promise(of)
    }

    fn lost_before_start(&mut self, output: OutputId) -> u64 {
        self.of(output).queue.lost_before_start()
    }

    fn account(&self, output: OutputId) -> &OutputAccount {
        &self.all[output.index()].account
    }
}

impl MovingQueues for Outlets<'_> {
    fn take(&mut self, from: OutputId, now: Now) -> Option<Entry> {
        let outlet = self.of(from);
        let entry = if outlet.failed && !outlet.retired { outlet.queue.pop(now) } else { None };
        outlet.moving += entry.as_ref().map_or(0, Entry::copies);
        entry
    }

    fn put_back(&mut self, from: OutputId, entry: Entry) {
        let outlet = self.of(from);
        outlet.moving -= entry.copies();
        outlet.queue.put_back(entry);
    }

    fn has_room(&mut self, to: OutputId, block: &Block, now: Now) -> bool {
        let Outlet { queue, retired, .. } = self.of(to);
        !*retired && queue.has_room_for(block, now)
    }

    fn append_moved(&mut self, to: OutputId, block: Block, now: Now) -> Option<Position> {
        let outlet = self.of(to);
        let place = outlet.queue.accepted_up_to();
        // A canary may delay the block; the checks must find that.
        outlet.append(block, Admission::Granted, now).unwrap_or(true).then_some(place)
    }

    fn is_on_disk(&mut self, output: OutputId) -> bool {
        self.of(output).queue.on_disk().is_some()
    }

    fn settled(&mut self, output: OutputId, copies: u64) {
        self.of(output).moving -= copies;
    }
}

impl Outputs for Outlets<'_> {
    fn append(&mut self, to: OutputId, block: Block, admission: Admission, now: Now) -> Option<Position> {
        let output = self.holder(to);
        let copy = self.given.is_some().then(|| block.clone());
        let outlet = &mut self.all[output.index()];
        let place = outlet.queue.accepted_up_to();
        let kept = outlet.append(block, admission, now);
        let on_disk = kept.filter(|_| outlet.is_read_from_disk());
        if let (Some(given), Some(block)) = (&mut self.given, copy) {
            given.push(Given { output, block, place: on_disk.map(|kept| (place, kept)) });
        }
        kept.unwrap_or(true).then_some(place)
    }

    fn room(&mut self, output: OutputId, bytes: u64, records: u64, now: Now) -> Room {
        self.of(output).room(bytes, records, now)
    }

    fn takes(&mut self, output: OutputId, bytes: u64, records: u64, now: Now) -> bool {
        self.of(output).takes(bytes, records, now)
    }

    fn disk_fails(&mut self, output: OutputId) -> bool {
        self.of(output).queue.disk_fails()
    }

    fn has_room_for_all(&mut self, output: OutputId, bytes: u64, records: u64) -> bool {
        self.of(output).queue.has_room_for_all(bytes, records)
    }

    fn look_again_ns(&mut self, output: OutputId) -> u64 {
        self.of(output).queue.look_again_ns()
    }

    fn note_wait(&mut self, _: OutputId, _: SourceId, _: Option<u64>) {}

    fn end_waits(&mut self, _: OutputId) {}

    fn queued_bytes(&mut self, output: OutputId) -> u64 {
        self.account(output).queued_bytes.load(Relaxed)
    }
}
