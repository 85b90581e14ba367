//! The state that survives a process in addition to queues: checkpoints of aggregations and notes of flushes, on a
//! faulty disk.
//!
//! The daemon's threads are simulated as times: one writes a piece of a checkpoint, one writes notes.
//! `pipeline::checkpoints` makes all decisions. Not here: the data that must be restored (`storm::memory`).

use std::collections::{BTreeSet, VecDeque};

use config::plan::Plan;
use deliver::disk_queue::faulty_disk::FaultyDisk;
use model::{Disk, DiskError, Now};
use pipeline::checkpoints::{self, Keep, Note, Notes, Piece, Writer, Wrote};
use pipeline::{SavedState, Turn};
use process::aggregate::checkpoint::LastFlush;

use super::canary::Canary;
use crate::random::Random;

/// The file of the notes, and its temporary file.
const NOTES: &str = "last-flush";
const NOTES_HALF: &str = "last-flush.new";

/// Most pieces queued for the disk.
const PIECES_MAX: usize = 8;

const MS_NS: u64 = 1_000_000;

/// A change of the surviving state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A checkpoint was begun.
    Begun { name: String, number: u64 },
    /// A checkpoint is complete on disk.
    Whole { name: String, number: u64 },
    /// The checkpoint on disk was removed. Unless the disk failed, no power loss restores it.
    Removed { name: String, is_safe: bool },
    /// A flush has ended, and its blocks are in the queues.
    Flushed { name: String },
    /// All flushes up to now are noted.
    Noted,
}

/// See the module's header.
#[derive(Debug)]
pub(crate) struct Keeping {
    pub(crate) disk: FaultyDisk,
    /// The events, each with the number of blocks given to outputs before it.
    pub(crate) events: Vec<(usize, Event)>,
    writer: Writer<FaultyDisk>,
    way: Way,
    /// When the writer has finished its piece.
    busy_until_ns: u64,
    /// Longest time for a piece, in nanoseconds.
    piece_ns: u64,
    notes: Notes,
    /// When new notes are written, if there are any.
    notes_due_ns: Option<u64>,
    random: Random,
    /// Series saved in one turn.
    pub(crate) slice: usize,
    canary: Option<Canary>,
}

/// The pieces between the saver and the writer.
#[derive(Debug)]
struct Way {
    pieces: VecDeque<Piece>,
    /// Checkpoints that were begun but are no events yet.
    begun: Vec<Event>,
    failing: BTreeSet<String>,
    random: Random,
}

impl Keep for Way {
    fn offer(&mut self, piece: Piece) -> Result<(), Piece> {
        match &piece {
            // Always accepted, so that the start of saving is recorded.
            Piece::Begin { name, number, .. } => {
                self.begun.push(Event::Begun { name: name.clone(), number: *number });
            }
            _ if self.pieces.len() >= PIECES_MAX => return Err(piece),
            _ => {}
        }
        self.pieces.push_back(piece);
        Ok(())
    }

    fn is_failing(&self, name: &str) -> bool {
        self.failing.contains(name)
    }

    fn fresh_id(&mut self) -> u64 {
        self.random.next()
    }
}

/// Where a turn saves checkpoints; nowhere without a disk for them.
#[derive(Debug)]
pub(crate) struct Kept<'a>(pub(super) Option<&'a mut Keeping>);

impl Keep for Kept<'_> {
    fn offer(&mut self, piece: Piece) -> Result<(), Piece> {
        self.0.as_mut().map_or(Ok(()), |keeping| keeping.way.offer(piece))
    }

    fn is_failing(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|keeping| keeping.way.is_failing(name))
    }

    fn fresh_id(&mut self) -> u64 {
        self.0.as_mut().map_or(0, |keeping| keeping.way.fresh_id())
    }
}

impl Keeping {
    /// An empty disk; the seed decides its speed.
    pub(crate) fn new(seed: u64, canary: Option<Canary>) -> Keeping {
        let mut random = Random::new(seed);
        let disk = FaultyDisk::new(random.next());
        Keeping {
            events: Vec::new(),
            writer: Writer::new(disk.clone()),
            way: Way {
                pieces: VecDeque::new(),
                begun: Vec::new(),
                failing: BTreeSet::new(),
                random: Random::new(random.next()),
            },
            busy_until_ns: 0,
            piece_ns: *random.pick(&[0, MS_NS, 50 * MS_NS, 700 * MS_NS]),
            notes: Notes::default(),
            notes_due_ns: None,
            slice: random.between(1, 60) as usize,
            random,
            disk,
            canary,
        }
    }

    /// A new process starts: its shard restores the state of its predecessor.
    pub(crate) fn begin(&mut self, plan: &Plan, turn: &mut Turn, now: Now) {
        let shard = &mut turn.shard;
        self.way.pieces.clear();
        self.way.failing.clear();
        (self.busy_until_ns, self.notes_due_ns) = (0, None);
        let text = self.disk.bytes(NOTES).and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.unwrap_or_default();
        self.notes = Notes::of_text(&text);
        let set_back_ns = checkpoints::set_back_ns(&text, now);
        if let Some(canary) = self.canary {
            canary.before_restore(&self.disk, plan, &mut self.notes);
        }
        for transform in &plan.transforms {
            if transform.kind.as_streams().is_some() {
                let restored =
                    checkpoints::begin_streams(Some(&self.disk), shard, transform, |_file, _why| {});
                debug_assert!(restored.is_ok(), "reads do not fail at a start");
                continue;
            }
            let noted = self.notes.of(&transform.name);
            let believed = checkpoints::believed(transform, noted, set_back_ns);
            let restored =
                checkpoints::begin(Some(&self.disk), shard, transform, believed, now, |_file, _why| {});
            if believed != noted && matches!(restored, Ok(None)) {
                shard.drop_label(&transform.name);
            }
        }
        self.follow(plan, turn, now);
    }

    /// A new process continues with the states of a live one, as after a hot restart.
    pub(crate) fn go_on(&mut self, plan: &Plan, turn: &mut Turn, states: &[SavedState], now: Now) {
        self.way.pieces.clear();
        self.way.failing.clear();
        for SavedState { name, bytes } in states {
            let restored = turn.shard.import(name, bytes, LastFlush::default(), now);
            let restored = restored.and_then(Result::ok).expect("the state of a live process is complete");
            if let Some(label_s) = restored.last_flush_s {
                self.notes.flushed(name, Note { label_s, number: None });
            }
        }
        self.follow(plan, turn, now);
    }

    /// The process has died, alone or with a power loss. This decides what the next one finds.
    pub(crate) fn die(&mut self, power: bool) {
        // A killed process does not remove its unfinished files.
        self.disk.change_faults(|faults| faults.crash_in = Some(0));
        self.writer = Writer::new(self.disk.clone());
        if power {
            self.disk.lose_power();
        } else {
            self.disk.restart();
        }
    }

    /// Follows a new plan.
    pub(crate) fn follow(&mut self, plan: &Plan, turn: &mut Turn, now: Now) {
        let Keeping { disk, notes, .. } = self;
        let number = |name: &str| checkpoints::next_number(disk, name, notes.of(name).number);
        turn.follow_checkpoints(plan, number, now);
    }

    /// After a turn: writes the pieces that the disk has time for, and the notes. `gave` blocks have been given to
    /// outputs since events were read.
    pub(crate) fn turn(&mut self, gave: usize, now: Now) {
        self.events.extend(self.way.begun.drain(..).map(|event| (gave, event)));
        while self.busy_until_ns <= now.mono_ns && !self.disk.is_dead() {
            let Some(piece) = self.way.pieces.pop_front() else { break };
            if !matches!(piece, Piece::Same { .. }) {
                self.busy_until_ns = now.mono_ns + self.random.below(self.piece_ns + 1);
            }
            self.write(piece, gave);
        }
        if self.notes_due_ns.is_some_and(|due_ns| due_ns <= now.mono_ns) {
            self.write_notes(gave, now);
        }
    }

    /// An aggregation has flushed, and its blocks are in the queues.
    pub(super) fn note(&mut self, name: &str, note: Note, gave: usize, now: Now) {
        if self.notes.flushed(name, note) {
            self.events.push((gave, Event::Flushed { name: name.to_owned() }));
            let late_ns = *self.random.pick(&[0, 0, MS_NS, 20 * MS_NS, 900 * MS_NS]);
            self.notes_due_ns.get_or_insert(now.mono_ns + late_ns);
        }
    }

    fn write(&mut self, piece: Piece, gave: usize) {
        let faults = self.disk.faults_met();
        match self.writer.take(piece) {
            Wrote::Nothing | Wrote::Same { .. } => {}
            Wrote::Whole { name, number, .. } => {
                self.way.failing.remove(&name);
                self.events.push((gave, Event::Whole { name, number }));
            }
            Wrote::Removed { name } => {
                self.way.failing.remove(&name);
                let is_safe = self.disk.faults_met() == faults;
                self.events.push((gave, Event::Removed { name, is_safe }));
            }
            Wrote::Failed { name, .. } => drop(self.way.failing.insert(name)),
        }
    }

    /// As in the daemon: without a sync, and after a failure not before the next flush.
    fn write_notes(&mut self, gave: usize, now: Now) {
        self.notes_due_ns = None;
        let write = || -> Result<(), DiskError> {
            let _left = self.disk.remove(NOTES_HALF);
            let file = self.disk.create(NOTES_HALF)?;
            let text = self.notes.to_text() + &checkpoints::written_line(now);
            self.disk.write_at(&file, 0, &[text.as_bytes()])?;
            self.disk.replace(NOTES_HALF, NOTES)
        };
        if write().is_ok() {
            self.events.push((gave, Event::Noted));
        }
    }

    /// When the next action is due, in monotonic nanoseconds.
    pub(crate) fn due_ns(&self) -> u64 {
        if self.disk.is_dead() {
            return u64::MAX;
        }
        let writes_ns = if self.way.pieces.is_empty() { u64::MAX } else { self.busy_until_ns };
        writes_ns.min(self.notes_due_ns.unwrap_or(u64::MAX))
    }

    /// The end of an orderly stop: the last checkpoints and the last notes.
    pub(crate) fn stop(&mut self, last: Vec<Piece>, gave: usize, now: Now) {
        self.way.begun.clear();
        let pieces: Vec<Piece> = self.way.pieces.drain(..).chain(last).collect();
        pieces.into_iter().for_each(|piece| self.write(piece, gave));
        self.write_notes(gave, now);
    }

    /// Bytes of all files together.
    pub(crate) fn used(&self) -> u64 {
        self.files().iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// All files, by name.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let names = self.disk.list().unwrap_or_default();
        names.into_iter().filter_map(|name| Some((name.clone(), self.disk.bytes(&name)?))).collect()
    }
}
