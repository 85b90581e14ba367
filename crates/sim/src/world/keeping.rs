//! What outlives a process beside queues: checkpoints of aggregations and notes of flushes, on a faulty disk.
//!
//! The daemon's threads are here as times at which they get to something: one writes a piece of a checkpoint, one writes
//! notes. All decisions are those of `pipeline::checkpoints`.
//! Not here: what must come back (`storm::memory`).

use std::collections::{BTreeSet, VecDeque};

use config::plan::Plan;
use deliver::disk_queue::faulty_disk::FaultyDisk;
use model::{Disk, DiskError, Now};
use pipeline::checkpoints::{self, Keep, Note, Notes, Piece, Writer, Wrote};
use pipeline::{SavedState, Turn};
use process::aggregate::checkpoint::LastFlush;

use super::canary::Canary;
use crate::random::Random;

/// Where notes are, and where they are written first.
const NOTES: &str = "last-flush";
const NOTES_HALF: &str = "last-flush.new";

/// Pieces that may wait for the disk.
const PIECES_MAX: usize = 8;

const MS_NS: u64 = 1_000_000;

/// Something that happened to what outlives the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Saving began.
    Begun { name: String, number: u64 },
    /// It is on disk.
    Whole { name: String, number: u64 },
    /// What was on disk is removed; unless the disk failed in that, no loss of power brings it back.
    Removed { name: String, is_safe: bool },
    /// A flush has ended, and its blocks are in the queues.
    Told { name: String },
    /// All flushes up to now are noted.
    Noted,
}

/// See the module's header.
#[derive(Debug)]
pub(crate) struct Keeping {
    pub(crate) disk: FaultyDisk,
    /// What happened, and how many blocks had been given to outputs before it.
    pub(crate) events: Vec<(usize, Event)>,
    writer: Writer<FaultyDisk>,
    way: Way,
    /// When the writer is done with its piece.
    busy_until_ns: u64,
    /// Longest time that a piece takes, nanoseconds.
    piece_ns: u64,
    notes: Notes,
    /// When they are written, if there are new ones.
    notes_due_ns: Option<u64>,
    random: Random,
    /// Series that are saved in one turn.
    pub(crate) slice: usize,
    canary: Option<Canary>,
}

/// Between the saver and the writer.
#[derive(Debug)]
struct Way {
    pieces: VecDeque<Piece>,
    /// Those that have begun and are no events yet.
    begun: Vec<Event>,
    failing: BTreeSet<String>,
    random: Random,
}

impl Keep for Way {
    fn offer(&mut self, piece: Piece) -> Result<(), Piece> {
        match &piece {
            // Always taken, so that it is known when saving began.
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

/// Where a turn saves checkpoints; nowhere, when there is no disk for them.
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
    /// An empty disk, which is as fast as the seed says.
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

    /// A new process begins: its shard gets what the one before has left.
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
            let noted = self.notes.of(&transform.name);
            let told = checkpoints::believed(transform, noted, set_back_ns);
            let restored =
                checkpoints::begin(Some(&self.disk), shard, transform, told, now, |_file, _why| {});
            if told != noted && matches!(restored, Ok(None)) {
                shard.drop_label(&transform.name);
            }
        }
        self.follow(plan, turn, now);
    }

    /// A new process goes on with the states of one that lives, as after a hot restart.
    pub(crate) fn go_on(&mut self, plan: &Plan, turn: &mut Turn, states: &[SavedState], now: Now) {
        self.way.pieces.clear();
        self.way.failing.clear();
        for SavedState { name, bytes } in states {
            let restored = turn.shard.import(name, bytes, LastFlush::default(), now);
            let restored = restored.and_then(Result::ok).expect("the state of a process that lives is whole");
            if let Some(label_s) = restored.last_flush_s {
                self.notes.told(name, Note { label_s, number: None });
            }
        }
        self.follow(plan, turn, now);
    }

    /// The process is gone, and the power with it or not: what the next one finds is decided now.
    pub(crate) fn die(&mut self, power: bool) {
        // A process that is killed removes nothing that it has half written.
        self.disk.change_faults(|faults| faults.crash_in = Some(0));
        self.writer = Writer::new(self.disk.clone());
        if power {
            self.disk.lose_power();
        } else {
            self.disk.restart();
        }
    }

    /// Takes another plan.
    pub(crate) fn follow(&mut self, plan: &Plan, turn: &mut Turn, now: Now) {
        let Keeping { disk, notes, .. } = self;
        let number = |name: &str| checkpoints::next_number(disk, name, notes.of(name).number);
        turn.follow_checkpoints(plan, number, now);
    }

    /// After a turn: writes what the disk gets to, and the notes. `gave` blocks have been given to outputs since events were
    /// taken.
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
        if self.notes.told(name, note) {
            self.events.push((gave, Event::Told { name: name.to_owned() }));
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

    /// As the daemon does it: not synced, and after a failure not tried again before the next flush.
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

    /// When there is something to do again, monotonic nanoseconds.
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
