//! A seeded run of a store behind its queue, on disks that fail: the process is killed at any write, the power fails and takes any part of
//! what was not synced, the disk is full, read-only, or fails a write, a read or a sync.
//!
//! Path of a point: [`StoreStorm::give`] -> the queue on disk -> `pipeline::storing` -> `graphite::store` -> files in memory
//! (`graphite::memory_tree`). The daemon does the same with threads and files (`outputs::store`).
//! The checks after each step: the account is balanced; a series has what was taken or settled ([`ledger::Ledger`]), also for queries; no
//! block is lost but an unsafe one with the power; no point is refused but for the reason that it was given for. At the end, when all is
//! written, files have every value, and their coarse archives what follows from it.
//!
//! Its seeds are separate from those of other storms. Not here: faults of the queue's disk but for its end (`storm`).

mod ledger;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use deliver::disk_queue::faulty_disk::FaultyDisk;
use deliver::disk_queue::{DiskQueue, DiskQueuePlan, Position, Promise};
use deliver::queue::{Appended, Block, Queue};
use deliver::store::StoreSender;
use graphite::memory_tree::{Faults, MemoryTree};
use graphite::query::Range;
use graphite::store::{Reader, Rules, Store, StoreOptions, Writer};
use graphite::whisper::rules::{AggregationRule, Aggregations, SchemaRule, Schemas};
use graphite::whisper::{AggregationMethod, Layout, Space, parse_retentions};
use model::{DiskError, Dropped, Now, OutputAccount, SECOND_NS};
use pipeline::storing::{Settling, Took, take};

use self::ledger::{Ledger, Slot};
use crate::random::Random;
use crate::storm::Found;
use crate::world::canary::Canary;
use crate::world::start;
use crate::world::stored::Stored;

/// Steps of one run.
const STEPS: usize = 120;

/// Most series.
const SERIES: u64 = 12;

/// Archives of all series.
const RETENTIONS: &str = "10s:4h,1m:2d";
const STEP_S: i64 = 10;
const COARSE_S: i64 = 60;

const MS_NS: u64 = 1_000_000;

/// The figures of one run or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCalm {
    /// Points that the queue accepted.
    pub given: u64,
    /// Updates of files.
    pub updates: u64,
    /// Updates and syncs that failed.
    pub errors: u64,
    /// Values of series that were compared.
    pub compared: u64,
    /// Killed processes.
    pub kills: u64,
    /// Losses of power.
    pub power_losses: u64,
}

impl StoreCalm {
    /// Adds the figures of another run.
    pub fn add(&mut self, other: &StoreCalm) {
        self.given += other.given;
        self.updates += other.updates;
        self.errors += other.errors;
        self.compared += other.compared;
        self.kills += other.kills;
        self.power_losses += other.power_losses;
    }
}

/// One run.
///
/// # Errors
/// The first failed check.
pub fn store_storm(seed: u64) -> Result<StoreCalm, Found> {
    store_storm_with(seed, None)
}

/// The same with a known bug.
///
/// # Errors
/// As above.
pub fn store_storm_with(seed: u64, canary: Option<Canary>) -> Result<StoreCalm, Found> {
    let mut storm = StoreStorm::new(seed, canary);
    let mut at = 0;
    let mut all = || -> Result<(), String> {
        while at < STEPS {
            storm.step()?;
            storm.check()?;
            at += 1;
        }
        storm.end()
    };
    match all() {
        Ok(()) => Ok(storm.calm),
        Err(message) => Err(Found { seed, step: at, message }),
    }
}

/// What a process has in memory.
#[derive(Debug)]
struct Process {
    account: Arc<OutputAccount>,
    queue: DiskQueue<FaultyDisk>,
    sender: StoreSender,
    store: Store,
    settling: Settling,
    writer: Writer,
}

struct StoreStorm {
    random: Random,
    now: Now,
    options: StoreOptions,
    stored: Stored,
    tree: MemoryTree,
    process: Process,
    ledger: Ledger,
    /// Points that a process refuses: those with a bad name, too old, and in the future.
    refused: [u64; 3],
    /// The next value: each is given once.
    value: u64,
    /// Reads of files fail.
    is_unreadable: bool,
    canary: Option<Canary>,
    calm: StoreCalm,
}

fn rules() -> Rules {
    let layout = parse_retentions(RETENTIONS).ok().and_then(|archives| Layout::new(&archives).ok());
    let layout = layout.expect("valid retentions");
    let schema = SchemaRule { section: "all".to_owned(), pattern: String::new(), layout };
    let rule = AggregationRule {
        section: "all".to_owned(),
        pattern: String::new(),
        x_files_factor: Some(0.0),
        method: Some(AggregationMethod::Sum),
    };
    Rules {
        schemas: Schemas::new(vec![schema]).expect("a valid rule"),
        aggregations: Aggregations::new(vec![rule]).expect("a valid rule"),
    }
}

impl StoreStorm {
    fn new(seed: u64, canary: Option<Canary>) -> StoreStorm {
        let mut random = Random::new(seed);
        let now = start(0);
        let plan = DiskQueuePlan { sync_window_ms: random.between(1, 2_000), ..DiskQueuePlan::default() };
        let mut stored = Stored::new(plan, (MS_NS, 300 * MS_NS), random.next(), None);
        let options = StoreOptions {
            write_after_s: random.between(0, 90) as u32,
            points_bytes_max: *random.pick(&[12 * 200, 1 << 20]),
            creates_per_minute_max: *random.pick(&[0, 0, 0, 4]),
            space: *random.pick(&[Space::Sparse, Space::Zeros, Space::Allocate]),
            ..StoreOptions::default()
        };
        let process = Process::new(&mut stored, &options, now);
        let mut storm = StoreStorm {
            random,
            now,
            options,
            stored,
            tree: MemoryTree::new(),
            process,
            ledger: Ledger::default(),
            refused: [0; 3],
            value: 0,
            is_unreadable: false,
            canary,
            calm: StoreCalm::default(),
        };
        storm.set_faults(Faults::default());
        storm
    }

    fn wall_s(&self) -> i64 {
        self.now.wall_seconds() as i64
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.below(100) {
            0..=29 => self.give(),
            30..=49 => self.take(),
            50..=66 => {
                let jobs = self.random.between(1, 20);
                self.write(jobs);
            }
            67..=76 => self.sync(),
            77..=87 => {
                let ms = self.random.between(1, 30_000);
                self.advance(ms * MS_NS)?;
            }
            88..=93 => self.fault(),
            94..=96 => return self.kill(),
            97 => return self.lose_power(),
            _ => self.set_faults(Faults::default()),
        }
        Ok(())
    }

    /// Time goes on, and the queue is synced in it.
    fn advance(&mut self, ns: u64) -> Result<(), String> {
        let end = self.now.plus_ns(ns);
        loop {
            let due_ns = self.stored.sync(&mut self.process.queue, self.now)?;
            let next_ns = due_ns.max(self.now.mono_ns + MS_NS).min(end.mono_ns);
            if self.now.mono_ns >= end.mono_ns {
                return Ok(());
            }
            self.now = self.now.plus_ns(next_ns - self.now.mono_ns);
            self.tree.set_now(self.wall_s());
        }
    }

    /// A block of lines comes.
    fn give(&mut self) {
        let (mut text, mut values, mut refused) = (Vec::new(), Vec::new(), [0; 3]);
        let lines = self.random.between(1, 40);
        for _ in 0..lines {
            self.value += 1;
            let series = self.random.below(SERIES) as usize;
            let age = self.random.below(30) as i64 * STEP_S;
            let time = self.wall_s().div_euclid(STEP_S) * STEP_S - age;
            let value = self.value;
            let line = match self.random.below(100) {
                0 => {
                    refused[0] += 1;
                    format!("a..{value} {value} {time}\n")
                }
                1 => {
                    refused[1] += 1;
                    format!("s{series} {value} {}\n", time - 3 * 86_400)
                }
                2 => {
                    refused[2] += 1;
                    format!("s{series} {value} {}\n", time + 86_400)
                }
                _ => {
                    values.push(((series, time), value as f64));
                    format!("s{series} {value} {time}\n")
                }
            };
            text.extend_from_slice(line.as_bytes());
        }
        let queue = &mut self.process.queue;
        let position = queue.accepted_up_to();
        let block = Block::lines(text.clone(), lines as u32, self.now.mono_ns);
        if queue.append(block, self.now) == Appended::Kept {
            self.calm.given += lines;
            self.ledger.gave(text, position.0, &values);
            self.refused.iter_mut().zip(refused).for_each(|(all, more)| *all += more);
        }
    }

    fn take(&mut self) {
        for _ in 0..self.random.between(1, 8) {
            let Process { store, sender, queue, .. } = &mut self.process;
            match take(store, sender, queue, self.now) {
                Took::Block => self.ledger.took(),
                Took::Part | Took::Nothing => return,
            }
        }
    }

    /// Writes some series. False when an update failed or none is due.
    fn write(&mut self, jobs: u64) -> bool {
        let at = self.wall_s();
        for _ in 0..jobs {
            let Process { store, writer, .. } = &mut self.process;
            let Some(job) = store.next(at) else { return false };
            let done = store.write(job, &self.tree, writer, at);
            self.calm.updates += u64::from(done.error.is_none() && !done.waits);
            self.calm.errors += u64::from(done.error.is_some());
            if done.error.is_some() {
                return false;
            }
        }
        true
    }

    /// As the daemon: a sync that fails makes the store begin anew.
    fn sync(&mut self) {
        let Process { store, settling, sender, .. } = &mut self.process;
        match settling.sync(store, &self.tree) {
            Ok(false) => {}
            Ok(true) => {
                let before = sender.stored_blocks();
                settling.settle(sender);
                self.ledger.settled(before - sender.stored_blocks());
            }
            Err(_) => {
                self.calm.errors += 1;
                sender.begin_anew();
                *store = Store::new(self.options.clone(), rules(), 7);
                *settling = Settling::default();
                self.ledger.forgotten();
            }
        }
    }

    fn fault(&mut self) {
        let random = &mut self.random;
        let faults = match random.below(5) {
            0 => Faults { bytes_max: Some(random.below(300_000)), ..Faults::default() },
            1 => Faults { write_error_in: Some(random.below(30)), ..Faults::default() },
            2 => Faults { reads_fail: Some(DiskError::Io { code: 5 }), ..Faults::default() },
            3 => Faults { read_only: true, ..Faults::default() },
            _ => Faults { sync_fails: true, ..Faults::default() },
        };
        self.set_faults(faults);
    }

    fn set_faults(&mut self, faults: Faults) {
        let sync_lies = self.canary == Some(Canary::TreeNotSynced);
        self.is_unreadable = faults.reads_fail.is_some();
        self.tree.set_faults(Faults { sync_lies, ..faults });
    }

    /// The process is killed, often in a write.
    fn kill(&mut self) -> Result<(), String> {
        self.calm.kills += 1;
        if self.random.chance(70) {
            let writes = self.random.below(40);
            self.set_faults(Faults { killed_in: Some(writes), ..Faults::default() });
            self.write(30);
        }
        self.died(false)
    }

    fn lose_power(&mut self) -> Result<(), String> {
        self.calm.power_losses += 1;
        let percent = *self.random.pick(&[0, 50, 90]);
        let random = &mut self.random;
        self.tree = self.tree.after_power_loss_with(&mut || random.chance(percent));
        self.died(true)
    }

    fn died(&mut self, power: bool) -> Result<(), String> {
        for block in self.ledger.queued.clone() {
            let position = Position(self.ledger.blocks[block].position);
            let is_safe = self.process.queue.promise(position) == Promise::Safe;
            self.ledger.blocks[block].is_safe = is_safe;
        }
        self.set_faults(Faults::default());
        self.stored.die(power);
        let (found, _) = self.stored.peek(self.now);
        let found: Vec<(u64, Vec<u8>)> = found.into_iter().map(|(at, bytes)| (at.0, bytes)).collect();
        self.ledger.died(&found, power)?;
        self.process = Process::new(&mut self.stored, &self.options, self.now);
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        let Process { account, queue, sender, .. } = &self.process;
        let sum = account.sum(queue.copies() + sender.waiting_copies());
        if !sum.holds() {
            return Err(format!("the account does not hold: {sum:?}"));
        }
        self.check_refused()?;
        if self.is_unreadable {
            return Ok(());
        }
        for _ in 0..3 {
            self.check_series(self.random.clone().below(SERIES) as usize)?;
            self.random.next();
        }
        Ok(())
    }

    fn check_refused(&self) -> Result<(), String> {
        let account = &self.process.account;
        let reasons = [Dropped::UnsafeName, Dropped::BeforeRetention, Dropped::InFuture];
        for (reason, refused) in reasons.into_iter().zip(self.refused) {
            if account.dropped(reason) > refused {
                return Err(format!("{} points were dropped as {reason:?}", account.dropped(reason)));
            }
        }
        let known: u64 = reasons.into_iter().map(|reason| account.dropped(reason)).sum();
        // What a power loss took of the queue.
        let damaged = if self.calm.power_losses > 0 { account.dropped(Dropped::Damaged) } else { 0 };
        match account.lost_here() - known - damaged {
            0 => Ok(()),
            lost => {
                let others = Dropped::ALL.iter().filter(|reason| account.dropped(**reason) > 0);
                Err(format!("{lost} points were dropped, of these reasons: {:?}", others.collect::<Vec<_>>()))
            }
        }
    }

    /// Compares what a query reads with what was given.
    fn check_series(&mut self, series: usize) -> Result<(), String> {
        let now = self.wall_s();
        let mut reader = Reader::new(&self.process.store, &self.tree, now, || Ok(()));
        let range = Range { from: now - 3 * 3600, until: now };
        let name = format!("s{series}");
        let fetched = reader.fetch_series(name.as_bytes(), range);
        let fetched = fetched.map_err(|error| format!("series {name} cannot be read: {error}"))?;
        let slots: Vec<Slot> = self.ledger.slots(series).collect();
        for slot in slots {
            let has = fetched.as_ref().and_then(|fetched| {
                let at = (slot.1 - fetched.start).div_euclid(i64::from(fetched.step));
                usize::try_from(at).ok().and_then(|at| fetched.values.get(at).copied().flatten())
            });
            self.calm.compared += 1;
            self.ledger.check(slot, has)?;
        }
        Ok(())
    }

    /// The disks work again, and everything is written.
    fn end(&mut self) -> Result<(), String> {
        self.set_faults(Faults::default());
        for _ in 0..10_000 {
            self.advance(SECOND_NS)?;
            self.take();
            self.process.store.drain(true);
            while self.write(1_000) {}
            self.sync();
            if self.ledger.queued.is_empty() {
                break;
            }
        }
        self.check()?;
        let Process { queue, sender, store, account, .. } = &self.process;
        let (waiting, (points, _)) = (queue.copies() + sender.waiting_copies(), store.pending());
        if waiting > 0 || points > 0 {
            return Err(format!("{waiting} points are still queued, and {points} in memory"));
        }
        if account.errors.load(Relaxed) > 0 {
            return Err("the account has errors that nobody reported".to_owned());
        }
        (0..SERIES as usize).try_for_each(|series| {
            self.check_series(series)?;
            self.check_coarse(series)
        })
    }

    /// The sums of the coarse archive, where nothing is uncertain.
    fn check_coarse(&mut self, series: usize) -> Result<(), String> {
        let now = self.wall_s();
        let mut reader = Reader::new(&self.process.store, &self.tree, now, || Ok(()));
        let range = Range { from: now - 86_400, until: now };
        let name = format!("s{series}");
        let fetched = reader.fetch_series(name.as_bytes(), range).map_err(|error| error.to_string())?;
        let Some(fetched) = fetched else { return Ok(()) };
        for (at, value) in fetched.values.iter().enumerate() {
            let start = fetched.start + at as i64 * COARSE_S;
            let slots = (0..COARSE_S / STEP_S).map(|slot| (series, start + slot * STEP_S));
            let given: Vec<Slot> = slots.filter(|slot| self.ledger.has(*slot)).collect();
            let certain: Option<Vec<f64>> = given.iter().map(|slot| self.ledger.certain(*slot)).collect();
            let Some(certain) = certain.filter(|values| !values.is_empty()) else { continue };
            let want: f64 = certain.iter().sum();
            if *value != Some(want) {
                return Err(format!("the minute {start} of {name} is {value:?}, and not {want}"));
            }
            self.calm.compared += 1;
        }
        Ok(())
    }
}

impl Process {
    fn new(stored: &mut Stored, options: &StoreOptions, now: Now) -> Process {
        let account = Arc::<OutputAccount>::default();
        let queue = stored.open(&account, now).expect("a disk that works");
        Process {
            sender: StoreSender::new(Arc::clone(&account)),
            account,
            queue,
            store: Store::new(options.clone(), rules(), 7),
            settling: Settling::default(),
            writer: Writer::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_keeps_what_was_safe_in_any_weather() {
        let mut all = StoreCalm::default();
        for seed in 0..30 {
            all.add(&store_storm(seed).unwrap_or_else(|found| panic!("{found}")));
        }
        assert!(
            all.kills > 30 && all.power_losses > 10 && all.errors > 100 && all.updates > 1_000,
            "{all:?}"
        );
    }

    #[test]
    fn equal_seeds_give_equal_runs() {
        let runs = [store_storm(3), store_storm(3)].map(|run| run.expect("it is good"));
        assert_eq!(runs[0], runs[1]);
    }
}
