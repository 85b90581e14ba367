//! The queue against a naive model, under random operations on a disk with all kinds of faults.
//!
//! Checked after every operation: the results, the account, and that safe records stay safe. After every crash a copy
//! of the disk is read to its end: no record is there twice, out of order or changed; all records are there that were
//! safe, or that a killed process had accepted, unless they have their outcome; none before the durable cursor is.
//! Each flipped byte may cost one record; a last segment that is cut short or gone costs its records; of segments
//! that are copied, renamed and swapped, each queued record is read, or stays in a file of the directory. Whatever is
//! missing is counted as damaged, exactly.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::faulty_disk::{Faults, FaultyDisk};
use super::*;
use crate::plan::WhenFull;
use crate::queue::Queue;

#[derive(Clone, Debug)]
enum Op {
    /// Lines, and the length of each.
    Append(usize, usize),
    Pop,
    /// Which of the popped entries.
    Settle(usize),
    DeliverPart(usize, usize),
    PutBack(usize),
    DropEntry(usize),
    /// The oldest record, or a segment with no more than so many bytes or copies.
    DropRun(u64, u64),
    BeginSync(bool),
    FinishSync,
    Pass(u64),
    /// The process dies in so many calls; true: with a loss of power.
    CrashIn(u64, bool),
    Crash(bool),
    /// Another process continues with the queue.
    HandOver,
    SyncErrorIn(u64),
    WriteErrorIn(u64),
    /// Files can or cannot be opened.
    OpensFail(Option<DiskError>),
    /// The directory is unavailable, or back.
    Away(bool),
    /// That read fails, once.
    ReadErrorIn(u64),
    /// Free space on the disk, or no limit.
    DiskBytes(Option<u64>),
    /// A byte of a file, and its change; the process dies with it.
    Flip(usize, usize, u8),
    /// So much of the last segment is left, or none; the process dies with it.
    CutLast(Option<usize>),
    /// Another program moves files of the queue; the process dies with it.
    Move(Move, usize, usize),
}

/// What happens to a segment.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// A copy under a free number.
    Copy,
    /// Another number.
    Rename,
    /// It and another one swap their numbers.
    Swap,
}

/// Changes to the files themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Harm {
    None,
    Flips,
    Cuts,
    Moves,
}

fn ops(harm: Harm) -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => (1..4_usize, 8..40_usize).prop_map(|(lines, len)| Op::Append(lines, len)),
        6 => Just(Op::Pop),
        5 => (0..8_usize).prop_map(Op::Settle),
        1 => (0..8_usize, 0..90_usize).prop_map(|(which, bytes)| Op::DeliverPart(which, bytes)),
        1 => (0..8_usize).prop_map(Op::PutBack),
        1 => (0..8_usize).prop_map(Op::DropEntry),
        1 => (0..900_u64, 0..6_u64).prop_map(|(bytes, copies)| Op::DropRun(bytes, copies)),
        4 => any::<bool>().prop_map(Op::BeginSync),
        4 => Just(Op::FinishSync),
        2 => (0..300_u64).prop_map(Op::Pass),
        1 => (0..12_u64, any::<bool>()).prop_map(|(calls, power)| Op::CrashIn(calls, power)),
        1 => any::<bool>().prop_map(Op::Crash),
        1 => Just(Op::HandOver),
        1 => (0..4_u64).prop_map(Op::SyncErrorIn),
        1 => (0..6_u64).prop_map(Op::WriteErrorIn),
        1 => proptest::option::of(0..400_u64).prop_map(Op::DiskBytes),
        1 => passing().prop_map(Op::OpensFail),
        1 => any::<bool>().prop_map(Op::Away),
        1 => (0..4_u64).prop_map(Op::ReadErrorIn),
        1 => (any::<usize>(), any::<usize>(), 1..=255_u8).prop_map(move |(file, at, change)| match harm {
            Harm::None => Op::Pass(1),
            Harm::Flips => Op::Flip(file, at, change),
            Harm::Cuts => Op::CutLast((change > 60).then_some(at)),
            Harm::Moves => {
                let moves = [Move::Copy, Move::Rename, Move::Swap];
                Op::Move(moves[usize::from(change) % moves.len()], file, at)
            }
        }),
    ];
    proptest::collection::vec(op, 1..90)
}

fn passing() -> impl Strategy<Value = Option<DiskError>> {
    prop_oneof![
        2 => Just(None),
        1 => Just(Some(DiskError::Scarce { code: 24 })),
        1 => Just(Some(DiskError::Denied)),
    ]
}

fn plans() -> impl Strategy<Value = DiskQueuePlan> {
    let when_full = prop_oneof![
        Just(WhenFull::Block),
        Just(WhenFull::Wait),
        Just(WhenFull::DropOldest),
        Just(WhenFull::DropNewest)
    ];
    let bytes_max = prop_oneof![300..2500_u64, Just(UNBOUNDED)];
    let records_max = prop_oneof![3 => Just(0), 1 => 3..20_u64];
    (bytes_max, records_max, when_full, 200..900_u64).prop_map(
        |(bytes_max, records_max, when_full, segment_bytes)| DiskQueuePlan {
            limits: QueueLimits {
                bytes_max,
                records_max,
                when_full,
                age_max_ms: 0,
                ..QueueLimits::default()
            },
            segment_bytes,
            ..DiskQueuePlan::default()
        },
    )
}

const UNBOUNDED: u64 = 1 << 40;

/// A block that was appended.
#[derive(Clone, Debug)]
struct Record {
    number: u64,
    text: String,
    copies_left: u64,
    safe: bool,
    /// Has an outcome, or was lost in an allowed way.
    gone: bool,
}

impl Record {
    fn disk_bytes(&self) -> u64 {
        (format::RECORD_HEADER_BYTES + self.text.len()) as u64
    }
}

struct Sim {
    disk: FaultyDisk,
    plan: DiskQueuePlan,
    canary: Option<Canary>,
    queue: DiskQueue<FaultyDisk>,
    now: Now,
    job: Option<SyncJob<usize>>,
    /// Records before the cursor that the job syncs.
    job_settled: u64,
    held: Vec<(u64, Entry)>,
    /// By id, which ascends with each append.
    records: BTreeMap<u64, Record>,
    waiting: VecDeque<u64>,
    next: u64,
    power: bool,
    /// Lower limits for the cursor on disk, for a new process and after a loss of power.
    cursor_written: u64,
    cursor_synced: u64,
    flips: usize,
    lost_to_flips: usize,
    cuts: usize,
    moves: usize,
    /// Records that a move has taken out of the queue: they stay in the directory.
    quarantined: BTreeSet<u64>,
    /// A loss of power or a kill happened in the middle of an operation.
    torn: bool,
    /// Copies of the last record of each number.
    numbers: BTreeMap<u64, u64>,
    /// After a loss of power it is not known which record had some number.
    doubtful: bool,
    /// A write failed, and its bytes may still be there.
    unwiped: bool,
    /// Up to where the cursor says that segments were written.
    noted: u64,
    noted_synced: u64,
    job_noted: u64,
}

/// What a new process finds.
struct Copied {
    /// Records that it would deliver, in order.
    found: Vec<(u64, Record)>,
    /// Copies that it counts as damaged.
    damaged: u64,
    /// Numbers of the records that it accounts for.
    accounted: std::ops::Range<u64>,
}

impl Sim {
    fn new(plan: DiskQueuePlan, canary: Option<Canary>, seed: u64) -> Sim {
        let disk = FaultyDisk::new(seed);
        let now = Now::default().plus_ns(MS_NS * 1000);
        let (queue, _) =
            DiskQueue::open(disk.clone(), plan, Arc::default(), seed, now).expect("an empty disk");
        let mut sim = Sim {
            disk,
            plan,
            canary,
            queue,
            now,
            job: None,
            job_settled: 0,
            held: Vec::new(),
            records: BTreeMap::new(),
            waiting: VecDeque::new(),
            next: 0,
            power: false,
            cursor_written: 0,
            cursor_synced: 0,
            flips: 0,
            lost_to_flips: 0,
            cuts: 0,
            moves: 0,
            quarantined: BTreeSet::new(),
            torn: false,
            numbers: BTreeMap::new(),
            doubtful: false,
            unwiped: false,
            noted: 0,
            noted_synced: 0,
            job_noted: 0,
        };
        sim.queue.canary = canary;
        sim
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Append(lines, len) => self.append(*lines, *len),
            Op::Pop => self.pop(),
            Op::Settle(which) => {
                self.with_held(*which, |_, entry| entry.settle(CopyOutcome::Delivered), true)
            }
            Op::DeliverPart(which, bytes) => self.deliver_part(*which, *bytes),
            Op::PutBack(which) => self.with_held(*which, DiskQueue::put_back, false),
            Op::DropEntry(which) => self.with_held(*which, |_, entry| drop(entry), false),
            Op::DropRun(bytes, copies) => self.drop_run(*bytes, *copies),
            Op::BeginSync(last) => self.begin_sync(*last),
            Op::FinishSync => self.finish_sync(),
            Op::Pass(ms) => self.now = self.now.plus_ns(ms * MS_NS),
            Op::CrashIn(calls, power) => {
                self.power = *power;
                self.disk.change_faults(|faults| faults.crash_in = Some(*calls));
            }
            Op::Crash(power) => self.crash(*power),
            Op::HandOver => self.hand_over(),
            Op::SyncErrorIn(calls) => self.disk.change_faults(|faults| faults.sync_error_in = Some(*calls)),
            Op::WriteErrorIn(calls) => self.disk.change_faults(|faults| faults.write_error_in = Some(*calls)),
            Op::OpensFail(error) => self.disk.change_faults(|faults| faults.opens_fail = *error),
            Op::Away(away) => self.disk.change_faults(|faults| faults.away = *away),
            Op::ReadErrorIn(calls) => self.disk.change_faults(|faults| faults.read_error_in = Some(*calls)),
            Op::DiskBytes(room) => {
                let names = self.disk.names();
                let used: u64 = names
                    .iter()
                    .filter_map(|name| self.disk.bytes(name))
                    .map(|bytes| bytes.len() as u64)
                    .sum();
                let bytes_max = room.map(|room| used + room);
                self.disk.change_faults(|faults| faults.bytes_max = bytes_max);
            }
            Op::Flip(file, at, change) => self.flip(*file, *at, *change),
            Op::CutLast(left) => self.cut_last(*left),
            Op::Move(what, from, to) => self.move_segment(*what, *from, *to),
        }
        if self.disk.is_dead() {
            self.crash(self.power);
        }
        self.check();
    }

    fn append(&mut self, lines: usize, len: usize) {
        let id = self.next;
        self.next += 1;
        let text: String = (0..lines).map(|line| format!("{:x<len$}\n", format!("{id} {line} "))).collect();
        let block = Block::lines(text.clone().into_bytes(), lines as u32, self.now.mono_ns);
        let number = self.queue.accepted_up_to().0;
        let record = Record { number, text, copies_left: lines as u64, safe: false, gone: false };
        let faults_met = self.disk.faults_met();
        // Even if the process dies in this call, the header may be there.
        self.numbers.insert(number, lines as u64);
        let waits = self.may_wait();
        let want = if waits { Appended::Kept } else { self.model_append(&record) };
        let appended = self.queue.append(block, self.now);
        if !waits && faults_met == self.disk.faults_met() {
            assert_eq!(std::mem::discriminant(&appended), std::mem::discriminant(&want), "block {id}");
        }
        self.unwiped |= appended != Appended::Kept && faults_met != self.disk.faults_met();
        if appended == Appended::Kept {
            self.records.insert(id, record);
            self.waiting.push_back(id);
        }
        self.reconcile();
    }

    /// Descriptors are short, or were at the last attempt: the queue may wait instead of reading, and the model does
    /// not.
    fn may_wait(&self) -> bool {
        let mut waits = self.queue.read_error().is_some();
        self.disk.change_faults(|faults| {
            waits |= faults.away || faults.opens_fail.is_some() || faults.read_error_in.is_some();
        });
        waits
    }

    /// The result by `when_full`; the model drops as it goes.
    fn model_append(&mut self, record: &Record) -> Appended {
        let limits = self.plan.limits;
        let full = || Appended::Full(Block::lines(Vec::new(), 0, 0));
        if record.disk_bytes() > limits.bytes_max {
            return Appended::Dropped;
        }
        // Whole segments in the quarantine use space until the operator removes them.
        let quarantined_bytes = self.queue.quarantine.whole_bytes();
        loop {
            let all =
                || self.waiting.iter().chain(self.held.iter().map(|(id, _)| id)).map(|id| &self.records[id]);
            let bytes: u64 = all().map(Record::disk_bytes).sum();
            let copies: u64 = all().map(|record| record.copies_left).sum();
            let most = limits.records_max;
            let fits = most == 0 || copies == 0 || copies + record.copies_left <= most;
            if fits && quarantined_bytes + bytes + record.disk_bytes() <= limits.bytes_max {
                return Appended::Kept;
            }
            match limits.when_full {
                WhenFull::Block => return full(),
                WhenFull::DropNewest => return Appended::Dropped,
                WhenFull::DropOldest | WhenFull::BlockWhileUp | WhenFull::Wait => {
                    match self.waiting.pop_front() {
                        Some(oldest) => self.end(oldest),
                        None => return Appended::Dropped,
                    }
                }
            }
        }
    }

    /// A full disk may have cost more of the oldest records.
    fn reconcile(&mut self) {
        let copies = |sim: &Sim| -> u64 { sim.waiting.iter().map(|id| sim.records[id].copies_left).sum() };
        let drops = matches!(self.plan.limits.when_full, WhenFull::DropOldest | WhenFull::Wait);
        while drops && copies(self) > self.queue.copies() {
            let oldest = self.waiting.pop_front().expect("a record with copies");
            self.end(oldest);
        }
    }

    fn drop_run(&mut self, bytes: u64, copies: u64) {
        self.queue.take_notes();
        let was_read = !self.queue.returned.is_empty();
        let before = self.queue.account().dropped(Dropped::QueueFull);
        let dropped = self.queue.drop_run(Dropped::QueueFull, (bytes, copies));
        let upto = self.queue.read.records;
        let mut gone = Vec::new();
        while let Some(id) = self.waiting.pop_front_if(|id| {
            if was_read { dropped && gone.is_empty() } else { self.records[id].number < upto }
        }) {
            gone.push(id);
        }
        let all = || gone.iter().map(|id| &self.records[id]);
        let gone_copies: u64 = all().map(|record| record.copies_left).sum();
        let gone_bytes: u64 = all().map(Record::disk_bytes).sum();
        assert!(
            gone.len() <= 1 || gone_bytes <= bytes || gone_copies <= copies,
            "{gone:?}: {gone_bytes} bytes, {gone_copies} copies"
        );
        let counted = self.queue.account().dropped(Dropped::QueueFull) - before;
        let undamaged = !self.torn && self.flips + self.cuts + self.moves == 0;
        assert!(counted == gone_copies || !undamaged, "{counted} of {gone_copies} copies");
        gone.into_iter().for_each(|id| self.end(id));
    }

    fn end(&mut self, id: u64) {
        let record = self.records.get_mut(&id).expect("ids are known");
        (record.gone, record.copies_left) = (true, 0);
    }

    fn pop(&mut self) {
        let entry = self.queue.pop(self.now);
        if self.disk.is_dead() {
            return;
        }
        if entry.is_none() && self.queue.read_error().is_some() {
            // It waits; after a pause it tries again.
            self.now = self.now.plus_ns(READ_AGAIN_MS * MS_NS);
            return;
        }
        let want = self.waiting.pop_front();
        assert_eq!(entry.is_some(), want.is_some(), "the oldest is {want:?}");
        let (Some(entry), Some(id)) = (entry, want) else { return };
        let record = &self.records[&id];
        assert!(entry.block().bytes.as_slice() == record.text.as_bytes(), "not block {id}");
        assert_eq!((entry.copies(), entry.memory_bytes()), (record.copies_left, record.disk_bytes()));
        self.held.push((id, entry));
    }

    fn with_held(
        &mut self,
        which: usize,
        act: impl FnOnce(&mut DiskQueue<FaultyDisk>, Entry),
        settles: bool,
    ) {
        if self.held.is_empty() {
            return;
        }
        let (id, entry) = self.held.swap_remove(which % self.held.len());
        let all_settled = settles || entry.copies() == 0;
        act(&mut self.queue, entry);
        if all_settled {
            self.end(id);
        } else {
            let at = self.waiting.partition_point(|other| *other < id);
            self.waiting.insert(at, id);
        }
    }

    fn deliver_part(&mut self, which: usize, bytes: usize) {
        if self.held.is_empty() {
            return;
        }
        let which = which % self.held.len();
        let (id, entry) = &mut self.held[which];
        // A sender settles whole copies at once.
        let most = entry.block().bytes.len() - 1;
        entry.delivered_up_to(bytes.min(most).max(entry.settled));
        self.records.get_mut(id).expect("ids are known").copies_left = entry.copies();
    }

    /// Every record before it has its outcome, by the model.
    fn settled(&self) -> u64 {
        let open = self.waiting.iter().chain(self.held.iter().map(|(id, _)| id));
        open.map(|id| self.records[id].number).min().unwrap_or(self.queue.accepted_up_to().0)
    }

    fn begin_sync(&mut self, last: bool) {
        if self.job.is_some() {
            return;
        }
        let settled = self.settled();
        let (faults_met, write_errors) = (self.disk.faults_met(), self.queue.counts().write_errors);
        let _due_ns = self.queue.sync_due_ns(self.now);
        let job = if last { self.queue.begin_last_sync() } else { self.queue.begin_sync(self.now) };
        if (self.disk.faults_met(), self.queue.counts().write_errors) == (faults_met, write_errors) {
            self.cursor_written = settled;
            self.noted = self.queue.accepted_up_to().0;
        }
        (self.job_settled, self.job_noted) = match &job {
            Some(job) if job.cursor.is_some() => (settled, self.noted),
            _ => (0, 0),
        };
        self.job = job;
    }

    fn finish_sync(&mut self) {
        let Some(job) = self.job.take() else { return };
        let done = job.perform(&self.disk);
        if self.disk.is_dead() {
            return;
        }
        let good = done.cursor.is_ok() && done.directory.is_ok();
        let synced = self.queue.on_synced(done);
        assert!(synced.safe_up_to <= self.queue.accepted_up_to());
        if good {
            self.cursor_synced = self.cursor_synced.max(self.job_settled);
            self.noted_synced = self.noted_synced.max(self.job_noted);
        }
    }

    fn flip(&mut self, file: usize, at: usize, change: u8) {
        let names = self.disk.names();
        let segments: Vec<&String> =
            names.iter().filter(|name| format::segment_sequence(name).is_some()).collect();
        if segments.is_empty() {
            return;
        }
        self.disk.damage(segments[file % segments.len()], |bytes| {
            if !bytes.is_empty() {
                let at = at % bytes.len();
                bytes[at] ^= change;
            }
        });
        self.flips += 1;
        self.lift_bounds();
        self.crash(false);
    }

    fn cut_last(&mut self, left: Option<usize>) {
        let names = self.disk.names();
        let Some(last) = names.iter().filter(|name| format::segment_sequence(name).is_some()).max() else {
            return;
        };
        match left {
            Some(left) => self.disk.damage(last, |bytes| bytes.truncate(left % (bytes.len() + 1))),
            None => {
                self.disk.change_faults(|faults| *faults = Faults::default());
                self.disk.remove(last).expect("it was listed");
                self.disk.sync_directory().expect("no faults");
            }
        }
        self.cuts += 1;
        self.lift_bounds();
        self.crash(false);
    }

    fn move_segment(&mut self, what: Move, from: usize, to: usize) {
        let numbers: Vec<u64> =
            self.disk.names().iter().filter_map(|name| format::segment_sequence(name)).collect();
        let Some(from) = numbers.get(from % numbers.len().max(1)).copied() else { return };
        let bytes = |number: u64| self.disk.bytes(&format::segment_name(number)).expect("it was listed");
        let free: Vec<u64> = (0..=numbers.len() as u64 + 40).filter(|to| !numbers.contains(to)).collect();
        let free = free[to % free.len()];
        self.disk.change_faults(|faults| *faults = Faults::default());
        // Files that another program moved are on disk, even if the queue's sync of them had failed.
        numbers.iter().for_each(|number| self.disk.store(&format::segment_name(*number), &bytes(*number)));
        match what {
            Move::Copy => self.disk.store(&format::segment_name(free), &bytes(from)),
            Move::Rename => {
                let (from, to) = (format::segment_name(from), format::segment_name(free));
                self.disk.rename(&from, &to).expect("the name is free");
            }
            Move::Swap => {
                let other = numbers[to % numbers.len()];
                let both = (bytes(from), bytes(other));
                self.disk.store(&format::segment_name(other), &both.0);
                self.disk.store(&format::segment_name(from), &both.1);
            }
        }
        self.disk.sync_directory().expect("no faults");
        self.moves += 1;
        self.lift_bounds();
        self.crash(false);
    }

    /// Queued records that are not read any more are complete in some file.
    fn check_quarantined(&self) {
        let names = self.disk.names();
        let kept: Vec<u8> = names.iter().filter_map(|name| self.disk.bytes(name)).flatten().collect();
        for id in &self.quarantined {
            let text = self.records[id].text.as_bytes();
            assert!(memchr::memmem::find(&kept, text).is_some(), "block {id} is in no file of {names:?}");
        }
    }

    fn crash(&mut self, power: bool) {
        let accepted = self.queue.accepted_up_to().0;
        self.held.clear();
        self.job = None;
        self.torn |= power || self.disk.is_dead();
        if power {
            self.disk.lose_power();
            self.cursor_written = self.cursor_synced;
            self.noted = self.noted_synced;
        } else {
            self.disk.restart();
        }
        let copied = self.read_copy();
        let least = if power || self.cuts > 0 { self.noted } else { accepted };
        self.check_counts(&copied, least, power);
        let Copied { found, damaged, .. } = copied;
        self.compare(&found, power);
        let found: Vec<u64> = found.into_iter().map(|(id, _)| id).collect();
        if damaged > 0 {
            self.lift_bounds();
        }
        let (queue, _) = DiskQueue::open(self.disk.clone(), self.plan, Arc::default(), 3, self.now)
            .expect("the directory can be listed");
        self.queue = queue;
        self.queue.canary = self.canary;
        if self.moves > 0 && !power {
            let lost = self.records.iter().filter(|(id, record)| !record.gone && !found.contains(id));
            self.quarantined.extend(lost.map(|(id, _)| *id));
        }
        self.check_quarantined();
        for (id, record) in &mut self.records {
            record.gone = !found.contains(id);
            record.copies_left = if record.gone { 0 } else { record.text.matches('\n').count() as u64 };
            // A number may be used again for another record, with a durability of its own.
            record.safe &= !record.gone;
        }
        self.waiting = found.into();
    }

    /// The senders stop, the queue is synced a last time, and another process continues from there.
    fn hand_over(&mut self) {
        while !self.held.is_empty() {
            self.with_held(0, DiskQueue::put_back, false);
        }
        for step in [Sim::finish_sync, |sim: &mut Sim| sim.begin_sync(true), Sim::finish_sync] {
            if !self.disk.is_dead() {
                step(self);
            }
        }
        // Not with a disk that fails.
        if self.disk.is_dead()
            || self.may_wait()
            || self.queue.held_copies() > 0
            || self.queue.write_error().is_some()
        {
            return;
        }
        let Some(unsettled) = self.queue.unsettled() else { return };
        let left = self.queue.account().copies_queued();
        let decoded = Unsettled::decode(&unsettled.encode()).expect("it was encoded");
        assert_eq!(decoded, unsettled);
        let Ok(prepared) = DiskQueue::prepare(self.disk.clone(), self.plan, Unreadable::Fail) else {
            return;
        };
        let opened = prepared.open_after(Some(decoded), Arc::default(), (3, self.now));
        let (queue, report) = opened.expect("it was prepared");
        if report.unsettled_lost {
            // The disk lost bytes that the other process had written.
            assert!(
                self.torn || self.flips + self.cuts + self.moves > 0,
                "{unsettled:?} does not fit {report:?}"
            );
            return self.crash(false);
        }
        assert_eq!(queue.account().copies_queued(), left, "{unsettled:?}");
        self.queue = queue;
        self.queue.canary = self.canary;
    }

    /// Damaged records use space until reading passes them, which the model does not track.
    fn lift_bounds(&mut self) {
        let when_full = WhenFull::Block;
        self.plan.limits =
            QueueLimits { bytes_max: UNBOUNDED, records_max: 0, when_full, ..self.plan.limits };
    }

    /// Everything that a new process would deliver, in order.
    fn read_copy(&self) -> Copied {
        inspect_test::check_agreement(&self.disk.copy());
        let account = Arc::new(OutputAccount::default());
        let (mut queue, _) = DiskQueue::open(self.disk.copy(), self.plan, Arc::clone(&account), 3, self.now)
            .expect("the directory can be listed");
        let accounted = queue.settled_up_to().0..queue.accepted_up_to().0;
        let mut found = Vec::new();
        while let Some(entry) = queue.pop(self.now) {
            let text = std::str::from_utf8(&entry.block().bytes).expect("texts are ASCII").to_owned();
            let id: u64 =
                text.split(' ').next().and_then(|id| id.parse().ok()).expect("a text begins with its id");
            let number = entry.number();
            let record = Record { number, text, copies_left: entry.copies(), safe: false, gone: false };
            found.push((id, record));
            entry.settle(CopyOutcome::Delivered);
        }
        assert!(account.sum(0).holds() && queue.copies() == 0, "{:?}", account.sum(0));
        Copied { found, damaged: account.dropped(Dropped::Damaged), accounted }
    }

    /// Every unsettled record was found or is counted, at least up to `least`.
    fn check_counts(&mut self, copied: &Copied, least: u64, power: bool) {
        let Copied { found, damaged, accounted } = copied;
        // A failed write, whose cleanup failed as well, may have cost the end mark. If a byte of the last record is
        // flipped then, nothing shows its number any more.
        let nobody_knows = self.unwiped && self.flips > 0;
        assert!(accounted.end >= least || nobody_knows, "{accounted:?} of {least}");
        let copies: u64 = found.iter().map(|(_, record)| record.copies_left).sum();
        if power {
            // The record may be an earlier attempt at the same number, complete or not.
            self.numbers.extend(found.iter().map(|(_, record)| (record.number, record.copies_left)));
            self.doubtful |= *damaged > 0;
        }
        // Or one whose write failed, and its cleanup as well: its number is used again, for a record with other copies.
        self.doubtful |= self.unwiped && *damaged > 0;
        let all: u64 = self.numbers.range(accounted.clone()).map(|(_, copies)| copies).sum();
        // A cut, or a flip in the header of a segment, may leave an earlier attempt at a number as the last record: a
        // loss of power had restored it, and the later record of that number is gone, or was not written either. The
        // attempt is complete and delivered. Of the other record, the cursor or a header has the difference in
        // copies, or nothing has.
        let mut numbers = self.numbers.clone();
        if self.cuts + self.flips > 0 {
            numbers.extend(found.iter().map(|(_, record)| (record.number, record.copies_left)));
        }
        let with_tries: u64 = numbers.range(accounted.clone()).map(|(_, copies)| copies).sum();
        let is_all = [all, with_tries].contains(&(copies + damaged));
        assert!(self.doubtful || is_all, "{copies} + {damaged} of {all} in {accounted:?}");
    }

    fn compare(&mut self, found: &[(u64, Record)], power: bool) {
        assert!(found.is_sorted_by(|a, b| a.0 < b.0), "{found:?}");
        let mut missing = 0;
        for (id, record) in &self.records {
            let there = found.iter().any(|(other, _)| other == id);
            if there && self.flips + self.cuts == 0 {
                assert!(record.number >= self.cursor_written, "block {id} was settled: {record:?}");
            }
            if !there && !record.gone && (record.safe || !power) {
                missing += 1;
            }
        }
        self.lost_to_flips += missing;
        assert!(
            self.cuts + self.moves > 0 || self.lost_to_flips <= self.flips,
            "{missing} blocks are gone, with {} flips",
            self.flips
        );
        for (id, record) in found {
            // A record whose append never returned may be there, although the process died in the call.
            let known = self.records.entry(*id).or_insert_with(|| record.clone());
            assert_eq!((&known.text, known.number), (&record.text, record.number));
        }
    }

    fn check(&mut self) {
        let held: u64 = self.held.iter().map(|(_, entry)| entry.copies()).sum();
        let sum = self.queue.account().sum(self.queue.copies() + held);
        assert!(sum.holds(), "{sum:?}");
        assert_eq!(self.queue.account().copies_queued(), sum.queued);
        let held_bytes: u64 = self.held.iter().map(|(_, entry)| entry.memory_bytes()).sum();
        let waiting = self.queue.account().queued_bytes.load(Relaxed);
        assert_eq!(waiting, self.queue.bytes() + held_bytes);
        let damaged = self.queue.account().dropped(Dropped::Damaged);
        let may_be_damaged = self.torn || self.flips + self.cuts + self.moves > 0;
        assert!(may_be_damaged || damaged == 0, "{damaged} copies are damaged, and no byte is");
        for record in self.records.values_mut().filter(|record| !record.gone) {
            let safe = self.queue.promise(Position(record.number)) == Promise::Safe;
            // Records of an earlier run are synced, and never reported as safe: that run may have seen a failed sync.
            let own = record.number >= self.queue.opened_end;
            assert!(if own { safe || !record.safe } else { !safe }, "{record:?} is safe: {safe}");
            record.safe |= safe;
        }
    }

    /// All faults end, the machine restarts, and everything is delivered.
    fn finish(mut self, power: bool) {
        self.crash(power);
        let delivered = self.waiting.clone();
        for _ in 0..self.waiting.len() {
            self.pop();
            self.with_held(0, |_, entry| entry.settle(CopyOutcome::Delivered), true);
        }
        assert!(self.queue.pop(self.now).is_none());
        self.check();
        assert_eq!(self.queue.account().copies_queued(), 0);
        if let Some(job) = self.queue.begin_last_sync() {
            assert_eq!(self.queue.on_synced(job.perform(&self.disk)).error, None);
        }
        assert!(self.queue.segments() <= 1, "only the open segment may be left");
        self.check_quarantined();
        self.disk.lose_power();
        // Records lost in an earlier loss of power may come back with a file that was removed; delivered ones may not.
        let found = self.read_copy().found;
        assert!(found.iter().all(|(id, _)| !delivered.contains(id)), "{found:?} of {delivered:?}");
    }
}

fn run(plan: DiskQueuePlan, ops: &[Op], canary: Option<Canary>, seed: u64) {
    let mut sim = Sim::new(plan, canary, seed);
    ops.iter().for_each(|op| sim.apply(op));
    sim.finish(seed.is_multiple_of(2));
}

proptest! {
    #![proptest_config(Config::with_cases(250))]

    #[test]
    fn the_queue_behaves_like_the_model_and_keeps_its_guarantees(
        plan in plans(), ops in ops(Harm::None), seed in any::<u64>(),
    ) {
        run(plan, &ops, None, seed);
    }

    #[test]
    fn each_flipped_byte_costs_one_record_at_most(
        plan in plans(), ops in ops(Harm::Flips), seed in any::<u64>(),
    ) {
        run(plan, &ops, None, seed);
    }

    #[test]
    fn records_of_a_cut_or_missing_last_segment_are_counted(
        plan in plans(), ops in ops(Harm::Cuts), seed in any::<u64>(),
    ) {
        run(plan, &ops, None, seed);
    }

    #[test]
    fn copied_renamed_or_swapped_segments_lose_no_record(
        plan in plans(), ops in ops(Harm::Moves), seed in any::<u64>(),
    ) {
        run(plan, &ops, None, seed);
    }
}

/// Found with faults that are more frequent than those of [`ops`].
#[test]
fn failed_writes_restored_by_a_loss_of_power_are_delivered_if_not_replaced() {
    use Op::{Append, CrashIn, CutLast, DiskBytes, Flip, OpensFail, WriteErrorIn};
    let plan = |bytes_max: u64, when_full: WhenFull, segment_bytes: u64| DiskQueuePlan {
        limits: QueueLimits { bytes_max, when_full, records_max: 0, age_max_ms: 0, ..QueueLimits::default() },
        segment_bytes,
        ..DiskQueuePlan::default()
    };
    // An attempt that found no space; the segment of the record that got its number then is removed.
    let ops = [
        CrashIn(8, false),
        Append(1, 8),
        DiskBytes(Some(39)),
        Append(1, 8),
        Append(1, 8),
        Append(2, 10),
        Op::Crash(true),
        CutLast(None),
    ];
    run(plan(333, WhenFull::Block, 403), &ops, None, 7_362_138_063_741_023_686);
    // An attempt during which the power was lost; another record got the number and was not written, and the header
    // of the segment that was created for it is damaged.
    let ops = [
        Op::Crash(true),
        CrashIn(9, true),
        Append(1, 8),
        Append(1, 16),
        WriteErrorIn(0),
        Append(1, 30),
        OpensFail(Some(DiskError::Scarce { code: 24 })),
        Append(2, 8),
        Flip(6_889_909_453_618_331_203, 0, 1),
    ];
    run(plan(300, WhenFull::DropOldest, 552), &ops, None, 4_253_814_649_813_342_628);
}

#[test]
fn each_canary_is_found() {
    for canary in [
        Canary::SafeBeforeSync,
        Canary::CursorPastUnsettled,
        Canary::SyncTriedAgain,
        Canary::SegmentRemovedTooEarly,
        Canary::ScarcityIsDamage,
    ] {
        let config =
            Config { cases: 3000, max_shrink_iters: 0, failure_persistence: None, ..Config::default() };
        let found = TestRunner::new_with_rng(
            config,
            proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
        )
        .run(&(plans(), ops(Harm::None), any::<u64>()), |(plan, ops, seed)| {
            run(plan, &ops, Some(canary), seed);
            Ok(())
        });
        assert!(found.is_err(), "{canary:?} was not found");
    }
}
